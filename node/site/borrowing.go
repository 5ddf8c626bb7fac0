package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
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
	take(b, of, (*borrowing).unmet)
}

func (b *borrowing) tick(now grid.Time, out *grid.Outbox) { b.matches.Step(now, grid.Tick{}, out) }

func (b *borrowing) nextTimer() grid.Time { return b.matches.NextTimer() }

// enqueue puts a home job into the queue.
func (b *borrowing) enqueue(now grid.Time, r lrms.Request, e *entry, out *grid.Outbox) error {
	if e.foreign || r.GPUs.Count > 0 || e.job.Deadline != grid.Never && r.Processors > b.cluster.Processors() && !b.matches.Delegates() {
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
	if !taken && e.job.TTL == grid.NoTTL && !b.holds(now, e) {
		return fmt.Errorf("%w: it wants %d processors of %d, and may not be delegated (--ttl 0)", lrms.ErrTooWide, r.Processors, b.cluster.Processors())
	}
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

func (b *borrowing) dequeue(now grid.Time, e *entry, out *grid.Outbox) grid.Time {
	held, waited := b.matches.Cancel(now, e.task(), out)
	if !waited {
		b.cluster.Cancel(now, e.task())
	}
	return held
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

func (b *borrowing) barred(e *entry) (verdicts []market.Verdict) {
	for _, s := range b.matches.Barred(e.task()) {
		verdicts = append(verdicts, market.Verdict{
			Site: s.Site, Finish: grid.Never, Outcome: market.OutcomeRefused, Until: s.Until,
			Detail: s.String(),
		})
	}
	return verdicts
}

func (b *borrowing) ttl(e *entry) int32 {
	if e.foreign || divided(e.job) || e.job.TTL == 0 && !b.matches.Delegates() {
		return -1
	}
	return b.matches.TTL(e.job.TTL)
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
	if e == nil || e.state != Queued && e.state != Placing {
		panic(fmt.Sprintf("site: processors were brought for task %v, which does not wait", in.Task))
	}
	if in.Leases != nil {
		b.spreads.run(now, e, in.Own, in.Leases, out)
		return
	}
	if e.state == Placing {
		out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: b.cfg.ID, Cost: e.award.Cost, Messages: e.messages})
	}
	p := b.pools.open(in.Lease.ID)
	p.over, p.matched = true, true
	b.startOn(now, p, in.Lease, e, out)
}

// rescue has a job that no site guarantees by its deadline, this one included, wait for
// processors of others on which it keeps it. It reports whether anybody can be asked.
func (b *borrowing) rescue(now grid.Time, e *entry, out *grid.Outbox) bool {
	j, r := e.job, b.requestOf(e)
	r.Estimate = b.limitOf(j)
	cost := b.cfg.Cost.Cost(b.price(), j.Processors, r.Estimate)
	switch {
	case j.Deadline == grid.Never, j.GPUs.Count > 0, now.Add(r.Estimate) > j.Deadline, j.Budget >= 0 && cost > j.Budget:
		return false
	case j.Site != "" && j.Site != b.cfg.ID, divided(j), b.ttl(e) < 1, !b.matches.Delegates():
		return false
	}
	e.award = market.Award{Site: b.cfg.ID, Epoch: e.epoch, Price: b.price(), Cost: cost, Until: grid.Never}
	if b.matches.SubmitWide(now, workOf(r, e), out) != nil {
		e.award = market.Award{}
		return false
	}
	e.reason = "no site has its own processors free in time: linked ones are asked to lend some"
	return true
}

// unmet: no lease keeps a job's deadline.
func (b *borrowing) unmet(now grid.Time, in *lease.Unmet, out *grid.Outbox) {
	e := b.jobs.current(in.Task)
	if e == nil || e.state != Placing && e.state != Queued {
		return
	}
	e.award = market.Award{}
	e.reason = "no site has its own processors free in time, and no lease keeps the deadline: " + in.Reason
	b.jobs.refuse(now, e, out)
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
			if e != nil && !e.foreign && !e.job.Spread && e.job.GPUs.Count == 0 && e.state == Queued && r.Processors <= free && now.Add(b.limitOf(e.job)) <= by {
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
	b.pools.enter(p, lodger{e.task(), e.job.Processors})
	cancelling := e.state == Cancelling
	if e.lease != l.Number { // else it ran there before a restart
		e.lease = l.Number
		out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: b.cfg.ID})
	}
	e.start = now
	b.jobs.gate.Begun(e.job, &b.jobs.table)
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
	v := LeaseView{Lease: l, Ceiling: grid.CostProcessorTime.Cost(l.Price, l.Processors, max(l.Span, l.Limit-l.Since))}
	if p := b.pools.of(l.ID); p != nil {
		v.Used = p.used
		for _, t := range p.tasks {
			v.Jobs = append(v.Jobs, t.id.Job)
		}
	}
	return v
}

// recalled: the lender wants the processors back. What runs there may end by itself
// until the lease does.
func (b *borrowing) recalled(now grid.Time, l lease.Lease, out *grid.Outbox) {
	if p := b.pools.of(l.ID); p != nil {
		p.over = true
		b.releaseIdle(now, p, out)
	}
}

// releaseIdle gives a pool back that is to be given back, once nothing runs there.
func (b *borrowing) releaseIdle(now grid.Time, p *pool, out *grid.Outbox) {
	if !p.over || p.used > 0 {
		return
	}
	b.pools.close(p)
	if p.matched {
		return // the matchmaker does
	}
	_ = b.book.Release(now, p.id, out) // unknown: it has ended in the same moment
}

