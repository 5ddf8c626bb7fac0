package lrms

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/lrms/titan"
)

// Bounds and defaults of Config.
const (
	ProcessorsMax   = 1 << 24        // of one site
	QueueMaxDefault = 1_000_000      // jobs that wait
	NominalDefault  = grid.Hour      // span of State.Widest and State.Wait
	HoldMax         = 24 * grid.Hour // of Config.Hold
)

// instantMax bounds what is promised, so that no sum of instants and spans can
// overflow: about 146,000 years.
const instantMax = grid.Never / 2

// Config describes a cluster.
type Config struct {
	Processors int64      // of the site, 0 (it runs nothing) to ProcessorsMax
	Discipline Discipline // of the queue; EASY if zero

	// QueueMax bounds the jobs that wait, reservations included; 0 means QueueMaxDefault.
	QueueMax int

	// Hold is how long after Reserve a Commit may come without harm: a reservation
	// that may begin at once is planned to last until Hold + Estimate from now.
	// A later Commit is accepted, but may make other promises late. 0 to HoldMax.
	Hold grid.Time

	// Nominal is the span of the job that State.Widest and State.Wait speak of, at
	// most grid.SpanMax; 0 means NominalDefault.
	Nominal grid.Time

	// GPUs of the site, which some jobs need beside processors; nil: it has none. The cluster
	// gives them to its jobs and takes them back.
	GPUs *gpu.Pool

	// Weights of over-deadline, makespan and idle time, for TITAN; zero means
	// titan.DefaultWeights. Seed determines what it draws.
	Weights titan.Weights
	Seed    uint64
}

// Request is what a task needs.
type Request struct {
	ID         grid.TaskID
	Processors int64     // 1 to Config.Processors
	Estimate   grid.Time // bound on its run time here, 1 to grid.SpanMax
	GPUs       grid.GPUs // that it has as long as its processors
}

// Cluster is one site's processors and queue. It is deterministic, reads no clock
// and is not safe for concurrent use. The instants it is given never decrease.
// Without reservations every method takes O(log n) time for n jobs; see Schedule
// and Reserve for what reservations add.
type Cluster struct {
	cfg     Config
	now     grid.Time
	busy    int64 // processors of running jobs
	held    int64 // processors of promises whose start has come
	heldFor int64 // those of them that are held for reservations not committed yet
	runs    int   // running jobs

	borrowed int64 // processors of other sites that guests run on
	guests   int

	tasks   tasks
	queue   queue
	gpus    devices
	line    []int32 // jobs that wait until they are promised GPUs, in order of submission
	profile profile // running jobs, promises, and the head's plan if it is laid
	agenda  agenda
	overdue []int32 // committed promises whose start has come, in order of start
	plan    plan
	planner *planner // nil unless the discipline is TITAN
	favour  favour

	changes int64 // how often something made room, or may have
	seen    int64 // changes up to the last pass
	recent  int   // jobs at the end of the queue that no pass has looked at

	work      work // of the jobs that wait
	committed int  // committed promises
	late      int64
	lateMax   grid.Time
}

// New returns an idle cluster. The error says which field of cfg is out of range.
func New(cfg Config) (*Cluster, error) {
	if cfg.QueueMax == 0 {
		cfg.QueueMax = QueueMaxDefault
	}
	if cfg.Nominal == 0 {
		cfg.Nominal = NominalDefault
	}
	switch {
	case cfg.Processors < 0 || cfg.Processors > ProcessorsMax:
		return nil, fmt.Errorf("lrms: %d processors, want 0 to %d", cfg.Processors, ProcessorsMax)
	case cfg.Discipline > TITAN:
		return nil, fmt.Errorf("lrms: discipline %d is unknown", cfg.Discipline)
	case cfg.QueueMax < 0:
		return nil, fmt.Errorf("lrms: queue of at most %d jobs, want 1 or more", cfg.QueueMax)
	case cfg.Hold < 0 || cfg.Hold > HoldMax:
		return nil, fmt.Errorf("lrms: hold of %v, want 0 to %v", cfg.Hold, HoldMax)
	case cfg.Nominal < 0 || cfg.Nominal > grid.SpanMax:
		return nil, fmt.Errorf("lrms: nominal span of %v, want more than 0", cfg.Nominal)
	case cfg.Weights != (titan.Weights{}) && cfg.Weights.Validate() != nil:
		return nil, fmt.Errorf("lrms: %w", cfg.Weights.Validate())
	}
	c := &Cluster{
		cfg:     cfg,
		now:     -instantMax,
		tasks:   tasks{index: make(map[grid.TaskID]int32)},
		queue:   newQueue(cfg.Processors),
		gpus:    devices{cfg.GPUs},
		profile: profile{now: -instantMax, free: cfg.Processors, ahead: newTimeline()},
		agenda:  newAgenda(),
	}
	if cfg.Discipline == TITAN {
		if c.cfg.Weights == (titan.Weights{}) {
			c.cfg.Weights = titan.DefaultWeights
		}
		planner, err := newPlanner(&c.cfg)
		if err != nil {
			return nil, err
		}
		c.planner = planner
	}
	return c, nil
}

