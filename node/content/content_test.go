package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// noise returns bytes that have no pattern.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = source.Read(b)
	return b
}

func write(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o640); err != nil {
		t.Fatal(err)
	}
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

var all = Limits{EntriesMax, SizeMax}

// built returns the tree of a directory, and where its chunks are.
func built(t testing.TB, dir string, w *Wanted) (*Tree, *Index) {
	t.Helper()
	sources, _, _, err := Scan(t.Context(), openRoot(t, dir), w)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Build(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return tree, NewIndex(tree, sources)
}

func newStore(t testing.TB, most int64) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir(), most, 0, func() (map[Digest]bool, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestThereAndBack: a tree that is encoded, kept and laid out elsewhere is what it was.
func TestThereAndBack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, from, "a", nil)
	write(t, from, "b/c", []byte("small"))
	write(t, from, "b/d", noise(1, 3<<20))
	write(t, from, "b-", noise(2, 700<<10))
	write(t, from, "not \xff utf-8", []byte("x"))
	write(t, from, "zeros", make([]byte, 5<<20))
	if err := errors.Join(os.Mkdir(filepath.Join(from, "empty"), 0o755), os.Symlink("../b-", filepath.Join(from, "b/link")), os.Chmod(filepath.Join(from, "b-"), 0o755)); err != nil {
		t.Fatal(err)
	}
	tree, index := built(t, from, &Wanted{Strict: true, Limits: all})
	for _, e := range tree.Entries {
		if e.Kind == Link && e.Mode != 0 {
			t.Errorf("link %s has mode %o: what it is on one system it is not on another", e.Name, e.Mode)
		}
	}
	b, _, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = DecodeTree(b); err != nil {
		t.Fatal(err)
	}
	store := newStore(t, 1<<30)
	for _, c := range tree.Chunks {
		b, err := index.Chunk(c.Digest, nil)
		if err == nil {
			_, err = store.Put(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(c Chunk) ([]byte, error) { return store.Get(c.Digest) }
	if err := Lay(t.Context(), tree, openRoot(t, to), &Laying{Chunk: get}); err != nil {
		t.Fatal(err)
	}
	again, _ := built(t, to, &Wanted{Strict: true, Limits: all})
	if _, x, _ := tree.Encode(); true {
		if _, y, _ := again.Encode(); x != y {
			t.Errorf("%+v\nis not\n%+v", again.Entries, tree.Entries)
		}
	}
	var info syscall.Stat_t
	if err := syscall.Stat(filepath.Join(to, "zeros"), &info); err != nil || info.Size != 5<<20 {
		t.Errorf("%d bytes, %v", info.Size, err)
	} else if info.Blocks*512 > 1<<20 {
		t.Errorf("zeros take %d bytes of the disk", info.Blocks*512)
	}
	if left, _, _, err := Scan(t.Context(), openRoot(t, to), &Wanted{Before: tree, Limits: all}); err != nil || len(left) != 0 {
		t.Errorf("%d entries are new or changed, %v", len(left), err)
	}
	var one bytes.Buffer
	if err := Copy(&one, tree, "b/d", get); err != nil || !bytes.Equal(one.Bytes(), noise(1, 3<<20)) {
		t.Errorf("one file: %d bytes, %v", one.Len(), err)
	}
	// Only some of it, in place of what is there.
	part := t.TempDir()
	write(t, part, "b/d", []byte("old"))
	only := func(e *Entry) bool { return e.Name == "b/d" || e.Name == "zeros" }
	if err := Lay(t.Context(), tree, openRoot(t, part), &Laying{Chunk: get, Replace: true, Only: only}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(part, "b/d")); err != nil || !bytes.Equal(got, noise(1, 3<<20)) {
		t.Errorf("replaced: %d bytes, %v", len(got), err)
	}
	if entries, _ := os.ReadDir(part); len(entries) != 2 {
		t.Errorf("%v, want b and zeros", entries)
	}
}

// TestOneChangeMovesFewChunks: a large file that changes in one place has few new chunks,
// whatever lies beside it.
func TestOneChangeMovesFewChunks(t *testing.T) {
	data := noise(3, 16<<20)
	dir := t.TempDir()
	write(t, dir, "m", data)
	before, _ := built(t, dir, &Wanted{Strict: true, Limits: all})
	known := make(map[Digest]bool)
	for _, c := range before.Chunks {
		known[c.Digest] = true
	}
	for name, changed := range map[string][]byte{
		"a byte":   append(append(bytes.Clone(data[:5<<20]), data[5<<20]+1), data[5<<20+1:]...),
		"inserted": append(append(bytes.Clone(data[:5<<20]), "new"...), data[5<<20:]...),
		"cut":      append(bytes.Clone(data[:5<<20]), data[5<<20+100:]...),
	} {
		write(t, dir, "m", changed)
		write(t, dir, "a", []byte("something before it"))
		after, _ := built(t, dir, &Wanted{Strict: true, Limits: all})
		var moved int64
		for _, c := range after.Chunks {
			if !known[c.Digest] {
				moved += c.Size
			}
		}
		if moved > 2<<20 {
			t.Errorf("%s: %d bytes of chunks are new", name, moved)
		}
	}
}

// BenchmarkOneChange tells how much of a gibibyte moves again that changes in one place.
func BenchmarkOneChange(b *testing.B) {
	const size, at = 1 << 30, 700 << 20
	data := noise(3, size)
	tree := func(parts ...[]byte) *Tree {
		path := filepath.Join(b.TempDir(), "file")
		file, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, part := range parts {
			if _, err := file.Write(part); err != nil {
				b.Fatal(err)
			}
		}
		info, err := file.Stat()
		if err != nil {
			b.Fatal(err)
		}
		file.Close()
		t, err := Build(b.Context(), []Source{{
			Entry: Entry{Name: "file", Kind: File, Size: info.Size(), Modified: info.ModTime().UnixNano()},
			Open:  func() (*os.File, error) { return os.Open(path) },
		}})
		if err := errors.Join(err, os.Remove(path)); err != nil {
			b.Fatal(err)
		}
		return t
	}
	known := make(map[Digest]bool)
	for _, c := range tree(data).Chunks {
		known[c.Digest] = true
	}
	for _, bench := range []struct {
		name string
		new  []byte
		from int
	}{{"replaced", []byte{data[at] + 1}, at + 1}, {"inserted", []byte("some bytes"), at}, {"cut", nil, at + 100}} {
		b.Run(bench.name, func(b *testing.B) {
			moved := int64(0)
			for b.Loop() {
				moved = 0
				for _, c := range tree(data[:at], bench.new, data[bench.from:]).Chunks {
					if !known[c.Digest] {
						moved += c.Size
					}
				}
			}
			b.ReportMetric(float64(moved)/(1<<10), "KiB-moved")
		})
	}
}

// TestNothingLeadsOut: trees of peers name nothing outside of the directory, and nothing in it
// leads a write out of it.
func TestNothingLeadsOut(t *testing.T) {
	bad := map[string]*Tree{
		"..":          {Entries: []Entry{{Name: "../x", Kind: Folder}}},
		"absolute":    {Entries: []Entry{{Name: "/x", Kind: Folder}}},
		"dot":         {Entries: []Entry{{Name: "./x", Kind: Folder}}},
		"empty":       {Entries: []Entry{{Name: "", Kind: Folder}}},
		"NUL":         {Entries: []Entry{{Name: "a\x00b", Kind: Folder}}},
		"deep":        {Entries: []Entry{{Name: strings.Repeat("a/", 200) + "a", Kind: Folder}}},
		"long":        {Entries: []Entry{{Name: strings.Repeat("a", 300), Kind: Folder}}},
		"link out":    {Entries: []Entry{{Name: "x", Kind: Link, Target: "../y"}}},
		"link root":   {Entries: []Entry{{Name: "x", Kind: Link, Target: "/etc/passwd"}}},
		"link around": {Entries: []Entry{{Name: "a", Kind: Folder}, {Name: "a/x", Kind: Link, Target: "../../y"}}},
		"in a link":   {Entries: []Entry{{Name: "a", Kind: Link, Target: "b"}, {Name: "a/x", Kind: Folder}}},
		"in nothing":  {Entries: []Entry{{Name: "a/x", Kind: Folder}}},
		"twice":       {Entries: []Entry{{Name: "a", Kind: Folder}, {Name: "a", Kind: Folder}}},
		"order":       {Entries: []Entry{{Name: "b", Kind: Folder}, {Name: "a", Kind: Folder}}},
		"setuid":      {Entries: []Entry{{Name: "a", Kind: File, Mode: os.ModeSetuid | 0o755}}},
		"kind":        {Entries: []Entry{{Name: "a", Kind: 9}}},
		"size":        {Entries: []Entry{{Name: "a", Kind: File, Size: 5}}},
		"negative":    {Entries: []Entry{{Name: "a", Kind: File, Size: -5}}},
		"huge":        {Entries: []Entry{{Name: "a", Kind: File, Size: 1 << 50}}, Chunks: []Chunk{{Size: 1 << 50}}},
	}
	for name, tree := range bad {
		b, _, err := tree.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeTree(b); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whoever has put a link into the directory gains nothing.
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	tree := &Tree{Entries: []Entry{{Name: "a", Kind: Folder, Mode: 0o755}, {Name: "a/x", Kind: File, Mode: 0o644}}}
	for _, replace := range []bool{true, false} {
		if err := Lay(t.Context(), tree, openRoot(t, dir), &Laying{Replace: replace}); err == nil {
			t.Error("it was written through a link that leads out")
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("outside there is %v", entries)
	}
}

// TestWhatCannotBeTaken: strictly it is an error, else it is left out and named.
func TestWhatCannotBeTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(dir string) error
		want string
	}{
		"link out": {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "x")) }, "leads out"},
		"pipe":     {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "x"), 0o600) }, "neither"},
		"socket": {func(dir string) error {
			l, err := net.Listen("unix", filepath.Join(dir, "x"))
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}, "neither"},
		"sparse": {func(dir string) error {
			file, err := os.Create(filepath.Join(dir, "x"))
			if err == nil {
				err = errors.Join(file.Truncate(1<<40), file.Close())
			}
			return err
		}, "too much"},
	} {
		dir, err := os.MkdirTemp("", "content") // names of sockets are short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		write(t, dir, "good", []byte("y"))
		if err := tt.put(dir); err != nil {
			t.Fatal(err)
		}
		limits := Limits{EntriesMax, 1 << 30}
		if _, _, _, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Strict: true, Limits: limits}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		sources, left, why, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Limits: limits})
		if err != nil || len(sources) != 1 || left != 1 || !strings.HasPrefix(why, "x: ") || !strings.Contains(why, tt.want) {
			t.Errorf("%s: %d entries, %d left out, %q, %v", name, len(sources), left, why, err)
		}
	}
	dir := t.TempDir()
	for i := range 50 {
		write(t, dir, fmt.Sprint(i), nil)
	}
	few := Limits{10, 1 << 30}
	if _, _, _, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Strict: true, Limits: few}); !errors.Is(err, ErrMany) {
		t.Errorf("many files: %v", err)
	}
	if sources, left, _, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Limits: few}); err != nil || len(sources) != 10 || left != 40 {
		t.Errorf("many files: %d taken, %d left out, %v", len(sources), left, err)
	}
	write(t, dir, "in/two/folders", nil)
	for limit, want := range map[int]int{2: 0, 3: 3} { // the folders that it lies in count
		wanted := &Wanted{Out: []string{"in/two/folders"}, Limits: Limits{limit, 1 << 30}}
		if sources, _, _, err := Scan(t.Context(), openRoot(t, dir), wanted); err != nil || len(sources) != want {
			t.Errorf("a file in two folders: %d taken of at most %d, want %d: %v", len(sources), limit, want, err)
		}
	}
}

