package content

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/internal/atomicfile"
)

// Store keeps chunks and trees by their digests: what is large in packs, the rest in a file each:
//
//	DIR/packs/…      see packs
//	DIR/ab/cdef…     named by all digits of the digest
//	DIR/new/…        what is being written
//
// What earlier releases have kept is in files, whatever its size, and read as ever.
// What was not used for the longest time goes when the bound is reached, but nothing that is
// needed or was used lately. What is read is verified: a file that a crash has left torn is
// none. It may be used concurrently.
type Store struct {
	dir    string
	most   int64 // bytes of all
	spare  int64 // bytes that have to be left on the disk
	needed func() (map[Digest]bool, error)
	packs  *packs

	making sync.Mutex // room, one at a time: taken before mu

	mu    sync.Mutex
	sum   int64 // bytes of all files
	aside int64 // bytes that are set aside besides
	under map[Digest]*making
}

// making is a tree that is being brought.
type making struct {
	done chan struct{}
	err  error
}

// Errors of a Store.
var (
	// ErrAbsent: it is not here.
	ErrAbsent = errors.New("not here")
	// ErrRoom: the bound is reached, or the disk is full, and all that is here is needed.
	ErrRoom = errors.New("no room for files of jobs")
	// ErrWrite: it cannot be written here, whoever sends it. It is ErrRoom, too, if the disk is
	// full or a quota used up.
	ErrWrite = errors.New("cannot be kept here")
)

// lately is how long what was used is not given up: a job that needs it may be on its way.
const lately = 10 * time.Minute

const newDir = "new"

// OpenStore returns the store in a directory, which is made if it is not there. needed tells
// which trees are needed, whatever was used last; it is called when room is made.
func OpenStore(dir string, most, spare int64, needed func() (map[Digest]bool, error)) (*Store, error) {
	if err := os.RemoveAll(filepath.Join(dir, newDir)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, newDir), 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, most: most, spare: spare, needed: needed, under: make(map[Digest]*making)}
	var err error
	if s.packs, s.sum, err = openPacks(filepath.Join(dir, packsDir), filepath.Join(dir, newDir)); err != nil {
		return nil, err
	}
	for _, f := range s.files() {
		s.sum += f.size
	}
	return s, nil
}

func (s *Store) path(d Digest) string {
	name := d.String()
	return filepath.Join(s.dir, name[:2], name)
}

// Has reports whether a chunk or tree is here, and has it counted as used now.
func (s *Store) Has(d Digest) bool {
	if s.packs.touch(d) {
		return true
	}
	now := time.Now()
	return os.Chtimes(s.path(d), now, now) == nil
}

// Missing returns which chunks of a list are not here, each once, and their bytes.
func (s *Store) Missing(chunks []Chunk) (missing []Chunk, size int64) {
	seen := make(map[Digest]bool, len(chunks))
	for _, c := range chunks {
		if seen[c.Digest] || s.Has(c.Digest) {
			continue
		}
		seen[c.Digest] = true
		missing, size = append(missing, c), size+c.Size
	}
	return missing, size
}

// Get returns what has a digest; ErrAbsent if it is not here, or not whole any more.
func (s *Store) Get(d Digest) ([]byte, error) { return s.Read(d, nil) }

// Read is Get into buf if that is large enough.
func (s *Store) Read(d Digest, buf []byte) ([]byte, error) { return s.read(d, buf, false) }

// Give is Read for who verifies what he gets himself: what was found whole lately is not verified
// once more, so that one that is damaged is given for minutes at most.
func (s *Store) Give(d Digest, buf []byte) ([]byte, error) { return s.read(d, buf, true) }

