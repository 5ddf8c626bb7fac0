package directory

import "gridnode/grid"

// How much the load has to change to be published before the next renewal: the
// free processors or the widest startable job to or from nothing, or by this
// factor; the start of a job as wide as the site by this factor of the wait and
// more than waitSlack.
const (
	loadFactor = 2
	waitSlack  = grid.Minute
)

// paceMax bounds the span between two changes of load that goes on for long.
const paceMax = grid.Minute

// paceRest is how many times that span a site's load must rest before the next
// change goes out quickly again.
const paceRest = 8

// pace is when a change of load is published. What matters goes out at once, but
// the more slowly the longer it goes on: the least span between two doubles from
// Config.LoadInterval to paceMax, so that it is at most seven in the first minute
// and one a minute in the long run. What matters little waits for the renewal,
// which then comes at a quarter of the lifetime.
type pace struct {
	offer   Quote     // as last set, Issued being when; the own quote may be behind it in load
	flushAt grid.Time // when it is published; grid.Never if that is not due
	span    grid.Time // least, from one change of load to the next
	flushed grid.Time // when the last one went out
}

// changed plans the publication of a load that differs from that of the own quote.
func (p *pace) changed(now grid.Time, own *Quote, least grid.Time) {
	p.flushAt = grid.Never
	if own.loadMatters(now, &p.offer) {
		p.flushAt = own.Issued.Add(max(p.span, least))
	}
}

// slow notes that a load is published now.
func (p *pace) slow(now, least, most grid.Time) {
	if p.span == 0 || now-p.flushed > paceRest*p.span {
		p.span = least
	} else {
		p.span = min(2*p.span, max(least, most))
	}
	p.flushed = now
}

// loadMatters reports whether two quotes of a site differ so much in load that jobs
// would be placed elsewhere.
func (q *Quote) loadMatters(now grid.Time, other *Quote) bool {
	a, b := q.waitLeft(now), other.waitLeft(now)
	return differ(q.Free, other.Free) || differ(q.Widest, other.Widest) || (a > 0) != (b > 0) ||
		max(a-b, b-a) > waitSlack && differ(int64(a), int64(b))
}

// differ reports whether one of two numbers is none and the other is not, or at
// least loadFactor times as large.
func differ(a, b int64) bool {
	return a != b && (a == 0 || b == 0 || max(a, b) >= loadFactor*min(a, b))
}