func TestTreesHaveAnEnd(t *testing.T) {
	tree := &Tree{Entries: []Entry{{Name: "x", Kind: File, Size: 1 << 40}}, Chunks: make([]Chunk, TreeMax/32)}
	if _, _, err := tree.Encode(); !errors.Is(err, ErrMany) || !strings.Contains(err.Error(), "split") {
		t.Errorf("a file of a tebibyte: %v", err)
	}
}

// TestChangingFileIsSeen: between its being found and read, and between that and sending it.
func TestChangingFileIsSeen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x", noise(4, 1<<20))
	found := func() []Source {
		sources, _, _, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Strict: true, Limits: all})
		if err != nil {
			t.Fatal(err)
		}
		return sources
	}
	for name, change := range map[string]func() error{
		"shorter": func() error { return os.Truncate(filepath.Join(dir, "x"), 100) },
		"longer":  func() error { return os.Truncate(filepath.Join(dir, "x"), 2<<20) },
		"touched": func() error {
			return os.Chtimes(filepath.Join(dir, "x"), time.Now(), time.Now().Add(-time.Hour))
		},
	} {
		sources := found()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), sources); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(t, dir, "x", noise(4, 4<<20)) // more than is read before the first chunk is taken
	touched := false
	_, err := Cut(t.Context(), found(), func(Chunk, []byte) error { // while it is read
		if touched {
			return nil
		}
		touched = true
		return os.Chtimes(filepath.Join(dir, "x"), time.Now(), time.Now().Add(-2*time.Hour))
	})
	if !touched || !errors.Is(err, ErrChanged) {
		t.Errorf("touched while it was read: %v", err)
	}
	tree, index := built(t, dir, &Wanted{Strict: true, Limits: all})
	write(t, dir, "x", noise(5, 2<<20))
	if _, err := index.Chunk(tree.Chunks[0].Digest, nil); !errors.Is(err, ErrChanged) {
		t.Errorf("read again: %v", err)
	}
}

