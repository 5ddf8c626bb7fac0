package scale

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gridnode/testnet/live"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/scale"
)

// Comparison is a live measurement beside a virtual one of the same workload.
type Comparison struct {
	Sites int               `json:"sites"`
	OFT   int               `json:"oft"`
	Types []live.Difference `json:"types"`
	Rates []live.Rate       `json:"rates"` // messages that a site receives in a minute

	live    *scale.Result
	virtual []*scale.Result
}

// Live counts are to be those of virtual time, within a tenth. Of fewer messages than
// few, chance changes more.
const (
	liveTolerance = 10 // per cent
	few           = 100
	fewLookups    = 20 // they differ little from each other

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
		if t, ok := c.lookupTarget(); ok {
			targets = append(targets, t)
		}
	}
	return append(targets, r.rateTargets()...)
}

// rateTargets says whether a site receives as much in a minute live as in virtual time,
// and no more of it in a larger federation.
func (r *Report) rateTargets() (targets []Target) {
	for _, c := range r.Live {
		for _, rate := range c.Rates {
			if !rate.Whole() || rate.Name == live.LookUps { // those are compared one by one
				continue
			}
			where := fmt.Sprintf("%d nodes, %d %% OFT: %s per site and minute", c.Sites, c.OFT, rate.Name)
			if min(rate.Live, rate.Most).Float()*c.minutes() >= few {
				here, least, most := rate.Live.Float(), rate.Least.Float(), rate.Most.Float()
				targets = append(targets, Target{
					Text: where + ", live against virtual", Wanted: fmt.Sprintf("%.1f to %.1f, within %d %%", least, most, liveTolerance), Here: fmt.Sprintf("%.1f", here),
					Met: here*100 >= least*(100-liveTolerance) && here*100 <= most*(100+liveTolerance),
				})
			}
			if base := r.rate(c.OFT, rate.Name); base > 0 && c.Sites > sizeOfComparison {
				most := upkeepGrowthMax * base.Float()
				targets = append(targets, Target{
					Text: where, Wanted: fmt.Sprintf("at most %.1f (%.1f × that at %d)", most, upkeepGrowthMax, sizeOfComparison),
					Here: fmt.Sprintf("%.1f", rate.Live.Float()), Met: rate.Live.Float() <= most,
				})
			}
		}
	}
	return targets
}

// minutes is for how long all sites together were measured.
func (c *Comparison) minutes() float64 { return c.live.SpanSeconds.Float() / 60 * float64(c.Sites) }

// rate returns the rate of that name of live nodes in a federation of the size that others
// are compared with, 0 if there was none.
func (r *Report) rate(oft int, name string) measure.Decimal {
	for _, c := range r.Live {
		for _, rate := range c.Rates {
			if c.OFT == oft && c.Sites == sizeOfComparison && rate.Name == name {
				return rate.Live
			}
		}
	}
	return 0
}

