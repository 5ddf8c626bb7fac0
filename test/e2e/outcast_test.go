package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsOwedWithAnOutcastIsSettled: a site is revoked that has a job at another, runs one of
// a third, and has run one that ends meanwhile. Its guest is dead and placed anew, its own job
// is paid for as far as it has come, and nothing stays committed at the bank. It learns of it
// itself, also if it was down.
func TestWhatIsOwedWithAnOutcastIsSettled(t *testing.T) {
	t.Parallel()
	bank := newLoner(t, "bank", "--processors", "1", "--price", "9")
	bank.ok("federation", "create", "physics")
	bank.set("bank.offer", "true", "bank.site", "self").start()
	invited := func(name string, flags ...string) *site {
		token := strings.TrimSpace(bank.ok("invite", "--site", name))
		s := newLoner(t, name, append(flags, "--join", token)...)
		return s.set("bank.site", bank.addr, "bank.accept", bank.id, "guests.on-ban", "cancel")
	}
	home := invited("home", "--processors", "1", "--price", "5").start()
	work := invited("work", "--processors", "4", "--price", "2", "--foreign", "allow").start()
	gone := invited("gone", "--processors", "4", "--price", "1", "--foreign", "allow").start()
	for _, s := range []*site{bank, home, work, gone} {
		s.sees(4)
	}
	down := invited("down", "--processors", "1").start()
	bank.sees(5)
	down.kill()
	bank.ok("bank", "grant", "home", "20")
	bank.ok("bank", "grant", "gone", "20")

	begun := filepath.Join(t.TempDir(), "begun")
	if err := os.WriteFile(begun, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, begun, 0o666)
	moves := strings.TrimSpace(home.ok("submit", "--policy", "cheapest", "-t", "1h", "--lease", "20s", "--",
		"sh", "-c", `echo "$GRIDNODE_SITE" >>`+begun+`; test "$GRIDNODE_SITE" != gone || exec sleep 1000`))
	home.comes("home's job runs at gone", func() bool {
		text, _ := os.ReadFile(begun)
		return string(text) == "gone\n"
	})
	owed := submitGated(t, gone, "--site", "work", "-t", "1h")
	before := bank.accounts()
	if !near(before[gone.id].Committed, 2) || before[home.id].Committed <= 0 {
		t.Fatalf("nothing is committed: %+v", before)
	}

	bank.ok("revoke", "gone")
	home.comes("home's job is done at work", func() bool {
		j := home.status(moves)
		return j.State == "done" && j.SiteName == "work"
	})
	if text, _ := os.ReadFile(begun); string(text) != "gone\nwork\n" {
		t.Errorf("it began at %q", text)
	}
	after := bank.settled()
	paid, cost := bank.redeemed(work.id, owed.id), home.status(moves).Cost
	if len(paid) != 1 || paid[0] <= 0 || paid[0] > 2 {
		t.Fatalf("work was paid %v for the job of an outcast", paid)
	}
	if !near(after[gone.id].Settled, 20-paid[0]) || !near(after[work.id].Settled, paid[0]+cost) || !near(after[home.id].Settled, 20-cost) {
		t.Errorf("%v and %v were paid: %+v", paid, cost, after)
	}
	knows := func(s *site) {
		t.Helper()
		s.comes(s.name()+" knows that it was revoked", func() bool {
			text, err := os.ReadFile(filepath.Join(s.home, "daemon.log"))
			return err == nil && strings.Contains(string(text), "this site was revoked")
		})
	}
	knows(gone)
	if r := gone.code(5, "renew"); !strings.Contains(r.stderr, "this site was revoked") {
		t.Errorf("a revoked site that asks for a new certificate is told %q", r.stderr)
	}
	bank.ok("revoke", "down")
	home.kill() // it does not hear of it by gossip either, but later
	down.start()
	knows(down)
	home.start()
	home.sees(3)
}
