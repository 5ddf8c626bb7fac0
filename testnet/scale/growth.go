package scale

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/scale"
)

// Bounds of what is said about growth.
const (
	growthSizes  = 4         // at least: two would fit a line exactly
	growthFew    = 100       // messages of a type in each measurement, fewer of which are mostly chance
	growthTarget = 1_000_000 // sites, for which a prediction is made
	growthBetter = 2         // times nearer a law has to come than a slower one to be taken
)

// law is a way to grow with the number of sites: y = a + b · of(n).
type law struct {
	name string
	of   func(sites float64) float64
}

// laws are those that are tried, the slowest first.
var laws = []law{
	{"", func(float64) float64 { return 0 }},
	{"log₂ n", math.Log2},
	{"√n", math.Sqrt},
	{"n", func(n float64) float64 { return n }},
}

// growth is a law fitted to measurements by least squares.
type growth struct {
	law
	a, b     float64
	residual float64 // root of the mean square of the differences, over the mean
}

// at returns what it predicts, which is never below none.
func (g *growth) at(sites float64) float64 { return max(g.a+g.b*g.of(sites), 0) }

func (g *growth) String() string {
	if g.name == "" {
		return fmt.Sprintf("%.3g", g.a)
	}
	sign := '+'
	if g.b < 0 {
		sign = '−'
	}
	return fmt.Sprintf("%.3g %c %.3g %s", g.a, sign, math.Abs(g.b), g.name)
}

// fit returns the slowest law that fits: a faster one has to come much nearer. Sizes are
// different, and there are as many values.
func fit(sizes, values []float64) growth {
	var best growth
	for i, l := range laws {
		g := l.fit(sizes, values)
		if i == 0 || g.residual*growthBetter < best.residual {
			best = g
		}
	}
	return best
}

func (l law) fit(sizes, values []float64) growth {
	n := float64(len(sizes))
	var x, y, xx, xy float64
	for i, size := range sizes {
		at := l.of(size)
		x, y, xx, xy = x+at, y+values[i], xx+at*at, xy+at*values[i]
	}
	g := growth{law: l, a: y / n}
	if d := n*xx - x*x; d > 0 {
		g.b = (n*xy - x*y) / d
		g.a = (y - g.b*x) / n
	}
	var squares float64
	for i, size := range sizes {
		d := values[i] - (g.a + g.b*l.of(size))
		squares += d * d
	}
	if y > 0 {
		g.residual = math.Sqrt(squares/n) / (y / n)
	}
	return g
}

// Growth is how messages of a type grow with the sites of a federation.
type Growth struct {
	OFT       int     `json:"oft"`  // of the population
	Type      string  `json:"type"` // of message, "all" for all of them
	Law       string  `json:"law"`  // messages a site and minute, of the number n of sites
	Residual  float64 `json:"residual"`
	Here      float64 `json:"here"` // at the largest size
	Predicted float64 `json:"predicted"`
}

// growths returns how each type of message of a population grows; nothing if too few sizes were
// measured.
func (r *Report) growths(oft int) (grow []Growth) {
	list := r.of(oft)
	if len(list) < growthSizes || r.Options.Live {
		return nil
	}
	add := func(name string, count func(m *scale.Result) int64) {
		var sizes, values []float64
		for _, m := range list {
			n, sites := count(m), float64(m.Sites)
			if n < growthFew {
				return
			}
			sizes, values = append(sizes, sites), append(values, float64(n)/(sites*max(m.SpanSeconds.Float(), 1)/60))
		}
		g := fit(sizes, values)
		grow = append(grow, Growth{oft, name, g.String(), g.residual, values[len(values)-1], g.at(growthTarget)})
	}
	add("all", func(m *scale.Result) (sum int64) {
		for _, n := range m.ByType {
			sum += n
		}
		return sum
	})
	for _, name := range slices.Sorted(maps.Keys(list[len(list)-1].ByType)) {
		add(name, func(m *scale.Result) int64 { return m.ByType[name] })
	}
	return grow
}

// growthTable shows it, with what there would be at growthTarget.
func growthTable(grow []Growth, most int) reproduce.Table {
	t := reproduce.Table{
		Title: "Growth",
		Note: fmt.Sprintf("Messages a site and minute by type, as a law of the number n of sites, fitted by least squares: constant, log₂ n, √n or n, where a faster one has to come %d times nearer than a slower one. The residual is the root of the mean square of the differences, in %% of the mean. Types of which some size had fewer than %d are left out.",
			growthBetter, growthFew),
		Columns: []string{"residual, %", fmt.Sprintf("at %d sites", most), fmt.Sprintf("predicted for %d", growthTarget)},
	}
	for _, g := range grow {
		measure := reproduce.Measure{Name: g.Type + ": " + g.Law, Decimals: 3}
		for _, v := range []float64{100 * g.Residual, g.Here, g.Predicted} {
			measure.Cells = append(measure.Cells, reproduce.Cell{Published: reproduce.None, Here: reproduce.Number(v)})
		}
		t.Measures = append(t.Measures, measure)
	}
	return t
}
