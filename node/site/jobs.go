package site

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market"
	"gridnode/node/after"
	"gridnode/node/blame"
	"gridnode/node/quota"
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
	// ErrState: what was asked for is not possible in the state that the job is in.
	ErrState = errors.New("not in this state")
)

// jobs is the part that every site has: the jobs, what state they are in, and the
// executions on this site's own processors.
type jobs struct {
	*base
	table
	ways     []way // of home jobs to processors, in the order in which they are tried
	queue    queue
	agent    core // hears what becomes of jobs that came from others or went there
	recovery *recovery
	watchers []watcher
	gate     *after.Gate // where home jobs wait that may not be placed yet
	desk     *quota.Desk // of this site's users; nil: they are not counted
	charged  grid.Price  // by which the desk reckoned last what jobs may cost
	numbers  numbers
	deaths   blame.Deaths // of this machine
	spreads  *spreads     // nil: no job may be spread
	gpus     *gpu.Pool
	started  []lrms.Request
	ended    market.Ended // what the agent is told, so that telling it allocates nothing

	chronicle *chronicle  // nil: no job log is kept
	members   *membership // nil: the federation is open
}

// core is what a part has of a core that it only tells something.
type core interface {
	Step(now grid.Time, in grid.Input, out *grid.Outbox)
}

// way is how a home job comes to processors.
type way interface {
	// wants reports whether this is the way of a job. It depends on the job alone.
	wants(j *grid.Job) bool
	// admit returns why a job cannot be taken, if it is certain from the beginning.
	admit(now grid.Time, j *grid.Job) error
	// place begins a new execution.
	place(now grid.Time, e *entry, out *grid.Outbox)
	// withdraw takes back a job that has not started.
	withdraw(now grid.Time, e *entry, out *grid.Outbox)
	// explain adds to what users see of a job what it waits for; whole if it alone is
	// looked at.
	explain(e *entry, v *View, whole bool)
	// preview answers how a job would be placed.
	preview(now grid.Time, in *Preview, out *grid.Outbox)
}

// watcher is a part that has executions which do not run on this site's processors, or
// not only: of pilots and of gangs.
type watcher interface {
	// taskEnded reports whether the execution that ended was of that part.
	taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool
	// adopted reports whether the one that still runs after a restart is.
	adopted(in *Adopted, out *grid.Outbox) bool
	// minds reports whether the part will say when nothing is left of an execution.
	minds(id grid.TaskID) bool
}

func (*jobs) takes(b *board) {
	of := func(s *Site) *jobs { return s.jobs }
	take(b, of, (*jobs).submit)
	take(b, of, (*jobs).cancel)
	take(b, of, (*jobs).preview)
	take(b, of, (*jobs).hold)
	take(b, of, (*jobs).requeue)
	take(b, of, (*jobs).taskEnded)
	take(b, of, (*jobs).limit)
}

// tick places the jobs that wait no longer. What is due starts.
func (js *jobs) tick(now grid.Time, out *grid.Outbox) {
	js.reprice()
	for id, verdict, more := js.gate.Next(now); more; id, verdict, more = js.gate.Next(now) {
		e := js.byID[id]
		if verdict == after.Drop {
			_, why := js.gate.Why(id)
			js.withdraw(now, e, why, out)
			continue
		}
		e.reason = ""
		js.place(now, e, out)
		js.save(e, out)
	}
}

func (js *jobs) nextTimer() grid.Time {
	return min(js.cluster.NextTimer(), js.nextExpiry(), js.gate.NextTimer())
}

func (js *jobs) tell(now grid.Time, out *grid.Outbox) { js.expire(now, out) }

func (*jobs) stale() grid.Time { return grid.Never }

// submit takes a job: saved, then acknowledged, then placed or queued.
func (js *jobs) submit(now grid.Time, in *Submit, out *grid.Outbox) {
	known, err := js.admit(now, in.Job)
	if in.Token != 0 {
		out.Answer(in.Token, &Submitted{ID: in.Job.ID, Known: known, Err: err})
	}
	if known || err != nil {
		return
	}
	e := new(entry)
	e.job, e.turn = in.Job, after.TurnOf(in.Job)
	js.number(e.job, out)
	js.enter(e)
	out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: e.job})
	waits := js.gate.Waits(e.job)
	js.gate.Enter(e.job, waits)
	if waits {
		e.state = Waiting
		js.gate.Wait(e.job, &e.turn, &js.table)
	} else {
		js.place(now, e, out)
	}
	js.save(e, out)
}

