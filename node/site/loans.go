package site

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
)

// loans is the part that owns the lease book: it lends and borrows on behalf of users,
// and tells the parts that borrow by themselves what has come of it.
type loans struct {
	*base
	book      *lease.Book
	pilots    *pilots
	borrowing *borrowing
	fees      *fees             // nil: nobody pays
	guests    *guests           // nil: the owner has no rules
	others    borrower          // of leases that are not the queue's
	asking    map[uint64]uint64 // tokens of users who asked for leases, by number
	chronicle *chronicle        // nil: no job log is kept
}

// borrower is a part that claims what it asked for by itself.
type borrower interface {
	// borrows reports whether a lease is the part's.
	borrows(id lease.ID) bool
	// leased tells it what has come of one.
	leased(now grid.Time, id lease.ID, in grid.Input, out *grid.Outbox)
}

func (nobody) borrows(lease.ID) bool                                { return false }
func (nobody) leased(grid.Time, lease.ID, grid.Input, *grid.Outbox) {}

func (*loans) takes(b *board) {
	of := func(s *Site) *loans { return s.loans }
	hear(b, of, (*loans).message, kindsOf(&lease.Protocol, kinshipKinds...)...)
	take(b, of, (*loans).request)
	take(b, of, (*loans).change)
	take(b, of, (*loans).asked)
	take(b, of, (*loans).granted)
	take(b, of, (*loans).claimed)
	take(b, of, (*loans).refused)
	take(b, of, (*loans).recalled)
	take(b, of, (*loans).ended)
}

func (ls *loans) tick(now grid.Time, out *grid.Outbox) { ls.book.Step(now, grid.Tick{}, out) }

func (ls *loans) nextTimer() grid.Time { return ls.book.NextTimer() }

func (ls *loans) keeps() []string { return []string{lease.RecordPrefix} }

func (ls *loans) recover(now grid.Time, stored records, out *grid.Outbox) error {
	return ls.book.Recover(now, stored.each, out)
}

// message feeds the book a message, or the news that one did not arrive.
func (ls *loans) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	ls.book.Step(now, in, out)
	if d, ok := in.(*grid.Delivery); ok {
		if m, ok := d.Message.(*lease.Renew); ok {
			if l, there := ls.book.Get(lease.ID{Borrower: d.From, Number: m.Number}); there {
				ls.pilots.keep(now, l, out)
			}
		}
	}
}

// request asks on behalf of a user.
func (ls *loans) request(now grid.Time, in *RequestLease, out *grid.Outbox) {
	id, err := ls.book.Request(now, in.Lender, lease.Want{Processors: in.Processors, Span: in.Span, Most: in.Most}, out)
	if err != nil {
		out.Answer(in.Token, &LeaseAnswer{Err: err})
		return
	}
	ls.asking[id.Number] = in.Token
}

// change renews, releases or revokes on behalf of a user.
func (ls *loans) change(now grid.Time, in *ChangeLease, out *grid.Outbox) {
	l, err := ls.meant(in)
	if err == nil {
		switch in.Change {
		case RenewLease:
			if l.Price > 0 {
				err = fmt.Errorf("lease %d is paid for until its end and no longer: ask for another one: %w", l.Number, ErrLease)
				break
			}
			err = ls.book.Renew(now, l.ID, in.Span, out)
		case ReleaseLease:
			if ls.others.borrows(l.ID) {
				err = fmt.Errorf("lease %d is of a job that runs at several sites: cancel the job: %w", l.Number, ErrLease)
			} else {
				err = ls.borrowing.release(now, l, in.Force, out)
			}
		case RevokeLease:
			err = ls.book.Revoke(now, l.ID, in.Force, out)
		}
	}
	if errors.Is(err, lease.ErrUnknown) {
		err = fmt.Errorf("lease %d is %s: %w", l.Number, l.State, ErrLease)
	}
	if after, there := ls.book.Get(l.ID); err == nil && there {
		l = after
	}
	out.Answer(in.Token, &LeaseAnswer{Lease: ls.borrowing.view(l), Err: err})
}

// audit returns what is wrong with the book, or which borrowed processors are kept that nothing here
// uses, or will.
func (ls *loans) audit(now grid.Time) error {
	if err := lease.Audit(now, ls.book); err != nil {
		return err
	}
	for l := range lease.All(ls.book) {
		if l.Lent || l.State != lease.Active || l.Sink != ls.cfg.ID || ls.others.borrows(l.ID) || ls.borrowing.uses(l) {
			continue
		}
		return fmt.Errorf("%d processors are borrowed with lease %d of %s, and nothing uses them", l.Processors, l.Number, l.Lender)
	}
	return nil
}

