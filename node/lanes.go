package node

import (
	"slices"
	"time"

	"gridnode/grid"
)

// Bounds on what waits for the loop.
const (
	// laneMax bounds the inputs of one asker: a second of an honest peer's.
	laneMax = 2048
	// laneFree is how many inputs of one asker find room however many others wait. It is
	// why nobody's flood can keep anybody else's message out.
	laneFree = 16
	// lanesMax bounds those whose inputs wait, on the wire and here: with laneFree each
	// they hold 65,536 inputs at most.
	lanesMax = 4096
	// freshMax is how many that have begun to ask come before one that asks all the time.
	freshMax = 8
	// laneQuantum is how much of the loop's time one asker has until others come.
	laneQuantum = 250 * time.Microsecond
	// laneDebtMax bounds what one asker can owe for an input that took long.
	laneDebtMax = 20 * laneQuantum
	// stepMin is the least that an input counts as, also where no time passes.
	stepMin = time.Microsecond
)

// lane is the inputs of one asker (a peer, or a user of this machine) that wait for
// the loop, in order.
type lane struct {
	asker   string
	waiting []grid.Input
	taken   int           // of waiting, from the front
	credit  time.Duration // of the loop's time; below zero it owes
	listed  bool
}

func (l *lane) len() int { return len(l.waiting) - l.taken }

func (l *lane) push(in grid.Input) {
	if l.taken > 0 && l.taken >= len(l.waiting)/2 {
		k := copy(l.waiting, l.waiting[l.taken:])
		clear(l.waiting[k:])
		l.waiting, l.taken = l.waiting[:k], 0
	}
	l.waiting = append(l.waiting, in)
}

func (l *lane) pop() grid.Input {
	in := l.waiting[l.taken]
	l.waiting[l.taken] = nil
	if l.taken++; l.taken == len(l.waiting) {
		l.waiting, l.taken = l.waiting[:0], 0
	}
	return in
}

// lanes share the loop's time between askers by deficit round robin (Shreedhar and
// Varghese 1995): an input costs the time that its step took, and who has spent its
// quantum waits for a round of the others. Who has not asked for a while comes before
// those who ask all the time, as sparse flows do in FQ-CoDel (RFC 8290).
type lanes struct {
	of     map[string]*lane
	fresh  []*lane // that have begun to ask, each until its quantum is spent
	rounds []*lane
	begun  int           // lanes of fresh that have spent theirs since one of rounds has
	count  int           // inputs that wait
	spent  time.Duration // of the loop's time
}

func newLanes() lanes { return lanes{of: make(map[string]*lane)} }

// add queues an input of an asker behind its others.
func (s *lanes) add(asker string, in grid.Input) {
	l := s.of[asker]
	if l == nil {
		l = &lane{asker: asker, credit: laneQuantum}
		s.of[asker] = l
	}
	if !l.listed {
		l.listed = true
		s.fresh = append(s.fresh, l)
	}
	l.push(in)
	s.count++
}

// room reports whether an asker may queue one more, if all together should be most at
// most.
func (s *lanes) room(asker string, most int) bool {
	l := s.of[asker]
	if l == nil {
		if len(s.of) >= lanesMax {
			s.forget()
		}
		return len(s.of) < lanesMax
	}
	return l.len() < laneFree || l.len() < laneMax && s.count < most
}

// next takes the input whose turn it is. There must be one.
func (s *lanes) next() (grid.Input, *lane) {
	for {
		from := &s.fresh
		if len(s.fresh) == 0 || s.begun >= freshMax && len(s.rounds) > 0 {
			from = &s.rounds
		}
		l := (*from)[0]
		if l.credit > 0 && l.len() > 0 {
			s.count--
			return l.pop(), l
		}
		*from = drop(*from)
		switch {
		case from == &s.fresh:
			s.begun++
		case l.credit > 0: // it had its round without asking
			l.listed = false
			delete(s.of, l.asker)
			continue
		case l.len() > 0:
			s.begun = 0
		}
		if l.credit <= 0 {
			l.credit += laneQuantum
		}
		s.rounds = append(s.rounds, l)
	}
}

// forget drops those of whom nothing waits and who owe nothing.
func (s *lanes) forget() {
	s.rounds = slices.DeleteFunc(s.rounds, func(l *lane) bool {
		idle := l.len() == 0 && l.credit > 0
		if idle {
			l.listed = false
			delete(s.of, l.asker)
		}
		return idle
	})
}

// drop removes the first of a list.
func drop(list []*lane) []*lane {
	k := copy(list, list[1:])
	list[k] = nil
	return list[:k]
}

// charge has an asker pay for a step.
func (s *lanes) charge(l *lane, took time.Duration) {
	took = max(took, stepMin)
	s.spent += took
	l.credit = max(l.credit-took, -laneDebtMax)
}
