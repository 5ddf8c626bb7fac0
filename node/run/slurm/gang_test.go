package slurm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/run"
	real "gridnode/test/slurm"
)

// gang returns a job whose tasks here are two squads, and as what these are started.
func (b *bench) gang(first, second int64, command string) (task grid.Task, squads []grid.Task) {
	task = b.task(first+second, command)
	task.Gang = &grid.Gang{Task: task.ID, Each: 1, Parts: []grid.GangPart{{Site: "here", Processors: first}, {Site: "there", Processors: 1}, {Site: "here", Processors: second}}}
	for _, part := range []int{0, 2} {
		squad := task
		squad.ID, squad.Gang, squad.Squad = grid.SquadTask(task.ID, part), nil, &grid.Squad{Gang: task.Gang, Part: part}
		job := *task.Job
		job.Tasks, job.Processors = task.Gang.Parts[part].Processors, task.Gang.Parts[part].Processors
		squad.Job = &job
		squads = append(squads, squad)
	}
	return task, squads
}

// hold has the processors of a gang held and returns what comes of it.
func (b *bench) hold(task *grid.Task) error {
	b.Helper()
	held := make(chan error, 1)
	b.Hold(task, func(why error) { held <- why })
	var err error
	b.until("it is known whether its processors are held", func() bool {
		select {
		case err = <-held:
			return true
		default:
			return false
		}
	})
	return err
}

// endsOf waits until so many processes have ended, and forgets them.
func (b *bench) endsOf(n int) (codes []int32) {
	b.Helper()
	b.until(fmt.Sprint(n, " processes have ended"), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.squads) >= n
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.squads {
		if e.Lost {
			b.Errorf("got %+v", e)
		}
		codes = append(codes, e.Result.ExitCode)
	}
	clear(b.squads)
	slices.Sort(codes)
	return codes
}

func (b *bench) emptied() {
	b.Helper()
	b.until("Slurm has nothing", func() bool { return b.cluster.Run(b, "squeue", "-h") == "" })
	b.until("nothing is left of it", func() bool {
		left, _ := filepath.Glob(b.orders.path("*", ""))
		return len(left) == 2 // address and key
	})
}

func TestGangsOfThisSite(t *testing.T) {
	b := newBench(t, real.Config{Name: "gang", Nodes: 2, Processors: 2}, func(c *Config) { c.silence = 5 * grid.Second })

	t.Run("all tasks start in one job of Slurm's, on all nodes", func(t *testing.T) {
		task, squads := b.gang(2, 1, "echo $SLURM_JOB_ID $SLURMD_NODENAME; exit $GRIDNODE_RANK")
		if err := b.hold(&task); err != nil {
			t.Fatal(err)
		}
		pilot := b.cluster.Run(t, "squeue", "-h", "-t", "RUNNING", "-o", "%i")
		for i := range squads {
			b.Start(squads[i])
		}
		if codes := b.endsOf(3); !slices.Equal(codes, []int32{0, 1, 3}) {
			t.Errorf("exit codes %v, want those of the ranks", codes)
		}
		nodes := make(map[string]int)
		for i := range squads {
			for number := range squads[i].Squad.Tasks() {
				text := b.outputOf(run.Process{Task: squads[i].ID, Number: number})
				id, node, _ := strings.Cut(strings.TrimSpace(text), " ")
				if nodes[node]++; id != pilot {
					t.Errorf("a task ran in job %q, want %s", id, pilot)
				}
			}
		}
		if nodes["gang1"]+nodes["gang2"] != 3 || len(nodes) != 2 {
			t.Errorf("they ran on %v, want both nodes", nodes)
		}
		b.LetGo(task.ID)
		b.Acknowledge([]grid.TaskID{squads[0].ID, squads[1].ID})
		b.emptied()
	})

	t.Run("found again by another daemon", func(t *testing.T) {
		task, squads := b.gang(1, 1, "echo runs; sleep 3; exit 4")
		if err := b.hold(&task); err != nil {
			t.Fatal(err)
		}
		for i := range squads {
			b.Start(squads[i])
		}
		b.until("both run", func() bool { // one that is noted and not sent yet would be lost
			return b.outputOf(run.Process{Task: squads[0].ID}) != "" && b.outputOf(run.Process{Task: squads[1].ID}) != ""
		})
		b.Close()
		if running, ended := b.open(); len(running) != 2 || len(ended) != 0 {
			t.Errorf("%v run and %v have ended, want the two tasks", running, ended)
		}
		if err := b.hold(&task); err != nil {
			t.Error(err)
		}
		if codes := b.endsOf(2); !slices.Equal(codes, []int32{4, 4}) {
			t.Errorf("exit codes %v", codes)
		}
		b.LetGo(task.ID)
		b.Acknowledge([]grid.TaskID{squads[0].ID, squads[1].ID})
		b.emptied()
	})

	t.Run("a pilot whose job nobody takes up again ends", func(t *testing.T) {
		task, _ := b.gang(1, 1, "true")
		if err := b.hold(&task); err != nil {
			t.Fatal(err)
		}
		b.Close()
		b.open()
		b.emptied()
	})

	t.Run("cancelled, and let go before it has begun", func(t *testing.T) {
		task, squads := b.gang(2, 2, "sleep 1000")
		if err := b.hold(&task); err != nil {
			t.Fatal(err)
		}
		other, _ := b.gang(2, 2, "true")
		b.Hold(&other, func(why error) { t.Errorf("what was let go was told %v", why) }) // there is no room for it
		for i := range squads {
			b.Start(squads[i])
		}
		b.LetGo(other.ID)
		for i := range squads {
			b.Kill(grid.Task{ID: squads[i].ID, Cause: "enough"})
		}
		b.endsOf(4)
		b.LetGo(task.ID)
		b.Acknowledge([]grid.TaskID{squads[0].ID, squads[1].ID})
		b.emptied()
	})

	t.Run("forgotten while Slurm gives it a number", func(t *testing.T) {
		b.submitted(&job{name: "late", settled: true}, "4000000")
		b.emptied()
	})

	t.Run("more than the cluster has", func(t *testing.T) {
		task, _ := b.gang(4, 4, "true")
		if err := b.hold(&task); err == nil || !strings.Contains(err.Error(), "refused by Slurm") {
			t.Errorf("got %v", err)
		}
		b.LetGo(task.ID)
		b.emptied()
	})
}
