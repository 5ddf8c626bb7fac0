package workload

import (
	"errors"
	"fmt"
	"math"

	"gridnode/grid"
)

// Shape makes a model's workload fit a purpose. Gaps between submissions and run
// times are each multiplied by one factor, found from the exact means of the
// model, so that what is asked for holds in expectation over whole days. At most
// two of the three can be asked for.
type Shape struct {
	JobsPerDay  float64   // submissions a day; 0 leaves the gaps alone, or to Load
	MeanRunTime grid.Time // 0 leaves the run times alone, or to Load
	// Load is the offered load: processors × run time submitted per second, over
	// the machine's processors. It is met through the gaps, as in delegated
	// matchmaking (§5.3), or through the run times if JobsPerDay is given.
	Load float64
}

func (s *Shape) check() error {
	switch {
	case !(s.JobsPerDay >= 0 && s.JobsPerDay <= 1e9):
		return fmt.Errorf("workload shape: %v jobs a day, want 0 (as the model) to 1e9", s.JobsPerDay)
	case !(s.Load >= 0 && s.Load <= 1e6):
		return fmt.Errorf("workload shape: load %v, want 0 (as the model) to 1e6", s.Load)
	case s.MeanRunTime < 0 || s.MeanRunTime > 1000*grid.Day:
		return fmt.Errorf("workload shape: mean run time %v, want 0 (as the model) to 1000 days", s.MeanRunTime)
	case s.JobsPerDay > 0 && s.Load > 0 && s.MeanRunTime > 0:
		return errors.New("workload shape: jobs per day, load and mean run time are all given; two of them fix the third")
	}
	return nil
}

// Means are the expectations of a model, before rounding to whole seconds.
type Means struct {
	JobsPerDay float64
	RunTime    float64 // seconds
	Processors float64
	Work       float64 // processor-seconds of a job (run time and size are correlated)
	Load       float64
}

// Means returns the exact expectations of the model with its Shape. The model must
// be sound (Check). It takes time proportional to the number of processors.
func (m *Model) Means() Means {
	means := m.means()
	gap, runTime := m.scales()
	means.JobsPerDay /= gap
	means.RunTime *= runTime
	means.Work *= runTime
	means.Load *= runTime / gap
	return means
}

// scales returns the factors on gaps and run times that the shape asks for.
func (m *Model) scales() (gap, runTime float64) {
	gap, runTime = 1, 1
	s := &m.Shape
	if *s == (Shape{}) {
		return gap, runTime
	}
	means := m.means()
	if s.MeanRunTime > 0 {
		runTime = s.MeanRunTime.Seconds() / means.RunTime
	}
	if s.JobsPerDay > 0 {
		gap = means.JobsPerDay / s.JobsPerDay
	}
	if s.Load > 0 {
		if s.JobsPerDay > 0 {
			runTime = s.Load / (means.Load / gap)
		} else {
			gap = float64(means.Load*runTime) / s.Load
		}
	}
	return gap, runTime
}

// means returns the expectations of the model without its Shape.
func (m *Model) means() Means {
	var sum Means
	for i := range m.Kinds {
		k := &m.Kinds[i]
		rate := k.Arrivals.Gap.below(logGapMax) / k.Arrivals.Gap.meanExp(logGapMax) // jobs a second
		sum.JobsPerDay += rate
		mean := k.RunTimes.mean()
		k.Sizes.each(m.Processors, func(processors int64, p float64) {
			p = float64(p * rate)
			r := mean(processors)
			sum.RunTime += float64(p * r)
			sum.Processors += float64(p * float64(processors))
			sum.Work += float64(p * float64(r*float64(processors)))
		})
	}
	rate := sum.JobsPerDay
	sum.Load = sum.Work / float64(m.Processors)
	sum.RunTime /= rate
	sum.Processors /= rate
	sum.Work /= rate
	sum.JobsPerDay = float64(rate * grid.Day.Seconds())
	return sum
}

// mean returns the function from a size to the mean run time in seconds.
func (r *RunTimes) mean() func(processors int64) float64 {
	short, shortShare := r.Short.meanExp(logRunTimeMax), r.Short.below(logRunTimeMax)
	long, longShare := r.Long.meanExp(logRunTimeMax), r.Long.below(logRunTimeMax)
	return func(processors int64) float64 {
		p := r.shortProbability(processors)
		// A value beyond the limit is drawn again, from the mixture.
		total := float64(p*short) + float64((1-p)*long)
		return total / (float64(p*shortShare) + float64((1-p)*longShare))
	}
}

// each calls do for every size with its probability, if that is not zero.
func (s *Sizes) each(processors int64, do func(processors int64, p float64)) {
	power2 := int64(1)
	last := s.below(math.Inf(-1))
	lastPower := last
	for n := int64(1); n <= processors; n++ {
		p := 0.0
		if n == 1 {
			p = s.Serial
		}
		// Another size: the power rounds 2^power to n.
		other := 1.0
		if n < processors {
			other = s.below(log2(float64(n) + 0.5))
		}
		p += float64((1 - s.Serial - s.Power2) * (other - last))
		last = other
		if n == power2 {
			// A power of two: the power itself is rounded, to the largest at most.
			power2 *= 2
			power := 1.0
			if power2 <= processors {
				power = s.below(log2(float64(n)) + 0.5)
			}
			p += float64(s.Power2 * (power - lastPower))
			lastPower = power
		}
		if p > 0 {
			do(n, p)
		}
	}
}

// below returns the distribution function of the two-stage uniform distribution.
func (s *Sizes) below(power float64) float64 {
	stage := func(low, high float64) float64 {
		switch {
		case power < low:
			return 0
		case power >= high:
			return 1
		}
		return (power - low) / (high - low)
	}
	return float64(s.LowShare*stage(s.Low, s.Med)) + float64((1-s.LowShare)*stage(s.Med, s.High))
}
