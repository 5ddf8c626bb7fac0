package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/pilot"
	"gridnode/node/run"
	real "gridnode/test/slurm"
)

// heard returns the inputs of one type that were told, and forgets them.
func heard[T grid.Input](b *bench) (all []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = slices.DeleteFunc(b.told, func(in grid.Input) bool {
		t, yes := in.(T)
		if yes {
			all = append(all, t)
		}
		return yes
	})
	return all
}

// lend starts the pilot of a lease, and returns once it is there.
func (b *bench) lend(key uint64, processors int64, limit grid.Time) grid.Task {
	b.Helper()
	task := grid.Task{ID: lease.TaskOf(key), Limit: limit, Until: b.now() + grid.Hour, Processors: processors, Pilot: grid.Pilot{Site: "there", Key: key}}
	b.Start(task)
	b.dial(key)
	return task
}

// dial waits until a pilot is there, and returns what it has. Told that it is not, it asks again, as
// a keeper does whose borrower does.
func (b *bench) dial(key uint64) (up *pilot.Up) {
	b.Helper()
	b.DialPilot(key)
	b.until("the pilot is there", func() bool {
		if ups := heard[*pilot.Up](b); len(ups) > 0 {
			up = ups[0]
		}
		if downs := heard[*pilot.Down](b); up == nil && len(downs) > 0 {
			b.DialPilot(key)
		}
		return up != nil
	})
	if up.Key != key {
		b.Errorf("pilot %d is there, want %d", up.Key, key)
	}
	return up
}

// overs waits for the ends of so many processes under leases.
func (b *bench) overs(n int) (all []*pilot.Over) {
	b.Helper()
	b.until(fmt.Sprint(n, " processes have ended"), func() bool {
		all = append(all, heard[*pilot.Over](b)...)
		return len(all) >= n
	})
	return all
}

func TestPilotsOfLeases(t *testing.T) {
	b := newBench(t, real.Config{Name: "lent", Nodes: 2, Processors: 2}, func(c *Config) { c.silence = grid.Second })
	home := b.lend(7, 3, 10*grid.Minute) // two on one node, one on the other

	t.Run("a squad runs on all nodes", func(t *testing.T) {
		task := b.task(3, "echo $SLURMD_NODENAME; exit $GRIDNODE_LOCAL_RANK")
		gang := &grid.Gang{Task: task.ID, Each: 1, Parts: []grid.GangPart{{Site: "here", Processors: 3}}}
		task.ID, task.Job.Home, task.Squad = grid.SquadTask(task.ID, 0), "here", &grid.Squad{Gang: gang}
		b.Launch(7, &task)
		var codes []int32
		for _, over := range b.overs(3) {
			codes = append(codes, over.End.ExitCode)
			if over.Key != 7 || over.ID != task.ID || over.End.Lost {
				t.Errorf("got %+v", over)
			}
		}
		if slices.Sort(codes); !slices.Equal(codes, []int32{0, 1, 2}) {
			t.Errorf("exit codes %v", codes)
		}
		nodes := make(map[string]int)
		for number := range 3 {
			text, _ := os.ReadFile(filepath.Join(b.PilotDir(7), run.Process{Task: task.ID, Number: number}.Name()+run.Stdout.Suffix()))
			nodes[strings.TrimSpace(string(text))]++
		}
		if nodes["lent1"]+nodes["lent2"] != 3 || len(nodes) != 2 {
			t.Errorf("it ran on %v, want both nodes", nodes)
		}
		b.Forget(7, task.ID)
	})

	t.Run("stopped, and found again by another daemon, later than a pilot of the site's own waits", func(t *testing.T) {
		stopped, goes := b.task(1, "sleep 1000"), b.task(2, "sleep 2; exit 4")
		b.Launch(7, &stopped)
		b.Launch(7, &goes)
		b.Stop(7, stopped.ID, "enough")
		if over := b.overs(1)[0]; over.ID != stopped.ID || over.End.Reason != "enough" {
			t.Errorf("got %+v", over)
		}
		b.Forget(7, stopped.ID)
		b.Close()
		closed := time.Now()
		b.until("the task has ended, and a pilot of the site's own would have", func() bool { return time.Since(closed) > 5*time.Second })
		if running, ended := b.open(); len(running) != 1 || running[0].Task != home.ID || len(ended) != 0 {
			t.Errorf("%v run and %v have ended, want the pilot only", running, ended)
		}
		b.Start(home)
		if up := b.dial(7); len(up.Tasks) != 1 || up.Tasks[0].ID != goes.ID {
			t.Errorf("it has %v", up.Tasks)
		}
		if over := b.overs(1)[0]; over.ID != goes.ID || over.End.ExitCode != 4 {
			t.Errorf("got %+v", over)
		}
	})

	t.Run("given back", func(t *testing.T) {
		b.Kill(grid.Task{ID: home.ID, Cause: "the lease is over"})
		if e := b.end(home); e.Lost || e.Result.Reason != "the lease is over" {
			t.Errorf("got %+v", e)
		}
		b.Acknowledge([]grid.TaskID{home.ID})
		b.until("Slurm has it no more", func() bool { return b.cluster.Run(t, "squeue", "-h") == "" })
		if left, _ := filepath.Glob(b.orders.path("*", "")); len(left) != 2 { // address and key
			t.Errorf("left in the work directory: %v", left)
		}
		if _, err := os.Stat(b.PilotDir(7)); err == nil {
			t.Error("its directory is left")
		}
	})

	t.Run("it ends with its lease, without a daemon", func(t *testing.T) {
		b.lend(8, 2, 20*grid.Second)
		task := b.task(1, "sleep 1000")
		b.Launch(8, &task)
		b.Close()
		began := time.Now()
		b.until("no pilot is left", func() bool { return b.cluster.Run(t, "squeue", "-h") == "" })
		t.Log("it ended after", time.Since(began))
		if _, ended := b.open(); len(ended) != 0 {
			t.Errorf("%v ended, before Slurm was asked", ended)
		}
		b.end(grid.Task{ID: lease.TaskOf(8)})
	})

	t.Run("one that Slurm begins too late is of no use", func(t *testing.T) {
		b.cluster.Run(t, "sbatch", "-n", "4", "-o", "/dev/null", "--wrap", "sleep 1000")
		b.until("it runs", func() bool { return b.cluster.Run(t, "squeue", "-h", "-t", "R") != "" })
		b.Start(grid.Task{ID: lease.TaskOf(9), Limit: 2 * grid.Second, Processors: 1, Pilot: grid.Pilot{Site: "there", Key: 9}})
		b.end(grid.Task{ID: lease.TaskOf(9)})
		if left := strings.Count(b.cluster.Run(t, "squeue", "-h"), "\n") + 1; left != 1 {
			t.Errorf("%d jobs in Slurm, want that of another user", left)
		}
	})
}
