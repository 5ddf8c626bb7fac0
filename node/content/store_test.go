package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWhatIsKeptTwiceCountsOnce: also if that happens at the same time.
func TestWhatIsKeptTwiceCountsOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir, 1<<30, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for seed := range uint64(50) {
		b := noise(seed, 1000)
		d := Digest(sha256.Sum256(b))
		sum += int64(len(b))
		var under sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			under.Go(func() {
				<-start
				if _, err := s.Put(b); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		under.Wait()
		if got, err := s.Get(d); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes of %d are there: %v", len(got), len(b), err)
		}
	}
	if s.Bytes() != sum {
		t.Errorf("%d bytes are counted, want %d", s.Bytes(), sum)
	}
	if left, err := os.ReadDir(dir + "/" + newDir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left half kept, %v", len(left), err)
	}
}

// grown has something in a store be used so long ago.
func grown(t *testing.T, s *Store, d Digest, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if one := s.packs.find(d); one != nil {
		s.packs.mu.Lock()
		one.used = at
		s.packs.mu.Unlock()
	} else if err := os.Chtimes(s.path(d), at, at); err != nil {
		t.Fatal(err)
	}
}

// tear has something in a store be cut short.
func tear(t *testing.T, s *Store, d Digest) {
	t.Helper()
	one := s.packs.find(d)
	if one == nil {
		if err := os.Truncate(s.path(d), 100); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.OpenFile(one.pack.name+packSuffix, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(make([]byte, one.size-100), one.offset+100); err != nil {
		t.Fatal(err)
	}
}

// TestRoomIsSetAside: transfers at the same time have together no more room than there is.
func TestRoomIsSetAside(t *testing.T) {
	const each, most = 3 << 20, 10 << 20
	s := newStore(t, most)
	var under sync.WaitGroup
	rooms := make(chan *Room, 20)
	for range cap(rooms) {
		under.Go(func() {
			room, err := s.Room(each)
			if err == nil {
				rooms <- room
			} else if !errors.Is(err, ErrRoom) {
				t.Error(err)
			}
		})
	}
	under.Wait()
	close(rooms)
	if len(rooms) != most/each {
		t.Fatalf("%d have room, want %d", len(rooms), most/each)
	}
	seed := uint64(0)
	for room := range rooms {
		seed += 100
		first := seed
		under.Go(func() {
			for i := range uint64(2) {
				b := noise(first+i, 1<<20)
				if err := room.Keep(sha256.Sum256(b), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	under.Wait()
	if _, err := s.Room(2 << 20); !errors.Is(err, ErrRoom) {
		t.Errorf("what is set aside is given away while %d bytes are here: %v", s.Bytes(), err)
	}
	s = newStore(t, most)
	first, err := s.Room(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(noise(1, 3<<20)); !errors.Is(err, ErrRoom) {
		t.Errorf("it is kept where another has room: %v", err)
	}
	first.Release()
	first.Release()
	if room, err := s.Room(most); err != nil || s.taken() != most {
		t.Errorf("%v after all was given back: %d bytes are taken", err, s.taken())
	} else if room.Release(); s.taken() != 0 {
		t.Errorf("%d bytes are taken when all was given back twice", s.taken())
	}
	if _, err := s.Room(most + 1); !errors.Is(err, ErrRoom) {
		t.Errorf("more than is ever kept: %v", err)
	}
}

// TestFullDisksAreNoRoom: that is not the fault of who sends something.
func TestFullDisksAreNoRoom(t *testing.T) {
	for _, tt := range []struct {
		err  error
		full bool
	}{{unix.ENOSPC, true}, {&os.PathError{Op: "write", Path: "x", Err: unix.EDQUOT}, true}, {unix.EIO, false}} {
		if err := writeError(tt.err); !errors.Is(err, ErrWrite) || errors.Is(err, ErrRoom) != tt.full || !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}

// TestDiskKeepsItsSpare: what is to stay free on the disk is no room for anything.
func TestDiskKeepsItsSpare(t *testing.T) {
	s := newStore(t, 1<<20)
	s.spare = 1 << 60 // more than any disk has
	if err := s.disk(1); !errors.Is(err, ErrRoom) {
		t.Errorf("%v, want that there is no room", err)
	}
	s.spare = 0
	if err := s.disk(0); err != nil {
		t.Error(err)
	}
}

// TestRelink does what a rename does that replaces nothing.
func TestRelink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(dir+"/"+name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := relink(dir+"/a", dir+"/c"); err != nil {
		t.Fatal(err)
	}
	if err := relink(dir+"/b", dir+"/c"); !errors.Is(err, os.ErrExist) {
		t.Errorf("what is there: %v", err)
	}
	if err := relink(dir+"/b", dir+"/none/c"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not: %v", err)
	}
	if b, err := os.ReadFile(dir + "/c"); err != nil || string(b) != "a" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(dir + "/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has its old name, too: %v", err)
	}
}

// TestWhatIsUsedMeanwhileStays: while room is made, a job may find that it has all that it needs.
func TestWhatIsUsedMeanwhileStays(t *testing.T) {
	t.Run("packed", func(t *testing.T) { usedMeanwhile(t, false) })
	t.Run("in files of their own", func(t *testing.T) { usedMeanwhile(t, true) })
}

func usedMeanwhile(t *testing.T, loose bool) {
	var s *Store
	var used Digest
	s, err := OpenStore(t.TempDir(), 10<<20, 0, func() (map[Digest]bool, error) {
		if !s.Has(used) {
			t.Error("it went before anybody asked what is needed")
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.packs.off = loose
	old := func(seed uint64) Digest {
		d, err := s.Put(noise(seed, 5<<20))
		if err != nil {
			t.Fatal(err)
		}
		grown(t, s, d, time.Hour)
		return d
	}
	used = old(1)
	other := old(2)
	if _, err := s.Room(4 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(used); err != nil {
		t.Errorf("what was used meanwhile: %v", err)
	}
	if _, err := s.Get(other); !errors.Is(err, ErrAbsent) {
		t.Errorf("what was not: %v", err)
	}
}

// TestMissingTellsEachOnce: what a tree has twice comes once, and takes the room of one.
func TestMissingTellsEachOnce(t *testing.T) {
	s := newStore(t, 1<<20)
	here, err := s.Put(noise(1, 1000))
	if err != nil {
		t.Fatal(err)
	}
	gone := Chunk{Digest: sha256.Sum256(noise(2, 2000)), Size: 2000}
	if missing, size := s.Missing([]Chunk{gone, {Digest: here, Size: 1000}, gone}); len(missing) != 1 || missing[0] != gone || size != 2000 {
		t.Errorf("%d chunks of %d bytes are missing, want one of 2000", len(missing), size)
	}
}

// TestCutGivesAllChunks of what it reads, each with its digest; an error of who takes them ends it.
func TestCutGivesAllChunks(t *testing.T) {
	content := [][]byte{noise(1, 3<<20), noise(2, 1000), noise(3, 2000)}
	var sources []Source
	opened := 0
	for i, b := range content {
		path := t.TempDir() + "/file"
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, Source{
			Entry: Entry{Name: string(rune('a' + i)), Kind: File, Mode: 0o600, Size: info.Size(), Modified: info.ModTime().UnixNano()},
			Open:  func() (*os.File, error) { opened++; return os.Open(path) },
		})
	}
	var taken []Chunk
	var all [][]byte
	tree, err := Cut(t.Context(), sources, func(c Chunk, b []byte) error {
		taken, all = append(taken, c), append(all, b) // it may be kept
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(taken) != len(tree.Chunks) || opened != len(sources) {
		t.Errorf("%d chunks of %d, after %d openings of %d files", len(taken), len(tree.Chunks), opened, len(sources))
	}
	for i := range taken {
		if taken[i] != tree.Chunks[i] {
			t.Errorf("chunk %d is %+v, that of the tree %+v", i, taken[i], tree.Chunks[i])
		}
	}
	if !bytes.Equal(bytes.Join(all, nil), bytes.Join(content, nil)) {
		t.Error("the chunks are not the content")
	}
	enough := errors.New("enough")
	if _, err := Cut(t.Context(), sources, func(Chunk, []byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want what the taker said", err)
	}
}

// Benchmarks of what a chunk costs: BenchmarkKeep writes it, BenchmarkRead reads and verifies it.
const benchChunk = 256 << 10

func BenchmarkKeep(b *testing.B) {
	s, err := OpenStore(b.TempDir(), 1<<40, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	chunk := noise(1, benchChunk)
	room, err := s.Room(1 << 30)
	if err != nil {
		b.Fatal(err)
	}
	defer room.Release()
	b.SetBytes(benchChunk)
	for i := 0; b.Loop(); i++ {
		var d Digest
		d[0], d[1], d[2], d[3] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		if err := room.Keep(d, chunk); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s, err := OpenStore(b.TempDir(), 1<<40, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	var kept []Digest
	for seed := range uint64(64) {
		d, err := s.Put(noise(seed, benchChunk))
		if err != nil {
			b.Fatal(err)
		}
		kept = append(kept, d)
	}
	var buf []byte
	b.SetBytes(benchChunk)
	for i := 0; b.Loop(); i++ {
		if buf, err = s.Read(kept[i%len(kept)], buf); err != nil {
			b.Fatal(err)
		}
	}
}
