package store

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Space on the file system. Badger writes through memory maps, and a full disk
// ends the process with SIGBUS: it must not come to that.
const (
	// SpaceMin is the default of Options.SpaceMin.
	SpaceMin = 256 << 20
	// spaceFloor is what the store itself may still need: three memory tables on
	// their way to disk, and a log's next extent. Below it nothing is written.
	spaceFloor = 32 << 20
)

// SpaceError says that the file system is too full. Nothing was written.
type SpaceError struct {
	Dir       string
	Free, Min int64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: %d MiB free on the file system, at least %d MiB needed: make room", e.Dir, e.Free>>20, e.Min>>20)
}

// Free returns the bytes an ordinary user may still write where dir is.
func Free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// room returns a *SpaceError if less than min bytes are free.
func (s *Store) room(min int64) error {
	n, err := s.free(s.dir)
	if err != nil {
		return err
	}
	if n < min {
		return &SpaceError{Dir: s.dir, Free: n, Min: min}
	}
	return nil
}

// Space returns nil if there is room for more jobs, and a *SpaceError if less than
// Options.SpaceMin is free: new submissions are to be refused then, while what runs
// goes on. It costs one system call.
func (s *Store) Space() error {
	if s.options.SpaceMin < 0 {
		return nil
	}
	return s.room(max(s.options.SpaceMin, spaceFloor))
}

// holdBallast keeps Options.Ballast bytes of the disk for the day it is full: if it
// is, they are given up, so that the daemon can start and say what is wrong.
func (s *Store) holdBallast() error {
	path := filepath.Join(s.dir, "ballast")
	n, err := s.free(s.dir)
	if err != nil {
		return err
	}
	if n < spaceFloor || s.options.Ballast == 0 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	if n < spaceFloor+2*s.options.Ballast {
		return nil // keep what there is, take no more
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, s.options.Ballast); err != nil {
		return fmt.Errorf("reserve %d bytes in %s: %w", s.options.Ballast, path, err)
	}
	return nil
}
