package site

import (
	"maps"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
)

// TestSiteTakesInWhatItsCoresTellEachOther: nothing of it stays in the outbox, where
// another reader would take it for its own; not after a step, nor after a restart.
// (bench.carryOut looks after every step.)
func TestSiteTakesInWhatItsCoresTellEachOther(t *testing.T) {
	b := newBench(t, together)
	ask := func(token uint64) uint64 {
		b.sends = nil
		b.step(&RequestLease{Token: token, Lender: "there", Processors: 2, Span: grid.Hour})
		return b.sends[0].Message.(*lease.Request).Number
	}
	b.step(&grid.Delivery{From: "there", Message: &lease.Refuse{Number: ask(1), Reason: lease.Denied}})
	if a, _ := b.answers[1].(*LeaseAnswer); a == nil || a.Err == nil {
		t.Errorf("the refused user is answered %+v", b.answers[1])
	}

	number := ask(2)
	grant := &lease.Grant{Number: number, Epoch: 7, Span: grid.Hour, Hold: grid.Minute, Gone: grid.Minute, Stamp: b.now, Source: "there", Key: 7}
	renewed := &lease.Renewed{Number: number, Epoch: 7, Sequence: 1, Term: grid.Minute, Limit: grid.Hour, Gone: grid.Minute, Stamp: b.now}
	b.step(&grid.Delivery{From: "there", Message: grant}, &grid.Delivery{From: "there", Message: renewed})
	id := lease.ID{Borrower: "here", Number: number}
	if l, _ := b.site.loans.book.Get(id); l.State != lease.Active || b.site.borrowing.pools.of(id) == nil {
		t.Fatalf("lease %+v, want it active and its processors in use", l)
	}

	b.boot()
	if err := b.site.Recover(b.now, maps.All(b.records), &b.out); err != nil {
		t.Fatal(err)
	}
	if b.carryOut(); b.site.borrowing.pools.of(id) == nil {
		t.Error("after the restart the site does not know its borrowed processors")
	}
}
