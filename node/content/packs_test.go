package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const chunkSize = packedMin + 1000

// filled is a store of some chunks in packs, closed, and the chunks.
func filled(t *testing.T, dir string, count int) (chunks [][]byte) {
	t.Helper()
	s := opened(t, dir)
	for i := range count {
		b := noise(uint64(1000+i), chunkSize+i)
		if _, err := s.Put(b); err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, b)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	return chunks
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenStore(dir, 1<<30, 0, func() (map[Digest]bool, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if s.packs.off {
		t.Skip("the file system punches no holes")
	}
	return s
}

// right checks that each chunk is read as it was or is absent, and returns how many are there.
func right(t *testing.T, s *Store, chunks [][]byte) (there int) {
	t.Helper()
	for i, b := range chunks {
		got, err := s.Get(sha256.Sum256(b))
		switch {
		case err == nil && bytes.Equal(got, b):
			there++
		case !errors.Is(err, ErrAbsent):
			t.Errorf("chunk %d: %d bytes of %d, %v", i, len(got), len(b), err)
		}
	}
	return there
}

// onePack returns the paths of the only pack of a store.
func onePack(t *testing.T, dir string) (data, index string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, packsDir, "*"+packSuffix))
	if len(names) != 1 {
		t.Fatalf("packs %v, want one", names)
	}
	return names[0], strings.TrimSuffix(names[0], packSuffix) + indexSuffix
}

// TestPacksAfterACrashAtEachWrite: what was kept before is there and whole, what was being written
// is not, and the store goes on.
func TestPacksAfterACrashAtEachWrite(t *testing.T) {
	const count = 4
	from := t.TempDir()
	chunks := filled(t, from, count)
	data, index := onePack(t, from)
	content, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != count*entrySize {
		t.Fatalf("an index of %d bytes, want %d", len(entries), count*entrySize)
	}
	at := make([]int, count) // where chunks end
	for i := range at {
		_, offset, size, ok := decodeEntry(entries[i*entrySize:][:entrySize])
		if !ok {
			t.Fatalf("entry %d is none", i)
		}
		at[i] = int(offset + size)
	}
	for _, tt := range []struct {
		name          string
		data, entries int // bytes of them that are on the disk
		there         int
		gone          bool // there is no index
	}{
		{"before anything", 0, 0, 0, true},
		{"before the first", 0, 0, 0, false},
		{"in the first chunk", at[0] / 2, 0, 0, false},
		{"before its entry", at[0], 0, 0, false},
		{"in its entry", at[0], entrySize / 2, 0, false},
		{"after it", at[0], entrySize, 1, false},
		{"in the second chunk", at[1] - 1, entrySize, 1, false},
		{"in its entry", at[1], 2*entrySize - 1, 1, false},
		{"after it", at[1], 2 * entrySize, 2, false},
		{"the last entry was earlier on the disk than its chunk", at[3] - 1, 4 * entrySize, 3, false},
		{"entries were, of chunks that are not there at all", at[1], 4 * entrySize, 2, false},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, packsDir, "x")
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(name+packSuffix, content[:tt.data], 0o600)
		if err == nil && !tt.gone {
			err = os.WriteFile(name+indexSuffix, entries[:tt.entries], 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := opened(t, dir)
		var sum int64
		for _, b := range chunks[:tt.there] {
			sum += int64(len(b))
		}
		if there := right(t, s, chunks[:tt.there]); there != tt.there || s.Bytes() != sum {
			t.Errorf("%s: %d chunks of %d are there, %d bytes are counted, want %d", tt.name, there, tt.there, s.Bytes(), sum)
		}
		if there := right(t, s, chunks[tt.there:]); there != 0 {
			t.Errorf("%s: %d chunks are there that were not written", tt.name, there)
		}
		if info, err := os.Stat(name + packSuffix); tt.there == 0 && err == nil || tt.there > 0 && (err != nil || info.Size() != int64(at[tt.there-1])) {
			t.Errorf("%s: what was cut short is left: %v, %v", tt.name, info, err)
		}
		filled(t, dir, count) // the same again, by another start
		if s := opened(t, dir); right(t, s, chunks) != count || s.Bytes() <= sum {
			t.Errorf("%s: it does not go on: %d bytes", tt.name, s.Bytes())
		}
	}
}

// TestPacksAfterACrashWhileSomethingIsGivenUp: it is there or not, and what is beside it is.
func TestPacksAfterACrashWhileSomethingIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name            string
		struck, punched bool
	}{{"before", false, false}, {"struck out", true, false}, {"both", true, true}, {"punched, and the disk did not have the first", false, true}} {
		dir := t.TempDir()
		chunks := filled(t, dir, 3)
		data, index := onePack(t, dir)
		one := opened(t, dir).packs.find(sha256.Sum256(chunks[1]))
		if tt.struck {
			overwrite(t, index, make([]byte, entrySize), one.entry*entrySize)
		}
		if tt.punched {
			overwrite(t, data, make([]byte, one.size), one.offset)
		}
		s := opened(t, dir)
		want := 2
		if !tt.struck && !tt.punched {
			want = 3
		}
		if there := right(t, s, chunks); there != want || right(t, s, [][]byte{chunks[0], chunks[2]}) != 2 {
			t.Errorf("%s: %d chunks are there, want %d", tt.name, there, want)
		}
		var sum int64
		for i, b := range chunks {
			if i != 1 || want == 3 {
				sum += int64(len(b))
			}
		}
		if s.Bytes() != sum {
			t.Errorf("%s: %d bytes are counted, want %d", tt.name, s.Bytes(), sum)
		}
		if _, err := s.Put(chunks[1]); err != nil || right(t, s, chunks) != 3 {
			t.Errorf("%s: it cannot be kept again: %v", tt.name, err)
		}
	}
}

