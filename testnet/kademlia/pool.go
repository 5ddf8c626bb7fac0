package kademlia

import "gridnode/internal/grid"

// poolChunk is how many values a pool that has none to spare makes at once.
const poolChunk = 8

// pool hands out values and uses them again after a while, when nobody looks at
// them any more. The zero value is ready.
//
// A message that the network still carries then, which is rare, changes under way.
// That does no harm: a Find or Nodes names whom it is for or from and a token, so
// it is either what the receiver waits for or nothing to it.
type pool[T any] struct {
	queue []lent[T] // from head on, and around: those free first first
	head  int
}

type lent[T any] struct {
	value *T
	until grid.Time
}

// take returns a value, with whatever it was used for before, that is not handed
// out again before span has passed.
func (p *pool[T]) take(now, span grid.Time) *T {
	if len(p.queue) == 0 || p.queue[p.head].until > now {
		p.grow()
	}
	l := &p.queue[p.head]
	l.until = now.Add(span)
	p.head = (p.head + 1) % len(p.queue)
	return l.value
}

func (p *pool[T]) grow() {
	fresh := make([]T, poolChunk)
	queue := make([]lent[T], 0, len(p.queue)+poolChunk)
	for i := range fresh {
		queue = append(queue, lent[T]{value: &fresh[i]})
	}
	queue = append(queue, p.queue[p.head:]...)
	p.queue, p.head = append(queue, p.queue[:p.head]...), 0
}
