package pilot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridnode/grid"
)

// world is sites with a Core each, the machines under them, and the connections between
// them, all of which can fail. What a core orders is done by the world's methods, whenever
// the test says so: cores see only inputs.
type world struct {
	now      grid.Time
	sites    map[grid.SiteID]*site
	sessions []*session
	trace    strings.Builder

	started map[member]int                // processes that ever began
	ready   map[grid.TaskID]bool          // squads that were ready at least once
	broken  string                        // the first invariant that was violated
	squads  map[grid.TaskID][]grid.TaskID // of gangs
}

// session is a connection. Each end learns by itself that it is over; what has been sent
// may still arrive at the end that does not know yet.
type session struct {
	from, to grid.SiteID
	number   uint64
	opening  bool
	open     bool // at the borrower
	closed   bool // at the lender
	orders   []Order
	reports  []Report
}

func newWorld(ids ...grid.SiteID) *world {
	w := &world{
		now: grid.Second, sites: make(map[grid.SiteID]*site), started: make(map[member]int),
		ready: make(map[grid.TaskID]bool), squads: make(map[grid.TaskID][]grid.TaskID),
	}
	for _, id := range ids {
		s := &site{
			w: w, id: id, pilots: make(map[uint64]*machine), own: make(map[member]*process), begun: make(map[grid.TaskID]bool),
			entered: make(map[grid.TaskID]bool), jobs: make(map[grid.TaskID]*job),
		}
		s.core = New(Config{Self: id})
		w.sites[id] = s
	}
	return w
}

func (w *world) all() []*site {
	return slices.SortedFunc(maps.Values(w.sites), func(a, b *site) int { return cmp.Compare(a.id, b.id) })
}

func (w *world) violated(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) note(format string, args ...any) { fmt.Fprintf(&w.trace, format+"\n", args...) }

func (w *world) session(from, to grid.SiteID, number uint64) *session {
	for _, x := range w.sessions {
		if x.from == from && x.to == to && x.number == number {
			return x
		}
	}
	return nil
}

// carry does what a site orders of its connections.
func (w *world) carry(s *site, e Effect) {
	switch e := e.(type) {
	case Tell:
		if x := w.session(e.To, s.id, e.Session); x != nil && !x.closed {
			x.reports = append(x.reports, e.Report)
		}
	case Hangup:
		if x := w.session(e.To, s.id, e.Session); x != nil {
			x.closed = true
			s.step(&Closed{e.To, e.Session})
		}
	case Connect:
		w.sessions = append(w.sessions, &session{from: s.id, to: e.Site, number: e.Session, opening: true})
	case Disconnect:
		if x := w.session(s.id, e.Site, e.Session); x != nil {
			x.opening, x.open, x.reports = false, false, nil
		}
	case Send:
		if x := w.session(s.id, e.Site, e.Session); x != nil && x.open {
			x.orders = append(x.orders, e.Order)
		}
	}
}

// connect answers a Connect.
func (w *world) connect(x *session, reached bool) {
	if !x.opening {
		return
	}
	x.opening = false
	if reached && w.sites[x.to].core != nil {
		x.open = true
		w.sites[x.from].step(&Connected{x.to, x.number})
		return
	}
	x.closed = true
	w.note("%s-x%s", x.from, x.to)
	w.sites[x.from].step(&Disconnected{x.to, x.number, "not reached"})
}

// order lets the next order arrive.
func (w *world) order(x *session) bool {
	if len(x.orders) == 0 || x.closed {
		return false
	}
	o := x.orders[0]
	x.orders = x.orders[1:]
	w.note("%s->%s %s", x.from, x.to, describeOrder(&o))
	w.sites[x.to].step(&Ordered{x.from, x.number, &o})
	return true
}

// report lets the next report arrive.
func (w *world) report(x *session) bool {
	if len(x.reports) == 0 || !x.open {
		return false
	}
	r := x.reports[0]
	x.reports = x.reports[1:]
	w.note("%s->%s %s", x.to, x.from, describeReport(&r))
	w.sites[x.from].step(&Reported{x.to, x.number, &r})
	return true
}

// end ends a session at one side; what was under way to it is lost.
func (w *world) end(x *session, atLender bool) {
	if atLender && !x.closed {
		x.closed, x.orders = true, nil
		w.sites[x.to].step(&Closed{x.from, x.number})
	}
	if !atLender && x.open {
		x.open, x.reports = false, nil
		w.sites[x.from].step(&Disconnected{x.to, x.number, "reset"})
	}
}

// settle lets everything arrive and be answered, but no time pass and no process end.
func (w *world) settle() {
	for busy := true; busy; {
		busy = false
		for _, x := range slices.Clone(w.sessions) {
			if x.opening {
				w.connect(x, true)
				busy = true
			}
			for w.order(x) || w.report(x) {
				busy = true
			}
			if x.open && x.closed { // the other side has gone
				w.end(x, false)
				busy = true
			}
			if !x.opening && !x.open && !x.closed {
				w.end(x, true)
				busy = true
			}
		}
		for _, s := range w.all() {
			if s.core == nil {
				continue
			}
			for _, key := range s.core.Keeps() {
				if m := s.pilots[key]; m.cut {
					s.drop(key, false)
					busy = true
				}
			}
			for len(s.dialled)+len(s.preparing)+len(s.gathering)+len(s.finishing)+len(s.acks) > 0 {
				s.dial(true)
				s.prepared("", "")
				s.gathered("", false)
				s.finished()
				s.ack()
				busy = true
			}
		}
		w.sessions = slices.DeleteFunc(w.sessions, func(x *session) bool { return !x.opening && !x.open && x.closed })
	}
}

// advance lets time pass.
func (w *world) advance(span grid.Time) {
	for until := w.now + span; w.now < until; {
		next := until
		for _, s := range w.all() {
			next = min(next, max(s.due(), w.now))
		}
		w.now = next
		for _, s := range w.all() {
			for n := 0; s.due() <= w.now; n++ {
				if n > 10 {
					w.violated("%s wants a tick again and again", s.id)
					return
				}
				s.step(grid.Tick{})
			}
		}
	}
}
