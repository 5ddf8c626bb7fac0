package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"gridnode/grid"
	"gridnode/node/sandbox"
)

// Account is whom a job of this site runs as.
type Account struct {
	sandbox.Account
	Name string
	Home string // empty: it has none
}

// Accounts says whom jobs run as. It does not block for long.
type Accounts struct {
	// Own returns that of a job of this site, by the name of its user; nil for the daemon's
	// own account. Own nil: all are.
	Own func(user string) (*Account, error)

	// Guests is that of programs of other sites, where nothing walls them in; nil: the
	// daemon's own, or the sandbox's.
	Guests *Account
}

// Of returns whom a job runs as at a site; nil: the daemon's own account, or that of its
// sandbox. Modules of other sites are the sandbox's matter.
func (a *Accounts) Of(site grid.SiteID, job *grid.Job) (*Account, error) {
	switch {
	case job.Home == site && a.Own != nil:
		return a.Own(job.User)
	case job.Home != site && !job.IsModule():
		return a.Guests, nil
	}
	return nil, nil
}

// outside returns how the paths begin of what a process has that runs as another account
// than the daemon's: beside the home, which is closed to everybody else. What other sites'
// jobs have lies apart by their homes, as the names of tasks are theirs.
func (f Files) outside(home grid.SiteID, x Process) string {
	if home != f.Site {
		return filepath.Join(f.Shared, foreignDir, string(home), x.Name())
	}
	return filepath.Join(f.Shared, x.Name())
}

// makeOutside makes the directory that it lies in.
func (f Files) makeOutside(home grid.SiteID) error {
	if err := f.makeShared(); err != nil || home == f.Site {
		return err
	}
	for _, dir := range []string{filepath.Join(f.Shared, foreignDir), filepath.Join(f.Shared, foreignDir, string(home))} {
		if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("scratch directories: %w", err)
		}
		if err := os.Chmod(dir, 0o711); err != nil { // whatever the umask says
			return fmt.Errorf("scratch directories: %w", err)
		}
	}
	return nil
}

// SharedInputs returns the directory of copies of what such a job reads.
func (f Files) SharedInputs(id grid.TaskID) string {
	return filepath.Join(f.Shared, TaskName(id)+InputsSuffix)
}

// makeShared makes the directory of those directories: others may pass through it, and list
// and change nothing.
func (f Files) makeShared() error {
	if err := os.Mkdir(f.Shared, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("scratch directories: %w", err)
	}
	info, err := os.Lstat(f.Shared)
	if err != nil {
		return fmt.Errorf("scratch directories: %w", err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("scratch directories: %s is there and not the daemon's own directory: remove it, or choose another one (users.scratch)", f.Shared)
	}
	return os.Chmod(f.Shared, 0o711) // whatever the umask says
}

// makeScratch makes the directory of a process for an account.
func (f Files) makeScratch(home grid.SiteID, dir string, account *Account) error {
	if err := f.makeOutside(home); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of an execution that was lost track of
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.Lchown(dir, int(account.User), int(account.Group))
}

// MakeModules makes the directory of modules, and returns it: where tasks run, too. A shared one
// is where other accounts get at it: who knows the digest of a module can read it.
func (f Files) MakeModules(shared bool) (string, error) {
	if f.Shared == "" || !shared {
		return filepath.Join(f.work(), ModulesDir), nil
	}
	if err := f.makeShared(); err != nil {
		return "", err
	}
	dir := filepath.Join(f.Shared, ModulesDir)
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("modules: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}

// InputsOf returns the directory for copies of what a task of this site reads. If that runs
// as another account the directory is new and the daemon's alone: where a user can put links,
// the daemon does not write. Give hands it over when the copies are there.
func (f Files) InputsOf(task *grid.Task, accounts *Accounts) (string, error) {
	account, err := accounts.Of(f.Site, task.Job)
	if err != nil || account == nil {
		return f.Task(f.Site, task.ID) + InputsSuffix, err
	}
	if err := f.makeShared(); err != nil {
		return "", err
	}
	dir := f.SharedInputs(task.ID)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// Give makes such a directory readable to the account of the job, and to nobody else. It
// blocks for as long as it takes to look at every file.
func (f Files) Give(task *grid.Task, accounts *Accounts) error {
	account, err := accounts.Of(f.Site, task.Job)
	if err != nil || account == nil {
		return err
	}
	return account.Hand(f.SharedInputs(task.ID))
}

// giveTree hands a directory over; what is outside last: until then nobody else gets in.
func giveTree(dir string, user, group int) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			dirs = append(dirs, path)
			return err
		}
		return os.Lchown(path, user, group)
	})
	for _, path := range slices.Backward(dirs) {
		if err == nil {
			err = os.Lchown(path, user, group)
		}
	}
	return err
}

// env sets what a task learns of whom it runs as.
func (a *Account) env(env []string, scratch string) []string {
	for _, setting := range []string{"USER=" + a.Name, "LOGNAME=" + a.Name, "HOME=" + cmp.Or(a.Home, scratch)} {
		env = setEnv(env, setting)
	}
	return env
}
