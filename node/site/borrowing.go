package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// borrowing is the part that runs this site's jobs on processors of others: those that
// a user has leased, and those that the matchmaker borrows for one job at a time. It is
// the queue of a site that borrows.
type borrowing struct {
	*base
	jobs     *jobs
	book     *lease.Book
	matches  *lease.Matchmaker
	recovery *recovery
	limbo    *limbo
	pools    pools
	spreads  *spreads
}

// scanMax bounds how many waiting jobs are tried on a pool in one pass: with more of
// them, and none that fits, looking further seldom finds one.
const scanMax = 1000

func (*borrowing) takes(b *board) {
	of := func(s *Site) *borrowing { return s.borrowing }
	take(b, of, (*borrowing).brought)
	take(b, of, (*borrowing).vacate)
}

func (b *borrowing) tick(now grid.Time, out *grid.Outbox) { b.matches.Step(now, grid.Tick{}, out) }

func (b *borrowing) nextTimer() grid.Time { return b.matches.NextTimer() }

// enqueue puts a home job into the queue.
func (b *borrowing) enqueue(now grid.Time, r lrms.Request, e *entry, out *grid.Outbox) error {
	if e.foreign || e.job.Deadline != grid.Never {
		return b.cluster.SubmitBy(now, r, e.job.Deadline)
	}
	if r.Processors > b.cluster.Processors() {
		return b.enqueueWide(now, r, e, out)
	}
	return b.matches.Submit(now, workOf(r, e), out)
}

// enqueueWide lets a job wait that is wider than the site, if there is hope: somebody is
// asked for processors, or a lease has them. A job that was taken before waits on,
// whatever has become of that hope.
func (b *borrowing) enqueueWide(now grid.Time, r lrms.Request, e *entry, out *grid.Outbox) error {
	taken := e.epoch > 1 || e.state == Queued
	if !taken && !b.matches.Delegates() && !b.holds(now, e) {
		return fmt.Errorf("%w: it wants %d processors of %d: borrow as many with 'gridnode lease request', "+
			"or set delegation.threshold and link sites, or let the market place it (--policy cheapest)", lrms.ErrTooWide, r.Processors, b.cluster.Processors())
	}
	if err := b.matches.SubmitWide(now, workOf(r, e), out); err != nil {
		return err
	}
	e.reason = fmt.Sprintf("wider than this site's %d processors: it waits for a lease of %d", b.cluster.Processors(), r.Processors)
	return nil
}

// holds reports whether a lease that was asked for by hand can run a job once its
// processors are free.
func (b *borrowing) holds(now grid.Time, e *entry) bool {
	for _, p := range b.pools.list {
		l, there := b.book.Get(p.id)
		if there && l.State == lease.Active && !p.over && l.Processors >= e.job.Processors && now.Add(b.limitOf(e.job)) <= l.Limit {
			return true
		}
	}
	return false
}

func (b *borrowing) dequeue(now grid.Time, e *entry, out *grid.Outbox) {
	if !b.matches.Cancel(now, e.task(), out) {
		b.cluster.Cancel(now, e.task())
	}
}

