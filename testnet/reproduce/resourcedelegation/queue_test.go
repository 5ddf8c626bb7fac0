package resourcedelegation

import (
	"testing"

	"gridnode/grid"
)

// TestQueue: the first of three jobs starts at once, the second waits for ten seconds;
// the third comes five seconds after it and waits until the twentieth.
func TestQueue(t *testing.T) {
	var q queue
	q.add(0, 0)
	q.add(5*grid.Second, 20*grid.Second)
	q.add(0, 10*grid.Second)
	// Two come (1, 2), one leaves (2), one comes (2), one leaves (2), the last leaves (1).
	if got := q.overEvents(); got != 10.0/6 {
		t.Errorf("%v over events, want 10/6", got)
	}
	// The third is not overtaken, and overtakes nobody; a fourth overtakes it and the second.
	if got := q.overtaken(); got != 0 {
		t.Errorf("%v overtaken, want 0", got)
	}
	more := q
	more.add(6*grid.Second, 7*grid.Second)
	if got := more.overtaken(); got != 2.0/4 {
		t.Errorf("%v overtaken with a fourth job, want 2/4", got)
	}
	// Of the first two one is left, and the third is the second then.
	if got := q.overSubmissions(); got != 4.0/3 {
		t.Errorf("%v over submissions, want 4/3", got)
	}
}
