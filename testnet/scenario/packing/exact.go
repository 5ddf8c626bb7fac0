package packing

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
)

// ExactJobsMax bounds the batches of Optimum: the search looks at every order of every
// subset of the jobs, about e·n! of them, for each cluster.
const ExactJobsMax = 9

// Optimum returns the least MCP that any way of sharing a batch out and any schedule
// of the shares can have. Every job has to fit somewhere.
//
// Among the schedules that are no worse than a given one there is always one that
// takes its jobs in the order of their starts and puts each on the processors that are
// free first, as nothing in CP gets better by waiting. So all orders are enough.
func Optimum(b *muscle.Batch) (float64, error) {
	n := len(b.Jobs)
	if n < 1 || n > ExactJobsMax {
		return 0, fmt.Errorf("optimum of %d jobs: want 1 to %d", n, ExactJobsMax)
	}
	if err := b.Validate(); err != nil {
		return 0, err
	}
	// sum[set]: the least Σ CP·p of the clusters so far for the jobs in set.
	sum := make([]float64, 1<<n)
	for set := range sum[1:] {
		sum[set+1] = math.Inf(1)
	}
	for c := range b.Clusters {
		least := bestOrders(b, c)
		next := make([]float64, 1<<n)
		for set := range next {
			next[set] = math.Inf(1)
			for own := set; ; own = (own - 1) & set {
				next[set] = min(next[set], sum[set&^own]+least[own]*float64(bits.OnesCount(uint(own))))
				if own == 0 {
					break
				}
			}
		}
		sum = next
	}
	if best := sum[1<<n-1]; !math.IsInf(best, 1) {
		return best / float64(n), nil
	}
	return 0, fmt.Errorf("optimum: a job fits no cluster")
}

// bestOrders returns the least CP of a cluster for each set of jobs, infinite if one of
// them does not fit.
func bestOrders(b *muscle.Batch, c int) []float64 {
	o := orders{b: b, c: c, least: make([]float64, 1<<len(b.Jobs))}
	for set := range o.least[1:] {
		o.least[set+1] = math.Inf(1)
	}
	free := make([]grid.Time, b.Clusters[c].Processors)
	copy(free, b.Clusters[c].Free)
	slices.Sort(free)
	for _, at := range free {
		o.early += at.Seconds()
	}
	o.extend(0, free, 0, 0, 0)
	return o.least
}

// orders is the search of bestOrders. Free processors beyond the makespan of a set are
// not idle, so the clusters of a batch have to be free from the beginning, or soon.
type orders struct {
	b     *muscle.Batch
	c     int
	early float64 // seconds before the processors are free, added up
	least []float64
}

// extend tries every job that is not in set as the next one.
func (o *orders) extend(set int, free []grid.Time, over, makespan grid.Time, area float64) {
	cluster := &o.b.Clusters[o.c]
	for i := range o.b.Jobs {
		j := &o.b.Jobs[i]
		if set&(1<<i) != 0 || j.Spans[o.c] == 0 || j.Processors > len(free) {
			continue
		}
		start := free[j.Processors-1]
		end := start + j.Spans[o.c]
		late := max(end-j.Deadline, 0)
		last, used := max(makespan, end), area+float64(j.Processors)*j.Spans[o.c].Seconds()
		idle := float64(len(free))*last.Seconds() - o.early - used
		w := cluster.Weights
		cp := (float64(w.OverDeadline)*(over+late).Seconds() + float64(w.Makespan)*last.Seconds() + float64(w.Idle)*idle) /
			float64(w.OverDeadline+w.Makespan+w.Idle)
		next := set | 1<<i
		o.least[next] = min(o.least[next], cp)
		// Of the processors that are free by the start it takes those that were free last.
		upTo := j.Processors
		for upTo < len(free) && free[upTo] == start {
			upTo++
		}
		after := make([]grid.Time, 0, len(free))
		after = append(after, free[:upTo-j.Processors]...)
		after = append(after, free[upTo:]...)
		at, _ := slices.BinarySearch(after, end)
		for range j.Processors {
			after = slices.Insert(after, at, end)
		}
		o.extend(next, after, over+late, last, used)
	}
}
