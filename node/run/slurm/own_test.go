package slurm

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	real "gridnode/test/slurm"
)

// standing waits until a pilot of the site's own is there.
func (b *bench) standing() {
	b.Helper()
	b.until("a pilot stands", func() bool {
		b.Engine.mu.Lock()
		defer b.Engine.mu.Unlock()
		for _, g := range b.glideins {
			if g.lent == nil && g.up() && !g.leaves && !g.until.IsZero() {
				return true
			}
		}
		return false
	})
}

func TestAPilotOfTheSitesOwn(t *testing.T) {
	b := newBench(t, real.Config{Name: "own", Nodes: 2, Processors: 4}, func(c *Config) {
		c.Pilots, c.PilotTime = 6, 20*grid.Minute      // over both nodes
		c.silence, c.turn = 5*grid.Second, time.Minute // a job that has a turn takes it, however slow the machine
		c.linger = time.Hour                           // jobs of the queue are told again after a restart
	})
	b.standing()

	t.Run("small jobs run there at once", func(t *testing.T) {
		before := b.cluster.Run(t, "squeue", "-h", "-t", "all", "-o", "%i")
		var tasks []grid.Task
		for range 40 {
			task := b.task(1, "echo $SLURM_NTASKS $SLURM_JOB_ID; exit 3")
			tasks = append(tasks, task)
			b.Start(task)
		}
		for _, task := range tasks {
			if e := b.end(task); e.Lost || e.Result.ExitCode != 3 || e.Result.Reason != "" || e.Result.End <= e.Result.Start {
				t.Errorf("got %+v", e)
			}
			if out := b.output(task); out != "1 "+before+"\n" {
				t.Errorf("it wrote %q, want the pilot's number %s", out, before)
			}
			b.Acknowledge([]grid.TaskID{task.ID})
		}
		if after := b.cluster.Run(t, "squeue", "-h", "-t", "all", "-o", "%i"); after != before {
			t.Errorf("Slurm has jobs %q, want %q only", after, before)
		}
	})

	t.Run("what does not fit goes to the queue", func(t *testing.T) {
		long, wide := b.task(1, "echo ${SLURM_TASK_PID:+queue}"), b.task(5, "echo $SLURM_NTASKS")
		long.Limit = grid.Hour
		b.Start(long)
		if e := b.end(long); e.Result.ExitCode != 0 || b.output(long) != "queue\n" {
			t.Errorf("the long one: %+v and %q", e, b.output(long))
		}
		b.Start(wide) // beside the pilot there are two processors: it gives way
		if e := b.end(wide); e.Result.ExitCode != 0 || b.output(wide) != "5\n" {
			t.Errorf("the wide one: %+v and %q", e, b.output(wide))
		}
		b.Acknowledge([]grid.TaskID{long.ID, wide.ID})
		b.standing()
	})

	t.Run("cancelled, and at its limit", func(t *testing.T) {
		cancelled, limited := b.task(1, "echo begun; sleep 1000"), b.task(1, "sleep 1000")
		limited.Limit = grid.Second
		b.Start(cancelled)
		b.Start(limited)
		b.until("it runs", func() bool { return b.output(cancelled) != "" })
		b.Kill(grid.Task{ID: cancelled.ID, Cause: "enough"})
		if e := b.end(cancelled); e.Lost || e.Result.Reason != "enough" || e.Result.ExitCode != exitTerm {
			t.Errorf("the one that was cancelled: %+v", e)
		}
		if e := b.end(limited); e.Lost || !strings.Contains(e.Result.Reason, "limit") {
			t.Errorf("the one at its limit: %+v", e)
		}
		b.Acknowledge([]grid.TaskID{cancelled.ID, limited.ID})
	})

	once := filepath.Join(t.TempDir(), "ran")
	count := func() int {
		text, _ := os.ReadFile(once)
		return strings.Count(string(text), "ran")
	}
	t.Run("the daemon restarts", func(t *testing.T) {
		runs, over := b.task(1, "echo ran >>"+once+"; sleep 2; exit 4"), b.task(1, "echo ran >>"+once+"; exit 6")
		pilots := b.cluster.Run(t, "squeue", "-h", "-o", "%i")
		b.Start(runs)
		b.Start(over)
		b.until("both have begun", func() bool { return count() == 2 })
		b.Close()
		b.mu.Lock()
		clear(b.ends)
		b.mu.Unlock()
		running, ended := b.open()
		fresh := slices.DeleteFunc(slices.Clone(ended), func(e run.Ended) bool { return e.ID != runs.ID && e.ID != over.ID })
		if len(running) != 2 || len(fresh) != 0 || len(ended) != 2 {
			t.Fatalf("%d run, %d of them have ended, and %d others, want 2, none, and the two of the queue", len(running), len(fresh), len(ended)-len(fresh))
		}
		for task, code := range map[*grid.Task]int32{&runs: 4, &over: 6} {
			if e := b.end(*task); e.Lost || e.Result.ExitCode != code {
				t.Errorf("got %+v, want %d", e, code)
			}
		}
		b.Acknowledge([]grid.TaskID{runs.ID, over.ID})
		if again := b.cluster.Run(t, "squeue", "-h", "-o", "%i"); again != pilots || count() != 2 {
			t.Errorf("pilots %q, before %q; %d runs of two jobs", again, pilots, count())
		}
		b.standing()
	})

	t.Run("the pilot is killed", func(t *testing.T) {
		task := b.task(1, "echo ran >>"+once+"; sleep 1000")
		b.Start(task)
		b.until("it has begun", func() bool { return count() == 3 })
		b.cluster.Run(t, "scancel", "--me")
		if e := b.end(task); e.Result.ExitCode != exitTerm && !e.Lost {
			t.Errorf("got %+v", e)
		}
		b.Acknowledge([]grid.TaskID{task.ID})
		b.standing()
	})

	t.Run("a shim of it dies", func(t *testing.T) {
		before := b.cluster.Run(t, "squeue", "-h", "-o", "%i")
		var sides [2]grid.Task // one on each node, of which they take all
		for i, processors := range []int64{4, 2} {
			sides[i] = b.task(processors, "echo $SLURMD_NODENAME; exec sleep 3")
			b.Start(sides[i])
		}
		b.until("both have begun", func() bool { return b.output(sides[0]) != "" && b.output(sides[1]) != "" })
		if n := killShims(t, strings.TrimSpace(b.output(sides[1]))); n == 0 || b.output(sides[0]) == b.output(sides[1]) {
			t.Fatalf("killed %d processes on %q, the other task is on %q", n, b.output(sides[1]), b.output(sides[0]))
		}
		if e := b.end(sides[0]); e.Lost || e.Result.ExitCode != 0 {
			t.Errorf("on the other node: %+v", e)
		}
		b.Acknowledge([]grid.TaskID{sides[0].ID})
		if e := b.end(sides[1]); !e.Lost {
			t.Errorf("on that node: %+v, want it lost", e)
		}
		b.Acknowledge([]grid.TaskID{sides[1].ID})
		b.standing()
		if after := b.cluster.Run(t, "squeue", "-h", "-o", "%i"); after == before {
			t.Errorf("pilot %q still stands", after)
		}
	})

	t.Run("and without a daemon it ends", func(t *testing.T) {
		b.Close()
		began := time.Now()
		b.until("no pilot is left", func() bool { return b.cluster.Run(t, "squeue", "-h") == "" })
		t.Log("it ended after", time.Since(began))
		b.open()
	})
}

// killShims kills what a pilot has started on a node, and returns how many processes.
func killShims(t *testing.T, node string) (killed int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		env, _ := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil || !strings.Contains(string(env), nodeEnv+"=") || !strings.Contains(string(env), "SLURMD_NODENAME="+node+"\x00") {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