// Submit puts a job at the end of the queue. Errors: ErrInvalid, ErrTooWide,
// ErrKnown, ErrQueueFull; the cluster is then unchanged.
func (c *Cluster) Submit(now grid.Time, r Request) error { return c.SubmitBy(now, r, grid.Never) }

// SubmitBy is Submit for a job that should have ended by an instant, grid.Never if
// that does not matter. It is no promise: TITAN weighs it, EASY and FCFS do not look.
func (c *Cluster) SubmitBy(now grid.Time, r Request, by grid.Time) error {
	c.advance(now)
	if err := c.accept(r, true); err != nil {
		return err
	}
	if r.GPUs.Count > 0 {
		c.line = append(c.line, c.tasks.create(task{Request: r, state: lined}))
		c.work.add(r)
		return nil
	}
	if c.queue.full() {
		c.queue.compact(c.tasks.slab)
	}
	i := c.tasks.create(task{Request: r, state: queued})
	c.tasks.slab[i].link = c.queue.push(waiter{r.Estimate, int32(r.Processors), i})
	c.recent++
	c.work.add(r)
	if c.planner != nil {
		c.planner.note(i, wish{by: by, since: now})
	}
	return nil
}

// Ended takes back the processors of a running task, and reports whether it was
// one. Schedule has to follow. The processors of a guest leave with it.
func (c *Cluster) Ended(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if ok && c.tasks.slab[i].state == guest {
		c.endGuest(i)
		return true
	}
	if !ok || c.tasks.slab[i].state != running {
		return false
	}
	t := &c.tasks.slab[i]
	c.busy -= t.Processors
	c.runs--
	c.profile.vacate(t.start, t.end, t.Processors)
	c.gpus.release(&t.Request)
	c.tasks.drop(i)
	c.change()
	c.check()
	return true
}

// Cancel forgets a job that waits or a reservation, and reports whether there
// was one. It does not touch a running job: kill it and report Ended.
func (c *Cluster) Cancel(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	i, ok := c.tasks.index[id]
	if !ok || c.tasks.slab[i].state == running || c.tasks.slab[i].state == guest {
		return false
	}
	t := &c.tasks.slab[i]
	if t.state == parked {
		c.queue.forget(int(t.link))
	} else if t.state == queued {
		if int(t.link) == c.queue.head {
			c.change()
		}
		c.queue.remove(int(t.link))
		c.work.remove(t.Request)
	} else if t.state == lined {
		c.line = slices.DeleteFunc(c.line, func(other int32) bool { return other == i })
		c.work.remove(t.Request)
	} else {
		node := t.link
		c.gpus.release(&t.Request)
		c.withdraw(i)
		c.overdue = slices.DeleteFunc(c.overdue, func(other int32) bool { return other == node })
		c.change()
	}
	c.tasks.drop(i)
	c.check()
	return true
}

