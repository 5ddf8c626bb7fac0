package federation

import (
	"context"
	"testing"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/simtest"
	"gridnode/testnet/workload"
)

// restless is a site that hears before each Tick that a task it never had has ended:
// that changes nothing, but is for none of the cores that a calm Tick is about, so
// every Tick is a whole one.
type restless struct{ *site.Site }

func (s restless) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	if _, ok := in.(grid.Tick); ok {
		s.Site.Step(now, &grid.TaskEnded{ID: grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 1}, Epoch: 1}}, out)
	}
	s.Site.Step(now, in, out)
}

// TestCalmTicksAreWholeTicks: a Tick that looks at the directory and the survey only,
// as nothing else has happened, does what a whole one would have done.
func TestCalmTicksAreWholeTicks(t *testing.T) {
	simtest.Alone(t)
	for _, placement := range []market.Placement{market.PlacementPaper, market.PlacementCoordinated} {
		var hashes [2]uint64
		for i := range hashes {
			w, err := NewTable1(16, nil, workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			cfg := Default()
			f := Builder{
				Config:    testnet.Config{Seed: 3, Inputs: scenario.Inputs(), Link: testnet.Link{LatencyMin: cfg.LatencyMin, LatencyMax: cfg.LatencyMax}},
				Placement: placement, Foreign: true, Sites: w.Sites, Siblings: 8, pricing: market.PricingDemand,
			}
			if i == 1 {
				f.Wrap = func(_ grid.SiteID, s *site.Site) testnet.Site { return restless{s} }
			}
			n, err := f.Build()
			if err != nil {
				t.Fatal(err)
			}
			n.Feed(&scenario.Feed{Source: w.Source(Warmup), QoS: cfg.qos(), Homes: f.Homes(), Goal: cfg.Goal})
			if err := n.Run(context.Background(), 10*grid.Hour, nil); err != nil {
				t.Fatal(err)
			}
			hashes[i] = n.TraceHash()
			if n.Events() < 50_000 {
				t.Errorf("%v: %d events", placement, n.Events())
			}
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%v: trace %x with calm Ticks, %x with whole ones only", placement, hashes[0], hashes[1])
		}
	}
}
