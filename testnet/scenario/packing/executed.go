package packing

import (
	"cmp"
	"slices"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/testnet/measure"
)

// executed keeps what became of the jobs that a head gave to its members.
type executed struct {
	weights  []titan.Weights
	clusters []packingCluster
	rounds   []round
	given    map[grid.JobID]int32 // round of each job that has not ended
	jobs     []executedJob
}

// round is one packing: the jobs that were given to members at one instant.
type round struct{ at grid.Time }

// executedJob is a job that has ended.
type executedJob struct {
	round                        int32
	cluster                      int32
	processors                   int64
	submit, start, end, deadline grid.Time
}

func newExecuted(weights []titan.Weights, clusters []packingCluster) *executed {
	return &executed{weights: weights, clusters: clusters, given: map[grid.JobID]int32{}}
}

// placed notes that a member has accepted a job. Messages take no time here, so all jobs
// of one packing are accepted at its instant.
func (x *executed) placed(now grid.Time, id grid.JobID) {
	if n := len(x.rounds); n == 0 || x.rounds[n-1].at != now {
		x.rounds = append(x.rounds, round{at: now})
	}
	x.given[id] = int32(len(x.rounds) - 1)
}

// finished notes what became of a job.
func (x *executed) finished(cluster int, e *grid.Event) {
	x.jobs = append(x.jobs, executedJob{
		round: x.given[e.Job.ID], cluster: int32(cluster), processors: e.Job.Processors,
		submit: e.Job.Submit, start: e.Result.Start, end: e.Result.End, deadline: e.Job.Deadline,
	})
	delete(x.given, e.Job.ID)
}

func (x *executed) done() int { return len(x.jobs) }

// wait is the mean time from submission to start, in seconds.
func (x *executed) wait() float64 {
	sum := 0.0
	for i := range x.jobs {
		sum += (x.jobs[i].start - x.jobs[i].submit).Seconds()
	}
	return sum / float64(max(len(x.jobs), 1))
}

// waiting is the mean number of jobs in the queue in the multicluster, those of the head
// and of its members together, over the time in which jobs come.
func (x *executed) waiting() float64 {
	first, last := grid.Never, grid.Time(0)
	for i := range x.jobs {
		first, last = min(first, x.jobs[i].submit), max(last, x.jobs[i].submit)
	}
	if last <= first {
		return 0
	}
	sum := 0.0
	for i := range x.jobs {
		j := &x.jobs[i]
		sum += (min(j.start, last) - j.submit).Seconds()
	}
	return sum / (last - first).Seconds()
}

// used sets the utilization of a result: processor time of jobs over that of the
// processors, from the first submission to the last end.
func (x *executed) used(r *measure.Result) {
	first, last := grid.Never, grid.Time(0)
	for i := range x.jobs {
		first, last = min(first, x.jobs[i].submit), max(last, x.jobs[i].end)
	}
	ratio := func(area float64, processors int64) measure.Ratio {
		return measure.Ratio(10_000*area/(float64(processors)*max(last-first, 1).Seconds()) + 0.5)
	}
	var processors int64
	for i := range r.Sites {
		s := &r.Sites[i]
		s.Utilization = ratio(s.SquashedArea.Float(), s.Processors)
		processors += s.Processors
	}
	r.Total.Utilization = ratio(r.Total.SquashedArea.Float(), processors)
}

// sums works out the performance of each packing: of the jobs that a cluster was given in
// it, how far they exceeded their deadlines; from the packing to the end of the last of
// them; and for how long processors had nothing to do in that time, with whatever the
// cluster had besides.
func (x *executed) sums() *sums {
	s := newSums(len(x.clusters))
	slices.SortFunc(x.jobs, func(a, b executedJob) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.cluster, b.cluster))
	})
	busy := make([]busy, len(x.clusters))
	for i := range x.jobs {
		j := &x.jobs[i]
		busy[j.cluster].add(j.start, j.end, j.processors)
	}
	for c := range busy {
		busy[c].sort()
	}
	cp, counts := make([]float64, len(x.clusters)), make([]int, len(x.clusters))
	for from := 0; from < len(x.jobs); {
		clear(cp)
		clear(counts)
		at, longest, first := x.jobs[from].round, grid.Time(0), from
		for from < len(x.jobs) && x.jobs[from].round == at {
			c := x.jobs[from].cluster
			to := from
			for to < len(x.jobs) && x.jobs[to].round == at && x.jobs[to].cluster == c {
				to++
			}
			f := x.performance(x.jobs[from:to], &busy[c])
			cp[c], counts[c] = f.CP(x.weights[c]), to-from
			s.share(int(c), to-from, f, cp[c])
			for _, j := range x.jobs[from:to] {
				s.clusters[c].area += (j.end - j.start) * grid.Time(j.processors)
			}
			longest = max(longest, f.Makespan)
			from = to
		}
		s.batch(muscle.MCP(cp, counts), muscle.PB(cp, counts), longest, from-first)
	}
	return s
}

// performance is that of the jobs of one packing at one cluster.
func (x *executed) performance(jobs []executedJob, busy *busy) (f titan.Performance) {
	begun, end := x.rounds[jobs[0].round].at, grid.Time(0)
	for _, j := range jobs {
		end = max(end, j.end)
		if j.end > j.deadline {
			f.OverDeadline += j.end - j.deadline
			f.Missed++
		}
	}
	f.Makespan = end - begun
	f.Idle = f.Makespan*grid.Time(x.clusters[jobs[0].cluster].processors) - (busy.until(end) - busy.until(begun))
	return f
}

// busy tells how much processor time a cluster has spent.
type busy struct{ starts, ends steps }

func (b *busy) add(start, end grid.Time, processors int64) {
	b.starts.list = append(b.starts.list, step{at: start, processors: processors})
	b.ends.list = append(b.ends.list, step{at: end, processors: processors})
}

func (b *busy) sort() {
	b.starts.sort()
	b.ends.sort()
}

// until returns the processor time from the beginning to an instant.
func (b *busy) until(at grid.Time) grid.Time { return b.starts.area(at) - b.ends.area(at) }

// steps are instants from which on more processors count, each with the sums of those
// before it and itself.
type steps struct{ list []step }

type step struct {
	at         grid.Time
	processors int64
	moment     grid.Time // Σ at × processors
}

func (s *steps) sort() {
	slices.SortFunc(s.list, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for i := range s.list {
		e := &s.list[i]
		e.moment = e.at * grid.Time(e.processors)
		if i > 0 {
			e.processors += s.list[i-1].processors
			e.moment += s.list[i-1].moment
		}
	}
}

// area is the processor time from all steps to an instant.
func (s *steps) area(at grid.Time) grid.Time {
	i, _ := slices.BinarySearchFunc(s.list, at, func(e step, at grid.Time) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	e := &s.list[i-1]
	return at*grid.Time(e.processors) - e.moment
}
