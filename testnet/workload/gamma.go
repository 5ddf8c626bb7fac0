package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Gamma is the gamma distribution: mean Shape·Scale, variance Shape·Scale².
type Gamma struct{ Shape, Scale float64 }

func (g Gamma) check(name string) error {
	if !(g.Shape >= 1 && g.Shape <= 1e6) || !(g.Scale > 0 && g.Scale <= 1e6) {
		return fmt.Errorf("%s: gamma distribution of shape %v and scale %v: want a shape of 1 to 1e6, a scale above 0 to 1e6", name, g.Shape, g.Scale)
	}
	return nil
}

// below returns the probability of a value below x.
func (g Gamma) below(x float64) float64 {
	if x <= 0 {
		return 0
	}
	a, x := g.Shape, x/g.Scale
	if x-a > 100+float64(40*math.Sqrt(a)) {
		return 1 // to the last place; the series would underflow
	}
	// P(a, x) = x^a e^-x / Γ(a) · Σ x^n / (a (a+1) ... (a+n)); all terms are positive.
	term := 1 / a
	sum := term
	for n := a + 1; term > sum*1e-17; n++ {
		term = float64(term*x) / n
		sum += term
	}
	exponent := float64(a*log(x)) - x - logGamma(a)
	return min(float64(exp(max(exponent, -700))*sum), 1)
}

// meanExp returns E[e^X; X < limit], the mean of e^X with values of X from limit
// on counted as zero. The scale must be below 1 (else it is infinite without limit).
func (g Gamma) meanExp(limit float64) float64 {
	// e^x f(x; a, b) is (1-b)^-a times the density of gamma(a, b/(1-b)).
	rest := 1 - g.Scale
	return float64(pow(rest, -g.Shape) * Gamma{g.Shape, g.Scale / rest}.below(limit))
}

// sampler draws from distributions, the same numbers on every machine.
type sampler struct {
	rng   *rand.Rand
	spare float64 // the second of a pair of normal numbers
	has   bool
}

// uniform returns a number between 0 and 1, both excluded.
func (s *sampler) uniform() float64 {
	return float64((float64(s.rng.Uint64()>>12) + 0.5) * 0x1p-52)
}

// normal returns a standard normal number (Marsaglia's polar method).
func (s *sampler) normal() float64 {
	if s.has {
		s.has = false
		return s.spare
	}
	for {
		x := float64(2*s.uniform()) - 1
		y := float64(2*s.uniform()) - 1
		square := float64(x*x) + float64(y*y)
		if square >= 1 || square == 0 {
			continue
		}
		factor := math.Sqrt(-2 * log(square) / square)
		s.spare, s.has = float64(y*factor), true
		return float64(x * factor)
	}
}

// gamma returns a number from g (Marsaglia and Tsang 2000, for shapes from 1).
func (s *sampler) gamma(g Gamma) float64 {
	d := g.Shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		u := s.uniform()
		square := float64(x * x)
		// The first test is a cheap one that already accepts nearly always.
		if u < 1-float64(0.0331*float64(square*square)) ||
			log(u) < float64(0.5*square)+float64(d*(1-v+log(v))) {
			return float64(float64(d*v) * g.Scale)
		}
	}
}
