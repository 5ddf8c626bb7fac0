package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Store keeps modules by their digests, and what they were compiled to:
//
//	DIR/DIGEST/module.wasm
//	DIR/DIGEST/code/…            by name, as wazero looks for it
//
// What was not used for the longest time goes when the bound is reached. It may be used concurrently.
type Store struct {
	dir  string
	most int64 // bytes of all

	mu    sync.Mutex
	under map[string]*making // by digest
	turn  sync.Mutex         // of compiling
}

// making is a module that is being brought or compiled.
type making struct {
	done chan struct{}
	err  error
}

// ErrRoom is wrapped by errors of a Store that is full of what is in use.
var ErrRoom = errors.New("no room for the module")

const (
	moduleFile = "module.wasm"
	codeDir    = "code"
)

// usedLately is how long what was used is not given up.
const usedLately = 10 * time.Minute

// OpenStore returns the store in a directory, which is made if it is not there. What an
// earlier one has not finished goes.
func OpenStore(dir string, most int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, pattern := range []string{"*.part", "*/*.part"} {
		left, _ := filepath.Glob(filepath.Join(dir, pattern)) // a bad pattern: none
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	}
	return &Store{dir: dir, most: most, under: make(map[string]*making)}, nil
}

// Dir returns the directory of a module: what a process needs to run it.
func (s *Store) Dir(digest string) string { return filepath.Join(s.dir, digest) }

// Files sets what a process needs to run a module: where it is, and its code.
func (s *Store) Files(digest string, c *Config) {
	dir := s.Dir(digest)
	c.Module, c.Code, c.Digest = filepath.Join(dir, moduleFile), filepath.Join(dir, codeDir), digest
}

// Has returns the size of a module that is here, and has it counted as used now.
func (s *Store) Has(digest string) (size int64, ok bool) {
	info, err := os.Stat(filepath.Join(s.Dir(digest), moduleFile))
	if err != nil {
		return 0, false
	}
	now := time.Now()
	_ = os.Chtimes(s.Dir(digest), now, now) // it is taken for older
	return info.Size(), true
}

// Open opens a module that is here.
func (s *Store) Open(digest string) (*os.File, error) {
	return os.Open(filepath.Join(s.Dir(digest), moduleFile))
}

// Put keeps the module that r gives and returns its digest and size. keep says which others are
// needed.
func (s *Store) Put(r io.Reader, keep func(digest string) bool) (digest string, size int64, err error) {
	part, err := os.CreateTemp(s.dir, "put*.part")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(part.Name())
	defer part.Close()
	hash := sha256.New()
	head := &leading{}
	size, err = io.Copy(io.MultiWriter(part, hash, head), io.LimitReader(r, ModuleMax+1))
	if err != nil {
		return "", 0, err
	}
	if size > ModuleMax {
		return "", 0, fmt.Errorf("%w: a module has at most %d bytes", ErrModule, int64(ModuleMax))
	}
	if err := CheckModule(head.bytes); err != nil {
		return "", 0, fmt.Errorf("%w: %w", ErrModule, err)
	}
	digest = hex.EncodeToString(hash.Sum(nil))
	if _, ok := s.Has(digest); ok {
		return digest, size, nil
	}
	if err := s.room(size, keep); err != nil {
		return "", 0, err
	}
	if err := part.Sync(); err != nil {
		return "", 0, err
	}
	return digest, size, s.place(part.Name(), digest)
}

// leading keeps the first bytes that are written.
type leading struct{ bytes []byte }

func (l *leading) Write(b []byte) (int, error) {
	l.bytes = append(l.bytes, b[:min(len(b), 8-len(l.bytes))]...)
	return len(b), nil
}

// place gives a file its place.
func (s *Store) place(path, digest string) error {
	dir := s.Dir(digest)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(path, 0o644); err != nil { // guests have accounts of their own; the home is closed to others
		return err
	}
	return os.Rename(path, filepath.Join(dir, moduleFile))
}

// Bring makes sure that a module is here, compiled: fetch copies it to a path, and checks its
// digest. It blocks until that is done; others that want the same one wait for it.
func (s *Store) Bring(ctx context.Context, digest string, size int64, keep func(digest string) bool, fetch func(path string) error, compiler *Compiler) error {
	for {
		s.mu.Lock()
		m := s.under[digest]
		mine := m == nil
		if mine {
			m = &making{done: make(chan struct{})}
			s.under[digest] = m
		}
		s.mu.Unlock()
		if mine {
			m.err = s.bring(ctx, digest, size, keep, fetch, compiler)
			s.mu.Lock()
			delete(s.under, digest)
			s.mu.Unlock()
			close(m.done)
			return m.err
		}
		select {
		case <-m.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !errors.Is(m.err, context.Canceled) { // if whoever made it has gone, we do
			return m.err
		}
	}
}

func (s *Store) bring(ctx context.Context, digest string, size int64, keep func(digest string) bool, fetch func(path string) error, compiler *Compiler) error {
	if _, ok := s.Has(digest); !ok {
		if err := s.room(size, keep); err != nil {
			return err
		}
		path := filepath.Join(s.dir, digest+".part")
		defer os.Remove(path)
		if err := fetch(path); err != nil {
			return err
		}
		if err := s.place(path, digest); err != nil {
			return err
		}
	}
	return s.compiled(ctx, digest, keep, compiler)
}

// compiled makes sure that there is code of a module, of this version of wazero.
func (s *Store) compiled(ctx context.Context, digest string, keep func(digest string) bool, compiler *Compiler) error {
	var c Config
	s.Files(digest, &c)
	if Ready(c.Code) {
		return nil
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := os.RemoveAll(c.Code); err != nil { // of another version
		return err
	}
	if err := compiler.compile(ctx, c.Module, c.Code); err != nil {
		_ = os.RemoveAll(c.Code)
		return err
	}
	return s.room(0, func(other string) bool { return other == digest || keep(other) })
}

// Ready reports whether there is code in a directory that this program would make no other.
func Ready(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 1 && strings.HasPrefix(entries[0].Name(), codePrefix())
}

// held is a module in the store.
type held struct {
	digest string
	size   int64
	used   time.Time
}

// room gives up what was not used for the longest time, until there are so many bytes.
func (s *Store) room(size int64, keep func(digest string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var list []held
	var sum int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() {
			continue
		}
		h := held{entry.Name(), sizeOf(filepath.Join(s.dir, entry.Name())), info.ModTime()}
		list = append(list, h)
		sum += h.size
	}
	slices.SortFunc(list, func(x, y held) int { return cmp.Or(x.used.Compare(y.used), cmp.Compare(x.digest, y.digest)) })
	for _, h := range list {
		if sum+size <= s.most {
			break
		}
		if time.Since(h.used) < usedLately || s.under[h.digest] != nil || keep(h.digest) {
			continue
		}
		if err := os.RemoveAll(s.Dir(h.digest)); err != nil {
			return err
		}
		sum -= h.size
	}
	if size > 0 && sum+size > s.most {
		return fmt.Errorf("%w: it has %d bytes, and %d of %d (wasm.cache) are taken by modules of jobs that have not ended or were used lately", ErrRoom, size, sum, s.most)
	}
	return nil
}

// sizeOf returns the bytes of all files in a directory.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
