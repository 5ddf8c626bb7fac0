package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
)

// Batches is a source whose jobs come as those of another, but for a share of them
// that come in batches: "a set of jobs ordered by the time when they arrive in the
// system, where each job was submitted at most Δ seconds after the first job" (Iosup
// et al., Inter-operating grids through Delegated MatchMaking, 2007, §5.2). A batch
// takes the next jobs of the source as they are, so numbers, sizes, run times and
// load over a long time stay those of the source. It is the same on every machine.
type Batches struct {
	source Source
	rng    *rand.Rand
	chance float64 // that a submission is a batch
	max    float64 // jobs of the largest
	batch  []Job   // of the batch at hand, backwards
	last   grid.Time
}

// BatchSpan is Δ: "Δ = 120 s is considered the most significant".
const BatchSpan = 120 * grid.Second

// batchMin is the number of jobs from which on a submission is called a batch.
const batchMin = 2

// NewBatches returns a source of which a share of the jobs, at least 0 and less than 1,
// comes in batches of 2 to most jobs; the logarithm of their number is evenly
// distributed. most must be 3 to 1 000 000.
func NewBatches(source Source, share float64, most int64, rng *rand.Rand) (*Batches, error) {
	switch {
	case !(share >= 0 && share < 1):
		return nil, fmt.Errorf("batches: a share of %v of the jobs, want 0 to less than 1", share)
	case most <= batchMin || most > 1_000_000:
		return nil, fmt.Errorf("batches: of at most %d jobs, want 3 to 1000000", most)
	}
	b := &Batches{source: source, rng: rng, max: float64(most)}
	mean := float64((b.max-batchMin)/log(b.max/batchMin)) - 0.5 // numbers are rounded down
	b.chance = share / (share + float64(mean*(1-share)))
	return b, nil
}

// Next implements Source.
func (b *Batches) Next(job *Job) (bool, error) {
	if len(b.batch) == 0 {
		if err := b.gather(); err != nil || len(b.batch) == 0 {
			return false, err
		}
	}
	last := len(b.batch) - 1
	*job, b.batch = b.batch[last], b.batch[:last]
	job.Submit = max(job.Submit, b.last) // the batch before may reach into this one
	b.last = job.Submit
	return true, nil
}

// gather reads the next submission, which is a single job or a batch.
func (b *Batches) gather() error {
	s := sampler{rng: b.rng}
	count := 1
	if s.uniform() < b.chance {
		count = int(batchMin * exp(float64(s.uniform()*log(b.max/batchMin))))
	}
	var job Job
	for range count {
		ok, err := b.source.Next(&job)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		b.batch = append(b.batch, job)
	}
	if len(b.batch) == 0 {
		return nil
	}
	first := b.batch[0].Submit
	for i := range b.batch[1:] {
		b.batch[i+1].Submit = first + wholeSeconds(float64(s.uniform()*BatchSpan.Seconds()))
	}
	slices.SortStableFunc(b.batch, func(x, y Job) int { return int(y.Submit - x.Submit) })
	return nil
}
