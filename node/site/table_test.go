package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/node/guest"
)

// TestAudit: what is counted wrong, kept for nobody or waited for in vain is found.
func TestAudit(t *testing.T) {
	promised := lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: 9}, Epoch: 1}, Processors: 1, Estimate: grid.Hour}
	for _, tt := range []struct {
		name  string
		spoil func(b *bench)
		wrong bool
	}{
		{"nothing", func(*bench) {}, false},
		{"a job too many", func(b *bench) { b.site.jobs.live++ }, true},
		{"a user who has none", func(b *bench) { b.site.jobs.users["eve"]++ }, true},
		{"processors promised to nobody", func(b *bench) { _, _ = b.site.cluster.Reserve(b.now, promised, grid.Never) }, true},
		{"processors lent to nobody", func(b *bench) {
			promised := promised
			promised.ID.Epoch = 0
			_ = b.site.cluster.Lend(b.now, promised)
		}, true},
		{"an execution that is ended for another one", func(b *bench) { _ = b.site.cluster.Adopt(b.now, promised, b.now) }, false},
		{"a job in no queue", func(b *bench) { b.site.jobs.queue.dequeue(b.now, b.site.jobs.byID[grid.JobID{Lo: 2}], &b.out) }, true},
		{"one that waits for its home", func(b *bench) {
			b.site.jobs.queue.dequeue(b.now, b.site.jobs.byID[grid.JobID{Lo: 2}], &b.out)
			b.site.jobs.byID[grid.JobID{Lo: 2}].adrift = true
		}, false},
		{"a job on a lease that runs nowhere", func(b *bench) { b.site.borrowing.pools.lodgers[promised.ID] = &pool{} }, true},
		{"more jobs on a lease than count", func(b *bench) {
			b.site.borrowing.pools.list = append(b.site.borrowing.pools.list, &pool{tasks: []lodger{{promised.ID, 2}}, used: 1})
		}, true},
		{"what the owner holds", func(b *bench) {
			waits := grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}
			b.site.jobs.queue.dequeue(b.now, b.site.jobs.byID[waits.Job], &b.out)
			b.site.guests.held[waits.Job] = &guest.Hold{Task: waits}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, together)
			b.step(&Submit{Token: 1, Job: b.job(1, 3)}, &Submit{Token: 2, Job: b.job(2, 3)})
			tt.spoil(b)
			if err := Audit(b.site); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}
