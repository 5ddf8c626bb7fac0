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

// TestPilotsCountTheirSpan: a pilot counts what is left of its lease by a span, and the site by an
// instant. After a restart that says nothing where the clock was set, so a pilot that is there is
// told that it is to last on, and not until when.
func TestPilotsCountTheirSpan(t *testing.T) {
	for _, by := range []grid.Time{0, -21 * grid.Minute} {
		b := newBench(t, together)
		b.now = grid.Hour
		b.site.loans.cfg.Lease.Lend = true
		book := b.site.loans.book
		book.Step(b.now, &grid.Delivery{From: "there", Message: &lease.Request{Number: 5, Processors: 2, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "there"}}, &b.out)
		id := lease.ID{Borrower: "there", Number: 5}
		if err := book.Grant(b.now, id, lease.Terms{}, &b.out); err != nil {
			t.Fatal(err)
		}
		held, _ := book.Get(id)
		b.out.Locals = nil
		b.step(&grid.Delivery{From: "there", Message: &lease.Claim{Number: 5, Epoch: held.Epoch, Sequence: 1, Stamp: b.now}})
		if len(b.started) != 1 || b.started[0].More != 0 {
			t.Fatalf("started %+v, want a pilot", b.started)
		}
		b.now += by + grid.Second
		b.crash()
		if len(b.started) != 1 || b.started[0].More < 1 || b.started[0].Limit > lease.DefaultTerm {
			t.Errorf("%v later it is told %+v, want that it is to last at most a bit longer than it was told", by, b.started)
		}
	}
}