func overwrite(t *testing.T, path string, b []byte, at int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPacks: whatever bit of a pack or its index is another one, nothing wrong is read, and
// no more is lost than what the bit belongs to.
func TestDamagedPacks(t *testing.T) {
	const count = 4
	dir := t.TempDir()
	chunks := filled(t, dir, count)
	data, index := onePack(t, dir)
	whole := make(map[string][]byte)
	for _, path := range []string{data, index} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole[path] = text
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 488 {
		path := []string{data, index}[i%2]
		at, bit := rng.IntN(len(whole[path])), byte(1)<<rng.IntN(8)
		for path, text := range whole { // what was damaged is given up when it is read
			overwrite(t, path, text, 0)
		}
		overwrite(t, path, []byte{whole[path][at] ^ bit}, int64(at))
		if there := right(t, opened(t, dir), chunks); there < count-1 || path == index && there != count-1 {
			t.Errorf("bit %#x of byte %d of %s: %d chunks are there, want %d", bit, at, filepath.Ext(path), there, count-1)
		}
	}
}

// TestWhatIsGivenIsVerifiedOnceInAWhile: when it was kept, and then each time that was long ago; and
// what is given up while it is read is not there.
func TestWhatIsGivenIsVerifiedOnceInAWhile(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	b := noise(1, chunkSize)
	d, err := s.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	one := s.packs.find(d)
	age := func() { one.whole = one.whole.Add(-lately) }
	age()
	for range 2 { // the first verifies it
		if got, err := s.Give(d, nil); !bytes.Equal(got, b) || err != nil {
			t.Errorf("what is whole is %d bytes, %v", len(got), err)
		}
	}
	data, _ := onePack(t, dir)
	overwrite(t, data, []byte{^b[0]}, 0)
	if got, err := s.Give(d, nil); len(got) != len(b) || err != nil {
		t.Errorf("what was verified a moment ago is read again: %d bytes, %v", len(got), err)
	}
	age()
	if _, err := s.Give(d, nil); !errors.Is(err, ErrAbsent) || s.Has(d) {
		t.Errorf("what was damaged since is given: %v", err)
	}
	one.whole = time.Now()
	if s.packs.trusts(d, one) {
		t.Error("what was given up counts as whole")
	}
}

// TestFullDisks: what does not fit any more is no room, nothing of it is there, and what was kept
// before is.
func TestFullDisks(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	first, second := noise(1, chunkSize), noise(2, chunkSize)
	if _, err := s.Put(first); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no device here that is always full:", err)
	}
	for _, file := range []**os.File{&s.packs.now.data, &s.packs.now.index} {
		was := *file
		*file = full
		if _, err := s.Put(second); !errors.Is(err, ErrRoom) || !errors.Is(err, ErrWrite) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a full disk is %v", err)
		}
		*file = was
		if there := right(t, s, [][]byte{first, second}); there != 1 || s.taken() != chunkSize {
			t.Errorf("%d chunks are there, and %d bytes taken", there, s.taken())
		}
	}
	if _, err := s.Put(second); err != nil || right(t, opened(t, dir), [][]byte{first, second}) != 2 {
		t.Errorf("once it has room again: %v", err)
	}
}

