package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gridnode/node/sandbox"
)

// Exit codes of tasks that were not started, as shells and container runtimes use them.
const (
	exitNoStart     = 125
	exitNoExec      = 126
	exitNoCommand   = 127
	exitSignal      = 128 // plus the signal
	pathWithoutPATH = "/usr/local/bin:/usr/bin:/bin"
)

// startError says why a task could not be started.
type startError struct {
	code   int32
	reason string
	err    error // of this machine; nil if it is the task's
}

func (e *startError) Error() string { return e.reason }

// noStart says that this machine cannot start a task.
func noStart(what string, err error) *startError {
	return &startError{exitNoStart, fmt.Sprintf("%s: %v", what, err), err}
}

// lookUp returns the file to execute: name itself if it has a slash, in dir if it
// is relative, else the first executable of that name in PATH of env.
func lookUp(name, dir string, env []string) (string, *startError) {
	if strings.ContainsRune(name, '/') {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, checkExecutable(path, name)
	}
	search := pathWithoutPATH
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = value
			break // the one that getenv finds
		}
	}
	var found *startError // that is no executable
	for _, place := range filepath.SplitList(search) {
		if !filepath.IsAbs(place) {
			place = filepath.Join(dir, place)
		}
		path := filepath.Join(place, name)
		err := checkExecutable(path, name)
		if err == nil {
			return path, nil
		}
		if err.code == exitNoExec && found == nil {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", &startError{code: exitNoCommand, reason: fmt.Sprintf("%s: command not found in PATH=%s", name, search)}
}

func checkExecutable(path, name string) *startError {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &startError{code: exitNoCommand, reason: name + ": command not found"}
	case err != nil:
		return &startError{code: exitNoExec, reason: fmt.Sprintf("%s: %v", name, err)}
	case info.IsDir():
		return &startError{code: exitNoExec, reason: path + ": is a directory"}
	case info.Mode()&0o111 == 0:
		return &startError{code: exitNoExec, reason: path + ": permission denied: the file is not executable"}
	}
	return nil
}

// execute starts the task of spec and returns its process number, which is that of
// its session and process group, too. It must be called from the thread that shall
// outlive the task: with that thread, the kernel kills the process. A task with a plan that has walls or limits is
// started by launch instead.
//
// syscall.ForkExec rather than os/exec: per task, exec.Cmd took 35 µs more CPU time
// in this process, and keeps a goroutine, and often a thread, waiting for each.
//
// tty is the task's end of its terminal, nil if it has none.
func execute(spec *Spec, env []string, null int, tty *os.File, out *output, launch func(*sandbox.Process) (int, error)) (pid int, failed *startError) {
	account := spec.account()
	if account == nil {
		if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
			return 0, noStart("working directory", err)
		}
	}
	stdout, err := out.open(0, account)
	if err != nil {
		return 0, noStart("standard output", err)
	}
	defer syscall.Close(stdout)
	stderr := stdout
	if spec.Stderr != spec.Stdout {
		if stderr, err = out.open(1, account); err != nil {
			return 0, noStart("standard error", err)
		}
		defer syscall.Close(stderr)
	}
	path, failed := spec.find(account)
	if failed != nil {
		return 0, failed
	}
	files := [3]int{null, stdout, stderr}
	if tty != nil {
		fd := int(tty.Fd())
		files = [3]int{fd, fd, fd}
	}
	if spec.Plan != nil && !spec.Plan.Bare() {
		return executeInside(spec, path, env, files, tty != nil, launch)
	}
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Setctty: tty != nil}
	if account != nil {
		sys.Credential = &syscall.Credential{Uid: account.User, Gid: account.Group, Groups: account.Groups}
	}
	pid, err = syscall.ForkExec(path, spec.Args, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   env,
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		Sys:   sys,
	})
	if err != nil {
		return 0, execError(path, err)
	}
	return pid, nil
}

// account returns whom the task runs as, nil for this process's own account.
func (s *Spec) account() *sandbox.Account {
	if s.Plan == nil || s.Plan.Walled() {
		return nil
	}
	return s.Plan.Account
}

// find returns the file to execute, as the task's account sees files: nobody learns here
// what he may not see, and nothing is made on his behalf.
func (s *Spec) find(account *sandbox.Account) (path string, failed *startError) {
	if account == nil {
		return lookUp(s.Args[0], s.Dir, s.Env)
	}
	err := account.Do(func() {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() || syscall.Access(s.Dir, accessExecute) != nil {
			failed = &startError{code: exitNoStart, reason: fmt.Sprintf("working directory %s: there is none that the job's account (number %d) may enter", s.Dir, account.User)}
			return
		}
		path, failed = lookUp(s.Args[0], s.Dir, s.Env)
	})
	if err != nil {
		failed = noStart("become the job's account", err)
	}
	return path, failed
}

// accessExecute is X_OK of access(2).
const accessExecute = 1

// executeInside starts it by its plan.
func executeInside(spec *Spec, path string, env []string, files [3]int, terminal bool, launch func(*sandbox.Process) (int, error)) (int, *startError) {
	if !spec.Plan.Sees(path) {
		return 0, &startError{code: exitNoCommand, reason: fmt.Sprintf("%s: command not found inside the sandbox: %s is not among what guests may read", spec.Args[0], path)}
	}
	pid, err := launch(&sandbox.Process{Path: path, Args: spec.Args, Env: env, Hide: []string{MarkEnv}, Dir: spec.Dir, Files: files, Terminal: terminal})
	var program *sandbox.StartError
	switch {
	case err == nil:
		return pid, nil
	case errors.As(err, &program):
		return 0, execError(path, program.Err)
	}
	return 0, noStart("sandbox", err)
}

// execError tells errors of the file from those of the machine.
func execError(path string, err error) *startError {
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR: // the file was there a moment ago
		return &startError{code: exitNoCommand, reason: path + ": its interpreter was not found"}
	case syscall.ENOEXEC:
		return &startError{code: exitNoExec, reason: path + ": neither a program for this machine nor a script that begins with #!"}
	case syscall.E2BIG:
		return &startError{code: exitNoExec, reason: path + ": arguments and environment are too long"}
	case syscall.EACCES, syscall.EPERM, syscall.ETXTBSY, syscall.ELOOP, syscall.EISDIR:
		return &startError{code: exitNoExec, reason: fmt.Sprintf("%s: %v", path, err)}
	}
	return noStart("start "+path, err)
}
