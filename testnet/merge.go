package testnet

import (
	"fmt"

	"gridnode/grid"
)

// merge carries out what depends on the one order of events, in that order, and so ends a stride.
func (n *Network) merge() {
	n.merging = true
	for {
		at := grid.Never
		for _, l := range n.lanes {
			if l.atItem < len(l.items) {
				at = min(at, l.items[l.atItem].at)
			}
		}
		if at == grid.Never {
			break
		}
		n.now = at
		for _, l := range n.lanes {
			l.now = at
		}
		n.mergeInstant()
	}
	n.merging = false
	for _, l := range n.lanes {
		l.takeIn()
	}
}

// mergeInstant does so for one instant, in the order of Network.instant.
func (n *Network) mergeInstant() {
	for {
		if l := n.firstEvent(); l != nil {
			n.events++
			n.redo(l)
		} else if len(n.submitted) > 0 && n.submits(n.submitted[0]) {
			l := n.submitted[0]
			n.submitted = n.submitted[1:]
			n.events++
			n.redo(l)
		} else if len(n.turns) > 0 {
			for i := 0; i < len(n.turns); i++ {
				l := n.laneOf(n.turns[i])
				if next := &l.items[l.atItem]; next.phase != phaseTick || next.site != n.turns[i] {
					panic(fmt.Sprintf("testnet: site %s has had no Tick at %v", n.members[n.turns[i]].ID, n.now))
				}
				n.redo(l)
			}
			n.turns = n.turns[:0]
		} else {
			return
		}
	}
}

// submits reports whether what a lane did next is a submission of this instant.
func (n *Network) submits(l *lane) bool {
	return l.atItem < len(l.items) && l.items[l.atItem].phase == phaseSubmit && l.items[l.atItem].at == n.now
}

// firstEvent returns the lane whose next event comes first at this instant, nil if none has any.
func (n *Network) firstEvent() (first *lane) {
	var least uint64
	for _, l := range n.lanes {
		if l.atItem == len(l.items) {
			continue
		}
		i := &l.items[l.atItem]
		if i.at != n.now || i.phase != phaseEvent {
			continue
		}
		if order := l.numbered(i.order); first == nil || order < least {
			first, least = l, order
		}
	}
	return first
}

// numbered returns the rank of an event, with its number if it was inserted in this stride.
func (w *stride) numbered(order uint64) uint64 {
	if number := order &^ classOther; number > w.base {
		return order&classOther | w.pushed[number-w.base-1]
	}
	return order
}

// redo does what depends on the one order for the next item of a lane.
func (n *Network) redo(l *lane) {
	end := int(l.items[l.atItem].ops)
	l.atItem++
	for ; l.atOp < end; l.atOp++ {
		switch o := &l.ops[l.atOp]; o.kind {
		case opPush:
			n.inserted++
			l.pushed[l.atPushed] = n.inserted
			l.atPushed++
			var class uint64
			if o.class {
				class = classOther
			}
			l.queue.renumber(o.at, class|(l.base+uint64(l.atPushed)), class|n.inserted)
		case opLetter:
			n.inserted++
			letter := l.letters[l.atLetter]
			letter.order |= n.inserted
			to := n.laneOf(letter.event.to)
			to.inbox = append(to.inbox, letter)
			l.atLetter++
		case opLater:
			l.later[l.atLater](n.now)
			l.atLater++
		case opOwe:
			n.turns = append(n.turns, o.at)
		}
	}
}

// takeIn ends a stride for a lane: its queue has the events that others have for it.
func (l *lane) takeIn() {
	l.queue.renumbered()
	for i := range l.inbox {
		l.queue.push(l.inbox[i].at, l.inbox[i].order, l.inbox[i].event)
	}
	l.close()
}
