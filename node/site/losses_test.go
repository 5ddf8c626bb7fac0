package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/market/keepalive"
)

// foreignJob has a bench's site take a job of another site, after so many executions of
// it have vanished.
func foreignJob(b *bench, losses uint32) *grid.Job {
	b.t.Helper()
	job := b.job(1, 2)
	job.Home, job.Submit = "home", 0
	give(b, job, 1, losses)
	if len(b.started) != 1 {
		b.t.Fatalf("%d tasks started, want the job", len(b.started))
	}
	return job
}

// give has a bench's site guarantee an execution of a job of another site, and take it.
func give(b *bench, job *grid.Job, epoch, losses uint32) {
	b.t.Helper()
	giveLeased(b, job, epoch, losses, 0)
}

// giveLeased is give, of an execution that goes on for so long unless it is renewed.
func giveLeased(b *bench, job *grid.Job, epoch, losses uint32, lease grid.Time) {
	b.t.Helper()
	b.step(&grid.Delivery{From: "home", Message: &market.Negotiate{
		Task: grid.TaskID{Job: job.ID, Epoch: epoch}, Request: uint64(epoch), Validity: grid.Minute, Processors: job.Processors, Work: job.Work,
		Deadline: grid.Never, CostMax: grid.CreditsMax, Lease: lease,
	}})
	reply := b.sends[len(b.sends)-1].Message.(*market.Reply)
	if reply.Refusal != market.Granted {
		b.t.Fatalf("refused: %+v", reply)
	}
	b.step(&grid.Delivery{From: "home", Message: &market.JobSubmission{
		Job: job, Epoch: epoch, Hold: reply.Hold, Price: reply.Price, Cost: reply.Cost, Deadline: grid.Never, Losses: losses,
	}})
}

func open(c *Config) {
	together(c)
	c.Foreign, c.Market.Foreign = true, true
}

// TestLossesAreCountedForTheJob: a job whose executions vanish fails after lossesMax of
// them, wherever they were. (Each site had counted for itself, and the home nothing.)
func TestLossesAreCountedForTheJob(t *testing.T) {
	const before = 1
	b := newBench(t, open)
	job := foreignJob(b, before)
	for range lossesMax - before {
		b.now += grid.Minute // the machine dies each time anew
		b.step(&grid.TaskEnded{ID: grid.TaskID{Job: job.ID, Epoch: 1}, Lost: true})
	}
	if len(b.started) != lossesMax-before {
		t.Errorf("it was started %d times after %d losses, want %d", len(b.started), before, lossesMax-before)
	}
	told, ok := b.sends[len(b.sends)-1].Message.(*market.JobCompletion)
	if !ok || !told.Abandoned || told.Losses != lossesMax {
		t.Fatalf("home is told %+v, want that it is abandoned after %d losses", told, lossesMax)
	}

	home := newBench(t, together)
	home.step(&Submit{Job: home.job(1, 4)})
	e := home.site.jobs.byID[job.ID]
	e.state = Awarded
	home.step(&market.Lost{Task: e.task(), Losses: told.Losses})
	if v := home.want(1, Failed); v.Reason != causeLosses {
		t.Errorf("reason %q, want %q", v.Reason, causeLosses)
	}
}

// TestReturnedOutlivesRestart: a site that goes down before the home of a job has acknowledged
// what was lost of it tells the home when it is up again, and forgets the job then.
func TestReturnedOutlivesRestart(t *testing.T) {
	b := newBench(t, open)
	job := foreignJob(b, 0)
	task := grid.TaskID{Job: job.ID, Epoch: 1}
	for range lossesMax {
		b.now += grid.Minute // the machine dies each time anew
		b.step(&grid.TaskEnded{ID: task, Lost: true})
	}
	b.sends = nil
	b.crash()
	if len(b.sends) != 1 || len(b.started) != 0 {
		t.Fatalf("after the restart it sends %v and has started %d tasks, want a word to the home and no new task", b.sends, len(b.started))
	}
	told, ok := b.sends[0].Message.(*market.JobCompletion)
	if !ok || b.sends[0].To != "home" || told.Task != task || !told.Abandoned || told.Losses != lossesMax {
		t.Fatalf("it sends %+v to %s, want that %v was abandoned after %d losses", told, b.sends[0].To, task, lossesMax)
	}
	b.step(&grid.Delivery{From: "home", Message: &market.Acknowledge{Task: task, Of: wire.MarketJobCompletion}})
	if e := b.site.jobs.byID[job.ID]; e != nil || b.records[RecordPrefix+job.ID.String()] != nil {
		t.Errorf("the home knows, and the site still has %+v", e)
	}
}

