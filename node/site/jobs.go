package site

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/wire"
	"gridnode/market"
)

// Refusals of Submit and Cancel; test with errors.Is.
var (
	// ErrUnknownJob: no job of this site has that ID.
	ErrUnknownJob = errors.New("no such job")
	// ErrOtherJob: the ID was used for a different job before.
	ErrOtherJob = errors.New("this job ID belongs to another job")
	// ErrFull: the site holds as many jobs as its limits allow; try later.
	ErrFull = errors.New("too many jobs")
	// ErrSpace: the disk of the site is too full to take a job; make room.
	ErrSpace = errors.New("no room for a job")
	// ErrTooWide: no cluster that this site heads could ever hold the job.
	ErrTooWide = errors.New("no cluster could ever hold the job")
	// ErrInvalid: the job itself is out of bounds.
	ErrInvalid = errors.New("invalid job")
)

// Causes of an end that the user did not bring about.
const (
	causeLosses = "its execution vanished too often"
)

// submit takes a job: saved, then acknowledged, then placed or queued.
func (s *Site) submit(now grid.Time, in *Submit, out *grid.Outbox) {
	known, err := s.admit(now, in.Job)
	if in.Token != 0 {
		out.Answer(in.Token, &Submitted{ID: in.Job.ID, Known: known, Err: err})
	}
	if known || err != nil {
		return
	}
	e := s.entries.New()
	e.job = in.Job
	s.add(e)
	out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: e.job})
	s.place(now, e, out)
	s.save(e, out)
}

// save stores e unless its end has settled what is stored.
func (s *Site) save(e *entry, out *grid.Outbox) {
	if !e.state.Terminal() {
		out.Save(e)
	}
}

// admit decides whether a job is taken; known means that it was before.
func (s *Site) admit(now grid.Time, j *grid.Job) (known bool, err error) {
	if err := wire.CheckJob(j); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e := s.jobs[j.ID]; e != nil {
		if e.foreign || !sameJob(e.job, j) {
			return false, fmt.Errorf("%s: %w", j.ID, ErrOtherJob)
		}
		return true, nil
	}
	switch {
	case divided(j):
		err = s.admitDivided(j)
	case len(j.Inputs) > 0:
		err = fmt.Errorf("%w: it names inputs, which only jobs do that are placed by the policies of co-allocation", ErrInvalid)
	case s.packs(j):
		err = s.admitPacked(now, j)
	}
	switch {
	case err != nil:
		return false, err
	case s.live >= s.cfg.Limits.Jobs:
		return false, fmt.Errorf("%w: this site holds %d, its limit", ErrFull, s.live)
	case s.users[j.User] >= s.cfg.Limits.PerUser:
		return false, fmt.Errorf("%w: user %q has %d here, the limit for one user", ErrFull, j.User, s.users[j.User])
	}
	return false, nil
}

// sameJob reports whether two submissions under one ID ask for the same thing.
// The instant of submission is ours, not the user's, so it does not count.
func sameJob(a, b *grid.Job) bool {
	pa, pb := wire.JobProto(a), wire.JobProto(b)
	pa.Submit, pb.Submit = 0, 0
	pa.Deadline, pb.Deadline = 0, 0 // users give a span; it was turned into an instant each time
	return proto.Equal(pa, pb)
}

// place starts a new execution of a home job: through the market if its owner
// set a goal or a bound, otherwise in the local queue.
func (s *Site) place(now grid.Time, e *entry, out *grid.Outbox) {
	e.epoch++
	e.state = Placing
	e.lease, e.gone = 0, 0
	e.award = market.Award{}
	if divided(e.job) {
		e.gang = nil
		s.divide(now, e, out)
		return
	}
	if s.packs(e.job) {
		s.collect(now, e)
		return
	}
	if s.agent != nil && s.marketed(e.job) {
		s.agent.Step(now, &market.Place{Job: e.job, Epoch: e.epoch, Messages: e.messages}, out)
		return
	}
	s.placeHere(now, e, out)
}

