package lease

import (
	"fmt"
	"hash/fnv"

	"gridnode/grid"
)

// Want is what a site asks another for.
type Want struct {
	Processors int64     // 1 to ProcessorsMax
	Span       grid.Time // for how long, from the claim; 1 to SpanLimit
	Patience   grid.Time // how long the lender may think, at most PatienceLimit; 0: it answers at once
	Hold       grid.Time // how long the grant shall wait for the claim, at most HoldLimit; 0: as the lender likes

	Subject grid.JobID  // the resource request; zero: a new one
	Sink    grid.SiteID // who will use the processors; empty: this site

	// For delegation; see Matchmaker.
	TTL int32     // how often the lender may pass the request on, at most TTLMax
	Age grid.Time // how long the request has waited in all

	Within grid.Time // from now: by when the processors have to be there; 0: it does not matter

	Most grid.Price // highest price for a processor-hour; 0: as Config.Most says
	Free bool       // nobody pays for it
}

// Request asks lender for processors. What comes of it is Granted or Refused. The
// error wraps ErrBounds and says what is wrong; the book is then unchanged.
func (b *Book) Request(now grid.Time, lender grid.SiteID, w Want, out *grid.Outbox) (ID, error) {
	b.expire(now, out)
	if err := b.checkWant(lender, w); err != nil {
		return ID{}, fmt.Errorf("ask %s for processors: %w", lender, err)
	}
	id := ID{b.cfg.Site, b.numbers.Next(now)}
	if w.Sink == "" {
		w.Sink = b.cfg.Site
	}
	if w.Subject.IsZero() {
		h := fnv.New64a()
		h.Write([]byte(b.cfg.Site))
		w.Subject = grid.JobID{Hi: h.Sum64(), Lo: id.Number}
	}
	e := &entry{
		Lease: Lease{
			ID: id, Lender: lender, Processors: w.Processors, Since: now, Span: w.Span,
			Subject: w.Subject, Sink: w.Sink, TTL: w.TTL, Age: w.Age, Within: w.Within,
		},
		hold: w.Hold, pause: b.cfg.Retry,
	}
	// A patient lender is asked again once, in case the question was lost; the answer
	// may take as long to come back as it took to get there.
	if w.Patience > 0 {
		e.pause = max(w.Patience/2, b.cfg.Retry)
	}
	if !w.Free {
		e.Bank, e.Most = b.cfg.Bank, b.cfg.most(w.Most)
	}
	e.until = now + w.Patience + 4*b.cfg.Retry
	e.End = e.until
	e.retry = now + e.pause
	b.insert(e)
	b.armBorrower(e)
	b.sendRequest(e, now, out)
	return id, nil
}

func (b *Book) checkWant(lender grid.SiteID, w Want) error {
	switch {
	case lender == "" || lender == b.cfg.Site:
		return fmt.Errorf("a site cannot lend to itself: %w", ErrBounds)
	case w.Processors < 1 || w.Processors > ProcessorsMax:
		return fmt.Errorf("%d processors, want 1 to %d: %w", w.Processors, ProcessorsMax, ErrBounds)
	case w.Span < 1 || w.Span > SpanLimit:
		return fmt.Errorf("for %d µs, want more than 0 and at most %v: %w", int64(w.Span), SpanLimit, ErrBounds)
	case w.Patience < 0 || w.Patience > PatienceLimit:
		return fmt.Errorf("patience of %v, want 0 to %v: %w", w.Patience, PatienceLimit, ErrBounds)
	case w.Hold < 0 || w.Hold > HoldLimit:
		return fmt.Errorf("hold of %v, want 0 to %v: %w", w.Hold, HoldLimit, ErrBounds)
	case w.TTL < 0 || w.TTL > TTLMax:
		return fmt.Errorf("to be delegated %d times, want 0 to %d: %w", w.TTL, TTLMax, ErrBounds)
	case w.Within < 0 || w.Within > grid.SpanMax:
		return fmt.Errorf("within %d µs: %w", int64(w.Within), ErrBounds)
	case w.Most < 0 || w.Most > grid.CreditsMax:
		return fmt.Errorf("for at most %d micro-credits: %w", int64(w.Most), ErrBounds)
	case w.Age < 0 || w.Age > grid.SpanMax:
		return fmt.Errorf("age of %d µs: %w", int64(w.Age), ErrBounds)
	case len(b.entries) >= LeasesMax:
		return fmt.Errorf("%d leases and requests, no more are kept: %w", LeasesMax, ErrBounds)
	}
	return nil
}

