package site

import (
	"errors"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
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

// TestSpreadOutlivesItsClock: a job one of whose leases had ended while the daemon was down waits, after yet
// another restart, as long as its tasks were said to live, and no longer, however the clock was set.
func TestSpreadOutlivesItsClock(t *testing.T) {
	const lives = 10 * grid.Minute
	for _, by := range []grid.Time{0, 5 * grid.Hour, -5 * grid.Hour} {
		b := newBench(t, func(c *Config) { c.Parts = Everything })
		sp, now := b.site.spreads, 10*grid.Hour
		j := b.job(1, 2)
		j.Tasks, j.Spread = 2, true
		e := &entry{job: j, epoch: 1, state: Running, gang: &grid.Gang{Task: grid.TaskID{Job: j.ID, Epoch: 1}, Each: 1, Parts: []grid.GangPart{
			{Site: "there", Pilot: grid.Pilot{Site: "there", Key: 7}, Processors: 2},
		}}}
		sp.recovery.waiting = []*entry{e}
		for _, l := range []lease.Lease{{Source: "there", Key: 7}, {Source: "there", Key: 8}} { // the second is another job's
			sp.over(now, &lease.Ended{Lease: l, Gone: now + lives*grid.Time(l.Key-6)}, &b.out)
		}
		now += by
		if _, _, gone, err := sp.processors(now, e); err == nil || gone != now+lives || e.gone != gone {
			t.Errorf("set by %v: its tasks are dead %v after the restart, and it waits for %v (%v), want %v", by, gone-now, e.gone-now, err, lives)
		}
	}
}
