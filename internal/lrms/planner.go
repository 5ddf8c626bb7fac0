package lrms

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// Bounds of the discipline TITAN, so that one pass takes milliseconds whatever the
// site and its queue. Measured with BenchmarkTitan.
const (
	titanJobs        = 64 // first jobs of the queue that are put in order
	titanUnits       = 64 // a wider site is planned in units of several processors
	titanSet         = 30
	titanStable      = 8
	titanGenerations = 30
	titanLook        = 4096 // ends of jobs and promises that are looked at ahead
)

// titanPatience is how long a job may be overtaken for the sake of others. After that
// it goes before all that came later, so that jobs without a deadline come to run.
const titanPatience = 12 * grid.Hour

// planner puts the first jobs of a queue in order (TITAN). What it finds is an order,
// not a timetable: by it the head gets its place, and the others start when they fit
// and do not delay the head, so that jobs that end early leave no processor idle.
type planner struct {
	titan   *titan.Titan
	problem titan.Problem
	fresh   bool   // jobs have come since the last plan
	wishes  []wish // by task

	places  []int    // of the jobs in the queue
	entries []waiter // of the jobs, in their present order
	ranks   []int32  // jobs in the order planned
	starts  []grid.Time
}

// wish is what a queued task is planned by besides its request.
type wish struct {
	by    grid.Time // soft deadline, grid.Never if it has none
	since grid.Time // it waits since then
}

func newPlanner(cfg *Config) (*planner, error) {
	t, err := titan.New(titan.Config{
		Set: titanSet, Stable: titanStable, Generations: titanGenerations,
		Settle: 100, // processors are alike here: only the order is searched
	}, rand.New(rand.NewPCG(cfg.Seed, titanJobs)))
	if err != nil {
		return nil, fmt.Errorf("lrms: %w", err)
	}
	p := &planner{titan: t}
	p.problem.Weights = cfg.Weights
	return p, nil
}

// note keeps the wish of a task that has come to the queue.
func (p *planner) note(task int32, w wish) {
	for int(task) >= len(p.wishes) {
		p.wishes = append(p.wishes, wish{})
	}
	p.wishes[task] = w
	p.fresh = true
}

// arrange puts the first jobs of the queue in TITAN's order, if jobs have come since
// the last time and there is room to start any.
func (c *Cluster) arrange() {
	p := c.planner
	if !p.fresh || c.profile.free <= 0 {
		return
	}
	p.fresh = false
	if c.queue.size < 2 {
		return
	}
	c.liftPlan()
	p.places, p.entries = p.places[:0], p.entries[:0]
	for at := c.queue.head; at < len(c.queue.entries) && len(p.places) < titanJobs; at++ {
		if e := c.queue.entries[at]; e.processors > 0 {
			p.places, p.entries = append(p.places, at), append(p.entries, e)
		}
	}
	p.describe(c)
	p.plan()
	p.rank(c.now)
	for i, at := range p.places {
		e := p.entries[p.ranks[i]]
		if c.queue.entries[at].task != e.task {
			c.queue.replace(at, e)
			c.tasks.slab[e.task].link = int32(at)
			c.changes++ // another head, other jobs behind it
		}
	}
}

// describe makes the problem of the jobs in p.entries. Processors are counted in
// units of as many as make at most titanUnits, jobs in as many units as they need.
// Room that is promised to others later on is not seen: it is kept all the same.
func (p *planner) describe(c *Cluster) {
	unit := (c.cfg.Processors + titanUnits - 1) / titanUnits
	q := &p.problem
	q.Processors = int((c.cfg.Processors + unit - 1) / unit)
	q.Free = q.Free[:0]
	free := func(at grid.Time, available int64) bool {
		// The last unit may have fewer processors than the others.
		for len(q.Free) < q.Processors && available >= min(int64(len(q.Free)+1)*unit, c.cfg.Processors) {
			q.Free = append(q.Free, min(at-c.now, grid.SpanMax))
		}
		return len(q.Free) < q.Processors
	}
	last := c.profile.each(titanLook, free)
	for len(q.Free) < q.Processors {
		q.Free = append(q.Free, min(last-c.now, grid.SpanMax))
	}
	q.Jobs = q.Jobs[:0]
	for _, e := range p.entries {
		job := titan.Job{Processors: int((int64(e.processors) + unit - 1) / unit), Span: e.estimate, Deadline: grid.Never}
		if by := p.wishes[e.task].by; by != grid.Never {
			job.Deadline = max(by-c.now, -grid.SpanMax)
		}
		q.Jobs = append(q.Jobs, job)
	}
	q.Coarsen()
}

// plan searches from the present order, and from that of the deadlines.
func (p *planner) plan() {
	q := &p.problem
	present, urgent := titan.NewSchedule(q), titan.NewSchedule(q)
	for i := range q.Jobs {
		present.Order = append(present.Order, int32(i))
	}
	urgent.Order = append(urgent.Order, present.Order...)
	slices.SortStableFunc(urgent.Order, func(a, b int32) int { return cmp.Compare(q.Jobs[a].Deadline, q.Jobs[b].Deadline) })
	q.Settle(&present)
	q.Settle(&urgent)
	if err := p.titan.Set(q, present, urgent); err != nil {
		panic(fmt.Sprintf("lrms: the queue is no problem for TITAN: %v", err)) // what is in it was checked
	}
	p.titan.Run()
}

// rank orders the jobs by when they start in the best schedule, with those before
// them that have waited too long, the longest first.
func (p *planner) rank(now grid.Time) {
	best := p.titan.Best()
	p.starts = best.Starts(&p.problem, p.starts[:0])
	p.ranks = append(p.ranks[:0], best.Order...)
	waited := func(job int32) grid.Time {
		if since := p.wishes[p.entries[job].task].since; now-since >= titanPatience {
			return since
		}
		return grid.Never
	}
	slices.SortStableFunc(p.ranks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(waited(a), waited(b)), cmp.Compare(p.starts[a], p.starts[b]))
	})
}
