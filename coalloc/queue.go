package coalloc

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// Bounds and defaults of QueueConfig.
const (
	QueueMaxDefault  = 10_000
	IntervalDefault  = 10 * grid.Second
	PatienceDefault  = grid.Hour
	BackoffDefault   = grid.Second
	BackoffMax       = 5 * grid.Minute
	backoffDoublings = 16
)

// QueueConfig is how a Queue behaves. A zero field takes the default beside it.
type QueueConfig struct {
	Max      int       // jobs that wait; QueueMaxDefault
	Interval grid.Time // between two scans; IntervalDefault
	Policy   Policy

	// Place, if set, places the jobs whose requests name no policy, instead of Policy.
	Place PlaceFunc

	// Patience is how long a job waits before the jobs behind it have to leave it
	// room; PatienceDefault, grid.Never: they never have to (KOALA).
	Patience grid.Time

	// Backoff is how long a job whose claim has failed stays out of the scans at
	// least; it doubles with each failure up to BackoffMax. BackoffDefault
	Backoff grid.Time
}

// Errors of Queue.Add: the job was not taken.
var (
	ErrQueueFull = errors.New("placement queue is full")
	ErrKnown     = errors.New("job is in the placement queue already")
)

// Waiting is a job in the placement queue.
type Waiting struct {
	Job      grid.JobID
	Request  *Request
	Epoch    uint32    // of the execution it is placed for; the owner says
	Estimate grid.Time // bound on its run time within one site
	Since    grid.Time // when it joined

	Tries    int32     // placements tried so far, successful or not
	Failures int32     // placements whose claim failed
	After    grid.Time // it is not tried before

	RefusedBy grid.SiteID // whose refusal failed the latest of these claims; empty: something else did
	Refusal   lease.Reason

	sequence uint64 // its place: rising from head to tail
	placed   bool   // in this scan
}

// Queue is the placement queue (section III-A): it "holds all jobs that have not yet
// been successfully placed. The scheduler regularly scans the queue from head to tail
// to see whether it is able to place any job." A job that cannot be placed does not
// keep the jobs behind it from being placed.
//
// So that wide jobs do not starve: the first job from the head that has waited for
// Patience and cannot be placed sets sites aside, those that the policy would give it
// if nothing ran anywhere, and for the rest of the scan nothing is placed there. What
// runs there ends, so the job is placed after at most the longest estimate, then the
// next one has its turn. If even that finds nothing (it names sites nobody knows at
// present), it sets nothing aside.
//
// Not safe for concurrent use.
type Queue struct {
	cfg      QueueConfig
	waiting  []*Waiting // by sequence
	index    map[grid.JobID]*Waiting
	sequence uint64
	next     grid.Time // scan; grid.Never while nothing waits
	parts    []Part
	aside    []aside
}

type aside struct {
	site int32
	free int64
}