// admit decides whether a job is taken; known means that it was before.
func (js *jobs) admit(now grid.Time, j *grid.Job) (known bool, err error) {
	if err := wire.CheckJob(j); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e := js.byID[j.ID]; e != nil {
		if e.foreign || !sameJob(e.job, j) {
			return false, fmt.Errorf("%s: %w", j.ID, ErrOtherJob)
		}
		return true, nil
	}
	if js.draining {
		return false, ErrDraining
	}
	if len(j.Inputs) > 0 && !divided(j) {
		return false, fmt.Errorf("%w: it names inputs, which only jobs do that are placed by the policies of co-allocation", ErrInvalid)
	}
	if err := after.Refuses(j, &js.table); err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	err = js.wayOf(j).admit(now, j)
	switch {
	case err != nil:
		return false, err
	case js.chronicle.full():
		return false, fmt.Errorf("%w: the job log cannot be written: see the daemon's log", ErrSpace)
	case len(js.live) >= js.limits.Jobs:
		return false, fmt.Errorf("%w: this site holds %d, its limit", ErrFull, len(js.live))
	case js.users[j.User] >= js.limits.PerUser:
		return false, fmt.Errorf("%w: user %q has %d here, the limit for one user", ErrFull, j.User, js.users[j.User])
	case len(js.live) >= js.limits.Jobs-js.limits.reserve() && js.users[j.User] >= max(1, js.limits.reserve()/reserveShares):
		return false, fmt.Errorf("%w: this site holds %d, and what room is left is for users who have fewer than user %q, %d", ErrFull, len(js.live), j.User, js.users[j.User])
	}
	return false, js.desk.Refuses(j, int64(js.users[j.User]))
}

// reserveShares is among how many users the reserve is divided.
const reserveShares = 64

// reserve returns for how many jobs there is room that only users with few jobs get, so that
// those who take what they can get do not keep others out; none where one user may have all.
func (l *Limits) reserve() int {
	if l.PerUser >= l.Jobs {
		return 0
	}
	return l.Jobs / 16
}

// sameJob reports whether two submissions under one ID ask for the same thing.
// The instant of submission is ours, not the user's, so it does not count.
func sameJob(a, b *grid.Job) bool {
	pa, pb := wire.JobProto(a), wire.JobProto(b)
	pa.Submit, pb.Submit = 0, 0
	pa.Deadline, pb.Deadline = 0, 0                                     // users give a span; it was turned into an instant each time
	pa.Number, pb.Number = 0, 0                                         // the first one was numbered
	if pa.Restarts != pb.Restarts && pa.Budget >= 0 && pb.Budget >= 0 { // one is what is left of the other
		pa.Budget, pb.Budget = 0, 0
	}
	pa.Restarts, pb.Restarts = 0, 0
	for _, p := range []*wirepb.Job{pa, pb} {
		if p.Array != nil {
			p.Array.Number = 0
		}
		if p.Terms != nil {
			p.Terms.Begin = 0 // a span, too
		}
	}
	return proto.Equal(pa, pb)
}

// divided reports whether a job may run at several sites at once.
func divided(j *grid.Job) bool { return j.Coallocate != nil }

// wayOf returns how a home job comes to processors.
func (js *jobs) wayOf(j *grid.Job) way {
	for _, w := range js.ways {
		if w.wants(j) {
			return w
		}
	}
	panic(fmt.Sprintf("site: no way for job %s", j.ID)) // the last one is for all
}

// place starts a new execution of a home job.
func (js *jobs) place(now grid.Time, e *entry, out *grid.Outbox) {
	e.epoch++
	e.state = Placing
	e.lease, e.gone, e.gang, e.gpus = 0, 0, nil, nil
	e.award = market.Award{}
	js.wayOf(e.job).place(now, e, out)
}