// Claim takes what is held: Claimed follows, or Ended. Claiming twice is no error.
// It returns ErrUnknown if the lease is not held (any more). One with a price is Due
// first.
func (b *Book) Claim(now grid.Time, id ID, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || e.Lent || e.State == Requested || e.State == Ending {
		return fmt.Errorf("claim lease %d: %w", id.Number, ErrUnknown)
	}
	if e.State != Held {
		return nil
	}
	if e.Price > 0 && !e.Paid {
		if !e.due {
			e.due = true
			out.Save((*record)(e)) // its owner counts on hearing what becomes of the claim
			out.Local(&Due{e.Lease, e.hold})
		}
		return nil
	}
	b.enter(e, Claiming)
	e.Limit = now + b.cfg.shorter(e.Span)
	e.End = min(e.Limit, now+b.cfg.shorter(e.goneSpan)) // until the lender says how long a term is
	e.Since = now
	e.pause = b.cfg.Retry
	e.retry = now + e.pause
	e.repeat = false
	e.sequence = 1
	e.sent[1] = now
	out.Save((*record)(e))
	b.armBorrower(e)
	e.sendClaim(out)
	return nil
}

// Settle says that the cheque of a lease which was Due is with its lender: it is claimed
// now; or that there will be none: it is over. At the lender it says that the cheque is
// here. It returns ErrUnknown if there is no such lease (any more).
func (b *Book) Settle(now grid.Time, id ID, paid bool, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	switch {
	case e == nil || e.State != Held && !e.Lent:
		return fmt.Errorf("pay lease %d: %w", id.Number, ErrUnknown)
	case e.Lent:
		if !e.Paid {
			e.Paid = true
			out.Save((*record)(e))
		}
		return nil
	case !paid:
		b.end(now, e, NotPaid, out)
		return nil
	}
	e.Paid = true
	return b.Claim(now, id, out)
}

// Release gives a request, a hold or a lease up. What ran on the processors must be
// over. It returns ErrUnknown if there is no such lease; repeating it is no error
// while the lender has not confirmed.
func (b *Book) Release(now grid.Time, id ID, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || e.Lent {
		return fmt.Errorf("release lease %d: %w", id.Number, ErrUnknown)
	}
	if e.State != Ending {
		b.giveUp(now, e, out)
	}
	return nil
}

// Onward returns the lease by which the processors of a borrowed one are lent on; ok is false if they are
// not.
func Onward(b *Book, id ID) (next ID, ok bool) {
	if e := b.entries[id]; e != nil {
		return e.onward, e.onward != ID{}
	}
	return ID{}, false
}

// Renew asks the lender to let the lease go on until span from now. (What is agreed
// already is kept alive without being asked.) It returns ErrUnknown if the lease is
// not active, and ErrBounds for a span that is none.
func (b *Book) Renew(now grid.Time, id ID, span grid.Time, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	switch {
	case e == nil || e.Lent || e.State != Active || e.revoked:
		return fmt.Errorf("renew lease %d: %w", id.Number, ErrUnknown)
	case span < 1 || span > SpanLimit:
		return fmt.Errorf("renew lease %d for %d µs, want more than 0 and at most %v: %w", id.Number, int64(span), SpanLimit, ErrBounds)
	}
	e.wanted = span
	e.retry = min(e.retry, now+e.pause) // nothing may be left of what was agreed
	e.sendRenew(now, out)
	b.armBorrower(e)
	return nil
}

// lendOn says that the processors of an active lease are lent to another site.
func (b *Book) lendOn(in *entry, to ID) {
	b.count(in, -1)
	in.onward = to
	b.count(in, 1)
}

