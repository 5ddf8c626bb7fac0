package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/testnet/workload"
)

// bench is an engine, and what it has told.
type bench struct {
	*timers
	told []string
}

func newBench(t *testing.T) *bench {
	b := &bench{}
	tally := newLiveTally(make([]workload.Site, 1), 1)
	engine, err := tally.engine(0, grid.Rating{Speed: 1, Bandwidth: 1})(t.Context(), run.Setup{Ended: func(e *run.Ended) {
		b.told = append(b.told, fmt.Sprintf("%d ended lost=%t %s", e.ID.Job.Lo, e.Lost, e.Result.Reason))
	}, Pilots: func(in grid.Input) {
		switch in := in.(type) {
		case *pilot.Up:
			b.told = append(b.told, fmt.Sprintf("pilot %d up", in.Key))
		case *pilot.Down:
			b.told = append(b.told, fmt.Sprintf("pilot %d down", in.Key))
		case *pilot.Over:
			b.told = append(b.told, fmt.Sprintf("pilot %d: %d over after %v %s", in.Key, in.ID.Job.Lo, in.End.Ran, in.End.Reason))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.timers = engine.(*timers)
	return b
}

// expect lets a second pass and compares what was told since the last time.
func (b *bench) expect(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.told, want) {
		t.Errorf("told %q, want %q", strings.Join(b.told, ", "), strings.Join(want, ", "))
	}
	b.told = nil
}

func timedJob(n uint64, span grid.Time) grid.Task {
	return grid.Task{ID: grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1}, Job: &grid.Job{RunTime: span}}
}

// TestTimers: tasks end by themselves, by their limit and by order, once; a pilot ends at
// the limit that was set last, with what it runs.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = grid.Second
		b := newBench(t)
		short, long, cut := timedJob(101, second/2), timedJob(102, grid.Hour), timedJob(103, grid.Hour)
		cut.Limit = 3 * second / 4
		b.Start(short)
		b.Start(short) // a site that restarts may order again
		b.Start(long)
		b.Start(cut)
		b.expect(t, "101 ended lost=false ", "103 ended lost=false time limit")
		b.Kill(short) // its end was told
		long.Cause = "not wanted"
		b.Kill(long)
		b.Kill(timedJob(104, 0))
		b.expect(t, "102 ended lost=false not wanted", "104 ended lost=true ")
		b.Acknowledge([]grid.TaskID{short.ID, long.ID, cut.ID})
		if len(b.own) != 0 {
			t.Errorf("%d tasks are remembered", len(b.own))
		}

		keep := grid.Task{ID: lease.TaskOf(7), Limit: 2 * second, Pilot: grid.Pilot{Key: 7}}
		b.DialPilot(7)
		b.Start(keep)
		b.DialPilot(7)
		first, second1, third := timedJob(1, second/2), timedJob(2, grid.Hour), timedJob(3, grid.Hour)
		for _, task := range []*grid.Task{&first, &second1, &third} {
			b.Launch(7, task)
			b.Launch(8, task) // there is none
		}
		b.expect(t, "pilot 7 down", "pilot 7 up", "pilot 7: 1 over after 500ms ")
		b.Stop(7, second1.ID, "cancelled")
		b.Stop(7, second1.ID, "again")
		b.Forget(7, first.ID)
		keep.Limit = 3 * second / 2
		b.Start(keep) // renewed: until 2.5 s after its begin
		b.expect(t, "pilot 7: 2 over after 1s cancelled")
		b.expect(t, "7 ended lost=false ", "pilot 7 down")
		b.Kill(grid.Task{ID: lease.TaskOf(7), Pilot: grid.Pilot{Key: 7}})
		b.expect(t, "7 ended lost=true ")
		b.Start(timedJob(105, second/2))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b.expect(t)
	})
}
