package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridnode/test/slurm"
)

// slurmSite is a site in front of a real cluster.
type slurmSite struct {
	*site
	cluster *slurm.Cluster
	ran     string // file with a line for each execution of a job of ran
	bin     string // first on the daemon's PATH
}

func newSlurmSite(t *testing.T, name string, cluster slurm.Config, flags ...string) *slurmSite {
	c := slurm.Start(t, cluster)
	s := &slurmSite{site: newSite(t, name, flags...), cluster: c, ran: filepath.Join(t.TempDir(), "ran"), bin: t.TempDir()}
	s.env = []string{"GRIDNODE_SITE_ENGINE=slurm", "GRIDNODE_SLURM_WORKDIR=" + t.TempDir(), c.Env(), "PATH=" + s.bin + ":" + os.Getenv("PATH")}
	return s
}

// submit submits a job that notes that it runs, takes so long, and exits with code.
func (s *slurmSite) submit(processors int, seconds float64, code int) string {
	s.Helper()
	script := fmt.Sprintf("echo $GRIDNODE_JOB_ID >>%s; sleep %g; exit %d", s.ran, seconds, code)
	return strings.TrimSpace(s.ok("submit", "-n", fmt.Sprint(processors), "--once", "-t", "5m", "--", "sh", "-c", script))
}

// runs returns how often a job has begun.
func (s *slurmSite) runs(id string) int {
	text, _ := os.ReadFile(s.ran)
	return strings.Count(string(text), id)
}

// job returns what the site says of a job.
func (s *slurmSite) job(id string) (j struct {
	State    string
	ExitCode *int32
	Reason   string
}) {
	s.Helper()
	var list []struct {
		State    string
		ExitCode *int32
		Reason   string
	}
	s.json(&list, "status", id)
	if len(list) != 1 {
		s.Fatalf("%d jobs are %s", len(list), id)
	}
	return list[0]
}

// expect waits for a job and checks how it ended, and that it ran once.
func (s *slurmSite) expect(id string, code int32) {
	s.Helper()
	s.run("wait", id)
	if j := s.job(id); j.ExitCode == nil || *j.ExitCode != code || j.Reason != "" {
		s.Errorf("job %s: %+v, want exit code %d", id, j, code)
	}
	if n := s.runs(id); n != 1 {
		s.Errorf("job %s ran %d times", id, n)
	}
}

