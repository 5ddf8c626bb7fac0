package testnet

import (
	"strings"
	"testing"

	"gridnode/grid"
)

// TestCheckerSeesViolations feeds the checker what a faulty federation would do.
func TestCheckerSeesViolations(t *testing.T) {
	job := &grid.Job{ID: grid.JobID{Lo: 1}, Resources: grid.Resources{Processors: 3}}
	other := &grid.Job{ID: grid.JobID{Lo: 2}, Resources: grid.Resources{Processors: 3}}
	run := func(j *grid.Job, site int, epoch uint32) *Execution {
		return &Execution{ID: grid.TaskID{Job: j.ID, Epoch: epoch}, Job: j, Site: site}
	}
	task := func(epoch uint32, number int) *Execution {
		gang := grid.TaskID{Job: job.ID, Epoch: epoch}
		g := &grid.Gang{Task: gang, Each: 1, Parts: []grid.GangPart{{Site: "a", Processors: 1}, {Site: "b", Processors: 1}}}
		one := &grid.Job{ID: job.ID, Resources: grid.Resources{Processors: 1}}
		return &Execution{ID: grid.SquadTask(gang, number), Job: one, Squad: &grid.Squad{Gang: g, Part: number}}
	}
	for _, tt := range []struct {
		name string
		do   func(c *Checker)
		want string // part of the violation; empty: none
	}{
		{"a job runs, ends and is done", func(c *Checker) {
			c.acked[job.ID] = true
			c.start(0, run(job, 0, 1))
			c.end(0, run(job, 0, 1))
			c.event(0, 0, &grid.Event{Kind: grid.JobFinished, Job: job})
		}, ""},
		{"two executions one after the other", func(c *Checker) {
			c.start(0, run(job, 0, 1))
			c.end(0, run(job, 0, 1))
			c.start(0, run(job, 1, 2))
			c.end(0, run(job, 1, 2))
		}, ""},
		{"two executions at once", func(c *Checker) {
			c.start(0, run(job, 0, 1))
			c.start(0, run(job, 1, 2))
		}, "2 executions alive"},
		{"placed again while it runs", func(c *Checker) {
			c.start(0, run(job, 0, 1))
			c.event(0, 1, &grid.Event{Kind: grid.JobReplaced, Job: job})
		}, "is to be placed again, and its execution of epoch 1 is alive"},
		{"too many processors", func(c *Checker) {
			c.start(0, run(job, 0, 1))
			c.start(0, run(other, 0, 1))
		}, "on 6 of 5 processors"},
		{"the tasks of a gang", func(c *Checker) {
			for number := range 2 {
				c.start(0, task(1, number))
			}
			for number := range 2 {
				c.end(0, task(1, number))
			}
		}, ""},
		{"tasks of two gangs of a job", func(c *Checker) {
			c.start(0, task(1, 0))
			c.start(0, task(2, 1))
		}, "2 executions alive"},
		{"a task that begins twice", func(c *Checker) {
			c.start(0, task(1, 0))
			c.end(0, task(1, 0))
			c.start(0, task(1, 0))
		}, "begins twice"},
		{"an execution that begins again after a power cut", func(c *Checker) {
			x := run(job, 0, 1)
			x.Lost = true
			c.start(0, x)
			c.end(0, x)
			c.start(0, run(job, 0, 1))
			c.end(0, run(job, 0, 1))
		}, ""},
		{"done twice", func(c *Checker) {
			c.event(0, 0, &grid.Event{Kind: grid.JobFinished, Job: job})
			c.event(0, 0, &grid.Event{Kind: grid.JobRefused, Job: job})
		}, "refused after it was finished"},
		{"runs again after its end", func(c *Checker) {
			c.event(0, 0, &grid.Event{Kind: grid.JobCancelled, Job: job})
			c.start(0, run(job, 1, 2))
		}, "is cancelled and starts again"},
		{"acknowledged and lost", func(c *Checker) { c.acked[job.ID] = true }, "1 acknowledged jobs have not ended"},
		{"left running", func(c *Checker) { c.start(0, run(job, 0, 1)) }, "execution alive after its end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := New(Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []grid.SiteID{"a", "b"} {
				if _, err := n.Add(Member{ID: id, New: func(int) (Site, error) { return &toySite{}, nil }}); err != nil {
					t.Fatal(err)
				}
			}
			c := Check(n, []int64{5, 5}, func(any) (grid.JobID, bool, error) { return grid.JobID{}, false, nil })
			tt.do(c)
			err = c.AtRest()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("violation %v, want %q", err, tt.want)
			}
		})
	}
}
