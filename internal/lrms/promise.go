package lrms

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
)

// Reserve promises processors to r from the earliest start on that delays neither
// an earlier promise nor the queue's head, provided that start+r.Estimate <= by
// (grid.Never if it does not matter), with the GPUs that r needs. The promise stands until Commit or Cancel;
// who commits after start gets a job that starts, and so may finish, that much
// later. Errors: ErrInvalid, ErrTooWide, ErrKnown, ErrQueueFull, and TooLate, which
// says when it could have finished; the cluster is then unchanged.
//
// It takes O(log n) plus the number of times the available processors cross
// r.Processors before the start.
func (c *Cluster) Reserve(now grid.Time, r Request, by grid.Time) (start grid.Time, err error) {
	_, start, err = c.reserve(now, r, by, c.cfg.Hold)
	return start, err
}

// Admit is Reserve and Commit in one, for who decides at once: there is no hold to
// plan for. It returns the errors of Reserve.
func (c *Cluster) Admit(now grid.Time, r Request, by grid.Time) (start grid.Time, err error) {
	i, start, err := c.reserve(now, r, by, 0)
	if err == nil {
		c.commit(i)
	}
	return start, err
}

// reserve returns the index of the task that it promises processors to.
func (c *Cluster) reserve(now grid.Time, r Request, by, hold grid.Time) (i int32, start grid.Time, err error) {
	c.advance(now)
	if err := c.accept(r, true); err != nil {
		return -1, 0, err
	}
	if r.GPUs.Count > 0 && c.gpus.Full() {
		return -1, 0, fmt.Errorf("GPUs are promised to %d jobs that wait: %w", gpu.PromisesMax, ErrQueueFull)
	}
	c.layPlan()
	start = c.earliest(&r, hold)
	finish := start.Add(r.Estimate)
	if finish > by || finish > instantMax {
		return -1, 0, TooLate{Finish: finish}
	}
	i = c.tasks.create(task{Request: r})
	c.promise(i, start, hold)
	return i, start, nil
}

// promise promises processors, and GPUs, to a task from start on.
func (c *Cluster) promise(i int32, start, hold grid.Time) {
	r := &c.tasks.slab[i].Request
	c.gpus.promise(c.now, r, start, hold)
	node := c.agenda.create(promise{
		task: i, processors: r.Processors, estimate: r.Estimate,
		start: start, end: max(start, c.now+hold) + r.Estimate, due: start, hold: hold, changes: c.changes,
	})
	t, p := &c.tasks.slab[i], &c.agenda.promises[node]
	t.link, t.state = node, reserved
	c.profile.occupy(p.start, p.end, p.processors)
	if start > c.now {
		c.agenda.insert(node)
	} else {
		t.state = due
		c.held += p.processors
		c.heldFor += p.processors
	}
	c.check()
}

// Commit turns a reservation into a job: it starts as promised or earlier; if its
// start has passed, at the next Schedule. It returns ErrUnknown if there is no
// such reservation (any more); repeating a Commit is no error.
func (c *Cluster) Commit(now grid.Time, id grid.TaskID) error {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if !ok || slices.Contains([]state{queued, parked, lined}, c.tasks.slab[i].state) {
		return fmt.Errorf("commit %s epoch %d: %w", id.Job, id.Epoch, ErrUnknown)
	}
	if t := &c.tasks.slab[i]; t.state != running && t.state != guest && !c.agenda.promises[t.link].committed {
		c.commit(i)
	}
	return nil
}

// commit commits the promise to a task, which was not yet.
func (c *Cluster) commit(i int32) {
	t := &c.tasks.slab[i]
	p := &c.agenda.promises[t.link]
	p.committed = true
	p.due = max(p.start, c.now)
	c.committed++
	c.work.add(t.Request)
	c.gpus.committed(&t.Request)
	if end := p.due + p.estimate; end != p.end {
		c.replan(p, end)
	}
	if t.state == reserved {
		c.agenda.touch(t.link)
		if p.hold > 0 || p.changes != c.changes {
			c.change() // it may start early: it needs no hold any more, or there is new room
		}
	} else {
		c.heldFor -= p.processors
		c.fileOverdue(t.link)
	}
	c.check()
}

// EarliestFor is EarliestStart for a job that may need GPUs, too.
func (c *Cluster) EarliestFor(now grid.Time, r Request) grid.Time {
	if r.GPUs.Count == 0 {
		return c.EarliestStart(now, r.Processors, r.Estimate)
	}
	c.advance(now)
	if r.Processors > c.cfg.Processors || c.FitsGPUs(r.GPUs) != nil {
		return grid.Never
	}
	c.layPlan()
	r.Processors, r.Estimate = max(r.Processors, 1), min(max(r.Estimate, 1), grid.SpanMax)
	return c.earliest(&r, 0)
}