// placeHere puts a home job into the local queue.
func (s *Site) placeHere(now grid.Time, e *entry, out *grid.Outbox) {
	request := lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: e.job.EstimateAt(s.cfg.Rating)}
	if err := s.enqueue(now, request, e); err != nil {
		e.reason = err.Error()
		s.end(now, e, Refused, out)
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
		return
	}
	e.state = Queued
	e.award = market.Award{Site: s.cfg.ID, Epoch: e.epoch, Price: s.Price(), Until: grid.Never,
		Cost: s.cfg.Cost.Cost(s.Price(), e.job.Processors, request.Estimate)}
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID, Cost: e.award.Cost})
}

// marketed reports whether the market places the job (DESIGN: a deadline, a
// budget, a goal, or a site that its owner named). Where TITAN orders the queue, a
// deadline alone does not take a job there that is to run here: TITAN weighs it.
func (s *Site) marketed(j *grid.Job) bool {
	home := s.cfg.ID
	if s.cfg.Discipline == lrms.TITAN && j.Goal == grid.GoalLocal && j.Budget < 0 && (j.Site == "" || j.Site == home) {
		return false
	}
	return j.Goal != grid.GoalLocal || j.Deadline != grid.Never || j.Budget >= 0 || j.Site != "" && j.Site != home
}

// placed is the market's good news: a site guarantees the job.
func (s *Site) placed(now grid.Time, in *market.Placed, out *grid.Outbox) {
	e := s.current(grid.TaskID{Job: in.Job, Epoch: in.Award.Epoch})
	if e == nil {
		return
	}
	e.award, e.messages = in.Award, in.Messages
	if e.packed == nil {
		e.verdicts = in.Verdicts
	} else {
		s.packedAway(now, e)
	}
	if in.Award.Bank != "" { // it is placed once it is paid for
		out.Save(e)
		return
	}
	if e.state == Placing {
		e.state = Awarded
		if in.Award.Site == s.cfg.ID {
			e.state = Queued
			e.award.Until = grid.Never // nobody else counts on its end
		}
	}
	out.Save(e)
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: in.Award.Site, Cost: in.Award.Cost, Messages: e.messages})
}

// refused is the market's bad news: nobody takes the job.
func (s *Site) refused(now grid.Time, in *market.Refused, out *grid.Outbox) {
	e := s.jobs[in.Job]
	if e == nil || e.foreign || e.state != Placing {
		return
	}
	if e.packed != nil {
		s.packRefused(now, e, in, out)
		return
	}
	e.verdicts, e.messages, e.reason = in.Verdicts, in.Messages, in.Reason
	out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Messages: e.messages, Text: e.reason})
	s.end(now, e, Refused, out)
}

// accepted is a job of another site that came here within its hold. The agent
// has committed its reservation and acknowledges once this step is durable.
func (s *Site) accepted(now grid.Time, in *market.Accepted, out *grid.Outbox) {
	task := grid.TaskID{Job: in.Job.ID, Epoch: in.Award.Epoch}
	if old := s.jobs[in.Job.ID]; old != nil {
		if !old.foreign || old.job.Home != in.Job.Home {
			s.cluster.Cancel(now, task)
			result := grid.Result{Start: now, End: now, ExitCode: 1, Reason: ErrOtherJob.Error()}
			s.agent.Step(now, &market.Ended{Task: task, Result: result}, out)
			return
		}
		s.supersede(now, old, out)
	}
	e := s.entries.New()
	e.job, e.state, e.foreign = in.Job, Queued, true
	e.epoch, e.award = in.Award.Epoch, in.Award
	s.add(e)
	out.Save(e)
}

// supersede makes room for a later epoch of a foreign job.
func (s *Site) supersede(now grid.Time, old *entry, out *grid.Outbox) {
	if old.state == Running {
		out.Kill(grid.Task{ID: old.task(), Job: old.job, Cause: "its home placed it anew"})
	}
	s.cluster.Cancel(now, old.task())
	s.forgetRecovered(old)
	s.drop(old)
}

