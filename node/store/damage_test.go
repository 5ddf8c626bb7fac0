package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"pgregory.net/rapid"

	"gridnode/node/store/journal"
)

// damagedStore is what a killed process left, with tables and a memory table in
// Badger, a state and a log in the mirror, and what must be read from it.
func damagedStore(t testing.TB) (dir string, want map[string]string) {
	t.Helper()
	dir = filepath.Join(memoryDir(t), "store")
	want = make(map[string]string)
	put := func(s *Store, from, to, size int) {
		for i := from; i < to; i++ {
			key := fmt.Sprintf("job/%04d", i)
			want[key] = fmt.Sprintf("%d %s", i, strings.Repeat("v", size))
			commit(t, s, key, want[key])
		}
	}
	s := openTest(t, dir)
	put(s, 0, 40, 3000)
	s.mirror.logged = stateEvery + 1 // as if much more had been written
	put(s, 40, 60, 3000)
	closeTest(t, s) // flushes the memory table
	if s.stats.States != 1 {
		t.Fatalf("%d state files, want 1", s.stats.States)
	}
	s = openTest(t, dir)
	put(s, 50, 70, 2000)
	commit(t, s, "job/0003", "")
	delete(want, "job/0003")
	hurt := crash(t, dir)
	closeTest(t, s)
	return hurt, want
}

// pick returns the files matching pattern, at least one, without those that hold
// nothing anyway.
func pick(t testing.TB, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	return files
}

