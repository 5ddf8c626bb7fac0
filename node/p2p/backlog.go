package p2p

import (
	"slices"
	"sync"
)

// backlog is orders of one kind, of which a few are carried out at a time, each in a
// goroutine of the network. The others wait for their turn, up to a bound.
type backlog[O any] struct {
	n     *Network
	alive int     // orders carried out at a time
	most  int     // orders that wait
	carry func(O) // carries one out, however it ends

	mu      sync.Mutex
	running int
	waiting []O
}

// add has an order carried out when its turn comes. It returns false if the network is
// closed or too many wait: then nobody carries it out.
func (b *backlog[O]) add(o O) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.n.ctx.Err() != nil || len(b.waiting) >= b.most:
		return false
	case b.running >= b.alive:
		b.waiting = append(b.waiting, o)
	default:
		b.running++
		b.n.wg.Go(func() { b.work(o) })
	}
	return true
}

// work carries an order out and then those that wait.
func (b *backlog[O]) work(o O) {
	for more := true; more; o, more = b.next() {
		b.carry(o)
	}
}

// next returns the order whose turn it is, or that there is none.
func (b *backlog[O]) next() (o O, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || b.n.ctx.Err() != nil {
		b.running--
		return o, false
	}
	o = b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	return o, true
}
