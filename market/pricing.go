package market

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Pricing is how a site's price comes about. Grid-Federation "assume[s] that c_i
// remains static throughout the simulations" (§2.1) and leaves it to future work
// "how pricing policies for resources lead to varied utility of the system" (§4).
type Pricing uint8

const (
	// PricingFixed charges what the owner set.
	PricingFixed Pricing = iota
	// PricingDemand follows what is asked for, between the owner's bounds.
	PricingDemand
)

var pricingNames = [...]string{"fixed", "demand"}

// String returns the name used in configuration files.
func (p Pricing) String() string { return pricingNames[p] }

// ParsePricing is the inverse of String.
func ParsePricing(s string) (Pricing, error) {
	for p, name := range pricingNames {
		if s == name {
			return Pricing(p), nil
		}
	}
	return 0, fmt.Errorf("pricing %q: want fixed or demand", s)
}

// Demand is the owner's part of PricingDemand. A zero field takes the default named
// beside it.
type Demand struct {
	Floor    grid.Price // lowest price, at least 1 micro-credit; half the configured one
	Ceiling  grid.Price // highest price; twice the configured one
	Step     int64      // most that one change takes of the price, in thousandths, 1 to 500; 50
	Interval grid.Time  // from one change to the next, 1 min to 1 day; 10 min
	Target   int64      // pressure at which the price stays, 1 to 999; 700
}

// Bounds of Demand. A price is published with each change, so the interval bounds
// what a site publishes on its account.
const (
	demandStepMax     = 500
	demandIntervalMin = grid.Minute
	demandIntervalMax = grid.Day
)

// withDefaults returns d with every zero field filled in, for a configured price.
func (d Demand) withDefaults(price grid.Price) Demand {
	if d.Floor == 0 {
		d.Floor = max(price/2, 1)
	}
	if d.Ceiling == 0 {
		d.Ceiling = min(2*price, grid.CreditsMax)
	}
	if d.Step == 0 {
		d.Step = 50
	}
	if d.Target == 0 {
		d.Target = 700
	}
	orTime(&d.Interval, 10*grid.Minute)
	return d
}

// Check returns an error that names the first field out of bounds. price is the
// configured one, from which the price starts.
func (d Demand) Check(price grid.Price) error {
	d = d.withDefaults(price)
	switch {
	case d.Floor < 1 || d.Floor > grid.CreditsMax:
		return fmt.Errorf("price floor of %v credits, want more than 0, at most %v", d.Floor, grid.CreditsMax)
	case d.Ceiling < d.Floor || d.Ceiling > grid.CreditsMax:
		return fmt.Errorf("price ceiling of %v credits, want the floor of %v to %v", d.Ceiling, d.Floor, grid.CreditsMax)
	case price < d.Floor || price > d.Ceiling:
		return fmt.Errorf("price of %v credits, want one between the floor of %v and the ceiling of %v", price, d.Floor, d.Ceiling)
	case d.Step < 1 || d.Step > demandStepMax:
		return fmt.Errorf("price step of %d thousandths, want 1 to %d", d.Step, demandStepMax)
	case d.Interval < demandIntervalMin || d.Interval > demandIntervalMax:
		return fmt.Errorf("price interval of %v, want %v to %v", d.Interval, demandIntervalMin, demandIntervalMax)
	case d.Target < 1 || d.Target > 999:
		return fmt.Errorf("price target of %d thousandths, want 1 to 999", d.Target)
	}
	return nil
}

// pressureSpan is the work in the queue that counts as much as all processors
// being busy: what keeps them busy for so long.
const pressureSpan = grid.Hour

// Pressure returns what is asked of a site at the moment, in thousandths: its busy
// processors over all, 0 to 1000, and on top of that what waits over pressureSpan of
// all processors, 0 to 1000. ok is false for a site without processors.
func Pressure(s *lrms.State) (thousandths int64, ok bool) {
	if s.Capacity <= 0 {
		return 0, false
	}
	busy := min(s.Capacity-s.Free, s.Capacity) * 1000 / s.Capacity
	waiting := min(grid.Time(s.QueuedWork/s.Capacity), pressureSpan) * 1000 / pressureSpan
	return busy + int64(waiting), true
}

// Next returns the price of the next interval: higher if the pressure is over the
// target, lower if it is below, by as much of Step as the pressure is away, of all
// that it can be away on that side up to 1000. It is between Floor and Ceiling.
func (d *Demand) Next(price grid.Price, pressure int64) grid.Price {
	off, room, sign := pressure-d.Target, 1000-d.Target, grid.Price(1)
	if off < 0 {
		off, room, sign = -off, d.Target, -1
	}
	change := grid.Price(share(grid.Time(price), min(off, room)*d.Step, room*1000))
	if off > 0 {
		change = max(change, 1) // a price of a few micro-credits moves, too
	}
	return d.bound(price + sign*change)
}

func (d *Demand) bound(price grid.Price) grid.Price { return min(max(price, d.Floor), d.Ceiling) }

// tariff is what this site charges, and how that changes.
type tariff struct {
	price   grid.Price
	pricing Pricing
	demand  Demand
	timer   grid.Alarm[alarmed] // of the next change under PricingDemand
}

func newTariff(cfg *Config) tariff {
	return tariff{price: cfg.Price, pricing: cfg.Pricing, demand: cfg.Demand}
}

// due implements alarmed. The site quotes the new price when it sees it (Agent.Price).
func (t *tariff) due(a *Agent, now grid.Time, _ *grid.Outbox) {
	state := a.office.cluster.State(now)
	if pressure, ok := Pressure(&state); ok {
		t.price = t.demand.Next(t.price, pressure)
	}
	a.office.timers.Set(&t.timer, now.Add(t.demand.Interval))
}

// watch starts the intervals, at a random instant so that the sites of a
// federation do not all change their prices, and republish, at once.
func (t *tariff) watch(now grid.Time, o *office) {
	if t.pricing != PricingDemand || t.timer.Owner != nil {
		return
	}
	t.timer.Owner = t
	interval := t.demand.Interval
	o.timers.Set(&t.timer, now.Add(interval-grid.Time(o.rng.Int64N(int64(interval/2)))))
}

// set is Agent.SetPrice.
func (t *tariff) set(price grid.Price) (grid.Price, error) {
	if err := checkPrice(price); err != nil {
		return t.price, err
	}
	if t.pricing == PricingDemand {
		price = t.demand.bound(price)
	}
	t.price = price
	return price, nil
}

// checkPrice: nothing is free, and no cost overflows.
func checkPrice(price grid.Price) error {
	if price < 1 || price > grid.CreditsMax {
		return fmt.Errorf("%w: price of %d micro-credits, want 1 to %d", ErrConfig, int64(price), int64(grid.CreditsMax))
	}
	return nil
}
