package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// previous is the program of the release before, which `make mixed` builds; empty: nobody did.
var previous = os.Getenv("GRIDNODE_E2E_PREVIOUS")

// mixed starts a federation of which every second site has the program of the release before.
// flags are those of init, and settings those of each, by site.
func mixed(t *testing.T, newFirst bool, names []string, flags map[string][]string, settings func(s *site, all []*site)) (sites []*site) {
	t.Helper()
	if previous == "" {
		t.Skip("needs the program of the release before: make mixed")
	}
	for i, name := range names {
		more := append([]string{"--processors", "2"}, flags[name]...)
		if i > 0 {
			more = append(more, "--join", sites[0].addr)
		}
		s := &site{TB: t, home: filepath.Join(t.TempDir(), name), port: freePort(t)}
		if (i%2 == 0) != newFirst {
			s.program = previous
		}
		s.init(name, more...)
		s.enrol(name)
		settings(s, sites)
		sites = append(sites, s.start())
	}
	for _, s := range sites {
		s.sees(len(sites))
	}
	return sites
}

// bothWays runs a test with the newer program at the first site, and with the older.
func bothWays(t *testing.T, test func(t *testing.T, newFirst bool)) {
	for name, newFirst := range map[string]bool{"new first": true, "old first": false} {
		t.Run(name, func(t *testing.T) { test(t, newFirst) })
	}
}

// TestMixedJobs: sites of two releases run each other's jobs, with files and output, and a
// third site's bank pays, whichever of them has the newer one. The newer one traces its jobs.
func TestMixedJobs(t *testing.T) {
	bothWays(t, func(t *testing.T, newFirst bool) {
		flags := map[string][]string{"alpha": {"--foreign", "allow"}, "beta": {"--foreign", "allow"}}
		sites := mixed(t, newFirst, []string{"alpha", "beta", "gamma"}, flags, func(s *site, all []*site) {
			if s.program == "" {
				s.set("trace.endpoint", "file:spans")
			}
			if len(all) == 0 {
				s.set("bank.offer", "true", "bank.site", "self")
			} else {
				s.set("bank.site", all[0].addr)
			}
		})
		for _, s := range sites {
			sites[0].ok("bank", "grant", s.id, "100")
		}
		for _, way := range [][2]*site{{sites[0], sites[1]}, {sites[1], sites[0]}, {sites[2], sites[1]}} {
			home, there := way[0], way[1]
			work := t.TempDir()
			open(t, work, 0o777)
			if err := os.WriteFile(filepath.Join(work, "input"), []byte("some text\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r := home.code(7, "submit", "-W", "--site", there.name(), "-D", work, "--in", filepath.Join(work, "input"), "--budget", "5", "--", "sh", "-c", "cat input; tr a-z A-Z <input >result; echo at $GRIDNODE_SITE; exit 7")
			if !strings.Contains(r.stdout, "some text") || !strings.Contains(r.stdout, "at "+there.name()) {
				t.Errorf("a job of %s at %s: %v", home.name(), there.name(), r)
			}
			if text, err := os.ReadFile(filepath.Join(work, "result")); string(text) != "SOME TEXT\n" {
				t.Errorf("%s brought %q home from %s, %v", home.name(), text, there.name(), err)
			}
			long := strings.TrimSpace(home.ok("submit", "-q", "--site", there.name(), "--", "sleep", "1000"))
			home.eventually("it runs", func() bool { return home.status(long).State == "running" })
			home.ok("cancel", long)
			home.eventually("it is cancelled", func() bool { return home.status(long).State == "cancelled" })
		}
		for _, s := range sites {
			if s.program != "" {
				continue
			}
			s.ok("stop") // and the spans are there
			if text, err := os.ReadFile(filepath.Join(s.home, "spans")); !strings.Contains(string(text), `"ask"`) && !strings.Contains(string(text), `"answer"`) {
				t.Errorf("%s has traced %d bytes, no question among them: %v", s.name(), len(text), err)
			}
		}
	})
}

// TestMixedLeases: a site of one release runs a job on processors that it has on lease from a
// site of the other.
func TestMixedLeases(t *testing.T) {
	bothWays(t, func(t *testing.T, newFirst bool) {
		sites := mixed(t, newFirst, []string{"hill", "vale"}, nil, func(s *site, all []*site) {
			s.set("leases.lend", "allow", "leases.term", "3s")
			for _, other := range all {
				s.set("delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+other.id)
			}
		})
		borrower := sites[1]
		for range 2 {
			borrower.ok("submit", "-q", "-t", "1h", "--", "sleep", "1000")
		}
		if r := borrower.ok("submit", "-W", "-t", "1h", "--", "sh", "-c", "echo at $GRIDNODE_SITE"); !strings.Contains(r, "at hill") {
			t.Errorf("it printed %q, want that it ran at the lender", r)
		}
	})
}

// TestMixedUpdate: a daemon is stopped while a job runs, its program replaced by the newer one,
// and started again: the job goes on, and nothing is lost.
func TestMixedUpdate(t *testing.T) {
	sites := mixed(t, false, []string{"alpha", "beta"}, map[string][]string{"alpha": {"--foreign", "allow"}}, func(*site, []*site) {})
	alpha, beta := sites[0], sites[1]
	over := alpha.code(3, "submit", "-W", "--", "sh", "-c", "exit 3").job()
	own, guest := newGate(t), newGate(t)
	script := func(g gate) []string { return []string{"--", "sh", "-c", "read x <" + string(g) + "; echo done"} }
	ids := []string{
		strings.TrimSpace(alpha.ok(append([]string{"submit", "-q"}, script(own)...)...)),
		strings.TrimSpace(beta.ok(append([]string{"submit", "-q", "--site", "alpha"}, script(guest)...)...)),
	}
	alpha.eventually("it runs", func() bool { return alpha.status(ids[0]).State == "running" })
	beta.eventually("it runs", func() bool { return beta.status(ids[1]).State == "running" })
	alpha.ok("stop")
	alpha.program = ""
	alpha.start()
	own.open(t)
	guest.open(t)
	for i, s := range sites {
		if r := s.ok("wait", ids[i]); s.status(ids[i]).State != "done" || s.status(ids[i]).Epoch > 1 {
			t.Errorf("job %s of %s: %+v, %s", ids[i], s.name(), s.status(ids[i]), r)
		}
		if text := s.ok("logs", ids[i]); text != "done\n" {
			t.Errorf("it wrote %q", text)
		}
	}
	if code := alpha.status(over).ExitCode; code == nil || *code != 3 {
		t.Errorf("what had ended before: %+v", alpha.status(over))
	}
}

// TestMixedReturn: an owner goes back to the older program. It goes on with a store that the
// newer one has written, or says that it is too old for it.
func TestMixedReturn(t *testing.T) {
	alpha := mixed(t, false, []string{"alpha"}, nil, func(*site, []*site) {})[0]
	alpha.ok("stop")
	alpha.program = ""
	alpha.start()
	over := alpha.code(3, "submit", "-W", "--", "sh", "-c", "exit 3").job()
	alpha.ok("stop")
	alpha.program = previous
	if r := alpha.run("start", "--detach"); r.code != 0 {
		if !strings.Contains(r.stderr, "later version") || !strings.Contains(r.stderr, "update it") {
			t.Errorf("an older program with a newer store: %v", r)
		}
		return
	}
	defer alpha.ok("stop")
	if code := alpha.status(over).ExitCode; code == nil || *code != 3 {
		t.Errorf("what had ended before: %+v", alpha.status(over))
	}
}