// TestLostAsItWasEnded: a job of another site that the owner here ends, and whose machine dies before it has
// ended, has not ended well. (Its home told its user that it was done.)
func TestLostAsItWasEnded(t *testing.T) {
	b := newBench(t, open)
	job := foreignJob(b, 0)
	b.step(&ChangeGuests{Token: 7, Change: CancelGuest, Job: job.ID, Cause: "the owner's"})
	b.want(job.ID.Lo, Cancelling)
	b.step(&grid.TaskEnded{ID: b.started[0].ID, Lost: true})
	told, ok := b.sends[len(b.sends)-1].Message.(*market.JobCompletion)
	if !ok || told.ExitCode != ExitCancelled || told.Reason != "the owner's" || told.Ago != 0 || told.Run != 0 || told.Cost != 0 {
		t.Errorf("home is told %+v, want that it was cancelled now, and why", told)
	}
}

// TestLossToldTwiceCountsOnce: an execution that runs once more has the same name as the
// first, whose loss may be told again. (The job was given up then, and the scheduler
// started what nobody knew.)
func TestLossToldTwiceCountsOnce(t *testing.T) {
	b := newBench(t, open)
	job := foreignJob(b, 0)
	lost := &grid.TaskEnded{ID: grid.TaskID{Job: job.ID, Epoch: 1}, Lost: true}
	b.step(lost, lost)
	if e := b.site.jobs.byID[job.ID]; e == nil || e.losses != 1 || e.state != Running {
		t.Fatalf("the job is %+v, want it to run again after one loss", e)
	}
	if len(b.started) != 2 {
		t.Errorf("it was started %d times, want 2", len(b.started))
	}
}

// TestLaterEpochReplaces: an execution that its home has placed anew is ended where it still
// runs, and how it ends is not how the new one does.
func TestLaterEpochReplaces(t *testing.T) {
	b := newBench(t, open)
	job := foreignJob(b, 0)
	give(b, job, 2, 0)
	if len(b.started) != 2 || len(b.killed) != 1 || b.killed[0].ID != b.started[0].ID {
		t.Fatalf("started %v, ended %v: want the second in place of the first", b.started, b.killed)
	}
	b.now += 10 * grid.Second
	b.step(b.ended(b.started[0], 9))
	if e := b.site.jobs.byID[job.ID]; e == nil || e.epoch != 2 || e.state != Running {
		t.Fatalf("the job is %+v, want it to run in its second execution", e)
	}
	b.step(b.ended(b.started[1], 3))
	told, ok := b.sends[len(b.sends)-1].Message.(*market.JobCompletion)
	if !ok || told.Task != b.started[1].ID || told.ExitCode != 3 {
		t.Errorf("home is told %+v, want the end of the second", told)
	}
}

// TestTooLateToStart: what could end later than home counts on is not started, but given back.
func TestTooLateToStart(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBench(t, open)
		b.step(&Submit{Job: b.job(7, 4)})
		job := b.job(1, 2)
		job.Home, job.Submit = "home", 0
		give(b, job, 1, 0)
		b.now += job.Estimate + market.StartGrace // the other one takes longer to die than its limit says
		if late {
			b.now++
		}
		b.startsUnless(late)
	}
}

