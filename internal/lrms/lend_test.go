package lrms

import (
	"testing"

	"gridnode/grid"
)

// TestRefusedLendKeepsThePlan: a refused loan changes nothing. When the task that the
// head waits for overruns its estimate, jobs behind the head still get the room.
func TestRefusedLendKeepsThePlan(t *testing.T) {
	c, err := New(Config{Processors: 4, Discipline: EASY})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(n int, processors int64, estimate grid.Time) {
		t.Helper()
		if err := c.Submit(c.now, Request{ID: id(n), Processors: processors, Estimate: estimate}); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(0)
	submit(1, 1, 2)
	submit(2, 2, 3)
	c.Schedule(0, nil)
	submit(3, 2, 1) // the head: at 2, when the first should end, it takes all that is idle
	submit(4, 1, 3)
	if started := c.Schedule(0, nil); len(started) != 0 {
		t.Fatalf("started %v", started)
	}
	if c.Lend(1, Request{ID: id(5), Processors: 2, Estimate: 1}) == nil {
		t.Fatal("lent two processors of one that is idle")
	}
	// The first overruns: the head cannot start before 3, when there are three processors.
	if started := c.Schedule(2, nil); len(started) != 1 || started[0].ID != id(4) {
		t.Errorf("started %v, want the job behind the head", started)
	}
}
