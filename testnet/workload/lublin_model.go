package workload

import (
	"fmt"
	"math"
)

// Model holds the parameters of the workload model of Lublin and Feitelson (The
// workload on parallel supercomputers: modeling the characteristics of rigid
// jobs, J. Parallel Distrib. Comput. 63(11), 2003). Times in it are seconds.
type Model struct {
	Processors int64  // of the machine
	Kinds      []Kind // one for all jobs, or batch and interactive jobs apart
	StartHour  int    // of the day at which the workload begins, 0 to 23

	// Shape turns the workload into one of a wanted size. Its zero value leaves
	// the model as published.
	Shape Shape
}

// Kind is how one kind of jobs is distributed.
type Kind struct {
	Sizes    Sizes
	RunTimes RunTimes
	Arrivals Arrivals
}

// Sizes is the distribution of the number of processors: a job is serial, or its
// size is two to the power of a number from a two-stage uniform distribution,
// which is rounded for a share of the jobs so that they get a power of two.
type Sizes struct {
	Serial   float64 // probability of one processor
	Power2   float64 // probability of a parallel job with a power of two
	Low      float64 // log2 of the smallest parallel job; 0.8 gives two more weight
	Med      float64 // log2 of the size between the stages
	High     float64 // log2 of the largest job
	LowShare float64 // probability of the stage from Low to Med, the other is from Med to High
}

// RunTimes is the distribution of the run time: the logarithm of the seconds is
// hyper-gamma, from Short with a probability that falls with the size, else Long.
type RunTimes struct {
	Short, Long Gamma
	Base, Slope float64 // the probability of Short is Base + Slope·processors, within 0 to 1
}

// Arrivals is the distribution of the times between submissions. The logarithm of
// the seconds is Gap, on a clock that runs with the time of day: in each half
// hour in proportion to the mass that Day has there, in half hours from midnight.
type Arrivals struct {
	Gap Gamma
	Day Gamma
}

// Cut-offs of the published program: no run time beyond two days, no gap beyond
// five. A larger value is drawn again.
const (
	logRunTimeMax = 12 // e^12 s = 45.2 h
	logGapMax     = 13 // e^13 s = 5.1 d
)

// The day of the published arrival process begins at its eleventh half hour: the
// mass of Day is taken from there for 48 half hours, then wraps around.
const (
	halfHoursPerDay = 48
	halfHour        = 1800 // seconds
	dayBegins       = 11
)

// Lublin returns the model for all jobs of a machine, in the published parameters.
// Of the sizes, the paper gives Med as log2 of the machine less 2.5 (which may be
// 1.5 to 3.5).
func Lublin(processors int64) Model {
	return Model{Processors: processors, Kinds: []Kind{{
		sizes(processors, Sizes{Serial: 0.244, Power2: 0.576, Low: 0.8, LowShare: 0.86}, 0, 2.5),
		RunTimes{Short: Gamma{4.2, 0.94}, Long: Gamma{312, 0.03}, Base: 0.78, Slope: -0.0054},
		arrivals(10.2303, 0.4871, 1.0225, Gamma{8.1737, 3.9631}),
	}}}
}

// LublinKinds returns the model with batch and interactive jobs apart, batch
// first. Published for 128 processors, where the largest interactive job has 45:
// on other machines it keeps that share of the machine.
func LublinKinds(processors int64) Model {
	return Model{Processors: processors, Kinds: []Kind{{
		sizes(processors, Sizes{Serial: 0.2927, Power2: 0.6686, Low: 1.2, LowShare: 0.875}, 0, 2),
		RunTimes{Short: Gamma{6.57, 0.823}, Long: Gamma{639.1, 0.0156}, Base: 0.6986, Slope: -0.003},
		arrivals(6.0415, 0.8531, 1.0519, Gamma{6.1271, 5.2740}),
	}, {
		sizes(processors, Sizes{Serial: 0.1541, Power2: 0.625, Low: 1, LowShare: 0.705}, 1.5, 2.5),
		RunTimes{Short: Gamma{3.8351, 0.6605}, Long: Gamma{7.073, 0.6856}, Base: 0.9156, Slope: -0.0118},
		arrivals(6.5510, 0.6621, 0.9797, Gamma{8.9186, 3.6680}),
	}}}
}

