package testnet

import (
	"testing"

	"gridnode/grid"
)

// TestCoincide: a message may arrive with the receiver's timer, or a microsecond beside it,
// if that goes off while it could arrive.
func TestCoincide(t *testing.T) {
	n, err := New(Config{Seed: 1, Link: Link{LatencyMin: 10, LatencyMax: 1000, Coincide: million}})
	if err != nil {
		t.Fatal(err)
	}
	n.members = make([]member, 2)
	for timer, beside := range map[grid.Time]bool{grid.Never: false, 5: false, 500: true, 5000: false} {
		n.members[1].armed = timer
		seen := map[grid.Time]bool{}
		for range 100 {
			seen[n.lanes[0].wires.coincide(0, 1, 77)] = true
		}
		if beside && (len(seen) != 3 || !seen[timer-1] || !seen[timer] || !seen[timer+1]) || !beside && (len(seen) != 1 || !seen[77]) {
			t.Errorf("timer at %d: arrives at %v", timer, seen)
		}
	}
}