// meant returns the lease that a user means.
func (ls *loans) meant(in *ChangeLease) (lease.Lease, error) {
	var found []lease.Lease
	for _, l := range ls.book.Leases() {
		if l.Number == in.Number && l.Lent == (in.Change == RevokeLease) && (in.Borrower == "" || in.Borrower == l.Borrower) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return lease.Lease{}, noLease(in)
	case 1:
		return found[0], nil
	}
	return lease.Lease{}, fmt.Errorf("%d sites have a lease %d: name the borrower: %w", len(found), in.Number, ErrUnknownLease)
}

// noLease says that there is not what a user wants to change.
func noLease(in *ChangeLease) error {
	if in.Change == RevokeLease {
		return fmt.Errorf("nothing is lent as lease %d: %w", in.Number, ErrUnknownLease)
	}
	return fmt.Errorf("nothing is borrowed as lease %d: %w", in.Number, ErrUnknownLease)
}

// asked decides about a request.
func (ls *loans) asked(now grid.Time, in *lease.Asked, out *grid.Outbox) {
	t := ls.book.Totals()
	why, lends := lease.Accepted, int64(0)
	if ls.guests != nil && ls.cfg.Lease.Lend && !ls.draining {
		why, lends = ls.guests.lends(now, in)
	}
	switch most := ls.cfg.Lease.Most; {
	case ls.draining || !ls.cfg.Lease.Lend:
		why = lease.Denied
	case why != lease.Accepted:
	case most > 0 && in.Processors > most:
		why = lease.TooWide
	case most > 0 && t.Held+t.Lent+in.Processors > most:
		why = lease.Busy
	}
	if why == lease.Accepted {
		ls.borrowing.matches.Step(now, in, out)
		return
	}
	_ = ls.book.Refuse(now, in.ID, why, lends, out) // it was asked in this step, so it is there
}

// granted: what was asked for is held.
func (ls *loans) granted(now grid.Time, in *lease.Granted, out *grid.Outbox) {
	switch {
	case ls.others.borrows(in.ID):
		ls.others.leased(now, in.ID, in, out)
	case ls.borrowing.matches.Has(in.Number):
		ls.borrowing.matches.Step(now, in, out)
	default:
		_ = ls.book.Claim(now, in.ID, out) // ErrUnknown: it is over, and Ended follows
	}
}

// claimed: borrowed processors can be used from now on.
func (ls *loans) claimed(now grid.Time, in *lease.Claimed, out *grid.Outbox) {
	switch {
	case ls.others.borrows(in.ID):
		ls.others.leased(now, in.ID, in, out)
	case ls.borrowing.matches.Has(in.Number):
		ls.borrowing.matches.Step(now, in, out)
	case ls.borrowing.claimed(now, in.Lease, out):
		ls.answer(in.Number, &LeaseAnswer{Lease: ls.borrowing.view(in.Lease)}, out)
	}
}

// refused: there is no lease.
func (ls *loans) refused(now grid.Time, in *lease.Refused, out *grid.Outbox) {
	if ls.others.borrows(in.ID) {
		ls.others.leased(now, in.ID, in, out)
		return
	}
	ls.borrowing.matches.Step(now, in, out)
	text := in.Reason.String()
	if in.Reason == lease.Busy {
		text = fmt.Sprintf("%s: %d", text, in.Free)
	}
	if in.Reason == lease.Dear {
		text = fmt.Sprintf("%s: %v credits a processor-hour, and not at most %v", text, in.Price, in.Most)
	}
	ls.answer(in.Number, &LeaseAnswer{Lease: LeaseView{Lease: in.Lease}, Err: fmt.Errorf("%w: %s", ErrLease, text)}, out)
}

// recalled: the lender wants the processors back.
func (ls *loans) recalled(now grid.Time, in *lease.Recalled, out *grid.Outbox) {
	if ls.others.borrows(in.ID) {
		ls.others.leased(now, in.ID, in, out)
		return
	}
	ls.borrowing.recalled(now, in.Lease, out)
}

// ended: a lease is over, lent or borrowed.
func (ls *loans) ended(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	if !in.Lent && ls.others.borrows(in.ID) {
		ls.others.leased(now, in.ID, in, out)
		return
	}
	ls.borrowing.matches.Step(now, in, out)
	if in.Lent {
		ls.fees.ended(now, in, out)
		ls.chronicle.lent(now, in, out)
		ls.pilots.takeBack(now, in, out)
		return
	}
	ls.answer(in.Number, &LeaseAnswer{Lease: LeaseView{Lease: in.Lease}, Err: fmt.Errorf("%w: %s", ErrLease, in.Cause)}, out)
	ls.borrowing.over(now, in, out)
}

// answer tells the user who asked for a lease what has come of it.
func (ls *loans) answer(number uint64, a *LeaseAnswer, out *grid.Outbox) {
	if token, asked := ls.asking[number]; asked {
		delete(ls.asking, number)
		out.Answer(token, a)
	}
}

