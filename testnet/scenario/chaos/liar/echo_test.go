package liar

import (
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/market/keepalive"
)

// TestAltered: what is altered is of the same kind and says something else, and what was said stays as it is.
func TestAltered(t *testing.T) {
	task := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 2}
	for _, m := range []grid.Message{
		&market.Acknowledge{Task: task}, &market.Acknowledge{Task: task, Hold: 3}, &market.JobCompletion{Task: task, Losses: 1}, &market.Cancel{Task: task, Hold: 3},
		&market.JobSubmission{Job: &grid.Job{ID: task.Job}, Epoch: 2, Hold: 3}, &lease.Claim{Number: 1, Epoch: 2}, &lease.Renew{Number: 1, Epoch: 2},
		&lease.Release{Number: 1, Epoch: 2}, &lease.Grant{Number: 1, Epoch: 2}, &lease.Renewed{Number: 1, Epoch: 2}, &lease.Released{Number: 1, Epoch: 2},
		&lease.Revoke{Number: 1, Epoch: 2}, &fee.Advance{Number: 1, Epoch: 2}, &fee.Advances{Number: 1, Epoch: 2}, &fee.Bill{Number: 1, Epoch: 2},
		&fee.Agreed{Number: 1, Epoch: 2}, &bank.Drawn{Task: task}, &bank.Settled{Task: task}, &bank.Redeemed{Task: task},
	} {
		list := altered(m)
		if len(list) == 0 {
			t.Errorf("%T is not altered", m)
		}
		for _, other := range list {
			if other == m || other.MessageKind() != m.MessageKind() {
				t.Errorf("%T becomes %T", m, other)
			}
		}
		if !Repeatable(m) {
			t.Errorf("%T is not said again", m)
		}
	}
	for _, m := range []grid.Message{&market.Negotiate{}, &keepalive.Renew{}, &lease.Request{}, &bank.Draw{}, &market.JobCompletion{Losses: 1}} {
		if !Repeatable(m) || personal(m) {
			t.Errorf("%T is said again: %t, and by others: %t", m, Repeatable(m), personal(m))
		}
	}
}
