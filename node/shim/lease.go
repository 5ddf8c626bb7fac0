package shim

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/grid"
)

// A lease is counted on a clock that goes on while the machine sleeps: somebody else goes by
// it who does not.

// sinceBoot returns that clock's time.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("shim: no clock: %v", err)) // every Linux since 2011 has it
	}
	return time.Duration(t.Nano())
}

// lease has t end after a span from now unless it is renewed; 0 for never.
func (s *shim) lease(t *task, span grid.Time) {
	if span == 0 {
		return
	}
	t.lease = sinceBoot() + span.Duration()
	s.after(span.Duration(), func() { s.lapse(t) })
}

// renewTask has a task go on for a span from now.
func (s *shim) renewTask(id string, span grid.Time) {
	if t := s.tasks[id]; t != nil && t.lease > 0 && t.killAt.IsZero() && t.collected.IsZero() {
		s.lease(t, max(span, 1))
	}
}

// lapse ends t if its lease is over. Its home counts on it: the grace is short.
func (s *shim) lapse(t *task) {
	if s.tasks[t.id] != t || t.over || t.lease == 0 || sinceBoot() < t.lease {
		return
	}
	t.lease = 0
	grace := min(s.config.Grace, grid.LeaseKill.Duration())
	if t.killAt.IsZero() && t.collected.IsZero() {
		s.endWithin(t, grace, CauseLease, "its lease ended: its home had not been heard of")
		return
	}
	// It is being ended already, perhaps with a longer grace.
	if at := time.Now().Add(grace); t.killAt.After(at) {
		t.killAt = at
	}
	s.after(grace, func() { s.kill(t) })
}
