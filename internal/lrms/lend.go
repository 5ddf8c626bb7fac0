package lrms

import (
	"fmt"

	"gridnode/grid"
)

// Lend takes processors out of the site for another one, as if a task ran on them
// from now on: Ended brings them back, Extend moves their expected return. They
// are lent if they are idle and if no promise needs them within the estimate; what
// the queue would do with them is the caller's concern. Errors: ErrInvalid,
// ErrTooWide, ErrKnown and ErrBusy; the cluster is then unchanged.
func (c *Cluster) Lend(now grid.Time, r Request) error {
	c.advance(now)
	if err := c.accept(r, false); err != nil {
		return err
	}
	laid := c.plan.laid
	if laid {
		c.liftPlan()
	}
	if r.Processors > c.profile.free || c.agenda.size > 0 && c.profile.lasting(r.Processors) < r.Estimate {
		if laid {
			c.layPlan() // without it nobody would notice that the head does not start when it should
		}
		return fmt.Errorf("lend %d processors for %v: %w", r.Processors, r.Estimate, ErrBusy)
	}
	c.change()
	c.run(c.tasks.create(task{Request: r}), now)
	c.check()
	return nil
}

// Extend says that a running task is now expected to end at end, and reports
// whether there is such a task.
func (c *Cluster) Extend(now grid.Time, id grid.TaskID, end grid.Time) bool {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if !ok || c.tasks.slab[i].state != running {
		return false
	}
	t := &c.tasks.slab[i]
	end = min(max(end, t.start+1), instantMax)
	c.change()
	c.profile.extend(t.end, end, t.Processors)
	t.end = end
	c.gpus.extend(&t.Request, end)
	return true
}

// Ends returns when a task that has processors of a site is expected to end; ok is false if
// there is none of that name.
func Ends(c *Cluster, id grid.TaskID) (end grid.Time, ok bool) {
	i, ok := c.tasks.index[id]
	if !ok || c.tasks.slab[i].state != running {
		return 0, false
	}
	return c.tasks.slab[i].end, true
}

// Borrow counts a task as running on processors of another site, which come and
// leave with it, so no queued job can have them. A task that waits or is parked is
// taken out of the queue for it. The site's own width does not matter. Errors:
// ErrInvalid, and ErrKnown if it runs or is promised processors here; the cluster
// is then unchanged.
func (c *Cluster) Borrow(now grid.Time, r Request) error {
	c.advance(now)
	if r.Processors < 1 || r.Processors > ProcessorsMax || r.Estimate < 1 || r.Estimate > grid.SpanMax {
		return fmt.Errorf("borrow %d processors for %d µs: %w", r.Processors, int64(r.Estimate), ErrInvalid)
	}
	if i, ok := c.tasks.index[r.ID]; ok {
		if s := c.tasks.slab[i].state; s != queued && s != parked {
			return fmt.Errorf("%s epoch %d is %s: %w", r.ID.Job, r.ID.Epoch, s, ErrKnown)
		}
		c.Cancel(now, r.ID)
	}
	c.tasks.create(task{Request: r, state: guest, start: now, end: now + r.Estimate})
	c.borrowed += r.Processors
	c.guests++
	return nil
}

// endGuest forgets a guest and the processors it ran on.
func (c *Cluster) endGuest(i int32) {
	c.borrowed -= c.tasks.slab[i].Processors
	c.guests--
	c.tasks.drop(i)
	c.check()
}

// Park takes a job out of the queue and keeps its place, so that others start
// before it while its owner looks elsewhere for processors. It reports whether
// such a job waited.
func (c *Cluster) Park(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if !ok || c.tasks.slab[i].state != queued {
		return false
	}
	t := &c.tasks.slab[i]
	if int(t.link) == c.queue.head {
		c.change()
	}
	t.state = parked
	c.queue.park(int(t.link))
	c.work.remove(t.Request)
	return true
}

// Unpark puts a parked job back where it stood. It reports whether there was one.
func (c *Cluster) Unpark(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if !ok || c.tasks.slab[i].state != parked {
		return false
	}
	t := &c.tasks.slab[i]
	t.state = queued
	c.queue.unpark(int(t.link), waiter{t.Estimate, int32(t.Processors), i})
	c.work.add(t.Request)
	c.change() // it may fit, wherever it stands
	return true
}

// Waiting yields the jobs of the queue in order; not those that are parked or
// promised processors. The body may Cancel the job it is given and Adopt it, and
// must not change the cluster otherwise.
func (c *Cluster) Waiting(yield func(Request) bool) {
	for _, e := range c.queue.entries[min(c.queue.head, len(c.queue.entries)):] {
		if e.processors > 0 && !yield(c.tasks.slab[e.task].Request) {
			return
		}
	}
}

// Processors returns how many the site has.
func (c *Cluster) Processors() int64 { return c.cfg.Processors }

// Demand returns how many processors waiting jobs want: State's Demand without the rest.
func (c *Cluster) Demand() int64 { return c.work.processors }
