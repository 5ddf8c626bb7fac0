package e2e

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var starts = flag.Int("starts", 2, "jobs whose start TestCoallocation measures; from 50 on it judges the 99th percentile")

// lenders starts sites that lend to each other, with so many processors each.
func lenders(t *testing.T, term string, processors ...int) []*site {
	t.Helper()
	var sites []*site
	for i, n := range processors {
		flags := []string{"--processors", fmt.Sprint(n)}
		if i > 0 {
			flags = append(flags, "--join", sites[0].addr)
		}
		sites = append(sites, newSite(t, fmt.Sprintf("site%d", i), flags...).set("leases.lend", "allow", "leases.term", term).start())
	}
	for _, s := range sites {
		s.sees(len(sites))
	}
	return sites
}

// free returns how many processors each site says are idle.
func (s *site) free() (n int64) {
	s.Helper()
	var list []struct {
		Self bool  `json:"self"`
		Free int64 `json:"free"`
	}
	s.json(&list, "sites")
	for _, other := range list {
		if other.Self {
			return other.Free
		}
	}
	s.Fatalf("site %s does not list itself: %v", s.home, list)
	return 0
}

// allFree waits until nothing is held, lent or used at a site.
func (s *site) allFree(processors int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d processors are free and nothing is lent", processors), func() bool {
		return len(s.leases()) == 0 && s.free() == processors
	})
}

// spread returns how far apart the instants are that a job's tasks print when they
// start, one a line in nanoseconds.
func spread(t *testing.T, text string, tasks int) time.Duration {
	t.Helper()
	var first, last int64
	lines := strings.Fields(text)
	if len(lines) != tasks {
		t.Fatalf("%d tasks have started, want %d: %q", len(lines), tasks, text)
	}
	for i, line := range lines {
		at, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, last = at, at
		}
		first, last = min(first, at), max(last, at)
	}
	return time.Duration(last - first)
}

// TestCoallocation: jobs with components at three sites start everywhere at the same
// moment, and what the tasks of one compute together is what one site computes alone.
func TestCoallocation(t *testing.T) {
	sites := lenders(t, "20s", 2, 2, 2, 2)
	home := sites[0]
	var spreads []time.Duration
	for range *starts {
		id := strings.TrimSpace(home.ok("submit", "-W", "-q", "--components", "1@site1,2@site2,1@site3", "--", "date", "+%s%N"))
		spreads = append(spreads, spread(t, home.ok("logs", id), 4))
	}
	slices.Sort(spreads)
	p99 := spreads[(len(spreads)*99+99)/100-1]
	t.Logf("%d starts of 4 tasks at three sites: median %v, 99th percentile %v apart", len(spreads), spreads[len(spreads)/2], p99)
	if len(spreads) >= 50 && p99 > 200*time.Millisecond {
		t.Errorf("99 of 100 jobs start within %v, want 200ms: %v", p99, spreads)
	}

	solver := filepath.Join(t.TempDir(), "poisson")
	if out, err := exec.Command("go", "build", "-o", solver, "gridnode/examples/poisson").CombinedOutput(); err == nil {
		open(t, solver, 0o755)
	} else {
		t.Fatalf("build the example: %v: %s", err, out)
	}
	checksum := func(text string) string {
		_, sum, found := strings.Cut(strings.TrimSpace(text), "checksum ")
		if !found {
			t.Fatalf("no checksum in %q", text)
		}
		return sum
	}
	args := []string{"--", solver, "-n", "64"}
	alone := home.ok("logs", strings.TrimSpace(home.ok(append([]string{"submit", "-W", "-q"}, args...)...)))
	for _, how := range [][]string{{"--components", "2@site1,1@site2,1@site0"}, {"-n", "6", "--coalloc", "3..4", "--min-per-site", "1", "--placement", "fcm"}} {
		id := strings.TrimSpace(home.ok(append(append([]string{"submit", "-W", "-q"}, how...), args...)...))
		text := home.ok("logs", id)
		if a, b := checksum(alone), checksum(text); a != b {
			t.Errorf("%v: checksum %s, alone %s\n%s%s", how, b, a, alone, text)
		}
		var jobs []struct {
			SiteName   string `json:"siteName"`
			Components []struct {
				SiteName   string `json:"siteName"`
				Processors int64  `json:"processors"`
			} `json:"components"`
		}
		home.json(&jobs, "status", id)
		if len(jobs) != 1 || len(jobs[0].Components) != 3 || strings.Count(jobs[0].SiteName, "+") != 2 {
			t.Errorf("%v: status shows %+v, want three components", how, jobs)
		}
		if why := home.ok("why", id); !strings.Contains(why, "component 0") {
			t.Errorf("%v: why says\n%s", how, why)
		}
	}
	for _, s := range sites {
		s.allFree(2)
	}
}

