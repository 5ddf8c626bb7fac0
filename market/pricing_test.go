package market

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
)

func TestNextPrice(t *testing.T) {
	const most = grid.CreditsMax
	for _, tt := range []struct {
		name     string
		price    grid.Price
		demand   Demand
		pressure int64
		want     grid.Price
	}{
		{"on target", 10_000, Demand{}, 700, 10_000},
		{"all busy", 10_000, Demand{}, 1000, 10_500},
		{"a queue changes it no faster", 10_000, Demand{}, 2000, 10_500},
		{"half way up", 10_000, Demand{}, 850, 10_250},
		{"idle", 10_000, Demand{}, 0, 9_500},
		{"half way down", 10_000, Demand{}, 350, 9_750},
		{"ceiling", 10_000, Demand{Ceiling: 10_100}, 1000, 10_100},
		{"floor", 10_000, Demand{Floor: 9_900}, 0, 9_900},
		{"above its ceiling", 10_000, Demand{Ceiling: 9_000, Floor: 1}, 700, 9_000},
		{"too small to change by a step", 4, Demand{Floor: 1, Ceiling: 9}, 1000, 5},
		{"at the lowest", 1, Demand{Floor: 1, Ceiling: 9}, 0, 1},
		{"no overflow", most, Demand{Floor: 1, Ceiling: most, Step: 500}, 2000, most},
		{"largest fall", most, Demand{Floor: 1, Ceiling: most, Step: 500}, 0, most - most/2},
		{"other target", 10_000, Demand{Target: 500, Step: 100}, 750, 10_500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.demand.withDefaults(tt.price)
			if got := d.Next(tt.price, tt.pressure); got != tt.want {
				t.Errorf("next price %d, want %d", got, tt.want)
			}
		})
	}
}

// TestNextPriceIsBounded: steps and bounds are kept, and more pressure never means a
// lower price.
func TestNextPriceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := grid.Price(rapid.Int64Range(1, int64(grid.CreditsMax)).Draw(t, "price"))
		d := Demand{
			Floor: grid.Price(rapid.Int64Range(1, int64(price)).Draw(t, "floor")), Ceiling: grid.Price(rapid.Int64Range(int64(price), int64(grid.CreditsMax)).Draw(t, "ceiling")),
			Step: rapid.Int64Range(1, demandStepMax).Draw(t, "step"), Target: rapid.Int64Range(1, 999).Draw(t, "target"), Interval: grid.Minute,
		}
		if err := d.Check(price); err != nil {
			t.Fatal(err)
		}
		low := rapid.Int64Range(0, 2000).Draw(t, "low")
		high := rapid.Int64Range(low, 2000).Draw(t, "high")
		a, b := d.Next(price, low), d.Next(price, high)
		if a > b || a < d.Floor || b > d.Ceiling {
			t.Fatalf("%d at pressure %d, %d at %d, bounds %d and %d", a, low, b, high, d.Floor, d.Ceiling)
		}
		if change := max(b-price, price-a); change > max(grid.Price(share(grid.Time(price), d.Step, 1000)), 1) {
			t.Fatalf("changes by %d of %d in a step of %d thousandths", change, price, d.Step)
		}
	})
}