// release gives a lease back because a user wants it: with force also if jobs run
// there, which are ended and placed anew, or if another site has its processors.
func (b *borrowing) release(now grid.Time, l lease.Lease, force bool, out *grid.Outbox) error {
	p := b.pools.of(l.ID)
	switch next, lentOn := lease.Onward(b.book, l.ID); {
	case lentOn && !force:
		return fmt.Errorf("the processors of lease %d are lent on as lease %d of %s: wait for its end, or end it with --force: %w", l.Number, next.Number, next.Borrower, ErrLease)
	case lentOn:
		return b.book.Revoke(now, next, true, out) // and with that goes this one
	case p == nil && b.matches.Has(l.Number):
		return fmt.Errorf("lease %d is being asked for, for a job that waits: cancel the job: %w", l.Number, ErrLease)
	case p == nil:
		return b.book.Release(now, l.ID, out)
	case p.used > 0 && !force:
		return fmt.Errorf("lease %d runs %d of this site's jobs: cancel them, wait for their end, or end them with --force: %w", l.Number, len(p.tasks), ErrLease)
	}
	p.over = true
	if p.used > 0 {
		_ = b.book.Leave(now, l.ID, out) // unknown: it has ended in the same moment
	}
	b.clear(p, out)
	b.releaseIdle(now, p, out)
	return nil
}

// causeVacate is why jobs are ended that must leave borrowed processors. An execution
// that ended for it is certainly over, and its job is placed anew.
const causeVacate = "its lease is over"

// clear ends the jobs that run on the processors of a lease. Each is placed anew when
// its end is reported, or else when the lease is surely over, as when the lender cannot
// be reached.
func (b *borrowing) clear(p *pool, out *grid.Outbox) {
	for _, g := range p.tasks {
		if e := b.jobs.current(g.id); e != nil && e.state == Running {
			out.Kill(grid.Task{ID: g.id, Job: e.job, Cause: causeVacate, Pilot: b.pilotOf(e)})
		}
	}
}

// vacate: a lease that its lender has recalled is about to end.
func (b *borrowing) vacate(now grid.Time, in *lease.Vacate, out *grid.Outbox) {
	b.matches.Step(now, in, out)
	if p := b.pools.of(in.ID); p != nil {
		b.clear(p, out)
	}
	b.spreads.vacate(in.Number, out)
}

// vacated reports whether an execution was ended to leave borrowed processors.
func vacated(e *entry, in *grid.TaskEnded) bool {
	return e.lease != 0 && !e.foreign && !in.Lost && in.Result.Reason == causeVacate
}

// over: borrowed processors are lost. What ran there is started again when it is
// certainly dead.
func (b *borrowing) over(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	b.recovery.onLease(in.Number, func(e *entry) { b.maroon(now, e, in, out) })
	b.spreads.over(now, in, out)
	p := b.pools.of(in.ID)
	if p == nil {
		return
	}
	b.pools.close(p)
	for _, g := range p.tasks {
		delete(b.pools.lodgers, g.id)
		b.cluster.Ended(now, g.id)
		if e := b.jobs.current(g.id); e != nil && !e.state.Terminal() {
			out.Kill(grid.Task{ID: g.id, Job: e.job, Cause: causeVacate, Pilot: grid.Pilot{Site: in.Source, Key: in.Key}, Abandon: true})
			b.maroon(now, e, in, out)
		}
	}
}

// maroon puts a job whose lease is gone aside until its execution is certainly dead.
func (b *borrowing) maroon(now grid.Time, e *entry, in *lease.Ended, out *grid.Outbox) {
	e.strand(now, in.Gone)
	if e.state != Cancelling {
		e.reason = fmt.Sprintf("its lease %d is over (%s); it starts again once nothing of it is left there", in.Number, in.Cause)
	}
	out.Save(e)
	b.limbo.put(e)
}

// uses reports whether borrowed processors are for jobs of the queue, or are being brought for one.
func (b *borrowing) uses(l *lease.Lease) bool {
	return b.pools.of(l.ID) != nil || b.spreads.on(l) != nil || b.matches.Has(l.Number)
}

// audit returns which job counts as on borrowed processors that is not there, or whose lease is
// not here any more, on which lease are more than it has room for, or which request for processors is
// left to nobody.
func (b *borrowing) audit() error {
	if err := lease.AuditRequests(b.matches); err != nil {
		return err
	}
	for _, p := range b.pools.list {
		used := int64(0)
		for _, g := range p.tasks {
			used += g.processors
		}
		if l, there := b.book.Get(p.id); used != p.used || there && used > l.Processors {
			return fmt.Errorf("jobs on lease %d have %d of its %d processors, and count as having %d", p.id.Number, used, l.Processors, p.used)
		}
	}
	for id, p := range b.pools.lodgers {
		e := b.jobs.current(id)
		if e == nil || e.state != Running && e.state != Cancelling {
			return fmt.Errorf("job %s, epoch %d, counts as on lease %d, and does not run", id.Job, id.Epoch, p.id.Number)
		}
		if b.pools.of(p.id) != p {
			return fmt.Errorf("job %s, epoch %d, counts as on lease %d, which is not here", id.Job, id.Epoch, p.id.Number)
		}
	}
	return nil
}
