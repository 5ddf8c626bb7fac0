package main

import (
	"errors"
	"fmt"
)

// Exit codes are part of the interface: documented in docs/cli.md, never reused.
// submit --wait and wait exit with the job's own code instead when it has one.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2   // the command line, a script or a setting was wrong
	exitNoDaemon = 3   // no daemon runs on this home, or it went away
	exitNotFound = 4   // no such job, site or output
	exitRefused  = 5   // price, deadline or policy: nobody would have the job
	exitDenied   = 6   // the caller's role does not allow it, or nobody knows who it is
	exitTimeout  = 124 // --timeout passed first
)

const exitCodesHelp = `Exit codes: 0 ok, 1 failed, 2 usage, 3 no daemon, 4 not found, 5 refused,
6 denied, 124 timeout. "submit --wait" and "wait" exit with the job's own code.`

// errWhole is returned by what the client alone cannot do, before anything is read or asked:
// the whole program is started instead.
var errWhole = errors.New("the whole program is wanted")

// exitError ends the program with a code. A nil err means that everything has
// been said already (a job's own exit code).
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failf returns an error that ends the program with code.
func failf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// usagef returns an error about the command line.
func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// exitStatus ends the program with a job's own code and without another word.
func exitStatus(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// exitCode returns the code err stands for: 0 for nil, exitFailed unless it says otherwise.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	}
	return exitFailed
}
