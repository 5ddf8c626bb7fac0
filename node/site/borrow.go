package site

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// pool is the processors of a borrowed lease. They run jobs of this site's queue as
// its own do; a job is either on own processors or on those of one lease.
type pool struct {
	id    lease.ID
	used  int64
	tasks []guest // in order of their IDs
	over  bool    // no job is started there any more

	matched bool // the matchmaker borrowed it for one job, and releases it
}

// guest is a job of this site that runs on borrowed processors.
type guest struct {
	id         grid.TaskID
	processors int64
}

// limbo is an execution whose lease has ended without the lender's word that
// nothing is left of it.
type limbo struct {
	id grid.TaskID
	at grid.Time // from then on it is certainly dead
}

// scanMax bounds how many waiting jobs are tried on a pool in one pass: with more of
// them, and none that fits, looking further seldom finds one.
const scanMax = 1000

// leaseClaimed: borrowed processors can be used from now on.
func (s *Site) leaseClaimed(now grid.Time, l lease.Lease, out *grid.Outbox) {
	if s.pool(l.ID) != nil {
		return
	}
	p := s.openPool(l.ID)
	for i, e := range s.recovered { // before a restart they ran there, and may still
		if e != nil && e.lease == l.Number && e.gone == 0 {
			s.recovered[i] = nil
			s.startOn(now, p, l, e, out)
		}
	}
	if l.Subject.Lo != l.Number { // not asked for by a user: it was for one job
		p.over = true
		s.releaseIdle(now, p, out)
	}
	s.answerLease(l.Number, &LeaseAnswer{Lease: s.leaseView(l)}, out)
}

// openPool enters the processors of a lease.
func (s *Site) openPool(id lease.ID) *pool {
	p := &pool{id: id}
	at, _ := slices.BinarySearchFunc(s.pools, p, comparePools)
	s.pools = slices.Insert(s.pools, at, p)
	return p
}

// leaseBrought: the matchmaker has borrowed processors for one job.
func (s *Site) leaseBrought(now grid.Time, in *lease.Brought, out *grid.Outbox) {
	e := s.current(in.Task)
	if e == nil || e.state != Queued {
		panic(fmt.Sprintf("node: processors were brought for task %v, which does not wait", in.Task))
	}
	p := s.openPool(in.Lease.ID)
	p.over, p.matched = true, true
	s.startOn(now, p, in.Lease, e, out)
}

// loads tells the matchmaker what a site has gossiped.
func (s *Site) loads(site grid.SiteID) (free int64, report uint64, ok bool) {
	l, ok := s.dir.Load(site)
	if l.Queued > 0 {
		l.Free = 0
	}
	return l.Free, l.Sequence, ok
}

// enqueue puts a home job into the queue.
func (s *Site) enqueue(now grid.Time, r lrms.Request, e *entry) error {
	if s.matches == nil || e.foreign || e.job.Deadline != grid.Never {
		return s.cluster.SubmitBy(now, r, e.job.Deadline)
	}
	if r.Processors > s.cluster.Processors() {
		return s.enqueueWide(now, r, e)
	}
	return s.matches.Submit(now, r, e.job.Submit)
}

// dequeue takes a job that waits out of the queue, or withdraws what is promised to it.
func (s *Site) dequeue(now grid.Time, e *entry, out *grid.Outbox) {
	if s.matches == nil || !s.matches.Cancel(now, e.task(), out) {
		s.cluster.Cancel(now, e.task())
	}
}