// preview answers how a job would be placed.
func (js *jobs) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	js.wayOf(in.Job).preview(now, in, out)
}

// cancel ends a home job because its user wants it.
func (js *jobs) cancel(now grid.Time, in *Cancel, out *grid.Outbox) {
	e := js.byID[in.Job]
	answer := &Cancelled{}
	switch {
	case e == nil || e.foreign:
		answer.Err = fmt.Errorf("%s: %w", in.Job, ErrUnknownJob)
	case !e.state.Terminal() && e.state != Cancelling:
		js.withdraw(now, e, in.Cause, out)
		answer.State = e.state
	case e.state == Cancelling && e.turn.Again: // it was to run again
		e.turn.Again, e.reason, answer.State = false, in.Cause, e.state
		out.Save(e)
	default:
		answer.State = e.state
	}
	if in.Token != 0 {
		out.Answer(in.Token, answer)
	}
}

// withdraw ends a job wherever it stands: at once if nothing runs, otherwise
// when whoever runs it says so.
func (js *jobs) withdraw(now grid.Time, e *entry, cause string, out *grid.Outbox) {
	e.reason = cause
	before := e.state
	e.state = Cancelling
	switch before {
	case Running:
		if e.gone == 0 {
			out.Kill(grid.Task{ID: e.task(), Job: e.job, Cause: cause, Pilot: js.queue.pilotOf(e)})
		}
		out.Save(e)
		return
	case Awarded:
		js.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: cause}, out)
		out.Save(e)
		return
	}
	if before == Waiting { // nobody else knows of it
		e.result = grid.Result{Start: now, End: now, ExitCode: ExitCancelled, Reason: cause}
		js.finish(now, e, out)
		return
	}
	if !e.foreign {
		js.wayOf(e.job).withdraw(now, e, out)
	}
	if before == Placing {
		js.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: cause}, out)
	}
	held := js.queue.dequeue(now, e, out)
	js.recovery.forget(e)
	e.result = grid.Result{Start: now, End: now, ExitCode: ExitCancelled, Reason: cause}
	if held > 0 { // its user is accountable for processors that were delegated to this site for it
		e.result.Cost = min(grid.CostProcessorTime.Cost(e.award.Price, 1, held), e.award.Cost)
	}
	if e.foreign {
		e.state = CancelledByUser
		out.Save(e)
		js.chronicle.job(now, e, e.state, out)
		js.agent.Step(now, &market.Ended{Task: e.task(), Result: e.result}, out)
		return
	}
	js.finish(now, e, out)
}

// ExitCancelled is the exit code of a job that was cancelled before it ran: as
// if a SIGTERM had ended it.
const ExitCancelled = 128 + 15

// refuse ends a home job that nobody takes.
func (js *jobs) refuse(now grid.Time, e *entry, out *grid.Outbox) {
	out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Messages: e.messages, Text: e.reason})
	js.end(now, e, Refused, out)
}

// view copies an entry for users, with what it waits for.
func (js *jobs) view(e *entry, whole bool) View {
	v := e.view()
	js.outlook(e, &v, whole)
	v.TTL = js.queue.ttl(e)
	switch {
	case e.state == Waiting:
		var why string
		if v.WaitsFor, why = js.gate.Why(e.job.ID); why != "" {
			v.Reason = why
		}
	case !e.foreign && !e.state.Terminal():
		if whole && e.state == Queued {
			v.Verdicts = slices.Concat(v.Verdicts, js.queue.barred(e))
		}
		js.wayOf(e.job).explain(e, &v, whole)
	}
	return v
}

// outlook says how far a job is that has not ended, and when it begins.
func (js *jobs) outlook(e *entry, v *View, whole bool) {
	switch {
	case e.state == Awarded && e.start > 0: // its site has said so
		v.State = Running
	case e.state == Awarded && e.expected > 0:
		v.Expected, v.How = e.expected, Foretold
	case e.state == Queued && whole:
		o, waits := js.cluster.Outlook(e.task())
		if !waits {
			return
		}
		if !o.Promised {
			v.Place, v.How = o.Before+1, Estimated
		} else {
			v.How = Promised
		}
		if v.Expected = o.Start; o.Start == grid.Never {
			v.Expected, v.How = 0, Unexpected
		}
	}
}

