package workload

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"gridnode/grid"
)

// Generator is an endless Source of jobs from a Model. The model has no
// estimates, users or memory: estimates are exact, users and memory empty. Times
// are whole seconds, as in the published program.
//
// The jobs depend on the generator's random numbers only, not on the machine: see
// portable.go.
type Generator struct {
	sampler
	processors int64
	kinds      []kindState
	number     int64
}

// kindState is one kind of jobs on its way through time.
type kindState struct {
	Kind
	runTimeScale float64
	gapScale     float64
	power2Max    int                      // log2 of the largest power of two on the machine
	weights      [halfHoursPerDay]float64 // speed of the clock of arrivals, mean 1
	first        int                      // half hour of the day at which the workload begins
	slot         int64                    // half hour of the next submission, counted from the beginning
	into         float64                  // clock time since that half hour began, in half hours
	next         grid.Time                // the next submission
}

// NewGenerator returns the jobs of a model, drawn from rng. The error, if any, is
// that of Model.Check.
func NewGenerator(m Model, rng *rand.Rand) (*Generator, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	gap, runTime := m.scales()
	g := &Generator{sampler: sampler{rng: rng}, processors: m.Processors, kinds: make([]kindState, len(m.Kinds))}
	for i := range g.kinds {
		k := &g.kinds[i]
		k.Kind = m.Kinds[i]
		k.gapScale, k.runTimeScale = gap, runTime
		k.power2Max = bits.Len64(uint64(m.Processors)) - 1
		k.weights = m.Kinds[i].Arrivals.weights()
		k.first = m.StartHour * halfHoursPerDay / 24
		k.advance(&g.sampler)
	}
	return g, nil
}

// Next implements Source. It never fails and never ends before the end of time.
func (g *Generator) Next(job *Job) (bool, error) {
	k := &g.kinds[0]
	for i := 1; i < len(g.kinds); i++ {
		if g.kinds[i].next < k.next {
			k = &g.kinds[i]
		}
	}
	if k.next >= grid.SpanMax {
		return false, nil
	}
	g.number++
	processors := k.size(&g.sampler, g.processors)
	runTime := k.runTime(&g.sampler, processors)
	*job = Job{Number: g.number, Submit: k.next, RunTime: runTime, Estimate: runTime, Processors: processors}
	k.advance(&g.sampler)
	return true, nil
}

// size draws a number of processors.
func (k *kindState) size(s *sampler, processors int64) int64 {
	u := s.uniform()
	if u <= k.Sizes.Serial {
		return 1
	}
	low, high := k.Sizes.Low, k.Sizes.Med
	if s.uniform() > k.Sizes.LowShare {
		low, high = k.Sizes.Med, k.Sizes.High
	}
	power := low + float64(s.uniform()*(high-low))
	if u <= k.Sizes.Serial+k.Sizes.Power2 {
		// Rounding up may leave a machine whose size is no power of two; the
		// published program does not look at that.
		return 1 << min(int(power+0.5), k.power2Max)
	}
	return min(int64(exp(float64(power*ln2))+0.5), processors)
}

// runTime draws a run time for a job of that size.
func (k *kindState) runTime(s *sampler, processors int64) grid.Time {
	p := k.RunTimes.shortProbability(processors)
	for {
		g := k.RunTimes.Long
		if s.uniform() <= p {
			g = k.RunTimes.Short
		}
		if x := s.gamma(g); x <= logRunTimeMax {
			return max(wholeSeconds(float64(exp(x)*k.runTimeScale)), grid.Second)
		}
	}
}

// shortProbability returns the weight of the short run times for a size.
func (r *RunTimes) shortProbability(processors int64) float64 {
	return min(max(r.Base+float64(r.Slope*float64(processors)), 0), 1)
}

// advance draws the next submission: a gap on the clock of arrivals, which runs
// through the half hours of the day at their weights.
func (k *kindState) advance(s *sampler) {
	gap := s.gamma(k.Arrivals.Gap)
	for gap > logGapMax {
		gap = s.gamma(k.Arrivals.Gap)
	}
	k.into += float64(exp(gap)*k.gapScale) / halfHour
	if days := math.Floor(k.into/halfHoursPerDay) - 1; days > 0 {
		// A day is a day on that clock, too; the loop needs not count them.
		k.into -= float64(days * halfHoursPerDay)
		k.slot += int64(min(days, 1e9)) * halfHoursPerDay
	}
	weight := k.weight()
	for k.into >= weight {
		k.into -= weight
		k.slot++
		weight = k.weight()
	}
	slot := min(k.slot, int64(grid.SpanMax/(halfHour*grid.Second)))
	k.next = grid.Time(slot)*halfHour*grid.Second + wholeSeconds(float64(k.into/weight)*halfHour)
}

func (k *kindState) weight() float64 {
	return k.weights[(int64(k.first)+k.slot)%halfHoursPerDay]
}

// wholeSeconds drops the fraction of s.
func wholeSeconds(s float64) grid.Time { return grid.Time(s) * grid.Second }

// weights returns the speed of the clock of arrivals in each half hour of the day.
func (a *Arrivals) weights() (w [halfHoursPerDay]float64) {
	sum := 0.0
	for i := dayBegins; i < dayBegins+halfHoursPerDay; i++ {
		mass := a.Day.below(float64(i)+0.5) - a.Day.below(float64(i)-0.5)
		// The authors count half hours from 1. The floor keeps the clock running
		// through a night in which nothing at all is submitted.
		w[(i-1)%halfHoursPerDay] = max(mass, 1e-6)
	}
	for _, mass := range w {
		sum += mass
	}
	for i := range w {
		w[i] *= halfHoursPerDay / sum
	}
	return w
}