// schedule starts what can start on this site's own processors.
func (s *Site) schedule(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request {
	if s.matches == nil {
		return s.cluster.Schedule(now, started)
	}
	return s.matches.Dispatch(now, started, out)
}

// leaseRecalled: the lender wants the processors back. What runs there may end by
// itself until the lease does.
func (s *Site) leaseRecalled(now grid.Time, l lease.Lease, out *grid.Outbox) {
	if p := s.pool(l.ID); p != nil {
		p.over = true
		s.releaseIdle(now, p, out)
	}
}

// releaseIdle gives a pool back that is to be given back, once nothing runs there.
func (s *Site) releaseIdle(now grid.Time, p *pool, out *grid.Outbox) {
	if !p.over || p.used > 0 {
		return
	}
	s.pools = slices.DeleteFunc(s.pools, func(q *pool) bool { return q == p })
	if p.matched {
		return
	}
	_ = s.book.Release(now, p.id, out) // unknown: it has ended in the same moment
}

// releaseLease gives a lease back because a user wants it: with force also if jobs run
// there, which are ended and placed anew.
func (s *Site) releaseLease(now grid.Time, l lease.Lease, force bool, out *grid.Outbox) error {
	p := s.pool(l.ID)
	switch {
	case p == nil && s.matches.Has(l.Number):
		return fmt.Errorf("lease %d is being asked for, for a job that waits: cancel the job: %w", l.Number, ErrLease)
	case p == nil:
		return s.book.Release(now, l.ID, out)
	case p.used > 0 && !force:
		return fmt.Errorf("lease %d runs %d of this site's jobs: cancel them, wait for their end, or end them with --force: %w", l.Number, len(p.tasks), ErrLease)
	}
	p.over = true
	if p.used > 0 {
		_ = s.book.Leave(now, l.ID, out) // unknown: it has ended in the same moment
	}
	s.vacate(p, out)
	s.releaseIdle(now, p, out)
	return nil
}

// causeVacate is why jobs are ended that must leave borrowed processors. An execution
// that ended for it is certainly over, and its job is placed anew.
const causeVacate = "its lease is over"

// vacate ends the jobs that run on the processors of a lease. Each is placed anew when
// its end is reported, or else when the lease is surely over, as when the lender cannot
// be reached.
func (s *Site) vacate(p *pool, out *grid.Outbox) {
	for _, g := range p.tasks {
		if e := s.current(g.id); e != nil && e.state == Running {
			out.Kill(grid.Task{ID: g.id, Job: e.job, Cause: causeVacate, Pilot: s.pilotFor(e)})
		}
	}
}

// leaseVacate: a lease that its lender has recalled is about to end.
func (s *Site) leaseVacate(l lease.Lease, out *grid.Outbox) {
	if p := s.pool(l.ID); p != nil {
		s.vacate(p, out)
	}
}

// vacated reports whether an execution was ended to leave borrowed processors.
func vacated(e *entry, in *grid.TaskEnded) bool {
	return e.lease != 0 && !e.foreign && !in.Lost && in.Result.Reason == causeVacate
}

// leaseOver: borrowed processors are lost. What ran there is started again when it is
// certainly dead.
func (s *Site) leaseOver(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	s.answerLease(in.Number, &LeaseAnswer{Lease: LeaseView{Lease: in.Lease}, Err: fmt.Errorf("%w: %s", ErrLease, in.Cause)}, out)
	for i, e := range s.recovered {
		if e != nil && e.lease == in.Number && e.gone == 0 {
			s.recovered[i] = nil
			s.maroon(now, e, in, out)
		}
	}
	p := s.pool(in.ID)
	if p == nil {
		return
	}
	s.pools = slices.DeleteFunc(s.pools, func(q *pool) bool { return q == p })
	for _, g := range p.tasks {
		delete(s.guests, g.id)
		s.cluster.Ended(now, g.id)
		if e := s.current(g.id); e != nil && !e.state.Terminal() {
			out.Kill(grid.Task{ID: g.id, Job: e.job, Cause: causeVacate, Pilot: grid.Pilot{Site: in.Source, Key: in.Key}})
			s.maroon(now, e, in, out)
		}
	}
}

// maroon puts a job whose lease is gone aside until its execution is certainly dead.
func (s *Site) maroon(now grid.Time, e *entry, in *lease.Ended, out *grid.Outbox) {
	e.gone = max(in.Gone, now)
	if e.state != Cancelling {
		e.reason = fmt.Sprintf("its lease %d is over (%s); it starts again once nothing of it is left there", in.Number, in.Cause)
	}
	out.Save(e)
	s.strand(limbo{e.task(), e.gone})
}

// strand enters an execution into the list of those that are waited out.
func (s *Site) strand(l limbo) {
	at, _ := slices.BinarySearchFunc(s.stranded, l, func(a, b limbo) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.id.Compare(b.id)
	})
	s.stranded = slices.Insert(s.stranded, at, l)
}

// rescue places those jobs again whose executions are certainly dead by now.
func (s *Site) rescue(now grid.Time, out *grid.Outbox) {
	n := 0
	for n < len(s.stranded) && s.stranded[n].at <= now {
		n++
	}
	due := slices.Clone(s.stranded[:n])
	s.stranded = slices.Delete(s.stranded, 0, n)
	for _, l := range due {
		if e := s.current(l.id); e != nil && e.gone != 0 && (s.co == nil || !s.co.gangs[l.id]) { // else gangEnded comes
			e.reason = ""
			s.lost(now, l.id, out)
		}
	}
}

