package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockFile holds the process ID of the daemon of a home, which keeps it locked.
const lockFile = "daemon.lock"

// errLocked is wrapped by lockHome's error when another daemon has the home.
var errLocked = errors.New("a daemon runs on this home already")

// lockHome takes home for this process. The lock goes with the process, however
// that ends, so a stale file means nothing.
func lockHome(home string) (release func(), err error) {
	path := filepath.Join(home, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock home: %w", err)
	}
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		pid := readPID(file)
		file.Close()
		return nil, fmt.Errorf("%s: %w (process %s): stop it with 'gridnode stop', or choose another home", home, errLocked, pid)
	case err != nil:
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writePID(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// readPID returns the process ID in a lock file, "unknown" if it is not there yet.
func readPID(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}

// awaitUnlock returns when no daemon has the home any more, or with ctx's error.
func awaitUnlock(ctx context.Context, home string) error {
	file, err := os.Open(filepath.Join(home, lockFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { // blocks in the kernel until the daemon is gone; ends with the process at the latest
		defer file.Close()
		for {
			err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH)
			if !errors.Is(err, syscall.EINTR) {
				done <- err
				return
			}
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
