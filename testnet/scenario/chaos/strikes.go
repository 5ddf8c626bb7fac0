package chaos

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// intensities are the faults of Config.Faults.
var intensities = map[string]bounds{
	"loss": {0.02, 0.5}, "duplicate": {0.02, 1}, "reorder": {0.05, 1}, "drift": {200, testnet.DriftMax},
	"daemon": {0.5, 60}, "torn": {0.5, 60}, "machine": {0.1, 60}, "partition": {1, 60}, "aim": {0.2, 1},
	"within": {0.0005, 1}, "coincide": {0.02, 1},
	"between": {0.0005, 1}, "store": {0.0003, 1}, "oneway": {0.5, 60}, "slow": {0.2, 60},
	strikeFull: {0.1, 60},
	"step":     {0.3, 60}, "still": {0.2, 60}, "slew": {0.3, 60},
	"old": {0.05, 60},
}

// Strike is a fault that begins at an instant and heals.
type Strike struct {
	Kind  string    `json:"kind"`            // "daemon", "torn", "machine", "partition", "oneway", "slow", "step", "still", "slew", "old", "within", "between", "look", "store" or "full"
	At    grid.Time `json:"at"`              // microseconds since the beginning of the run
	For   grid.Time `json:"for"`             // microseconds, more than 0
	Sites []int     `json:"sites"`           // indices: one, of a partition those on one side of it
	Delay grid.Time `json:"delay,omitempty"` // of "slow", "step" (may be negative), "slew" (a second) and "old": microseconds

	// Of those within steps: the daemon dies within the step that is the first from At on to
	// save (strikeBetween, strikeLook: not to), at that instant the Step-th, after so many of its other
	// orders have left.
	Step int `json:"step,omitempty"`
	Left int `json:"left,omitempty"`
}

// Kinds of strikes that kill a daemon within a step.
const (
	strikeWithin  = "within"  // between two orders of a step, what that saves is durable
	strikeBetween = "between" // of one that saves nothing
	strikeLook    = "look"    // … and only looks for sites, or for quotes of them
	strikeStore   = "store"   // as it cannot save, and nothing leaves
	strikeFull    = "full"    // … whatever it has to save, until there is room again
)

func strikeOf(f *testnet.Fault) Strike {
	return Strike{Kind: f.Kind.String(), At: f.At, For: f.For, Sites: f.Sites, Delay: f.Delay}
}

// fault returns the network's form of it.
func (s *Strike) fault() (testnet.Fault, error) {
	for kind := range testnet.FaultKinds {
		if kind.String() == s.Kind {
			return testnet.Fault{Kind: kind, At: s.At, For: s.For, Sites: s.Sites, Delay: s.Delay}, nil
		}
	}
	return testnet.Fault{}, fmt.Errorf("no fault is called %q", s.Kind)
}

// slowMost is how much longer messages of a slow site may take.
const slowMost = 10 * grid.Second

