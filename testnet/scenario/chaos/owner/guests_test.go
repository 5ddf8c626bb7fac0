package owner

import (
	"testing"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
)

// TestGuestsSee: a job that begins where its owner holds it is seen, and none that he holds no more,
// or that was placed anew.
func TestGuestsSee(t *testing.T) {
	id := grid.TaskID{Job: grid.JobID{Lo: 7}, Epoch: 2}
	for _, tt := range []struct {
		name   string
		begins grid.TaskID
		frees  bool
		seen   bool
	}{
		{"while it is held", id, false, true},
		{"when it is held no more", id, true, false},
		{"anew", grid.TaskID{Job: id.Job, Epoch: 3}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := lonely(t)
			c := testnet.Check(n, []int64{1}, nil)
			w := NewGuests(Sight{N: n, Checks: c})
			w.asked[guestTokens] = guest{0, id}
			w.answer(0, 0, grid.Answer{Token: guestTokens, Value: &site.GuestsChanged{Jobs: 1}})
			if tt.frees {
				w.Release(0, id.Job)
			}
			w.start(0, &testnet.Execution{ID: tt.begins, Job: &grid.Job{ID: id.Job}})
			if err := c.Violation(0); (err != nil) != tt.seen {
				t.Errorf("%v, want a violation: %t", err, tt.seen)
			}
		})
	}
}