// arrivals takes the gaps of the rush hours and the published ratio that turns
// their shape into that of the whole day.
func arrivals(rushShape, rushScale, rushToAll float64, day Gamma) Arrivals {
	return Arrivals{Gap: Gamma{rushShape * rushToAll, rushScale}, Day: day}
}

// sizes completes s for a machine: the largest job lies below machine (in powers
// of two) under the machine, the stages meet below top under the largest job, or
// where small machines leave room for it.
func sizes(processors int64, s Sizes, belowMachine, belowTop float64) Sizes {
	if processors < 2 {
		return Sizes{Serial: 1, Low: 0, Med: 0, High: 0, LowShare: s.LowShare}
	}
	s.High = max(log2(float64(processors))-belowMachine, 1)
	s.Low = min(s.Low, s.High)
	s.Med = s.High - belowTop
	if s.Med < s.Low {
		s.Med = s.High - 1.5 // the least that the authors allow
	}
	if s.Med < s.Low {
		s.Med = (s.Low + s.High) / 2
	}
	return s
}

// SetSerial makes p the probability of one processor, for every kind, and splits
// the rest evenly between powers of two and other sizes, as delegated
// matchmaking does (§5.3: "p=0.95. The LFM divides the remaining jobs between the
// parallel jobs classes, with equal probability").
func (m *Model) SetSerial(p float64) {
	for i := range m.Kinds {
		m.Kinds[i].Sizes.Serial = p
		m.Kinds[i].Sizes.Power2 = (1 - p) / 2
	}
}

// processorsModelMax bounds the machine of a model.
const processorsModelMax = processorsMax

// Check returns an error that names the first parameter out of range.
func (m *Model) Check() error {
	switch {
	case m.Processors < 1 || m.Processors > processorsModelMax:
		return fmt.Errorf("workload model: %d processors, want 1 to %d", m.Processors, processorsModelMax)
	case len(m.Kinds) < 1 || len(m.Kinds) > 8:
		return fmt.Errorf("workload model: %d kinds of jobs, want 1 to 8", len(m.Kinds))
	case m.StartHour < 0 || m.StartHour > 23:
		return fmt.Errorf("workload model: start hour %d, want 0 to 23", m.StartHour)
	}
	for i := range m.Kinds {
		if err := m.Kinds[i].check(m.Processors); err != nil {
			return fmt.Errorf("workload model: kind %d: %w", i+1, err)
		}
	}
	return m.Shape.check()
}

func (k *Kind) check(processors int64) error {
	s, r := &k.Sizes, &k.RunTimes
	for _, p := range [...]float64{s.Serial, s.Power2, s.Serial + s.Power2, s.LowShare} {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("sizes: serial %v, power of two %v, low share %v: want probabilities", s.Serial, s.Power2, s.LowShare)
		}
	}
	if !(0 <= s.Low && s.Low <= s.Med && s.Med <= s.High && s.High <= log2(float64(processors))+1e-9) {
		return fmt.Errorf("sizes: low %v, med %v, high %v: want them rising, from 0 to log2(%d)", s.Low, s.Med, s.High, processors)
	}
	if math.IsNaN(r.Base) || math.IsNaN(r.Slope) || math.IsInf(r.Base, 0) || math.IsInf(r.Slope, 0) {
		return fmt.Errorf("run times: base %v, slope %v: want numbers", r.Base, r.Slope)
	}
	for _, g := range []struct {
		Gamma
		name  string
		limit float64
	}{
		{r.Short, "short run times", logRunTimeMax}, {r.Long, "long run times", logRunTimeMax},
		{k.Arrivals.Gap, "gaps", logGapMax}, {k.Arrivals.Day, "day", math.Inf(1)},
	} {
		if err := g.check(g.name); err != nil {
			return err
		}
		// From 1 on, e to the power of such a number has no mean.
		if g.limit < math.Inf(1) && g.Scale >= 1 {
			return fmt.Errorf("%s: scale %v, want it below 1", g.name, g.Scale)
		}
		// What lies beyond the limit is drawn again, so enough must lie below it.
		if share := g.below(g.limit); share < 0.01 {
			return fmt.Errorf("%s: only %.2g of gamma(%v, %v) is below the limit of e^%v s", g.name, share, g.Shape, g.Scale, g.limit)
		}
	}
	return nil
}

// log2 returns the logarithm to the base 2.
func log2(x float64) float64 { return log(x) / ln2 }
