package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A backup of a running site makes a home that knows its jobs and is the same site, and that
// has nothing of what came later; without keys only who has the key can restore it.
func TestBackup(t *testing.T) {
	alpha := newSite(t, "alpha").start()
	before := alpha.code(0, "submit", "-W", "--", "true").job()
	dir := t.TempDir()
	file, bare := filepath.Join(dir, "whole"), filepath.Join(dir, "bare")
	alpha.ok("backup", file)
	alpha.code(2, "backup", file) // it is there
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v; want it closed to others", info, err)
	}
	after := alpha.code(0, "submit", "-W", "--", "true").job()
	if err := os.WriteFile(bare, []byte(alpha.ok("backup", "--no-keys", "-")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := alpha.code(1, "restore", file); !strings.Contains(r.stderr, "has a store already") {
		t.Errorf("restored over a site: %s", r)
	}
	alpha.ok("stop")
	lost := filepath.Join(dir, "lost")
	if err := os.Rename(alpha.home, lost); err != nil {
		t.Fatal(err)
	}
	newHome := func() {
		t.Helper()
		if err := os.RemoveAll(alpha.home); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(alpha.home, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	newHome()

	alpha.ok("restore", file)
	alpha.start()
	if j := alpha.status(before); j.State != "done" {
		t.Errorf("a job from before the backup: %+v", j)
	}
	alpha.code(4, "status", after)
	alpha.ok("submit", "-W", "--", "true")
	alpha.kill()

	newHome()
	if r := alpha.code(1, "restore", bare); !strings.Contains(r.stderr, "put the site's key") {
		t.Errorf("restored without a key: %s", r)
	}
	if left, err := os.ReadDir(alpha.home); err != nil || len(left) > 0 {
		t.Errorf("a failed restore leaves %v, %v", left, err)
	}
	copyFile(t, filepath.Join(lost, "key"), filepath.Join(alpha.home, "key"))
	alpha.ok("restore", bare)
	alpha.start()
	if j := alpha.status(after); j.State != "done" {
		t.Errorf("a job from before the second backup: %+v", j)
	}
	alpha.ok("stop")
	if err := os.WriteFile(file, []byte("no backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := alpha.code(1, "--home", filepath.Join(dir, "none"), "restore", file); !strings.Contains(r.stderr, "not a backup") {
		t.Errorf("restored of no backup: %s", r)
	}
}

// copyFile copies what only its owner may read.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
