package testnet

import (
	"slices"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/testnet/draw"
)

// session is a connection from a borrower to a lender: a stream each way, in order and
// without gaps until it is over, which each end learns by itself.
type session struct {
	number uint64
	ends   [2]sessionEnd // borrower, lender
	left   bool          // the borrower wants it no more, and it is not there yet
}

// The ends of a session.
const (
	atBorrower = 0
	atLender   = 1
)

// sessionEnd is one end of a session, and what that end sends.
type sessionEnd struct {
	site    int32
	open    bool
	sent    int       // parcels so far
	gap     int       // the first parcel that was lost, and after which none arrives; 0: none was
	arrives grid.Time // when the last one sent does
}

// parcel is what is sent in a session: an order, a report, or that nothing follows.
type parcel struct {
	order  *pilot.Order
	report *pilot.Report
}

// silenceMax is after how long an end notices that nothing comes from the other.
const silenceMax = 10 * grid.Second

// connect begins a session.
func (a *away) connect(e pilot.Connect) {
	l := a.l
	lender, known := l.find(e.Site)
	x := &session{number: e.Session}
	x.ends[atBorrower].site, x.ends[atLender].site = a.site, lender
	a.opening = append(a.opening, x)
	if !known {
		a.later(l.cfg.DialTimeout, func() { a.connected(x, "nobody answers to that name") })
		return
	}
	there := l.away(lender)
	l.after(l.now+l.wires.latency(a.site, lender), classOther, lender, func() {
		m := &l.members[lender]
		switch {
		case l.faults.severed(a.site, lender), l.faults.severed(lender, a.site), m.off, draw.Chance(&l.members[a.site].link, l.cfg.Link.Loss):
			a.later(l.cfg.DialTimeout, func() { a.connected(x, "it does not answer") })
		case m.core == nil:
			a.later(l.wires.latency(lender, a.site), func() { a.connected(x, "it refuses") })
		default:
			x.ends[atLender].open = true
			there.sessions = append(there.sessions, x)
			l.after(l.now+l.wires.latency(lender, a.site), classOther, a.site, func() { a.connected(x, "") })
		}
	})
}

// connected answers a Connect of the daemon that has ordered it. If there is none any
// more the lender learns of it.
func (a *away) connected(x *session, refused string) {
	at := slices.Index(a.opening, x)
	if at >= 0 {
		a.opening = slices.Delete(a.opening, at, at+1)
	}
	switch {
	case at < 0 || x.left:
		if x.ends[atLender].open {
			a.l.wires.snap(x)
		}
	case refused != "":
		a.step(&pilot.Disconnected{Site: a.l.members[x.ends[atLender].site].ID, Session: x.number, Why: refused})
	default:
		x.ends[atBorrower].open = true
		a.sessions = append(a.sessions, x)
		a.step(&pilot.Connected{Site: a.l.members[x.ends[atLender].site].ID, Session: x.number})
	}
}

// session returns the open session of that number with another site.
func (a *away) session(end int, with grid.SiteID, number uint64) *session {
	other, _ := a.l.find(with)
	for _, x := range a.sessions {
		if x.number == number && x.ends[end].site == a.site && x.ends[1-end].site == other && x.ends[end].open {
			return x
		}
	}
	return nil
}

// leave ends a session from one end, once what was sent has left.
func (a *away) leave(end int, with grid.SiteID, number uint64) {
	if x := a.session(end, with, number); x != nil {
		a.l.wires.post(x, end, parcel{})
		a.l.wires.close(x, end)
		return
	}
	for _, x := range a.opening {
		if end == atBorrower && x.number == number && a.l.members[x.ends[atLender].site].ID == with {
			x.left = true
		}
	}
}

// close is the end of a session at one end.
func (w *wires) close(x *session, end int) {
	l := w.l
	x.ends[end].open = false
	a := l.members[x.ends[end].site].away
	if i := slices.Index(a.sessions, x); i >= 0 {
		a.sessions = slices.Delete(a.sessions, i, i+1)
	}
}

// post sends a parcel from one end. A loss ends the session, as does a partition.
func (w *wires) post(x *session, end int, p parcel) {
	l := w.l
	from, to := &x.ends[end], &x.ends[1-end]
	from.sent++
	number := from.sent
	if from.gap == 0 && (l.faults.severed(from.site, to.site) || draw.Chance(&l.members[from.site].link, l.cfg.Link.Loss)) {
		w.drop(x, end, number)
	}
	if from.gap != 0 {
		return
	}
	from.arrives = max(from.arrives, l.now+l.wires.latency(from.site, to.site))
	l.after(from.arrives, classOther, to.site, func() {
		switch {
		case !to.open || from.gap != 0 && number >= from.gap:
		case l.faults.severed(from.site, to.site):
			w.drop(x, end, number)
		default:
			w.arrive(x, 1-end, p)
		}
	})
}

// drop loses a parcel, and with it all later ones.
func (w *wires) drop(x *session, end int, number int) {
	l := w.l
	l.wires.lost++
	x.ends[end].gap = number
	w.snap(x)
}

// snap lets both ends of a session learn that it is over, each for itself.
func (w *wires) snap(x *session) {
	l := w.l
	for end := range x.ends {
		e := &x.ends[end]
		pause := grid.Time(draw.Uniform(&l.members[e.site].link, uint64(silenceMax)))
		l.after(l.now+pause, classOther, e.site, func() { w.over(x, end) })
	}
}

// over tells one end that a session is over, unless it knows.
func (w *wires) over(x *session, end int) {
	if x.ends[end].open {
		w.arrive(x, end, parcel{})
	}
}

// arrive takes a parcel in at one end.
func (w *wires) arrive(x *session, end int, p parcel) {
	l := w.l
	a, with := l.members[x.ends[end].site].away, l.members[x.ends[1-end].site].ID
	switch {
	case p.order != nil:
		a.step(&pilot.Ordered{From: with, Session: x.number, Order: p.order})
	case p.report != nil:
		a.step(&pilot.Reported{Site: with, Session: x.number, Report: p.report})
	case end == atLender:
		w.close(x, end)
		a.step(&pilot.Closed{From: with, Session: x.number})
	default:
		w.close(x, end)
		a.step(&pilot.Disconnected{Site: with, Session: x.number, Why: "the connection is gone"})
	}
}

// abort ends the sessions of a site whose daemon is gone. The others learn it soon, or
// late if its machine is gone, too.
func (a *away) abort(machine bool) {
	l := a.l
	a.opening = nil
	for _, x := range a.sessions {
		end := atBorrower
		if x.ends[atLender].site == a.site {
			end = atLender
		}
		x.ends[end].open = false
		other := x.ends[1-end].site
		pause := l.wires.latency(a.site, other)
		if machine || l.faults.severed(a.site, other) {
			pause = l.cfg.DialTimeout
		}
		l.after(l.now+pause, classOther, other, func() { l.wires.over(x, 1-end) })
	}
	a.sessions = nil
}
