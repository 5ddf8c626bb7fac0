package node

import (
	"sync"
	"time"

	"gridnode/grid"
)

// inboxMax bounds the inputs of others that wait for the loop: the messages of peers,
// and as many requests of users. Beyond it each has room for a few still (laneFree). A
// peer that finds no room is read again later, a user is told that the node is busy.
// Answers to our own orders always find room: there are at most as many as we gave
// orders.
const inboxMax = 4096

// inbox is the queue of the loop's inputs. The loop's time is shared evenly between
// the wire and the users of this machine, and among those of each. Safe for concurrent
// use.
type inbox struct {
	mu      sync.Mutex
	own     []grid.Input // what became of our orders: ends of tasks, look-ups, undelivered messages
	wire    lanes        // by peer
	users   lanes        // by user
	closed  bool
	arrived chan struct{} // holds a token when something waits
}

func newInbox() *inbox {
	return &inbox{wire: newLanes(), users: newLanes(), arrived: make(chan struct{}, 1)}
}

// deliver queues a message of a peer. It returns false if there is no room.
func (b *inbox) deliver(d *grid.Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offer(&b.wire, string(d.From), d)
}

// order queues an input of a peer that has waited for its turn already: the session it
// is of bounds how many there are.
func (b *inbox) order(from grid.SiteID, in grid.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(&b.wire, string(from), in)
	}
}

// ask queues a request of a user. It returns false if there is no room.
func (b *inbox) ask(user string, in grid.Input) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offer(&b.users, user, in)
}

func (b *inbox) offer(to *lanes, asker string, in grid.Input) bool {
	if b.closed || !to.room(asker, inboxMax) {
		return false
	}
	b.add(to, asker, in)
	return true
}

func (b *inbox) add(to *lanes, asker string, in grid.Input) {
	if to.count == 0 { // what it did not use is gone
		to.spent = max(to.spent, b.wire.spent, b.users.spent)
	}
	to.add(asker, in)
	b.ring()
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

// payer is for whom the loop makes a step.
type payer struct {
	among *lanes
	of    *lane
}

// takeOwn moves what became of our orders to dst, at most limit. It comes first: processors
// are free before anybody asks for them.
func (b *inbox) takeOwn(dst []grid.Input, limit int) []grid.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own, dst = move(b.own, dst, limit)
	return dst
}

// next returns the input of others whose turn it is, nil if none waits. The loop pays
// for it when it has been stepped.
func (b *inbox) next() (grid.Input, payer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := &b.wire
	if from.count == 0 || b.users.count > 0 && b.users.spent < from.spent {
		from = &b.users
	}
	if from.count == 0 {
		return nil, payer{}
	}
	in, of := from.next()
	return in, payer{from, of}
}

// pay charges a step that took some time to who asked for it.
func (b *inbox) pay(by payer, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	by.among.charge(by.of, took)
}

// rest rings again if something waits still.
func (b *inbox) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.own)+b.wire.count+b.users.count > 0 {
		b.ring()
	}
}

// move takes up to limit inputs off the front of from. The rest stays in place.
func move(from, to []grid.Input, limit int) (rest, moved []grid.Input) {
	k := min(len(from), limit)
	moved = append(to, from[:k]...)
	rest = from[:copy(from, from[k:])]
	clear(from[len(rest):])
	return rest, moved
}

// close refuses everything from now on.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.own, b.wire, b.users = nil, newLanes(), newLanes()
}