// giveUp begins to release: the message is repeated until the lender confirms, or
// until it has surely taken the processors back by itself.
func (b *Book) giveUp(now grid.Time, e *entry, out *grid.Outbox) {
	if e.State == Claiming || e.State == Active || e.due && e.State == Held {
		out.Delete((*record)(e))
	}
	if e.State == Requested || e.State == Held {
		e.gone = max(e.gone, now+16*b.cfg.Retry)
	}
	e.noFee(now, e.gone, out)
	b.enter(e, Ending)
	e.End = e.gone
	e.pause = b.cfg.Retry
	e.retry = now + e.pause
	b.armBorrower(e)
	out.Send(e.Lender, &Release{e.Number, e.Epoch})
}

// noFee says, of a lease that costs something, from when on it costs no more.
func (e *entry) noFee(now, gone grid.Time, out *grid.Outbox) {
	if e.Price > 0 && !e.Lent && e.State != Ending {
		out.Local(&Over{e.ID, max(gone, now)})
	}
}

// end tells the owner that a lease is over and releases it.
func (b *Book) end(now grid.Time, e *entry, cause Cause, out *grid.Outbox) {
	l, onward, gone := e.Lease, e.onward, e.gone
	b.giveUp(now, e, out)
	b.told(now, &Ended{Lease: l, Cause: cause, Gone: gone}, onward, out)
}

// told tells the owner, or whoever the processors were lent on to, that a lease of
// this borrower is over.
func (b *Book) told(now grid.Time, in *Ended, onward ID, out *grid.Outbox) {
	if onward == (ID{}) {
		out.Local(in)
		return
	}
	if next := b.entries[onward]; next != nil && next.Via == in.Number {
		b.endLent(now, next, Broken, max(in.Gone-now, 0), out)
	}
}

// armBorrower sets the alarm to what comes next.
func (b *Book) armBorrower(e *entry) {
	at := e.End
	if e.State != Held {
		at = min(at, e.retry)
	}
	b.alarms.Set(&e.alarm, at)
}

// borrowerDue is the alarm.
func (b *Book) borrowerDue(now grid.Time, e *entry, out *grid.Outbox) {
	if now >= e.End {
		b.runOut(now, e, out)
		return
	}
	if now >= e.retry && e.State == Active && e.revoked {
		e.retry = grid.Never
		out.Local(&Vacate{e.Lease})
	}
	if now >= e.retry {
		e.repeat = true
		if e.State != Active {
			e.pause = min(2*e.pause, max(b.cfg.Term, b.cfg.Retry))
		}
		e.retry = now + e.pause
		switch e.State {
		case Requested:
			b.sendRequest(e, now, out)
		case Claiming:
			e.sendClaim(out)
		case Active:
			e.sendRenew(now, out)
		case Ending:
			out.Send(e.Lender, &Release{e.Number, e.Epoch})
		}
	}
	b.armBorrower(e)
}

// runOut is the end of a state by itself.
func (b *Book) runOut(now grid.Time, e *entry, out *grid.Outbox) {
	switch e.State {
	case Requested:
		l := e.Lease
		b.giveUp(now, e, out)
		out.Local(&Refused{Lease: l, Reason: Silent})
	case Held:
		b.end(now, e, Unheld, out)
	case Claiming:
		b.end(now, e, NoAnswer, out)
	case Active:
		b.end(now, e, Expired, out)
	case Ending:
		b.remove(e)
	}
}

func (b *Book) sendRequest(e *entry, now grid.Time, out *grid.Outbox) {
	out.Send(e.Lender, &Request{
		Number: e.Number, Processors: e.Processors, Span: e.Span, Patience: max(e.until-4*b.cfg.Retry-now, 0), Hold: e.hold,
		Subject: e.Subject, Sink: e.Sink, TTL: e.TTL, Age: e.Age + now - e.Since, Bank: e.Bank, Most: e.Most,
		Within: e.needed(now),
	})
}

