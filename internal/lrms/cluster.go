package lrms

import (
	"fmt"

	"gridnode/internal/grid"
)

// Bounds and defaults of Config.
const (
	ProcessorsMax   = 1 << 24         // of one site
	QueueMaxDefault = 1_000_000       // jobs that wait
	NominalDefault  = grid.Hour       // span of State.Widest and State.Wait
	HoldMax         = 24 * grid.Hour // of Config.Hold
)

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

	// Nominal is the span of the job that State.Widest and State.Wait speak of;
	// 0 means NominalDefault.
	Nominal grid.Time
}

// Request is what a task needs.
type Request struct {
	ID         grid.TaskID
	Processors int64     // 1 to Config.Processors
	Estimate   grid.Time // bound on its run time here, 1 to grid.SpanMax
}

// Cluster is one site's processors and queue. It is deterministic, reads no clock
// and is not safe for concurrent use. The instants it is given never decrease.
type Cluster struct {
	cfg      Config
	now      grid.Time
	passed   grid.Time
	busy     int64
	running  []runner
	promises []promise
	queue    []Request
	late     int64
	lateMax  grid.Time
}

type runner struct {
	Request
	start, end grid.Time
}

type promise struct {
	Request
	start, end, due    grid.Time
	committed, blocked bool
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
	case cfg.Discipline > FCFS:
		return nil, fmt.Errorf("lrms: discipline %d is unknown", cfg.Discipline)
	case cfg.QueueMax < 0:
		return nil, fmt.Errorf("lrms: queue of at most %d jobs, want 1 or more", cfg.QueueMax)
	case cfg.Hold < 0 || cfg.Hold > HoldMax:
		return nil, fmt.Errorf("lrms: hold of %v, want 0 to %v", cfg.Hold, HoldMax)
	case cfg.Nominal < 0 || cfg.Nominal > grid.SpanMax:
		return nil, fmt.Errorf("lrms: nominal span of %v, want more than 0", cfg.Nominal)
	}
	return &Cluster{cfg: cfg, now: -1 << 62, passed: -1 << 62}, nil
}

// Submit puts a job at the end of the queue. Errors: ErrInvalid, ErrTooWide,
// ErrKnown, ErrQueueFull; the cluster is then unchanged.
func (c *Cluster) Submit(now grid.Time, r Request) error {
	c.advance(now)
	if err := c.admit(r); err != nil {
		return err
	}
	c.queue = append(c.queue, r)
	return nil
}

// Reserve promises processors to r from the earliest start on that delays neither
// an earlier promise nor the queue's head, provided that start+r.Estimate <= by
// (grid.Never if it does not matter). The promise stands until Commit or Cancel.
// Errors: ErrInvalid, ErrTooWide, ErrKnown, ErrQueueFull, and TooLate, which says
// when it could have finished; the cluster is then unchanged.
func (c *Cluster) Reserve(now grid.Time, r Request, by grid.Time) (start grid.Time, err error) {
	c.advance(now)
	if err := c.admit(r); err != nil {
		return 0, err
	}
	head, drop := c.planHead()
	start = c.earliest(r.Processors, r.Estimate, c.now+c.cfg.Hold)
	drop(head)
	if start+r.Estimate > by {
		return 0, TooLate{Finish: start + r.Estimate}
	}
	c.insert(promise{Request: r, start: start, due: start, end: max(start, now+c.cfg.Hold) + r.Estimate})
	return start, nil
}

// Commit turns a reservation into a job: it starts as promised or earlier; if its
// start has passed, at the next Schedule. It returns ErrUnknown if there is no
// such reservation (any more); repeating a Commit is no error.
func (c *Cluster) Commit(now grid.Time, id grid.TaskID) error {
	c.advance(now)
	for i := range c.promises {
		if p := &c.promises[i]; p.ID == id {
			if !p.committed {
				p.committed = true
				p.due = max(p.start, now)
				p.end = p.due + p.Estimate
			}
			return nil
		}
	}
	for i := range c.running {
		if c.running[i].ID == id {
			return nil
		}
	}
	return ErrUnknown
}

