//go:build !client

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// detachedLog is where a daemon in the background logs to unless log.file says.
const detachedLog = "log"

// Words before what a daemon tells the process that started it.
const (
	noteWord   = "note " // may come before the others, each on a line
	readyWord  = "ready "
	failedWord = "failed "
)

// startDetached starts a daemon in a session of its own and returns when it is
// ready, or says why it is not.
func startDetached(cmd *cobra.Command, home string) error {
	if _, _, err := loadSettings(home, cmd.Flags()); err != nil {
		return settingsError(err)
	}
	log, err := os.OpenFile(filepath.Join(home, detachedLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer read.Close()
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "--detach") })
	child := exec.Command(self, append(args, "--ready-fd=3")...)
	child.Env = append(os.Environ(), "GRIDNODE_HOME="+home)
	child.Stdout, child.Stderr, child.ExtraFiles = log, log, []*os.File{write}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	write.Close() // only the child may keep the pipe open
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	words, err := io.ReadAll(read)
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	told := string(words)
	for strings.HasPrefix(told, noteWord) {
		var note string
		note, told, _ = strings.Cut(told, "\n")
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cmd.CommandPath(), note[len(noteWord):])
	}
	if line, ok := strings.CutPrefix(told, readyWord); ok {
		fmt.Fprint(cmd.OutOrStdout(), line)
		return child.Process.Release()
	}
	err = child.Wait()
	code := exitFailed
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		code = exit.ExitCode()
	}
	if text, ok := strings.CutPrefix(told, failedWord); ok {
		return failf(code, "%s", strings.TrimRight(text, "\n"))
	}
	return failf(code, "the daemon ended before it was ready: %v; see %s", err, log.Name())
}

// readiness tells whoever started this process whether the daemon is ready.
type readiness struct{ pipe *os.File }

func newReadiness(fd int) *readiness {
	if fd <= 0 {
		return &readiness{}
	}
	syscall.CloseOnExec(fd) // jobs must not keep it open
	return &readiness{os.NewFile(uintptr(fd), "ready")}
}

// line prints what a ready daemon prints, itself or through who started it.
func (r *readiness) line(stdout io.Writer, text string) {
	if r.pipe == nil {
		fmt.Fprintln(stdout, text)
	}
	r.tell(readyWord, text)
}

// note passes on what is wrong though the daemon comes up; nothing if that is empty. Who starts
// it in the foreground sees the log.
func (r *readiness) note(text string) {
	if r.pipe != nil && text != "" {
		_, _ = io.WriteString(r.pipe, noteWord+strings.ReplaceAll(text, "\n", "; ")+"\n") // the starter may be gone
	}
}

// failed passes on why the daemon does not come up. Once line was called, or for a
// nil err, it does nothing.
func (r *readiness) failed(err error) {
	if err != nil {
		r.tell(failedWord, err.Error())
	}
}

func (r *readiness) tell(word, text string) {
	if r.pipe == nil {
		return
	}
	_, _ = io.WriteString(r.pipe, word+text+"\n") // the starter may be gone
	_ = r.pipe.Close()
	r.pipe = nil
}
