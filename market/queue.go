package market

import "gridnode/grid"

// queue is a first-in first-out list of placements.
type queue struct {
	list []*placement
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(p *placement) { q.list = append(q.list, p) }

// pop returns nil for one that was taken out meanwhile.
func (q *queue) pop() *placement {
	p := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > len(q.list)/2 && q.head > 64 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return p
}

// remove takes p out wherever it stands.
func (q *queue) remove(p *placement) {
	for i := q.head; i < len(q.list); i++ {
		if q.list[i] == p {
			q.list[i] = nil
		}
	}
}

// stopWaiting takes p out of the queue it stands in, if it does.
func (p *placement) stopWaiting() {
	if p.waiting != nil {
		p.waiting.waiting.remove(p)
		p.waiting = nil
	}
}

// wake lets jobs ask whose turn has come. They are judged anew: much may have
// changed meanwhile.
func (b *broker) wake(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(b.memory.freed); i++ {
		e := b.memory.freed[i]
		e.freed = false
		for e.underWay < b.cfg.AsksPerPeer && e.waiting.len() > 0 {
			if p := e.waiting.pop(); p != nil {
				p.waiting = nil
				b.advance(now, p, out)
			}
		}
	}
	b.memory.freed = b.memory.freed[:0]
}