// start runs a task that the scheduler has given processors.
func (s *Site) start(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	e := s.current(id)
	if e == nil {
		panic(fmt.Sprintf("node: scheduler started unknown task %v", id))
	}
	limit := max(e.job.Estimate, e.job.EstimateAt(s.cfg.Rating))
	if now.Add(limit) > e.award.Until {
		// Home counts this execution as impossible from Until on and places it
		// anew, so it must not be alive then.
		s.cluster.Ended(now, id)
		s.expired(now, e, out)
		return
	}
	e.state, e.start = Running, now
	out.Start(grid.Task{ID: id, Job: e.job, Limit: limit})
	out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID})
}

// expired gives up an execution that can no longer keep its award.
func (s *Site) expired(now grid.Time, e *entry, out *grid.Outbox) {
	if !e.foreign {
		s.lost(now, e.task(), out)
		return
	}
	s.agent.Step(now, &market.Abandoned{Task: e.task()}, out) // home places it anew
	out.Delete(e)
	s.drop(e)
}

// taskEnded records the end of an execution here and gives its processors back.
func (s *Site) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) {
	if epoch, yes := IsPilot(in.ID); yes {
		s.pilotEnded(now, epoch, out)
		return
	}
	if s.gangEnded(now, in, out) {
		return
	}
	if s.matches == nil || !s.matches.Ended(now, in.ID, out) {
		s.cluster.Ended(now, in.ID) // whoever it was, its processors are free
	}
	s.leave(now, in.ID, out)
	e := s.current(in.ID)
	if e == nil || e.state.Terminal() {
		return // an older epoch, or told twice
	}
	if in.Lost && e.gone > now {
		return // its lease is over, and nobody knows what is left of it: rescue comes
	}
	s.forgetRecovered(e)
	if vacated(e, in) {
		s.lost(now, in.ID, out)
		return
	}
	if in.Lost && e.state != Cancelling {
		s.vanished(now, e, out)
		return
	}
	e.result = in.Result
	e.result.Cost = min(s.cfg.Cost.Cost(e.award.Price, e.job.Processors, in.Result.End-in.Result.Start), e.award.Cost)
	out.Tell(grid.Event{Kind: grid.JobEnded, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID, Result: e.result})
	if e.foreign {
		e.state = outcomeOf(e)
		out.Save(e)
		s.agent.Step(now, &market.Ended{Task: in.ID, Result: e.result}, out)
		return
	}
	s.finish(now, e, out)
}

// vanished runs a task again whose process disappeared without an outcome.
func (s *Site) vanished(now grid.Time, e *entry, out *grid.Outbox) {
	e.losses++
	if !e.foreign {
		e.state = Queued
		s.lost(now, e.task(), out)
		return
	}
	// The same execution once more: the first is certainly dead, and home's
	// award still holds if it can end before Until.
	request := lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: e.job.EstimateAt(s.cfg.Rating)}
	if e.losses > lossesMax || s.cluster.Submit(now, request) != nil {
		s.expired(now, e, out)
		return
	}
	e.state = Queued
	out.Save(e)
}

// outcomeOf names the terminal state that a result means.
func outcomeOf(e *entry) State {
	switch {
	case e.state == Cancelling:
		return CancelledByUser
	case e.result.ExitCode != 0 || e.result.Reason != "":
		return Failed
	}
	return Done
}

// finish ends a home job with its result.
func (s *Site) finish(now grid.Time, e *entry, out *grid.Outbox) {
	state := outcomeOf(e)
	if e.result.Reason != "" {
		e.reason = e.result.Reason
	}
	kind := grid.JobFinished
	if state == CancelledByUser {
		kind = grid.JobCancelled
	}
	out.Tell(grid.Event{Kind: kind, Job: e.job, Epoch: e.epoch, Site: e.award.Site, Cost: e.result.Cost, Messages: e.messages, Result: e.result, Text: e.reason})
	s.end(now, e, state, out)
}