func TestPressure(t *testing.T) {
	hours := func(processors, hours int64) int64 { return processors * hours * int64(grid.Hour) }
	for _, tt := range []struct {
		state lrms.State
		want  int64
		ok    bool
	}{
		{lrms.State{}, 0, false},
		{lrms.State{Capacity: 10, Free: 10}, 0, true},
		{lrms.State{Capacity: 10, Free: 3}, 700, true},
		{lrms.State{Capacity: 10, QueuedWork: hours(5, 1)}, 1500, true},
		{lrms.State{Capacity: 10, QueuedWork: hours(10, 99)}, 2000, true},
	} {
		if got, ok := Pressure(&tt.state); got != tt.want || ok != tt.ok {
			t.Errorf("%+v: pressure %d, %v, want %d, %v", tt.state, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDemandBounds(t *testing.T) {
	for name, d := range map[string]Demand{
		"negative floor":            {Floor: -1},
		"floor above the price":     {Floor: grid.Credit + 1},
		"ceiling below the price":   {Ceiling: grid.Credit - 1},
		"ceiling too high":          {Ceiling: grid.CreditsMax + 1},
		"ceiling below the floor":   {Floor: 10, Ceiling: 9},
		"negative step":             {Step: -1},
		"step of more than a half":  {Step: demandStepMax + 1},
		"interval of a second":      {Interval: grid.Second},
		"interval of two days":      {Interval: 2 * grid.Day},
		"target of all processors":  {Target: 1000},
		"negative target":           {Target: -1},
		"overflowing default bound": {Floor: grid.CreditsMax + 1},
	} {
		if err := d.Check(grid.Credit); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, price := range []grid.Price{1, grid.Credit, grid.CreditsMax} {
		if err := (Demand{}).Check(price); err != nil {
			t.Errorf("defaults at %d: %v", price, err)
		}
	}
	for _, p := range []Pricing{PricingFixed, PricingDemand} {
		if got, err := ParsePricing(p.String()); err != nil || got != p {
			t.Errorf("%v parses as %v, %v", p, got, err)
		}
	}
	if _, err := ParsePricing("auction"); err == nil {
		t.Error("an unknown pricing was parsed")
	}
}

// TestPriceFollowsDemand: the price of a busy site rises in intervals and that of an
// idle one falls; a guarantee keeps its price; with fixed pricing nothing happens.
func TestPriceFollowsDemand(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	for _, cfg := range []Config{{Offer: Offer{Site: "fixed"}}, {Offer: Offer{Site: "busy"}, Pricing: PricingDemand}, {Offer: Offer{Site: "idle"}, Pricing: PricingDemand}} {
		cfg.Price, cfg.Foreign = grid.Credit, true
		cfg.Resources, cfg.Rating = grid.Resources{Processors: 10}, grid.Rating{Speed: 1000, Bandwidth: 1000}
		n.add(cfg, 0)
	}
	n.fill("busy", grid.Day)
	n.fill("fixed", grid.Day)
	job := n.job(1, "fixed", 1, grid.Hour, grid.GoalTime)
	job.Deadline, job.Budget = grid.Never, grid.NoBudget
	n.place(job) // at idle, for a credit
	n.advance(grid.Second, true)
	n.advance(21*grid.Minute, true)
	price := func(id grid.SiteID) grid.Price { return n.sites[id].agent.Price() }
	if got := price("fixed"); got != grid.Credit {
		t.Errorf("the fixed price became %v", got)
	}
	if got := price("busy"); got < 1_050_000*105/100 || got > 1_050_000*106/100*105/100 {
		t.Errorf("the price of a busy site became %v after two or three intervals", got)
	}
	if got := price("idle"); got >= grid.Credit || got < 850_000 {
		t.Errorf("the price of an idle site became %v after two or three intervals", got)
	}
	n.advance(2*grid.Day, true)
	if got := price("idle"); got != grid.Credit/2 {
		t.Errorf("the price of an idle site fell to %v, want its floor", got)
	}
	if got := n.sites["fixed"].jobs[job.ID]; got.award.Site != "idle" || got.award.Price != grid.Credit || got.result.Cost > grid.Credit {
		t.Errorf("the guarantee was given for %v and cost %v", got.award.Price, got.result.Cost)
	}
}

// TestBadPrices: prices that are none are rejected wherever they come from.
func TestBadPrices(t *testing.T) {
	n := newNetwork(t)
	for _, id := range []grid.SiteID{"a", "b"} {
		n.add(Config{
			Offer: Offer{Site: id, Price: 2 * grid.Credit, Foreign: true, Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}},
		}, 0)
	}
	a := n.sites["a"].agent
	for _, price := range []grid.Price{-1, 0, grid.CreditsMax + 1} {
		if got, err := a.SetPrice(price); !errors.Is(err, ErrConfig) || got != 2*grid.Credit || a.Price() != got {
			t.Errorf("price set to %d: %v, %v", price, got, err)
		}
		before := a.broker.rejected
		b := n.quotes["b"]
		b.Price = price
		n.quotes["b"] = b
		job := n.job(uint64(price)|1<<40, "a", 1, grid.Hour, grid.GoalCost)
		n.place(job)
		n.deliverAll()
		if got := n.sites["a"].jobs[job.ID].award.Site; got != "a" || a.broker.rejected == before {
			t.Errorf("job went to %q on a quote of %d, %d rejected", got, price, a.broker.rejected-before)
		}
	}
	if got, err := a.SetPrice(1); err != nil || got != 1 {
		t.Errorf("lowest price: %v, %v", got, err)
	}
	demand := New(Config{
		Offer: Offer{Site: "d", Price: 2 * grid.Credit, Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, Pricing: PricingDemand,
	}, n.sites["a"].cluster, directory.New(directory.Config{Self: "d"}, nil), nil)
	if got, err := demand.SetPrice(9 * grid.Credit); err != nil || got != 4*grid.Credit || demand.Price() != got {
		t.Errorf("9 credits within 1 to 4: %v, %v", got, err)
	}
}
