package lease

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Terms are what a request is granted on. The zero value lends this site's own
// processors for as long as was asked.
type Terms struct {
	// Taken says that the owner has counted the processors as running in the cluster
	// already, under TaskOf(Lease.Epoch); else the book lends them (lrms.Lend).
	Taken bool

	// Via is the lease, active and not lent on yet, by which this site has the
	// processors itself; the zero value: they are its own. The new lease ends when
	// that one does, and that one is released when the new one ends.
	Via ID

	Span grid.Time // at most for how long; 0: as asked
}

// Grant sets processors aside for a request that was Asked, until it is claimed. It
// returns ErrUnknown if there is no such request (any more) or no such lease to lend
// on, and what lrms.Lend returns; the book is then unchanged and the request stays.
func (b *Book) Grant(now grid.Time, id ID, t Terms, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || !e.Lent || e.State != Requested {
		return fmt.Errorf("grant request %d of %s: %w", id.Number, id.Borrower, ErrUnknown)
	}
	hold := e.hold
	if hold == 0 {
		hold = b.cfg.Hold
	}
	span := e.Span
	if t.Span > 0 {
		span = min(span, t.Span)
	}
	var in *entry
	if t.Via != (ID{}) {
		in = b.entries[t.Via]
		if in == nil || in.Lent || in.State != Active || in.onward != (ID{}) || in.Processors != e.Processors || in.Limit <= now {
			return fmt.Errorf("lend on lease %d: %w", t.Via.Number, ErrUnknown)
		}
		span = min(span, in.Limit-now)
		hold = min(hold, in.End-now)
	} else if !t.Taken {
		if err := b.cluster.Lend(now, lrms.Request{ID: TaskOf(e.Epoch), Processors: e.Processors, Estimate: min(hold+span, grid.SpanMax)}); err != nil {
			return fmt.Errorf("grant request %d of %s: %w", id.Number, id.Borrower, err)
		}
	}
	b.count(e, -1)
	e.State, e.Since, e.End, e.Span, e.hold = Held, now, now+hold, span, hold
	e.Source, e.Key, e.Hops = b.cfg.Site, e.Epoch, 1
	if in != nil {
		e.Source, e.Key, e.Hops, e.Via = in.Source, in.Key, min(in.Hops+1, HopsMax), in.Number
		b.tenants.add(e.Borrower, -e.Processors) // they are another site's
		b.lendOn(in, e.ID)
	}
	b.count(e, 1)
	out.Save((*record)(e))
	b.alarms.Set(&e.alarm, e.End)
	b.sendGrant(now, e, out)
	return nil
}

// Refuse refuses a request that was Asked. lends says how many processors its borrower is ever lent
// at once, if the owner bounds it; 0: as many as anybody. It returns ErrUnknown if there is none.
func (b *Book) Refuse(now grid.Time, id ID, why Reason, lends int64, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || !e.Lent || e.State != Requested {
		return fmt.Errorf("refuse request %d of %s: %w", id.Number, id.Borrower, ErrUnknown)
	}
	b.refuse(now, e.ID, why, lends, out)
	b.remove(e)
	return nil
}

// Revoke wants the processors of a lease back. Its borrower is told and the lease
// is not renewed any more, so it ends within Config.Term. With force it ends now:
// what runs there is ended without asking (Ended), and the borrower's book is wrong
// until it hears of it. It returns ErrUnknown if nothing is lent by that name.
func (b *Book) Revoke(now grid.Time, id ID, force bool, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || !e.Lent || e.State != Held && e.State != Active {
		return fmt.Errorf("revoke lease %d of %s: %w", id.Number, id.Borrower, ErrUnknown)
	}
	if force {
		b.endLent(now, e, Revoked, 0, out)
	} else if !e.revoked {
		b.revoke(now, e, out)
	}
	return nil
}

func (b *Book) revoke(now grid.Time, e *entry, out *grid.Outbox) {
	if e.State == Held {
		b.endLent(now, e, Revoked, 0, out)
		return
	}
	e.revoked = true
	out.Save((*record)(e))
	out.Send(e.Borrower, &Revoke{e.Number, e.Epoch})
}

