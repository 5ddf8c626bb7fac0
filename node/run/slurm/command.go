package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// commandMax is how long one of Slurm's commands may take. They try for about ten seconds
// to reach a controller that does not answer.
const commandMax = 30 * time.Second

// outputMax bounds what a command may print: about 200,000 jobs in a queue.
const outputMax = 32 << 20

// errTrouble means that the cluster did not answer: nothing is known of what was asked for.
var errTrouble = errors.New("the Slurm cluster does not answer")

// refusal is what Slurm says about what it does not do.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// commands runs Slurm's commands.
type commands struct{ env []string }

// newCommands returns them with an environment in which nothing changes what they do or
// print: times are in UTC, and no option comes from a variable.
func newCommands() commands {
	env := []string{"TZ=UTC", "LANG=C"}
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "SLURM_JWT", "SLURM_CONF_SERVER", "LD_LIBRARY_PATH", "MUNGE_SOCKET":
			env = append(env, setting)
		}
	}
	return commands{env}
}

// run runs a command with input and returns what it printed. An error is errTrouble, a
// *refusal, or says that the command cannot be run.
func (c commands) run(ctx context.Context, input, name string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = c.env, strings.NewReader(input)
	// A terminal's Ctrl-C is for the daemon. What outlives that might yet reach a controller that
	// does not answer now, when the next daemon has looked and found nothing.
	runtime.LockOSThread() // the command ends with the thread that starts it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	var out, complaint bounded
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	stdout, stderr = out.String(), strings.TrimSpace(complaint.String())
	switch {
	case err == nil && out.cut:
		return "", "", fmt.Errorf("%w: %s printed more than %d bytes", errTrouble, name, outputMax)
	case err == nil:
		return stdout, stderr, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", "", fmt.Errorf("%s is not on the PATH: engine: slurm needs Slurm's commands on this machine", name)
	case ctx.Err() != nil:
		return "", "", fmt.Errorf("%w: %s: %w", errTrouble, name, ctx.Err())
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case !exited:
		return "", "", fmt.Errorf("%s: %w", name, err)
	case exit.ExitCode() < 0: // by a signal: what it has done nobody knows
		return "", "", fmt.Errorf("%w: %s: %w", errTrouble, name, err)
	}
	return stdout, stderr, complaintOf(stderr)
}

// troubles are parts of what commands say when the controller, or what it needs, is down.
// The texts are those of Slurm's error numbers, which are the same in all versions.
var troubles = []string{
	"Unable to contact slurm controller", "Socket timed out", "Connection refused", "Transport endpoint is not connected", "Zero Bytes were transmitted",
	"Connection timed out", "No route to host", "Slurm temporarily unable to accept job", "in standby mode", "Insane message length", "Unexpected message received",
	"Resource temporarily unavailable", "Connection reset by peer", "Communication connection failure", "shutdown failure", "Message receive failure",
	"Unable to establish controller machine", "Slurm backup controller",
}

// complaintOf turns what a command said into an error.
func complaintOf(stderr string) error {
	for _, part := range troubles {
		if strings.Contains(strings.ToLower(stderr), strings.ToLower(part)) {
			return fmt.Errorf("%w: %s", errTrouble, lastLine(stderr))
		}
	}
	return &refusal{lastLine(stderr)}
}

// lastLine returns the last line that says something, without the command's name.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if strings.HasPrefix(last, "Try ") && len(lines) > 1 {
		last = strings.TrimSpace(lines[len(lines)-2])
	}
	for _, prefix := range []string{"sbatch: ", "squeue: ", "scontrol: ", "sacct: ", "scancel: ", "sinfo: ", "error: "} {
		last = strings.TrimPrefix(last, prefix)
	}
	if len(last) > 240 {
		last = strings.ToValidUTF8(last[:240], "")
	}
	if last == "" {
		return "it gave no reason"
	}
	return last
}

// bounded keeps the first outputMax bytes.
type bounded struct {
	bytes.Buffer
	cut bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := outputMax - b.Len(); len(p) > room {
		b.cut = true
		b.Buffer.Write(p[:room])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
