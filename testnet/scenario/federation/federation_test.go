package federation

import (
	"context"
	"slices"
	"testing"

	"gridnode/testnet/measure"
)

func runFederation(t testing.TB, change func(*Config)) *measure.Result {
	t.Helper()
	cfg := Default()
	change(&cfg)
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFederationAddsUp: in every mode each job is accounted for once, at its home
// and where it ran, and what users pay is what sites earn.
func TestFederationAddsUp(t *testing.T) {
	accepted := map[string]int64{}
	for _, mode := range []string{"independent", "federated", "economy"} {
		for _, placement := range []string{"paper", "coordinated"} {
			t.Run(mode+" "+placement, func(t *testing.T) {
				r := runFederation(t, func(c *Config) { c.Mode, c.Placement = mode, placement })
				var sum measure.Stats
				for _, s := range append(slices.Clone(r.Sites), measure.SiteResult{Name: "total", Stats: r.Total}) {
					if s.Submitted != s.Accepted+s.Rejected || s.Accepted != s.Finished || s.Finished != s.Local+s.Migrated {
						t.Errorf("%s: %d submitted, %d accepted, %d rejected, %d finished, %d local, %d migrated", s.Name, s.Submitted, s.Accepted, s.Rejected, s.Finished, s.Local, s.Migrated)
					}
					if s.Utilization < 0 || s.Utilization > 10_000 || s.AWT < 0 || s.ASD < 100 || s.ResponseTime < s.AWT {
						t.Errorf("%s: utilization %v, AWT %v, ASD %v, response %v", s.Name, s.Utilization, s.AWT, s.ASD, s.ResponseTime)
					}
					if s.Name == "total" {
						continue
					}
					sum.Submitted += s.Submitted
					sum.Local += s.Local
					sum.Migrated += s.Migrated
					sum.Remote += s.Remote
					sum.Incentive += s.Incentive
					sum.BudgetSpent += s.BudgetSpent
				}
				total := r.Total
				if sum.Submitted != total.Submitted || sum.Local != total.Local || sum.Migrated != total.Migrated || sum.Remote != sum.Migrated ||
					sum.Incentive != total.Incentive || sum.BudgetSpent != sum.Incentive {
					t.Errorf("sites add up to %+v, total is %+v", sum, total)
				}
				if total.Submitted < 2500 || total.Submitted > 2900 {
					t.Errorf("%d jobs, want about the 2662 of table 2", total.Submitted)
				}
				if alone := mode == "independent"; (total.Migrated == 0) != alone || (r.Messages.ByType["market.negotiate"] == 0) != alone {
					t.Errorf("%d jobs migrate with messages %v", total.Migrated, r.Messages.ByType)
				}
				if r.Total.Makespan <= 0 || r.VirtualSeconds < r.Total.Makespan {
					t.Errorf("makespan %v in a run of %v s", r.Total.Makespan, r.VirtualSeconds)
				}
				accepted[mode+placement] = total.Accepted
			})
		}
	}
	if accepted["federatedpaper"] <= accepted["independentpaper"] {
		t.Errorf("%d jobs accepted alone and %d in the federation: sites do not help each other", accepted["independentpaper"], accepted["federatedpaper"])
	}
}

// TestFederationIsDeterministic: one seed, one trace.
func TestFederationIsDeterministic(t *testing.T) {
	run := func(seed uint64) string {
		return runFederation(t, func(c *Config) { c.Seed, c.Sites, c.OFT = seed, 4, 30 }).TraceHash
	}
	first, second, other := run(1), run(1), run(2)
	if first != second || first == other {
		t.Errorf("trace hashes %s and %s of seed 1, %s of seed 2", first, second, other)
	}
}

// TestEconomyFollowsTheMoney: "under OFC the cheap sites earn, the fast ones stay
// idle; under OFT every owner earns" (Grid-Federation, experiment 3).
func TestEconomyFollowsTheMoney(t *testing.T) {
	share := func(oft int, name string) float64 {
		r := runFederation(t, func(c *Config) { c.OFT, c.Placement = oft, "paper" })
		for _, s := range r.Sites {
			if s.Name == name {
				return float64(s.Remote) / float64(r.Total.Migrated)
			}
		}
		t.Fatalf("no site %s", name)
		return 0
	}
	for _, tt := range []struct {
		name     string
		ofc, oft float64
		cheap    bool
	}{
		{"LANL Origin", share(0, "LANL Origin"), share(100, "LANL Origin"), true},
		{"NASA iPSC", share(0, "NASA iPSC"), share(100, "NASA iPSC"), false},
	} {
		if tt.cheap != (tt.ofc > tt.oft) {
			t.Errorf("%s runs %.2f of the migrated jobs if all want cheap, %.2f if all want fast", tt.name, tt.ofc, tt.oft)
		}
	}
}

// TestReplicatedSites: more than eight sites are table 1 again, with the same jobs.
func TestReplicatedSites(t *testing.T) {
	r := runFederation(t, func(c *Config) { c.Mode, c.Sites = "independent", 10 })
	if len(r.Sites) != 10 || r.Sites[8].Name != "CTC SP2 2" || r.Sites[8].Submitted != r.Sites[0].Submitted || r.Sites[8].Processors != r.Sites[0].Processors {
		t.Errorf("sites are %+v", r.Sites)
	}
}
