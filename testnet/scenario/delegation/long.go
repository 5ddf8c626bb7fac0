package delegation

import (
	"fmt"
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/testnet/draw"
	"gridnode/testnet/workload"
)

// LongRun is a workload like the long traces of the dual grid: so many jobs with so
// much processor-time in all, most of them in batches (§5.2), and clusters that are
// not equally busy (§2.2).
type LongRun struct {
	Days      int
	Jobs      int64     // expected
	Work      grid.Time // processor-time of all jobs, expected
	Batched   float64   // share of the jobs that are in batches
	BatchMost int64     // jobs of the largest batch
	Imbalance float64   // greatest ratio of the loads of two clusters
}

// LongRunJobs generates the jobs of a set, in order of submission. Every cluster has the
// model of Lublin and Feitelson with as many jobs, and run times scaled to as much
// work, as its share says: its processors, times 1 to Imbalance.
func LongRunJobs(set uint64, w LongRun) ([]workload.Job, error) {
	if w.Days < 1 || w.Jobs < 1 || w.Work < 1 || w.Imbalance < 1 {
		return nil, fmt.Errorf("long run: %d days, %d jobs, work %v, imbalance %v: want at least 1 of each", w.Days, w.Jobs, w.Work, w.Imbalance)
	}
	shares, sum := [clusters]float64{}, 0.0
	for c, processors := range clusterSizes {
		busy := rand.New(draw.PCG(set, delegationID(c), draw.ForSite)).Float64()
		shares[c] = float64(processors) * (1 + float64(busy*(w.Imbalance-1)))
		sum += shares[c]
	}
	span := grid.Time(w.Days) * grid.Day
	var sources []workload.Source
	for c, processors := range clusterSizes {
		m := workload.Lublin(processors)
		m.SetSerial(serialShare)
		m.Shape.JobsPerDay = float64(w.Jobs) * shares[c] / sum / float64(w.Days)
		m.Shape.Load = w.Work.Seconds() * shares[c] / sum / (float64(processors) * span.Seconds())
		rng := rand.New(draw.PCG(set, delegationID(c), draw.ForJobs))
		g, err := workload.NewGenerator(m, rng)
		if err != nil {
			return nil, fmt.Errorf("cluster %d: %w", c, err)
		}
		batches, err := workload.NewBatches(g, w.Batched, w.BatchMost, rand.New(draw.PCG(set, delegationID(c), draw.ForFaults)))
		if err != nil {
			return nil, fmt.Errorf("cluster %d: %w", c, err)
		}
		sources = append(sources, &workload.Window{Source: batches, Span: span})
	}
	return merged(sources)
}

// merged reads several sources to their ends.
func merged(sources []workload.Source) (jobs []workload.Job, err error) {
	merge := workload.NewMerge(sources...)
	for {
		var j workload.Job
		ok, err := merge.Next(&j)
		if err != nil || !ok {
			return jobs, err
		}
		jobs = append(jobs, j)
	}
}
