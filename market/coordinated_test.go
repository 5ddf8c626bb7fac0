package market

import (
	"fmt"
	"strings"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
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
		{Offer: Offer{Site: "a", Price: 9 * grid.Credit}}, {Offer: Offer{Site: "b", Price: grid.Credit}}, {Offer: Offer{Site: "c", Price: grid.Credit}},
		{Offer: Offer{Site: "d", Price: grid.Credit}}, {Offer: Offer{Site: "e", Price: 2 * grid.Credit}},
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
	for _, cfg := range []Config{{Offer: Offer{Site: "a", Price: 9 * grid.Credit}}, {Offer: Offer{Site: "b", Price: grid.Credit}}, {Offer: Offer{Site: "c", Price: 2 * grid.Credit}}} {
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

// crowd is a network of a home that does not compute, cheap sites that are full for
// a day as their quotes say, and a dear one with room.
func crowd(t *testing.T, full int, room bool) *network {
	n := newNetwork(t)
	add := func(id string, processors, price int64) {
		n.add(Config{
			Offer: Offer{
				Site: grid.SiteID(id), Resources: grid.Resources{Processors: processors}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
				Price: grid.Price(price) * grid.Credit, Foreign: true,
			},
		}, 0)
	}
	add("home", 0, 1)
	for i := range full {
		id := "full" + string(rune('a'+i))
		add(id, 100, 1)
		n.fill(grid.SiteID(id), grid.Day)
		n.sites[grid.SiteID(id)].publish()
	}
	if room {
		add("room", 100, 2)
	}
	return n
}

// TestFewHopes checks that a job asks at most Config.Hopes sites where it would have
// to wait while others have room, and all that it may if nobody has.
func TestFewHopes(t *testing.T) {
	for _, tt := range []struct {
		room     bool
		asked    int
		at       grid.SiteID
		messages int32
	}{
		{true, 3, "room", 7}, // two in vain: 4, then 3
		{false, 6, "", 12},
	} {
		n := crowd(t, 6, tt.room)
		job := n.job(1, "home", 1, grid.Hour, grid.GoalCost) // the wait is thought to be √(1/100) of a day
		job.Deadline, job.Budget = n.now+5*grid.Hour, grid.NoBudget
		n.place(job)
		n.deliverAll()
		got := n.sites["home"].jobs[job.ID]
		if asked := len(strings.Fields(n.asked())); asked != tt.asked || got.award.Site != tt.at || got.messages != tt.messages {
			t.Errorf("room %v: asked %d sites with %d messages, job at %q; want %d, %d, %q\n%s",
				tt.room, asked, got.messages, got.award.Site, tt.asked, tt.messages, tt.at, n.takeTrace())
		}
	}
}

// TestHotSiteIsShed checks that a site that filled up after it published its quote
// is not asked if it said so in a load report.
func TestHotSiteIsShed(t *testing.T) {
	for _, gossip := range []bool{false, true} {
		n := crowd(t, 0, true)
		n.add(Config{
			Offer: Offer{Site: "cheap", Resources: grid.Resources{Processors: 100}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit, Foreign: true},
		}, 0)
		n.fill("cheap", grid.Day)
		if gossip {
			state := n.sites["cheap"].cluster.State(n.now)
			load := directory.Load{Site: "cheap", Free: state.Free, Widest: state.Widest, Wait: state.Wait, Sequence: 1, Issued: n.now + 1}
			var out grid.Outbox
			n.sites["home"].dir.Step(n.now, &grid.Delivery{From: "cheap", Message: &directory.LoadReport{Load: load}}, &out)
		}
		job := n.job(1, "home", 50, grid.Hour, grid.GoalCost)
		job.Budget = grid.NoBudget
		n.place(job)
		n.deliverAll()
		want := map[bool]string{false: "cheap room", true: "room"}[gossip]
		if got := n.asked(); got != want || n.sites["home"].jobs[job.ID].award.Site != "room" {
			t.Errorf("gossip %v: asked %q, want %q\n%s", gossip, got, want, n.takeTrace())
		}
	}
}

// TestRoomAtTheOtherEnd checks that a job whom nobody near the top of its goal's order will
// have finds a site that has room, however dear.
func TestRoomAtTheOtherEnd(t *testing.T) {
	n := crowd(t, 6, false)
	n.sites["home"].agent.office.cfg.Page = 2
	for i := range 6 { // dearer and dearer
		n.add(Config{
			Offer: Offer{
				Site: grid.SiteID("room" + string(rune('a'+i))), Resources: grid.Resources{Processors: 10},
				Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Price(10+i) * grid.Credit, Foreign: true,
			},
		}, 0)
	}
	for _, id := range []grid.SiteID{"rooma", "roomb"} {
		n.fill(id, grid.Day) // after they published
	}
	job := n.job(1, "home", 1, grid.Hour, grid.GoalCost)
	job.Deadline, job.Budget = n.now+3*grid.Hour/2, grid.NoBudget
	n.place(job)
	n.deliverAll()
	// First the two cheapest of all, then the two cheapest that have room, then the two dearest.
	if got := n.sites["home"].jobs[job.ID].award.Site; got != "roome" {
		t.Errorf("job at %q, want the cheaper of the two dearest\n%s", got, n.takeTrace())
	}
}

// TestBehindTheFront checks that a job finds a site that can do it in time although it
// stands behind the first page and has no room at the moment: among sites that are
// dearer and dearer, and among equal ones wherever the pages begin.
func TestBehindTheFront(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sites int
		price func(i int) grid.Price
	}{
		{"dearer", 12, func(i int) grid.Price { return grid.Price(1+i) * grid.Credit }},
		{"equal", 8, func(int) grid.Price { return grid.Credit }},
	} {
		for i := range 4 * tt.sites { // each home draws a place of its own
			soon, home := i%tt.sites, grid.SiteID(fmt.Sprint("home", i/tt.sites))
			n := alike(t, 4, 0)
			for i := range tt.sites {
				id := grid.SiteID(fmt.Sprintf("site%02d", i))
				n.add(Config{
					Offer: Offer{Site: id, Resources: grid.Resources{Processors: 100}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: tt.price(i), Foreign: true},
				}, 0)
				span := grid.Day
				if i == soon {
					span = 10 * grid.Minute
				}
				n.fill(id, span)
				n.sites[id].publish()
			}
			job := n.job(1, home, 100, grid.Hour, grid.GoalCost)
			job.Deadline, job.Budget = n.now+2*grid.Hour, grid.NoBudget
			n.place(job)
			n.deliverAll()
			if got, want := n.sites[home].jobs[job.ID], grid.SiteID(fmt.Sprintf("site%02d", soon)); got.award.Site != want || got.messages > 5 {
				t.Errorf("%s: job at %q after %d messages, only %s will have room in time", tt.name, got.award.Site, got.messages, want)
			}
		}
	}
}

// TestGoodEnough: a guarantee is chased by a job in a hurry only where another site may finish earlier by
// more than a tenth, and not if it would lapse before that one has answered.
func TestGoodEnough(t *testing.T) {
	const now = 10 * grid.Hour
	timeout := Config{}.WithDefaults().ReplyTimeout
	for _, tt := range []struct {
		name     string
		goal     grid.Goal
		standing Standing
		finish   grid.Time // of the guarantee
		expires  grid.Time
		want     int
	}{
		{"a tenth later", grid.GoalTime, StandingGranted, now + 110*grid.Minute, grid.Never, 0},
		{"more than a tenth later", grid.GoalTime, StandingGranted, now + 110*grid.Minute + 1, grid.Never, -1},
		{"lapses meanwhile", grid.GoalTime, StandingGranted, now + grid.Day, now + timeout, 0},
		{"lapses later", grid.GoalTime, StandingGranted, now + grid.Day, now + timeout + 1, -1},
		{"no guarantee", grid.GoalTime, StandingOpen, now, now, -1},
		{"the cheapest is wanted", grid.GoalCost, StandingGranted, now + grid.Day, grid.Never, -1},
	} {
		s := NewSearch(&grid.Job{Goal: tt.goal}, nil, Circumstances{Now: now})
		s.asks = []ask{{standing: tt.standing, finish: tt.finish, expires: tt.expires}}
		if got := (coordinated{}).goodEnough(s, now+100*grid.Minute); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
