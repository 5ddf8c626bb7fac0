package market

import (
	"fmt"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
)

// alike is a network of homes that do not compute and sites that are all the same, of
// which a page holds few.
func alike(t *testing.T, homes, sites int) *network {
	n := newNetwork(t)
	n.silent, n.hashed = true, true
	for i := range homes {
		n.add(Config{Offer: Offer{Site: grid.SiteID(fmt.Sprint("home", i)), Rating: grid.Rating{Speed: 1, Bandwidth: 1000}}, Page: 4}, 0)
	}
	for i := range sites {
		n.add(Config{
			Offer: Offer{
				Site: grid.SiteID(fmt.Sprint("site", i)), Resources: grid.Resources{Processors: 1000}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
				Price: grid.Credit, Foreign: true,
			},
		}, 0)
	}
	return n
}

// TestHomesSpreadOverATie checks that homes do not all ask the few sites that stand
// first among many equal ones, whatever they are looking for.
func TestHomesSpreadOverATie(t *testing.T) {
	for _, goal := range []grid.Goal{grid.GoalCost, grid.GoalTime} {
		const homes, sites, jobs = 40, 80, 10
		n := alike(t, homes, sites)
		for i := range uint64(homes * jobs) {
			job := n.job(i+1, grid.SiteID(fmt.Sprint("home", i%homes)), 1, grid.Hour, goal)
			job.Budget = grid.NoBudget
			n.place(job)
			n.deliverAll()
		}
		at := map[grid.SiteID]int{}
		for i := range homes {
			for _, j := range n.sites[grid.SiteID(fmt.Sprint("home", i))].jobs {
				at[j.award.Site]++
			}
		}
		most := 0
		for _, jobs := range at {
			most = max(most, jobs)
		}
		// The mean is five. Without a place of one's own four sites would have a hundred each.
		if at[""] > 0 || len(at) < sites*9/10 || most > 4*homes*jobs/sites {
			t.Errorf("goal %v: %d of %d sites have jobs, at most %d one of them, %d jobs are nowhere", goal, len(at), sites, most, at[""])
		}
		// Looking at the front of the order is done once by each home.
		if n.finds > homes*jobs+homes {
			t.Errorf("goal %v: %d queries for %d jobs of %d homes", goal, n.finds, homes*jobs, homes)
		}
	}
}

// TestTieIsForgotten checks that a site better than a tie is found: after a while, or
// at once if the tie is no more, or by jobs that are too wide for it.
func TestTieIsForgotten(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  int64 // processors of the job that found the tie
		better int64 // of the better site
		change func(n *network)
		width  int64
		want   bool
	}{
		{"soon", 1, 1000, func(*network) {}, 1, false},
		{"later", 1, 1000, func(n *network) { n.now += tieSpan }, 1, true},
		{"dissolved", 1, 1000, func(n *network) {
			for id, q := range n.quotes {
				if id != "better" {
					q.Price *= 2
					n.quotes[id] = q
				}
			}
		}, 1, true},
		{"too wide for it", 1, 2000, func(*network) {}, 1500, true},
		{"narrower", 50, 10, func(*network) {}, 1, true}, // it was there all the time, but too narrow
	} {
		n := alike(t, 1, 20)
		first := n.job(1, "home0", tt.first, grid.Hour, grid.GoalCost)
		first.Budget = grid.NoBudget
		n.place(first)
		n.deliverAll()
		n.add(Config{
			Offer: Offer{
				Site: "better", Resources: grid.Resources{Processors: tt.better}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
				Price: grid.Credit / 2, Foreign: true,
			},
		}, 0)
		tt.change(n)
		job := n.job(2, "home0", tt.width, grid.Hour, grid.GoalCost)
		job.Budget = grid.NoBudget
		n.place(job)
		n.deliverAll()
		if got := n.sites["home0"].jobs[job.ID].award.Site; (got == "better") != tt.want || got == "" {
			t.Errorf("%s: job at %q, want it at the better site: %v", tt.name, got, tt.want)
		}
	}
}