// Cancel forgets a job that waits or a reservation, and reports whether there
// was one. It does not touch a running job: kill it and report Ended.
func (c *Cluster) Cancel(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	for i := range c.queue {
		if c.queue[i].ID == id {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			return true
		}
	}
	for i := range c.promises {
		if c.promises[i].ID == id {
			c.promises = append(c.promises[:i], c.promises[i+1:]...)
			return true
		}
	}
	return false
}

// Adopt counts a task as running since started, which may lie in the past: after
// a restart. Errors: ErrInvalid, ErrKnown, and ErrTooWide if the processors that
// do not run anything do not suffice.
func (c *Cluster) Adopt(now grid.Time, r Request, started grid.Time) error {
	c.advance(now)
	if err := c.admit(r); err != nil && err != ErrQueueFull {
		return err
	}
	if r.Processors > c.cfg.Processors-c.busy {
		return ErrTooWide
	}
	c.start(r, started)
	return nil
}

// Ended takes back the processors of a running task, and reports whether it was
// one. Schedule has to follow.
func (c *Cluster) Ended(now grid.Time, id grid.TaskID) bool {
	c.advance(now)
	for i := range c.running {
		if c.running[i].ID == id {
			c.busy -= c.running[i].Processors
			c.running = append(c.running[:i], c.running[i+1:]...)
			return true
		}
	}
	return false
}

// Schedule makes one scheduling pass and appends to started the requests that
// start now, in the order in which they start. They count as running from now on.
func (c *Cluster) Schedule(now grid.Time, started []Request) []Request {
	c.advance(now)
	c.passed = now
	started = c.startDue(started)
	for len(c.queue) > 0 && c.fits(c.queue[0]) {
		c.start(c.queue[0], now)
		started = append(started, c.queue[0])
		c.queue = c.queue[1:]
	}
	head, drop := c.planHead()
	defer drop(head)
	for i := 0; i < len(c.promises); i++ {
		p := c.promises[i]
		if !p.committed || p.start <= now || p.Processors > c.least(now, min(p.start, now+p.Estimate)) {
			continue
		}
		c.promises = append(c.promises[:i], c.promises[i+1:]...)
		c.start(p.Request, now)
		started = append(started, p.Request)
		i--
	}
	if c.cfg.Discipline == FCFS {
		return started
	}
	for i := 1; i < len(c.queue); i++ {
		if r := c.queue[i]; c.fits(r) {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			c.start(r, now)
			started = append(started, r)
			i--
		}
	}
	return started
}

// NextTimer returns when Schedule has something to do even if nothing is reported
// before: the earliest start of a committed reservation. It is grid.Never if
// there is none. It expects that Schedule followed the last input.
func (c *Cluster) NextTimer() grid.Time {
	for _, p := range c.promises {
		if p.committed && p.start > c.passed {
			return p.start
		}
	}
	return grid.Never
}

// EarliestStart returns when a job could start at the earliest if it were reserved
// now, and grid.Never if it is wider than the site.
func (c *Cluster) EarliestStart(now grid.Time, processors int64, span grid.Time) grid.Time {
	c.advance(now)
	if processors > c.cfg.Processors {
		return grid.Never
	}
	head, drop := c.planHead()
	defer drop(head)
	return c.earliest(max(processors, 1), min(max(span, 1), grid.SpanMax), now)
}

// CanFinishBy reports whether a job reserved now could finish by then.
func (c *Cluster) CanFinishBy(now grid.Time, processors int64, span, by grid.Time) bool {
	return c.EarliestStart(now, processors, span).Add(span) <= by
}

// Planned returns the promised start of a reservation, the start of a running
// task, or the start planned for the head of the queue. Queued jobs behind the
// head have none.
func (c *Cluster) Planned(id grid.TaskID) (start grid.Time, ok bool) {
	for _, p := range c.promises {
		if p.ID == id {
			return p.start, true
		}
	}
	for _, r := range c.running {
		if r.ID == id {
			return r.start, true
		}
	}
	if len(c.queue) > 0 && c.queue[0].ID == id {
		q := c.queue[0]
		return c.earliest(q.Processors, q.Estimate, c.now), true
	}
	return 0, false
}

