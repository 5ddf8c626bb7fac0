package kept

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"

	"gridnode/grid"
)

// Sum takes in an output as it is read, and says what it has of it. The zero value has none.
type Sum struct {
	hash hash.Hash // nil before the first byte
	size int64
}

// Write takes in what follows. It never fails.
func (s *Sum) Write(b []byte) (int, error) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(b)
	s.size += int64(len(b))
	return len(b), nil
}

// Kept returns what was taken in: the zero value if that is nothing.
func (s *Sum) Kept() (k grid.Kept) {
	if k.Size = s.size; s.hash != nil {
		copy(k.Sum[:], s.hash.Sum(nil))
	}
	return k
}

// Read returns what a log has, or its first bytes, so many at most; most < 0: all.
func Read(path string, most int64) (grid.Kept, error) {
	var sum Sum
	file, err := open(path)
	if err != nil {
		return sum.Kept(), err
	}
	defer file.Close()
	var from io.Reader = file
	if most >= 0 {
		from = io.LimitReader(file, most)
	}
	_, err = io.Copy(&sum, from)
	return sum.Kept(), err
}

// open opens a log. Who writes it may have put something else in its place.
func open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, errors.Join(errNoLog, err))
	}
	return file, nil
}