// Vacated says that nothing of the borrower runs any more on the processors of a
// lease that has Ended: they are this site's again. It returns ErrUnknown if nothing
// is waited for by that name.
func (b *Book) Vacated(now grid.Time, id ID, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || !e.Lent || e.State != Ending {
		return fmt.Errorf("lease %d of %s: %w", id.Number, id.Borrower, ErrUnknown)
	}
	b.finish(now, e, e.cause, 0, out)
	return nil
}

// asked is a request's arrival.
func (b *Book) asked(now grid.Time, from grid.SiteID, m *Request, out *grid.Outbox) {
	id := ID{from, m.Number}
	if e := b.entries[id]; e != nil {
		if e.State == Held {
			b.sendGrant(now, e, out)
		}
		return
	}
	price, lends := b.cfg.tariff(from, m.Bank)
	switch {
	case from == b.cfg.Site || m.Sink == b.cfg.Site:
		b.refuse(now, id, Loop, 0, out)
	case m.Processors < 1 || m.Processors > ProcessorsMax || m.Span < 1:
		b.refuse(now, id, Malformed, 0, out)
	case m.Span > b.cfg.SpanMax:
		b.refuse(now, id, TooLong, 0, out)
	case b.over.has(now, id):
		b.refuse(now, id, Stale, 0, out)
	case !lends:
		b.refuse(now, id, Unpaid, 0, out)
	case m.Most > 0 && price > m.Most:
		out.Send(from, &Refuse{Number: m.Number, Reason: Dear, Free: b.cluster.Idle(now), Price: price})
	case len(b.entries) >= LeasesMax || b.peers[from] >= PerPeerMax:
		b.refuse(now, id, Full, 0, out)
	default:
		e := &entry{
			Lease: Lease{
				ID: id, Lender: b.cfg.Site, Lent: true, Processors: m.Processors, Epoch: b.epochs.Next(now), Since: now, Span: m.Span,
				Subject: m.Subject, Sink: m.Sink, TTL: m.TTL, Age: m.Age, Bank: m.Bank, Most: m.Most, Price: price,
				Within: m.Within,
			},
			hold: m.Hold, until: now + max(m.Patience, b.cfg.Retry),
		}
		e.End = e.until
		b.insert(e)
		b.alarms.Set(&e.alarm, e.End)
		out.Local(&Asked{Lease: e.Lease, Patience: m.Patience})
	}
}

// Fee returns a lease with a price that is lent here, held or active, and for how long it
// costs something at most; ok is false if there is none.
func (b *Book) Fee(id ID, epoch uint64) (l Lease, longest grid.Time, ok bool) {
	e := b.entries[id]
	if e == nil || !e.Lent || e.Epoch != epoch || e.Price == 0 || e.State != Held && e.State != Active {
		return Lease{}, 0, false
	}
	return e.Lease, e.hold + e.Span, true
}

// claimed is a claim's arrival.
func (b *Book) claimed(now grid.Time, from grid.SiteID, m *Claim, out *grid.Outbox) {
	e := b.lent(now, from, m.Number, m.Epoch, out)
	if e == nil || e.Price > 0 && !e.Paid {
		return // an honest borrower pays first
	}
	if e.State == Held {
		b.enter(e, Active)
		e.Limit = now + e.Span
		in := b.inbound(e)
		if in != nil {
			e.Limit = min(e.Limit, in.Limit)
		} else {
			b.cluster.Extend(now, TaskOf(e.Epoch), e.Limit)
		}
		e.End = b.prolonged(now, now, e, in)
		e.gone, e.goneSpan = now+2*b.cfg.Term, b.cfg.Term
		out.Save((*record)(e))
		b.alarms.Set(&e.alarm, e.End)
		out.Local(&Activated{e.Lease})
	}
	b.confirm(now, e, m.Sequence, out)
}

