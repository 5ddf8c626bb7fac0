package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOlderCopy: a store does not go on from less than it had, unless whoever runs it
// says so by removing the anchor.
func TestOlderCopy(t *testing.T) {
	home := memoryDir(t)
	dir, older := filepath.Join(home, "store"), filepath.Join(home, "older")
	s := openTest(t, dir)
	commit(t, s, "job/1", "one")
	closeTest(t, s)
	copyFiles(t, dir, older)
	s = openTest(t, dir)
	commit(t, s, "job/2", "two")
	closeTest(t, s)
	replace := func(with string) {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if with != "" {
			copyFiles(t, with, dir)
		}
	}
	newest := filepath.Join(home, "newest")
	copyFiles(t, dir, newest)
	for _, with := range []string{older, ""} {
		replace(with)
		for range 2 { // being refused changes nothing
			if s, err := Open(dir, testOptions(t)); !errors.Is(err, ErrBehind) || !strings.Contains(err.Error(), dir+".anchor") {
				t.Errorf("with %q in place of it: %v, %v; want ErrBehind and what to do", with, s, err)
			}
		}
	}
	replace(newest)
	s = openTest(t, dir)
	expect(t, s, map[string]string{"job/1": "one", "job/2": "two"})
	closeTest(t, s)

	replace(older)
	if err := os.Remove(dir + ".anchor"); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir)
	expect(t, s, map[string]string{"job/1": "one"})
	closeTest(t, s)
}

// TestAnchorFollows: the anchor is never ahead of the store, and follows one that is
// never closed.
func TestAnchorFollows(t *testing.T) {
	dir, older := filepath.Join(memoryDir(t), "store"), ""
	s := openTest(t, dir)
	for i := range 3 * anchorEvery {
		if i == 2*anchorEvery-5 {
			older = crash(t, dir)
		}
		commit(t, s, fmt.Sprint("job/", i), "x")
	}
	if n := s.anchored; n <= 2*anchorEvery || n > 3*anchorEvery {
		t.Errorf("after %d batches the anchor is at %d", 3*anchorEvery, n)
	}
	killed := crash(t, dir)
	text, err := os.ReadFile(dir + ".anchor")
	if err != nil {
		t.Fatal(err)
	}
	for _, copied := range []string{killed, older} {
		if err := os.WriteFile(copied+".anchor", text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closeTest(t, openTest(t, killed))
	if _, err := Open(older, testOptions(t)); !errors.Is(err, ErrBehind) {
		t.Errorf("a copy from before the anchor: %v", err)
	}
	closeTest(t, s)
}

// TestWipedSoon: that a directory is gone is noticed after the first batch.
func TestWipedSoon(t *testing.T) {
	dir := filepath.Join(memoryDir(t), "store")
	s := openTest(t, dir)
	commit(t, s, "job/1", "one")
	text, err := os.ReadFile(dir + ".anchor")
	if err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir+".anchor", text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, testOptions(t)); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v", err)
	}
}

// TestAnchorOfNoUse: what is no anchor of this store does not keep it from opening.
func TestAnchorOfNoUse(t *testing.T) {
	for name, text := range map[string]string{
		"damaged":         `{"site":`,
		"another site's":  `{"format":1,"site":"12D3KooWother","federation":"test","batch":1000}`,
		"another network": `{"format":1,"site":"` + testSite + `","federation":"other","batch":1000}`,
	} {
		dir := filepath.Join(memoryDir(t), "store")
		if err := os.WriteFile(dir+".anchor", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, testOptions(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		commit(t, s, "job/1", "one")
		closeTest(t, s)
		if text, err := os.ReadFile(dir + ".anchor"); err != nil || !strings.Contains(string(text), `"batch":1}`) {
			t.Errorf("%s: it became %s, %v", name, text, err)
		}
	}
}

// TestAnchorIsSynced: an anchor whose content may not be on disk takes the place of none.
func TestAnchorIsSynced(t *testing.T) {
	dir := filepath.Join(memoryDir(t), "store")
	s := openTest(t, dir)
	defer closeTest(t, s)
	commit(t, s, "k", "v")
	before, err := os.ReadFile(s.anchorPath())
	if err == nil {
		err = os.Symlink(os.DevNull, s.anchorPath()+".tmp") // takes every byte and cannot be synced
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.writeAnchor(); err == nil {
		t.Error("an anchor counts as written that was not synced")
	}
	if after, err := os.ReadFile(s.anchorPath()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the anchor is %q, %v; was %q", after, err, before)
	}
}
