package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
)

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
// there, which are ended and placed anew.
func (b *borrowing) release(now grid.Time, l lease.Lease, force bool, out *grid.Outbox) error {
	p := b.pools.of(l.ID)
	switch {
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
	b.spreads.over(in)
	p := b.pools.of(in.ID)
	if p == nil {
		return
	}
	b.pools.close(p)
	for _, g := range p.tasks {
		delete(b.pools.guests, g.id)
		b.cluster.Ended(now, g.id)
		if e := b.jobs.current(g.id); e != nil && !e.state.Terminal() {
			out.Kill(grid.Task{ID: g.id, Job: e.job, Cause: causeVacate, Pilot: grid.Pilot{Site: in.Source, Key: in.Key}, Abandon: true})
			b.maroon(now, e, in, out)
		}
	}
}

// maroon puts a job whose lease is gone aside until its execution is certainly dead.
func (b *borrowing) maroon(now grid.Time, e *entry, in *lease.Ended, out *grid.Outbox) {
	e.gone = max(in.Gone, now)
	if e.state != Cancelling {
		e.reason = fmt.Sprintf("its lease %d is over (%s); it starts again once nothing of it is left there", in.Number, in.Cause)
	}
	out.Save(e)
	b.limbo.put(e)
}
