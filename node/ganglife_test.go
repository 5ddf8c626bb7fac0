package node

import (
	"strings"
	"testing"
	"time"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/p2p"
)

// TestClaimFailsElsewhere: a job whose claim was decided, and then failed at another
// site before it started, waits again, and this site has its processors back.
func TestClaimFailsElsewhere(t *testing.T) {
	b := newBench(t, func(c *SiteConfig) {
		c.Alone = false
		c.Market = market.Config{Site: c.ID, Name: c.Name, Resources: c.Resources, Rating: c.Rating, Price: c.Price}
		c.Directory = directory.Config{Self: c.ID, Federation: "test"}
	})
	j := b.job(1, 5)
	j.Tasks, j.Coallocate = 5, &grid.Coallocation{Components: "4@here,1@there", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	co := b.site.co
	b.step(&directory.Found{ID: co.scan.query, End: true, Quotes: []directory.Quote{
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
	b := newBench(t, func(c *SiteConfig) {
		c.Alone = false
		c.Market = market.Config{Site: c.ID, Name: c.Name, Resources: c.Resources, Rating: c.Rating, Price: c.Price}
		c.Directory = directory.Config{Self: c.ID, Federation: "test"}
	})
	j := b.job(1, 4)
	j.Tasks, j.Coallocate = 4, &grid.Coallocation{Components: "2@here,2@here", CCR: -1}
	b.step(&Submit{Token: 1, Job: j})
	b.step(&directory.Found{ID: b.site.co.scan.query, End: true})
	began := b.now
	if v := b.want(1, Running); v.Start != began || len(b.started) != 1 || b.started[0].Gang == nil {
		t.Fatalf("%+v, started %v", v, b.started)
	}
	task := b.started[0].ID
	b.now += grid.Minute
	b.crash(&Adopted{ID: grid.RankTask(task, 0), Start: began})
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

// TestUnreadyTaskSaysWhy: a co-allocated job whose tasks cannot all be prepared in time
// fails with what the last pilot asked has said.
func TestUnreadyTaskSaysWhy(t *testing.T) {
	h := realHost(t, realConfig(t, 1, &p2p.Memory{}))
	x := newGangs(h, func(*grid.TaskEnded) {})
	defer x.Close()
	x.away = newAway(h, func(*grid.TaskEnded) {})
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 1}, Epoch: 1}
	g := x.get(id)
	g.task = &grid.Task{ID: id, Gang: &grid.Gang{Task: id, Each: 1, Parts: []grid.GangPart{{Site: "lender", Processors: 1}}}}
	g.ranks[0] = &gangRank{id: grid.RankTask(id, 0), away: true}
	g.due = time.Now().Add(time.Hour)
	x.rankRefused(grid.RankTask(id, 0), "no such lease")
	if g.step(); g.failure != nil {
		t.Fatalf("it fails at once: %+v", g.failure)
	}
	g.due = time.Now().Add(-time.Second)
	g.step()
	if g.failure == nil || !strings.HasSuffix(g.failure.Result.Reason, "1m0s: no such lease") {
		t.Errorf("it ends with %+v, want the reason of the refusal", g.failure)
	}
}
