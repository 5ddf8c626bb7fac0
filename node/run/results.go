package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
)

// What surrounds a scratch directory: NAME.staged is made with what the job brings along and
// becomes the scratch directory when it starts; when it has ended that becomes NAME.results,
// unless it is empty or nobody wants it.
const (
	stagedSuffix  = ".staged"
	ResultsSuffix = ".results"
)

// Staged returns where the files of a process are put before it starts: on the same file
// system as its scratch directory.
func (f Files) Staged(task *grid.Task, number int, accounts Accounts) (dir string, account *Account, err error) {
	x := Process{task.ID, number}
	if account, err = accounts.Of(f.Site, task.Job); err != nil {
		return "", nil, err
	}
	if account == nil {
		return filepath.Join(f.work(), tasksDir, x.Name()+stagedSuffix), nil, nil
	}
	return f.outside(task.Job.Home, x) + stagedSuffix, account, f.makeOutside(task.Job.Home)
}

// Hand gives a directory and all that is in it to an account; what is outside last.
func (a *Account) Hand(dir string) error { return giveTree(dir, int(a.User), int(a.Group)) }

// errNotStaged is why a job with files does not start.
var errNotStaged = errors.New("the files that it brings along are not here")

// adopt makes what was staged for a process its scratch directory.
func (r *Recipe) adopt(task *grid.Task, number int, scratch string) error {
	staged, _, err := r.files.Staged(task, number, r.accounts)
	if err == nil {
		err = os.RemoveAll(scratch) // of an execution that was lost track of
	}
	if err == nil {
		if err = os.Rename(staged, scratch); errors.Is(err, fs.ErrNotExist) {
			_, gone := os.Lstat(staged)
			if gone != nil {
				return errNotStaged
			}
			if err = os.MkdirAll(filepath.Dir(scratch), 0o700); err == nil {
				err = os.Rename(staged, scratch)
			}
		}
	}
	return err
}

// Settle does away with a scratch directory: what is in it is kept as results, on disk, or goes. It
// reports whether there are results.
func Settle(scratch string, keep bool) (left bool, err error) {
	if syscall.Rmdir(scratch) == nil {
		return false, nil
	}
	if !keep {
		return false, os.RemoveAll(scratch)
	}
	results := strings.TrimSuffix(scratch, ScratchSuffix) + ResultsSuffix
	if err := os.RemoveAll(results); err != nil { // of an execution that was lost
		return true, err
	}
	err = os.Rename(scratch, results)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = atomicfile.SyncTree(results)
	}
	return true, err
}

// named finds the file or directory of a process of before a restart, whose name ends with suffix;
// empty if there is none.
func (f Files) named(x Process, suffix string) string {
	name := x.Name() + suffix
	paths := []string{filepath.Join(f.work(), tasksDir, name)}
	if f.Shared != "" {
		paths = append(paths, f.outside(f.Site, x)+suffix)
		guests, _ := filepath.Glob(filepath.Join(f.Shared, foreignDir, "*", name)) // a bad pattern: none
		paths = append(paths, guests...)
	}
	foreign, _ := filepath.Glob(filepath.Join(f.work(), foreignDir, "*", name)) // a bad pattern: none
	for _, path := range append(paths, foreign...) {
		if there(path) {
			return path
		}
	}
	return ""
}

// outputNamed finds how the paths of the outputs of such a process begin.
func (f Files) outputNamed(x Process) string {
	return strings.TrimSuffix(f.named(x, Stdout.Suffix()), Stdout.Suffix())
}

// WithResults returns the tasks of jobs of this site that have results here.
func (f Files) WithResults() (tasks []grid.TaskID) {
	dirs := []string{filepath.Join(f.work(), tasksDir)}
	if f.Shared != "" {
		dirs = append(dirs, f.Shared)
	}
	for _, dir := range dirs {
		paths, _ := filepath.Glob(filepath.Join(dir, "*"+ResultsSuffix)) // a bad pattern: none
		for _, path := range paths {
			if x, err := processOf(strings.TrimSuffix(filepath.Base(path), ResultsSuffix)); err == nil {
				tasks = append(tasks, x.Task)
			}
		}
	}
	return tasks
}
