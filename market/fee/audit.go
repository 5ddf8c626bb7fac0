package fee

import (
	"fmt"

	"gridnode/grid"
)

// Audit returns which lease is to be paid for that nobody will ask about again, or soon enough, or
// for which more is owed than its cheque is over; nil: there is none. It is asked of a tab at rest.
func Audit(now grid.Time, t *Tab) error {
	if t == nil {
		return nil
	}
	for number, f := range t.owes {
		if err := f.audit(now, t); err != nil || f.lends() || f.Number != number {
			return fmt.Errorf("lease %d of %s, in state %d: %w", number, f.Peer, f.state, err)
		}
	}
	for of, f := range t.owed {
		if err := f.audit(now, t); err != nil || !f.lends() || f.Number != of.number || f.Peer != of.borrower {
			return fmt.Errorf("lease %d to %s, in state %d: %w", of.number, of.borrower, f.state, err)
		}
	}
	return nil
}

func (f *fee) audit(now grid.Time, t *Tab) error {
	latest := now + askMax
	o := t.desk.Outcasts()
	outcast := o.Has(f.Peer) || o.Has(f.Bank)
	switch f.state {
	case drawing: // the desk says what comes of it
		return nil
	case advanced:
		latest = now + checkIn
		if outcast {
			latest = max(min(latest, f.over), now)
		}
	case late:
		latest = now + lateKeep
	}
	if outcast && (f.state == advancing || f.state == billed) {
		return fmt.Errorf("%s or %s is a member of the federation no longer, and is asked", f.Peer, f.Bank)
	}
	if f.amount < 0 || f.lends() && (f.amount == 0 || f.amount > f.ceiling()) {
		return fmt.Errorf("%v are owed, its cheque is over %v", f.amount, f.ceiling())
	}
	return f.alarm.Check(latest)
}
