package lrms

import "gridnode/grid"

// Schedule makes one scheduling pass and appends to started the requests that
// start now, in the order in which they start. They count as running from now on.
//
// A pass that starts nothing takes O(log n). When nothing made room since the
// last pass, it looks only at the jobs submitted since. Otherwise it searches
// the queue and the promises by width class and estimate; only jobs that share
// the class of the free processors and do not fit are looked at in vain.
func (c *Cluster) Schedule(now grid.Time, started []Request) []Request {
	c.advance(now)
	if len(c.line) > 0 {
		c.callUp()
	}
	if len(c.overdue) > 0 {
		started = c.startOverdue(started)
	}
	if c.planner != nil {
		c.arrange()
	}
	started = c.startHead(started)
	room := c.changes != c.seen
	c.seen = c.changes
	if (room || c.cfg.Discipline == FCFS) && c.committed > 0 {
		// Under FCFS a promise may lie later than where there was room.
		started = c.startEarly(started)
	}
	if c.cfg.Discipline != FCFS && c.queue.size > 1 {
		started = c.backfill(started, room)
	}
	c.recent = 0
	c.check()
	return started
}

// startHead starts jobs from the head of the queue until one does not fit.
func (c *Cluster) startHead(started []Request) []Request {
	for c.queue.size > 0 {
		if c.plan.valid && c.plan.start > c.now {
			break // it did not fit when it was planned, and nothing has changed
		}
		c.liftPlan()
		e := c.queue.entries[c.queue.head]
		if int64(e.processors) > c.profile.free || e.estimate > c.reach(int64(e.processors)) {
			break
		}
		started = c.startQueued(c.queue.head, started)
	}
	return started
}

// backfill starts queued jobs behind the head that end by the head's planned
// start, or leave it enough processors then, and that break no promise. Without
// room made since the last pass only the jobs submitted since can fit: the others
// were looked at, and time alone makes no room.
func (c *Cluster) backfill(started []Request, room bool) []Request {
	at := c.queue.head + 1
	if !room {
		at = max(at, len(c.queue.entries)-c.recent)
	}
	if at >= len(c.queue.entries) || c.profile.free <= 0 {
		return started
	}
	if c.agenda.size > 0 {
		c.layPlan()
	} else if !c.plan.valid {
		c.makePlan()
	}
	var w window
	c.look(&w)
	for {
		at = c.queue.next(at, &w)
		if at < 0 {
			return started
		}
		e := c.queue.entries[at]
		if e.estimate <= c.reach(int64(e.processors)) && int64(e.processors) <= c.profile.free {
			started = c.startQueued(at, started)
			if !c.plan.laid && c.now+e.estimate > c.plan.start {
				c.plan.extra -= int64(e.processors)
			}
			if c.queue.size <= 1 {
				return started
			}
			c.look(&w)
		}
		at++
	}
}

// startQueued starts the job at a position of the queue.
func (c *Cluster) startQueued(at int, started []Request) []Request {
	i := c.queue.entries[at].task
	c.queue.remove(at)
	c.run(i, c.now)
	r := c.tasks.slab[i].Request
	c.work.remove(r)
	return append(started, r)
}

// nextEarly returns the next committed promise to try ahead of its time, after a
// position in the agenda, or -1: under FCFS the first of all, else one that may fit.
func (c *Cluster) nextEarly(start grid.Time, seq uint64, w *window) int32 {
	if c.cfg.Discipline == FCFS {
		return c.agenda.firstCommitted()
	}
	return c.agenda.next(c.agenda.root, start, seq, c.agenda.first, c.now, w)
}

// startEarly starts committed promises ahead of their time, in order of promised
// start, where that delays neither a promise nor the head.
func (c *Cluster) startEarly(started []Request) []Request {
	c.layPlan()
	var w window
	c.look(&w)
	start, seq := c.now, uint64(0)
	for w.widths > 0 {
		node := c.nextEarly(start, seq, &w)
		if node < 0 {
			break
		}
		p := &c.agenda.promises[node]
		start, seq = p.start, p.seq
		fits := p.processors <= c.profile.free && c.reach(p.processors) >= min(p.estimate, p.start-c.now) && c.gpus.ready(c.now, &c.tasks.slab[p.task].Request)
		if !fits && c.cfg.Discipline == FCFS {
			break
		}
		if fits {
			started = c.keep(node, started)
			started = c.startHead(started) // the promise left room where it stood
			c.layPlan()
			c.look(&w)
		}
	}
	return started
}
