package site

import (
	"errors"
	"testing"

	"gridnode/grid"
)

// TestSpreadHasBounds: a job of more tasks than start together is refused as it is
// submitted. It would wait for those that nobody starts, and never end.
func TestSpreadHasBounds(t *testing.T) {
	for tasks, want := range map[int64]error{grid.RanksMax: nil, grid.RanksMax + 1: ErrInvalid} {
		b := newBench(t, func(c *Config) { c.Parts, c.Processors = Everything, 2*grid.RanksMax })
		j := b.job(1, tasks)
		j.Tasks, j.Spread = tasks, true
		b.step(&Submit{Token: 1, Job: j})
		if got := b.answers[1].(*Submitted).Err; !errors.Is(got, want) {
			t.Errorf("%d tasks: error %v, want %v", tasks, got, want)
		}
	}
}
