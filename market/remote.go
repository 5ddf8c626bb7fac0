package market

import (
	"gridnode/grid"
	"gridnode/internal/wire"
)

// remote is a job of another site that was accepted here (Grid-Federation table
// 3: "remote jobs processed").
type remote struct {
	timer   grid.Alarm[alarmed]
	home    grid.SiteID
	task    grid.TaskID
	hold    uint64 // the guarantee under which it came
	revoked bool   // home wants it ended

	over      bool // it ended, or will never run; home does not know yet
	abandoned bool
	losses    uint32 // abandoned: of its executions
	result    grid.Result
	repeat    backoff
}

// submitted is a job for a guarantee of ours, or another copy of one.
func (a *Agent) submitted(now grid.Time, from grid.SiteID, m *JobSubmission, out *grid.Outbox) {
	task := grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}
	if r := a.remote[m.Job.ID]; r != nil && r.home == from && r.task == task && r.hold == m.Hold {
		a.confirm(from, task, wire.MarketJobSubmission, m.Hold, false, out)
		if r.over {
			a.report(now, r, out) // home is there: it may have missed the result
		}
		return
	}
	if !a.accept(now, from, task, m, out) {
		a.confirm(from, task, wire.MarketJobSubmission, m.Hold, true, out)
		return
	}
	a.confirm(from, task, wire.MarketJobSubmission, m.Hold, false, out)
}

// accept turns the guarantee into a job, if there is such a guarantee and the job
// is the one it was given for.
func (a *Agent) accept(now grid.Time, from grid.SiteID, task grid.TaskID, m *JobSubmission, out *grid.Outbox) bool {
	h := a.holds[m.Job.ID]
	if h == nil || h.home != from || h.task != task || h.token != m.Hold {
		return false
	}
	if m.Job.Home != from || m.Job.Processors != h.processors || m.Job.Work != h.work || m.Price != h.price || m.Cost != h.cost {
		a.release(now, h) // another job than was negotiated
		return false
	}
	until := untilThere(h.start, Limit(m.Job, a.cfg.Rating))
	if h.bank != "" && !a.desk.Good(now, m.Cheque, h.bank, from, task, h.cost, until) {
		a.release(now, h) // or without its money
		return false
	}
	if err := a.cluster.Commit(now, task); err != nil {
		a.forgetHold(h)
		return false
	}
	r := a.slabs.accepted.New()
	*r = remote{home: from, task: task, hold: h.token}
	r.timer.Owner = r
	if old := a.remote[m.Job.ID]; old != nil {
		a.timers.Stop(&old.timer) // an earlier epoch: nobody waits for its result
		a.releaseCheque(now, old, out)
	}
	if h.bank != "" {
		a.desk.Take(m.Cheque, out)
	}
	a.remote[m.Job.ID] = r
	accepted := a.slabs.accepts.New()
	accepted.Job, accepted.Losses = a.localJob(now, m), m.Losses
	accepted.Award = Award{
		Site: a.cfg.Site, Epoch: m.Epoch, Hold: h.token, Price: h.price, Cost: h.cost,
		Start: h.start, Finish: h.finish, Until: until, Bank: h.bank,
	}
	a.forgetHold(h)
	out.Local(accepted)
	return true
}

// localJob returns the submitted job with its instants on this site's clock.
func (a *Agent) localJob(now grid.Time, m *JobSubmission) *grid.Job {
	job := a.slabs.jobs.New()
	*job = *m.Job
	job.Submit = max(now-m.Age, 0)
	job.Deadline = grid.Never
	if m.Deadline != grid.Never {
		job.Deadline = now.Add(m.Deadline)
	}
	return job
}

func (a *Agent) confirm(to grid.SiteID, task grid.TaskID, of grid.Kind, hold uint64, unknown bool, out *grid.Outbox) {
	m := a.slabs.acknowledge.New()
	*m = Acknowledge{Task: task, Of: of, Hold: hold, Unknown: unknown}
	out.Send(to, m)
}

