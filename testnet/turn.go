package testnet

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// owe puts a site on the list of those that get a Tick at the end of the instant.
func (l *lane) owe(s int32) {
	if m := &l.members[s]; !m.owed {
		m.owed = true
		if l.apart {
			l.owing = append(l.owing, s)
			l.ops = append(l.ops, op{at: s, kind: opOwe})
		} else {
			l.turns = append(l.turns, s)
		}
	}
}

// tick is made once: a zero-size value in an interface costs nothing to pass.
var tick grid.Input = grid.Tick{}

// tick gives a site that is owed one its Tick.
func (l *lane) tick(s int32) {
	l.members[s].owed = false
	l.turn(s)
	l.tellTurn(s)
}

// ticksMax bounds how often a site may want another Tick at one instant: the cores
// of one site answer each other in a few rounds.
const ticksMax = 1000

// turn gives a site Ticks until it is at rest.
func (l *lane) turn(s int32) {
	m := &l.members[s]
	for ticks := 0; m.core != nil; ticks++ {
		m.trace.tick(s)
		now := m.Clock.Local(l.now)
		l.ticking = true
		m.core.Step(now, tick, l.outbox())
		l.carryOut(s)
		l.ticking = false
		if m.core == nil {
			return
		}
		next := m.core.NextTimer()
		if next > now {
			l.arm(s, next)
			l.armRouter(s)
			return
		}
		if ticks == ticksMax {
			panic(fmt.Sprintf("testnet: site %s has had %d Ticks at %v and wants one at %v", m.ID, ticks, now, next))
		}
	}
}

// Ticks reports whether what is carried out was ordered in a Tick: something was due, or has
// waited for the end of the instant.
func Ticks(n *Network) bool {
	return slices.ContainsFunc(n.lanes, func(l *lane) bool { return l.ticking })
}

// nextTimer returns when the site needs a Tick, on its own clock.
func (m *member) nextTimer() grid.Time { return min(m.core.NextTimer(), m.routed) }

// asked notes when the router needs its next Tick, after it was given anything: the turns
// of the site do not look at it, as it is in no cache then.
func (m *member) asked() {
	if m.router != nil {
		m.routed = m.router.NextTimer()
	}
}

// armRouter makes sure that the site's router gets a Tick when it wants one.
func (l *lane) armRouter(s int32) {
	if next := l.members[s].routed; next != grid.Never {
		l.arm(s, next)
	}
}

// arm makes sure that the site gets a Tick when its clock shows next. A timer event
// that comes too early is not taken out of the queue: when it comes it is put off. What is
// overdue, as for a site that has just come up, is due now.
func (l *lane) arm(s int32, next grid.Time) {
	m := &l.members[s]
	if at := max(m.Clock.True(next), l.now); at < m.armed {
		m.armed = at
		l.push(at, classOther, event{kind: eventTimer, to: s, from: s})
	}
}

// timer gives a site its Tick if it still wants it now. Of several timer events
// only the one it is armed for counts.
func (l *lane) timer(s int32) {
	m := &l.members[s]
	if m.armed != l.now {
		return
	}
	m.armed = grid.Never
	if m.core == nil {
		return
	}
	now := m.Clock.Local(l.now)
	if m.routed <= now {
		m.trace.tick(^s)
		m.router.Step(now, tick, l.outbox())
		m.asked()
		l.carryRouter(s)
	}
	if m.core != nil && m.core.NextTimer() <= now {
		l.owe(s)
	} else if m.core != nil && !m.owed { // otherwise its turn arms it
		l.arm(s, m.nextTimer())
	}
}
