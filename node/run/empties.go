package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// emptiesMax bounds the directories that lie ready.
const emptiesMax = 256

// emptySuffix ends their names.
const emptySuffix = ".empty"

// empties are scratch directories in which jobs left nothing: they become those of others.
// Making and removing one for each takes longer than running a short job. Only jobs of the
// daemon's own account have them, without walls. Safe for concurrent use.
type empties struct {
	dir string // where they lie, beside the scratch directories of this site's jobs

	mu   sync.Mutex
	free []string // paths
	made int
}

// take makes an empty directory at path of one that lies ready, and reports whether there
// was one.
func (e *empties) take(path string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.free) > 0 {
		err := syscall.Rename(e.free[len(e.free)-1], path) // os.Rename looks first what is there
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false // there is something at path
		}
		e.free = e.free[:len(e.free)-1]
		if err == nil { // else Prune has taken it away
			return true
		}
	}
	return false
}

// give takes the scratch directory of a job that has ended, if nothing is in it and it is as it
// was made.
func (e *empties) give(path string) bool {
	if filepath.Dir(path) != e.dir || !vacant(path) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.free) >= emptiesMax {
		return false
	}
	to := filepath.Join(e.dir, strconv.Itoa(e.made)+emptySuffix)
	e.made++
	if syscall.Rename(path, to) != nil {
		return false
	}
	e.free = append(e.free, to)
	return true
}

// vacant reports whether a path is a directory that only its owner may enter, with nothing in it.
func vacant(path string) bool {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	_, err = dir.Readdirnames(1)
	return err == io.EOF
}
