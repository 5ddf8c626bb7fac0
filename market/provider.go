package market

import (
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/bank"
	"gridnode/market/keepalive"
)

// provider is the executing site's side: it answers those who ask for a guarantee,
// takes the jobs that come for one, and reports how they ended.
type provider struct {
	*office
	admission admission
	jobs      map[grid.JobID]*remote
	held      keepalive.Holder // those of them that go on only as long as home hears of them
}

func newProvider(o *office) provider {
	return provider{office: o, admission: newAdmission(o), jobs: make(map[grid.JobID]*remote)}
}

// remote is a job of another site that was accepted here (Grid-Federation table
// 3: "remote jobs processed").
type remote struct {
	timer   grid.Alarm[alarmed]
	home    grid.SiteID
	task    grid.TaskID
	hold    uint64 // the guarantee under which it came
	width   int64  // its processors
	gpus    int64
	revoked bool // home wants it ended

	over      bool // it ended, or will never run; home does not know yet
	abandoned bool
	losses    uint32 // abandoned: of its executions
	result    grid.Result
	repeat    backoff
}

// negotiated is another site's request for a guarantee. "The remote GFA makes a
// decision immediately upon receiving a request as to whether it can accept the
// job or not."
func (s *provider) negotiated(now grid.Time, from grid.SiteID, m *Negotiate, out *grid.Outbox) {
	e := s.memory.at(from)
	if !e.inTime(m) {
		return
	}
	if m.Probe {
		s.admission.weigh(now, e, m, out)
		return
	}
	if r := s.jobs[m.Task.Job]; r != nil && (r.home != from || r.task.Epoch >= m.Task.Epoch) {
		if r.home != from || r.task.Epoch > m.Task.Epoch {
			s.admission.sendRefusal(now, from, m, Superseded, out)
		}
		return // we have that very job: a late copy
	} else if r != nil && s.unpaid(r) {
		s.report(now, r, out) // home has it, or wants it no more: either way it says so before it submits
	}
	s.admission.consider(now, e, m, out)
}

// submitted is a job for a guarantee of ours, or another copy of one.
func (s *provider) submitted(now grid.Time, from grid.SiteID, m *JobSubmission, out *grid.Outbox) {
	task := grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}
	if r := s.jobs[m.Job.ID]; r != nil && r.home == from && r.task == task && r.hold == m.Hold {
		s.acknowledge(from, task, wire.MarketJobSubmission, m.Hold, false, out)
		if r.over {
			s.report(now, r, out) // home is there: it may have missed the result
		}
		return
	}
	if r := s.jobs[m.Job.ID]; r != nil && s.unpaid(r) {
		s.report(now, r, out) // home counts on a result whose cheque we could not present any more: it submits again
		return
	}
	if !s.accept(now, from, task, m, out) {
		s.acknowledge(from, task, wire.MarketJobSubmission, m.Hold, true, out)
		return
	}
	s.acknowledge(from, task, wire.MarketJobSubmission, m.Hold, false, out)
}

// unpaid reports whether a job has ended whose home may have agreed to what it costs, which
// we have not heard.
func (s *provider) unpaid(r *remote) bool {
	return r.over && !r.abandoned && s.desk != nil && s.desk.Holds(r.home, r.task)
}

