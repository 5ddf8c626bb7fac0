package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// headed makes a head without processors and members that consent to it, each in a
// process of its own, and starts them. The window closes when 40 jobs have come.
func headed(t *testing.T, processors ...int) (head *site, members []*site) {
	t.Helper()
	head = newSite(t, "head", "--processors", "0")
	var ids []string
	for i, n := range processors {
		m := newSite(t, fmt.Sprintf("member%d", i+1), "--processors", fmt.Sprint(n))
		m.ok("config", "set", "muscle.head", head.id)
		members = append(members, m)
		ids = append(ids, m.id)
	}
	ids[1] = "member2" // names will do
	head.ok("config", "set", "muscle.members", strings.Join(ids, ","))
	head.ok("config", "set", "muscle.window", "1h")
	head.ok("config", "set", "muscle.batch", "40")
	head.start()
	for _, m := range members {
		m.ok("config", "set", "network.join", head.addr)
		m.start()
	}
	head.heads(len(members))
	return head, members
}

// placed reports whether a site has a job that is not over.
func placed(j job) bool { return j.State == "awarded" || j.State == "running" }

// A head shares jobs out as long as a member has no work, collects them while all have more
// than the threshold, and shares out what it has when one of them is done, before its
// estimate.
func TestHeadCollectsByMakespan(t *testing.T) {
	t.Parallel()
	head, _ := headed(t, 2, 1)
	head.kill()
	head.ok("config", "set", "muscle.collect", "makespan")
	head.ok("config", "set", "muscle.threshold", "1s")
	head.start()
	head.heads(2)
	hold := func(processors string) (id string, release gate) {
		release = newGate(t)
		id = strings.TrimSpace(head.ok("submit", "-q", "-n", processors, "--once", "-t", "1h", "--deadline", "3h", "--", "sh", "-c", "read x <"+string(release)))
		for deadline := time.Now().Add(patience); !placed(head.status(id)); <-time.After(look) {
			if time.Now().After(deadline) {
				t.Fatalf("a member is idle, and the job waits: %+v", head.status(id))
			}
		}
		return id, release
	}
	wide, first := hold("2")
	narrow, second := hold("1")
	if a, b := head.status(wide).SiteName, head.status(narrow).SiteName; a != "member1" || b != "member2" {
		t.Fatalf("the jobs are at %s and %s", a, b)
	}
	var ids []string
	for range 6 {
		ids = append(ids, strings.TrimSpace(head.ok("submit", "-q", "-t", "20s", "--deadline", "1h", "--", "true")))
	}
	if j := head.status(ids[0]); j.State != "placing" || !strings.Contains(j.Reason, "waits until a cluster has work for no more than 1s, one of 6 jobs so far") {
		t.Errorf("both members have work for an hour: %+v", j)
	}
	second.open(t)
	head.ok(append([]string{"wait", "--timeout", waitMost, narrow}, ids...)...)
	for _, id := range ids {
		if text := head.ok("why", id); !strings.Contains(text, "window 3, 6 jobs over 2 clusters by urgent") {
			t.Errorf("why %s:\n%s", id, text)
		}
	}
	first.open(t)
	head.ok("wait", "--timeout", waitMost, wide)
}

// heads returns once so many sites tell that the site may head them.
func (s *site) heads(n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(look) {
		var sites []struct {
			Head string `json:"head"`
		}
		s.json(&sites, "sites")
		heard := 0
		for i := range sites {
			if sites[i].Head == s.id {
				heard++
			}
		}
		if heard == n {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d sites consent to be headed, want %d: %+v", heard, n, sites)
		}
	}
}

// submitBatch submits jobs of one or two processors, whose deadlines are spread, and
// returns their IDs.
func submitBatch(head *site, jobs int) (ids []string) {
	head.Helper()
	for i := range jobs {
		out := head.ok("submit", "-q", "-n", fmt.Sprint(1+i%2), "-t", "1m", "--deadline", fmt.Sprintf("%dm", 10+7*i%40), "--",
			"sh", "-c", "echo $GRIDNODE_SITE; sleep 0.1")
		ids = append(ids, strings.TrimSpace(out))
	}
	return ids
}

// A head collects jobs with deadlines, is killed before it has shared them out, and
// shares them out over its members after that. A member that is killed while it has a
// part of them loses none.
func TestHead(t *testing.T) {
	t.Parallel()
	head, members := headed(t, 2, 3, 4)
	ids := submitBatch(head, 39)
	if j := head.status(ids[0]); j.State != "placing" || !strings.Contains(j.Reason, "packing window") || !strings.Contains(j.Reason, "39 jobs") {
		t.Errorf("before the window closes: %+v", j)
	}
	dry := head.ok("submit", "--dry-run", "-n", "3", "-t", "20s", "--deadline", "1h", "--", "true")
	for _, word := range []string{"window 1, 40 jobs over 3 clusters by urgent", "chosen", "planned to start", "member1", "too-narrow"} {
		if !strings.Contains(dry, word) {
			t.Errorf("--dry-run does not say %q:\n%s", word, dry)
		}
	}
	if r := head.code(5, "submit", "-n", "5", "--", "true"); !strings.Contains(r.stderr, "needs 5 processors, the widest cluster that this site heads has 4") {
		t.Errorf("a job that is too wide: %v", r)
	}
	head.code(5, "submit", "--dry-run", "-n", "5", "--", "true")
	head.ok("cancel", ids[38])
	if j := head.status(ids[38]); j.State != "cancelled" {
		t.Errorf("cancelled within the window: %+v", j)
	}
	head.kill()
	head.start()
	head.heads(3)
	if j := head.status(ids[7]); j.State != "placing" || !strings.Contains(j.Reason, "38 jobs") {
		t.Errorf("after a restart within the window: %+v", j)
	}

	// The last two hold the widest member, so that it is killed while it has jobs.
	stop := newGate(t)
	wide := strings.TrimSpace(head.ok("submit", "-q", "-n", "4", "--once", "-t", "90s", "--deadline", "5m", "--", "sh", "-c", "read x <"+string(stop)))
	ids = append(ids[:38], wide, strings.TrimSpace(head.ok("submit", "-q", "-t", "20s", "--deadline", "1h", "--", "true")))
	for deadline := time.Now().Add(patience); !placed(head.status(wide)) || strings.Contains(head.ok("status"), "placing"); <-time.After(look) {
		if time.Now().After(deadline) {
			t.Fatalf("not all jobs have a place:\n%s", head.ok("status"))
		}
	}
	members[2].kill()
	members[2].start()
	stop.open(t)
	head.ok(append([]string{"wait", "--timeout", waitMost}, ids...)...)

	at := map[string]int{}
	for _, id := range ids {
		j := head.status(id)
		if j.State != "done" {
			t.Errorf("%+v, want it done", j)
		}
		at[j.SiteName]++
	}
	for _, m := range []string{"member1", "member2", "member3"} {
		if at[m] == 0 {
			t.Errorf("%s had no job: %v", m, at)
		}
	}
	text := head.ok("why", ids[3])
	for _, word := range []string{"window 1, 40 jobs over 3 clusters by urgent", "composition table", "member1", "member2", "member3", "planned to start"} {
		if !strings.Contains(text, word) {
			t.Errorf("why does not say %q:\n%s", word, text)
		}
	}
}