// NewQueue returns an empty queue.
func NewQueue(cfg QueueConfig) (*Queue, error) {
	if cfg.Max == 0 {
		cfg.Max = QueueMaxDefault
	}
	for _, d := range []struct {
		v   *grid.Time
		def grid.Time
	}{{&cfg.Interval, IntervalDefault}, {&cfg.Patience, PatienceDefault}, {&cfg.Backoff, BackoffDefault}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	switch {
	case cfg.Max < 0:
		return nil, fmt.Errorf("coalloc: queue of at most %d jobs, want 1 or more", cfg.Max)
	case cfg.Interval < grid.Millisecond || cfg.Interval > grid.Day:
		return nil, fmt.Errorf("coalloc: scan every %v, want 1ms to 24h", cfg.Interval)
	case cfg.Patience < 0:
		return nil, fmt.Errorf("coalloc: patience of %v, want more than 0", cfg.Patience)
	case cfg.Backoff < 0 || cfg.Backoff > BackoffMax:
		return nil, fmt.Errorf("coalloc: back-off of %v, want more than 0, at most %v", cfg.Backoff, BackoffMax)
	case cfg.Policy > policyLast:
		return nil, fmt.Errorf("coalloc: policy %d is unknown", cfg.Policy)
	}
	return &Queue{cfg: cfg, index: make(map[grid.JobID]*Waiting), next: grid.Never}, nil
}

// Len returns the number of jobs that wait.
func (q *Queue) Len() int { return len(q.waiting) }

// Waiting returns the job of that ID, nil if it does not wait. It is the queue's.
func (q *Queue) Waiting(id grid.JobID) *Waiting { return q.index[id] }

// All yields the jobs that wait, head first. They are the queue's.
func (q *Queue) All() iter.Seq[*Waiting] { return slices.Values(q.waiting) }

// Add puts a job at the tail. The request must be valid and is not copied. Errors:
// ErrQueueFull, ErrKnown.
func (q *Queue) Add(now grid.Time, id grid.JobID, r *Request, estimate grid.Time) error {
	if _, known := q.index[id]; known {
		return fmt.Errorf("%s: %w", id, ErrKnown)
	}
	if len(q.waiting) >= q.cfg.Max {
		return fmt.Errorf("%d jobs wait: %w", len(q.waiting), ErrQueueFull)
	}
	q.sequence++
	q.insert(now, &Waiting{Job: id, Request: r, Estimate: estimate, Since: now, sequence: q.sequence})
	return nil
}

// Return puts a job back whose claim has failed, where it stood before, with its tries
// and its wait so far. It is tried again after its back-off, which jitter, 0 to 999,
// stretches by up to half: competing co-allocators must not try in step.
func (q *Queue) Return(now grid.Time, w *Waiting, jitter int64) {
	w.Failures++
	w.placed = false
	span := min(q.cfg.Backoff<<min(w.Failures-1, backoffDoublings), BackoffMax)
	w.After = now + span + span*grid.Time(jitter)/2000
	if _, known := q.index[w.Job]; !known {
		q.insert(now, w)
	}
}

func (q *Queue) insert(now grid.Time, w *Waiting) {
	at, _ := slices.BinarySearchFunc(q.waiting, w.sequence, func(o *Waiting, s uint64) int { return cmp.Compare(o.sequence, s) })
	q.waiting = slices.Insert(q.waiting, at, w)
	q.index[w.Job] = w
	if q.next == grid.Never {
		q.next = now + q.cfg.Interval
	}
}

// Remove takes a job out, and reports whether it was there.
func (q *Queue) Remove(id grid.JobID) bool {
	w, ok := q.index[id]
	if ok {
		w.placed = true
		q.sweep()
	}
	return ok
}

// sweep drops what is placed.
func (q *Queue) sweep() {
	q.waiting = slices.DeleteFunc(q.waiting, func(w *Waiting) bool {
		if w.placed {
			delete(q.index, w.Job)
		}
		return w.placed
	})
	if len(q.waiting) == 0 {
		q.next = grid.Never
	}
}

// NextTimer returns when the next scan is due.
func (q *Queue) NextTimer() grid.Time { return q.next }

// Try tries the job of that ID alone, as at its submission. What is said of Scan's
// place holds.
func (q *Queue) Try(now grid.Time, id grid.JobID, v *View, place func(w *Waiting, parts []Part)) {
	w, ok := q.index[id]
	if ok && now >= w.After && q.starving(now) == nil && q.try(w, v) {
		place(w, q.parts)
		q.sweep()
	}
}

// starving returns the first job that has waited for Patience.
func (q *Queue) starving(now grid.Time) *Waiting {
	if q.cfg.Patience == grid.Never {
		return nil
	}
	for _, w := range q.waiting {
		if now-w.Since >= q.cfg.Patience {
			return w
		}
	}
	return nil
}

// Scan tries all jobs from head to tail on what is idle in v, and calls place for each
// that is placed; parts is valid until it returns, the job is not in the queue any
// more, and its processors are taken from v. The next scan is an Interval later.
func (q *Queue) Scan(now grid.Time, v *View, place func(w *Waiting, parts []Part)) {
	q.next = now + q.cfg.Interval
	kept := false
	for _, w := range q.waiting {
		if now < w.After {
			continue
		}
		if q.try(w, v) {
			place(w, q.parts)
			continue
		}
		if !kept && q.cfg.Patience != grid.Never && now-w.Since >= q.cfg.Patience {
			kept = q.setAside(w, v)
		}
	}
	for _, a := range q.aside {
		v.SetFree(int(a.site), a.free)
	}
	q.aside = q.aside[:0]
	q.sweep()
}

// policy returns by which policy a request is placed; known is false for one of one's own.
func (q *Queue) policy(r *Request) (p Policy, known bool) {
	if r.Policy != nil {
		return *r.Policy, true
	}
	return q.cfg.Policy, q.cfg.Place == nil
}

// place places a job by its own policy, or by the queue's.
func (q *Queue) place(dst []Part, w *Waiting, v *View) ([]Part, bool) {
	r := w.Request
	if p, known := q.policy(r); known {
		return p.Place(dst, r, v, w.Estimate)
	}
	parts, ok := q.cfg.Place(dst, r, v, w.Estimate)
	if ok && !fits(parts[len(dst):], r, v) {
		return dst, false
	}
	return parts, ok
}

// fits reports whether what a policy of one's own has placed is a placement of r: each
// component once, on processors that are idle.
func fits(parts []Part, r *Request, v *View) bool {
	left, placed := r.Processors, make(map[int32]int64, len(parts))
	for _, p := range parts {
		if p.Processors < 1 || p.Site < 0 || int(p.Site) >= len(v.Sites) {
			return false
		}
		if placed[p.Site] += p.Processors; placed[p.Site] > v.Sites[p.Site].Free {
			return false
		}
		left -= p.Processors
	}
	return left == 0
}

// try tries one job and takes its processors.
func (q *Queue) try(w *Waiting, v *View) bool {
	w.Tries++
	if w.Request.Processors > v.Free() { // no policy finds what is not there
		return false
	}
	parts, ok := q.place(q.parts[:0], w, v)
	q.parts = parts
	if ok {
		w.placed = true
		v.Take(parts)
	}
	return ok
}

// setAside keeps the jobs behind w from the sites it would have if all were idle, and
// reports whether there are any.
func (q *Queue) setAside(w *Waiting, v *View) bool {
	parts, ok := q.place(nil, w, idleView(v))
	for _, p := range parts {
		if free := v.Sites[p.Site].Free; free > 0 {
			q.aside = append(q.aside, aside{p.Site, free})
			v.SetFree(int(p.Site), 0)
		}
	}
	return ok
}