// accept turns the guarantee into a job, if there is such a guarantee and the job
// is the one it was given for.
func (s *provider) accept(now grid.Time, from grid.SiteID, task grid.TaskID, m *JobSubmission, out *grid.Outbox) bool {
	h := s.admission.find(from, task, m.Hold)
	if h == nil {
		return false
	}
	if m.Job.Home != from || m.Job.Processors != h.processors || m.Job.Away().Work != h.work || m.Job.GPUs != h.gpus || m.Price != h.price || m.Cost != h.cost {
		s.admission.release(now, h) // another job than was negotiated
		return false
	}
	if s.guests != nil && !s.guests.Admit(now, from, &Work{Processors: h.processors, Memory: m.Job.Memory, GPUs: h.gpus.Count, Job: m.Job}) {
		s.admission.release(now, h) // one that the owner does not want
		return false
	}
	until := untilThere(h.start, Limit(m.Job.Away(), s.cfg.Rating))
	if h.bank != "" && !s.desk.Good(now, m.Cheque, &bank.Charge{Bank: h.bank, Payer: from, Task: task, Cost: h.cost, Until: until}) {
		s.admission.release(now, h) // or without its money
		return false
	}
	if err := s.cluster.Commit(now, task); err != nil {
		s.admission.forget(h)
		return false
	}
	r := &remote{home: from, task: task, hold: h.token, width: h.processors, gpus: h.gpus.Count}
	r.timer.Owner = r
	s.admission.tenants.enter(from, 1, r.width, r.gpus)
	if old := s.jobs[m.Job.ID]; old != nil {
		s.leave(old)
		s.held.Leave(from, old.task)
		s.timers.Stop(&old.timer) // an earlier epoch: nobody waits for its result
		s.releaseCheque(now, old, out)
	}
	if h.bank != "" {
		s.desk.Take(m.Cheque, out)
	}
	s.jobs[m.Job.ID] = r
	accepted := s.slabs.accepts.New()
	accepted.Job, accepted.Losses = s.localJob(now, m), m.Losses
	accepted.Award = Award{
		Site: s.cfg.Site, Epoch: m.Epoch, Hold: h.token, Price: h.price, Cost: h.cost,
		Start: h.start, Finish: h.finish, Until: until, Bank: h.bank, Lease: h.lease,
	}
	if h.lease > 0 {
		accepted.Leased = h.leased
		s.held.Enter(now, from, task, h.lease, h.leased)
	}
	s.admission.rate(s.memory.at(from), true)
	s.admission.forget(h)
	out.Local(accepted)
	return true
}

// localJob returns the submitted job with its instants on this site's clock.
func (s *provider) localJob(now grid.Time, m *JobSubmission) *grid.Job {
	job := new(*m.Job)
	job.Submit = max(now-m.Age, 0)
	job.Deadline = grid.Never
	if m.Deadline != grid.Never {
		job.Deadline = now.Add(m.Deadline)
	}
	return job
}

// restore takes an accepted job up again after a restart.
func (s *provider) restore(now grid.Time, in *Restore) {
	r := &remote{home: in.Job.Home, task: grid.TaskID{Job: in.Job.ID, Epoch: in.Award.Epoch}, hold: in.Award.Hold, width: in.Job.Processors, gpus: in.Job.GPUs.Count}
	r.timer.Owner = r
	s.admission.tenants.enter(r.home, 1, r.width, r.gpus)
	s.jobs[in.Job.ID] = r
	if in.Award.Lease > 0 && !in.Over { // what is left of it is not known any more; who runs it knows
		s.held.Enter(now, r.home, r.task, in.Award.Lease, now.Add(in.Award.Lease))
		s.held.Soon(now, r.home)
	}
}

// releaseCheque gives the cheque of a job back that costs nothing.
func (s *provider) releaseCheque(now grid.Time, r *remote, out *grid.Outbox) {
	if s.desk != nil {
		s.desk.Release(now, r.home, r.task, out)
	}
}

// ended starts to report a result.
func (s *provider) ended(now grid.Time, in *Ended, out *grid.Outbox) {
	if r := s.ending(in.Task, out); r != nil {
		r.result = in.Result
		s.report(now, r, out)
	}
}

// abandoned starts to report that there will be no execution.
func (s *provider) abandoned(now grid.Time, in *Abandoned, out *grid.Outbox) {
	if r := s.ending(in.Task, out); r != nil {
		r.abandoned, r.losses = true, in.Losses
		s.releaseCheque(now, r, out)
		s.report(now, r, out)
	}
}

// ending returns the accepted job of a task that ends. If nobody waits for its
// end, because a later epoch replaced it, the record may go at once.
func (s *provider) ending(task grid.TaskID, out *grid.Outbox) *remote {
	r := s.jobs[task.Job]
	if r == nil || r.task != task {
		out.Local(&Delivered{task})
		return nil
	}
	if r.over {
		return nil
	}
	s.leave(r)
	s.held.Leave(r.home, r.task)
	r.over = true
	return r
}

// leave counts a job as gone that is not over yet.
func (s *provider) leave(r *remote) {
	if !r.over {
		s.admission.tenants.enter(r.home, -1, r.width, r.gpus)
	}
}

