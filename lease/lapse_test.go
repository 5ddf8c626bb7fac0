package lease

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// TestDispatchAsPatienceEnds: where cycles are in step, what a site asked for runs out at
// the instant at which it could be had. It is not granted, and those behind it in the
// queue start.
func TestDispatchAsPatienceEnds(t *testing.T) {
	b := newBook(t, "b", 4)
	m, err := NewMatchmaker(MatchConfig{Lend: true, Threshold: 1000, MatchCycle: 5 * grid.Minute}, b.cluster, b, nil, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	now, out := grid.Hour, grid.Outbox{}
	m.Dispatch(now, nil, &out) // the next cycle is in five minutes
	ask := &Request{Number: 1, Processors: 4, Span: grid.Hour, Patience: 5 * grid.Minute, Subject: grid.JobID{Lo: 1}, Sink: "a", TTL: 1}
	b.Step(now, &grid.Delivery{From: "a", Message: ask}, &out)
	for _, in := range out.Locals {
		m.Step(now, in, &out)
	}
	own := lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}, Processors: 3, Estimate: grid.Hour}
	if err := m.Submit(now, Work{Request: own}, &out); err != nil {
		t.Fatal(err)
	}
	if b.cluster.Demand() != 7 {
		t.Fatalf("%d processors are waited for, want those of both requests", b.cluster.Demand())
	}
	now += 5 * grid.Minute
	started := m.Dispatch(now, nil, &out)
	if len(started) != 1 || started[0].ID != own.ID || b.cluster.Idle(now) != 1 || b.Totals() != (Totals{}) {
		t.Errorf("started %v, %d processors idle, %+v lent: want the own job on 3 of 4", started, b.cluster.Idle(now), b.Totals())
	}
}

// TestGrantTellsOfGrace: a lender says to be free of a borrower no sooner than what that leaves behind is
// gone.
func TestGrantTellsOfGrace(t *testing.T) {
	b := newBook(t, "b", 4)
	b.cfg.Grace = 10 * grid.Second
	var out grid.Outbox
	b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Request{Number: 1, Processors: 1, Span: grid.Hour, Hold: grid.Minute, Subject: grid.JobID{Lo: 1}, Sink: "a"}}, &out)
	if err := b.Grant(grid.Hour, ID{"a", 1}, Terms{}, &out); err != nil {
		t.Fatal(err)
	}
	m, yes := out.Sends[len(out.Sends)-1].Message.(*Grant)
	if want := grid.Minute + 2*b.cfg.Term + b.cfg.Grace; !yes || m.Gone != want {
		t.Errorf("%+v, want it to be free in %v", out.Sends, want)
	}
}
