package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market/keepalive"
	"gridnode/node/after"
	"gridnode/node/guest"
	"gridnode/node/member"
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
		{"a job too many", func(b *bench) {
			b.site.jobs.live = append(b.site.jobs.live, b.site.jobs.byID[grid.JobID{Lo: 1}])
		}, true},
		{"a job that does not count", func(b *bench) { b.site.jobs.leave(b.site.jobs.byID[grid.JobID{Lo: 1}]) }, true},
		{"one that is over and counts", func(b *bench) { b.site.jobs.byID[grid.JobID{Lo: 1}].state = Done }, true},
		{"a job that waits and has begun", func(b *bench) {
			b.step(&Hold{Job: grid.JobID{Lo: 2}})
			b.site.jobs.byID[grid.JobID{Lo: 2}].start = b.now
		}, true},
		{"GPUs for what is not here", func(b *bench) { b.site.jobs.gpus.Adopt(b.now, promised.ID, []string{"0"}) }, true},
		{"a job that is over and kept for ever", func(b *bench) {
			b.step(&Cancel{Job: grid.JobID{Lo: 2}})
			b.site.jobs.finished = nil
		}, true},
		{"a user who has none", func(b *bench) { b.site.jobs.users["eve"]++ }, true},
		{"a job at the gate that was let go", func(b *bench) {
			b.site.jobs.gate.Wait(b.site.jobs.byID[grid.JobID{Lo: 1}].job, &after.Turn{}, &b.site.jobs.table)
		}, true},
		{"a job that waits for nothing", func(b *bench) { b.site.jobs.byID[grid.JobID{Lo: 2}].state = Waiting }, true},
		{"a placed job that does not count", func(b *bench) { b.site.jobs.gate.Back(b.site.jobs.byID[grid.JobID{Lo: 2}].job) }, true},
		{"a job of an array that is over", func(b *bench) {
			j := b.job(9, 1)
			j.Array = &grid.Array{ID: grid.JobID{Lo: 8}, Number: 1}
			b.site.jobs.gate.Enter(j, false)
		}, true},
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
			if err := Audit(b.now, b.site); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// borrow has a site borrow two processors, by hand, and claim them.
func borrow(b *bench) (number uint64) {
	b.step(&RequestLease{Token: 1, Lender: "there", Processors: 2, Span: grid.Hour})
	number = b.sends[0].Message.(*lease.Request).Number
	b.step(
		&grid.Delivery{From: "there", Message: &lease.Grant{Number: number, Epoch: 7, Span: grid.Hour, Hold: grid.Minute, Gone: grid.Minute, Stamp: b.now, Source: "there", Key: 7}},
		&grid.Delivery{From: "there", Message: &lease.Renewed{Number: number, Epoch: 7, Sequence: 1, Term: grid.Minute, Limit: grid.Hour, Gone: grid.Minute, Stamp: b.now}},
	)
	return number
}

// TestAuditOfBorrowed: borrowed processors that nothing uses are found.
func TestAuditOfBorrowed(t *testing.T) {
	b := newBench(t, together)
	number := borrow(b)
	pools := &b.site.borrowing.pools
	p := pools.of(lease.ID{Borrower: "here", Number: number})
	if err := Audit(b.now, b.site); err != nil || p == nil {
		t.Fatalf("pool %v, audit %v, want one that is in order", p, err)
	}
	pools.close(p)
	if err := Audit(b.now, b.site); err == nil {
		t.Error("borrowed processors that nothing uses are in order")
	}
}

// TestAuditOfComponents: a lease of a component that its job does not have is found.
func TestAuditOfComponents(t *testing.T) {
	b := newBench(t, together)
	borrow(b)
	if err := b.site.gangs.audit(b.now); err != nil {
		t.Fatal(err)
	}
	j := grid.Job{ID: grid.JobID{Lo: 5}, Coallocate: &grid.Coallocation{}}
	b.site.jobs.byID[j.ID] = &entry{job: &j}
	for l := range lease.All(b.site.gangs.book) {
		l.Subject = j.ID
	}
	if b.site.gangs.audit(b.now) == nil {
		t.Error("a lease is kept for a component that no job has, and the audit does not say so")
	}
}

// TestAuditEnded: a job that goes on and counts as over is found, and one that is kept for ever.
func TestAuditEnded(t *testing.T) {
	b := newBench(t, together)
	b.step(&Submit{Token: 1, Job: b.job(1, 3)}, &Submit{Token: 2, Job: b.job(2, 3)})
	b.step(&Cancel{Token: 3, Job: grid.JobID{Lo: 2}})
	if err := AuditEnded(b.site); err != nil {
		t.Fatal(err)
	}
	e := b.site.jobs.byID[grid.JobID{Lo: 2}]
	if !e.state.Terminal() {
		t.Fatalf("the job is %s", e.state)
	}
	if e.state = Queued; AuditEnded(b.site) == nil {
		t.Error("it is found to be over")
	}
	e.state, b.site.jobs.finished[0].id = CancelledByUser, grid.JobID{Lo: 9}
	if AuditEnded(b.site) == nil {
		t.Error("nothing is found of a job that is never forgotten")
	}
}

