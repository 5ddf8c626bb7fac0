package delegation

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/simtest"
	"gridnode/testnet/workload"
)

// delegate runs a short delegation scenario.
func delegate(t *testing.T, change func(*Config)) *measure.Result {
	t.Helper()
	cfg := Default()
	change(&cfg)
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDelegationRepeats(t *testing.T) {
	for _, a := range Architectures {
		run := func() *measure.Result {
			return delegate(t, func(cfg *Config) { cfg.Architecture, cfg.LoadDAS, cfg.LoadG5K, cfg.Days = a, 120, 80, 0.4 })
		}
		one, two := run(), run()
		if one.TraceHash != two.TraceHash || one.Total != two.Total {
			t.Errorf("%s: two runs of one seed differ: %s and %s", a, one.TraceHash, two.TraceHash)
		}
		if one.Total.Finished == 0 || one.Total.Finished > one.Total.Submitted {
			t.Errorf("%s: %d of %d jobs finished", a, one.Total.Finished, one.Total.Submitted)
		}
	}
}

// TestDelegationOrder checks what the paper is about: where clusters are full,
// borrowing beats being alone and standing in one queue.
func TestDelegationOrder(t *testing.T) {
	simtest.Alone(t)
	finished := map[string]float64{}
	goodput := map[string]float64{}
	for _, a := range Architectures {
		r := delegate(t, func(cfg *Config) { cfg.Architecture, cfg.LoadDAS, cfg.LoadG5K = a, 90, 90 })
		finished[a], goodput[a] = float64(r.Total.Finished), r.Total.Goodput.Float()
	}
	for _, a := range []string{"condor", "sep-c", "cern", "central"} {
		if finished["dmm"] <= finished[a] || goodput["dmm"] <= goodput[a] {
			t.Errorf("dmm finished %v jobs with a goodput of %v, %s %v and %v", finished["dmm"], goodput["dmm"], a, finished[a], goodput[a])
		}
	}
}

func TestDelegationBindingTakesTime(t *testing.T) {
	run := func(bind int64) *measure.Result {
		return delegate(t, func(cfg *Config) { cfg.Bind, cfg.Days = bind, 0.5 })
	}
	at0, at1h := run(0), run(3600)
	if at1h.Total.AWT <= at0.Total.AWT {
		t.Errorf("mean wait %v s when binding takes an hour, %v s when it takes no time", at1h.Total.AWT, at0.Total.AWT)
	}
}

// TestDelegationStaysLocal: what a site has no room for goes to a sibling, the oldest
// request first (§2.1, §4.4).
func TestDelegationStaysLocal(t *testing.T) {
	jobs := []workload.Job{
		{Number: 1, Site: 5, Submit: 0, RunTime: grid.Hour, Estimate: grid.Hour, Processors: 128},
		{Number: 2, Site: 5, Submit: grid.Minute, RunTime: grid.Hour, Estimate: grid.Hour, Processors: 64},
		{Number: 3, Site: 6, Submit: 4 * grid.Hour, RunTime: grid.Minute, Estimate: grid.Minute, Processors: 1},
	}
	r := delegate(t, func(cfg *Config) { cfg.Workload = jobs })
	report := r.Config.(*delegationReport)
	if d := report.Delegations; d.Brought != 1 || d.Hops != 1 {
		t.Errorf("delegations %+v, want one to a sibling", d)
	}
	if r.Total.Finished != 2 || r.Total.GoodputIntraSite != measure.Decimal(128*3600*100) || r.Total.GoodputInterGrid != 0 {
		t.Errorf("%d jobs finished, goodput within the site %v, between grids %v", r.Total.Finished, r.Total.GoodputIntraSite, r.Total.GoodputInterGrid)
	}
	if report.Overhead["dmm"] == 0 || report.Overhead["keep-alive"] == 0 || r.Messages.ByType["lease.grant"] == 0 {
		t.Errorf("overhead %v, messages %v", report.Overhead, r.Messages.ByType)
	}
}

func TestDelegationConfig(t *testing.T) {
	for i, change := range []func(*Config){
		func(c *Config) { c.Architecture = "mesh" },
		func(c *Config) { c.LoadDAS = 0.7 },
		func(c *Config) { c.LoadG5K = 1001 },
		func(c *Config) { c.Days = -1 },
		func(c *Config) { c.Cycle = 0 },
		func(c *Config) { c.Threshold = 0 },
		func(c *Config) { c.Bind = -1 },
		func(c *Config) { c.TTL = lease.TTLMax + 1 },
		func(c *Config) { c.Rounds = -1 },
		func(c *Config) { c.Users = usersMax + 1 },
		func(c *Config) { c.Ordering = "best" },
		func(c *Config) { c.Selection = "lifo" },
		func(c *Config) { c.Phase = "later" },
		func(c *Config) { c.Flocking = "home" },
		func(c *Config) { c.Sizes = "narrow" },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := Run(context.Background(), cfg); !errors.Is(err, scenario.ErrConfig) {
			t.Errorf("case %d: error %v, want one about the configuration", i, err)
		}
	}
}

// TestHierarchy checks figure 1 as the text has it.
func TestHierarchy(t *testing.T) {
	var das, g5k int64
	for c, n := range clusterSizes {
		if gridOf(c) == 0 {
			das += n
		} else {
			g5k += n
		}
	}
	if das != 400 || g5k <= 2750 || das+g5k <= 3300 {
		t.Errorf("the DAS has %d processors, Grid'5000 %d", das, g5k)
	}
	for _, group := range []struct{ first, last int }{{0, 4}, {5, 8}, {11, 12}, {13, 14}, {15, 16}, {22, 30}, {20, 21}} {
		for site := group.first; site <= group.last; site++ {
			siblings := 0
			for _, l := range delegationLinks(site) {
				if l.Relation == lease.Sibling {
					siblings++
					if l.Site < delegationID(group.first) || l.Site > delegationID(group.last) {
						t.Errorf("site %d has the sibling %s", site, l.Site)
					}
				}
			}
			if siblings != group.last-group.first {
				t.Errorf("site %d has %d siblings, want %d", site, siblings, group.last-group.first)
			}
		}
	}
	for site := range delegation31 {
		if err := lease.CheckLinks(delegationID(site), delegationLinks(site)); err != nil {
			t.Errorf("site %d: %v", site, err)
		}
	}
}

func ExampleRun() {
	cfg := Default()
	cfg.LoadDAS, cfg.LoadG5K, cfg.Days = 20, 20, 0.1
	r, err := Run(context.Background(), cfg)
	fmt.Println(r.Total.Submitted > 0, err)
	// Output: true <nil>
}
