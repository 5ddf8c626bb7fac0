package lrms

import "gridnode/grid"

// profile says how many processors are available from now on, by the estimates.
// An occupant has processors from one instant to another. One that is still there
// after its end (a job past its estimate) is expected to leave a microsecond from
// now, and so on.
//
// At now, free processors are available; later, free + overrun + the timeline.
// free may be negative: processors are held for a promise while a job past its
// estimate still has them.
type profile struct {
	now     grid.Time
	free    int64
	overrun int64 // processors of occupants whose end has passed
	ahead   timeline
}

// occupy takes processors from the instant from until the instant to.
func (p *profile) occupy(from, to grid.Time, processors int64) {
	if from <= p.now {
		p.free -= processors
	} else {
		p.ahead.add(from, -processors)
	}
	p.leave(to, processors)
}

// vacate undoes occupy, from and to being the same; now may have moved on since,
// but begin must have been called if it passed from.
func (p *profile) vacate(from, to grid.Time, processors int64) {
	if from <= p.now {
		p.free += processors
	} else {
		p.ahead.add(from, processors)
	}
	p.leave(to, -processors)
}

// begin says that the start of an occupant, which was ahead, has come. It has to
// be called before advance passes the start.
func (p *profile) begin(from grid.Time, processors int64) {
	p.ahead.add(from, processors)
	p.free -= processors
}

// extend moves the end of an occupant.
func (p *profile) extend(from, to grid.Time, processors int64) {
	p.leave(from, -processors)
	p.leave(to, processors)
}

func (p *profile) leave(at grid.Time, processors int64) {
	if at <= p.now {
		p.overrun += processors
	} else {
		p.ahead.add(at, processors)
	}
}

// advance moves now. What is in the timeline up to then are ends that nobody has
// reported.
func (p *profile) advance(now grid.Time) {
	p.now = now
	for p.ahead.first <= now {
		p.overrun += p.ahead.dropFirst()
	}
}

// lasting returns how long as many processors stay available from now on, given
// that they are now: a span, or grid.Never.
func (p *profile) lasting(processors int64) grid.Time {
	at := p.ahead.fall(p.free+p.overrun, processors)
	if at == grid.Never {
		return grid.Never
	}
	return at - p.now
}

// least returns the fewest processors available from now until the instant to.
func (p *profile) least(to grid.Time) int64 {
	return min(p.free, p.ahead.least(p.free+p.overrun, to))
}

// earliest returns the first instant from which as many processors are available
// for span, or until limit + span if that is later, and how many are available at
// that instant. processors is at most the site's.
func (p *profile) earliest(processors int64, span, limit grid.Time) (start grid.Time, available int64) {
	g := p.search(processors, span, limit, p.now)
	return g.start, g.found
}

// earliestFrom is earliest for instants not before floor.
func (p *profile) earliestFrom(processors int64, span, limit, floor grid.Time) (start grid.Time) {
	return p.search(processors, span, limit, floor).start
}

// each tells f from when on how many processors are available, until f returns false
// or that many changes were told, and returns the last instant it told.
func (p *profile) each(most int, f func(at grid.Time, available int64) bool) (last grid.Time) {
	v, last := p.free, p.now
	if !f(last, v) {
		return last
	}
	if p.overrun != 0 {
		v, last = v+p.overrun, p.now+1
		if !f(last, v) {
			return last
		}
	}
	for at, change := range p.ahead.each {
		if most--; most < 0 {
			return last
		}
		v, last = v+change, at
		if !f(last, v) {
			return last
		}
	}
	return last
}

func (p *profile) search(processors int64, span, limit, floor grid.Time) gap {
	g := gap{level: processors, span: span, limit: limit, floor: floor}
	g.step(p.now, p.free)
	if p.overrun != 0 {
		g.step(p.now+1, p.overrun)
	}
	p.ahead.search(&g, p.ahead.root, p.ahead.height)
	return g
}
