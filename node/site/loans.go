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
	others    borrower          // of leases that are not the queue's
	asking    map[uint64]uint64 // tokens of users who asked for leases, by number
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
	id, err := ls.book.Request(now, in.Lender, lease.Want{Processors: in.Processors, Span: in.Span}, out)
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

// meant returns the lease that a user means.
func (ls *loans) meant(in *ChangeLease) (lease.Lease, error) {
	var found []lease.Lease
	for _, l := range ls.book.Leases() {
		if l.Number == in.Number && l.Lent == (in.Change == RevokeLease) && (in.Borrower == "" || in.Borrower == l.Borrower) {
			found = append(found, l)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return lease.Lease{}, fmt.Errorf("%d sites have a lease %d: name the borrower: %w", len(found), in.Number, ErrUnknownLease)
	}
	return lease.Lease{}, noLease(in)
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
	why := lease.Accepted
	switch most := ls.cfg.Lease.Most; {
	case ls.draining:
		why = lease.Denied
	case most > 0 && in.Processors > most:
		why = lease.TooWide
	case most > 0 && t.Held+t.Lent+in.Processors > most:
		why = lease.Busy
	}
	if why == lease.Accepted {
		ls.borrowing.matches.Step(now, in, out)
		return
	}
	_ = ls.book.Refuse(now, in.ID, why, out) // it was asked in this step, so it is there
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