// startsUnless ends the first task: what waits for its room starts then, or is given back if it is late.
func (b *bench) startsUnless(late bool) {
	b.t.Helper()
	if b.step(b.ended(b.started[0], 0)); len(b.started) != 2 != late {
		b.t.Errorf("late %v: %d tasks started", late, len(b.started))
	}
	told, ok := b.sends[len(b.sends)-1].Message.(*market.JobCompletion)
	if gone := ok && told.Abandoned; gone != late {
		b.t.Errorf("late %v: home is told %+v", late, told)
	}
}

// TestLeaseOverToStart: what waits until its lease is over is given back, also if there is room at that moment.
func TestLeaseOverToStart(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBench(t, open)
		b.step(&Submit{Job: b.job(7, 4)})
		job := b.job(1, 2)
		job.Home, job.Submit = "home", 0
		giveLeased(b, job, 1, 0, 30*grid.Second)
		b.now = b.site.jobs.byID[job.ID].leased
		if !late {
			b.now--
		}
		b.startsUnless(late)
	}
}

// TestRequeuedHasNoLosses: a job that its user has run again has a clean sheet.
func TestRequeuedHasNoLosses(t *testing.T) {
	b := newBench(t, nil)
	b.submit(b.job(1, 2))
	lose := func() {
		t.Helper()
		task := b.running(1)
		b.now += grid.Minute // the machine dies each time anew
		b.step(&grid.TaskEnded{ID: task.ID, Lost: true})
	}
	for range lossesMax - 1 {
		lose()
	}
	task := b.running(1)
	b.step(&Requeue{Job: grid.JobID{Lo: 1}, Cause: "again"}, b.ended(task, 143))
	lose()
	b.want(1, Running)
}

// TestResumedTellsItsLosses: home sends a job on with its losses, also after a restart.
func TestResumedTellsItsLosses(t *testing.T) {
	home := newBench(t, together)
	home.step(&Submit{Job: home.job(1, 2)})
	e := home.site.jobs.byID[grid.JobID{Lo: 1}]
	e.state, e.losses = Awarded, 2
	e.award = market.Award{Site: "a", Epoch: e.epoch, Until: home.now + grid.Hour, Finish: home.now + grid.Minute, Price: 1, Cost: 1}
	home.out.Save(e)
	home.step()
	home.sends = nil
	home.crash()
	home.now += grid.Minute
	home.step()
	for _, s := range home.sends {
		if m, ok := s.Message.(*market.JobSubmission); ok {
			if m.Losses != 2 {
				t.Errorf("it goes to %s after %d losses, want 2", s.To, m.Losses)
			}
			return
		}
	}
	t.Errorf("it is not sent again, but %+v", home.sends)
}

// TestBelatedLossesCount: a job that takes machines down is given up though its home hears of that only
// as the job is elsewhere already. Each counts once, also if home restarts, and only from the site
// where it was. (They were not counted, so such a job went from machine to machine.)
func TestBelatedLossesCount(t *testing.T) {
	home := newBench(t, together)
	job := home.job(1, 4)
	home.step(&Submit{Job: job})
	away := func(at grid.SiteID) *entry {
		e := home.site.jobs.byID[job.ID]
		e.state, e.award = Awarded, market.Award{Site: at, Epoch: e.epoch, Until: home.now + grid.Hour, Finish: home.now + grid.Minute, Price: 1, Cost: 1}
		home.out.Save(e)
		return e
	}
	silent := func(at grid.SiteID) grid.TaskID {
		e := away(at)
		task := e.task()
		home.step(&market.Lost{Task: task, Losses: e.unheard.Told(e.losses), Silent: true})
		if home.site.jobs.byID[job.ID].state.Terminal() {
			t.Fatalf("it is given up for what nobody has heard of")
		}
		return task
	}
	want := func(losses uint32) {
		t.Helper()
		if e := home.site.jobs.byID[job.ID]; e.losses != losses {
			t.Errorf("%d losses, want %d", e.losses, losses)
		}
	}
	first, second := silent("a"), silent("b")
	home.crash()
	e := away("c")
	home.step(&market.Belated{Task: first, Site: "b", Losses: 1}) // it was not there
	home.step(&market.Belated{Task: e.task(), Site: "c", Losses: 1})
	want(0)
	home.step(&market.Belated{Task: first, Site: "a", Losses: 1}, &market.Belated{Task: first, Site: "a", Losses: 1})
	want(1)
	home.crash()
	e = home.site.jobs.byID[job.ID]
	home.step(&grid.Delivery{From: "c", Message: &market.JobCompletion{Task: e.task(), Abandoned: true}}) // which was told of none
	want(1)
	away("d")
	home.step(&market.Belated{Task: second, Site: "b", Losses: 1})
	home.crash()
	home.step(&market.Belated{Task: second, Site: "b", Losses: 1})
	want(2)
	e = home.site.jobs.byID[job.ID]
	home.step(&grid.Delivery{From: "d", Message: &market.JobCompletion{Task: e.task(), Abandoned: true, Losses: 2}}) // it was told of one
	if v := home.want(1, Failed); v.Reason != causeLosses {
		t.Errorf("reason %q, want %q", v.Reason, causeLosses)
	}
}