// completed is the result of a job that ran elsewhere.
func (s *Site) completed(now grid.Time, in *market.Completed, out *grid.Outbox) {
	e := s.current(in.Task)
	if e == nil || e.foreign || e.state.Terminal() {
		return
	}
	e.result, e.messages = in.Result, in.Messages
	s.finish(now, e, out)
}

// lostElsewhere is the agent's word that an execution at another site does not exist.
func (s *Site) lostElsewhere(now grid.Time, in *market.Lost, out *grid.Outbox) {
	s.desk.Unwanted(now, in.Task, out)
	if e := s.current(in.Task); e != nil {
		e.messages = in.Messages
	}
	s.lost(now, in.Task, out)
}

// lost places a home job again whose execution certainly does not exist.
func (s *Site) lost(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	e := s.current(id)
	switch {
	case e == nil || e.foreign || e.state.Terminal() || e.parked:
		return
	case e.state == Cancelling:
		out.Tell(grid.Event{Kind: grid.JobCancelled, Job: e.job, Epoch: e.epoch, Text: e.reason})
		s.end(now, e, CancelledByUser, out)
		return
	case e.losses >= lossesMax:
		e.reason = causeLosses
		e.result = grid.Result{ExitCode: 1, Reason: causeLosses}
		s.finish(now, e, out)
		return
	}
	out.Tell(grid.Event{Kind: grid.JobReplaced, Job: e.job, Epoch: e.epoch, Site: e.award.Site})
	s.place(now, e, out)
	s.save(e, out)
}

// delivered: home has the result of a job that ran here.
func (s *Site) delivered(now grid.Time, in *market.Delivered, out *grid.Outbox) {
	if e := s.current(in.Task); e != nil && e.foreign && e.state.Terminal() {
		out.Delete(e)
		s.drop(e)
	}
}

// revoke: home wants a job that it gave us to end.
func (s *Site) revoke(now grid.Time, in *market.Revoke, out *grid.Outbox) {
	e := s.current(in.Task)
	if e == nil || !e.foreign || e.state.Terminal() || e.state == Cancelling {
		return // told again: an execution that is being killed reports its end
	}
	s.withdraw(now, e, in.Cause, out)
}

// cancel ends a home job because its user wants it.
func (s *Site) cancel(now grid.Time, in *Cancel, out *grid.Outbox) {
	e := s.jobs[in.Job]
	answer := &Cancelled{}
	switch {
	case e == nil || e.foreign:
		answer.Err = fmt.Errorf("%s: %w", in.Job, ErrUnknownJob)
	case !e.state.Terminal() && e.state != Cancelling:
		s.withdraw(now, e, in.Cause, out)
		answer.State = e.state
	default:
		answer.State = e.state
	}
	if in.Token != 0 {
		out.Answer(in.Token, answer)
	}
}

// withdraw ends a job wherever it stands: at once if nothing runs, otherwise
// when whoever runs it says so.
func (s *Site) withdraw(now grid.Time, e *entry, cause string, out *grid.Outbox) {
	e.reason = cause
	before := e.state
	e.state = Cancelling
	switch before {
	case Running:
		if e.gone == 0 {
			out.Kill(grid.Task{ID: e.task(), Job: e.job, Cause: cause, Pilot: s.pilotFor(e)})
		}
		out.Save(e)
	case Awarded:
		s.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: cause}, out)
		out.Save(e)
	default:
		if divided(e.job) {
			s.withdrawDivided(now, e, out)
		}
		if before == Placing && s.agent != nil {
			s.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: cause}, out)
		}
		s.dequeue(now, e, out)
		s.uncollect(e)
		s.forgetRecovered(e)
		e.result = grid.Result{Start: now, End: now, ExitCode: ExitCancelled, Reason: cause}
		if e.foreign {
			e.state = CancelledByUser
			out.Save(e)
			s.agent.Step(now, &market.Ended{Task: e.task(), Result: e.result}, out)
			return
		}
		s.finish(now, e, out)
	}
}

// exitCancelled is the exit code of a job that was cancelled before it ran: as
// if a SIGTERM had ended it.
const ExitCancelled = 128 + 15