// lendAHand starts waiting jobs on borrowed processors, in the order of the queue.
func (s *Site) lendAHand(now grid.Time, out *grid.Outbox) {
	for _, p := range s.pools {
		l, there := s.book.Get(p.id)
		if !there || l.State != lease.Active || p.over {
			continue
		}
		for free := l.Processors - p.used; free > 0; free = l.Processors - p.used {
			e := s.fitting(now, free, l.Limit)
			if e == nil {
				break
			}
			s.startOn(now, p, l, e, out)
		}
	}
}

// fitting returns the first waiting job that may run on so many processors and end
// by then: those that gave way to others, or that no processors of this site can run,
// come first.
func (s *Site) fitting(now grid.Time, free int64, by grid.Time) *entry {
	for _, waiting := range [...]func(func(lrms.Request) bool){s.matches.Away, s.cluster.Waiting} {
		tried := 0
		for r := range waiting {
			if tried++; tried > scanMax {
				break
			}
			e := s.current(r.ID)
			if e != nil && !e.foreign && e.state == Queued && r.Processors <= free && now.Add(s.limitOf(e)) <= by {
				return e
			}
		}
	}
	return nil
}

// limitOf returns how long an execution of a job may take here.
func (s *Site) limitOf(e *entry) grid.Time {
	return max(e.job.Estimate, e.job.EstimateAt(s.cfg.Rating))
}

// startOn starts a job on the processors of a lease, or takes it up again there after
// a restart.
func (s *Site) startOn(now grid.Time, p *pool, l lease.Lease, e *entry, out *grid.Outbox) {
	limit := s.limitOf(e)
	if !p.matched {
		s.dequeue(now, e, out)
		if err := s.cluster.Borrow(now, lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: limit}); err != nil {
			panic(fmt.Sprintf("node: job %s on lease %d: %v", e.job.ID, l.Number, err))
		}
	}
	g := guest{e.task(), e.job.Processors}
	p.used += g.processors
	at, _ := slices.BinarySearchFunc(p.tasks, g, compareTasks)
	p.tasks = slices.Insert(p.tasks, at, g)
	s.guests[g.id] = p
	cancelling := e.state == Cancelling
	if e.lease != l.Number { // else it ran there before a restart
		e.lease = l.Number
		out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID})
	}
	e.start = now
	if !cancelling {
		e.state, e.reason = Running, ""
	}
	out.Save(e)
	task := grid.Task{ID: g.id, Job: e.job, Limit: limit, Pilot: grid.Pilot{Site: l.Source, Key: l.Key}}
	out.Start(task)
	if cancelling {
		task.Cause = e.reason
		out.Kill(task)
	}
}

// Uses reports whether a task of this site runs on processors of another one: an
// executor need not go on with one that does not any more.
func (s *Site) Uses(id grid.TaskID) bool { return s.guests[id] != nil || s.WantsRank(id) }

// leave frees borrowed processors of a task that has ended.
func (s *Site) leave(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	p := s.guests[id]
	if p == nil {
		return
	}
	delete(s.guests, id)
	at, found := slices.BinarySearchFunc(p.tasks, guest{id: id}, compareTasks)
	if !found {
		panic(fmt.Sprintf("node: task %v is not on lease %v", id, p.id))
	}
	p.used -= p.tasks[at].processors
	p.tasks = slices.Delete(p.tasks, at, at+1)
	s.releaseIdle(now, p, out)
}

// pilotFor names the borrowed processors a job runs on; the zero value if it runs on
// this site's own.
func (s *Site) pilotFor(e *entry) grid.Pilot {
	if e.lease == 0 {
		return grid.Pilot{}
	}
	l, _ := s.book.Get(lease.ID{Borrower: s.cfg.ID, Number: e.lease})
	return grid.Pilot{Site: l.Source, Key: l.Key}
}

// recoverBorrowed takes up, after a restart, a job that ran on borrowed processors
// whose lease the book does not know any more.
func (s *Site) recoverBorrowed(now grid.Time, e *entry) {
	s.strand(limbo{e.task(), max(e.gone, now)})
	e.gone = max(e.gone, now)
}