// TestComponentsSiteDies: the daemon and the pilots of one component's site are killed
// while the job runs. The others end within a keep-alive, and nothing is left behind.
func TestComponentsSiteDies(t *testing.T) {
	t.Parallel()
	sites := lenders(t, "10s", 1, 1, 1, 1)
	home := sites[0]
	id := strings.TrimSpace(home.ok("submit", "--components", "1@site1,1@site2,1@site3", "--", "sh", "-c", "echo $$; exec sleep 1000"))
	home.eventually("all tasks run", func() bool { return strings.Count(home.ok("logs", id), "\n") == 3 })
	var pids []int
	for _, text := range strings.Fields(home.ok("logs", id)) {
		pid, err := strconv.Atoi(text)
		if err != nil || !runs(pid) {
			t.Fatalf("task %q does not run: %v", text, err)
		}
		pids = append(pids, pid)
	}
	dead := sites[2]
	dead.kill()
	killed := time.Now()
	for _, pid := range pids {
		home.eventually("every task has ended", func() bool { return !runs(pid) })
	}
	t.Logf("no task was left %v after one site had died (term 10s)", time.Since(killed).Round(10*time.Millisecond))
	for _, s := range []*site{sites[1], sites[3]} {
		s.allFree(1)
	}
	home.eventually("the job waits for the site", func() bool {
		j := home.status(id)
		return j.Epoch == 2 && j.State == "queued"
	})
	home.allFree(1)
	dead.start()
	home.eventually("it runs again when the site is back", func() bool { return home.status(id).State == "running" })
	home.ok("cancel", id)
	for _, s := range sites {
		s.allFree(1)
	}
}

// TestBadCoallocation: what cannot be is refused with the reason.
func TestBadCoallocation(t *testing.T) {
	t.Parallel()
	home := lenders(t, "20s", 2, 4)[0]
	for _, tt := range []struct {
		code int
		word string
		args string
	}{
		{2, "want PROCESSORS", "--components 2,,3"},
		{2, "want 1 to", "--components 0,2"},
		{2, "adds up to", "--components 4|2,1"},
		{2, "exclude each other", "--components 1,1 --coalloc 2"},
		{2, "ask for 3", "-n 3 --components 1,1"},
		{2, "the components are given", "--components 1,1 --min-per-site 1"},
		{2, "at least 3 components and at most 2", "-n 6 --coalloc 3..2"},
		{2, "3 components of at least 3 processors", "-n 6 --coalloc 3 --min-per-site 3"},
		{2, "at most 2 sites", "-n 6 --coalloc 3 --max-sites 2"},
		{2, "range like 2..4", "-n 6 --coalloc many"},
		{2, "want wf, cf", "-n 6 --coalloc 2 --placement best"},
		{2, "want a number", "-n 6 --coalloc 2 --ccr much"},
		{2, "are for jobs with", "--placement fcm"},
		{2, "see --placement", "--components 1,1 --deadline 1h"},
		{4, "no site is called", "--components 1@nowhere,1"},
		{5, "site0 has 2 processors", "--components 3@site0,1"},
		{5, "widest site 4", "--components 5,1"},
		{5, "2 sites are known", "-n 6 --coalloc 3"},
		{5, "sites that count have 6", "-n 7 --coalloc 2"},
		{2, "4 components of at least 2 processors", "-n 3 -c 2 --coalloc 4"},
		{5, "sites that count have 6", "-n 4 -c 2 --coalloc 2"},
	} {
		for _, dry := range []bool{false, true} {
			args := append([]string{"submit"}, strings.Fields(tt.args)...)
			if dry {
				args = append(args, "--dry-run")
			}
			if r := home.code(tt.code, append(args, "--", "true")...); !strings.Contains(r.stderr, tt.word) {
				t.Errorf("%s: %v, want %q", tt.args, r, tt.word)
			}
		}
	}
	if text := home.ok("submit", "--dry-run", "--components", "4,2", "--", "true"); !strings.Contains(text, "component 1: 2 processors") {
		t.Errorf("dry run:\n%s", text)
	}
	wide := strings.TrimSpace(home.ok("submit", "-W", "-q", "-n", "3", "-c", "2", "--coalloc", "2", "--placement", "fcm", "--", "sh", "-c", "echo $GRIDNODE_SITE $GRIDNODE_CPUS_PER_TASK"))
	if out := home.ok("logs", wide); strings.Count(out, "site1 2\n") != 2 || strings.Count(out, "site0 2\n") != 1 {
		t.Errorf("three tasks of two processors write %q", out)
	}
	script := "#!/bin/sh\n#GRID --components 3@site1,1\necho $GRIDNODE_RANK\n"
	r := home.runIn(script, "submit", "-W", "-q", "-")
	if r.code != 0 {
		t.Fatalf("a script with components: %v", r)
	}
	if out := home.ok("logs", strings.TrimSpace(r.stdout)); len(strings.Fields(out)) != 4 {
		t.Errorf("a script with components writes %q", out)
	}
}
