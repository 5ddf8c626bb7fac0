package site

import (
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
)

// TestClaimFailsElsewhere: a job whose claim was decided, and then failed at another
// site before it started, waits again, and this site has its processors back.
func TestClaimFailsElsewhere(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 5)
	j.Tasks, j.Coallocate = 5, &grid.Coallocation{Components: "4@here,1@there", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	co := b.site.gangs
	b.step(&directory.Found{ID: co.scout.query, End: true, Quotes: []directory.Quote{
		{Site: "there", Name: "there", Resources: grid.Resources{Processors: 4}, Rating: b.cfg.Rating, Price: grid.Credit, Free: 4, Widest: 4, Issued: b.now},
	}})
	asked := uint64(0)
	for _, s := range b.sends {
		if m, is := s.Message.(*lease.Request); is {
			asked = m.Number
		}
	}
	if held := co.home.Leases(); asked == 0 || len(held) != 1 || held[0].State != lease.Held {
		t.Fatalf("asked for lease %d, held at home: %+v", asked, held)
	}
	// The hold ends there in the instant in which it is to be claimed.
	b.step(&lease.Granted{Lease: lease.Lease{ID: lease.ID{Borrower: "here", Number: asked}}})
	if held := co.home.Leases(); len(held) != 0 {
		t.Errorf("held at home, with nothing that will ever end: %+v", held)
	}
	if v, _ := b.site.Job(j.ID); v.State != Queued || b.site.Offer().Free != 4 {
		t.Errorf("%v (%s), %d processors are free; want it queued, and all 4", v.State, v.Reason, b.site.Offer().Free)
	}
}

// TestResumedJobBeganBefore: a restart of the daemon does not make a co-allocated job
// shorter, nor cheaper.
func TestResumedJobBeganBefore(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 4)
	j.Tasks, j.Coallocate = 4, &grid.Coallocation{Components: "2@here,2@here", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	b.step(&directory.Found{ID: b.site.gangs.scout.query, End: true})
	began := b.now
	if v := b.want(1, Running); v.Start != began || len(b.started) != 1 || b.started[0].Gang == nil {
		t.Fatalf("%+v, started %v", v, b.started)
	}
	task := b.started[0].ID
	b.now += grid.Minute
	b.crash(&Adopted{ID: grid.SquadTask(task, 0), Start: began})
	if v := b.want(1, Running); v.Start != began || len(b.started) != 1 || b.started[0].ID != task {
		t.Fatalf("after a restart it began at %v, want %v; started %v", v.Start, began, b.started)
	}
	b.now += grid.Minute
	b.step(&grid.TaskEnded{ID: task, Result: grid.Result{Start: b.now - grid.Minute, End: b.now}})
	v := b.want(1, Done)
	if cost := b.cfg.Cost.Cost(b.cfg.Price, 4, 100*grid.Second); v.Start != began || v.Result.Cost != cost {
		t.Errorf("it began at %v and costs %v; want %v, and %v for the time it asked for", v.Start, v.Result.Cost, began, cost)
	}
}

// TestUnknownSiteIsLookedForSometimes: a job that names a site which no scan finds is
// refused after some scans, neither the first nor for ever.
func TestUnknownSiteIsLookedForSometimes(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Parts = Everything
		c.Directory = directory.Config{Federation: "test"}
	})
	j := b.job(1, 2)
	j.Tasks, j.Coallocate = 2, &grid.Coallocation{Components: "1@here,1@stranger", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	looks, seen := 0, b.site.gangs.scout.query-1
	for range 100 {
		if q := b.site.gangs.scout.query; q != seen {
			seen = q
			looks++
			b.step(&directory.Found{ID: q, End: true})
		}
		if v, _ := b.site.Job(j.ID); v.State == Refused {
			break
		}
		b.now += 10 * grid.Second
		b.step(grid.Tick{})
	}
	if v := b.want(1, Refused); looks < 2 || looks > 1+looksMax || !strings.Contains(v.Reason, "stranger") {
		t.Errorf("looked %d times, then refused because %s; want 2 to %d looks", looks, v.Reason, 1+looksMax)
	}
}

// Every state, terminal or not, has a name of its own.
func TestStatesHaveNames(t *testing.T) {
	for state := Placing; state <= Refused; state++ {
		if got, err := ParseState(state.String()); err != nil || got != state {
			t.Errorf("state %d is called %q, which is read as %v (%v)", state, state, got, err)
		}
	}
	if got, err := ParseState(""); err == nil {
		t.Errorf("no name is read as %v", got)
	}
}
