package muscle

import "math/rand/v2"

// spread shares the jobs of a batch out one after the other, as they came; pick
// returns the cluster of a job, of those that it fits.
func spread(b *Batch, pick func(job int, fits []int) int) (*Packing, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	packing := &Packing{Shares: make([]Share, len(b.Clusters))}
	fits := make([]int, 0, len(b.Clusters))
	for i := range b.Jobs {
		fits = fits[:0]
		for c := range b.Clusters {
			if b.fits(i, c) {
				fits = append(fits, c)
			}
		}
		if len(fits) == 0 {
			packing.Unplaced = append(packing.Unplaced, int32(i))
			continue
		}
		share := &packing.Shares[pick(i, fits)]
		share.Jobs = append(share.Jobs, int32(i))
	}
	return packing, nil
}

// DLL shares a batch out by dynamic least load: a job goes to the cluster, of those
// that are wide enough for it, whose load Σ e·s/m is least (equation 6), the first of
// equals. The paper says "greater than the job's size"; a job as wide as the cluster
// fits as well. The error is that of Batch.Validate.
func DLL(b *Batch) (*Packing, error) {
	work := make([]wide, len(b.Clusters)) // Σ e·s
	for c := range b.Clusters {
		work[c].add(product(uint64(max(b.Clusters[c].Queued, 0))))
		for _, free := range b.Clusters[c].Free { // what is left of jobs that it has already
			work[c].add(product(uint64(max(free, 0))))
		}
	}
	return spread(b, func(job int, fits []int) int {
		load := func(c int) ratio { return ratio{work[c], product(uint64(b.Clusters[c].Processors))} }
		best := fits[0]
		least := load(best)
		for _, c := range fits[1:] {
			if l := load(c); l.compare(&least) < 0 {
				best, least = c, l
			}
		}
		j := &b.Jobs[job]
		work[best].add(product(uint64(j.Spans[best]), uint64(j.Processors)))
		return best
	})
}

// WRAND shares a batch out at random: a job goes to a cluster, of those that are wide
// enough for it, with a chance proportional to processors × speed. A cluster's speed
// is told by the job's run times: its inverse. The error is that of Batch.Validate.
func WRAND(b *Batch, rng *rand.Rand) (*Packing, error) {
	chance := make([]float64, len(b.Clusters))
	return spread(b, func(job int, fits []int) int {
		sum := 0.0
		for _, c := range fits {
			sum += float64(b.Clusters[c].Processors) / float64(b.Jobs[job].Spans[c])
			chance[c] = sum
		}
		at := rng.Float64() * sum
		for _, c := range fits {
			if at < chance[c] {
				return c
			}
		}
		return fits[len(fits)-1]
	})
}
