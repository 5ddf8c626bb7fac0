package scale

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// earlierJob is added to the numbers of jobs from before the measurement.
const earlierJob int64 = 1 << 39

// earlierAt is when they are submitted: the sites know their siblings by then.
const earlierAt = grid.Minute

// phaseStep is how much later in the two days each round of table 1 begins than the
// one before, as a share of them in 2^-32: the golden section, whose multiples are
// spread evenly whatever their number.
const phaseStep = 2654435769

// phase returns at which instant of the two days the sites of a round begin.
func (cfg *Config) phase(round int) grid.Time {
	if cfg.InStep {
		return grid.Day / 2
	}
	share := uint64(uint32(uint64(round) * phaseStep))
	return grid.Time(share * uint64(SpanMax/grid.Second) >> 32 * uint64(grid.Second))
}

// jobs returns the jobs of all sites, those from before the measurement first.
func (cfg *Config) jobs(w *federation.Table1) workload.Source {
	round := len(workload.Table1())
	sources := make([]workload.Source, len(w.Days))
	for i, days := range w.Days {
		jobs := workload.Jobs(turned(days, cfg.phase(i/round), cfg.Span))
		sources[i] = &jobs
	}
	return workload.NewMerge(sources...)
}

// turned returns the jobs of a site in order of submission: what is left of those
// that would be running at the instant begin of the two days if they had started
// when they were submitted, and those that are submitted in the span from then on,
// as if the two days followed each other in a circle.
func turned(days []workload.Job, begin, span grid.Time) []workload.Job {
	var jobs []workload.Job
	for _, j := range days {
		at := (j.Submit - begin) % SpanMax
		if at < 0 {
			at += SpanMax
		}
		if left := at + j.RunTime - SpanMax; left > 0 && at > 0 {
			e := j
			e.Number += earlierJob
			e.Submit, e.RunTime, e.Estimate = earlierAt, left, max(j.Estimate-(j.RunTime-left), left)
			jobs = append(jobs, e)
		}
		if at < span {
			j.Submit = scaleWarmup + at
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b workload.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Number, b.Number))
	})
	return jobs
}