// rates is one table of all sizes: what a site receives in a minute, live and in virtual
// time.
func (r *Report) rates(oft int) reproduce.Table {
	t := reproduce.Table{
		Title: "Messages that a site receives in a minute",
		Note:  "Live, and least and most of the virtual networks of the same jobs. A protocol's line is for all of its messages.",
	}
	cells := make(map[string][]reproduce.Cell)
	var names []string
	columns := 0
	for _, c := range r.Live {
		if c.OFT != oft {
			continue
		}
		t.Columns = append(t.Columns, fmt.Sprintf("%d live", c.Sites), "least", "most")
		for _, rate := range c.Rates {
			if cells[rate.Name] == nil {
				names = append(names, rate.Name)
			}
			list := cells[rate.Name]
			for len(list) < columns {
				list = append(list, reproduce.Cell{Published: reproduce.None, Here: reproduce.None})
			}
			for _, n := range []measure.Decimal{rate.Live, rate.Least, rate.Most} {
				list = append(list, reproduce.Cell{Published: reproduce.None, Here: reproduce.Number(n.Float())})
			}
			cells[rate.Name] = list
		}
		columns = len(t.Columns)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range names {
		list := cells[name]
		for len(list) < columns {
			list = append(list, reproduce.Cell{Published: reproduce.None, Here: reproduce.None})
		}
		t.Measures = append(t.Measures, reproduce.Measure{Name: name, Decimals: 2, Cells: list})
	}
	return t
}

// rank puts protocols in their order, each with its messages behind it, whatever was first
// seen in which federation.
func rank(name string) string {
	switch name {
	case live.LookUps:
		return "~1"
	case "all":
		return "~2"
	}
	return name
}

// lookupTarget says whether a look-up takes as many requests live as in virtual time, if
// there were enough of them.
func (c *Comparison) lookupTarget() (t Target, ok bool) {
	var lookups, sum float64
	for _, v := range c.virtual {
		lookups += float64(v.Lookups)
		sum += float64(v.Lookups) * v.RequestsPerLookup.Float()
	}
	if c.live.Lookups < fewLookups || lookups < fewLookups {
		return Target{}, false
	}
	mean, here := sum/lookups, c.live.RequestsPerLookup.Float()
	off := 100 * (here - mean) / mean
	return Target{
		Text:   fmt.Sprintf("%d nodes, %d %% OFT: requests per look-up, live against virtual", c.Sites, c.OFT),
		Wanted: fmt.Sprintf("%.1f, within %d %%", mean, liveTolerance),
		Here:   fmt.Sprintf("%.1f (%+.1f %%)", here, off), Met: off >= -liveTolerance && off <= liveTolerance,
	}, true
}

// perLookup returns how many requests a look-up took, NaN if there was none.
func perLookup(m *scale.Result) float64 {
	if m.Lookups == 0 {
		return math.NaN()
	}
	return m.RequestsPerLookup.Float()
}

// comparisons are the tables of live beside virtual.
func (r *Report) comparisons() reproduce.Experiment {
	e := reproduce.Experiment{Title: "Live beside virtual"}
	for _, oft := range r.Options.OFT {
		e.Tables = append(e.Tables, r.rates(oft))
	}
	for _, c := range r.Live {
		t := reproduce.Table{
			Title:   fmt.Sprintf("%d nodes, %d %% of the users want the fastest site", c.Sites, c.OFT),
			Note:    fmt.Sprintf("Virtual: mean, least and most of %d networks, which differ in what chance decides.", len(c.virtual)),
			Columns: []string{"live", "virtual", "least", "most", "difference, %"},
		}
		line := func(name string, decimals int, live float64, of func(*scale.Result) float64) {
			var known []float64
			for _, v := range c.virtual {
				if n := of(v); !math.IsNaN(n) {
					known = append(known, n)
				}
			}
			mean, least, most, difference := math.NaN(), math.NaN(), math.NaN(), math.NaN()
			if len(known) > 0 {
				mean, least, most = 0, slices.Min(known), slices.Max(known)
			}
			for _, n := range known {
				mean += n / float64(len(known))
			}
			if mean > 0 {
				difference = 100 * (live - mean) / mean
			}
			m := reproduce.Measure{Name: name, Decimals: decimals}
			for _, n := range []float64{live, mean, least, most, difference} {
				m.Cells = append(m.Cells, reproduce.Cell{Published: reproduce.None, Here: reproduce.Number(n)}) // NaN is None
			}
			t.Measures = append(t.Measures, m)
		}
		line("accepted jobs", 1, float64(c.live.Accepted), func(v *scale.Result) float64 { return float64(v.Accepted) })
		for _, d := range c.Types {
			line(d.Type, 1, float64(d.Live), func(v *scale.Result) float64 { return float64(v.ByType[d.Type]) })
		}
		line("requests per look-up", 1, perLookup(c.live), perLookup)
		line("look-ups", 1, float64(c.live.Lookups), func(v *scale.Result) float64 { return float64(v.Lookups) })
		line("seconds a submission was late, at most", 2, c.live.LateSeconds.Float(), func(v *scale.Result) float64 { return v.LateSeconds.Float() })
		e.Tables = append(e.Tables, t)
	}
	return e
}