func (b *borrowing) schedule(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request {
	return b.matches.Dispatch(now, started, out)
}

func (b *borrowing) ended(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	if !b.matches.Ended(now, id, out) {
		b.cluster.Ended(now, id)
	}
	if p := b.pools.leave(id); p != nil {
		b.releaseIdle(now, p, out)
	}
}

func (b *borrowing) pilotOf(e *entry) grid.Pilot {
	if e.lease == 0 {
		return grid.Pilot{}
	}
	l, _ := b.book.Get(lease.ID{Borrower: b.cfg.ID, Number: e.lease})
	return grid.Pilot{Site: l.Source, Key: l.Key}
}

// claimed: processors that a user asked for can be used from now on. It reports whether
// that is news.
func (b *borrowing) claimed(now grid.Time, l lease.Lease, out *grid.Outbox) (news bool) {
	if b.pools.of(l.ID) != nil || b.spreads.on(&l) != nil { // the latter are taken up at the first Tick
		return false
	}
	p := b.pools.open(l.ID)
	b.recovery.onLease(l.Number, func(e *entry) { // before a restart it ran there, and may still
		b.startOn(now, p, l, e, out)
	})
	if l.Subject.Lo != l.Number { // not asked for by a user: it was for one job
		p.over = true
		b.releaseIdle(now, p, out)
	}
	return true
}

// brought: the matchmaker has borrowed processors for one job.
func (b *borrowing) brought(now grid.Time, in *lease.Brought, out *grid.Outbox) {
	e := b.jobs.current(in.Task)
	if e == nil || e.state != Queued {
		panic(fmt.Sprintf("site: processors were brought for task %v, which does not wait", in.Task))
	}
	if in.Leases != nil {
		b.spreads.run(now, e, in.Own, in.Leases, out)
		return
	}
	p := b.pools.open(in.Lease.ID)
	p.over, p.matched = true, true
	b.startOn(now, p, in.Lease, e, out)
}

// startTasks starts waiting jobs on borrowed processors, in the order of the queue.
func (b *borrowing) startTasks(now grid.Time, out *grid.Outbox) {
	for _, p := range b.pools.list {
		if p.over { // as most are: borrowed for one job
			continue
		}
		l, there := b.book.Get(p.id)
		if !there || l.State != lease.Active {
			continue
		}
		for free := l.Processors - p.used; free > 0; free = l.Processors - p.used {
			e := b.fitting(now, free, l.Limit)
			if e == nil {
				break
			}
			b.startOn(now, p, l, e, out)
		}
	}
}

// fitting returns the first waiting job that may run on so many processors and end
// by then: those that gave way to others, or that no processors of this site can run,
// come first.
func (b *borrowing) fitting(now grid.Time, free int64, by grid.Time) *entry {
	for _, waiting := range [...]func(func(lrms.Request) bool){b.matches.Away, b.cluster.Waiting} {
		tried := 0
		for r := range waiting {
			if tried++; tried > scanMax {
				break
			}
			e := b.jobs.current(r.ID)
			if e != nil && !e.foreign && !e.job.Spread && e.state == Queued && r.Processors <= free && now.Add(b.limitOf(e.job)) <= by {
				return e
			}
		}
	}
	return nil
}

// startOn starts a job on the processors of a lease, or takes it up again there after
// a restart.
func (b *borrowing) startOn(now grid.Time, p *pool, l lease.Lease, e *entry, out *grid.Outbox) {
	limit := b.limitOf(e.job)
	if !p.matched {
		b.dequeue(now, e, out)
		if err := b.cluster.Borrow(now, lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: limit}); err != nil {
			panic(fmt.Sprintf("site: job %s on lease %d: %v", e.job.ID, l.Number, err))
		}
	}
	b.pools.enter(p, guest{e.task(), e.job.Processors})
	cancelling := e.state == Cancelling
	if e.lease != l.Number { // else it ran there before a restart
		e.lease = l.Number
		out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: b.cfg.ID})
	}
	e.start = now
	if !cancelling {
		e.state, e.reason = Running, ""
	}
	out.Save(e)
	task := grid.Task{ID: e.task(), Job: e.job, Limit: limit, Pilot: grid.Pilot{Site: l.Source, Key: l.Key}}
	out.Start(task)
	if cancelling {
		task.Cause = e.reason
		out.Kill(task)
	}
}

// view is what users see of a lease.
func (b *borrowing) view(l lease.Lease) LeaseView {
	v := LeaseView{Lease: l}
	if p := b.pools.of(l.ID); p != nil {
		v.Used = p.used
		for _, t := range p.tasks {
			v.Jobs = append(v.Jobs, t.id.Job)
		}
	}
	return v
}