// TestFileThatBecameALink: what was found as a file is not read elsewhere, be it below the same directory and
// of the same size and time.
func TestFileThatBecameALink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x", []byte("mine"))
	write(t, dir, ".key", []byte("none"))
	at := time.Now().Add(-time.Hour)
	for _, name := range []string{"x", ".key"} {
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	sources, _, _, err := Scan(t.Context(), openRoot(t, dir), &Wanted{Limits: all})
	if err != nil || len(sources) != 1 {
		t.Fatal(sources, err)
	}
	if err := os.Remove(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".key", filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if tree, err := Build(t.Context(), sources); err == nil {
		t.Errorf("what a link leads to is taken for the file: %+v", tree.Entries)
	}
}

func TestIgnore(t *testing.T) {
	ignore, err := ReadIgnore(strings.NewReader("# a comment\n*.tmp\n!keep.tmp\nbuild/\n/top\ndocs/**/*.pdf\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"a.tmp": true, "a/b.tmp": true, "a/keep.tmp": false, "build/": true, "a/build/": true, "build": false,
		"top": true, "a/top": false, "docs/x.pdf": true, "docs/a/b/x.pdf": true, "x.pdf": false,
	} {
		dir := strings.HasSuffix(name, "/")
		if got := ignore.Ignores(strings.TrimSuffix(name, "/"), dir); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if _, err := ReadIgnore(strings.NewReader("[")); err == nil {
		t.Error("what is no pattern was taken")
	}
}

func TestWanted(t *testing.T) {
	before := &Tree{Entries: []Entry{{Name: "in", Kind: File, Size: 1, Modified: 5}}}
	for _, tt := range []struct {
		entry Entry
		out   []string
		want  bool
	}{
		{Entry{Name: "in", Kind: File, Size: 1, Modified: 5}, nil, false},
		{Entry{Name: "in", Kind: File, Size: 2, Modified: 5}, nil, true},
		{Entry{Name: "in", Kind: File, Size: 1, Modified: 6}, nil, true},
		{Entry{Name: "out", Kind: File}, nil, true},
		{Entry{Name: ".ssh/authorized_keys", Kind: File}, nil, false},
		{Entry{Name: "a/.x", Kind: File}, nil, false},
		{Entry{Name: "a/.x", Kind: File}, []string{"a/.*"}, true},
		{Entry{Name: "plots/a/b.png", Kind: File}, []string{"plots"}, true},
		{Entry{Name: "plots/a/b.png", Kind: File}, []string{"plots/*.png"}, false},
		{Entry{Name: "plots/a/b.png", Kind: File}, []string{"plots/**/*.png"}, true},
	} {
		if got := (&Wanted{Out: tt.out, Before: before}).Takes(&tt.entry); got != tt.want {
			t.Errorf("%+v of %q: %v", tt.entry, tt.out, got)
		}
	}
	for _, pattern := range []string{"../x", "/x", "[", "a/../b", ""} {
		if CheckPattern(pattern) == nil {
			t.Errorf("pattern %q was taken", pattern)
		}
	}
}

// TestStoreGivesUpTheOldest: but nothing that is needed or was used lately, and a torn file is
// none.
func TestStoreGivesUpTheOldest(t *testing.T) {
	var needed Digest
	dir := t.TempDir()
	s, err := OpenStore(dir, 10<<20, 0, func() (map[Digest]bool, error) { return map[Digest]bool{needed: true}, nil })
	if err != nil {
		t.Fatal(err)
	}
	put := func(seed uint64, n int, age time.Duration) Digest {
		d, err := s.Put(noise(seed, n))
		if err != nil {
			t.Fatal(err)
		}
		grown(t, s, d, age)
		return d
	}
	first, second := put(10, ChunkMax, 5*time.Hour), put(13, ChunkMax, 5*time.Hour)
	tree := &Tree{Entries: []Entry{{Name: "x", Kind: File, Size: 2 * ChunkMax}}, Chunks: []Chunk{{first, ChunkMax}, {second, ChunkMax}}}
	b, _, _ := tree.Encode()
	if needed, err = s.Put(b); err != nil {
		t.Fatal(err)
	}
	old := put(11, 6<<20, 4*time.Hour)
	young := put(12, 3<<20, time.Minute)
	room, err := s.Room(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	room.Release()
	if _, err := s.Get(old); !errors.Is(err, ErrAbsent) {
		t.Errorf("the oldest is here: %v", err)
	}
	for _, d := range []Digest{first, second, needed, young} {
		if _, err := s.Get(d); err != nil {
			t.Errorf("what is needed or young: %v", err)
		}
	}
	if _, err := s.Room(8 << 20); !errors.Is(err, ErrRoom) {
		t.Errorf("room where there is none: %v", err)
	}
	if _, err := s.Room(1 << 60); !errors.Is(err, ErrRoom) {
		t.Errorf("room that no disk has: %v", err)
	}
	tear(t, s, young)
	if _, err := s.Get(young); !errors.Is(err, ErrAbsent) || s.Has(young) {
		t.Errorf("a torn chunk: %v", err)
	}
	if again, err := OpenStore(dir, 10<<20, 0, nil); err != nil || again.Bytes() != 2*ChunkMax+int64(len(b)) {
		t.Errorf("%d bytes after a restart, %v", again.Bytes(), err)
	}
}

// TestFullDiskOfAJob: a file that cannot be written is no file that has been laid down.
func TestFullDiskOfAJob(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no device here that is always full:", err)
	}
	defer full.Close()
	b := noise(6, 1000)
	w := layer{Laying: &Laying{Chunk: func(Chunk) ([]byte, error) { return b, nil }}, ctx: t.Context(), chunks: []Chunk{{Size: 1000}}, file: full}
	if err := w.fill(1000); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a full disk is %v", err)
	}
}

// TestWaiterTriesForItself: who waits for what another one brings has it, or brings it.
func TestWaiterTriesForItself(t *testing.T) {
	s := newStore(t, 1<<20)
	synctest.Test(t, func(t *testing.T) {
		called, fails := 0, make(chan struct{})
		bring := func() error {
			if called++; called > 1 {
				return nil
			}
			<-fails
			return ErrRoom
		}
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- s.Once(Digest{1}, nil, bring) }()
			synctest.Wait() // the first brings it, the second waits for that
		}
		close(fails)
		if first, second := <-errs, <-errs; !errors.Is(errors.Join(first, second), ErrRoom) || first != nil && second != nil || called != 2 {
			t.Errorf("%v and %v, and it was brought %d times", first, second, called)
		}
	})
}