// needed returns within which span from now the processors have to be there, at least a
// moment; 0 if it does not matter.
func (e *entry) needed(now grid.Time) grid.Time {
	if e.Within == 0 {
		return 0
	}
	return max(e.Since+e.Within-now, 1)
}

func (e *entry) sendClaim(out *grid.Outbox) {
	out.Send(e.Lender, &Claim{Number: e.Number, Epoch: e.Epoch, Sequence: e.sequence, Stamp: e.stamp})
}

// sendRenew sends the next renewal.
func (e *entry) sendRenew(now grid.Time, out *grid.Outbox) {
	e.sequence++
	e.sent[e.sequence%sequencesKept] = now
	out.Send(e.Lender, &Renew{Number: e.Number, Epoch: e.Epoch, Sequence: e.sequence, Stamp: e.stamp, Span: e.wanted})
}

// own returns the entry that a lender speaks of, nil if there is none or if it is
// another lender's.
func (b *Book) own(from grid.SiteID, number uint64) *entry {
	if e := b.entries[ID{b.cfg.Site, number}]; e != nil && e.Lender == from {
		return e
	}
	return nil
}

func (b *Book) granted(now grid.Time, from grid.SiteID, m *Grant, out *grid.Outbox) {
	e := b.own(from, m.Number)
	if e == nil || e.State == Ending {
		out.Send(from, &Release{m.Number, m.Epoch}) // not wanted any more
		return
	}
	if e.State != Requested {
		return // a copy
	}
	if m.Price > 0 && (e.Bank == "" || e.Most > 0 && m.Price > e.Most) { // it was told so
		l := e.Lease
		b.giveUp(now, e, out)
		out.Local(&Refused{Lease: l, Reason: Dear, Price: m.Price})
		return
	}
	b.enter(e, Held)
	e.Price, e.hold = m.Price, m.Hold
	e.Epoch, e.Span, e.Source, e.Key, e.Hops = m.Epoch, min(e.Span, m.Span), m.Source, m.Key, m.Hops
	e.stamp, e.goneSpan = m.Stamp, m.Gone
	e.gone = now + b.cfg.longer(m.Gone)
	e.End = now + m.Hold
	b.armBorrower(e)
	out.Local(&Granted{e.Lease})
}

func (b *Book) refused(now grid.Time, from grid.SiteID, m *Refuse, out *grid.Outbox) {
	if e := b.own(from, m.Number); e != nil && e.State == Requested {
		l := e.Lease
		b.remove(e)
		out.Local(&Refused{Lease: l, Reason: m.Reason, Free: m.Free, Price: m.Price, Ready: m.Ready, Span: m.Span, Lends: m.Lends})
	}
}

// unreachable says that a request was never seen, unless an earlier copy was.
func (b *Book) unreachable(now grid.Time, to grid.SiteID, m *Request, out *grid.Outbox) {
	e := b.own(to, m.Number)
	if e == nil || e.State != Requested {
		return
	}
	l := e.Lease
	if e.repeat {
		b.giveUp(now, e, out)
	} else {
		b.remove(e)
	}
	out.Local(&Refused{Lease: l, Reason: Unreachable})
}

