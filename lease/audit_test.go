package lease

import (
	"testing"

	"gridnode/grid"
)

// passedOn returns a book that lends on to one site what it has of another, and the two leases.
func passedOn(t *testing.T) (b *Book, in, on *entry) {
	t.Helper()
	b, id := borrowed(t, 5*grid.Minute, 20*grid.Minute)
	now, to, out := grid.Hour, ID{"d", 5}, grid.Outbox{}
	b.Step(now, &grid.Delivery{From: "d", Message: &Request{Number: 5, Processors: 2, Span: grid.Hour, Subject: grid.JobID{Lo: 2}, Sink: "d"}}, &out)
	if err := b.Grant(now, to, Terms{Via: id}, &out); err != nil {
		t.Fatal(err)
	}
	in, on = b.entries[id], b.entries[to]
	b.Step(now, &grid.Delivery{From: "d", Message: &Claim{Number: 5, Epoch: on.Epoch, Sequence: 1, Stamp: now}}, &out)
	if in.State != Active || on.State != Active {
		t.Fatalf("%+v is lent on as %+v", in.Lease, on.Lease)
	}
	return b, in, on
}

// TestAuditSees what is wrong with a lease that is lent, had, or lent on.
func TestAuditSees(t *testing.T) {
	for name, spoil := range map[string]func(b *Book, e *entry){
		"totals":                 func(b *Book, _ *entry) { b.totals.Lent++ },
		"borrowers":              func(b *Book, _ *entry) { b.peers["a"]++ },
		"tenants":                func(b *Book, e *entry) { b.tenants.add("a", 1) },
		"a timer":                func(b *Book, e *entry) { b.alarms.Stop(&e.alarm) },
		"a timer that is late":   func(b *Book, e *entry) { b.alarms.Set(&e.alarm, e.End+1) },
		"processors":             func(b *Book, e *entry) { b.cluster.Ended(grid.Hour, TaskOf(e.Epoch)) },
		"an end beyond the plan": func(b *Book, e *entry) { e.Limit += grid.Day },
		"an end beyond the last": func(b *Book, e *entry) { e.Limit = e.End - 1 },
		"an end nobody knows of": func(b *Book, e *entry) { e.gone = e.End - 1 },
		"an end that nobody pays": func(b *Book, e *entry) {
			e.Price, e.Limit = 1, e.Since+e.hold+e.Span+1
			b.cluster.Extend(grid.Hour, TaskOf(e.Epoch), e.Limit)
		},
	} {
		b, l := lent(t)
		if err := Audit(grid.Hour, b); err != nil {
			t.Fatal(err)
		}
		if spoil(b, b.entries[l.ID]); Audit(grid.Hour, b) == nil {
			t.Errorf("%s: it is not seen", name)
		}
	}
	for name, spoil := range map[string]func(b *Book, in, on *entry){
		"a renewal that never comes": func(b *Book, in, _ *entry) { in.retry = grid.Never },
		"one that is late":           func(b *Book, in, _ *entry) { b.alarms.Set(&in.alarm, in.retry+1) },
		"an end beyond the last":     func(b *Book, in, _ *entry) { in.Limit = in.End - 1 },
		"an end after it is gone":    func(b *Book, in, _ *entry) { in.gone = in.End - 1 },
		"whom it is lent on to":      func(b *Book, in, _ *entry) { in.onward.Number++ },
		"who is to leave it":         func(b *Book, in, _ *entry) { in.revoked = true },
		"when they are to": func(b *Book, in, on *entry) {
			in.revoked, on.revoked, in.retry = true, true, in.End
		},
		"whom it is from":     func(b *Book, in, _ *entry) { in.onward, b.totals = ID{}, Totals{Borrowed: 2} },
		"whose it is":         func(b *Book, _, on *entry) { on.Key++ },
		"how far it has come": func(b *Book, _, on *entry) { on.Hops = 1 },
		"a claim of what is to be left": func(_ *Book, in, on *entry) {
			in.State, in.revoked, on.revoked = Claiming, true, true
		},
		"a grant beyond its own": func(_ *Book, in, on *entry) {
			on.State, on.Span = Held, in.Limit-on.Since+1
		},
		"a limit beyond its own": func(b *Book, in, on *entry) { on.Limit = in.Limit + 1 },
		"an end beyond its own": func(b *Book, in, on *entry) {
			on.End = in.End + 1
			b.alarms.Set(&on.alarm, on.End)
		},
	} {
		b, in, on := passedOn(t)
		if err := Audit(grid.Hour, b); err != nil {
			t.Fatal(err)
		}
		if spoil(b, in, on); Audit(grid.Hour, b) == nil {
			t.Errorf("%s: it is not seen", name)
		}
	}
}

// TestRenewalIsRepeated: who wants a lease for longer of which nothing is left to be renewed asks again
// if there is no answer.
func TestRenewalIsRepeated(t *testing.T) {
	b, id := borrowed(t, grid.Hour, 2*grid.Hour)
	var out grid.Outbox
	if err := b.Renew(2*grid.Hour-40*grid.Minute, id, grid.Hour, &out); err != nil {
		t.Fatal(err)
	}
	if err := Audit(2*grid.Hour-40*grid.Minute, b); err != nil {
		t.Error(err)
	}
	b.Step(b.NextTimer(), grid.Tick{}, &out)
	if l, there := b.Get(id); len(out.Sends) != 2 || !there || l.State != Active {
		t.Errorf("%+v is sent, %+v, want the renewal again", out.Sends, l)
	}
}

// TestWhoForgetsDoesNotFree: a borrower that speaks of a lease which is over is told that its processors are
// free if they were the lender's own, and else nothing but that it is over: they may be in use at their source.
func TestWhoForgetsDoesNotFree(t *testing.T) {
	speaks := func(b *Book, l Lease) *Released {
		var out grid.Outbox
		if err := b.Revoke(grid.Hour, l.ID, true, &out); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		b.Step(grid.Hour, &grid.Delivery{From: l.Borrower, Message: &Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2, Stamp: grid.Hour}}, &out)
		return out.Sends[0].Message.(*Released)
	}
	b, l := lent(t)
	if m := speaks(b, l); m.Cause != Unknown || m.Gone != 0 {
		t.Errorf("of its own processors it says %+v, want that they are free", m)
	}
	b, _, on := passedOn(t)
	if m := speaks(b, on.Lease); m.Cause != Unknown || m.Gone != goneMax {
		t.Errorf("of another site's it says %+v, want that it does not know", m)
	}
}