// TestReplacedAsAWhole: as long as a file has not come the one that it replaces is there.
func TestReplacedAsAWhole(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, from, "x", noise(40, 2<<20))
	write(t, to, "x", []byte("before"))
	tree, index := built(t, from, &Wanted{Strict: true, Limits: all})
	left := len(tree.Chunks) - 1
	lay := &Laying{Replace: true, Chunk: func(c Chunk) ([]byte, error) {
		if left--; left < 0 {
			return nil, ErrAbsent
		}
		return index.Chunk(c.Digest, nil)
	}}
	if err := Lay(t.Context(), tree, openRoot(t, to), lay); !errors.Is(err, ErrAbsent) {
		t.Fatalf("%d chunks, and %v", len(tree.Chunks), err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "x")); err != nil || string(b) != "before" {
		t.Errorf("%d bytes instead, %v", len(b), err)
	}
	if list, _ := os.ReadDir(to); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

func FuzzDecodeTree(f *testing.F) {
	addTree(f)
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		tree, err := DecodeTree(b)
		if err != nil {
			return
		}
		if again, _, err := tree.Encode(); err == nil {
			if _, err := DecodeTree(again); err != nil {
				t.Errorf("decoded, encoded, and not decoded: %v", err)
			}
		}
	})
}

// FuzzLay: a tree that decodes is laid down within its folder, or refused.
func FuzzLay(f *testing.F) {
	addTree(f)
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		tree, err := DecodeTree(b)
		if err != nil || len(tree.Entries) >= 20 || tree.Size() >= 1<<16 {
			return
		}
		around := t.TempDir()
		to := filepath.Join(around, "folder")
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = Lay(context.Background(), tree, openRoot(t, to), &Laying{Chunk: func(c Chunk) ([]byte, error) { return make([]byte, c.Size), nil }})
		if beside, err := os.ReadDir(around); err != nil || len(beside) != 1 {
			t.Errorf("beside the folder lies something now: %v, %v", beside, err)
		}
	})
}

