package lrms

import (
	"math"
	"math/bits"

	"gridnode/grid"
)

// State is a snapshot of a cluster. Capacity = Free + Held + Busy.
type State struct {
	Capacity int64 // processors of the site
	Free     int64 // processors that neither run a job nor are held
	Held     int64 // idle processors set aside for promises whose start has come
	Busy     int64 // processors of running jobs

	// Widest is the widest job of Config.Nominal that Reserve would promise to
	// start now: it delays neither a promise nor the queue's head.
	Widest int64

	// Wait is how long a job as wide as the site and as long as Config.Nominal
	// would wait if it were reserved now, by the estimates. Queued jobs behind the
	// head do not count, as a reservation does not wait for them. It is grid.Never
	// for a site without processors.
	Wait grid.Time

	Running    int   // jobs
	Queued     int   // jobs that wait, committed reservations included
	QueuedWork int64 // their processors × estimates, in processor-microseconds, saturating
	Demand     int64 // their processors
	Parked     int   // jobs that keep their place and do not wait (Park); not in Queued
	Guests     int   // jobs that run on processors of other sites (Borrow); not in Running
	Borrowed   int64 // those processors; not in Capacity
	Reserved   int   // reservations that were not committed yet

	Overdue int       // committed reservations that wait although their start has passed
	Late    int64     // promises so far that were kept late, as a job ran past its estimate
	LateMax grid.Time // the worst of them
}

// Tasks yields what has processors of the site, or is in its queue or promised some, or runs
// on borrowed ones, and whether it runs, in no particular order.
func (c *Cluster) Tasks(yield func(r Request, runs bool) bool) {
	for _, i := range c.tasks.index {
		t := &c.tasks.slab[i]
		if !yield(t.Request, t.state == running || t.state == guest) {
			return
		}
	}
}

// Knows reports whether there is a task that Tasks yields.
func Knows(c *Cluster, id grid.TaskID) bool {
	_, there := c.tasks.index[id]
	return there
}

// State returns a snapshot at now.
func (c *Cluster) State(now grid.Time) State {
	c.advance(now)
	c.layPlan()
	s := State{
		Capacity: c.cfg.Processors, Busy: c.busy,
		Widest: max(c.profile.least(now+c.cfg.Hold+c.cfg.Nominal), 0),
		Wait:   grid.Never,

		Running:    c.runs,
		Queued:     c.queue.size + len(c.line) + c.committed,
		QueuedWork: c.work.total(),
		Demand:     c.work.processors,
		Parked:     c.queue.parked,
		Guests:     c.guests,
		Borrowed:   c.borrowed,
		Reserved:   c.agenda.size - c.committed,

		Late: c.late, LateMax: c.lateMax,
	}
	s.Free = max(c.cfg.Processors-c.busy-c.held, 0)
	s.Held = s.Capacity - s.Busy - s.Free
	if s.Capacity > 0 {
		start, _ := c.profile.earliest(s.Capacity, c.cfg.Nominal, now+c.cfg.Hold)
		s.Wait = start - now
	}
	for _, node := range c.overdue {
		if c.agenda.promises[node].due < now {
			s.Overdue++
		}
	}
	return s
}

// Steady returns an instant until which State stays as it is if nothing is reported,
// but for Wait, which gets shorter as time passes. It may be the present one.
func (c *Cluster) Steady() grid.Time {
	if c.agenda.size > 0 || c.plan.laid || c.profile.overrun != 0 {
		return c.now // promises and estimates come into sight, or pass
	}
	return c.profile.ahead.first
}

// work is a sum of processors × time: 24 bits by 53 by the length of the queue
// need more than 64.
type work struct {
	hi, lo     uint64
	processors int64 // their sum
}

func (w *work) add(r Request) {
	hi, lo := bits.Mul64(uint64(r.Processors), uint64(r.Estimate))
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
	w.processors += r.Processors
}

func (w *work) remove(r Request) {
	hi, lo := bits.Mul64(uint64(r.Processors), uint64(r.Estimate))
	var borrow uint64
	w.lo, borrow = bits.Sub64(w.lo, lo, 0)
	w.hi, _ = bits.Sub64(w.hi, hi, borrow)
	w.processors -= r.Processors
}

// total returns the sum, at most math.MaxInt64.
func (w *work) total() int64 {
	if w.hi > 0 || w.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(w.lo)
}
