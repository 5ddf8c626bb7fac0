package market

import (
	"errors"
	"fmt"

	"gridnode/grid"
)

// Config is what an agent is told about its site and how to behave. A zero field
// takes the default named beside it, unless zero is said to be legal.
type Config struct {
	Offer // Price is the first one under PricingDemand

	// Head is the site whose packing this one consents to: its jobs are taken whatever
	// Foreign says, as many at a time as it likes. Empty: none.
	Head grid.SiteID

	Pricing Pricing
	Demand  Demand // of PricingDemand

	Placement Policy // of this home's jobs; nil: PlacementCoordinated
	Page      int    // quotes per directory query; 16
	Pages     int    // pages per job under PlacementCoordinated, and none is fetched before the last one is used up; 5: the best, the best with room, those with room at the other end of the order, and two more of the best behind the first page
	Asks      int    // sites asked per job under PlacementCoordinated; 12
	Hopes     int    // of them, sites that have no room for it at the moment while others have; 2
	Parallel  int    // sites asked at the same time for one job under PlacementCoordinated; 1
	Near      int    // equally good candidates among which one is drawn; 16, 1 draws nothing

	// SkipInfeasible makes PlacementPaper pass over sites that could not finish the
	// job in time even if they were idle. The paper's steps negotiate with them too.
	SkipInfeasible bool

	// Sought, if set, is told of each page of quotes that was looked up for a job: when it was
	// asked for, how many quotes came, and why none did. It is called within Step and must
	// change nothing that a Step depends on.
	Sought func(job *grid.Job, asked, now grid.Time, quotes int, err error)

	Slabs *Slabs // for messages and records of jobs; nil: its own

	ReplyTimeout grid.Time // how long a negotiation may stay without a reply; 5 s
	FindTimeout  grid.Time // how long a directory query may take; 30 s
	HoldSpan     grid.Time // how long a guarantee waits for the job; 10 s
	Lease        grid.Time // for how long a home job elsewhere goes on of which nothing is heard, if its owner does not say; zero is legal: until its end
	Unleased     bool      // nobody here ends executions that are not renewed: guarantees come without leases
	Allowance    grid.Time // what messages may take out of a promise; zero is legal (no latency)

	HoldsPerPeer  int   // guarantees not yet taken up, per asking site; 8
	HoldShare     int64 // thousandths of the processors that one asking site's second and later holds may reach; 500
	AsksPerPeer   int   // negotiations and submissions under way to one site, the rest waits; 8
	PlacementsMax int   // jobs being placed at one time; 100 000
	PreviewsMax   int   // quotes a Preview looks at; 1000

	// Quiet leaves the verdicts out of Placed and Refused. Virtual runs of millions
	// of jobs set it, since nobody will ask why.
	Quiet bool
}

// ErrConfig is wrapped by every error of Validate.
var ErrConfig = errors.New("market configuration")

// Validate returns an error wrapping ErrConfig that names the first bad field.
func (c *Config) Validate() error {
	switch {
	case c.Offer.Validate() != nil:
		return c.Offer.Validate()
	case c.Pricing > PricingDemand:
		return fmt.Errorf("%w: unknown pricing %d", ErrConfig, c.Pricing)
	case c.Pricing == PricingDemand && c.Demand.Check(c.Price) != nil:
		return fmt.Errorf("%w: %w", ErrConfig, c.Demand.Check(c.Price))
	case !c.placementKnown():
		return fmt.Errorf("%w: unknown placement %v", ErrConfig, c.Placement)
	case c.Page < 0 || c.Pages < 0 || c.Asks < 0 || c.Hopes < 0 || c.Parallel < 0 || c.Near < 0:
		return fmt.Errorf("%w: a count of the placement is negative", ErrConfig)
	case c.ReplyTimeout < 0 || c.FindTimeout < 0 || c.HoldSpan < 0 || c.Allowance < 0:
		return fmt.Errorf("%w: a span is negative", ErrConfig)
	case max(c.ReplyTimeout, c.FindTimeout, c.HoldSpan, c.Allowance) > spanMax:
		return fmt.Errorf("%w: a span is over %v", ErrConfig, spanMax)
	case c.Lease != 0 && (c.Lease < grid.LeaseMin || c.Lease > grid.SpanMax):
		return fmt.Errorf("%w: lease of %v, want at least %v", ErrConfig, c.Lease, grid.LeaseMin)
	case c.HoldsPerPeer < 0 || c.AsksPerPeer < 0 || c.PlacementsMax < 0 || c.PreviewsMax < 0:
		return fmt.Errorf("%w: a limit is negative", ErrConfig)
	case c.HoldShare < 0 || c.HoldShare > 1000:
		return fmt.Errorf("%w: hold share %d, want 0 to 1000 thousandths", ErrConfig, c.HoldShare)
	}
	return nil
}

// placementKnown reports whether the policy, if it is a built-in one, exists.
func (c *Config) placementKnown() bool {
	p, builtin := c.Placement.(Placement)
	return !builtin || int(p) < len(placementNames)
}

// spanMax bounds every configured span: no negotiation takes a day.
const spanMax = grid.Day

// WithDefaults returns c with every zero field filled in.
func (c Config) WithDefaults() Config {
	if c.Placement == nil {
		c.Placement = PlacementCoordinated
	}
	c.Demand = c.Demand.withDefaults(c.Price)
	orInt(&c.Page, 16)
	orInt(&c.Pages, 5)
	orInt(&c.Asks, 12)
	orInt(&c.Hopes, 2)
	orInt(&c.Parallel, 1)
	orInt(&c.Near, 16)
	orTime(&c.ReplyTimeout, 5*grid.Second)
	orTime(&c.FindTimeout, 30*grid.Second)
	orTime(&c.HoldSpan, 10*grid.Second)
	orInt(&c.HoldsPerPeer, 8)
	orInt(&c.AsksPerPeer, 8)
	orInt(&c.PlacementsMax, 100_000)
	orInt(&c.PreviewsMax, 1000)
	if c.HoldShare == 0 {
		c.HoldShare = 500
	}
	return c
}

func orInt(v *int, def int) {
	if *v == 0 {
		*v = def
	}
}

func orTime(v *grid.Time, def grid.Time) {
	if *v == 0 {
		*v = def
	}
}