// renewed is a renewal's arrival.
func (b *Book) renewed(now grid.Time, from grid.SiteID, m *Renew, out *grid.Outbox) {
	e := b.lent(now, from, m.Number, m.Epoch, out)
	if e == nil || e.State != Active {
		return
	}
	if !e.revoked {
		in := b.inbound(e)
		if m.Span > 0 && e.Price == 0 { // a cheque pays for so long and no longer
			limit := min(now+m.Span, e.Since.Add(b.cfg.SpanMax))
			if in != nil {
				limit = min(limit, in.Limit)
			}
			if limit > e.Limit {
				e.Limit = limit
				if in == nil {
					b.cluster.Extend(now, TaskOf(e.Epoch), e.Limit)
				}
				out.Save((*record)(e))
			}
		}
		if end := b.prolonged(now, m.Stamp, e, in); end > e.End {
			e.End, e.gone, e.goneSpan = end, m.Stamp+2*b.cfg.Term, b.cfg.Term
			out.Save((*record)(e))
			b.alarms.Set(&e.alarm, e.End)
		}
	}
	b.confirm(now, e, m.Sequence, out)
	if e.revoked { // the borrower has not heard of it, or has forgotten
		out.Send(e.Borrower, &Revoke{e.Number, e.Epoch})
	}
}

// prolonged returns the end that a claim or renewal gives a lease, which is never
// more than two terms after the word of the lender that it answers: so the borrower
// knows when the processors have surely gone back, even if no answer reaches it.
func (b *Book) prolonged(now, stamp grid.Time, e, in *entry) grid.Time {
	if stamp > now { // a word of before this clock was set back: nobody knows how old it is
		return 0
	}
	end := min(now+b.cfg.Term, stamp+2*b.cfg.Term, e.Limit)
	if in != nil {
		end = min(end, in.End)
	}
	return end
}

// Spare returns how much later than at Lease.End an active lease that is lent could end
// without lasting longer than its borrower counts on at most.
func Spare(b *Book, id ID) grid.Time {
	if e := b.entries[id]; e != nil && e.Lent && e.State == Active {
		return max(e.gone-e.End, 0)
	}
	return 0
}

// confirm answers a claim or a renewal.
func (b *Book) confirm(now grid.Time, e *entry, sequence uint64, out *grid.Outbox) {
	out.Send(e.Borrower, &Renewed{
		Number: e.Number, Epoch: e.Epoch, Sequence: sequence, Stamp: now,
		Term: e.End - now, Limit: max(e.Limit, e.End) - now, Gone: b.goneAfter(e),
	})
}

func (b *Book) sendGrant(now grid.Time, e *entry, out *grid.Outbox) {
	out.Send(e.Borrower, &Grant{
		Number: e.Number, Epoch: e.Epoch, Stamp: now, Hold: e.End - now, Span: e.Span,
		Source: e.Source, Key: e.Key, Hops: e.Hops, Gone: e.hold + b.goneAfter(e), Price: e.Price,
	})
}

// goneAfter returns how long after a word of this site the source's processors are
// surely free of the borrower, whatever gets lost.
func (b *Book) goneAfter(e *entry) grid.Time {
	after := 2*b.cfg.Term + b.cfg.Grace
	if in := b.inbound(e); in != nil {
		after = min(after+b.cfg.longer(in.goneSpan), goneMax)
	}
	return after
}

// released is a release's arrival.
func (b *Book) released(now grid.Time, from grid.SiteID, m *Release, out *grid.Outbox) {
	e := b.lent(now, from, m.Number, m.Epoch, out)
	if e == nil || e.State == Ending {
		return // what drains is confirmed once it has
	}
	b.endLent(now, e, Freed, 0, out)
}

// lent returns the lease that its borrower speaks of. If there is none, or if it is
// of another epoch, the borrower is told. That its processors are free this site says only of its own:
// of others, and of what it has forgotten, holds what the borrower was told before.
func (b *Book) lent(now grid.Time, from grid.SiteID, number, epoch uint64, out *grid.Outbox) *entry {
	e := b.entries[ID{from, number}]
	if e != nil && e.Lent && (epoch == e.Epoch || epoch == 0) {
		return e
	}
	id, gone := ID{from, number}, goneMax
	if b.freed.has(now, id) {
		gone = 0
	}
	if e == nil {
		b.over.add(now, id) // its request may still be under way
	}
	out.Send(from, &Released{Number: number, Epoch: epoch, Cause: Unknown, Gone: gone})
	return nil
}

