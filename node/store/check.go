package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Check opens the Badger directory dir, reads every record and closes it, and
// writes what is wrong to stderr. It returns 0 if all is well and 1 if not; or it
// does not return, which says the same. A program runs it as a child (see
// Options.Check), as nothing else survives what Badger does on some damaged files.
func Check(dir string) int {
	if err := check(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func check(dir string) error {
	e, err := openEngine(dir, false, nil)
	if err != nil {
		return err
	}
	if _, err := e.sequence(); err != nil {
		return err
	}
	records, failed := e.all(nil)
	for range records {
	}
	if err := failed(); err != nil {
		return err
	}
	return e.close()
}

// checkInChild runs command with dir as last argument. It returns what was wrong
// with dir, if anything, and an error if the command could not be run.
func checkInChild(command []string, dir string) (damage, err error) {
	var output limited
	c := exec.Command(command[0], append(command[1:len(command):len(command)], dir)...)
	c.Stderr = &output
	err = c.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil, nil
	case !ended:
		return nil, fmt.Errorf("check %s in a child process: %w", dir, err)
	}
	return fmt.Errorf("%s cannot be used by Badger (%s): %s", dir, exit, firstLine(output.Bytes())), nil
}

// limited keeps the first 64 KiB written to it: a Go panic prints much more.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 64<<10 - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

var _ io.Writer = (*limited)(nil)
