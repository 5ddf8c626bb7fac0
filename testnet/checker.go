package testnet

import (
	"fmt"

	"gridnode/grid"
)

// Checker watches a network for violations of what holds at every instant:
//
//   - an acknowledged job ends, and ends once (J-1, J-5, J-6 in spirit: done,
//     failed, cancelled or refused, told once by its home);
//   - a job has at most one execution alive anywhere (J-3), of a co-allocated one all
//     squads are of the same, and no execution or squad begins twice, unless it died with
//     its machine on the processors of a site that is to run the job again;
//   - a job is placed again only once nothing of it is alive (J-9);
//   - executions never need more processors than their site has (P-1).
//
// It keeps something for each job, so it is for runs of bounded length.
type Checker struct {
	n        *Network
	capacity []int64
	used     []int64
	alive    map[grid.JobID]alive
	begun    map[grid.TaskID]bool
	acked    map[grid.JobID]bool
	ended    map[grid.JobID]string
	err      error // the first violation
}

// alive is what occupies processors for a job.
type alive struct {
	execution grid.TaskID // of a co-allocated job as a whole
	count     int         // its squads
}

// Check starts to watch n, whose sites have that many processors. Its Config.Check must
// be the checker's Violation. Of a site's answer refused says whether it is one to a
// submission, of which job, and with which error.
func Check(n *Network, processors []int64, refused func(answer any) (id grid.JobID, submission bool, err error)) *Checker {
	c := &Checker{
		n: n, capacity: processors, used: make([]int64, n.Len()),
		alive: make(map[grid.JobID]alive), begun: make(map[grid.TaskID]bool), acked: make(map[grid.JobID]bool), ended: make(map[grid.JobID]string),
	}
	n.Observe(Observer{
		Start: c.start, End: c.end, Event: c.event,
		Answer: func(now grid.Time, site int, a grid.Answer) {
			if id, submission, err := refused(a.Value); submission && err == nil {
				c.acked[id] = true
			}
		},
	})
	return c
}

// Violation returns the first one.
func (c *Checker) Violation(grid.Time) error { return c.err }

// Violated notes what another watcher has found; the first counts.
func (c *Checker) Violated(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("invariant violated: "+format, args...)
	}
}

func (c *Checker) start(now grid.Time, x *Execution) {
	id := x.Job.ID
	execution := x.ID
	if x.Squad != nil {
		execution = x.Squad.Gang.Task
	}
	a := c.alive[id]
	if a.count++; a.count > 1 && (x.Squad == nil || a.execution != execution) {
		c.Violated("job %s has %d executions alive, with epoch %d, and with epoch %d at %s", id, a.count, a.execution.Epoch, execution.Epoch, c.n.ID(x.Site))
	}
	a.execution = execution
	c.alive[id] = a
	if c.begun[x.ID] {
		c.Violated("job %s begins twice with epoch %d, the second time at %s", id, x.ID.Epoch, c.n.ID(x.Site))
	}
	c.begun[x.ID] = true
	if outcome, over := c.ended[id]; over {
		c.Violated("job %s is %s and starts again with epoch %d at %s", id, outcome, x.ID.Epoch, c.n.ID(x.Site))
	}
	if c.used[x.Site] += x.Job.Processors; c.used[x.Site] > c.capacity[x.Site] {
		c.Violated("site %s runs jobs on %d of %d processors", c.n.ID(x.Site), c.used[x.Site], c.capacity[x.Site])
	}
}

func (c *Checker) end(now grid.Time, x *Execution) {
	c.used[x.Site] -= x.Job.Processors
	if x.Lost && x.Pilot.Key == 0 && x.Squad == nil {
		delete(c.begun, x.ID)
	}
	a := c.alive[x.Job.ID]
	if a.count--; a.count == 0 {
		delete(c.alive, x.Job.ID)
		return
	}
	c.alive[x.Job.ID] = a
}

func (c *Checker) event(now grid.Time, site int, e *grid.Event) {
	switch e.Kind {
	case grid.JobFinished, grid.JobRefused, grid.JobCancelled:
		if before, over := c.ended[e.Job.ID]; over {
			c.Violated("job %s is %s after it was %s", e.Job.ID, e.Kind, before)
		}
		c.ended[e.Job.ID] = e.Kind.String()
	case grid.JobReplaced:
		if a, lives := c.alive[e.Job.ID]; lives {
			c.Violated("job %s is to be placed again, and its execution of epoch %d is alive", e.Job.ID, a.execution.Epoch)
		}
	}
}

// Used returns on how many of a site's processors jobs run.
func (c *Checker) Used(site int) int64 { return c.used[site] }

// Acknowledged returns how many jobs sites have acknowledged.
func (c *Checker) Acknowledged() int { return len(c.acked) }

// AtRest returns what is violated once every job must have ended.
func (c *Checker) AtRest() error {
	if c.err != nil {
		return c.err
	}
	lost := 0
	for id := range c.acked {
		if _, over := c.ended[id]; !over {
			lost++
		}
	}
	if lost > 0 {
		c.Violated("%d acknowledged jobs have not ended", lost)
	}
	for id := range c.alive {
		c.Violated("job %s has an execution alive after its end", id)
	}
	return c.err
}