func (s *Store) read(d Digest, buf []byte, trust bool) ([]byte, error) {
	if one := s.packs.find(d); one != nil {
		b, err := one.read(buf)
		if err == nil && trust && int64(len(b)) == one.size && s.packs.trusts(d, one) {
			return b, nil
		}
		if err == nil && sha256.Sum256(b) == d {
			s.packs.verified(one)
			return b, nil
		}
		if err == nil || errors.Is(err, ErrAbsent) {
			s.drop(d, one, time.Time{})
			err = ErrAbsent
		}
		return nil, err
	}
	b, err := readFile(s.path(d), buf[:0])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(b) != d {
		s.remove(s.path(d), int64(len(b)))
		return nil, ErrAbsent
	}
	return b, nil
}

// readFile appends the content of a file to b, all at once.
func readFile(path string, b []byte) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b = slices.Grow(b, int(info.Size()))
	n, err := io.ReadFull(file, b[:info.Size()])
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil // it is torn: its digest shows it
	}
	return b[:n], err
}

func (s *Store) remove(path string, size int64) {
	if os.Remove(path) == nil {
		s.less(size)
	}
}

// drop is remove of what is packed; see packs.remove.
func (s *Store) drop(d Digest, one *packed, used time.Time) {
	if s.packs.remove(d, one, used) {
		s.less(one.size)
	}
}

func (s *Store) less(size int64) {
	s.mu.Lock()
	s.sum -= size
	s.mu.Unlock()
}

// Put makes room for something, keeps it and returns its digest. Sync makes it durable.
func (s *Store) Put(b []byte) (Digest, error) {
	d := Digest(sha256.Sum256(b))
	if s.Has(d) {
		return d, nil
	}
	room, err := s.Room(int64(len(b)))
	if err != nil {
		return d, err
	}
	defer room.Release()
	return d, room.Keep(d, b)
}

// Room is room in a Store that is set aside for what is on its way. It may be used concurrently.
type Room struct {
	s    *Store
	left int64 // guarded by s.mu
}

// Keep keeps what is known to have a digest. What was kept meanwhile counts once. Errors that
// wrap ErrWrite say that it cannot be written here.
func (r *Room) Keep(d Digest, b []byte) error {
	s := r.s
	if s.Has(d) {
		return nil
	}
	var err error
	if s.packs.takes(len(b)) {
		err = s.packs.keep(d, b)
	} else {
		err = s.write(s.path(d), b)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // another one has kept it meanwhile: it counts once
	}
	if err != nil {
		return writeError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += int64(len(b))
	used := min(int64(len(b)), r.left)
	r.left, s.aside = r.left-used, s.aside-used
	return nil
}

// Release gives back what was not used. It may be called again.
func (r *Room) Release() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.aside -= r.left
	r.left = 0
}

// writeError is what is said of an error of writing here.
func writeError(err error) error {
	if Full(err) {
		return fmt.Errorf("%w: %w: the disk is full: %w", ErrRoom, ErrWrite, err)
	}
	return fmt.Errorf("%w: %w", ErrWrite, err)
}

// Full reports whether an error says that a disk is full, or a quota used up.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// write makes a file, all at once: fs.ErrExist if it is there.
func (s *Store) write(path string, b []byte) error {
	part := filepath.Join(s.dir, newDir, filepath.Base(path)+rand.Text())
	err := os.WriteFile(part, b, 0o600)
	if err == nil {
		if err = renameNew(part, path); errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
				err = renameNew(part, path)
			}
		}
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// renameNew gives a file a name that no other has.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot
		return relink(from, to)
	}
	return err
}

// relink is renameNew for file systems that cannot rename so.
func relink(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		err = os.Remove(from)
	}
	return err
}

// Sync makes durable what was put.
func (s *Store) Sync() error { return atomicfile.SyncTree(s.dir) }

// Tree returns a tree that is here.
func (s *Store) Tree(d Digest) (*Tree, error) {
	b, err := s.Get(d)
	if err != nil {
		return nil, err
	}
	return DecodeTree(b)
}

// Bytes returns the bytes that are here.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}

// held is something in the store.
type held struct {
	digest Digest
	one    *packed // nil: a file
	size   int64
	used   time.Time
}

