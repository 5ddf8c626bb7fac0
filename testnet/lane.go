package testnet

import (
	"math/bits"

	"gridnode/grid"
)

// lane is a part of the sites of a network with all that only they touch: what they do in a
// stride needs no other lane. Outside of strides the lanes take turns in the one order of the
// network's events.
type lane struct {
	*Network
	now   grid.Time
	queue eventQueue
	apart bool // a stride is under way: nothing of other lanes may be touched
	stride

	tasks     executor
	wires     wires
	counts    counts
	providing providing
	calls     slots[func()]
	inputs    slots[grid.Input] // injected
	lookups   slots[lookup]     // of the oracle
	open      map[uint64]pending
	ticking   bool // the step under way is a Tick

	// Reused from step to step.
	out         grid.Outbox
	keys        []grid.Key
	answers     []grid.Input
	delivery    grid.Delivery
	delivered   int32 // whose message delivery is
	undelivered grid.Undelivered
	closest     grid.Closest
	ended       grid.TaskEnded
	submitted   grid.Input
}

// Lanes are blocks of sites in turn: neighbours, which often have much to do with each other,
// share one, and each gets its share of every kind of site.
const (
	blockBits = 6 // of sites
	lanesMax  = 64
)

// lanesOf returns how many lanes a network with so many workers has: a power of two.
func lanesOf(workers int) int {
	return 1 << (bits.Len(uint(max(min(workers, lanesMax), 1))) - 1)
}

// LaneOf returns by which of the workers of a network a site is driven. What the sites of
// one share (memory that is used again, say) must not be shared with those of another.
func LaneOf(workers, site int) int { return site >> blockBits & (lanesOf(workers) - 1) }

// laneOf returns the lane of a site.
func (n *Network) laneOf(s int32) *lane { return n.lanes[int(s)>>blockBits&(len(n.lanes)-1)] }

// inLane returns the number of a site among those of its lane.
func (n *Network) inLane(s int32) int {
	block := int(s) >> blockBits / len(n.lanes)
	return block<<blockBits | int(s)&(1<<blockBits-1)
}

func newLane(n *Network) *lane {
	l := &lane{Network: n, open: make(map[uint64]pending)}
	l.wires.l, l.tasks.l, l.providing.l = l, l, l
	return l
}

// push has an event happen at an instant.
func (l *lane) push(at grid.Time, class uint64, e event) {
	to := l.laneOf(e.to)
	if l.apart {
		l.log(to == l, at, class, &e)
		return
	}
	if l.merging {
		l.mustFollow(at, &e)
		l.inserted++
		to.inbox = append(to.inbox, letter{at, class | l.inserted, e})
		return
	}
	l.order(&to.queue, at, class, e)
}

// own returns the lane of a site, which must be this one within a stride.
func (l *lane) own(s int32) *lane {
	to := l.laneOf(s)
	if l.apart && to != l {
		panic("testnet: a site reaches into another lane within a stride")
	}
	return to
}

func (l *lane) inject(at grid.Time, site int32, incarnation uint32, in grid.Input) {
	l.push(max(at, l.now), classOther, event{
		kind: eventInput, to: site, from: site, generation: incarnation, index: l.own(site).inputs.put(in),
	})
}

// happen carries out one event.
func (l *lane) happen(e event) {
	l.members[e.to].trace.event(l.now, &e)
	switch e.kind {
	case eventDeliver:
		l.wires.deliver(&e)
	case eventUndelivered:
		m := &l.members[e.to]
		if m.core == nil || m.incarnation != e.generation {
			return
		}
		l.undelivered = grid.Undelivered{To: l.members[e.from].ID, Message: e.message}
		l.hand(e.to, e.message.MessageKind(), &l.undelivered)
	case eventTimer:
		l.timer(e.to)
	case eventTaskEnd:
		l.tasks.taskEnd(&e)
	case eventInput:
		in := l.inputs.take(e.index)
		if e.generation == anyIncarnation || e.generation == l.members[e.to].incarnation {
			l.step(e.to, in)
		}
	case eventClosest:
		l.answerClosest(&e)
	case eventFault:
		l.faults.strike(e.index)
	case eventCall:
		l.calls.take(e.index)()
	case eventOutside:
		l.outside.take(e.index)()
	}
}

// step feeds one input to a site and carries out what it orders. A site that is
// down gets nothing.
func (l *lane) step(s int32, in grid.Input) {
	m := &l.members[s]
	if m.core == nil {
		return
	}
	m.core.Step(m.Clock.Local(l.now), in, l.outbox())
	l.carryOut(s)
	if m.away != nil && m.core != nil {
		if ended, ok := in.(*grid.TaskEnded); ok {
			m.away.acknowledge(ended.ID)
		}
	}
	l.owe(s)
}

// hand feeds an input about a message of that kind to the router if it speaks it,
// else to the site.
func (l *lane) hand(s int32, kind grid.Kind, in grid.Input) {
	m := &l.members[s]
	if m.router == nil || !m.router.Speaks(kind) {
		l.step(s, in)
		return
	}
	m.router.Step(m.Clock.Local(l.now), in, l.outbox())
	m.asked()
	l.carryRouter(s)
	l.armRouter(s)
}
