package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridnode/node/store/journal"
)

func TestCommitAndRead(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	commit(t, s, "job/b", "2", "job/a", "1", "peer/x", "y")
	commit(t, s, "job/a", "", "job/c", "3", "job/b", "two", "job/b", "2b")
	for range 2 {
		keys, all := content(t, s, "job/")
		if !slices.Equal(keys, []string{"job/b", "job/c"}) || all["job/b"] != "2b" {
			t.Errorf("jobs are %v %v, want b with its last value and c, in order", keys, all)
		}
		if v, ok, err := s.Get("peer/x"); err != nil || !ok || string(v) != "y" {
			t.Errorf("peer/x is %q, %v, %v", v, ok, err)
		}
		if _, ok, err := s.Get("job/a"); err != nil || ok {
			t.Errorf("deleted record: %v, %v", ok, err)
		}
		closeTest(t, s)
		s = openTest(t, dir)
	}
	if got := s.Stats(); got.Records != 3 || got.Restored+got.Removed != 0 || got.Rebuilt || got.Sequence != 2 {
		t.Errorf("after two clean openings: %+v", got)
	}
	closeTest(t, s)
}

func TestAfter(t *testing.T) {
	s := openTest(t, t.TempDir())
	defer closeTest(t, s)
	commit(t, s, "a/1", "x", "a/2", "x", "a/2x", "x", "a/3", "x", "a/4", "x", "b/1", "x")
	commit(t, s, "a/3", "")
	for after, want := range map[string][]string{
		"": {"a/1", "a/2", "a/2x", "a/4"}, "a/": {"a/1", "a/2", "a/2x", "a/4"}, "a/2": {"a/2x", "a/4"},
		"a/3": {"a/4"}, "a/4": nil, "b": nil,
	} {
		records, failed := s.After("a/", after)
		var got []string
		for key := range records {
			got = append(got, key)
		}
		if err := failed(); err != nil || !slices.Equal(got, want) {
			t.Errorf("after %q there is %q (%v), want %q", after, got, err, want)
		}
	}
}

func TestEmptyBatchAndBounds(t *testing.T) {
	s := openTest(t, t.TempDir())
	defer closeTest(t, s)
	if err := s.Commit(&Batch{}); err != nil || s.Stats().Commits != 0 {
		t.Errorf("empty batch: %v, %+v", err, s.Stats())
	}
	for _, tt := range []struct {
		name, key string
		size      int
		ok        bool
	}{
		{"largest", strings.Repeat("k", KeyMax), ValueMax, true},
		{"empty value", "k", 0, true},
		{"long key", strings.Repeat("k", KeyMax+1), 1, false},
		{"large value", "k", ValueMax + 1, false},
		{"no key", "", 1, false},
		{"store's own key", string(keySequence), 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := s.Stats().Sequence
			var b Batch
			b.Set("other", []byte("x"))
			b.Set(tt.key, make([]byte, tt.size))
			if err := s.Commit(&b); (err == nil) != tt.ok {
				t.Fatalf("commit: %v", err)
			}
			if tt.ok {
				if v, ok, err := s.Get(tt.key); err != nil || !ok || len(v) != tt.size {
					t.Errorf("read back %d bytes, %v, %v", len(v), ok, err)
				}
			} else if s.Stats().Sequence != before {
				t.Error("part of a refused batch was written")
			}
			b.Reset()
			b.Set("next", []byte("y"))
			if err := s.Commit(&b); err != nil {
				t.Errorf("the next batch: %v", err)
			}
		})
	}
}

// A batch may be larger than a transaction of Badger's and than a record of the journal.
func TestHugeBatch(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	want := make(map[string]string)
	var b Batch
	for i := range 30_000 {
		key, value := fmt.Sprintf("job/%06d", i), strings.Repeat("x", 700)+strconv.Itoa(i)
		b.Set(key, []byte(value))
		want[key] = value
	}
	for i := range 100 { // order counts across the places where it is split
		key := fmt.Sprintf("job/%06d", i)
		b.Delete(key)
		delete(want, key)
	}
	if err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	expect(t, s, want)
	hurt := crash(t, dir)
	closeTest(t, s)
	for _, d := range []string{dir, hurt} {
		s = openTest(t, d)
		expect(t, s, want)
		closeTest(t, s)
	}
}