// confirmed is the answer to a claim or a renewal: the lease lasts for a term from
// when that was sent.
func (b *Book) confirmed(now grid.Time, from grid.SiteID, m *Renewed, out *grid.Outbox) {
	e := b.own(from, m.Number)
	if e == nil || e.Epoch != m.Epoch {
		out.Send(from, &Release{m.Number, m.Epoch})
		return
	}
	if e.State != Claiming && e.State != Active || m.Sequence > e.sequence || m.Sequence+sequencesKept <= e.sequence {
		return
	}
	sent := e.sent[m.Sequence%sequencesKept]
	if m.Stamp > e.stamp {
		e.stamp, e.goneSpan = m.Stamp, m.Gone
		e.gone = max(e.gone, now+b.cfg.longer(m.Gone))
	}
	if m.Sequence == e.sequence {
		e.wanted = 0
	}
	limit := sent + b.cfg.shorter(m.Limit)
	if e.State == Claiming {
		e.End = 0
		e.Limit = limit
	}
	e.Limit = max(e.Limit, limit)
	e.End = max(e.End, min(sent+b.cfg.shorter(m.Term), e.Limit))
	if e.End <= now { // the answer took longer than the term
		b.end(now, e, Expired, out)
		return
	}
	if !e.revoked {
		e.pause = max(m.Term/3, 1)
		e.retry = sent + e.pause
		if e.retry <= now {
			e.retry = now + e.pause
		}
		if e.End >= e.Limit && e.wanted == 0 {
			e.retry = grid.Never // nothing is left to be renewed
		}
	}
	fresh := e.State == Claiming
	if fresh {
		b.enter(e, Active)
	}
	out.Save((*record)(e))
	b.armBorrower(e)
	if fresh {
		out.Local(&Claimed{e.Lease})
	}
}

// gone is the lender's word that there is no such lease.
func (b *Book) gone(now grid.Time, from grid.SiteID, m *Released, out *grid.Outbox) {
	e := b.own(from, m.Number)
	if e == nil || m.Epoch != 0 && m.Epoch != e.Epoch {
		return
	}
	l, onward := e.Lease, e.onward
	if e.State == Claiming || e.State == Active || e.due && e.State == Held {
		out.Delete((*record)(e))
	}
	e.noFee(now, now, out)
	b.remove(e)
	gone := now
	if m.Gone > 0 { // a lender that has lost track says goneMax: what it said before still holds
		gone = min(now+b.cfg.longer(m.Gone), max(e.gone, now))
	}
	switch l.State {
	case Ending:
	case Requested:
		out.Local(&Refused{Lease: l, Reason: Withdrawn})
	default:
		b.told(now, &Ended{Lease: l, Cause: m.Cause, Gone: gone}, onward, out)
	}
}

// vacateLeast is what has to be left of a lease that is wanted back for what runs there to be ended before
// it is over.
const vacateLeast = 4

// vacateAt returns when what runs on a recalled lease is to be ended: it may end by
// itself in most of what is left of the lease, and the rest is for ending it.
func vacateAt(now, end grid.Time) grid.Time { return end - (end-now)/vacateLeast }

// recalled is the lender's wish to have the processors back.
func (b *Book) recalled(now grid.Time, from grid.SiteID, m *Revoke, out *grid.Outbox) {
	e := b.own(from, m.Number)
	switch {
	case e == nil || e.Epoch != m.Epoch || e.State == Ending:
		out.Send(from, &Release{m.Number, m.Epoch})
	case e.State == Held || e.State == Claiming:
		b.end(now, e, Revoked, out)
	case !e.revoked:
		e.revoked = true
		out.Save((*record)(e))
		b.recall(now, e, out)
	}
}

// recall has whoever uses a borrowed lease leave it before it ends.
func (b *Book) recall(now grid.Time, e *entry, out *grid.Outbox) {
	e.retry = vacateAt(now, e.End)
	next := b.entries[e.onward]
	if e.onward != (ID{}) { // whoever uses them is told, and vacates
		e.retry = grid.Never
	}
	b.armBorrower(e)
	if e.onward == (ID{}) {
		out.Local(&Recalled{e.Lease})
	} else if next != nil && !next.revoked {
		b.revoke(now, next, out)
	}
}

// Leave says that the owner is ending what runs on a borrowed lease, to Release it
// then. It is not renewed any more, and if the owner crashes in between, the book says
// Recalled after the restart. It returns ErrUnknown if there is no such lease, or one
// that is not active.
func (b *Book) Leave(now grid.Time, id ID, out *grid.Outbox) error {
	b.expire(now, out)
	e := b.entries[id]
	if e == nil || e.Lent || e.State != Active {
		return fmt.Errorf("leave lease %d: %w", id.Number, ErrUnknown)
	}
	if !e.revoked {
		e.revoked, e.retry = true, grid.Never
		out.Save((*record)(e))
		b.armBorrower(e)
	}
	return nil
}