// TestAuditJobs: what a site knows of a job and has not saved is told, also if the record was read before.
func TestAuditJobs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(e *entry)
		wrong bool
	}{
		{"nothing", func(*entry) {}, false},
		{"what a message says", func(e *entry) { e.messages++ }, false},
		{"its epoch", func(e *entry) { e.epoch++ }, true},
		{"that it is being cancelled", func(e *entry) { e.state = Cancelling }, true},
		{"its losses", func(e *entry) { e.losses++ }, true},
		{"where it is", func(e *entry) { e.award.Site = "x" }, true},
		{"what is left of its budget", func(e *entry) { e.job.Budget = 7 }, true},
		{"its GPUs", func(e *entry) { e.gpus = []string{"0"} }, true},
		{"that it is to run again", func(e *entry) { e.turn.Again = true }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, together)
			b.step(&Submit{Token: 1, Job: b.job(1, 3)})
			var audit JobsAudit
			saved := func(key string) []byte { return b.records[key] }
			if err := audit.Look(b.site, saved); err != nil {
				t.Fatal(err)
			}
			e := b.site.jobs.byID[grid.JobID{Lo: 1}]
			tt.spoil(e)
			if err := audit.Look(b.site, saved); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
			b.records[e.RecordKey()] = e.AppendRecord(nil)
			if err := audit.Look(b.site, saved); err != nil {
				t.Errorf("after it was saved: %v", err)
			}
		})
	}
	b := newBench(t, together)
	b.step(&Submit{Token: 1, Job: b.job(1, 3)})
	var audit JobsAudit
	if err := audit.Look(b.site, func(string) []byte { return nil }); err == nil {
		t.Error("a job that is not saved at all is none")
	}
	b = newBench(t, func(c *Config) { together(c); c.Limits.Jobs, c.Limits.PerUser = 3*auditMost, 3*auditMost })
	for i := range uint64(2*auditMost + 3) {
		b.step(&Submit{Token: i + 2, Job: b.job(i+2, 3)})
	}
	looked := make(map[string]bool)
	audit = JobsAudit{}
	for round := range 3 {
		before := len(looked)
		if err := audit.Look(b.site, func(key string) []byte { looked[key] = true; return b.records[key] }); err != nil || len(looked)-before > auditMost {
			t.Errorf("round %d: %d jobs, %v; want at most %d, all saved", round, len(looked)-before, err, auditMost)
		}
	}
	if live := len(b.site.jobs.live); live <= 2*auditMost || len(looked) != live {
		t.Errorf("%d of %d jobs have been looked at", len(looked), live)
	}
}

// TestExpireKeepsWhatGoesOn: of jobs that were kept long enough those that have ended are forgotten, and not one
// that goes on again; one that is gone already is no matter.
func TestExpireKeepsWhatGoesOn(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.Retention, c.Limits.Finished = grid.Hour, 100 })
	for n := range uint64(2) {
		b.step(&Submit{Token: n + 1, Job: b.job(n+1, 1)})
	}
	b.step(&Cancel{Job: grid.JobID{Lo: 2}})
	ended := b.site.jobs.byID[grid.JobID{Lo: 2}]
	if ended == nil {
		t.Fatal("it is not kept")
	}
	ended.state = Done
	b.site.jobs.finished = []finishedJob{{grid.JobID{Lo: 7}, b.now}, {grid.JobID{Lo: 1}, b.now}, {grid.JobID{Lo: 2}, b.now}}
	b.site.jobs.expire(b.now+grid.Hour, &b.out)
	if b.site.jobs.byID[grid.JobID{Lo: 1}] == nil || b.site.jobs.byID[grid.JobID{Lo: 2}] != nil || len(b.site.jobs.finished) != 0 {
		t.Errorf("%d jobs are known, %d wait to be forgotten", len(b.site.jobs.byID), len(b.site.jobs.finished))
	}
}

// TestWitnesses: in a closed federation as many holders are asked as there are beside the first, three at most.
func TestWitnesses(t *testing.T) {
	for _, tt := range []struct {
		closed         bool
		replicas, said int
		want           int
	}{{false, 0, 0, 0}, {true, 0, 0, 3}, {true, 8, 0, 3}, {true, 3, 0, 2}, {true, 1, 0, 0}, {true, 0, 1, 1}} {
		var c Config
		if c.Directory.Replicas, c.Directory.Witnesses = tt.replicas, tt.said; tt.closed {
			c.Members.Federation = &member.Federation{}
		}
		if got := c.filled().Directory.Witnesses; got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestNobodysExecution: a home that has heard of what is not here changes nothing.
func TestNobodysExecution(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Parts, c.Directory.Federation = Market|Quotes, "test" })
	b.step(&Submit{Token: 1, Job: b.job(1, 1)})
	before := b.site.jobs.byID[grid.JobID{Lo: 1}].leased
	for n := range uint64(2) { // one that is not another site's, and one that is not here
		b.step(&keepalive.Extended{Task: grid.TaskID{Job: grid.JobID{Lo: n + 1}, Epoch: 1}, End: b.now + grid.Day})
	}
	if got := b.site.jobs.byID[grid.JobID{Lo: 1}].leased; got != before {
		t.Errorf("an execution of the site's own is leased until %v", got)
	}
}
