package market

import "gridnode/internal/grid"

// alarmed is something that waits for an instant.
type alarmed interface {
	due(a *Agent, now grid.Time, out *grid.Outbox)
}

// timer is embedded in what waits; at most one instant each.
type timer struct {
	at       grid.Time
	sequence uint64 // of setting; timers for one instant fire in this order
	position int    // in the heap, counted from 1; 0 when not set
	owner    alarmed
}

// timers is a binary heap of those that are set, the earliest first.
type timers struct {
	heap     []*timer
	sequence uint64
}

// next returns the earliest instant, and grid.Never if no timer is set.
func (ts *timers) next() grid.Time {
	if len(ts.heap) == 0 {
		return grid.Never
	}
	return ts.heap[0].at
}

// set moves t to at. For grid.Never it stops it.
func (ts *timers) set(t *timer, at grid.Time) {
	if at == grid.Never {
		ts.stop(t)
		return
	}
	ts.sequence++
	t.at, t.sequence = at, ts.sequence
	if t.position == 0 {
		ts.heap = append(ts.heap, t)
		t.position = len(ts.heap)
	}
	ts.down(ts.up(t.position - 1))
}

// stop makes sure that t does not fire.
func (ts *timers) stop(t *timer) {
	if t.position == 0 {
		return
	}
	i, last := t.position-1, len(ts.heap)-1
	t.position = 0
	moved := ts.heap[last]
	ts.heap[last] = nil
	ts.heap = ts.heap[:last]
	if i < last {
		ts.put(moved, i)
		ts.down(ts.up(i))
	}
}

// pop stops and returns the earliest timer if it is due at now, else nil.
func (ts *timers) pop(now grid.Time) *timer {
	if ts.next() > now {
		return nil
	}
	t := ts.heap[0]
	ts.stop(t)
	return t
}

func (ts *timers) put(t *timer, i int) {
	ts.heap[i] = t
	t.position = i + 1
}

func before(a, b *timer) bool {
	return a.at < b.at || a.at == b.at && a.sequence < b.sequence
}

func (ts *timers) up(i int) int {
	t := ts.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !before(t, ts.heap[parent]) {
			break
		}
		ts.put(ts.heap[parent], i)
		i = parent
	}
	ts.put(t, i)
	return i
}

func (ts *timers) down(i int) {
	t := ts.heap[i]
	for {
		child := 2*i + 1
		if child >= len(ts.heap) {
			break
		}
		if child+1 < len(ts.heap) && before(ts.heap[child+1], ts.heap[child]) {
			child++
		}
		if !before(ts.heap[child], t) {
			break
		}
		ts.put(ts.heap[child], i)
		i = child
	}
	ts.put(t, i)
}