// TestLostAsItIsEnded: a job whose execution elsewhere vanishes is placed again, is cancelled, or
// runs once more, as its user has said last.
func TestLostAsItIsEnded(t *testing.T) {
	id := grid.JobID{Lo: 1}
	cancel, requeue := &Cancel{Job: id, Cause: "no"}, &Requeue{Job: id, Cause: "again"}
	for _, tt := range []struct {
		name     string
		said     []grid.Input
		state    State
		restarts int32
	}{
		{"nothing", nil, Running, 0},
		{"cancelled", []grid.Input{cancel}, CancelledByUser, 0},
		{"requeued", []grid.Input{requeue}, Running, 1},
		{"requeued and cancelled", []grid.Input{requeue, cancel}, CancelledByUser, 0},
		{"cancelled and requeued", []grid.Input{cancel, requeue}, CancelledByUser, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := newBench(t, together)
			home.step(&Submit{Job: home.job(1, 2)})
			e := home.site.jobs.byID[id]
			e.state, e.award = Awarded, market.Award{Site: "a", Epoch: e.epoch, Until: home.now + grid.Hour, Finish: home.now + grid.Minute, Price: 1, Cost: 1}
			home.out.Save(e)
			home.step(tt.said...)
			home.step(&market.Lost{Task: e.task()})
			if v := home.want(1, tt.state); v.Job.Restarts != tt.restarts {
				t.Errorf("it has been restarted %d times, want %d", v.Job.Restarts, tt.restarts)
			}
		})
	}
}

// TestUnwantedTellsItsLosses: home hears of what has vanished here, also of a job that it has placed anew
// since. (It was told that the job was cancelled.)
func TestUnwantedTellsItsLosses(t *testing.T) {
	b := newBench(t, open)
	job := foreignJob(b, 0)
	task := grid.TaskID{Job: job.ID, Epoch: 1}
	b.step(&grid.TaskEnded{ID: task, Lost: true})
	b.site.jobs.byID[job.ID].state = Queued // as after a restart
	b.step(&keepalive.Unwanted{Task: task})
	told, ok := b.sends[len(b.sends)-1].Message.(*market.JobCompletion)
	if !ok || told.Task != task || !told.Abandoned || told.Losses != 1 {
		t.Errorf("home is told %+v, want that it is abandoned after a loss", told)
	}
}

// TestAgenda: what is due comes in the order of when, whatever was entered first.
func TestAgenda(t *testing.T) {
	var a agenda
	id := func(n uint64) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1} }
	for i, at := range []grid.Time{grid.Hour, grid.Minute, 2 * grid.Hour} {
		a.enter(at, id(uint64(i)))
	}
	if a.next() != grid.Minute {
		t.Errorf("the next is due at %v, want 1 min", a.next())
	}
	if due := a.take(grid.Hour); len(due) != 2 || due[0].id != id(1) || due[1].id != id(0) || a.next() != 2*grid.Hour {
		t.Errorf("due by 1 h: %v, then at %v", due, a.next())
	}
}
