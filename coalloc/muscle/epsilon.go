package muscle

import "gridnode/grid"

// workload is what a cluster was given of a batch (section 4.3).
type workload struct {
	jobs    int       // p_i
	etSum   grid.Time // run times
	sizeSum int       // processors
	slkSum  grid.Time // slacks
}

func (w *workload) add(b *Batch, job, cluster int) {
	j := &b.Jobs[job]
	w.jobs++
	w.etSum += j.Spans[cluster]
	w.sizeSum += j.Processors
	w.slkSum += b.slack(job, cluster)
}

// epsilon returns ε = p · etSum · sizeSum / (slkSum · m) (equation 3), 0 for a cluster
// without jobs. Where no job has slack left the divisor is one microsecond, so that
// such a cluster comes last and ε stays a number. There are only products and one
// quotient, in a fixed order, so every machine gets the same.
func (w *workload) epsilon(rule Rule, processors int) float64 {
	left := w.slkSum
	if rule == Urgent {
		left += w.etSum
	}
	above := float64(w.jobs) * float64(w.etSum) * float64(w.sizeSum)
	below := float64(max(left, 1)) * float64(processors)
	return above / below
}