// Adopt counts a task as running since started, which may lie in the past: after
// a restart. Errors: ErrInvalid, ErrKnown, and ErrTooWide if the processors that
// run nothing do not suffice; the cluster is then unchanged. Its GPUs it must have by then
// (gpu.Pool.Adopt).
func (c *Cluster) Adopt(now grid.Time, r Request, started grid.Time) error {
	c.advance(now)
	if err := c.accept(r, false); err != nil {
		return err
	}
	if idle := c.cfg.Processors - c.busy; r.Processors > idle {
		return fmt.Errorf("adopt a task on %d processors, %d are idle: %w", r.Processors, idle, ErrTooWide)
	}
	c.change()
	c.run(c.tasks.create(task{Request: r}), min(started, now))
	c.gpus.extend(&r, min(started, now)+r.Estimate)
	c.check()
	return nil
}

// Planned returns the promised start of a reservation, the start of a running
// task, or the start planned for the head of the queue by the estimates. Queued
// jobs behind the head have none.
func (c *Cluster) Planned(id grid.TaskID) (start grid.Time, ok bool) {
	i, ok := c.tasks.index[id]
	if !ok {
		return 0, false
	}
	switch t := &c.tasks.slab[i]; {
	case t.state == running || t.state == guest:
		return t.start, true
	case t.state == parked || t.state == lined:
		return 0, false
	case t.state != queued:
		return c.agenda.promises[t.link].start, true
	case int(t.link) == c.queue.head:
		c.layPlan()
		return c.plan.start, true
	}
	return 0, false
}

// Idle returns how many processors neither run a job nor are held: State's Free
// without the rest.
func (c *Cluster) Idle(now grid.Time) int64 {
	c.advance(now)
	return max(c.cfg.Processors-c.busy-c.held, 0)
}

// accept returns why a task cannot be taken in, if so.
func (c *Cluster) accept(r Request, waits bool) error {
	switch {
	case r.Processors < 1 || r.Estimate < 1 || r.Estimate > grid.SpanMax:
		return fmt.Errorf("%d processors for %d µs: %w", r.Processors, int64(r.Estimate), ErrInvalid)
	case r.Processors > c.cfg.Processors:
		return fmt.Errorf("%d processors on a site of %d: %w", r.Processors, c.cfg.Processors, ErrTooWide)
	case waits && c.queue.size+c.queue.parked+c.agenda.size+len(c.line) >= c.cfg.QueueMax:
		return fmt.Errorf("%d jobs wait: %w", c.cfg.QueueMax, ErrQueueFull)
	}
	if waits && r.GPUs.Count > 0 {
		if err := c.FitsGPUs(r.GPUs); err != nil {
			return err
		}
	}
	if i, ok := c.tasks.index[r.ID]; ok {
		return fmt.Errorf("%s epoch %d is %s: %w", r.ID.Job, r.ID.Epoch, c.tasks.slab[i].state, ErrKnown)
	}
	return nil
}

// run makes a task a running one. Its processors are free, or free enough: only
// Adopt takes what is held.
func (c *Cluster) run(i int32, started grid.Time) {
	t := &c.tasks.slab[i]
	t.state, t.start, t.end = running, started, started+t.Estimate
	c.busy += t.Processors
	c.runs++
	c.profile.occupy(t.start, t.end, t.Processors)
}

// advance moves the cluster to now: promises fall due, estimates pass.
func (c *Cluster) advance(now grid.Time) {
	if now == c.now {
		return
	}
	if now < c.now {
		panic(fmt.Sprintf("lrms: time goes back from %d to %d", c.now, now))
	}
	c.now = now
	if c.plan.valid && c.plan.start <= now {
		c.change() // the head should have started: something overran its estimate
	}
	for c.agenda.first <= now {
		c.fallDue()
	}
	c.profile.advance(now)
}

// change says that there may be more room than the last pass saw.
func (c *Cluster) change() {
	c.changes++
	c.liftPlan()
}

// check panics unless every processor is free, held or running (P-1).
func (c *Cluster) check() {
	free := c.profile.free
	if c.plan.laid && c.plan.start <= c.now {
		free += c.plan.processors
	}
	if free+c.held+c.busy != c.cfg.Processors || c.held < 0 || c.busy < 0 || c.busy > c.cfg.Processors || c.heldFor > c.held {
		panic(fmt.Sprintf("lrms: free %d + held %d (%d) + running %d != %d processors", free, c.held, c.heldFor, c.busy, c.cfg.Processors))
	}
}
