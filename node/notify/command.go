package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"gridnode/node/run"
	"gridnode/node/site"
)

const (
	tailMax = 1 << 10 // bytes of what a failed command wrote that are logged
	textMax = 1 << 10 // bytes of one thing that a command is told of its job
)

// failure is the end of a command that has run.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// run runs the command of a job that is over. The error is a *failure if the command has run.
func (c *Caller) run(ctx context.Context, v *site.View) error {
	if v.Start < v.End {
		home, cancel := context.WithTimeout(ctx, homeMax)
		c.Home(home, v.Job.ID)
		cancel()
	}
	account, err := c.Account(v.Job)
	if err != nil {
		return fmt.Errorf("account of %s: %w", v.Job.User, err)
	}
	late, cancel := context.WithTimeout(ctx, c.Span)
	defer cancel()
	dirs := []string{"/"} // the first that its owner can enter, from the end
	if account != nil && account.Home != "" {
		dirs = append(dirs, account.Home)
	}
	if v.Job.Command != nil && v.Job.Command.Dir != "" {
		dirs = append(dirs, v.Job.Command.Dir)
	}
	last := &tail{}
	runtime.LockOSThread() // the command ends with the thread that starts it
	defer runtime.UnlockOSThread()
	var cmd *exec.Cmd
	for _, dir := range slices.Backward(dirs) {
		cmd = command(late, v.Job.Terms.Notify, account, last)
		cmd.Dir, cmd.Env = dir, run.OwnerEnv(account, c.facts(ctx, v))
		if err = cmd.Start(); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	for err = syscall.EINTR; err == syscall.EINTR; { // it keeps its number, and so that of its group
		err = unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left behind
	err = cmd.Wait()
	switch {
	case late.Err() != nil && ctx.Err() == nil:
		return &failure{fmt.Errorf("ended after %v: %s", c.Span, last)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return &failure{fmt.Errorf("%w: %s", err, last)}
	}
	return nil
}

// command returns a command line of a shell, which ends with all its group when ctx does.
func command(ctx context.Context, line string, account *run.Account, output io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: account.User, Gid: account.Group, Groups: account.Groups}
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // for what is no more of its group and holds its output open
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// facts tells a command about its job.
func (c *Caller) facts(ctx context.Context, v *site.View) []string {
	where := ""
	if v.Site != "" {
		where = c.Name(ctx, v.Site)
	}
	return []string{
		"GRIDNODE_JOB_ID=" + v.Job.ID.String(),
		"GRIDNODE_JOB_NAME=" + plain(v.Job.Name),
		"GRIDNODE_JOB_NUMBER=" + strconv.FormatUint(v.Job.Number, 10),
		"GRIDNODE_JOB_STATE=" + v.State.String(),
		"GRIDNODE_JOB_EXIT_CODE=" + strconv.Itoa(int(v.Result.ExitCode)),
		"GRIDNODE_JOB_SITE=" + plain(where),
		"GRIDNODE_JOB_REASON=" + plain(v.Reason),
	}
}

// plain returns what can be printed of the beginning of a text that may be another site's.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text[:min(len(text), textMax)])
}

// tail is a writer that keeps the last that was written.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b[max(len(b)-tailMax, 0):]...)
	t.text = t.text[max(len(t.text)-tailMax, 0):]
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?")) }