// EarliestStart returns when a job could start at the earliest if it were admitted
// now, and grid.Never if it is wider than the site. It takes as long as Admit.
func (c *Cluster) EarliestStart(now grid.Time, processors int64, span grid.Time) grid.Time {
	c.advance(now)
	if processors > c.cfg.Processors {
		return grid.Never
	}
	c.layPlan()
	return c.profile.earliestFrom(max(processors, 1), min(max(span, 1), grid.SpanMax), now, c.floor())
}

// floor returns the first instant that may be promised: under FCFS what is admitted
// later does not start earlier.
func (c *Cluster) floor() grid.Time {
	if c.cfg.Discipline != FCFS || c.agenda.root < 0 {
		return c.now
	}
	return c.agenda.promises[c.agenda.rightmost()].start
}

// CanFinishBy reports whether a job admitted now could finish by then.
func (c *Cluster) CanFinishBy(now grid.Time, processors int64, span, by grid.Time) bool {
	start := c.EarliestStart(now, processors, span)
	return start != grid.Never && start.Add(span) <= by
}

// NextTimer returns when Schedule has something to do even if nothing is reported
// before: the earliest start of a committed reservation. It is grid.Never if
// there is none.
func (c *Cluster) NextTimer() grid.Time {
	for _, node := range c.overdue {
		if !c.agenda.promises[node].blocked {
			return c.now // no pass has looked at it yet
		}
	}
	if node := c.agenda.firstCommitted(); node >= 0 {
		return c.agenda.promises[node].start
	}
	return grid.Never
}

// fallDue takes the first promise off the agenda, as its start has come: its
// processors are held from now on.
func (c *Cluster) fallDue() {
	node := c.agenda.leftmost()
	c.agenda.remove(node)
	p := &c.agenda.promises[node]
	c.profile.begin(p.start, p.processors)
	c.held += p.processors
	c.tasks.slab[p.task].state = due
	if p.committed {
		c.fileOverdue(node)
	} else {
		c.heldFor += p.processors
	}
}

// fileOverdue enters a committed promise whose start has come, by start.
func (c *Cluster) fileOverdue(node int32) {
	at, _ := slices.BinarySearchFunc(c.overdue, node, func(a, b int32) int {
		if c.agenda.before(a, b) {
			return -1
		}
		return 1
	})
	c.overdue = slices.Insert(c.overdue, at, node)
}

// startOverdue starts committed promises whose start has come, in order of start.
// One that finds too few processors, as a job ran past its estimate, waits; its
// planned end moves with the time.
func (c *Cluster) startOverdue(started []Request) []Request {
	idle := c.cfg.Processors - c.busy - c.heldFor
	waiting := c.overdue[:0]
	for _, node := range c.overdue {
		p := &c.agenda.promises[node]
		if p.processors > idle || !c.gpus.ready(c.now, &c.tasks.slab[p.task].Request) {
			p.blocked = true
			c.replan(p, c.now+1+p.estimate)
			waiting = append(waiting, node)
			continue
		}
		idle -= p.processors
		started = c.keep(node, started)
	}
	c.overdue = waiting
	return started
}

// keep starts the task of a promise.
func (c *Cluster) keep(node int32, started []Request) []Request {
	p := &c.agenda.promises[node]
	i := p.task
	if late := c.now - p.due; late > 0 && p.blocked {
		c.late++
		c.lateMax = max(c.lateMax, late)
	}
	if c.now+p.estimate != p.end {
		c.change()
	}
	c.withdraw(i)
	c.run(i, c.now)
	c.gpus.begin(c.now, &c.tasks.slab[i].Request)
	return append(started, c.tasks.slab[i].Request)
}

// replan moves the end of a promise.
func (c *Cluster) replan(p *promise, end grid.Time) {
	c.change()
	c.profile.extend(p.end, end, p.processors)
	p.end = end
}

// withdraw takes a task's promise away.
func (c *Cluster) withdraw(i int32) {
	t := &c.tasks.slab[i]
	node := t.link
	p := &c.agenda.promises[node]
	if p.committed {
		c.committed--
		c.work.remove(t.Request)
	}
	switch {
	case t.state == reserved:
		c.agenda.remove(node)
	case p.committed:
		c.held -= p.processors
	default:
		c.held -= p.processors
		c.heldFor -= p.processors
	}
	c.profile.vacate(p.start, p.end, p.processors)
	c.agenda.drop(node)
}