// TestSlurmSiteLosesNothing: not when its daemon dies with jobs running and queued, nor
// between sbatch and its answer, nor when the controller does, and its records are those of
// Slurm's accounting.
func TestSlurmSiteLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t, "cluster", slurm.Config{Name: "e2e", Processors: 4, Accounting: true})
	s.start()
	first := strings.TrimSpace(s.ok("submit", "-q", "-W", "--", "sh", "-c", "echo I am job $SLURM_JOB_ID"))
	if out := s.ok("logs", first); !strings.HasPrefix(out, "I am job ") || len(out) < 11 {
		t.Errorf("the output is %q", out)
	}

	runs, waits := s.submit(4, 3, 5), s.submit(4, 0, 6)
	s.eventually("the first runs", func() bool { return s.runs(runs) == 1 })
	s.kill()
	s.start()
	s.expect(runs, 5)
	s.expect(waits, 6)

	// The daemon dies between sbatch and its answer.
	trigger := filepath.Join(s.bin, "trigger")
	sbatch := "#!/bin/sh\nout=$(/usr/bin/sbatch \"$@\"); code=$?\nif rm " + trigger + " 2>/dev/null; then kill -9 $PPID; fi\necho \"$out\"\nexit $code\n"
	if err := os.WriteFile(filepath.Join(s.bin, "sbatch"), []byte(sbatch), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	doubt := s.submit(1, 1, 7)
	s.eventually("the daemon is dead", func() bool { return s.run("status").code != 0 })
	s.kill()
	s.start()
	s.expect(doubt, 7)

	// The controller dies, and says so; what was submitted waits.
	before := s.submit(1, 2, 8)
	s.eventually("it runs", func() bool { return s.runs(before) == 1 })
	<-time.After(6 * time.Second) // Slurm itself loses what its controller has not saved yet
	s.cluster.StopController(true)
	during := s.submit(1, 0, 9)
	s.eventually("status says so", func() bool { return strings.Contains(s.run("status").stderr, "does not answer") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.cluster.StartController(ctx); err != nil {
		t.Fatal(err)
	}
	s.expect(before, 8)
	s.expect(during, 9)
	s.eventually("status says nothing of it", func() bool { return s.run("status").stderr == "" })

	sleeps := s.submit(1, 1000, 0)
	s.eventually("it runs", func() bool { return s.runs(sleeps) == 1 })
	s.ok("cancel", sleeps)
	s.run("wait", sleeps)
	if j := s.job(sleeps); j.State != "cancelled" {
		t.Errorf("a cancelled job: %+v", j)
	}

	for id, code := range map[string]string{runs: "5:0", waits: "6:0", doubt: "7:0", before: "8:0", during: "9:0"} {
		s.eventually("accounting has the same of "+id, func() bool {
			var codes []string
			for line := range strings.Lines(s.cluster.Run(t, "sacct", "-X", "-n", "-P", "-o", "JobName,ExitCode")) {
				if name, code, _ := strings.Cut(strings.TrimSpace(line), "|"); strings.HasPrefix(name, "gridnode-"+id+".") {
					codes = append(codes, code)
				}
			}
			return len(codes) == 1 && codes[0] == code
		})
	}
}

// TestSlurmSiteServesAFederation: jobs of other sites run on the cluster, quotes follow what
// its own users do, and what is wrong at start names its key.
func TestSlurmSiteServesAFederation(t *testing.T) {
	t.Parallel()
	s := newSlurmSite(t, "cluster", slurm.Config{Name: "fed", Processors: 4}, "--foreign", "allow")
	for _, tt := range []struct{ setting, want string }{
		{"GRIDNODE_SLURM_PARTITION=none", "slurm.partition"},
		{"GRIDNODE_SLURM_OPTIONS=--wrap=true", "slurm.options"},
		{"GRIDNODE_SLURM_WORKDIR=/proc/none", "slurm.workdir"},
		{"GRIDNODE_SLURM_PILOTS=99", "slurm.pilots"},
		{"GRIDNODE_SITE_PROCESSORS=99", "site.processors"},
		{"PATH=/none", "PATH"},
	} {
		before := s.env
		s.env = append(s.env[:len(s.env):len(s.env)], tt.setting)
		if r := s.run("start"); r.code == 0 || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("with %s: %v", tt.setting, r)
		}
		s.env = before
	}
	s.start()
	home := newSite(t, "home", "--processors", "0", "--join", s.addr).start()
	home.sees(2)
	id := strings.TrimSpace(home.ok("submit", "--policy", "cheapest", "-n", "2", "--once", "-t", "1m", "-q", "-W", "--", "sh", "-c", "echo on $SLURM_NTASKS; hostname"))
	if out := home.ok("logs", id); !strings.HasPrefix(out, "on ") {
		t.Errorf("the output of a guest is %q", out)
	}
	file, gate := filepath.Join(t.TempDir(), "out"), newGate(t)
	writes := strings.TrimSpace(home.ok("submit", "--policy", "cheapest", "-t", "1m", "--stdout", file, "--", "sh", "-c", "echo first; read x <"+string(gate)+"; echo last"))
	s.eventually("the file at home has what the job has written so far", func() bool {
		text, _ := os.ReadFile(file)
		return string(text) == "first\n"
	})
	gate.open(t)
	home.ok("wait", writes)
	s.eventually("the file at home has all", func() bool {
		text, _ := os.ReadFile(file)
		return string(text) == "first\nlast\n"
	})
	other := s.cluster.Run(t, "sbatch", "--parsable", "-n", "3", "-t", "10", "-o", "/dev/null", "--wrap", "sleep 1000")
	free := func() (n int64) {
		var quotes []struct {
			Name string
			Free int64
		}
		home.json(&quotes, "quotes")
		for _, q := range quotes {
			if q.Name == "cluster" {
				n = q.Free
			}
		}
		return n
	}
	s.eventually("the quote follows", func() bool { return free() == 1 })
	s.cluster.Run(t, "scancel", other)
	s.eventually("the quote follows again", func() bool { return free() == 4 })
	s.smallJobs(home)
}

// smallJobs run in a pilot: also those of another site, and while the daemon dies.
func (s *slurmSite) smallJobs(home *site) {
	s.Helper()
	s.kill()
	s.env = append(s.env, "GRIDNODE_SLURM_PILOTS=2")
	s.start()
	home.sees(2)
	pilot := ""
	s.eventually("a pilot runs", func() bool {
		pilot = s.cluster.Run(s, "squeue", "-h", "-t", "RUNNING", "-o", "%i")
		return pilot != ""
	})
	small := []string{"submit", "-t", "1m", "-q", "-W", "--", "sh", "-c", "echo $SLURM_JOB_ID"}
	s.eventually("small jobs run in it", func() bool {
		id := strings.TrimSpace(s.ok(small...))
		return s.ok("logs", id) == pilot+"\n"
	})
	id := strings.TrimSpace(home.ok(append([]string{"submit", "--policy", "cheapest"}, small[1:]...)...))
	if out := home.ok("logs", id); out != pilot+"\n" { // without walls it sees where it is
		s.Errorf("a guest wrote %q, want the number of the pilot, %s", out, pilot)
	}
	long := s.submit(1, 3, 5)
	s.eventually("it runs", func() bool { return s.runs(long) == 1 })
	s.kill()
	s.start()
	s.expect(long, 5)
	if now := s.cluster.Run(s, "squeue", "-h", "-o", "%i"); now != pilot {
		s.Errorf("Slurm has %q, want only the pilot, %s", now, pilot)
	}
}

// TestClustersLend: processors of two clusters are pilots of leases there. A job with components
// at both starts everywhere at one moment, its tasks reach each other, and when the borrower's
// daemon is killed everything goes back with the leases.
func TestClustersLend(t *testing.T) {
	lender := func(name string, nodes, processors int, flags ...string) *slurmSite {
		s := newSlurmSite(t, name, slurm.Config{Name: name, Nodes: nodes, Processors: processors}, flags...)
		s.set("leases.lend", "allow", "leases.term", "20s")
		s.start()
		return s
	}
	a := lender("a", 1, 4)
	b := lender("b", 2, 2, "--join", a.addr)
	home := newSite(t, "home", "--processors", "1", "--join", a.addr).set("leases.term", "20s").start()
	home.sees(3)
	id := strings.TrimSpace(home.ok("submit", "-t", "1m", "-W", "-q", "--components", "2@a,3@b", "--", "date", "+%s%N"))
	apart := spread(t, home.ok("logs", id), 5)
	t.Logf("five tasks on two clusters have started %v apart", apart)
	solver := filepath.Join(t.TempDir(), "poisson")
	if out, err := exec.Command("go", "build", "-o", solver, "gridnode/examples/poisson").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v: %s", err, out)
	}
	open(t, solver, 0o755)
	args := []string{"--", solver, "-n", "32"}
	alone := home.ok("logs", strings.TrimSpace(home.ok(append([]string{"submit", "-W", "-q"}, args...)...)))
	both := home.ok("logs", strings.TrimSpace(home.ok(append([]string{"submit", "-t", "1m", "-W", "-q", "--components", "2@a,1@b"}, args...)...)))
	_, want, _ := strings.Cut(alone, "checksum ")
	if _, got, found := strings.Cut(both, "checksum "); !found || got != want {
		t.Errorf("over two clusters the program says\n%salone\n%s", both, alone)
	}
	// A site whose engine is Slurm has components itself, of its own jobs too.
	id = strings.TrimSpace(a.ok("submit", "-t", "1m", "-W", "-q", "--components", "2@a,3@b", "--", "date", "+%s%N"))
	t.Logf("five tasks of a cluster's own job, there and on another cluster, have started %v apart", spread(t, a.ok("logs", id), 5))
	own := a.ok("logs", strings.TrimSpace(a.ok(append([]string{"submit", "-t", "1m", "-W", "-q", "--components", "2@a,1@b"}, args...)...)))
	if _, got, found := strings.Cut(own, "checksum "); !found || got != want {
		t.Errorf("at home and over another cluster the program says\n%salone\n%s", own, alone)
	}
	for _, s := range []*slurmSite{a, b} {
		s.eventually("Slurm has nothing", func() bool { return s.cluster.Run(t, "squeue", "-h") == "" })
	}

	a.eventually("what the job had is free again", func() bool { return home.run("lease", "request", a.id, "-n", "3", "-t", "10m").code == 0 })
	wide := strings.TrimSpace(home.ok("submit", "-n", "3", "--once", "-t", "1m", "--", "sh", "-c", "echo $SLURM_JOB_ID; sleep 1000"))
	home.eventually("a job runs on borrowed processors", func() bool { return home.ok("logs", wide) != "" })
	if pilot := a.cluster.Run(t, "squeue", "-h", "-o", "%i"); home.ok("logs", wide) != pilot+"\n" {
		t.Errorf("it runs in %q, want the pilot, %s", home.ok("logs", wide), pilot)
	}
	home.kill()
	killed := time.Now()
	a.eventually("no pilot is left", func() bool { return a.cluster.Run(t, "squeue", "-h") == "" })
	t.Logf("no pilot was left %v after the borrower's daemon had died (term 20s)", time.Since(killed).Round(10*time.Millisecond))
	a.eventually("its processors are back", func() bool { return a.free() == 4 })
}
