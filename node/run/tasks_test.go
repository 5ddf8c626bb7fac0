package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
)

// TestTasksAreStartedBesideEachOther: each with its number and all of the input; the first that
// fails ends the command that started them.
func TestTasksAreStartedBesideEachOther(t *testing.T) {
	input := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(input, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, out string
		code      int
		args      []string
	}{
		{"numbers", "0 0 0\n1 1 1\n2 2 2\n", 0, []string{"sh", "-c", "echo $GRIDNODE_RANK $GRIDNODE_LOCAL_RANK $SLURM_PROCID"}},
		{"input", "line\nline\nline\n", 0, []string{"cat"}},
		{"words", "a b  c\na b  c\na b  c\n", 0, []string{"sh", "-c", `echo "$0 $1"`, "a", "b  c"}},
		{"a failure", "", 7, []string{"sh", "-c", "[ $GRIDNODE_RANK = 1 ] && exit 7; sleep 1000"}},
		{"no program", "", 127, []string{"/no/such/program"}},
		{"a word of the shell", "", 127, []string{"exit", "0"}},
		{"killed", "", 137, []string{"sh", "-c", "kill -9 $$"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			in, err := os.Open(input)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			line := tasksCommand(3, tt.args)
			c := exec.CommandContext(ctx, line[0], line[1:]...)
			c.Stdin, c.WaitDelay = in, time.Millisecond // what is left writes to nobody: a shim would end it
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := c.Output()
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			var exit *exec.ExitError
			code := 0
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(string(out), "\n")
			slices.Sort(lines)
			if got := strings.Join(lines, ""); code != tt.code || got != tt.out {
				t.Errorf("code %d and %q, want %d and %q", code, got, tt.code, tt.out)
			}
		})
	}
}

// TestTasksEndAsTheyLikeAtASignal: that what starts them has it, too, ends none of them.
func TestTasksEndAsTheyLikeAtASignal(t *testing.T) {
	dir := t.TempDir()
	line := tasksCommand(2, []string{"sh", "-c", `trap 'echo asked; exit 0' TERM; : >` + dir + `/$GRIDNODE_RANK; while :; do sleep 0.05; done`})
	c := exec.Command(line[0], line[1:]...)
	var out strings.Builder
	c.Stdout, c.SysProcAttr = &out, &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }()
	until(t, "both run", func() bool {
		there, _ := filepath.Glob(dir + "/[01]")
		return len(there) == 2
	})
	if err := syscall.Kill(-c.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || out.String() != "asked\nasked\n" {
		t.Errorf("%v, having written %q", err, out.String())
	}
}

// TestHowOftenACommandIsStarted is the one rule of -n.
func TestHowOftenACommandIsStarted(t *testing.T) {
	job := func(tasks int64, each bool) *grid.Job {
		return &grid.Job{Tasks: tasks, Resources: grid.Resources{Processors: 2 * tasks}, Command: &grid.Command{Args: []string{"x"}, Each: each}}
	}
	r := Recipe{files: Files{Home: t.TempDir()}}
	for _, tt := range []struct {
		job    *grid.Job
		starts int64
		env    []string // some of what it sees
	}{
		{job(3, true), 3, []string{"GRIDNODE_NTASKS=3", "GRIDNODE_NPROCS=2", "GRIDNODE_RANK=0", "GRIDNODE_LOCAL_NTASKS=3", "GRIDNODE_COMPONENTS=1"}},
		{job(1, true), 1, []string{"GRIDNODE_NTASKS=1", "GRIDNODE_NPROCS=2", "GRIDNODE_RANK=0"}},
		{job(3, false), 1, []string{"GRIDNODE_NTASKS=3", "GRIDNODE_NPROCS=6"}},
		{&grid.Job{Tasks: 3}, 1, nil},
	} {
		if got := tt.job.Beside(); got != tt.starts {
			t.Errorf("%d tasks: started %d times, want %d", tt.job.Tasks, got, tt.starts)
		}
		if tt.job.Command == nil {
			continue
		}
		env := r.fixedEnv(&grid.Task{Job: tt.job}, 0, false)
		for _, setting := range tt.env {
			if !slices.Contains(env, setting) {
				t.Errorf("%d tasks: no %s in %q", tt.job.Tasks, setting, env)
			}
		}
		if ranked := slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "GRIDNODE_RANK=") }); ranked != tt.job.Command.Each {
			t.Errorf("%d tasks: a number is said: %v", tt.job.Tasks, ranked)
		}
	}
}
