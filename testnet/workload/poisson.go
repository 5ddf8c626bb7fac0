package workload

import (
	"math/rand/v2"

	"gridnode/grid"
)

// Poisson is a source of jobs that arrive independently of each other (a Poisson
// process), with sizes drawn evenly from a list. It is the same on every machine.
type Poisson struct {
	Mean    grid.Time // between two arrivals, more than 0
	Sizes   []int64   // processors
	RunTime grid.Time // of every job, which is its estimate, too
	Until   grid.Time // no job arrives at or after it
	Longest grid.Time // if not 0, run times are drawn, exponentially with RunTime as their mean, and at most this
	RNG     *rand.Rand

	now    grid.Time
	number int64
}

// Next implements Source.
func (p *Poisson) Next(job *Job) (bool, error) {
	s := sampler{rng: p.RNG}
	p.now += grid.Time(-log(s.uniform()) * float64(p.Mean))
	if p.now >= p.Until {
		return false, nil
	}
	p.number++
	*job = Job{
		Number: p.number, Submit: p.now, RunTime: p.RunTime, Estimate: p.RunTime,
		Processors: p.Sizes[p.RNG.IntN(len(p.Sizes))],
	}
	if p.Longest > 0 {
		drawn := grid.Time(min(-log(s.uniform())*float64(p.RunTime), float64(p.Longest)))
		job.RunTime = max(drawn, grid.Second)
		job.Estimate = job.RunTime
	}
	return true, nil
}
