package market

import (
	"testing"

	"gridnode/internal/grid"
)

// TestHomeChargesItsPresentPrice checks that a price that changes while a job waits
// for an answer counts for home, too.
func TestHomeChargesItsPresentPrice(t *testing.T) {
	for _, tt := range []struct {
		price grid.Price
		at    grid.SiteID
	}{
		{2 * grid.Credit, "a"},
		{5 * grid.Credit, ""}, // over the budget, and b is gone
	} {
		n, a, m := hostile(t) // b was asked; home costs 2 credits, the budget
		a.agent.SetPrice(tt.price)
		a.step(&grid.Undelivered{To: "b", Message: m})
		if got := a.jobs[m.Task.Job].award; got.Site != tt.at || got.Cost > 2*grid.Credit {
			t.Errorf("home at %v: job at %q for %v, want %q\n%s", tt.price, got.Site, got.Cost, tt.at, n.takeTrace())
		}
	}
}

// TestDrawSpreadsEqualSites checks that equally good sites share the jobs, and
// that a draw never costs the user anything.
func TestDrawSpreadsEqualSites(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	for _, cfg := range []Config{
		{Site: "a", Price: 9 * grid.Credit}, {Site: "b", Price: grid.Credit}, {Site: "c", Price: grid.Credit},
		{Site: "d", Price: grid.Credit}, {Site: "e", Price: 2 * grid.Credit},
	} {
		cfg.Resources, cfg.Rating, cfg.Foreign = grid.Resources{Processors: 1000}, grid.Rating{Speed: 1000, Bandwidth: 1000}, true
		cfg.AsksPerPeer, cfg.HoldsPerPeer, cfg.HoldShare = 1000, 1000, 1000
		if cfg.Site == "a" {
			cfg.Speed = 900 // not as good: a tie would go to home
		}
		n.add(cfg, 0)
	}
	asked := map[grid.SiteID]int{}
	for _, goal := range []grid.Goal{grid.GoalCost, grid.GoalTime} {
		for i := range uint64(150) {
			n.place(n.job(uint64(goal)<<32|i+1, "a", 1, grid.Hour, goal))
		}
	}
	for _, m := range n.flight {
		asked[m.to]++
	}
	for _, id := range []grid.SiteID{"b", "c", "d"} {
		if asked[id] < 70 {
			t.Errorf("%s was asked %d times of 300, want about a third: %v", id, asked[id], asked)
		}
	}
	if asked["e"] > 0 {
		t.Errorf("e is as fast but dearer, and was asked %d times", asked["e"])
	}
}

// TestBurstGoesToSeveralSites checks that jobs which arrive between two quotes of
// the best site do not all run to it.
func TestBurstGoesToSeveralSites(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	for _, cfg := range []Config{{Site: "a", Price: 9 * grid.Credit}, {Site: "b", Price: grid.Credit}, {Site: "c", Price: 2 * grid.Credit}} {
		cfg.Resources, cfg.Rating, cfg.Foreign = grid.Resources{Processors: 10}, grid.Rating{Speed: 1000, Bandwidth: 1000}, true
		cfg.AsksPerPeer, cfg.HoldsPerPeer, cfg.HoldShare, cfg.Near = 100, 100, 1000, 1
		n.add(cfg, 0)
	}
	for i := range uint64(20) { // the deadline leaves time for one after the other at most
		job := n.job(i+1, "a", 1, grid.Hour, grid.GoalCost)
		job.Deadline, job.Budget = n.now+grid.Hour+grid.Minute, grid.NoBudget
		n.place(job)
	}
	n.deliverAll()
	at := map[grid.SiteID]int{}
	messages := int32(0)
	for _, j := range n.sites["a"].jobs {
		at[j.award.Site]++
		messages += j.messages
	}
	if at["b"] != 10 || at["c"] != 10 {
		t.Errorf("placed %v, want ten at b and ten at c", at)
	}
	if messages > 3*20 {
		t.Errorf("%d messages for 20 jobs, want 3 each: nobody had to be refused", messages)
	}
}
