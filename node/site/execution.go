package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market"
)

// causeLosses is why a job fails whose executions vanish.
const causeLosses = "its execution vanished too often"

// causeOnce is why one fails that was not to be run again.
const causeOnce = "its execution vanished, and it was not to be run again"

// lossesMax is how many executions of one job may vanish before it fails: a job
// that takes its machine down each time must not travel through the federation.
const lossesMax = 3

// startTasks starts what can start on this site's own processors.
func (js *jobs) startTasks(now grid.Time, out *grid.Outbox) {
	if js.desk.Shares() {
		js.cluster.Favour(now, js.ownerOf, js.desk.Favours(now))
	}
	js.started = js.queue.schedule(now, js.started[:0], out)
	for i := range js.started {
		js.start(now, js.started[i].ID, out)
	}
}

// start runs a task that the scheduler has given processors.
func (js *jobs) start(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	e := js.current(id)
	if e == nil {
		panic(fmt.Sprintf("site: scheduler started unknown task %v", id))
	}
	limit := js.limitOf(e.job)
	if now.Add(limit) > e.award.Until || e.leaseOver(now) {
		// Home counts this execution as impossible from Until on, and from a grace
		// after the end of its lease, and places it anew: it must not be alive then.
		js.cluster.Ended(now, id)
		js.expired(now, e, out)
		return
	}
	if e.job.Spread {
		js.spreads.run(now, e, e.job.Processors, nil, out)
		return
	}
	e.state, e.start = Running, now
	js.began(e)
	task := grid.Task{ID: id, Job: e.job, Limit: limit, Until: e.award.Until, Lease: e.leased}
	if e.job.GPUs.Count > 0 {
		e.gpus = js.gpus.Of(id)
		task.GPUs = e.gpus
		out.Save(e) // before it starts: after a crash nobody else gets them
	}
	out.Start(task)
	out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: js.cfg.ID})
	js.gate.Begun(e.job, &js.table)
	js.tellHome(now, e, out)
}

// began counts an execution of a home job on this site's own processors.
func (js *jobs) began(e *entry) {
	if !e.foreign {
		js.desk.Began(e.job, e.start)
	}
}

// once reports whether a job is not run again whose execution vanished.
func once(j *grid.Job) bool { return j.Terms != nil && j.Terms.Once }

// expired gives up an execution that can no longer keep its award.
func (js *jobs) expired(now grid.Time, e *entry, out *grid.Outbox) {
	if !e.foreign {
		js.lost(now, e.task(), out)
		return
	}
	js.chronicle.job(now, e, Returned, out)
	if e.losses > 0 { // which home must hear of, also if this site goes down before it does
		e.state, e.result = Returned, grid.Result{Start: now, End: now}
		out.Save(e)
	} else {
		out.Delete(e)
		js.drop(e)
	}
	js.abandon(now, e, out)
}

// abandon has home place a job anew whose execution here is given up.
func (js *jobs) abandon(now grid.Time, e *entry, out *grid.Outbox) {
	js.agent.Step(now, &market.Abandoned{Task: e.task(), Losses: e.losses}, out)
}

// taskEnded records the end of an execution here and gives its processors back.
func (js *jobs) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) {
	for _, w := range js.watchers {
		if w.taskEnded(now, in, out) {
			return
		}
	}
	js.queue.ended(now, in.ID, out)
	e := js.current(in.ID)
	if e == nil || e.state.Terminal() {
		return // an older epoch, or told twice
	}
	js.desk.Ended(now, e.job)
	if in.Lost && e.gone > now {
		return // its lease is over, and nobody knows what is left of it: limbo tells when that is nothing
	}
	if js.recovery.forget(e) {
		js.gpus.Release(in.ID) // which nobody else knew
	} else if e.state == Queued {
		if in.Lost {
			return // told twice: it waits to be run once more
		}
		js.queue.dequeue(now, e, out) // an older copy of the store did not know that it had begun
	}
	if vacated(e, in) {
		js.lost(now, in.ID, out)
		return
	}
	if in.Lapsed && e.state != Cancelling && !js.members.outcast(e.job.Home) {
		js.expired(now, e, out) // home may have it placed anew by now
		return
	}
	if in.Lost && e.state != Cancelling {
		if in.Result.Reason != "" {
			js.notices = append(js.notices, Notice{Text: "an execution vanished", About: []any{"job", e.job.ID, "why", in.Result.Reason}})
		}
		js.vanished(now, e, out)
		return
	}
	if in.Lost && e.lease == 0 {
		js.died(now, e, out) // it speaks for those that were not there
	}
	e.result = e.resultOf(now, in)
	e.result.Cost = min(js.cfg.Cost.Cost(e.award.Price, e.job.Processors, in.Result.End-in.Result.Start), e.award.Cost)
	out.Tell(grid.Event{Kind: grid.JobEnded, Job: e.job, Epoch: e.epoch, Site: js.cfg.ID, Result: e.result})
	if e.foreign {
		e.state = outcomeOf(e)
		out.Save(e)
		js.chronicle.job(now, e, e.state, out)
		js.ended = market.Ended{Task: in.ID, Result: e.result}
		js.agent.Step(now, &js.ended, out)
		return
	}
	js.finish(now, e, out)
}

