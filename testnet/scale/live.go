package scale

import (
	"fmt"

	"gridnode/testnet"
	"gridnode/testnet/reproduce"
)

// Comparison is a live measurement beside a virtual one of the same workload.
type Comparison struct {
	Sites int                  `json:"sites"`
	OFT   int                  `json:"oft"`
	Types []testnet.Difference `json:"types"`

	live, virtual *testnet.ScaleResult
}

// Live counts are to be those of virtual time, within a tenth. Of fewer messages than
// few, chance changes more.
const (
	liveTolerance = 10 // per cent
	few           = 100
)

// liveTargets says which types of messages are as many live as in virtual time.
func (r *Report) liveTargets() (targets []Target) {
	for _, c := range r.Live {
		for _, d := range c.Types {
			if max(d.Live, d.Virtual) < few {
				continue
			}
			percent := d.Percent.Float()
			targets = append(targets, Target{
				Text:   fmt.Sprintf("%d nodes, %d %% OFT: %s, live against virtual", c.Sites, c.OFT, d.Type),
				Wanted: fmt.Sprintf("%d within %d %%", d.Virtual, liveTolerance),
				Here:   fmt.Sprintf("%d (%+.1f %%)", d.Live, percent), Met: percent >= -liveTolerance && percent <= liveTolerance,
			})
		}
	}
	return targets
}

// comparisons are the tables of live beside virtual.
func (r *Report) comparisons() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Live beside virtual"}
	for _, c := range r.Live {
		t := reproduce.Table{
			Title: fmt.Sprintf("%d nodes, %d %% of the users want the fastest site", c.Sites, c.OFT), Columns: []string{"live", "virtual", "difference, %"},
		}
		line := func(name string, decimals int, live, virtual float64) {
			difference := reproduce.None
			if virtual > 0 {
				difference = reproduce.Number(100 * (live - virtual) / virtual)
			}
			m := reproduce.Measure{Name: name, Decimals: decimals}
			for _, n := range []reproduce.Number{reproduce.Number(live), reproduce.Number(virtual), difference} {
				m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: n})
			}
			t.Measures = append(t.Measures, m)
		}
		line("accepted jobs", 1, float64(c.live.Accepted), float64(c.virtual.Accepted))
		for _, d := range c.Types {
			line(d.Type, 1, float64(d.Live), float64(d.Virtual))
		}
		line("requests per look-up", 1, c.live.RequestsPerLookup.Float(), c.virtual.RequestsPerLookup.Float())
		line("look-ups", 1, float64(c.live.Lookups), float64(c.virtual.Lookups))
		e.Tables = append(e.Tables, t)
	}
	return e
}