// begun has home learn that a task runs.
func (s *provider) begun(now grid.Time, in *Begun) {
	if r := s.jobs[in.Task.Job]; r != nil && r.task == in.Task {
		s.held.Begun(now, r.home, in.Task, in.Start)
	}
}

// starts returns in how much time a task begins that waits here.
func (s *provider) starts(now grid.Time) func(grid.TaskID) grid.Time {
	return func(id grid.TaskID) grid.Time {
		if start, planned := s.cluster.Planned(id); planned {
			return max(start-now, 0)
		}
		return grid.Never
	}
}

// report sends the completion, until home acknowledges it or is an outcast.
func (s *provider) report(now grid.Time, r *remote, out *grid.Outbox) {
	if s.outcasts[r.home] {
		s.settle(now, r, out)
		return
	}
	m := s.slabs.completion.New()
	*m = JobCompletion{Task: r.task, Abandoned: r.abandoned, Losses: r.losses}
	if !r.abandoned {
		m.Ago = min(max(now-r.result.End, 0), grid.SpanMax)
		m.Run = min(max(r.result.End-r.result.Start, 0), grid.SpanMax)
		m.ExitCode, m.Reason, m.Silent, m.Output = r.result.ExitCode, cut(r.result.Reason), r.result.Silent, r.result.Output
		m.Cost = min(max(r.result.Cost, 0), grid.CreditsMax)
		if s.desk != nil {
			m.Claim = s.desk.Claim(r.home, r.task, m.Cost)
		}
	}
	out.Send(r.home, m)
	s.timers.Set(&r.timer, r.repeat.next(now, backoffResult, s.rng))
}

// due implements alarmed: home did not acknowledge the result.
func (r *remote) due(a *Agent, now grid.Time, out *grid.Outbox) { a.provider.report(now, r, out) }

// acknowledged: home has the result.
func (s *provider) acknowledged(now grid.Time, from grid.SiteID, m *Acknowledge, out *grid.Outbox) {
	r := s.jobs[m.Task.Job]
	if r == nil || r.task != m.Task || r.home != from || !r.over {
		return
	}
	s.timers.Stop(&r.timer)
	delete(s.jobs, m.Task.Job)
	if s.desk != nil {
		s.desk.Agreed(now, r.home, r.task, r.result.Cost, m.Agreement, out)
	}
	d := s.slabs.delivered.New()
	d.Task = r.task
	out.Local(d)
}

// cancelled: home does not want a guarantee or a job any more.
func (s *provider) cancelled(now grid.Time, from grid.SiteID, m *Cancel, out *grid.Outbox) {
	if h := s.admission.find(from, m.Task, m.Hold); h != nil {
		s.admission.release(now, h)
	}
	r := s.jobs[m.Task.Job]
	switch {
	case r == nil || r.home != from || r.task != m.Task || r.hold != m.Hold:
		if m.Answer {
			s.acknowledge(from, m.Task, wire.MarketCancel, m.Hold, true, out)
		}
	case r.over:
		s.report(now, r, out)
	case !r.revoked:
		r.revoked = true
		out.Local(&Revoke{Task: r.task, Cause: m.Cause})
	}
}

// castOut closes the jobs of a home that have ended.
func (s *provider) castOut(now grid.Time, home grid.SiteID, out *grid.Outbox) {
	var over []*remote
	for _, r := range s.jobs {
		if r.home == home && r.over {
			over = append(over, r)
		}
	}
	slices.SortFunc(over, func(a, b *remote) int { return a.task.Compare(b.task) })
	for _, r := range over {
		s.settle(now, r, out)
	}
}

// settle closes a job that has ended and whose home is an outcast: what it has used is paid
// from its cheque.
func (s *provider) settle(now grid.Time, r *remote, out *grid.Outbox) {
	s.timers.Stop(&r.timer)
	delete(s.jobs, r.task.Job)
	if s.desk != nil && r.abandoned {
		s.desk.Release(now, r.home, r.task, out)
	} else if s.desk != nil {
		s.desk.Outcasts().Claim(now, r.home, r.task, r.result.Cost, out)
	}
	d := s.slabs.delivered.New()
	d.Task = r.task
	out.Local(d)
}
