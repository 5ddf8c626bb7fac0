package grid

import (
	"errors"
	"fmt"
)

// Alarm is what something of a core waits for: one instant. Owner says whose it is.
// The zero value is not set.
type Alarm[T any] struct {
	Owner    T
	at       Time
	sequence uint64
	position int // in the heap, counted from 1; 0 when not set
}

// At returns when a goes off, or would have gone off when it was last set.
func (a *Alarm[T]) At() Time { return a.at }

// IsSet reports whether a is to go off.
func (a *Alarm[T]) IsSet() bool { return a.position != 0 }

// SetBy reports whether a is to go off at an instant at the latest.
func (a *Alarm[T]) SetBy(latest Time) bool { return a.IsSet() && a.at <= latest }

// Check returns an error unless a is SetBy an instant.
func (a *Alarm[T]) Check(latest Time) error {
	switch {
	case !a.IsSet():
		return errors.New("it has no timer")
	case a.at > latest:
		return fmt.Errorf("it is looked at again at %v, and was to be at %v", a.at, latest)
	}
	return nil
}

// Alarms is a heap of those that are set. It allocates only while it grows. The
// zero value is ready.
type Alarms[T any] struct {
	heap     []*Alarm[T]
	sequence uint64
}

// Len returns how many alarms are set.
func (as *Alarms[T]) Len() int { return len(as.heap) }

// Next returns the earliest instant, and Never if no alarm is set.
func (as *Alarms[T]) Next() Time {
	if len(as.heap) == 0 {
		return Never
	}
	return as.heap[0].at
}

// Set moves a to an instant; for Never it stops it. Alarms of one instant go off in
// the order in which they were set.
func (as *Alarms[T]) Set(a *Alarm[T], at Time) {
	if at == Never {
		as.Stop(a)
		return
	}
	as.sequence++
	a.at, a.sequence = at, as.sequence
	if a.position == 0 {
		as.heap = append(as.heap, a)
		a.position = len(as.heap)
	}
	as.down(as.up(a.position - 1))
}

// Stop makes sure that a does not go off.
func (as *Alarms[T]) Stop(a *Alarm[T]) {
	if a.position == 0 {
		return
	}
	i, last := a.position-1, len(as.heap)-1
	a.position = 0
	moved := as.heap[last]
	as.heap[last] = nil
	as.heap = as.heap[:last]
	if i < last {
		as.put(moved, i)
		as.down(as.up(i))
	}
}

// Pop stops and returns the earliest alarm if it is due at now, else nil.
func (as *Alarms[T]) Pop(now Time) *Alarm[T] {
	if as.Next() > now {
		return nil
	}
	a := as.heap[0]
	as.Stop(a)
	return a
}

func (as *Alarms[T]) put(a *Alarm[T], i int) {
	as.heap[i] = a
	a.position = i + 1
}

func (a *Alarm[T]) before(b *Alarm[T]) bool {
	return a.at < b.at || a.at == b.at && a.sequence < b.sequence
}

func (as *Alarms[T]) up(i int) int {
	a := as.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !a.before(as.heap[parent]) {
			break
		}
		as.put(as.heap[parent], i)
		i = parent
	}
	as.put(a, i)
	return i
}

func (as *Alarms[T]) down(i int) {
	a := as.heap[i]
	for {
		child := 2*i + 1
		if child >= len(as.heap) {
			break
		}
		if child+1 < len(as.heap) && as.heap[child+1].before(as.heap[child]) {
			child++
		}
		if !as.heap[child].before(a) {
			break
		}
		as.put(as.heap[child], i)
		i = child
	}
	as.put(a, i)
}