// restore takes an accepted job up again after a restart.
func (a *Agent) restore(in *Restore) {
	r := a.slabs.accepted.New()
	*r = remote{home: in.Job.Home, task: grid.TaskID{Job: in.Job.ID, Epoch: in.Award.Epoch}, hold: in.Award.Hold}
	r.timer.Owner = r
	a.remote[in.Job.ID] = r
}

// releaseCheque gives the cheque of a job back that costs nothing.
func (a *Agent) releaseCheque(now grid.Time, r *remote, out *grid.Outbox) {
	if a.desk != nil {
		a.desk.Release(now, r.home, r.task, out)
	}
}

// ended starts to report a result.
func (a *Agent) ended(now grid.Time, in *Ended, out *grid.Outbox) {
	if r := a.ending(in.Task, out); r != nil {
		r.result = in.Result
		a.report(now, r, out)
	}
}

// abandoned starts to report that there will be no execution.
func (a *Agent) abandoned(now grid.Time, in *Abandoned, out *grid.Outbox) {
	if r := a.ending(in.Task, out); r != nil {
		r.abandoned, r.losses = true, in.Losses
		a.releaseCheque(now, r, out)
		a.report(now, r, out)
	}
}

// ending returns the accepted job of a task that ends. If nobody waits for its
// end, because a later epoch replaced it, the record may go at once.
func (a *Agent) ending(task grid.TaskID, out *grid.Outbox) *remote {
	r := a.remote[task.Job]
	if r == nil || r.task != task {
		out.Local(&Delivered{task})
		return nil
	}
	if r.over {
		return nil
	}
	r.over = true
	return r
}

// report sends the completion, until home acknowledges it.
func (a *Agent) report(now grid.Time, r *remote, out *grid.Outbox) {
	m := a.slabs.completion.New()
	*m = JobCompletion{Task: r.task, Abandoned: r.abandoned, Losses: r.losses}
	if !r.abandoned {
		m.Ago = min(max(now-r.result.End, 0), grid.SpanMax)
		m.Run = min(max(r.result.End-r.result.Start, 0), grid.SpanMax)
		m.ExitCode, m.Reason = r.result.ExitCode, cut(r.result.Reason)
		m.Cost = min(max(r.result.Cost, 0), grid.CreditsMax)
		if a.desk != nil {
			m.Claim = a.desk.Claim(r.home, r.task, m.Cost)
		}
	}
	out.Send(r.home, m)
	a.timers.Set(&r.timer, r.repeat.next(now, backoffResult, a.rng))
}

// due implements alarmed: home did not acknowledge the result.
func (r *remote) due(a *Agent, now grid.Time, out *grid.Outbox) { a.report(now, r, out) }

// receipted: home has the result.
func (a *Agent) receipted(now grid.Time, from grid.SiteID, m *Acknowledge, out *grid.Outbox) {
	r := a.remote[m.Task.Job]
	if r == nil || r.task != m.Task || r.home != from || !r.over {
		return
	}
	a.timers.Stop(&r.timer)
	delete(a.remote, m.Task.Job)
	if a.desk != nil {
		a.desk.Agreed(now, r.home, r.task, r.result.Cost, m.Agreement, out)
	}
	d := a.slabs.delivered.New()
	d.Task = r.task
	out.Local(d)
}

// cancelled: home does not want a guarantee or a job any more.
func (a *Agent) cancelled(now grid.Time, from grid.SiteID, m *Cancel, out *grid.Outbox) {
	if h := a.holds[m.Task.Job]; h != nil && h.home == from && h.task == m.Task && h.token == m.Hold {
		a.release(now, h)
	}
	r := a.remote[m.Task.Job]
	switch {
	case r == nil || r.home != from || r.task != m.Task || r.hold != m.Hold:
		if m.Answer {
			a.confirm(from, m.Task, wire.MarketCancel, m.Hold, true, out)
		}
	case r.over:
		a.report(now, r, out)
	case !r.revoked:
		r.revoked = true
		out.Local(&Revoke{Task: r.task, Cause: m.Cause})
	}
}