// resultOf returns what an execution has come to. Of one that was to end and has vanished nobody knows
// more than that, and certainly not that it has ended well.
func (e *entry) resultOf(now grid.Time, in *grid.TaskEnded) grid.Result {
	if in.Lost {
		return grid.Result{Start: now, End: now, ExitCode: ExitCancelled, Reason: e.reason}
	}
	return in.Result
}

// minded reports whether a part will say when nothing is left of an execution.
func (js *jobs) minded(id grid.TaskID) bool {
	for _, w := range js.watchers {
		if w.minds(id) {
			return true
		}
	}
	return false
}

// died notes that an execution has vanished with this machine, and reports whether that speaks
// against its job.
func (js *jobs) died(now grid.Time, e *entry, out *grid.Outbox) bool {
	suspect := js.deaths.Vanished(now, e.job.ID)
	out.Save(&js.deaths)
	return suspect
}

// vanished runs a task again whose process disappeared without an outcome.
func (js *jobs) vanished(now grid.Time, e *entry, out *grid.Outbox) {
	switch {
	case e.lease != 0: // of another's machine, whose other deaths nobody here knows
		e.losses++
	default:
		if js.died(now, e, out) || once(e.job) {
			e.losses++
		}
	}
	if !e.foreign {
		e.state = Queued
		js.lost(now, e.task(), out)
		return
	}
	// The same execution once more: the first is certainly dead, and home's
	// award still holds if it can end before Until. Home counts what vanished here.
	switch {
	case e.losses >= lossesMax, once(e.job):
		js.expired(now, e, out)
		return
	case e.leaseUnknown():
		e.adrift = true
	case js.cluster.Submit(now, js.requestOf(e)) != nil:
		js.expired(now, e, out)
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
	case failed(&e.result):
		return Failed
	}
	return Done
}

// failed reports whether an execution has not done what it was to.
func failed(r *grid.Result) bool { return r.ExitCode != 0 || r.Reason != "" }

// repeats reports whether a job is run again after an execution with that result: its owner
// wants it (Requeue), or its terms.
func (e *entry) repeats(r *grid.Result) bool {
	if e.state == Cancelling {
		return e.turn.Again
	}
	t := e.job.Terms
	return t != nil && e.turn.Retries < t.Retries && failed(r)
}

// finish ends a home job with its result.
func (js *jobs) finish(now grid.Time, e *entry, out *grid.Outbox) {
	js.desk.Spent(now, e.job.User, e.result.Cost, out)
	if e.repeats(&e.result) {
		if e.state != Cancelling {
			e.turn.Retries++
		}
		js.again(e, out)
		return
	}
	state := outcomeOf(e)
	if e.result.Reason != "" && (state != CancelledByUser || e.reason == "") { // who was to run again may have been cancelled since
		e.reason = e.result.Reason
	}
	kind := grid.JobFinished
	if state == CancelledByUser {
		kind = grid.JobCancelled
	}
	out.Tell(grid.Event{Kind: kind, Job: e.job, Epoch: e.epoch, Site: e.award.Site, Cost: e.result.Cost, Messages: e.messages, Result: e.result, Text: e.reason})
	js.end(now, e, state, out)
}

// lost places a home job again whose execution certainly does not exist.
func (js *jobs) lost(now grid.Time, id grid.TaskID, out *grid.Outbox) {
	e := js.current(id)
	switch {
	case e == nil || e.foreign || e.state.Terminal():
		return
	case e.state == Cancelling && e.turn.Again:
		js.again(e, out)
		return
	case e.state == Cancelling:
		out.Tell(grid.Event{Kind: grid.JobCancelled, Job: e.job, Epoch: e.epoch, Text: e.reason})
		js.end(now, e, CancelledByUser, out)
		return
	case e.losses >= lossesMax, e.losses > 0 && once(e.job):
		e.reason = causeLosses
		if e.losses < lossesMax {
			e.reason = causeOnce
		}
		e.result = grid.Result{ExitCode: 1, Reason: e.reason}
		js.finish(now, e, out)
		return
	}
	out.Tell(grid.Event{Kind: grid.JobReplaced, Job: e.job, Epoch: e.epoch, Site: e.award.Site})
	js.place(now, e, out)
	js.save(e, out)
}
