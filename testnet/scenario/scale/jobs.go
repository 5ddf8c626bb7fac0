package scale

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/draw"
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

// roundSites is how many sites table 1 has.
var roundSites = len(workload.Table1())

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
	lists := make([]workload.Jobs, len(w.Days))
	for i, days := range w.Days {
		for _, j := range turned(days, cfg.phase(i/roundSites), cfg.Span) {
			at := cfg.comesTo(i, &j)
			lists[at] = append(lists[at], j)
		}
	}
	sources := make([]workload.Source, len(lists))
	for i := range lists {
		if cfg.Skew {
			sortJobs(lists[i])
		}
		sources[i] = &lists[i]
	}
	return workload.NewMerge(sources...)
}

// skewRounds: with Config.Skew one of so many rounds of table 1 gets eight of nine jobs of the
// others, so that a tenth of the sites have nine tenths of all.
const skewRounds = 10

// movedJob, times how many rounds of table 1 a job has come from, is added to its number.
const movedJob int64 = 1 << 35

// comesTo returns which site a job of site i is submitted at, and gives it a number there.
func (cfg *Config) comesTo(i int, job *workload.Job) int {
	away := i / roundSites % skewRounds
	if !cfg.Skew || away == 0 || job.Number >= earlierJob {
		return i
	}
	h := draw.Mix(draw.Mix(cfg.Seed, uint64(draw.ForJobs)), uint64(i)<<32^uint64(job.Number))
	if h%(skewRounds-1) == 0 {
		return i
	}
	job.Number += int64(away) * movedJob
	return i - away*roundSites
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
	sortJobs(jobs)
	return jobs
}

// sortJobs puts the jobs of a site in order of submission.
func sortJobs(jobs []workload.Job) {
	slices.SortStableFunc(jobs, func(a, b workload.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Number, b.Number))
	})
}
