package lrms

import (
	"slices"

	"gridnode/grid"
)

// naive is the same cluster without any structure: what Cluster has to equal.
type naive struct {
	cfg       Config
	now       grid.Time
	running   []naiveTask
	promises  []naivePromise // by start, then order of Reserve
	queue     []Request
	parked    []Request
	guests    []naiveTask
	places    map[grid.TaskID]int // order of submission
	submitted int
	late      int64
	lateMax   grid.Time
}

type naiveTask struct {
	Request
	start, end grid.Time
}

type naivePromise struct {
	Request
	start, end, due           grid.Time
	committed, blocked, tried bool
}

func (n *naive) known(id grid.TaskID) string {
	switch {
	case slices.ContainsFunc(n.queue, func(r Request) bool { return r.ID == id }):
		return "queued"
	case slices.ContainsFunc(n.parked, func(r Request) bool { return r.ID == id }):
		return "parked"
	case slices.ContainsFunc(n.guests, func(t naiveTask) bool { return t.ID == id }):
		return "running"
	case slices.ContainsFunc(n.promises, func(p naivePromise) bool { return p.ID == id }):
		return "reserved"
	case slices.ContainsFunc(n.running, func(t naiveTask) bool { return t.ID == id }):
		return "running"
	}
	return ""
}

func (n *naive) admit(r Request) error {
	switch {
	case r.Processors < 1 || r.Estimate < 1 || r.Estimate > grid.SpanMax:
		return ErrInvalid
	case r.Processors > n.cfg.Processors:
		return ErrTooWide
	case len(n.queue)+len(n.parked)+len(n.promises) >= n.cfg.QueueMax:
		return ErrQueueFull
	case n.known(r.ID) != "":
		return ErrKnown
	}
	return nil
}

func (n *naive) Submit(now grid.Time, r Request) error {
	n.now = now
	err := n.admit(r)
	if err == nil {
		n.queue = append(n.queue, r)
		if n.places == nil {
			n.places = map[grid.TaskID]int{}
		}
		n.submitted++
		n.places[r.ID] = n.submitted
	}
	return err
}

func (n *naive) Reserve(now grid.Time, r Request, by grid.Time) (grid.Time, error) {
	return n.reserve(now, r, by, n.cfg.Hold)
}

func (n *naive) Admit(now grid.Time, r Request, by grid.Time) (grid.Time, error) {
	start, err := n.reserve(now, r, by, 0)
	if err == nil {
		err = n.Commit(now, r.ID)
	}
	return start, err
}

func (n *naive) reserve(now grid.Time, r Request, by, hold grid.Time) (grid.Time, error) {
	n.now = now
	if err := n.admit(r); err != nil {
		return 0, err
	}
	var start grid.Time
	floor := n.floor()
	n.withHead(func() { start = n.earliestFrom(r.Processors, r.Estimate, now+hold, floor) })
	if start+r.Estimate > by {
		return 0, TooLate{start + r.Estimate}
	}
	n.insert(naivePromise{Request: r, start: start, due: start, end: max(start, now+hold) + r.Estimate})
	return start, nil
}

func (n *naive) Commit(now grid.Time, id grid.TaskID) error {
	n.now = now
	for i := range n.promises {
		if p := &n.promises[i]; p.ID == id {
			if !p.committed {
				p.committed, p.due = true, max(p.start, now)
				p.end = p.due + p.Estimate
			}
			return nil
		}
	}
	if n.known(id) == "running" {
		return nil
	}
	return ErrUnknown
}

func (n *naive) Cancel(now grid.Time, id grid.TaskID) bool {
	n.now = now
	before := len(n.queue) + len(n.parked) + len(n.promises)
	n.parked = slices.DeleteFunc(n.parked, func(r Request) bool { return r.ID == id })
	n.queue = slices.DeleteFunc(n.queue, func(r Request) bool { return r.ID == id })
	n.promises = slices.DeleteFunc(n.promises, func(p naivePromise) bool { return p.ID == id })
	return len(n.queue)+len(n.parked)+len(n.promises) < before
}

func (n *naive) Adopt(now grid.Time, r Request, started grid.Time) error {
	n.now = now
	if err := n.admit(r); err != nil && err != ErrQueueFull {
		return err
	}
	if n.known(r.ID) != "" {
		return ErrKnown
	}
	if r.Processors > n.cfg.Processors-n.busy() {
		return ErrTooWide
	}
	n.start(r, min(started, now))
	return nil
}

