package workload

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// ulps returns how many units in the last place of want got is off.
func ulps(got, want float64) float64 {
	return math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
}

func TestExpAndLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-700, 700).Draw(t, "x")
		if got, want := exp(x), math.Exp(x); ulps(got, want) > 3 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
		y := rapid.Float64Range(1e-300, 1e300).Draw(t, "y")
		if got, want := log(y), math.Log(y); ulps(got, want) > 3 {
			t.Fatalf("log(%v) = %v, want %v", y, got, want)
		}
		z := rapid.Float64Range(0.5, 2).Draw(t, "z")
		if got, want := log(z), math.Log(z); math.Abs(got-want) > 1e-15*math.Abs(want)+1e-17 {
			t.Fatalf("log(%v) = %v, want %v", z, got, want)
		}
		a := rapid.Float64Range(0.1, 1e6).Draw(t, "a")
		want, _ := math.Lgamma(a)
		if got := logGamma(a); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
			t.Fatalf("logGamma(%v) = %v, want %v", a, got, want)
		}
	})
	if exp(0) != 1 || log(1) != 0 {
		t.Errorf("exp(0) = %v, log(1) = %v", exp(0), log(1))
	}
}

func TestGammaBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Gamma{rapid.Float64Range(1, 1000).Draw(t, "shape"), rapid.Float64Range(0.01, 10).Draw(t, "scale")}
		x := g.Shape * g.Scale * rapid.Float64Range(0, 4).Draw(t, "x")
		want := mathext.GammaIncReg(g.Shape, x/g.Scale)
		if got := g.below(x); math.Abs(got-want) > 1e-10 {
			t.Fatalf("gamma%v below %v: %v, want %v", g, x, got, want)
		}
	})
}

// TestGammaMeanExp integrates e^x times gonum's density.
func TestGammaMeanExp(t *testing.T) {
	for _, m := range []Model{Lublin(128), LublinKinds(128)} {
		for _, k := range m.Kinds {
			for _, c := range []struct {
				Gamma
				limit float64
			}{{k.RunTimes.Short, logRunTimeMax}, {k.RunTimes.Long, logRunTimeMax}, {k.Arrivals.Gap, logGapMax}} {
				density := distuv.Gamma{Alpha: c.Shape, Beta: 1 / c.Scale}
				const steps = 200_000
				want := 0.0
				for i := range steps {
					x := (float64(i) + 0.5) * c.limit / steps
					want += math.Exp(x) * density.Prob(x) * c.limit / steps
				}
				if got := c.meanExp(c.limit); math.Abs(got/want-1) > 1e-5 {
					t.Errorf("gamma%v: mean of e^x below %v is %v, want %v", c.Gamma, c.limit, got, want)
				}
			}
		}
	}
}

// TestSampler compares what is drawn with the exact distributions, by one-sample
// Kolmogorov-Smirnov. Seeds are fixed, so it passes or fails for good.
func TestSampler(t *testing.T) {
	n := unlessShort(400_000, 20_000)
	s := sampler{rng: Rand(1, 0)}
	check := func(name string, draw func() float64, below func(float64) float64) {
		sample := make([]float64, n)
		exact := make([]float64, n)
		for i := range sample {
			sample[i] = below(draw())
			exact[i] = (float64(i) + 0.5) / float64(n)
		}
		// Against the quantiles of the exact distribution; the second sample has no
		// spread of its own, so the two-sample p-value would be too kind.
		d, _ := kolmogorovSmirnov(sample, exact)
		if limit := 1.95 / math.Sqrt(float64(n)); d > limit { // the 0.1 % point
			t.Errorf("%s: D = %.5f, want at most %.5f", name, d, limit)
		}
	}
	check("uniform", s.uniform, func(x float64) float64 { return x })
	check("normal", s.normal, distuv.UnitNormal.CDF)
	for _, g := range []Gamma{{1, 1}, {4.2, 0.94}, {312, 0.03}, {639.1, 0.0156}, {10.46, 0.4871}} {
		d := distuv.Gamma{Alpha: g.Shape, Beta: 1 / g.Scale}
		check("gamma", func() float64 { return s.gamma(g) }, d.CDF)
	}
}
