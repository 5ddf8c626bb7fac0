package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestSnapshot: a snapshot has what was committed before it and nothing of what follows, and
// a store made of it goes on behind all that is lost.
func TestSnapshot(t *testing.T) {
	home := memoryDir(t)
	dir, file := filepath.Join(home, "store"), filepath.Join(home, "file")
	s := openTest(t, dir)
	commit(t, s, "job/1", "one", "job/2", "two")
	snapshot := s.Snapshot()
	if snapshot.Batch != s.Sequence() {
		t.Errorf("the snapshot is of batch %d, the last was %d", snapshot.Batch, s.Sequence())
	}
	commit(t, s, "job/1", "", "job/3", "three")
	for i := range 300 {
		commit(t, s, fmt.Sprint("later/", i), "x")
	}
	if err := snapshot.Write(file); err != nil {
		t.Fatal(err)
	}
	lost := s.Stats().Sequence
	closeTest(t, s)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	options := testOptions(t)
	if err := Restore(dir, file, snapshot.Batch, options); err == nil {
		t.Error("restored over a store")
	}
	other := options
	other.Site = "somebody else"
	if err := Restore(filepath.Join(home, "theirs"), file, snapshot.Batch, other); !errors.Is(err, ErrForeign) {
		t.Errorf("restored for another site: %v", err)
	}
	spoilt := append([]byte(nil), text...)
	spoilt[len(spoilt)/2] ^= 1
	for name, content := range map[string][]byte{"spoilt": spoilt, "short": text[:len(text)-5]} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Restore(filepath.Join(home, name), file, snapshot.Batch, options); err == nil {
			t.Errorf("restored of a file that is %s", name)
		}
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(home, "again")
	if err := Restore(again, file, snapshot.Batch, options); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, again)
	expect(t, s, map[string]string{"job/1": "one", "job/2": "two"})
	if got := s.Stats().Sequence; got <= lost || got != snapshot.Batch+Leap {
		t.Errorf("the store goes on from batch %d, and %d is lost", got, lost)
	}
	commit(t, s, "job/4", "four")
	closeTest(t, s)
	s = openTest(t, again)
	expect(t, s, map[string]string{"job/1": "one", "job/2": "two", "job/4": "four"})
	closeTest(t, s)
}

// TestAccept: an older copy of a store is taken when its owner says so, and the newer one is
// the older one then.
func TestAccept(t *testing.T) {
	home := memoryDir(t)
	dir, older, newer := filepath.Join(home, "store"), filepath.Join(home, "older"), filepath.Join(home, "newer")
	s := openTest(t, dir)
	commit(t, s, "job/1", "one")
	closeTest(t, s)
	copyFiles(t, dir, older)
	s = openTest(t, dir)
	commit(t, s, "job/2", "two")
	closeTest(t, s)
	copyFiles(t, dir, newer)
	replace := func(with string) {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		copyFiles(t, with, dir)
	}
	replace(older)
	if err := Accept(dir, testOptions(t)); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir)
	expect(t, s, map[string]string{"job/1": "one"})
	closeTest(t, s)
	replace(newer)
	if _, err := Open(dir, testOptions(t)); !errors.Is(err, ErrBehind) {
		t.Errorf("what was given up: %v, want it to be behind", err)
	}
}

// TestLeapBeginsALog: what is committed behind a leap is behind it in the mirror, too.
func TestLeapBeginsALog(t *testing.T) {
	s := openTest(t, memoryDir(t))
	commit(t, s, "a", "1")
	to := s.mirror.seq + Leap
	if err := s.leap(); err != nil {
		t.Fatal(err)
	}
	commit(t, s, "a", "2")
	dir, owner := s.mirror.dir, s.owner
	closeTest(t, s)
	held, err := load(dir, owner)
	if err != nil || held.damage != nil || held.base != to || held.seq != to+1 {
		t.Errorf("the mirror has batch %d behind %d (damage %v, %v), want %d behind %d", held.seq, held.base, held.damage, err, to+1, to)
	}
}