func (n *naive) Ended(now grid.Time, id grid.TaskID) bool {
	n.now = now
	before := len(n.running) + len(n.guests)
	n.running = slices.DeleteFunc(n.running, func(t naiveTask) bool { return t.ID == id })
	n.guests = slices.DeleteFunc(n.guests, func(t naiveTask) bool { return t.ID == id })
	return len(n.running)+len(n.guests) < before
}

func (n *naive) Lend(now grid.Time, r Request) error {
	n.now = now
	if err := n.admit(r); err != nil && err != ErrQueueFull {
		return err
	}
	switch {
	case n.known(r.ID) != "":
		return ErrKnown
	case n.least(now, now+r.Estimate) < r.Processors:
		return ErrBusy
	}
	n.start(r, now)
	return nil
}

func (n *naive) Extend(now grid.Time, id grid.TaskID, end grid.Time) bool {
	n.now = now
	for i := range n.running {
		if t := &n.running[i]; t.ID == id {
			t.end = max(end, t.start+1)
			return true
		}
	}
	return false
}

func (n *naive) Borrow(now grid.Time, r Request) error {
	n.now = now
	switch n.known(r.ID) {
	case "running", "reserved":
		return ErrKnown
	}
	n.Cancel(now, r.ID)
	n.guests = append(n.guests, naiveTask{r, now, now + r.Estimate})
	return nil
}

func (n *naive) Park(now grid.Time, id grid.TaskID) bool {
	n.now = now
	i := slices.IndexFunc(n.queue, func(r Request) bool { return r.ID == id })
	if i < 0 {
		return false
	}
	n.parked = append(n.parked, n.queue[i])
	n.queue = slices.Delete(n.queue, i, i+1)
	return true
}

func (n *naive) Unpark(now grid.Time, id grid.TaskID) bool {
	n.now = now
	i := slices.IndexFunc(n.parked, func(r Request) bool { return r.ID == id })
	if i < 0 {
		return false
	}
	at := 0
	for at < len(n.queue) && n.places[n.queue[at].ID] < n.places[id] {
		at++
	}
	n.queue = slices.Insert(n.queue, at, n.parked[i])
	n.parked = slices.Delete(n.parked, i, i+1)
	return true
}

func (n *naive) Waiting() []Request { return n.queue }

func (n *naive) Schedule(now grid.Time) []Request {
	n.now = now
	started := n.startDue()
	heads := func() {
		for len(n.queue) > 0 && n.fits(n.queue[0]) {
			started = append(started, n.take(0))
		}
	}
	heads()
	for i := 0; i < len(n.promises); i++ {
		p := n.promises[i]
		fits := false
		n.withHead(func() {
			fits = p.committed && p.start > now && p.Processors <= n.least(now, min(p.start, now+p.Estimate))
		})
		if n.cfg.Discipline == FCFS && !fits && p.committed && p.start > now {
			break
		}
		if fits {
			n.promises = slices.Delete(n.promises, i, i+1)
			n.start(p.Request, now)
			started = append(started, p.Request)
			heads()
			i--
		}
	}
	if n.cfg.Discipline == EASY {
		n.withHead(func() {
			for i := 1; i < len(n.queue); i++ {
				if n.fits(n.queue[i]) {
					started = append(started, n.take(i))
					i--
				}
			}
		})
	}
	return started
}

func (n *naive) startDue() (started []Request) {
	idle := n.cfg.Processors - n.busy()
	for _, p := range n.promises {
		if !p.committed && p.start <= n.now {
			idle -= p.Processors
		}
	}
	for i := 0; i < len(n.promises); i++ {
		p := &n.promises[i]
		if !p.committed || p.start > n.now {
			continue
		}
		p.tried = true
		if p.Processors > idle {
			p.blocked, p.end = true, n.now+1+p.Estimate
			continue
		}
		if p.blocked && n.now > p.due {
			n.late++
			n.lateMax = max(n.lateMax, n.now-p.due)
		}
		idle -= p.Processors
		started = append(started, p.Request)
		n.start(p.Request, n.now)
		n.promises = slices.Delete(n.promises, i, i+1)
		i--
	}
	return started
}

func (n *naive) NextTimer() grid.Time {
	for _, p := range n.promises {
		switch {
		case p.committed && !p.tried && p.start <= n.now:
			return n.now
		case p.committed && p.start > n.now:
			return p.start
		}
	}
	return grid.Never
}

func (n *naive) EarliestStart(now grid.Time, processors int64, span grid.Time) (start grid.Time) {
	n.now = now
	floor := n.floor()
	n.withHead(func() { start = n.earliestFrom(processors, span, now, floor) })
	return start
}

