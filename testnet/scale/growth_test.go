package scale

import (
	"math"
	"math/rand/v2"
	"testing"

	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/scale"
)

// What was made by a law, with an error of a hundredth, is taken for that law.
func TestGrowthFindsTheLaw(t *testing.T) {
	sizes := []float64{10, 50, 100, 1000, 10_000}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name string
		a, b float64
		of   func(float64) float64
	}{
		{"", 6.5, 0, math.Log2},
		{"log₂ n", 1, 0.5, math.Log2},
		{"log₂ n", 9, -0.4, math.Log2},
		{"√n", 2, 0.3, math.Sqrt},
		{"n", 3, 0.01, func(n float64) float64 { return n }},
	} {
		values := make([]float64, len(sizes))
		for i, n := range sizes {
			values[i] = (tt.a + tt.b*tt.of(n)) * (1 + 0.01*(2*rng.Float64()-1))
		}
		g := fit(sizes, values)
		want := tt.a + tt.b*tt.of(growthTarget)
		if g.name != tt.name || g.residual > 0.02 || math.Abs(g.at(growthTarget)-max(want, 0)) > 0.1*math.Abs(want) {
			t.Errorf("%v %v %q: got %v, off by %.3f, and %.2f predicted, want %.2f", tt.a, tt.b, tt.name, &g, g.residual, g.at(growthTarget), want)
		}
	}
}

func TestGrowthOfTypes(t *testing.T) {
	r := &Report{Options: Options{OFT: []int{50}}}
	for _, sites := range []int{10, 100, 1000, 10_000} {
		m := &scale.Result{SpanSeconds: measure.Decimal(60_00), Sites: sites}
		m.OFT = 50
		m.ByType = map[string]int64{"gossip.load": int64(20 * sites), "market.reply": 3}
		r.Results = append(r.Results, m)
	}
	grow := r.growths(50)
	if len(grow) != 2 || grow[1].Type != "gossip.load" || grow[1].Law != "20" || grow[1].Residual > 1e-6 || grow[1].Here != 20 || grow[1].Predicted != 20 {
		t.Fatalf("got %+v: want all, and gossip.load, which does not grow; of the other type there are too few", grow)
	}
	if table := growthTable(grow, 10_000); len(table.Measures) != 2 || len(table.Measures[0].Cells) != len(table.Columns) {
		t.Errorf("got %+v, want a line of each", table)
	}
	r.Results = r.Results[1:]
	if grow := r.growths(50); grow != nil {
		t.Errorf("three sizes have %+v: they are too few to tell laws apart", grow)
	}
}
