package coalloc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/lease"
)

// asker is a book that only notes who is asked.
type asker struct {
	asked []string
	holds []grid.Time
}

func (a *asker) Request(_ grid.Time, lender grid.SiteID, w lease.Want, _ *grid.Outbox) (lease.ID, error) {
	a.asked = append(a.asked, fmt.Sprint(lender, ":", w.Processors))
	a.holds = append(a.holds, w.Hold)
	return lease.ID{Borrower: "x", Number: uint64(len(a.asked))}, nil
}
func (a *asker) Claim(grid.Time, lease.ID, *grid.Outbox) error   { return nil }
func (a *asker) Release(grid.Time, lease.ID, *grid.Outbox) error { return nil }
func (a *asker) Gone(lease.ID) grid.Time                         { return 0 }

// TestOrderAfterRefusal: the first attempt asks all sites at once, later ones ask one
// after the other by name, whatever the policy's order. A refusal's news counts.
func TestOrderAfterRefusal(t *testing.T) {
	book := &asker{}
	v := viewOf(nil, 4, 9, 7)
	c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: PolicyFCM}}, v, book, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	told := func(in grid.Input) { c.Step(0, in, &out) }
	told(&Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: 18}, Estimate: grid.Minute})
	if got := strings.Join(book.asked, " "); got != "a:2 b:9 c:7" {
		t.Fatalf("asked %s, want all", got)
	}
	told(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: 1}}})
	told(&lease.Refused{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: 2}}, Reason: lease.Busy, Free: 8})
	if v.Sites[0].Free != 4 || v.Sites[1].Free != 8 || v.Sites[2].Free != 7 || c.Claiming() != 0 {
		t.Errorf("after the refusal %+v are idle", v.Sites)
	}
	book.asked = nil
	c.Step(grid.Minute, grid.Tick{}, &out)
	for number := uint64(1); number <= 3; number++ {
		want := []string{"a:3", "a:3 b:8", "a:3 b:8 c:7"}[number-1]
		if got := strings.Join(book.asked, " "); got != want {
			t.Fatalf("asked %s, want %s", got, want)
		}
		told(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "x", Number: number}}})
	}
	if len(out.Records) != 1 {
		t.Errorf("%d decisions are saved once all hold", len(out.Records))
	}
	told(&Submit{Task: grid.TaskID{Job: jobID(2), Epoch: 1}, Request: &Request{Processors: 301}, Estimate: grid.Minute})
	told(&Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: 1}, Estimate: grid.Minute})
	var errs []string
	for _, in := range out.Locals {
		if r, ok := in.(*Rejected); ok {
			errs = append(errs, r.Err.Error())
		}
	}
	if len(errs) != 2 || !strings.Contains(errs[0], "301 processors") || !strings.Contains(errs[1], "in the placement queue already") {
		t.Errorf("refused with %q", errs)
	}
}

// TestHoldsLastUntilTheLastIsAsked: sites that are far away are asked one after the other,
// for longer than one hold lasts. What the first hold is still there when the last does.
func TestHoldsLastUntilTheLastIsAsked(t *testing.T) {
	const sites, roundTrip = 60, 400 * grid.Millisecond
	free := make([]int64, sites)
	for i := range free {
		free[i] = 1
	}
	book := &asker{}
	c, err := NewCoordinator(CoordinatorConfig{Queue: QueueConfig{Policy: PolicyFCM}, Hold: 6 * grid.Second}, viewOf(nil, free...), book, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	number := func(n int) lease.Lease { return lease.Lease{ID: lease.ID{Borrower: "x", Number: uint64(n)}} }
	c.Step(0, &Submit{Task: grid.TaskID{Job: jobID(1), Epoch: 1}, Request: &Request{Processors: sites}, Estimate: grid.Minute}, &out)
	c.Step(0, &lease.Refused{Lease: number(1), Reason: lease.Busy, Free: 1}, &out)
	const begin = grid.Minute
	c.Step(begin, grid.Tick{}, &out)
	first := len(book.asked)
	for n := range sites {
		now := begin + grid.Time(n+1)*roundTrip
		for i, hold := range book.holds[first-1:] {
			if ends := begin + grid.Time(i)*roundTrip + hold; ends < now {
				t.Fatalf("the hold of site %d ends at %v, at %v the answer of site %d comes", i+1, ends, now, n+1)
			}
		}
		c.Step(now, &lease.Granted{Lease: number(first + n)}, &out)
	}
	if len(book.asked) != 2*sites || len(out.Records) != 1 {
		t.Errorf("%d sites were asked, %d decisions saved", len(book.asked), len(out.Records))
	}
}

// FuzzDecodeDecision: what is read back is what was saved, or an error.
func FuzzDecodeDecision(f *testing.F) {
	a := &attempt{task: grid.TaskID{Job: jobID(7), Epoch: 3}, phase: phaseStarted, parts: []partState{
		{Claimed: Claimed{Component: 1, Site: "a", Processors: 8, Lease: lease.ID{Borrower: "h", Number: 99}}},
	}}
	f.Add((*decision)(a).AppendRecord(nil))
	f.Add([]byte{1})
	corpus.Fuzz(f, func(t *testing.T, b []byte) {
		a, err := decodeDecision(b)
		if err != nil {
			return
		}
		again, err := decodeDecision((*decision)(a).AppendRecord(nil))
		if err != nil || again.task != a.task || again.phase != a.phase || !slices.Equal(again.parts, a.parts) {
			t.Fatalf("%+v became %+v, %v", a, again, err)
		}
	})
}