func (n *naive) Planned(id grid.TaskID) (grid.Time, bool) {
	for _, p := range n.promises {
		if p.ID == id {
			return p.start, true
		}
	}
	for _, t := range slices.Concat(n.running, n.guests) {
		if t.ID == id {
			return t.start, true
		}
	}
	if len(n.queue) > 0 && n.queue[0].ID == id {
		return n.earliest(n.queue[0].Processors, n.queue[0].Estimate, n.now), true
	}
	return 0, false
}

func (n *naive) State(now grid.Time) State {
	n.now = now
	s := State{
		Capacity: n.cfg.Processors, Busy: n.busy(), Running: len(n.running), Queued: len(n.queue),
		Late: n.late, LateMax: n.lateMax, Free: max(n.at(now), 0),
		Parked: len(n.parked), Guests: len(n.guests),
	}
	for _, t := range n.guests {
		s.Borrowed += t.Processors
	}
	s.Held = s.Capacity - s.Busy - s.Free
	for _, r := range n.queue {
		s.QueuedWork += r.Processors * int64(r.Estimate)
		s.Demand += r.Processors
	}
	for _, p := range n.promises {
		if !p.committed {
			s.Reserved++
			continue
		}
		s.Queued++
		s.QueuedWork += p.Processors * int64(p.Estimate)
		s.Demand += p.Processors
		if p.due < now {
			s.Overdue++
		}
	}
	n.withHead(func() {
		s.Widest = max(n.least(now, now+n.cfg.Hold+n.cfg.Nominal), 0)
		s.Wait = n.earliest(s.Capacity, n.cfg.Nominal, now+n.cfg.Hold) - now
	})
	return s
}

func (n *naive) busy() (sum int64) {
	for _, t := range n.running {
		sum += t.Processors
	}
	return sum
}

func (n *naive) insert(p naivePromise) {
	i := len(n.promises)
	for i > 0 && n.promises[i-1].start > p.start {
		i--
	}
	n.promises = slices.Insert(n.promises, i, p)
}

func (n *naive) take(i int) Request {
	r := n.queue[i]
	n.queue = slices.Delete(n.queue, i, i+1)
	n.start(r, n.now)
	return r
}

func (n *naive) start(r Request, at grid.Time) {
	n.running = append(n.running, naiveTask{r, at, at + r.Estimate})
}

// at returns the processors available at an instant from now on.
func (n *naive) at(t grid.Time) int64 {
	v := n.cfg.Processors
	for _, r := range n.running {
		if t == n.now || r.end > t {
			v -= r.Processors
		}
	}
	for _, p := range n.promises {
		if p.start <= t && (t == n.now || p.end > t) {
			v -= p.Processors
		}
	}
	return v
}

// least looks at every instant of [from, to) at which something changes.
func (n *naive) least(from, to grid.Time) int64 {
	v := n.at(from)
	for _, t := range n.instants() {
		if t > from && t < to {
			v = min(v, n.at(t))
		}
	}
	return v
}

func (n *naive) instants() []grid.Time {
	list := []grid.Time{n.now, n.now + 1}
	for _, r := range n.running {
		list = append(list, r.end)
	}
	for _, p := range n.promises {
		list = append(list, p.start, p.end)
	}
	return list
}

func (n *naive) fits(r Request) bool {
	return r.Processors <= n.least(n.now, n.now+r.Estimate)
}

// floor is the start of the last promise under FCFS.
func (n *naive) floor() grid.Time {
	if n.cfg.Discipline != FCFS || len(n.promises) == 0 {
		return n.now
	}
	return max(n.promises[len(n.promises)-1].start, n.now)
}

func (n *naive) earliest(processors int64, span, limit grid.Time) grid.Time {
	return n.earliestFrom(processors, span, limit, n.now)
}

func (n *naive) earliestFrom(processors int64, span, limit, floor grid.Time) grid.Time {
	best := grid.Never
	for _, t := range append(n.instants(), floor) {
		if t >= floor && t < best && n.least(t, max(t, limit)+span) >= processors {
			best = t
		}
	}
	return best
}

// withHead calls do while the head of the queue has a promise for its earliest start.
func (n *naive) withHead(do func()) {
	if len(n.queue) == 0 {
		do()
		return
	}
	r := n.queue[0]
	start := n.earliest(r.Processors, r.Estimate, n.now)
	n.insert(naivePromise{Request: r, start: start, end: start + r.Estimate})
	do()
	n.promises = slices.DeleteFunc(n.promises, func(p naivePromise) bool { return p.ID == r.ID && !p.committed })
}