func (c *Cluster) admit(r Request) error {
	if r.Processors < 1 || r.Estimate < 1 || r.Estimate > grid.SpanMax {
		return fmt.Errorf("%d processors for %d µs: %w", r.Processors, int64(r.Estimate), ErrInvalid)
	}
	if r.Processors > c.cfg.Processors {
		return fmt.Errorf("%d processors on a site of %d: %w", r.Processors, c.cfg.Processors, ErrTooWide)
	}
	for _, q := range c.queue {
		if q.ID == r.ID {
			return ErrKnown
		}
	}
	for _, q := range c.promises {
		if q.ID == r.ID {
			return ErrKnown
		}
	}
	for _, q := range c.running {
		if q.ID == r.ID {
			return ErrKnown
		}
	}
	if len(c.queue)+len(c.promises) >= c.cfg.QueueMax {
		return ErrQueueFull
	}
	return nil
}

func (c *Cluster) advance(now grid.Time) {
	if now < c.now {
		panic(fmt.Sprintf("lrms: time went back from %d to %d", c.now, now))
	}
	c.now = now
}

func (c *Cluster) insert(p promise) {
	i := len(c.promises)
	for i > 0 && c.promises[i-1].start > p.start {
		i--
	}
	c.promises = append(c.promises, promise{})
	copy(c.promises[i+1:], c.promises[i:])
	c.promises[i] = p
}

func (c *Cluster) start(r Request, at grid.Time) {
	c.running = append(c.running, runner{r, at, at + r.Estimate})
	c.busy += r.Processors
}

func (c *Cluster) startDue(started []Request) []Request {
	room := c.cfg.Processors - c.busy
	for _, p := range c.promises {
		if !p.committed && p.start <= c.now {
			room -= p.Processors
		}
	}
	for i := 0; i < len(c.promises); i++ {
		p := &c.promises[i]
		if !p.committed || p.start > c.now {
			continue
		}
		if p.Processors > room {
			p.blocked = true
			p.end = c.now + 1 + p.Estimate
			continue
		}
		if p.blocked && c.now > p.due {
			c.late++
			c.lateMax = max(c.lateMax, c.now-p.due)
		}
		room -= p.Processors
		r := p.Request
		c.promises = append(c.promises[:i], c.promises[i+1:]...)
		c.start(r, c.now)
		started = append(started, r)
		i--
	}
	return started
}

// at returns the processors available at t >= now.
func (c *Cluster) at(t grid.Time) int64 {
	v := c.cfg.Processors
	for _, r := range c.running {
		if t == c.now || r.end > t {
			v -= r.Processors
		}
	}
	for _, p := range c.promises {
		if p.start <= t && (t == c.now || p.end > t) {
			v -= p.Processors
		}
	}
	return v
}

func (c *Cluster) breaks(from, to grid.Time) []grid.Time {
	list := []grid.Time{from}
	add := func(t grid.Time) {
		if t > from && t < to {
			list = append(list, t)
		}
	}
	add(c.now + 1)
	for _, r := range c.running {
		add(r.end)
	}
	for _, p := range c.promises {
		add(p.start)
		add(p.end)
	}
	return list
}

func (c *Cluster) least(from, to grid.Time) int64 {
	v := c.cfg.Processors
	for _, t := range c.breaks(from, to) {
		v = min(v, c.at(t))
	}
	return v
}

func (c *Cluster) fits(r Request) bool {
	return r.Processors <= c.least(c.now, c.now+r.Estimate)
}

func (c *Cluster) earliest(processors int64, span, limit grid.Time) grid.Time {
	best := grid.Never
	for _, t := range c.breaks(c.now, grid.Never) {
		if t < best && c.least(t, max(t, limit)+span) >= processors {
			best = t
		}
	}
	return best
}

func (c *Cluster) planHead() (grid.TaskID, func(grid.TaskID)) {
	if len(c.queue) == 0 {
		return grid.TaskID{}, func(grid.TaskID) {}
	}
	r := c.queue[0]
	at := c.earliest(r.Processors, r.Estimate, c.now)
	c.insert(promise{Request: r, start: at, end: at + r.Estimate})
	return r.ID, func(id grid.TaskID) {
		for i := range c.promises {
			if c.promises[i].ID == id {
				c.promises = append(c.promises[:i], c.promises[i+1:]...)
				return
			}
		}
	}
}
