package testnet

import (
	"fmt"

	"gridnode/grid"
)

// owe puts a site on the list of those that get a Tick at the end of the instant.
func (n *Network) owe(s int32) {
	if m := &n.members[s]; !m.owed {
		m.owed = true
		n.turns = append(n.turns, s)
	}
}

// tick is made once: a zero-size value in an interface costs nothing to pass.
var tick grid.Input = grid.Tick{}

// settle gives every site that had an input its Tick and sets its timer.
func (n *Network) settle() {
	for i := 0; i < len(n.turns); i++ {
		s := n.turns[i]
		n.members[s].owed = false
		n.turn(s)
		for j := range n.observers {
			if turn := n.observers[j].Turn; turn != nil {
				turn(n.now, int(s))
			}
		}
	}
	n.turns = n.turns[:0]
}

// ticksMax bounds how often a site may want another Tick at one instant: the cores
// of one site answer each other in a few rounds.
const ticksMax = 1000

// turn gives a site Ticks until it is at rest.
func (n *Network) turn(s int32) {
	m := &n.members[s]
	for ticks := 0; m.core != nil; ticks++ {
		n.trace.tick(s)
		now := m.Clock.Local(n.now)
		n.ticking = true
		m.core.Step(now, tick, n.outbox())
		n.carryOut(s)
		n.ticking = false
		if m.core == nil {
			return
		}
		next := m.core.NextTimer()
		if next > now {
			n.arm(s, next)
			n.armRouter(s)
			return
		}
		if ticks == ticksMax {
			panic(fmt.Sprintf("testnet: site %s has had %d Ticks at %v and wants one at %v", m.ID, ticks, now, next))
		}
	}
}

// Ticks reports whether what is carried out was ordered in a Tick: something was due, or has
// waited for the end of the instant.
func Ticks(n *Network) bool { return n.ticking }

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
func (n *Network) armRouter(s int32) {
	if next := n.members[s].routed; next != grid.Never {
		n.arm(s, next)
	}
}

// arm makes sure that the site gets a Tick when its clock shows next. A timer event
// that comes too early is not taken out of the queue: when it comes it is put off. What is
// overdue, as for a site that has just come up, is due now.
func (n *Network) arm(s int32, next grid.Time) {
	m := &n.members[s]
	if at := max(m.Clock.True(next), n.now); at < m.armed {
		m.armed = at
		n.queue.push(at, classOther, event{kind: eventTimer, to: s, from: s})
	}
}

// timer gives a site its Tick if it still wants it now. Of several timer events
// only the one it is armed for counts.
func (n *Network) timer(s int32) {
	m := &n.members[s]
	if m.armed != n.now {
		return
	}
	m.armed = grid.Never
	if m.core == nil {
		return
	}
	now := m.Clock.Local(n.now)
	if m.routed <= now {
		n.trace.tick(^s)
		m.router.Step(now, tick, n.outbox())
		m.asked()
		n.carryRouter(s)
	}
	if m.core != nil && m.core.NextTimer() <= now {
		n.owe(s)
	} else if m.core != nil && !m.owed { // otherwise its turn arms it
		n.arm(s, m.nextTimer())
	}
}