// Whatever is damaged in one copy, every acknowledged record comes back, and no
// deleted one. Nothing panics.
func TestOneCopyDamaged(t *testing.T) {
	source, want := damagedStore(t)
	type harm struct {
		name string
		do   func(content []byte) []byte
	}
	flip := func(permille int) harm {
		return harm{fmt.Sprintf("bit flipped at %d/1000", permille), func(c []byte) []byte {
			end := len(bytes.TrimRight(c, "\x00")) // a flipped zero behind the content harms nobody
			c[end*permille/1000] ^= 0x10
			return c
		}}
	}
	harms := []harm{
		flip(0), flip(20), flip(500), flip(999),
		{"cut to half", func(c []byte) []byte { return c[:len(bytes.TrimRight(c, "\x00"))/2] }},
		{"cut by one byte", func(c []byte) []byte { return c[:max(len(bytes.TrimRight(c, "\x00"))-1, 0)] }},
		{"emptied", func(c []byte) []byte { return nil }},
		{"zeros", func(c []byte) []byte { return make([]byte, len(c)) }},
		{"garbage", func(c []byte) []byte { return bytes.Repeat([]byte{0xde, 0xad, 0xbe, 0xef}, len(c)/4+1) }},
		{"removed", nil},
	}
	for _, pattern := range []string{
		"badger-1/MANIFEST", "badger-1/KEYREGISTRY", "badger-1/DISCARD", "badger-1/*.sst", "badger-1/*.mem", "badger-1/*.vlog",
		"mirror/*.state", "mirror/*.log",
	} {
		for _, h := range harms {
			t.Run(pattern+" "+h.name, func(t *testing.T) {
				t.Parallel()
				dir := crash(t, source)
				files := pick(t, dir, pattern)
				for _, file := range files {
					if h.do == nil {
						if err := os.Remove(file); err != nil {
							t.Fatal(err)
						}
						continue
					}
					c, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if len(bytes.TrimRight(c, "\x00")) == 0 {
						continue
					}
					if err := os.WriteFile(file, h.do(c), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 { // and it stays repaired
					s, err := Open(dir, checkedOptions(t))
					if err != nil {
						t.Fatal(err)
					}
					expect(t, s, want)
					closeTest(t, s)
				}
			})
		}
	}
}

// A power cut keeps what was synced and any part of the rest: here none of Badger's log but its head.
func TestPowerCutWithoutBadgersLog(t *testing.T) {
	dir, want := damagedStore(t)
	for _, file := range pick(t, dir, "badger-1/*.mem") {
		if err := os.Truncate(file, 20); err != nil {
			t.Fatal(err)
		}
	}
	s := openTest(t, dir)
	defer closeTest(t, s)
	expect(t, s, want)
	if got := s.Stats(); got.Restored == 0 || got.Removed == 0 || got.Rebuilt {
		t.Errorf("%+v, want records restored and one removed, without a new Badger", got)
	}
}

// Badger empties a memory table before it removes it; killed in between, it would
// not open again.
func TestEmptyMemoryTable(t *testing.T) {
	dir, want := damagedStore(t)
	if err := os.WriteFile(filepath.Join(dir, "badger-1", "00000.mem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, dir)
	defer closeTest(t, s)
	expect(t, s, want)
	if got := s.Stats(); got.Rebuilt || got.Restored > 0 {
		t.Errorf("%+v, want Badger as it was", got)
	}
}

// A flipped bit in Badger's log drops all that follows. Later memory tables and the
// count of batches may be whole: the comparison, not the count, finds what is missing.
func TestHoleInBadger(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openTest(t, dir)
	commit(t, s, "a", "1", "b", "2")
	commit(t, s, "b", "", "c", "3")
	w := s.engine.writer()
	for _, err := range []error{
		w.change(changeDelete, []byte("a"), nil), w.change(changeSet, []byte("b"), []byte("2")), w.change(changeSet, []byte("c"), []byte("0")),
		w.finish(2),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	closeTest(t, s)
	s = openTest(t, dir)
	defer closeTest(t, s)
	expect(t, s, map[string]string{"a": "1", "c": "3"})
	if got := s.Stats(); got.Restored != 2 || got.Removed != 1 {
		t.Errorf("%+v, want a and c restored and b removed", got)
	}
}

// When both copies are damaged nothing is guessed and nothing changed.
func TestBothCopiesDamaged(t *testing.T) {
	source, _ := damagedStore(t)
	garbage := func(t *testing.T, dir, pattern string) {
		for _, file := range pick(t, dir, pattern) {
			if err := os.WriteFile(file, bytes.Repeat([]byte("garbage "), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct{ name, badger, mirror string }{
		{"manifest and state", "badger-1/MANIFEST", "mirror/*.state"},
		{"tables and log", "badger-1/*.sst", "mirror/*.log"},
		{"memory table and log", "badger-1/*.mem", "mirror/*.log"},
		{"all of both", "badger-1/*", "mirror/*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := crash(t, source)
			garbage(t, dir, tt.badger)
			garbage(t, dir, tt.mirror)
			_, err := Open(dir, checkedOptions(t))
			if err == nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want ErrDamaged naming the directory", err)
			}
		})
	}
	t.Run("bit in the middle of the log, Badger's log gone", func(t *testing.T) {
		dir := crash(t, source)
		for _, file := range pick(t, dir, "badger-1/*.mem") {
			if err := os.Truncate(file, 20); err != nil {
				t.Fatal(err)
			}
		}
		logs := pick(t, dir, "mirror/*.log")
		c, err := os.ReadFile(logs[len(logs)-1])
		if err != nil {
			t.Fatal(err)
		}
		c[len(bytes.TrimRight(c, "\x00"))/2] ^= 1
		if err := os.WriteFile(logs[len(logs)-1], c, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, checkedOptions(t)); !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged: batches behind the damage are nowhere", err)
		}
	})
	t.Run("mirror missing, manifest damaged", func(t *testing.T) {
		dir := crash(t, source)
		garbage(t, dir, "badger-1/MANIFEST")
		if err := os.RemoveAll(filepath.Join(dir, "mirror")); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, checkedOptions(t)); !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
}

// A missing copy is made anew from the other.
func TestMissingCopy(t *testing.T) {
	source, want := damagedStore(t)
	for _, part := range []string{"badger-1", "mirror"} {
		dir := crash(t, source)
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			t.Fatal(err)
		}
		s := openTest(t, dir)
		expect(t, s, want)
		commit(t, s, "job/new", "n")
		if part == "mirror" && !s.Stats().Mirrored {
			t.Errorf("%+v, want the mirror made anew", s.Stats())
		}
		again := crash(t, dir)
		closeTest(t, s)
		s = openTest(t, again)
		if v, ok, err := s.Get("job/new"); err != nil || !ok || string(v) != "n" {
			t.Errorf("after %s was missing, a new record is %q, %v, %v", part, v, ok, err)
		}
		closeTest(t, s)
	}
}

// Any history of commits, crashes and losses in one copy, against a map.
func TestAgainstAMap(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set("40") // each opens three stores
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(memoryDir(t), "store")
		s := openTest(t, dir)
		want := make(map[string]string)
		for range rapid.IntRange(1, 2).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 12).Draw(rt, "commits") {
				var b Batch
				for range rapid.IntRange(1, 4).Draw(rt, "changes") {
					key := rapid.StringMatching("[a-e]").Draw(rt, "key")
					if rapid.Bool().Draw(rt, "delete") {
						b.Delete(key)
						delete(want, key)
						continue
					}
					want[key] = rapid.StringN(1, 20, 60).Draw(rt, "value")
					b.Set(key, []byte(want[key]))
				}
				if err := s.Commit(&b); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.Bool().Draw(rt, "state") {
				s.mirror.logged = stateEvery + 1 // as if much had been written
			}
			left := dir
			if rapid.Bool().Draw(rt, "crash") {
				left = crash(t, dir)
			}
			closeTest(t, s)
			dir = left
			switch rapid.SampledFrom([]string{"nothing", "badger", "mirror", "mem"}).Draw(rt, "lost") {
			case "badger":
				os.RemoveAll(filepath.Join(dir, "badger-1"))
			case "mirror":
				os.RemoveAll(filepath.Join(dir, "mirror"))
			case "mem":
				files, _ := filepath.Glob(filepath.Join(dir, "badger-1/*.mem"))
				for _, f := range files {
					os.Truncate(f, 60)
				}
			}
			s = openTest(t, dir)
			expect(t, s, want)
			if t.Failed() {
				rt.FailNow()
			}
		}
		closeTest(t, s)
	})
}

// TestGapInTheLog: batches behind one that is missing are not what they were meant to be.
func TestGapInTheLog(t *testing.T) {
	s := openTest(t, t.TempDir())
	commit(t, s, "a", "1")
	s.mirror.seq++ // as if a batch had not been written
	commit(t, s, "a", "3")
	dir, owner := s.mirror.dir, s.owner
	closeTest(t, s)
	held, err := load(dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	if held.damage == nil || held.seq != 1 {
		t.Errorf("damage %v behind batch %d, want some behind batch 1", held.damage, held.seq)
	}
}

// TestTablesOfFormerVersions: tables of memory that a former version left in a crash were
// larger, whole or cut to what they hold.
func TestTablesOfFormerVersions(t *testing.T) {
	former, dir := t.TempDir(), filepath.Join(t.TempDir(), "badger")
	db, err := badger.Open(engineOptions(former, memTableSizeMost, false, logger(t.Logf)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const records = 15 // more than fit a table of today's
	value := bytes.Repeat([]byte("v"), ValueMax)
	for i := range records {
		if err := db.Update(func(txn *badger.Txn) error { return txn.Set([]byte{'a' + byte(i)}, value) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, cut := range []bool{false, true} {
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(former))); err != nil { // as if it crashed now
			t.Fatal(err)
		}
		tables, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
		if len(tables) != 1 {
			t.Fatalf("there are tables %q, want one", tables)
		}
		if cut {
			if err := os.Truncate(tables[0], records*(ValueMax+200)); err != nil {
				t.Fatal(err)
			}
		}
		e, err := openEngine(dir, false, logger(t.Logf))
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			if got, ok, err := e.get([]byte{'a' + byte(i)}); err != nil || !ok || !bytes.Equal(got, value) {
				t.Errorf("cut %v: record %d: %v %v, %d bytes", cut, i, ok, err, len(got))
			}
		}
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
		if size, err := tidyTables(dir); size != memTableSize || err != nil {
			t.Errorf("cut %v: after an orderly end tables are of %d bytes (%v), want %d", cut, size, err, memTableSize)
		}
	}
}

// TestStateIsWhole: a state of which a record could not be read, or that is not on disk, is none.
func TestStateIsWhole(t *testing.T) {
	m := mirror{dir: t.TempDir(), owner: identity{Format: 1, Site: "a"}.encode()}
	one := func(yield func(key, value []byte) bool) { yield([]byte("k"), []byte("v")) }
	whole, torn := func() error { return nil }, func() error { return errors.New("a block is damaged") }
	if err := m.rotate(); err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if _, err := m.writeState(7, one, torn); err == nil {
		t.Error("a state counts as written of which a record could not be read")
	}
	if files, err := mirrorFiles(m.dir); err != nil || len(files) != 1 || files[0].extension != "log" {
		t.Errorf("there are %+v then (%v), want the log as it was", files, err)
	}
	null, err := journal.Create(os.DevNull, 0) // which takes every byte and cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := m.fillState(null, 7, one, whole); err == nil {
		t.Error("a state counts as written that was not synced")
	}
}

// TestStateKeepsItsLog: a state takes away what it has made superfluous, and not the log behind it.
func TestStateKeepsItsLog(t *testing.T) {
	m := mirror{dir: t.TempDir(), owner: identity{Format: 1, Site: "a"}.encode()}
	for m.seq = range 3 { // logs of 0, 1 and 2
		if err := m.rotate(); err != nil {
			t.Fatal(err)
		}
	}
	defer m.close()
	none := func(func(key, value []byte) bool) {}
	if _, err := m.writeState(m.seq, none, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	left, err := mirrorFiles(m.dir)
	if err != nil || len(left) != 2 || left[0].path != m.path(m.seq, "state") || left[1].path != m.path(m.seq, "log") {
		t.Errorf("there are %+v (%v), want the state and the log of batch %d", left, err, m.seq)
	}
}

// TestStateHasItsName: a state or a log whose name may not be on disk is none.
func TestStateHasItsName(t *testing.T) {
	m := mirror{dir: ".", owner: identity{Format: 1, Site: "a"}.encode()}
	t.Chdir(t.TempDir())
	if err := os.Chmod(m.dir, 0o333); err != nil { // names can be given, and not be read or synced
		t.Fatal(err)
	}
	defer os.Chmod(m.dir, 0o700) // or it could not be cleared away
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, _ := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0) // for root may read it all the same
	defer syscall.RawSyscall(syscall.SYS_SETFSUID, before, 0, 0)
	if d, err := os.Open(m.dir); err == nil {
		d.Close()
		t.Skip("the test may read whatever it likes")
	}
	none := func(func(key, value []byte) bool) {}
	if size, err := m.writeState(7, none, func() error { return nil }); err == nil || size != 0 {
		t.Errorf("a state of %d bytes counts as written (%v) though its name is not on disk", size, err)
	}
	if _, err := os.Stat(m.path(7, "state")); err != nil {
		t.Errorf("it has not got that far: %v", err)
	}
	m.seq = 8
	if err := m.rotate(); err == nil || m.log != nil {
		t.Errorf("a log is gone on with (%v) though its name is not on disk", err)
	}
	if _, err := os.Stat(m.path(8, "log")); err != nil {
		t.Errorf("it has not got that far: %v", err)
	}
}

// TestResumedLogIsSynced: a log goes on when what it holds is on disk.
func TestResumedLogIsSynced(t *testing.T) {
	const cannot = "/proc/self/comm" // it can be opened and cut, and not be synced
	var m mirror
	if err := m.resume(&loaded{files: []mirrorFile{{path: cannot, extension: "log"}}}); err == nil || m.log == nil {
		t.Errorf("a log goes on that was not synced: %v", err)
	}
	m.close()
}

// TestPartsAreNumbered: each part of a huge batch has a number of its own.
func TestPartsAreNumbered(t *testing.T) {
	id := identity{Format: 1, Site: "a"}
	m := mirror{dir: t.TempDir(), owner: id.encode()}
	if err := m.rotate(); err != nil {
		t.Fatal(err)
	}
	defer m.close()
	var b Batch
	for range batchMax/ValueMax + 1 {
		b.Set("k", make([]byte, ValueMax))
	}
	if len(b.parts) != 2 {
		t.Fatalf("the batch is of %d parts, want 2", len(b.parts))
	}
	if err := m.append(&b); err != nil {
		t.Fatal(err)
	}
	if held, err := load(m.dir, id); err != nil || held.damage != nil || held.seq != 2 || m.seq != 2 {
		t.Errorf("the log ends with batch %d (damage %v, %v), the mirror with %d, want 2", held.seq, held.damage, err, m.seq)
	}
	b.Reset() // nothing of it is in the next
	b.Set("next", []byte("n"))
	if err := m.append(&b); err != nil {
		t.Fatal(err)
	}
	if held, err := load(m.dir, id); err != nil || held.damage != nil || held.seq != 3 || held.records["k"].offset >= held.records["next"].offset {
		t.Errorf("after a small batch the log ends with batch %d (damage %v, %v), want 3", held.seq, held.damage, err)
	}
}

// TestManyAreTakenBack: whatever Badger has and the mirror has not goes, however much it is.
func TestManyAreTakenBack(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	commit(t, s, "a", "1", "z", "2")
	var b Batch
	const extra = 500 // more than an iterator of Badger has in hand
	for i := range extra {
		b.Set(fmt.Sprintf("k/%03d", i), []byte("x"))
	}
	if err := s.engine.apply(b.parts, s.mirror.seq); err != nil { // past the mirror
		t.Fatal(err)
	}
	closeTest(t, s)
	s = openTest(t, dir)
	defer closeTest(t, s)
	expect(t, s, map[string]string{"a": "1", "z": "2"})
	if n := s.Stats().Removed; n != extra {
		t.Errorf("%d records were removed, want %d", n, extra)
	}
}

// TestLogOfNoUse: of a log that is damaged from its beginning nobody knows how many batches it held. Badger that
// ends where it begins may lack all of them.
func TestLogOfNoUse(t *testing.T) {
	dir := memoryDir(t)
	s := openTest(t, dir)
	commit(t, s, "a", "1", "b", "2")
	closeTest(t, s)
	if err := os.RemoveAll(filepath.Join(dir, "mirror")); err != nil {
		t.Fatal(err)
	}
	closeTest(t, openTest(t, dir)) // makes it anew: a state, and a log behind it
	before := crash(t, dir)
	s = openTest(t, dir)
	commit(t, s, "c", "3")
	hurt := crash(t, dir)
	closeTest(t, s)
	badger := filepath.Join(hurt, "badger-1")
	if err := os.RemoveAll(badger); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(before, "badger-1"), badger); err != nil {
		t.Fatal(err)
	}
	for _, log := range pick(t, hurt, "mirror/*.log") {
		if err := os.WriteFile(log, bytes.Repeat([]byte("garbage "), 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(hurt, testOptions(t)); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged: the last batch is nowhere", err)
	}
}

// TestLogBehindNothing: one that begins behind batches that are nowhere is no whole mirror, also if it holds none itself.
func TestLogBehindNothing(t *testing.T) {
	id := identity{Format: 1, Site: "a"}
	m := mirror{dir: t.TempDir(), owner: id.encode(), seq: 5}
	if err := m.rotate(); err != nil {
		t.Fatal(err)
	}
	m.close()
	if held, err := load(m.dir, id); err != nil || held.damage == nil || held.newest != 5 {
		t.Errorf("it holds up to batch %d of %d, damage %v, %v", held.seq, held.newest, held.damage, err)
	}
}

// TestStateIsTriedAgain: one that could not be written is not the last.
func TestStateIsTriedAgain(t *testing.T) {
	s := openTest(t, memoryDir(t))
	s.writing = make(chan stateWritten, 1)
	s.writing <- stateWritten{err: errors.New("the disk")}
	commit(t, s, "k", "v") // while none is due
	if s.writing != nil {
		t.Fatal("a state that could not be written is waited for")
	}
	s.mirror.logged = stateEvery + 1
	commit(t, s, "k", "w")
	if s.writing == nil {
		t.Fatal("no state is being written")
	}
	for s.writing != nil {
		if s.stateDone(<-s.writing); s.writing != nil {
			t.Fatal("the next state waits for one that was written")
		}
	}
	if n := s.Stats().States; n != 1 {
		t.Errorf("%d states were written", n)
	}
	closeTest(t, s)
}