// TestTieIsGoneThrough checks that sites before the place where a home began are found
// when all behind it are full, and that nobody is asked twice.
func TestTieIsGoneThrough(t *testing.T) {
	for room := range 20 {
		n := alike(t, 1, 20)
		for i := range 20 {
			if i != room {
				n.fill(grid.SiteID(fmt.Sprint("site", i)), grid.Day)
				n.sites[grid.SiteID(fmt.Sprint("site", i))].publish()
			}
		}
		for i := range uint64(3) {
			job := n.job(i+1, "home0", 1, grid.Hour, grid.GoalCost)
			job.Deadline, job.Budget = n.now+3*grid.Hour/2, grid.NoBudget
			n.place(job)
			n.deliverAll()
			if got, want := n.sites["home0"].jobs[job.ID], grid.SiteID(fmt.Sprint("site", room)); got.award.Site != want || got.messages > 7 { // two sites asked in hope
				t.Errorf("job %d at %q after %d messages, only %s has room", i+1, got.award.Site, got.messages, want)
			}
		}
	}
}

// TestTiesAreBounded checks that what a directory answers cannot grow without bound.
func TestTiesAreBounded(t *testing.T) {
	n := alike(t, 1, 1)
	a := n.sites["home0"].agent
	for i := range int64(3 * tiesMax) {
		page := []directory.Quote{{Site: "x", Price: grid.Price(i)}, {Site: "y", Price: grid.Price(i)}}
		if !a.broker.ties.noticed(n.now, &directory.Query{Limit: 2}, page, false) {
			t.Fatal("a page of equal quotes is no tie")
		}
	}
	if len(a.broker.ties.list) != tiesMax || a.broker.ties.list[tiesMax-1].quote.Price != 3*tiesMax-1 {
		t.Errorf("%d ties, the newest at %v; want the newest %d", len(a.broker.ties.list), a.broker.ties.list[len(a.broker.ties.list)-1].quote.Price, tiesMax)
	}
	page := []directory.Quote{{Site: "x", Price: 1}, {Site: "y", Price: 2}}
	if a.broker.ties.noticed(n.now, &directory.Query{Limit: 2}, page, false) || a.broker.ties.noticed(n.now, &directory.Query{Limit: 3}, page[:1], false) {
		t.Error("quotes of different price, or less than a page, are a tie")
	}
	page[1].Price = 1
	if q := (&directory.Query{Limit: 16, Tie: 2}); !a.broker.ties.noticed(n.now, q, page, false) || a.broker.ties.noticed(n.now, q, page, true) {
		t.Error("a short page is a tie if and only if more is behind it")
	}
}

// TestHomeMovesOn checks that a home begins in one part of a tie as long as it finds
// sites with room there, and elsewhere from then on.
func TestHomeMovesOn(t *testing.T) {
	n := alike(t, 1, 40)
	a := n.sites["home0"].agent
	place := func(i uint64) uint64 {
		job := n.job(i, "home0", 1, grid.Hour, grid.GoalCost)
		job.Deadline, job.Budget = n.now+3*grid.Hour/2, grid.NoBudget
		n.place(job)
		n.deliverAll()
		if len(a.broker.ties.list) != 1 {
			t.Fatalf("%d ties", len(a.broker.ties.list))
		}
		return a.broker.ties.list[0].place
	}
	first := place(1)
	if second := place(2); second != first {
		t.Error("moved although there was room")
	}
	if n.now += tieSpan; place(3) != first {
		t.Error("moved because the front of the order was looked at again")
	}
	for i := range 40 {
		if i > 0 {
			n.fill(grid.SiteID(fmt.Sprint("site", i)), grid.Day)
			n.sites[grid.SiteID(fmt.Sprint("site", i))].publish()
		}
	}
	if place(4) == first {
		t.Error("begins where it found no room")
	}
}
