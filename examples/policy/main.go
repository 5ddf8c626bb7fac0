// Command policy shows how to try a policy of one's own. It is a module of its own, as
// yours would be: it defines a placement policy, a delegation policy and a scenario, runs
// them in virtual time beside the built-in ones, and prints what came of each.
//
//	go run . -seed 1
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"text/tabwriter"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// bargain is a placement policy: where the cheapest site is slow and the fastest is dear,
// it wants the least product of cost and time. All else is as in the policy it embeds.
type bargain struct{ market.Placement }

// Key implements market.Policy: what of a site is to be small.
func (bargain) Key(c market.Candidate) int64 {
	minutes := max(int64((c.Verdict.Finish-c.Job.Submit)/grid.Minute), 1)
	return int64(c.Verdict.Cost/grid.Credit+1) * minutes
}

// smallFirst is a delegation policy: at each submission it leases what waiting jobs lack,
// for those first that lack least, and for none that wants more than half of the site.
func smallFirst(_ lease.Occasion, s lease.Situation, of lease.Candidate, queue iter.Seq[lease.Candidate]) (wishes []lease.Wish) {
	idle := s.Idle
	for lacks := s.Processors / 8; lacks <= s.Processors/2; lacks *= 2 {
		for c := range queue {
			if want := c.Lacks(idle); want > lacks/2 && want <= lacks {
				wishes = append(wishes, lease.Wish{Task: c.Task, Processors: want})
				idle -= c.Processors - want
			}
		}
	}
	return wishes
}

// variant is what one run differs in from another.
type variant struct {
	place    string
	policy   market.Policy
	delegate string
	match    lease.MatchConfig
}

// run lets six sites of table 1 of Grid-Federation live through two days. Half of the
// users want a deadline kept at the least cost: their jobs go to the market. The jobs of
// the others stay at home, where processors are leased for them.
func run(seed uint64, v variant) (*measure.Result, error) {
	sites := workload.Table1()[:6]
	n, err := testnet.New(testnet.Config{
		Seed: seed, Inputs: scenario.Inputs(), Link: testnet.Link{LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	homes := make([]workload.Home, len(sites))
	names := make([]measure.Site, len(sites))
	for i, s := range sites {
		homes[i] = workload.Home{ID: grid.SiteID(s.Name), Rating: s.Rating, Price: s.Price}
		names[i] = measure.Site{Name: s.Name, Processors: s.Processors}
		match := v.match
		for _, other := range sites {
			if other.Name != s.Name {
				match.Links = append(match.Links, lease.Link{Site: grid.SiteID(other.Name), Relation: lease.Sibling})
			}
		}
		config := site.Config{
			ID: homes[i].ID, Name: s.Name, Resources: grid.Resources{Processors: s.Processors}, Rating: s.Rating, Price: s.Price, Foreign: true,
			Parts: site.Market | site.Quotes | site.Gossip | site.Leases, Directory: directory.Config{Federation: "virtual", Topic: "load"},
			Market: market.Config{Placement: v.policy}, Lease: site.LeaseConfig{Lend: true, Match: match},
			Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax, Finished: scenario.JobsMax, Retention: grid.Day},
		}
		at, err := n.Add(testnet.Member{ID: config.ID, Rating: s.Rating, New: func(int) (testnet.Site, error) {
			return site.New(config, draw.PCG(seed, config.ID, draw.ForSite).Uint64())
		}})
		if err != nil {
			return nil, err
		}
		n.Subscribe("load", at)
	}
	jobs, err := workload.Embedded(sites, workload.EmbeddedSeed)
	if err != nil {
		return nil, err
	}
	feed := &scenario.Feed{Source: jobs, QoS: workload.PaperQoS, Homes: homes, Adjust: func(j *grid.Job) {
		if j.ID.Lo%2 == 0 {
			j.Goal = grid.GoalCost
			return
		}
		j.Goal, j.Deadline, j.Budget, j.Spread = grid.GoalLocal, grid.Never, grid.NoBudget, true
	}}
	n.Feed(feed)
	r := scenario.Run{Common: scenario.Common{Seed: seed}, Scenario: "policy", Network: n, Sites: names, Window: grid.Never}
	return r.Do(context.Background())
}

func main() {
	seed := flag.Uint64("seed", 1, "determines everything random in the runs")
	flag.Parse()
	own := lease.MatchConfig{Rules: lease.Rules{Delegate: smallFirst}}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "placement\tdelegation\taccepted\twait h\tresponse h\tmillion credits\ttrace hash\t")
	for _, v := range []variant{
		{"coordinated", market.PlacementCoordinated, "none", lease.MatchConfig{}},
		{"coordinated", market.PlacementCoordinated, "dmm", lease.MatchConfig{Threshold: 1000}},
		{"coordinated", market.PlacementCoordinated, "s-strd", lease.MatchConfig{Policy: lease.SSTRD}},
		{"coordinated", market.PlacementCoordinated, "small first", own},
		{"bargain", bargain{}, "s-strd", lease.MatchConfig{Policy: lease.SSTRD}},
		{"bargain", bargain{}, "small first", own},
	} {
		r, err := run(*seed, v)
		if err != nil {
			fmt.Fprintln(os.Stderr, "policy:", err)
			os.Exit(1)
		}
		t := r.Total
		fmt.Fprintf(w, "%s\t%s\t%.1f %%\t%.1f\t%.1f\t%.0f\t%s\t\n", v.place, v.delegate, 100*float64(t.Accepted)/float64(t.Submitted),
			float64(t.AWT)/3600, float64(t.ResponseTime)/3600, float64(t.BudgetSpent)/1e12, r.TraceHash)
	}
	w.Flush()
}