// addTree gives a target a tree to begin with.
func addTree(f *testing.F) {
	tree := &Tree{Entries: []Entry{{Name: "a", Kind: Folder, Mode: 0o755}, {Name: "a/l", Kind: Link, Target: "x"}, {Name: "a/x", Kind: File, Size: 3}}, Chunks: []Chunk{{Size: 3}}}
	b, _, err := tree.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

// TestJoin: what the tasks of a job have left is one tree, by their ranks; pieces of sites that do
// not keep to it are refused.
func TestJoin(t *testing.T) {
	piece := func(first, tasks int, names ...string) Piece {
		var sources []Source
		for _, name := range names {
			number, rest, _ := strings.Cut(name, ":")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, Numbered(n, []Source{{
				Entry: Entry{Name: rest, Kind: File, Size: info.Size(), Modified: info.ModTime().UnixNano()}, Open: func() (*os.File, error) { return os.Open(path) },
			}})...)
		}
		tree, err := Build(t.Context(), sources)
		if err != nil {
			t.Fatal(err)
		}
		return Piece{tree, first, tasks}
	}
	tree, err := Join([]Piece{piece(0, 2, "1:a"), piece(2, 9, "0:z", "8:b")}, 11)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range tree.Entries {
		names = append(names, e.Name)
	}
	if want := []string{"rank-01", "rank-01/a", "rank-02", "rank-02/z", "rank-10", "rank-10/b"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if tree.Size() != 9 || tree.Count() != 3 {
		t.Errorf("%d files of %d bytes", tree.Count(), tree.Size())
	}
	w := &Wanted{Out: []string{"a"}}
	for name, want := range map[string]bool{"rank-01": true, "rank-01/a": true, "rank-01/b": false, "rank-01/b/a": false} {
		kind := File
		if name == "rank-01" {
			kind = Folder
		}
		if got := w.TakesOf(&Entry{Name: name, Kind: kind}); got != want {
			t.Errorf("%s is taken: %v", name, got)
		}
	}
	for name, p := range map[string]Piece{
		"another's number":    piece(0, 1, "1:a"),
		"no number":           {&Tree{Entries: []Entry{{Name: "rank-0", Kind: Folder}}}, 0, 1},
		"a file for a folder": {&Tree{Entries: []Entry{{Name: "00000", Kind: File}}}, 0, 1},
		"a short number":      {&Tree{Entries: []Entry{{Name: "0", Kind: Folder}}}, 0, 1},
	} {
		if _, err := Join([]Piece{p}, 1); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder that cannot be looked at, as no descriptor is left, is no folder of which nothing is wanted.
func TestScanWithoutDescriptors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plot"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := openRoot(t, dir)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	sources, left, why, err := Scan(t.Context(), root, &Wanted{Limits: all})
	if failed := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); failed != nil {
		t.Fatal(failed)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("it finds %d, leaves %d out (%s), and says %v, want that no descriptor is left", len(sources), left, why, err)
	}
}
