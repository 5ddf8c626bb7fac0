package scale

import (
	"fmt"
	"math"

	"gridnode/testnet"
	"gridnode/testnet/reproduce"
)

// Comparison is a live measurement beside a virtual one of the same workload.
type Comparison struct {
	Sites int                  `json:"sites"`
	OFT   int                  `json:"oft"`
	Types []testnet.Difference `json:"types"`

	live    *testnet.ScaleResult
	virtual []*testnet.ScaleResult
}

// Live counts are to be those of virtual time, within a tenth. Of fewer messages than
// few, chance changes more.
const (
	liveTolerance = 10 // per cent
	few           = 100

	// Submissions that come later behind their instants say that the nodes had too little
	// of the processors: messages that are answered late are sent again.
	lateMax = 0.5 // seconds
)

// liveTargets says which types of messages are as many live as in virtual time.
func (r *Report) liveTargets() (targets []Target) {
	for _, c := range r.Live {
		if late := c.live.LateSeconds.Float(); late > lateMax {
			targets = append(targets, Target{
				Text:   fmt.Sprintf("%d nodes, %d %% OFT: the machine keeps up (if not: --live-rate, or a machine of its own)", c.Sites, c.OFT),
				Wanted: fmt.Sprintf("submissions at most %.1f s late", lateMax), Here: fmt.Sprintf("%.1f s", late),
			})
		}
		for _, d := range c.Types {
			if max(d.Live, d.Virtual) < few {
				continue
			}
			outside := d.Outside.Float()
			targets = append(targets, Target{
				Text:   fmt.Sprintf("%d nodes, %d %% OFT: %s, live against virtual", c.Sites, c.OFT, d.Type),
				Wanted: fmt.Sprintf("%d to %d, within %d %%", d.Least, d.Most, liveTolerance),
				Here:   fmt.Sprintf("%d (%+.1f %%)", d.Live, outside), Met: outside >= -liveTolerance && outside <= liveTolerance,
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
			Title:   fmt.Sprintf("%d nodes, %d %% of the users want the fastest site", c.Sites, c.OFT),
			Note:    fmt.Sprintf("Virtual: mean, least and most of %d networks, which differ in what chance decides.", len(c.virtual)),
			Columns: []string{"live", "virtual", "least", "most", "difference, %"},
		}
		line := func(name string, decimals int, live float64, of func(*testnet.ScaleResult) float64) {
			sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
			for _, v := range c.virtual {
				n := of(v)
				sum, least, most = sum+n, min(least, n), max(most, n)
			}
			mean := sum / float64(max(len(c.virtual), 1))
			difference := reproduce.None
			if mean > 0 {
				difference = reproduce.Number(100 * (live - mean) / mean)
			}
			m := reproduce.Measure{Name: name, Decimals: decimals}
			for _, n := range []reproduce.Number{reproduce.Number(live), reproduce.Number(mean), reproduce.Number(least), reproduce.Number(most), difference} {
				m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: n})
			}
			t.Measures = append(t.Measures, m)
		}
		line("accepted jobs", 1, float64(c.live.Accepted), func(v *testnet.ScaleResult) float64 { return float64(v.Accepted) })
		for _, d := range c.Types {
			line(d.Type, 1, float64(d.Live), func(v *testnet.ScaleResult) float64 { return float64(v.ByType[d.Type]) })
		}
		line("requests per look-up", 1, c.live.RequestsPerLookup.Float(), func(v *testnet.ScaleResult) float64 { return v.RequestsPerLookup.Float() })
		line("look-ups", 1, float64(c.live.Lookups), func(v *testnet.ScaleResult) float64 { return float64(v.Lookups) })
		line("seconds a submission was late, at most", 2, c.live.LateSeconds.Float(), func(v *testnet.ScaleResult) float64 { return v.LateSeconds.Float() })
		e.Tables = append(e.Tables, t)
	}
	return e
}