// inbound returns the lease by which the processors of a lent one came here, nil if
// they are this site's own.
func (b *Book) inbound(e *entry) *entry {
	if e.Via == 0 {
		return nil
	}
	return b.entries[ID{b.cfg.Site, e.Via}]
}

// lenderDue is the end of a state by itself.
func (b *Book) lenderDue(now grid.Time, e *entry, out *grid.Outbox) {
	switch e.State {
	case Requested:
		b.refuse(now, e.ID, Busy, 0, out)
		b.remove(e)
		out.Local(&Ended{Lease: e.Lease, Cause: NoAnswer})
	case Held:
		b.endLent(now, e, Unheld, 0, out)
	case Active:
		b.endLent(now, e, Expired, 0, out)
	}
}

// endLent ends a lease, or forgets a request. gone is how long the processors may
// still be in use at their source, if they are not this site's own.
func (b *Book) endLent(now grid.Time, e *entry, cause Cause, gone grid.Time, out *grid.Outbox) {
	l := e.Lease
	b.over.add(now, e.ID)
	if l.State == Requested {
		out.Send(e.Borrower, &Released{Number: e.Number, Cause: cause})
		b.remove(e)
		out.Local(&Ended{Lease: l, Cause: cause})
		return
	}
	if in := b.inbound(e); in != nil && in.State == Active {
		gone = max(gone, in.gone-now)
		b.count(in, -1)
		in.onward = ID{}
		b.count(in, 1)
		b.giveUp(now, in, out)
	}
	if l.State == Active && e.Via == 0 && b.cfg.Drain {
		b.enter(e, Ending)
		e.cause = cause
		out.Save((*record)(e))
		b.alarms.Stop(&e.alarm)
	} else {
		b.finish(now, e, cause, gone, out)
	}
	out.Local(&Ended{Lease: l, Cause: cause})
}

// finish gives the processors back to where they came from.
func (b *Book) finish(now grid.Time, e *entry, cause Cause, gone grid.Time, out *grid.Outbox) {
	if e.Via == 0 && !b.cluster.Ended(now, TaskOf(e.Epoch)) {
		panic(fmt.Sprintf("lease: %s lends %d processors that its cluster does not know of: %+v", b.cfg.Site, e.Processors, e.Lease))
	}
	if e.Via == 0 {
		b.freed.add(now, e.ID)
	}
	out.Delete((*record)(e))
	b.remove(e)
	out.Send(e.Borrower, &Released{Number: e.Number, Epoch: e.Epoch, Cause: cause, Gone: gone})
}

// refuse refuses a request (Refuse). Who needs processors by an instant is told when they would be
// there, and for how long.
func (b *Book) refuse(now grid.Time, id ID, why Reason, lends int64, out *grid.Outbox) {
	m := &Refuse{Number: id.Number, Reason: why, Free: b.cluster.Idle(now)}
	most := b.cluster.Processors()
	if b.cfg.LendMost > 0 {
		most = min(most, b.cfg.LendMost)
		m.Free = min(m.Free, max(most-b.totals.Held-b.totals.Lent, 0))
	}
	if lends > 0 {
		most = min(most, lends)
		m.Free = min(m.Free, most)
	}
	if why == TooWide || why == Busy && b.cfg.LendMost > 0 || lends > 0 {
		m.Lends = most
	}
	if e := b.entries[id]; e != nil && e.Within > 0 && why != Denied && why != TooLate {
		m.Span = b.cfg.SpanMax
		if at := b.cluster.EarliestStart(now, e.Processors, e.Span); at < grid.SpanMax {
			m.Ready = max(at-now, 1)
		}
	}
	out.Send(id.Borrower, m)
}
