package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A home that is brought back whole from an older copy is recognised, as another site
// remembers how far it was: before it takes anything up, or soon after where the copy does
// not know whom to ask. It goes on when its owner says so, and is the newest one then.
func TestOlderHome(t *testing.T) {
	sites := federation(t, []string{"alpha", "beta"}, nil)
	alpha := sites[0]
	dir := t.TempDir()
	older, newer := filepath.Join(dir, "older"), filepath.Join(dir, "newer")
	duplicate := func(from, to string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, text)
		}
	}
	alpha.ok("stop")
	duplicate(alpha.home, older)
	alpha.start()
	after := alpha.code(0, "submit", "-W", "--", "true").job()
	alpha.sees(2)
	alpha.ok("stop")
	duplicate(alpha.home, newer)

	duplicate(older, alpha.home)
	for range 2 {
		if r := alpha.code(1, "start"); !strings.Contains(r.stderr, "older copy") || !strings.Contains(r.stderr, sites[1].id) || !strings.Contains(r.stderr, "restore --this-copy") {
			t.Errorf("with an older copy of its home: %s", r)
		}
	}
	if err := os.Remove(filepath.Join(alpha.home, "witness.json")); err != nil {
		t.Fatal(err)
	}
	alpha.start("--join", sites[1].addr)
	if err := alpha.daemon.Wait(); err == nil || !strings.Contains(alpha.logTail(), "older copy") {
		t.Errorf("it ended with %v%s", err, alpha.logTail())
	}
	alpha.daemon = nil

	duplicate(older, alpha.home)
	alpha.ok("restore", "--this-copy")
	alpha.start()
	alpha.code(4, "status", after)
	alpha.ok("submit", "-W", "--", "true")
	alpha.sees(2)
	alpha.ok("stop")
	duplicate(newer, alpha.home)
	if r := alpha.code(1, "start"); !strings.Contains(r.stderr, "older copy") {
		t.Errorf("with what was given up: %s", r)
	}
	duplicate(alpha.home, newer)
	sites[1].ok("stop")
	duplicate(newer, alpha.home)
	alpha.start() // alone it can
}
