package kademlia

import (
	"slices"

	"gridnode/grid"
	"gridnode/node/p2p/refresh"
)

// state is what became of a candidate.
type state uint8

const (
	heard    state = iota // not asked
	waiting               // asked
	answered              // and has answered
	passed                // was asked, and is not waited for any longer
	failed                // was asked and did not answer
)

type candidate struct {
	contact
	state state
}

// candidatesMax bounds what a look-up remembers: far more than any look-up in a
// network of a million sites hears of before it ends.
const candidatesMax = 256

// candidatesUsual is as many as most look-ups hear of.
const candidatesUsual = 64

// stage is how far a look-up is.
type stage uint8

const (
	searching stage = iota // for nearer sites
	closing                // the β nearest have answered: it waits for the other answers, if it is thorough
	following              // it asks those of the k nearest that had not answered
	ended
)

// lookup is one iterative search for the k sites nearest to key.
type lookup struct {
	asked      grid.Key    // what was to be looked up, unless own
	key        grid.Key    // where that is
	head       uint64      // of key
	candidates []candidate // nearest first, each peer once; after the search the k nearest, which are the answer
	waiting    int         // requests under way
	stage      stage
	own        bool // of the node itself: nobody is told
	thorough   bool // it asks all of the k nearest, which come to know the node by that
	young      bool // it does so unless the network has grown
	requests   int
}

// hear merges at most KMax peers, nearest first, into the candidates, but for self.
// Beyond candidatesMax it keeps only those that were asked and may still answer.
func (l *lookup) hear(list []contact, self *Peer) {
	var fresh [KMax]contact
	n, i := 0, 0
	for _, c := range list {
		if c.peer == self {
			continue
		}
		for i < len(l.candidates) && l.candidates[i].peer != c.peer && l.candidates[i].nearer(l.head, &l.key, c) {
			i++
		}
		if i < len(l.candidates) && l.candidates[i].peer == c.peer {
			i++
			continue
		}
		fresh[n] = c
		n++
	}
	if n == 0 {
		return
	}
	old := len(l.candidates) - 1
	l.candidates = append(l.candidates, make([]candidate, n)...)
	for at := len(l.candidates) - 1; n > 0; at-- { // from behind, so that each moves once
		if old >= 0 && fresh[n-1].nearer(l.head, &l.key, l.candidates[old].contact) {
			l.candidates[at] = l.candidates[old]
			old--
		} else {
			n--
			l.candidates[at] = candidate{contact: fresh[n]}
		}
	}
	if len(l.candidates) > candidatesMax {
		kept := l.candidates[:candidatesMax]
		for _, c := range l.candidates[candidatesMax:] {
			if c.state == waiting || c.state == passed {
				kept = append(kept, c)
			}
		}
		l.candidates = kept
	}
}

// conclude notes what became of a request: an answer, or none.
func (l *lookup) conclude(p *Peer, answer *Nodes, self *Peer) {
	l.waiting--
	if l.stage != searching {
		return
	}
	for i := range l.candidates {
		if c := &l.candidates[i]; c.peer == p {
			c.state = failed
			if answer != nil {
				c.state = answered
			}
			break
		}
	}
	if answer != nil {
		l.hear(answer.Peers[:answer.Count], self)
	}
}

// passOver has the look-up wait no longer for a peer, and reports whether it did. A thorough one
// waits for everybody.
func (l *lookup) passOver(p *Peer) bool {
	i := slices.IndexFunc(l.candidates, func(c candidate) bool { return c.peer == p && c.state == waiting })
	if l.thorough || l.stage != searching || i < 0 {
		return false
	}
	l.candidates[i].state = passed
	return true
}

// passedOver reports whether the look-up has passed over a peer, which has not answered since.
func (l *lookup) passedOver(p *Peer) bool {
	return slices.ContainsFunc(l.candidates, func(c candidate) bool { return c.peer == p && c.state == passed })
}

// proceed goes over to the next stage if this one has ended. A look-up ends when the beta
// nearest that it waits for have answered, as live ones are made to. A thorough one is kad-dht's
// own: it takes no notice of answers that come later, but waits for them, and then asks those of
// the k nearest again. One that has passed somebody over ends, too.
func (l *lookup) proceed(k, beta int) {
	if l.stage == searching && l.settled(beta) {
		l.stage = closing
		near := l.candidates[:0]
		for _, c := range l.candidates {
			if c.state != failed && len(near) < k {
				near = append(near, c)
			}
		}
		l.candidates = near
	}
	switch {
	case l.stage != closing:
	case !l.thorough && !(l.young && !l.grown(k)) || slices.ContainsFunc(l.candidates, func(c candidate) bool { return c.state == passed }):
		l.stage = ended
	case l.waiting == 0:
		l.stage = following
	}
}

// grown reports whether the k nearest say that the network is large.
func (l *lookup) grown(k int) bool {
	return len(l.candidates) == k && prefix(&l.key, &l.candidates[k-1].peer.Key) >= refresh.Grown
}

// next returns the candidate to ask now, or nil; done means that the look-up has
// ended.
func (l *lookup) next(alpha int) (p *Peer, done bool) {
	if l.stage == closing || l.stage == searching && l.waiting >= alpha {
		return nil, false
	}
	if l.stage == ended {
		return nil, true
	}
	for i := range l.candidates {
		c := &l.candidates[i]
		switch {
		case l.stage == searching && c.state == heard:
			c.state = waiting
		case l.stage == following && (c.state == heard || c.state == waiting):
			c.state = answered // whatever it says
		default:
			continue
		}
		l.waiting++
		l.requests++
		return c.peer, false
	}
	return nil, l.stage == following && l.waiting == 0
}

// settled reports whether the beta nearest candidates that may be alive have all
// answered, but for those passed over.
func (l *lookup) settled(beta int) bool {
	near := 0
	for i := range l.candidates {
		switch l.candidates[i].state {
		case failed, passed:
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