// drawStrikes draws when sites crash and the network parts. Everything has healed
// when span is over.
func drawStrikes(seed uint64, sites int, faults map[string]float64, span grid.Time) (drawn []Strike) {
	for _, c := range []struct {
		kind           testnet.FaultKind
		times          float64 // per hour in the whole network
		least, longest grid.Time
	}{
		{testnet.FaultDaemon, faults["daemon"] * float64(sites), grid.Second, 5 * grid.Minute},
		{testnet.FaultTorn, faults["torn"] * float64(sites), 10 * grid.Second, 5 * grid.Minute},
		{testnet.FaultMachine, faults["machine"] * float64(sites), grid.Minute, 30 * grid.Minute},
		{testnet.FaultPartition, faults["partition"], grid.Second, 10 * grid.Minute},
		{testnet.FaultOneWay, faults["oneway"], grid.Second, 10 * grid.Minute},
		{testnet.FaultSlow, faults["slow"] * float64(sites), grid.Second, 10 * grid.Minute},
		{testnet.FaultStep, faults["step"] * float64(sites), grid.Minute, grid.Hour},
		{testnet.FaultStill, faults["still"] * float64(sites), grid.Minute, grid.Hour},
		{testnet.FaultSlew, faults["slew"] * float64(sites), grid.Minute, grid.Hour},
		{testnet.FaultOld, faults["old"] * float64(sites), grid.Minute, 30 * grid.Minute},
	} {
		pcg := draw.PCG(seed, grid.SiteID(c.kind.String()), draw.ForFaults)
		for range int64(c.times*span.Seconds()/3600 + 0.5) {
			f := testnet.Fault{Kind: c.kind, At: federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))}
			f.For = c.least + grid.Time(draw.Uniform(pcg, uint64(c.longest-c.least)))
			f.Sites = drawSites(pcg, sites, c.kind == testnet.FaultPartition || c.kind == testnet.FaultOneWay)
			f.For = healsBy(f.For, f.At, federation.Warmup+span, f.Sites[0])
			switch c.kind {
			case testnet.FaultOld:
				f.Delay = [...]grid.Time{grid.Second, grid.Minute, 10 * grid.Minute, grid.Hour}[draw.Uniform(pcg, 4)]
				f.Delay += grid.Time(draw.Uniform(pcg, uint64(f.Delay)))
				if banks := chaosBanks(sites); f.Sites[0] < banks {
					if sites == banks {
						continue
					}
					f.Sites[0] = banks + f.Sites[0]%(sites-banks)
				}
			case testnet.FaultSlow:
				f.Delay = grid.Time(draw.Uniform(pcg, uint64(slowMost)))
			case testnet.FaultStep:
				f.Delay = stepBy(pcg)
			case testnet.FaultSlew:
				f.Delay = grid.Time(draw.Uniform(pcg, 2*slewMost+1)) - slewMost
			}
			drawn = append(drawn, strikeOf(&f))
			if c.kind == testnet.FaultStep || c.kind == testnet.FaultStill {
				drawn = append(drawn, takenUp(pcg, &f)...)
			}
		}
	}
	pcg := draw.PCG(seed, strikeFull, draw.ForFaults)
	for range int64(faults[strikeFull]*float64(sites)*span.Seconds()/3600 + 0.5) {
		s := Strike{Kind: strikeFull, At: federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span))), For: grid.Second + grid.Time(draw.Uniform(pcg, uint64(10*grid.Minute)))}
		s.Sites = drawSites(pcg, sites, false)
		drawn = append(drawn, s)
	}
	return drawn
}

// older are the sites that come up with older copies of their stores in a run: an owner has had one
// count as the newest. What a site has promised since is forgotten, and what two have to do with
// each other one of them may not know. Of their own jobs, those that were not over run again, so
// nothing is said of these; what other sites' jobs and banks are promised holds.
type older map[grid.SiteID]bool

// olderOf returns them.
func olderOf(strikes []Strike, id func(at int) grid.SiteID) older {
	o := make(older)
	for i := range strikes {
		if s := &strikes[i]; s.Kind == testnet.FaultOld.String() && len(s.Sites) == 1 {
			o[id(s.Sites[0])] = true
		}
	}
	return o
}

// untold returns what testnet.Config.Untold is to be.
func (o older) untold() func(home grid.SiteID) bool {
	if len(o) == 0 {
		return nil
	}
	return func(home grid.SiteID) bool { return o[home] }
}

// left says which job of a site that has forgotten others has not ended; nil: none.
func (o older) left(n *testnet.Network) (err error) {
	for at := 0; len(o) > 0 && at < n.Len() && err == nil; at++ {
		s, up := scenario.SiteAt(n, at)
		if !up || !o[n.ID(at)] {
			continue
		}
		s.Jobs(func(v site.View) bool {
			if !v.Foreign && !v.State.Terminal() {
				err = fmt.Errorf("job %s of %s, which has forgotten others, is %s: %s", v.Job.ID, n.ID(at), v.State, v.Reason)
			}
			return err == nil
		})
	}
	return err
}

// lease reports whether a lender or a borrower may have forgotten a lease.
func (o older) lease(l *lease.Lease) bool { return len(o) > 0 && (o[l.Lender] || o[l.Borrower]) }

// healsBy returns how long a fault that begins at an instant lasts if all are to be over at
// end: for so long at most. Those at different sites do not end at one instant, at which it
// would matter which of them was made known first.
func healsBy(most, at, end grid.Time, site int) grid.Time {
	return max(min(most, end-grid.Time(site)-at), 1)
}

// drawSites draws one site, or, for a partition, each with an even chance, but at least one.
func drawSites(pcg *rand.PCG, sites int, several bool) []int {
	first := int(draw.Uniform(pcg, uint64(sites)))
	drawn := []int{first}
	if !several {
		return drawn
	}
	for s := range sites {
		if s != first && draw.Chance(pcg, million/2) {
			drawn = append(drawn, s)
		}
	}
	return drawn
}
