package node

import (
	"sync"

	"gridnode/grid"
)

// inboxMax bounds the inputs of others (messages of peers, requests of users) that
// wait for the loop. A peer that finds it full is read again later, a user is told
// that the node is busy. Answers to our own orders always find room: there are at
// most as many as we gave orders.
const inboxMax = 4096

// inbox is the queue of the loop's inputs. Safe for concurrent use.
type inbox struct {
	mu      sync.Mutex
	own     []grid.Input // what became of our orders: ends of tasks, look-ups, undelivered messages
	others  []grid.Input
	taken   int // of others, with the loop and not yet stepped
	closed  bool
	arrived chan struct{} // holds a token when something waits
}

func newInbox() *inbox { return &inbox{arrived: make(chan struct{}, 1)} }

// offer queues an input of others. It returns false if there is no room.
func (b *inbox) offer(in grid.Input) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.others)+b.taken >= inboxMax {
		return false
	}
	b.others = append(b.others, in)
	b.ring()
	return true
}

// put queues an answer to an order of ours.
func (b *inbox) put(in grid.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.own = append(b.own, in)
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// take moves up to limit inputs to dst, our own first: processors are free before
// anybody asks for them. What is left rings again.
func (b *inbox) take(dst []grid.Input, limit int) []grid.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own, dst = move(b.own, dst, limit)
	before := len(dst)
	b.others, dst = move(b.others, dst, limit-len(dst))
	b.taken = len(dst) - before
	if len(b.own)+len(b.others) > 0 {
		b.ring()
	}
	return dst
}

// move takes up to limit inputs off the front of from. The rest stays in place.
func move(from, to []grid.Input, limit int) (rest, moved []grid.Input) {
	k := min(len(from), limit)
	moved = append(to, from[:k]...)
	rest = from[:copy(from, from[k:])]
	clear(from[len(rest):])
	return rest, moved
}

// close refuses everything from now on and returns what waits.
func (b *inbox) close() []grid.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := append(b.own, b.others...)
	b.own, b.others = nil, nil
	return left
}
