package lrms

import "gridnode/internal/grid"

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
	// head do not count, as a reservation does not wait for them.
	Wait grid.Time

	Running    int   // jobs
	Queued     int   // jobs that wait, committed reservations included
	QueuedWork int64 // their processors × estimates, in processor-microseconds, saturating
	Reserved   int   // reservations that were not committed yet

	Overdue int       // committed reservations that wait although their start has passed
	Late    int64     // promises so far that were kept late, as a job ran past its estimate
	LateMax grid.Time // the worst of them
}

// State returns a snapshot at now.
func (c *Cluster) State(now grid.Time) State {
	c.advance(now)
	s := State{
		Capacity: c.cfg.Processors, Busy: c.busy, Running: len(c.running), Queued: len(c.queue),
		Late: c.late, LateMax: c.lateMax,
	}
	s.Free = max(c.at(now), 0)
	s.Held = s.Capacity - s.Busy - s.Free
	for _, q := range c.queue {
		s.QueuedWork += q.Processors * int64(q.Estimate)
	}
	for _, p := range c.promises {
		if !p.committed {
			s.Reserved++
			continue
		}
		s.Queued++
		s.QueuedWork += p.Processors * int64(p.Estimate)
		if p.start < now && p.blocked {
			s.Overdue++
		}
	}
	head, drop := c.planHead()
	defer drop(head)
	s.Widest = max(c.least(now, now+c.cfg.Nominal), 0)
	if s.Capacity > 0 {
		s.Wait = c.earliest(s.Capacity, c.cfg.Nominal, now) - now
	}
	return s
}
