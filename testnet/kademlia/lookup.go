package kademlia

import "gridnode/internal/grid"

// state is what became of a candidate.
type state uint8

const (
	heard    state = iota // not asked
	waiting               // asked
	answered              // and has answered
	failed                // was asked and did not answer
)

type candidate struct {
	contact
	state state
}

// candidatesMax bounds what a look-up remembers: far more than any look-up in a
// network of a million sites hears of before it ends.
const candidatesMax = 256

// lookup is one iterative search for the k sites nearest to key.
type lookup struct {
	asked      grid.Key    // what was to be looked up
	key        grid.Key    // where that is
	head       uint64      // of key
	candidates []candidate // nearest first, each peer once
	spare      []candidate // the list before
	waiting    int
	followUp   bool // the β nearest have answered: ask the rest of the k nearest
	requests   int
}

// hear merges peers, nearest first, into the candidates, but for self. Beyond
// candidatesMax it keeps only those that were asked and may still answer.
func (l *lookup) hear(list []contact, self *Peer) {
	old, merged := l.candidates, l.spare[:0]
	for len(list) > 0 && len(merged) < candidatesMax {
		switch c := list[0]; {
		case c.peer == self, len(old) > 0 && old[0].peer == c.peer:
			list = list[1:]
		case len(old) > 0 && old[0].nearer(l.head, &l.key, c):
			merged, old = append(merged, old[0]), old[1:]
		default:
			merged, list = append(merged, candidate{contact: c}), list[1:]
		}
	}
	room := min(candidatesMax-len(merged), len(old))
	merged = append(merged, old[:room]...)
	for _, c := range old[room:] {
		if c.state == waiting {
			merged = append(merged, c)
		}
	}
	l.candidates, l.spare = merged, l.candidates
}

// mark sets the state of a candidate that was asked.
func (l *lookup) mark(p *Peer, s state) {
	for i := range l.candidates {
		if c := &l.candidates[i]; c.peer == p && c.state == waiting {
			c.state = s
			l.waiting--
			return
		}
	}
}

// converge begins the second part of the look-up if the first has ended, and
// reports whether it did. Like kad-dht it forgets the requests that are under way
// then: those to one of the k nearest are sent again.
func (l *lookup) converge(beta int) bool {
	if l.followUp || !l.settled(beta) {
		return false
	}
	l.followUp = true
	for i := range l.candidates {
		if c := &l.candidates[i]; c.state == waiting {
			c.state = heard
		}
	}
	l.waiting = 0
	return true
}

// next returns the candidate to ask now, or nil; done means that the look-up has
// ended.
func (l *lookup) next(k, alpha int) (p *Peer, done bool) {
	near := 0
	for i := range l.candidates {
		c := &l.candidates[i]
		if c.state == failed {
			continue
		}
		if near++; near > k && l.followUp {
			break
		}
		if c.state == heard && (l.followUp || l.waiting < alpha) {
			c.state = waiting
			l.waiting++
			l.requests++
			return c.peer, false
		}
	}
	return nil, l.waiting == 0
}

// settled reports whether the beta nearest candidates that may be alive have all
// answered.
func (l *lookup) settled(beta int) bool {
	near := 0
	for i := range l.candidates {
		switch l.candidates[i].state {
		case failed:
			continue
		case heard, waiting:
			return false
		}
		if near++; near == beta {
			return true
		}
	}
	return true
}
