package bank

import (
	"container/heap"

	"gridnode/internal/grid"
)

// alarm is an instant that something waits for.
type alarm struct {
	at       grid.Time
	sequence uint64 // of setting: alarms for one instant ring in this order
	position int    // in the heap, counted from 1; 0 when it is not set
	owner    any
}

// alarms is a heap of those that are set.
type alarms struct {
	list     []*alarm
	sequence uint64
}

// next returns the earliest instant, and grid.Never if no alarm is set.
func (s *alarms) next() grid.Time {
	if len(s.list) == 0 {
		return grid.Never
	}
	return s.list[0].at
}

// set moves a to at.
func (s *alarms) set(a *alarm, at grid.Time) {
	s.sequence++
	a.at, a.sequence = at, s.sequence
	if a.position == 0 {
		heap.Push(s, a)
		return
	}
	heap.Fix(s, a.position-1)
}

// stop makes sure that a does not ring.
func (s *alarms) stop(a *alarm) {
	if a.position > 0 {
		heap.Remove(s, a.position-1)
	}
}

// pop stops and returns the earliest alarm if it is due at now, else nil.
func (s *alarms) pop(now grid.Time) *alarm {
	if len(s.list) == 0 || s.list[0].at > now {
		return nil
	}
	return heap.Pop(s).(*alarm)
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *alarms) Len() int { return len(s.list) }

func (s *alarms) Less(i, j int) bool {
	a, b := s.list[i], s.list[j]
	return a.at < b.at || a.at == b.at && a.sequence < b.sequence
}

func (s *alarms) Swap(i, j int) {
	s.list[i], s.list[j] = s.list[j], s.list[i]
	s.list[i].position, s.list[j].position = i+1, j+1
}

func (s *alarms) Push(x any) {
	a := x.(*alarm)
	s.list = append(s.list, a)
	a.position = len(s.list)
}

func (s *alarms) Pop() any {
	last := len(s.list) - 1
	a := s.list[last]
	s.list[last] = nil
	s.list = s.list[:last]
	a.position = 0
	return a
}