// New states replace the logs, so that neither disk nor recovery grow for ever.
func TestLogsAreReplacedByStates(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	value := strings.Repeat("v", 100<<10)
	want := make(map[string]string)
	for i := range 1000 { // 100 MB through a store of 1 MB
		key := fmt.Sprintf("job/%d", i%10)
		want[key] = value + strconv.Itoa(i)
		commit(t, s, key, want[key])
	}
	if n := s.Stats().States; n < 2 {
		t.Errorf("%d states written after 100 MB, want at least 2", n)
	}
	size := int64(0)
	hurt := crash(t, dir)
	closeTest(t, s)
	files, err := mirrorFiles(filepath.Join(dir, "mirror"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 3*stateEvery || len(files) > 3 {
		t.Errorf("mirror of a 1 MB store takes %d MB in %d files", size>>20, len(files))
	}
	for _, d := range []string{dir, hurt} {
		s = openTest(t, d)
		expect(t, s, want)
		closeTest(t, s)
	}
}

func TestSecondOpenNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	_, err := Open(dir, Options{Site: testSite, Federation: "test"})
	if !errors.Is(err, ErrLocked) || !strings.Contains(fmt.Sprint(err), dir) || !strings.Contains(fmt.Sprint(err), strconv.Itoa(os.Getpid())) {
		t.Errorf("second open: %v; want ErrLocked with directory and process", err)
	}
	closeTest(t, s)
	s = openTest(t, dir)
	closeTest(t, s)
}

func TestForeignStores(t *testing.T) {
	mine := Options{Site: testSite, Federation: "test", SpaceMin: -1, Check: checkCommand}
	dir := t.TempDir()
	s := openTest(t, dir)
	commit(t, s, "job/a", "1")
	closeTest(t, s)
	swap := func(t *testing.T, part string) string { // mine, with a part of another's
		other := filepath.Join(memoryDir(t), "other")
		o, err := Open(other, Options{Site: "12D3KooWother", Federation: "test", SpaceMin: -1})
		if err != nil {
			t.Fatal(err)
		}
		commit(t, o, "job/b", "2")
		closeTest(t, o)
		if part == "all" {
			return other
		}
		here := crash(t, dir)
		if err := os.RemoveAll(filepath.Join(here, part)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(other, part), filepath.Join(here, part)); err != nil {
			t.Fatal(err)
		}
		return here
	}
	for _, part := range []string{"all", "mirror", "badger-1"} {
		t.Run("other site's "+part, func(t *testing.T) {
			here := swap(t, part)
			if _, err := Open(here, mine); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "12D3KooWother") {
				t.Errorf("got %v, want ErrForeign that names the owner", err)
			}
		})
	}
	t.Run("other federation", func(t *testing.T) {
		if _, err := Open(dir, Options{Site: testSite, Federation: "elsewhere"}); !errors.Is(err, ErrForeign) {
			t.Errorf("got %v, want ErrForeign", err)
		}
	})
	t.Run("later format", func(t *testing.T) {
		here := t.TempDir()
		if err := os.Mkdir(filepath.Join(here, "mirror"), 0o700); err != nil {
			t.Fatal(err)
		}
		m := mirror{dir: filepath.Join(here, "mirror"), owner: identity{Format: format + 1, Site: testSite, Federation: "test"}.encode()}
		if err := m.rotate(); err != nil {
			t.Fatal(err)
		}
		m.close()
		if _, err := Open(here, mine); !errors.Is(err, ErrFormat) {
			t.Errorf("got %v, want ErrFormat", err)
		}
	})
	t.Run("later records", func(t *testing.T) {
		here, now := t.TempDir(), testOptions(t)
		for _, version := range []int{0, 1, 1, 2} { // up is an update
			now.Records = version
			s, err := Open(here, now)
			if err != nil {
				t.Fatal(err)
			}
			closeTest(t, s)
		}
		now.Records = 1
		if _, err := Open(here, now); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("got %v, want ErrFormat and which version", err)
		}
	})
	t.Run("another program's Badger", func(t *testing.T) {
		here := t.TempDir()
		e, err := openEngine(filepath.Join(here, "badger-1"), false, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := e.writer()
		if err := w.change(changeSet, []byte("k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
		if err := w.txn.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(here, mine); !errors.Is(err, ErrForeign) {
			t.Errorf("got %v, want ErrForeign", err)
		}
	})
	s = openTest(t, dir) // refusals changed nothing
	expect(t, s, map[string]string{"job/a": "1"})
	closeTest(t, s)
}

func TestFullDisk(t *testing.T) {
	room := int64(1 << 40)
	dir := t.TempDir()
	options := Options{Site: testSite, Ballast: 1 << 20}
	space := func(string) (int64, error) { return room, nil }
	s, err := open(dir, options, space)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, "a", "1")
	if err := s.Space(); err != nil {
		t.Errorf("with 1 TiB free: %v", err)
	}
	var full *SpaceError
	room = SpaceMin - 1
	if err := s.Space(); !errors.As(err, &full) || full.Free != room || full.Min != SpaceMin {
		t.Errorf("just below the watermark: %v", err)
	}
	commit(t, s, "b", "2") // what runs goes on
	room = spaceFloor - 1
	var b Batch
	b.Set("c", []byte("3"))
	if err := s.Commit(&b); !errors.As(err, &full) {
		t.Errorf("below the floor: %v, want a SpaceError", err)
	}
	room = spaceFloor
	if err := s.Commit(&b); err != nil {
		t.Errorf("with room again: %v", err)
	}
	closeTest(t, s)
	ballast := filepath.Join(dir, "ballast")
	if info, err := os.Stat(ballast); err != nil || info.Size() != 1<<20 {
		t.Errorf("ballast: %v, %v", info, err)
	}
	room = spaceFloor - 1
	if _, err := open(dir, options, space); !errors.As(err, &full) {
		t.Errorf("open on a full disk: %v, want a SpaceError", err)
	}
	if _, err := os.Stat(ballast); !os.IsNotExist(err) {
		t.Errorf("the ballast was not given up: %v", err)
	}
	room = 1 << 40
	if s, err = open(dir, options, space); err != nil {
		t.Fatal(err)
	}
	expect(t, s, map[string]string{"a": "1", "b": "2", "c": "3"})
	closeTest(t, s)
}

// A batch that was written, and not synced, is none.
func TestCommitIsSynced(t *testing.T) {
	s := openTest(t, t.TempDir())
	defer s.Close()
	commit(t, s, "k", "v")
	// What takes every byte and cannot be synced.
	null, err := journal.Create(os.DevNull, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.mirror.log.Close()
	s.mirror.log = null
	var b Batch
	b.Set("k", []byte("w"))
	if err := s.Commit(&b); err == nil {
		t.Error("a batch counts as durable that was not synced")
	}
}

// The disk's errors are final: nothing is tried again, as nobody knows what is there.
func TestFailedCommitIsFinal(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	commit(t, s, "a", "1")
	s.mirror.log.Close() // its file fails from here on
	var b Batch
	b.Set("b", []byte("2"))
	first := s.Commit(&b)
	if first == nil {
		t.Fatal("commit to a closed log succeeded")
	}
	if again := s.Commit(&b); again == nil || again.Error() != first.Error() {
		t.Errorf("then: %v, want the same error", again)
	}
	s.Close()
	s = openTest(t, dir)
	expect(t, s, map[string]string{"a": "1"})
	closeTest(t, s)
}

// kill -9 of a process that commits: every batch it acknowledged is there, and
// each is there as a whole.
func TestKilledWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 3 {
		cmd := exec.Command(os.Args[0], dir)
		cmd.Env = append(os.Environ(), "GRIDNODE_STORE_TEST=write")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := 0
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acknowledged, err = strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("writer says %q", lines.Text())
			}
			if acknowledged == 300*(round+1) {
				if err := cmd.Process.Kill(); err != nil { // SIGKILL; go on reading what it said before
					t.Fatal(err)
				}
			}
		}
		cmd.Wait() // it was killed
		if acknowledged < 300*(round+1) {
			t.Fatalf("writer ended after %d batches", acknowledged)
		}
		s := openTest(t, dir)
		_, got := content(t, s, "")
		last, err := strconv.Atoi(got["last"])
		if err != nil || last < acknowledged || last > acknowledged+1 {
			t.Errorf("acknowledged %d, found %q", acknowledged, got["last"])
		}
		want := map[string]string{"last": strconv.Itoa(last)}
		for n := last; n > last-3; n-- {
			for i := range 3 {
				want[fmt.Sprintf("job/%d/%d", n, i)] = strconv.Itoa(n)
			}
		}
		expect(t, s, want)
		var b Batch // the next round begins at 1
		for key := range want {
			b.Delete(key)
		}
		if err := s.Commit(&b); err != nil {
			t.Fatal(err)
		}
		closeTest(t, s)
	}
}
