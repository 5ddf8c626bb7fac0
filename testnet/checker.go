package testnet

import (
	"fmt"

	"gridnode/grid"
)

// checker watches a network for violations of what holds at every instant:
//
//   - an acknowledged job ends, and ends once (J-1, J-5, J-6 in spirit: done,
//     failed, cancelled or refused, told once by its home);
//   - a job has at most one execution alive anywhere (J-3);
//   - executions never need more processors than their site has (P-1).
//
// It keeps something for each job, so it is for runs of bounded length.
type checker struct {
	n        *Network
	capacity []int64
	used     []int64
	alive    map[grid.JobID]int // executions
	acked    map[grid.JobID]bool
	ended    map[grid.JobID]string
	err      error // the first violation
}

// check starts to watch n. Its Config.Check must be the checker's violation.
func check(n *Network, sites []described, refused func(answer any) (id grid.JobID, submission bool, err error)) *checker {
	c := &checker{
		n: n, used: make([]int64, n.Len()),
		alive: make(map[grid.JobID]int), acked: make(map[grid.JobID]bool), ended: make(map[grid.JobID]string),
	}
	for _, s := range sites {
		c.capacity = append(c.capacity, s.processors)
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

// violation returns the first one.
func (c *checker) violation(grid.Time) error { return c.err }

func (c *checker) violated(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("invariant violated: "+format, args...)
	}
}

func (c *checker) start(now grid.Time, x *Execution) {
	id := x.Job.ID
	if c.alive[id]++; c.alive[id] > 1 {
		c.violated("job %s has %d executions alive, the last with epoch %d at %s", id, c.alive[id], x.ID.Epoch, c.n.members[x.Site].ID)
	}
	if outcome, over := c.ended[id]; over {
		c.violated("job %s is %s and starts again with epoch %d at %s", id, outcome, x.ID.Epoch, c.n.members[x.Site].ID)
	}
	if c.used[x.Site] += x.Job.Processors; c.used[x.Site] > c.capacity[x.Site] {
		c.violated("site %s runs jobs on %d of %d processors", c.n.members[x.Site].ID, c.used[x.Site], c.capacity[x.Site])
	}
}

func (c *checker) end(now grid.Time, x *Execution) {
	c.used[x.Site] -= x.Job.Processors
	if c.alive[x.Job.ID]--; c.alive[x.Job.ID] == 0 {
		delete(c.alive, x.Job.ID)
	}
}

func (c *checker) event(now grid.Time, site int, e *grid.Event) {
	switch e.Kind {
	case grid.JobFinished, grid.JobRefused, grid.JobCancelled:
		if before, over := c.ended[e.Job.ID]; over {
			c.violated("job %s is %s after it was %s", e.Job.ID, e.Kind, before)
		}
		c.ended[e.Job.ID] = e.Kind.String()
	}
}

// atRest returns what is violated once every job must have ended.
func (c *checker) atRest() error {
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
		c.violated("%d acknowledged jobs have not ended", lost)
	}
	for id, n := range c.alive {
		if n > 0 {
			c.violated("job %s has an execution alive after its end", id)
		}
	}
	return c.err
}