// kinshipKinds are the messages of the lease protocol that are about links, and not
// about leases.
var kinshipKinds = []grid.Kind{wire.LeaseInvite, wire.LeaseJoin, wire.LeaseFamily}

// pilots is the part that keeps lent processors for those who have leased them: an
// executor's pilot runs what the borrower sends, until the lease is over.
type pilots struct {
	*base
	book    *lease.Book
	byEpoch map[uint64]pilot
}

// pilot is a lent lease whose processors a pilot keeps.
type pilot struct {
	id  lease.ID
	end grid.Time // as the executor was last told
}

func (*pilots) takes(b *board) {
	take(b, func(s *Site) *pilots { return s.pilots }, (*pilots).activated)
}

// activated: somebody has claimed processors of this site.
func (ps *pilots) activated(now grid.Time, in *lease.Activated, out *grid.Outbox) {
	ps.keep(now, in.Lease, out)
}

// keep has a pilot keep the processors of a lent lease until its end.
func (ps *pilots) keep(now grid.Time, l lease.Lease, out *grid.Outbox) { ps.keepOn(now, l, 0, out) }

// keepOn does so. After a restart more, which is above 0, bounds by how much it ends later
// than the pilot was told before: that was a span, which goes on whatever the site's clock
// shows now, and the end of a lease is an instant.
func (ps *pilots) keepOn(now grid.Time, l lease.Lease, more grid.Time, out *grid.Outbox) {
	if !l.Lent || l.State != lease.Active || l.Via != 0 || l.End <= now || ps.byEpoch[l.Epoch].end >= l.End {
		return
	}
	ps.byEpoch[l.Epoch] = pilot{id: l.ID, end: l.End}
	out.Start(grid.Task{
		ID: lease.TaskOf(l.Epoch), Limit: l.End - now, Until: l.Limit, Processors: l.Processors, More: more,
		Pilot: grid.Pilot{Site: l.Sink, Key: l.Epoch},
	})
}

// takeBack ends what runs on processors that were lent.
func (ps *pilots) takeBack(_ grid.Time, in *lease.Ended, out *grid.Outbox) {
	if in.State == lease.Requested || in.Via != 0 {
		return
	}
	if _, kept := ps.byEpoch[in.Epoch]; kept || in.State == lease.Active || in.State == lease.Ending {
		ps.byEpoch[in.Epoch] = pilot{id: in.ID, end: grid.Never}
		out.Kill(grid.Task{ID: lease.TaskOf(in.Epoch), Cause: "the lease is over: " + in.Cause.String(), Pilot: grid.Pilot{Site: in.Sink, Key: in.Epoch}})
	}
}

// taskEnded implements watcher: a pilot and everything it started is gone.
func (ps *pilots) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool {
	epoch, yes := IsPilot(in.ID)
	p, known := ps.byEpoch[epoch]
	if !yes || !known {
		return yes
	}
	delete(ps.byEpoch, epoch)
	if ps.book.Vacated(now, p.id, out) == nil {
		return true
	}
	// It died while the lease goes on: what ran there is lost, and the borrower has to
	// know. Taking the lease back tells it so.
	if ps.book.Revoke(now, p.id, true, out) == nil {
		ps.byEpoch[epoch] = pilot{id: p.id, end: grid.Never}
	}
	return true
}

// adopted implements watcher.
func (ps *pilots) adopted(in *Adopted, out *grid.Outbox) bool {
	epoch, yes := IsPilot(in.ID)
	if _, kept := ps.byEpoch[epoch]; yes && !kept {
		out.Kill(grid.Task{ID: in.ID, Cause: "its lease is over"})
	}
	return yes
}

// minds implements watcher: nobody waits for a pilot in limbo.
func (*pilots) minds(grid.TaskID) bool { return false }

// recovered keeps the processors that were lent before a restart.
func (ps *pilots) recovered(now grid.Time, out *grid.Outbox) {
	for _, l := range ps.book.Leases() {
		ps.keepOn(now, l, 1+lease.Spare(ps.book, l.ID), out)
	}
}

// of returns the active lease by which another site uses processors of this one.
func (ps *pilots) of(from grid.SiteID, key uint64) (lease.Lease, bool) {
	p, known := ps.byEpoch[key]
	if !known {
		return lease.Lease{}, false
	}
	l, there := ps.book.Get(p.id)
	return l, there && l.State == lease.Active && l.Sink == from && l.Epoch == key
}

// IsPilot returns the epoch of the lease whose pilot a task is.
func IsPilot(id grid.TaskID) (epoch uint64, yes bool) {
	return id.Job.Lo, id == lease.TaskOf(id.Job.Lo)
}
