package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrLocked is wrapped by what Open returns while another process, or another
// Store of this one, has the directory open.
var ErrLocked = errors.New("store is in use")

// lock takes dir for this process until the file is closed, or the process ends.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "LOCK")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if err == syscall.EWOULDBLOCK {
			return nil, fmt.Errorf("%w: %s is open in %s: stop that daemon, or use another home", ErrLocked, dir, holder(path))
		}
		return nil, fmt.Errorf("lock store %s: %w", dir, err)
	}
	if err = file.Truncate(0); err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return file, nil
}

// unlock gives the directory up. Closing the file would not do: a child that was
// forked, but has not yet closed its copy, would go on holding the lock.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// holder describes the process that wrote its number into the lock file.
func holder(path string) string {
	content, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(content))
	if err != nil || pid == "" {
		return "another process"
	}
	command, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || len(command) == 0 {
		return "process " + pid
	}
	words := strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")
	return fmt.Sprintf("process %s (%.100s)", pid, words)
}
