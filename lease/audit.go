package lease

import (
	"errors"
	"fmt"
	"maps"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Audit returns which count of a book is not what its leases come to, or which of them is not what
// it has to be: it waits without a timer, or for longer than it may; it is in use for longer than it
// is counted on; it is lent on, and is not what that is lent from; it is back in the cluster's plans
// before it can have ended. nil: there is nothing of that kind. A nil Book is in order. It is asked
// of a book at rest.
func Audit(now grid.Time, b *Book) error {
	if b == nil {
		return nil
	}
	have := Book{entries: b.entries, peers: make(map[grid.SiteID]int), tenants: make(tenants)}
	for _, e := range b.entries {
		have.count(e, 1)
		audit := e.auditBorrowed
		if e.Lent {
			have.peers[e.Borrower]++
			audit = e.auditLent
		}
		if e.Lent && e.Via == 0 {
			have.tenants.add(e.Borrower, e.Processors)
		}
		if err := audit(now, b); err != nil {
			return fmt.Errorf("lease %d of %s by %s, %v: %w", e.Number, e.Borrower, e.Lender, e.State, err)
		}
	}
	switch {
	case have.totals != b.totals:
		return fmt.Errorf("leases come to %+v, and count as %+v", have.totals, b.totals)
	case !maps.Equal(have.peers, b.peers):
		return fmt.Errorf("borrowers have %v requests and leases here, and count as having %v", have.peers, b.peers)
	case !maps.Equal(have.tenants, b.tenants):
		return fmt.Errorf("borrowers have %v processors here, and count as having %v", have.tenants, b.tenants)
	}
	return nil
}

// auditBorrowed returns what is wrong with a lease that a site has, or asks for.
func (e *entry) auditBorrowed(now grid.Time, b *Book) error {
	at, asks := e.End, e.State != Held
	if e.State == Active { // else nothing is left to be asked
		asks = !e.revoked && (e.End < e.Limit || e.wanted > 0)
	}
	if asks {
		at = min(at, e.retry)
	}
	if err := e.alarm.Check(at); err != nil {
		return err
	}
	switch {
	case asks && e.retry > now+e.pause:
		return fmt.Errorf("its lender is asked next at %v, and was to be within %v", e.retry, e.pause)
	case e.revoked && e.State < Active:
		return errors.New("its lender wants it back, and it is not used yet, and asked for still")
	case e.State != Active:
		return nil
	case e.End > max(e.Limit, now) || e.End > max(e.gone, now):
		return fmt.Errorf("it ends at %v, lasts until %v at most, and counts as gone at %v", e.End, e.Limit, e.gone)
	case e.revoked && e.retry != grid.Never && e.retry >= e.End && e.End-now > vacateLeast:
		return fmt.Errorf("what runs there is ended at %v, and it ends at %v", e.retry, e.End)
	case e.onward == (ID{}):
		return nil
	}
	switch next := b.entries[e.onward]; {
	case next == nil || next.Via != e.Number:
		return fmt.Errorf("it is lent on to %s with lease %d, which is not there", e.onward.Borrower, e.onward.Number)
	case e.revoked && next.State == Active && !next.revoked:
		return fmt.Errorf("its lender wants it back, and it is lent on to %s with lease %d, which is not wanted back", e.onward.Borrower, e.onward.Number)
	}
	return nil
}

// auditLent returns what is wrong with a lease that a site has given, or is asked for.
func (e *entry) auditLent(now grid.Time, b *Book) error {
	if e.State != Ending { // that drains, until its owner says that it has
		if err := e.alarm.Check(e.End); err != nil {
			return err
		}
	}
	switch paid := e.Since.Add(e.hold).Add(e.Span); {
	case e.State == Active && (e.End > max(e.Limit, now) || e.End > max(e.gone, now)):
		return fmt.Errorf("it ends at %v, lasts until %v at most, and is counted on until %v at most", e.End, e.Limit, e.gone)
	case e.State == Active && e.Price > 0 && e.Limit > paid:
		return fmt.Errorf("it lasts until %v at most, and is paid for until %v", e.Limit, paid)
	case e.State == Requested:
		return nil
	}
	if e.Via != 0 {
		return e.auditOnward(now, b.inbound(e))
	}
	end, runs := lrms.Ends(b.cluster, TaskOf(e.Epoch))
	if !runs {
		return errors.New("its cluster does not know of it")
	}
	if e.State == Active && end < e.Limit {
		return fmt.Errorf("it may last until %v, and its cluster plans with it until %v", e.Limit, end)
	}
	return nil
}

// auditOnward returns what is wrong with a lease that is lent from another one.
func (e *entry) auditOnward(now grid.Time, in *entry) error {
	switch {
	case in == nil || in.State != Active || in.onward != e.ID:
		return fmt.Errorf("it is lent on from lease %d, which is not lent to it", e.Via)
	case in.Source != e.Source || in.Key != e.Key || in.Processors != e.Processors || e.Hops != min(in.Hops+1, HopsMax):
		return fmt.Errorf("it is %+v, and lent on from %+v", e.Lease, in.Lease)
	case e.State == Held && e.Since.Add(e.Span) > in.Limit:
		return fmt.Errorf("it is granted for %v since %v, and what it is lent on from lasts until %v at most", e.Span, e.Since, in.Limit)
	case e.End > max(in.End, now) || e.State == Active && e.Limit > in.Limit:
		return fmt.Errorf("it ends at %v, at %v at most, and what it is lent on from at %v, at %v at most", e.End, e.Limit, in.End, in.Limit)
	}
	return nil
}