// TestWhatIsGivenUpLeavesTheDisk: of packs the places, and in the end the packs.
func TestWhatIsGivenUpLeavesTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	s.packs.most = 4 * pages(chunkSize)
	var chunks [][]byte
	for i := range 10 {
		chunks = append(chunks, noise(uint64(i), chunkSize))
		if _, err := s.Put(chunks[i]); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		names, _ := filepath.Glob(filepath.Join(dir, packsDir, "*"))
		return len(names)
	}
	blocks := func() (sum int64) {
		names, _ := filepath.Glob(filepath.Join(dir, packsDir, "*"+packSuffix))
		for _, name := range names {
			var st unix.Stat_t
			if err := unix.Stat(name, &st); err != nil {
				t.Fatal(err)
			}
			sum += st.Blocks * 512
		}
		return sum
	}
	if err := s.Sync(); err != nil { // blocks are counted once they are on the disk
		t.Fatal(err)
	}
	if count() != 6 {
		t.Fatalf("%d files, want 3 packs and an index each", count())
	}
	for i, b := range chunks {
		age := time.Hour
		if i == 9 {
			age = 0
		}
		grown(t, s, sha256.Sum256(b), age)
	}
	before := blocks()
	for i := range 3 { // of the first four
		d := Digest(sha256.Sum256(chunks[i]))
		s.drop(d, s.packs.find(d), time.Time{})
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if freed := before - blocks(); freed < 3*chunkSize {
		t.Errorf("%d bytes are free again, want %d", freed, 3*chunkSize)
	}
	s.most = 2 * chunkSize // it was made smaller
	room, err := s.Room(chunkSize / 2)
	if err != nil {
		t.Fatal(err)
	}
	room.Release()
	if there := right(t, s, chunks); there != 1 || s.Bytes() != chunkSize || count() != 2 {
		t.Errorf("%d chunks of %d bytes are left, in %d files", there, s.Bytes(), count())
	}
	if s := opened(t, dir); right(t, s, chunks) != 1 || s.Bytes() != chunkSize {
		t.Errorf("%d bytes after a restart", s.Bytes())
	}
}

// TestFilesOfEarlierReleases: what they have kept, a file each, is read and given up as ever.
func TestFilesOfEarlierReleases(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	s.packs.off = true // so they did
	var chunks [][]byte
	for i := range 3 {
		chunks = append(chunks, noise(uint64(i), chunkSize))
		if _, err := s.Put(chunks[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.files()) != 3 {
		t.Fatalf("%d files, want 3", len(s.files()))
	}
	s = opened(t, dir)
	if right(t, s, chunks) != 3 || s.Bytes() != 3*chunkSize {
		t.Errorf("%d bytes are there", s.Bytes())
	}
	if _, err := s.Put(chunks[0]); err != nil || s.Bytes() != 3*chunkSize {
		t.Errorf("what is there counts again: %d bytes, %v", s.Bytes(), err)
	}
	if _, err := s.Put(noise(9, chunkSize)); err != nil {
		t.Fatal(err)
	}
	for _, b := range chunks[1:] {
		grown(t, s, sha256.Sum256(b), time.Hour)
	}
	s.most = 3 * chunkSize
	if _, err := s.Room(chunkSize / 2); err != nil || right(t, s, slices.Concat(chunks, [][]byte{noise(9, chunkSize)})) != 2 {
		t.Errorf("what was not used is there: %v", err)
	}
	tear(t, s, sha256.Sum256(chunks[0]))
	if _, err := s.Get(sha256.Sum256(chunks[0])); !errors.Is(err, ErrAbsent) || s.Has(sha256.Sum256(chunks[0])) {
		t.Errorf("what is torn: %v", err)
	}
}