// files returns all that are files of their own.
func (s *Store) files() (list []held) {
	_ = filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it went
		case d.IsDir() && (d.Name() == newDir || d.Name() == packsDir):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		digest, err := ParseDigest(d.Name())
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			list = append(list, held{digest: digest, size: info.Size(), used: info.ModTime()})
		}
		return nil
	})
	return list
}

// Room makes room for so many bytes more and sets it aside until it is used or released, or
// returns an error that wraps ErrRoom. What others have set aside counts as taken.
func (s *Store) Room(size int64) (*Room, error) {
	if size > s.most {
		return nil, fmt.Errorf("%w: %d bytes, and at most %d (files.cache) are kept here", ErrRoom, size, s.most)
	}
	s.making.Lock()
	defer s.making.Unlock()
	if err := s.disk(size); err != nil {
		return nil, err
	}
	if s.taken()+size > s.most {
		if err := s.evict(size); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sum+s.aside+size > s.most { // sum shrinks only meanwhile, or grows by what was set aside
		return nil, fmt.Errorf("%w: %d bytes more, and %d of %d (files.cache) are taken by what jobs that have not ended read, was used lately, or is on its way", ErrRoom, size, s.sum+s.aside, s.most)
	}
	s.aside += size
	return &Room{s, size}, nil
}

// taken returns the bytes that are here or set aside.
func (s *Store) taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum + s.aside
}

// evict gives up what was not used for the longest time until there is room for so many bytes
// more, if it can.
func (s *Store) evict(size int64) error {
	list := s.packs.list(s.files())
	needed, err := s.chunksNeeded()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(x, y held) int { return cmp.Or(x.used.Compare(y.used), bytes.Compare(x.digest[:], y.digest[:])) })
	goal := s.most - s.most/16 - size // some more, so that it is not done for each
	for _, f := range list {
		if s.taken() <= goal || time.Since(f.used) < lately {
			break
		}
		if needed[f.digest] {
			continue
		}
		if f.one != nil {
			s.drop(f.digest, f.one, f.used)
			continue
		}
		path := s.path(f.digest)
		if info, err := os.Lstat(path); err != nil || !info.ModTime().Equal(f.used) {
			continue // it went, or was used while room was made
		}
		s.remove(path, f.size)
	}
	return nil
}

// disk returns an error unless the disk has room, too.
func (s *Store) disk(size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return err
	}
	s.mu.Lock()
	aside := s.aside
	s.mu.Unlock()
	if free := int64(st.Bavail)*st.Bsize - aside; free-s.spare < size {
		return fmt.Errorf("%w: %d MiB more, and the disk has %d MiB left, of which %d MiB stay free", ErrRoom, (size+1<<20-1)>>20, free>>20, s.spare>>20)
	}
	return nil
}

// chunksNeeded returns all trees and chunks that are needed.
func (s *Store) chunksNeeded() (map[Digest]bool, error) {
	trees, err := s.needed()
	if err != nil {
		return nil, err
	}
	all := make(map[Digest]bool)
	for d := range trees {
		all[d] = true
		t, err := s.Tree(d)
		if err != nil {
			continue // it is on its way
		}
		for i := range t.Chunks {
			all[t.Chunks[i].Digest] = true
		}
	}
	return all, nil
}

// Once has bring make something that is named by a digest, once at a time; others that want
// the same one wait for it.
func (s *Store) Once(d Digest, done <-chan struct{}, bring func() error) error {
	for {
		s.mu.Lock()
		m := s.under[d]
		if m == nil {
			m = &making{done: make(chan struct{})}
			s.under[d] = m
			s.mu.Unlock()
			m.err = bring()
			s.mu.Lock()
			delete(s.under, d)
			s.mu.Unlock()
			close(m.done)
			return m.err
		}
		s.mu.Unlock()
		select {
		case <-m.done:
			if m.err == nil {
				return nil
			} // else it is tried for this one, too: the other may have been called off
		case <-done:
			return errors.New("called off")
		}
	}
}