// end moves a home job to a terminal state, and lets those go that waited for it.
func (js *jobs) end(now grid.Time, e *entry, state State, out *grid.Outbox) {
	js.table.end(now, e, state, out)
	js.chronicle.job(now, e, state, out)
	for _, id := range js.gate.Leave(e.job, state == Done) {
		out.Save(js.byID[id])
	}
	js.gate.Begun(e.job, &js.table) // of its array the others may have begun
}

// again has a job run once more whose execution is over, with what is left of its budget.
func (js *jobs) again(e *entry, out *grid.Outbox) {
	out.Tell(grid.Event{Kind: grid.JobReplaced, Job: e.job, Epoch: e.epoch, Site: e.award.Site, Cost: e.result.Cost})
	e.turn.Again = false
	job := *e.job // whoever else has the old one goes on with that
	job.Restarts++
	if job.Budget >= 0 {
		job.Budget = max(job.Budget-e.result.Cost, 0)
	}
	e.job = &job
	js.wait(e, out)
}

// wait has a job wait that was let go before.
func (js *jobs) wait(e *entry, out *grid.Outbox) {
	e.epoch++ // whatever is said of the last execution from now on comes too late
	e.state, e.start, e.result, e.lease, e.gone, e.gang, e.gpus = Waiting, 0, grid.Result{}, 0, 0, nil, nil
	e.award, e.losses, e.unheard, e.reason, e.turn.Met = market.Award{}, 0, blame.Unheard{}, "", true
	js.gate.Back(e.job)
	js.gate.Wait(e.job, &e.turn, &js.table)
	out.Save(e)
}

// hold has a job wait for its owner, or lets it go.
func (js *jobs) hold(now grid.Time, in *Hold, out *grid.Outbox) {
	e := js.byID[in.Job]
	answer := &Changed{}
	switch {
	case e == nil || e.foreign:
		answer.Err = fmt.Errorf("%s: %w", in.Job, ErrUnknownJob)
	case e.state == Waiting && in.Release:
		js.gate.Release(in.Job)
		out.Save(e)
	case e.state == Waiting:
		js.gate.Hold(in.Job)
		out.Save(e)
	case in.Release:
		answer.Err = fmt.Errorf("%s: %w: it is %s, and nobody holds it", in.Job, ErrState, e.state)
	case (e.state != Queued && e.state != Placing) || e.award.Bank != "" || e.packed != nil || divided(e.job):
		answer.Err = fmt.Errorf("%s: %w: it is %s, and only what waits for a place or in this site's queue can be held", in.Job, ErrState, e.state)
	default:
		js.wayOf(e.job).withdraw(now, e, out)
		if e.state == Placing {
			js.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: "held"}, out)
		}
		js.queue.dequeue(now, e, out)
		js.recovery.forget(e)
		e.turn.Held = true
		js.wait(e, out)
	}
	if e != nil {
		answer.State = e.state
	}
	if in.Token != 0 {
		out.Answer(in.Token, answer)
	}
}

// requeue has a job run again.
func (js *jobs) requeue(now grid.Time, in *Requeue, out *grid.Outbox) {
	e := js.byID[in.Job]
	answer := &Changed{}
	switch {
	case e == nil || e.foreign:
		answer.Err = fmt.Errorf("%s: %w", in.Job, ErrUnknownJob)
	case e.state == Running || e.state == Awarded:
		e.turn.Again = true
		js.withdraw(now, e, in.Cause, out)
	case e.state.Terminal():
		answer.Err = fmt.Errorf("%s: %w: it is over: submit it again", in.Job, ErrState)
	case e.state == Cancelling:
		answer.Err = fmt.Errorf("%s: %w: it is being ended", in.Job, ErrState)
	}
	if e != nil {
		answer.State = e.state
	}
	if in.Token != 0 {
		out.Answer(in.Token, answer)
	}
}
