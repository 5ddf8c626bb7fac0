package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// TestTitanWeighsDeadlines: where TITAN orders the queue, a job that is to run here
// and must be done soon goes first, before a crash and after it, although it stands
// behind; and the market is not asked. Under EASY the order is that of submission.
func TestTitanWeighsDeadlines(t *testing.T) {
	for _, discipline := range []lrms.Discipline{lrms.TITAN, lrms.EASY} {
		b := newBench(t, func(cfg *Config) { cfg.Discipline = discipline })
		long := b.job(2, 4)
		long.Estimate = 1000 * grid.Second
		long.Work = grid.WorkOf(long.Estimate, 0, b.cfg.Rating)
		pressed := b.job(3, 4)
		pressed.Deadline = b.now + 250*grid.Second
		b.step(&Submit{Job: b.job(1, 4)})
		b.step(&Submit{Job: long}, &Submit{Job: pressed})
		b.now += 10 * grid.Second
		b.crash(b.ended(b.started[0], 0))
		b.want(1, Done)
		first, second := uint64(3), uint64(2)
		if discipline == lrms.EASY {
			first, second = second, first
		}
		b.want(first, Running)
		b.want(second, Queued)
	}
}

// TestMarketed: only TITAN keeps a job with a deadline from the market, and only if
// nothing else takes it there.
func TestMarketed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*grid.Job)
		titan  bool
		easy   bool
	}{
		{"nothing asked", func(*grid.Job) {}, false, false},
		{"deadline here", func(j *grid.Job) { j.Deadline = 5 }, false, true},
		{"deadline here, by name", func(j *grid.Job) { j.Deadline, j.Site = 5, "here" }, false, true},
		{"deadline and budget", func(j *grid.Job) { j.Deadline, j.Budget = 5, 0 }, true, true},
		{"deadline, cheapest", func(j *grid.Job) { j.Deadline, j.Goal = 5, grid.GoalCost }, true, true},
		{"deadline elsewhere", func(j *grid.Job) { j.Deadline, j.Site = 5, "there" }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for discipline, want := range map[lrms.Discipline]bool{lrms.TITAN: tt.titan, lrms.EASY: tt.easy} {
				b := newBench(t, func(cfg *Config) { cfg.Discipline = discipline })
				job := b.job(1, 1)
				tt.change(job)
				if got := b.site.marketed(job); got != want {
					t.Errorf("%v: marketed is %v, want %v", discipline, got, want)
				}
			}
		})
	}
}
