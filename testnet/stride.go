package testnet

import (
	"fmt"

	"gridnode/grid"
)

// A stride is a span shorter than any message is under way: what the sites of one lane do in
// it the others cannot learn of before it is over. So the lanes go through it side by side, each
// in the order of its own events (conservative synchronization: Chandy and Misra 1979). Each
// logs what it did; the logs are merged into the one order that a network with a single lane
// has, and everything that depends on that order is done then: later events get their numbers,
// what goes to other lanes goes there, observers are told. So how many lanes there are changes
// nothing.

// stride is what a lane logs of one.
type stride struct {
	end      grid.Time // at which it ends
	base     uint64    // the number of the last event that was inserted before it
	pushed   []uint64  // numbers of the events that the lane has inserted for itself; 0: not known yet
	items    []item
	ops      []op
	letters  []letter // for other lanes
	later    []func(now grid.Time)
	owing    []int32 // sites that had an input at this instant and are owed a Tick
	arrivals []arrival
	inbox    []letter // from other lanes

	// How far the merging of the logs has come.
	atItem, atOp, atPushed, atLetter, atLater int
}

// phase is what an item is about; within an instant they alternate as in Network.instant.
type phase uint8

const (
	phaseEvent phase = iota
	phaseSubmit
	phaseTick
)

// item is something that happened in a stride.
type item struct {
	at    grid.Time
	order uint64 // of an event
	ops   int32  // up to which they are the item's
	site  int32  // of a Tick
	phase phase
}

// opKind is what was done that depends on the one order.
type opKind uint8

const (
	opPush   opKind = iota // an event was inserted in the lane's own queue; at is its slot
	opLetter               // one is for another lane
	opLater                // something is to be done between strides
	opOwe                  // the site at gets a Tick
)

type op struct {
	at    int32
	kind  opKind
	class bool // of opPush: classOther
}

// letter is an event for another lane.
type letter struct {
	at    grid.Time
	order uint64 // class; once it is known with the number
	event event
}

// between has something done in the one order of events: at once, or between strides as if it
// had been done then. Its now is the instant of the event that it belongs to.
func (l *lane) between(do func(now grid.Time)) {
	if !l.apart {
		do(l.now)
		return
	}
	l.later = append(l.later, do)
	l.ops = append(l.ops, op{kind: opLater})
}

// log notes an event that is inserted in a stride. In the lane's own queue it has a number for
// the time being that is no greater than the one it gets, and puts it where that will.
func (l *lane) log(own bool, at grid.Time, class uint64, e *event) {
	if own {
		l.pushed = append(l.pushed, 0)
		slot := l.queue.push(at, class|(l.base+uint64(len(l.pushed))), *e)
		l.ops = append(l.ops, op{at: slot, kind: opPush, class: class != 0})
		return
	}
	l.mustFollow(at, e)
	l.letters = append(l.letters, letter{at, class, *e})
	l.ops = append(l.ops, op{kind: opLetter})
}

// mustFollow panics if an event for another lane, or one of what is done between strides, comes
// before the stride is over.
func (l *lane) mustFollow(at grid.Time, e *event) {
	if at < l.end {
		panic(fmt.Sprintf("testnet: what site %s does reaches site %s at %v, in a stride that ends at %v", l.members[e.from].ID, l.members[e.to].ID, at, l.end))
	}
}

// through goes through a stride.
func (l *lane) through() {
	l.apart = true
	arrivals := l.arrivals
	for {
		at := l.queue.next()
		if len(arrivals) > 0 {
			at = min(at, arrivals[0].job.Submit)
		}
		if at >= l.end {
			break
		}
		l.now = max(l.now, at)
		for {
			if l.queue.next() <= l.now {
				order, e := l.queue.pop()
				l.happen(e)
				l.did(item{order: order, phase: phaseEvent})
			} else if len(arrivals) > 0 && arrivals[0].job.Submit <= l.now {
				a := arrivals[0]
				arrivals = arrivals[1:]
				l.submit(a)
				l.did(item{phase: phaseSubmit})
			} else if len(l.owing) > 0 {
				l.settle()
			} else {
				break
			}
		}
	}
	l.apart = false
}

// settle gives every site of the lane that had an input its Tick.
func (l *lane) settle() {
	for i := 0; i < len(l.owing); i++ {
		l.tick(l.owing[i])
		l.did(item{site: l.owing[i], phase: phaseTick})
	}
	l.owing = l.owing[:0]
}

// did ends an item.
func (l *lane) did(i item) {
	i.at, i.ops = l.now, int32(len(l.ops))
	l.items = append(l.items, i)
}

// begin begins a stride.
func (w *stride) begin(end grid.Time, base uint64) { w.end, w.base = end, base }

// close forgets the logs.
func (w *stride) close() {
	clear(w.letters)
	clear(w.later)
	clear(w.arrivals)
	clear(w.inbox)
	*w = stride{
		pushed: w.pushed[:0], items: w.items[:0], ops: w.ops[:0], letters: w.letters[:0], later: w.later[:0],
		owing: w.owing[:0], arrivals: w.arrivals[:0], inbox: w.inbox[:0],
	}
}
