package federation

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// TestNamesAreFoundUnderChurn: in a virtual network whose sites lose their power again and
// again, a site that is up is found by its name, over the DHT that they make up.
func TestNamesAreFoundUnderChurn(t *testing.T) {
	const sites = 96
	w, err := NewTable1(sites, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defaults := Default()
	f := Builder{
		Config: testnet.Config{
			Seed: 11, Inputs: scenario.Inputs(), Durable: true, DialTimeout: 5 * grid.Second,
			Link: testnet.Link{LatencyMin: defaults.LatencyMin, LatencyMax: defaults.LatencyMax, Loss: 10},
		},
		Foreign: true, Sites: w.Sites, Authority: Authorities(8),
	}
	n, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	// A site is up for an hour and a half, and down for half an hour.
	const span = 6 * grid.Hour
	rng := rand.New(rand.NewPCG(1, 2))
	up := make([]grid.Time, sites) // since when; grid.Never while it is down
	for s := range sites {
		at := grid.Time(rng.ExpFloat64() * float64(90*grid.Minute))
		for at < span {
			down := max(grid.Time(rng.ExpFloat64()*float64(30*grid.Minute)), grid.Second)
			if err := n.Schedule(testnet.Fault{Kind: testnet.FaultMachine, At: at, For: down, Sites: []int{s}}); err != nil {
				t.Fatal(err)
			}
			n.Call(at, s, func() { up[s] = grid.Never })
			n.Call(at+down, s, func() { up[s] = n.Now() })
			at += down + grid.Time(rng.ExpFloat64()*float64(90*grid.Minute))
		}
	}
	type question struct{ who, whom int }
	open := make(map[uint64]question)
	asked, found := 0, 0
	n.Observe(testnet.Observer{Answer: func(_ grid.Time, _ int, a grid.Answer) {
		q, ours := open[a.Token]
		if !ours {
			return
		}
		delete(open, a.Token)
		asked++
		id := n.ID(q.whom)
		if slices.ContainsFunc(a.Value.(*record.Found).Records, func(r *record.Record) bool { return r.Site == id }) {
			found++
		}
	}})
	token := uint64(1 << 40)
	for at := 15 * grid.Minute; at < span; at += 10 * grid.Second {
		who, whom := rng.IntN(sites), rng.IntN(sites)
		text := string(n.ID(whom))
		if rng.IntN(2) == 0 {
			text = "site " + text
		}
		token++
		number := token
		n.Call(at, who, func() {
			if now := n.Now(); who != whom && up[who] <= now-grid.Minute && up[whom] <= now-grid.Minute {
				open[number] = question{who, whom}
				n.Step(who, &record.Find{Token: number, Text: text})
			}
		})
	}
	if err := n.Run(t.Context(), span, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d searches found the site; %d without an answer, as who asked went down", found, asked, len(open))
	if asked < 500 || 100*found < 99*asked {
		t.Errorf("%d of %d searches found the site, want 99 %%", found, asked)
	}
}
