package site

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// spreads is the part that runs jobs which may be spread (grid.Job.Spread): such a job
// runs its command once for each task, wherever that has its processors, on this site's
// own and on leased ones besides, which lease.SSTRD and lease.XSTRD look for. It waits in
// the queue as others do. Its tasks start and end together, as those of a co-allocated
// job do.
type spreads struct {
	here  // its way, until it starts
	book  *lease.Book
	match *lease.Matchmaker
	limbo *limbo
	alive map[grid.TaskID]bool // executions of which something may be alive
}

func (*spreads) takes(b *board) {
	take(b, func(s *Site) *spreads { return s.spreads }, (*spreads).lost)
}

// workOf returns a job as the matchmaker takes it.
func workOf(r lrms.Request, e *entry) lease.Work {
	w := lease.Work{Request: r, Born: e.job.Submit, TTL: e.job.TTL, By: e.job.Deadline}
	if e.job.Spread {
		w.Unit = e.job.Processors / e.job.Tasks
	}
	return w
}

func (*spreads) wants(j *grid.Job) bool { return j.Spread }

// admit checks a job that may be spread.
func (sp *spreads) admit(_ grid.Time, j *grid.Job) error {
	if divided(j) || sp.marketed(j) {
		return fmt.Errorf("%w: a job whose tasks may be spread waits in its site's queue: it can have no components, deadline, budget, site or policy", ErrInvalid)
	}
	if j.Tasks > grid.RanksMax {
		return fmt.Errorf("%w: %d tasks that may be spread, at most %d start together", ErrInvalid, j.Tasks, grid.RanksMax)
	}
	return nil
}

// run starts a job on so many own processors and on leases.
func (sp *spreads) run(now grid.Time, e *entry, own int64, leases []lease.Lease, out *grid.Outbox) {
	g := &grid.Gang{Task: e.task(), Each: e.job.Processors / e.job.Tasks}
	if own > 0 {
		g.Parts = append(g.Parts, grid.GangPart{Site: sp.cfg.ID, Processors: own})
	}
	for i := range leases {
		l := &leases[i]
		g.Parts = append(g.Parts, grid.GangPart{Site: l.Lender, Processors: l.Processors, Pilot: grid.Pilot{Site: l.Source, Key: l.Key}})
	}
	e.gang, e.start, e.award.Start = g, now, now
	sp.begin(e, out)
	out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: sp.cfg.ID})
	sp.gate.Begun(e.job, &sp.table)
}

// begin starts the tasks of a job, or takes them up again after a restart.
func (sp *spreads) begin(e *entry, out *grid.Outbox) {
	sp.alive[e.task()] = true
	cancelling := e.state == Cancelling
	if !cancelling {
		e.state, e.reason = Running, ""
	}
	out.Save(e)
	out.Start(grid.Task{ID: e.task(), Job: e.job, Limit: sp.limitOf(e.job), Gang: e.gang, Again: e.notes().resumed})
	if cancelling {
		out.Kill(grid.Task{ID: e.task(), Job: e.job, Cause: e.reason})
	}
}

// lost: the matchmaker's word that a job has lost processors. One that is not spread was
// put aside when its lease ended; a spread one is ended, and starts again when nothing of
// it is left anywhere.
func (sp *spreads) lost(now grid.Time, in *lease.Lost, out *grid.Outbox) {
	if !sp.alive[in.Task] {
		return
	}
	task := grid.Task{ID: in.Task, Cause: fmt.Sprintf("one of its leases is over: %s", in.Cause), Abandon: true}
	if e := sp.current(in.Task); e != nil && !e.state.Terminal() {
		task.Job = e.job
		sp.giveUp(now, e, in.Gone, task.Cause, out)
	}
	out.Kill(task)
}

// giveUp puts a job aside until nothing is left of its execution.
func (sp *spreads) giveUp(now grid.Time, e *entry, gone grid.Time, why string, out *grid.Outbox) {
	e.strand(now, max(e.gone, gone))
	if e.state != Cancelling {
		e.reason = why + "; it starts again once nothing of it is left anywhere"
	}
	out.Save(e)
	sp.limbo.put(e)
}

// vacate ends a job one of whose leases its lender has recalled, and which is about to end.
func (sp *spreads) vacate(number uint64, out *grid.Outbox) {
	if id, runs := sp.match.RunsOn(number); runs && sp.alive[id] {
		if e := sp.current(id); e != nil && e.state == Running {
			out.Kill(grid.Task{ID: id, Job: e.job, Cause: causeVacate})
		}
	}
}

// taskEnded implements watcher: it is the end of all tasks of an execution, or of those
// that anybody waits for.
func (sp *spreads) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool {
	if !sp.alive[in.ID] {
		return false
	}
	delete(sp.alive, in.ID)
	sp.queue.ended(now, in.ID, out)
	e := sp.current(in.ID)
	switch {
	case e == nil || e.state.Terminal():
	case e.gone > now && (in.Lost || in.Result.Reason == causeVacate || e.repeats(&in.Result)): // limbo tells when nothing is left
	case in.Lost && e.gone != 0, !in.Lost && in.Result.Reason == causeVacate:
		e.reason = ""
		sp.jobs.lost(now, in.ID, out)
	case in.Lost && e.state != Cancelling:
		e.losses++
		sp.jobs.lost(now, in.ID, out)
	default:
		e.result = e.resultOf(now, in)
		if e.divided != nil && e.divided.resumed {
			e.result.Start = e.begun()
		}
		e.result.Cost = min(sp.cfg.Cost.Cost(e.award.Price, e.job.Processors, max(e.result.End-e.result.Start, 0)), e.award.Cost)
		out.Tell(grid.Event{Kind: grid.JobEnded, Job: e.job, Epoch: e.epoch, Site: sp.cfg.ID, Result: e.result})
		sp.finish(now, e, out)
	}
	return true
}

// minds implements watcher.
func (sp *spreads) minds(id grid.TaskID) bool { return sp.alive[id] }

// adopted implements watcher: resume sees to it, or the end of the job has.
func (sp *spreads) adopted(in *Adopted, _ *grid.Outbox) bool {
	id, _, yes := grid.SquadOf(in.ID)
	e := sp.current(id)
	if !yes || e == nil || !e.spread() || e.state.Terminal() {
		return false
	}
	e.notes().here = true
	return true
}

// spread reports whether an execution was started as one that may be spread.
func (e *entry) spread() bool { return e.job.Spread && e.gang != nil }

// on returns the job, to be taken up after a restart, that runs on a lease; nil if there
// is none.
func (sp *spreads) on(l *lease.Lease) *entry {
	for _, e := range sp.recovery.waiting {
		if e == nil || !e.spread() {
			continue
		}
		for i := range e.gang.Parts {
			if e.gang.Parts[i].Pilot == (grid.Pilot{Site: l.Source, Key: l.Key}) {
				return e
			}
		}
	}
	return nil
}

// over notes that a lease has ended while the daemon was down. It is saved with the end of the lease:
// a daemon that dies before it takes the job up knows nothing else of when its tasks are dead.
func (sp *spreads) over(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	if e := sp.on(&in.Lease); e != nil {
		if e.gone != 0 {
			e.strandBack(now)
		}
		e.strand(now, max(e.gone, in.Gone, 1))
		out.Save(e)
	}
}

// resume takes a job up after a restart: where it waited, or on its processors if all its
// leases are there still. Otherwise it starts anew, once nothing is left of it.
func (sp *spreads) resume(now grid.Time, e *entry, out *grid.Outbox) {
	switch {
	case e.spread():
	case e.state == Cancelling:
		sp.jobs.withdraw(now, e, e.reason, out)
		return
	case e.state == Placing:
		sp.jobs.place(now, e, out)
		out.Save(e)
		return
	default:
		sp.recovery.promise(now, e, out)
		return
	}
	own, ids, gone, err := sp.processors(now, e)
	request := sp.requestOf(e)
	switch {
	case err != nil:
	case len(ids) == 0:
		err = sp.cluster.Adopt(now, request, now)
	default:
		err = sp.match.ResumeSpread(now, workOf(request, e), own, ids)
	}
	if err == nil {
		e.notes().resumed, e.start = true, e.award.Start
		sp.begin(e, out)
		return
	}
	for _, id := range ids {
		_ = sp.book.Release(now, id, out) // it is there
	}
	sp.alive[e.task()] = true // until it is dead: so long it has its own processors
	if own > 0 {
		request.Processors = own
		_ = sp.cluster.Adopt(now, request, now) // too wide: the site has fewer than before, none of them idle
	}
	out.Kill(grid.Task{ID: e.task(), Job: e.job, Cause: "its processors are not there any more", Abandon: true})
	sp.giveUp(now, e, gone, "the daemon was down when one of its leases ended", out)
}

var errGone = errors.New("a lease is not there any more")

// processors returns the own processors and the leases that a job ran on before a
// restart, when all of them are surely free of it if it is not taken up, and errGone if
// it cannot be.
func (sp *spreads) processors(now grid.Time, e *entry) (own int64, ids []lease.ID, gone grid.Time, err error) {
	gone = now + e.goneSpan
	if e.gone != 0 {
		e.strandBack(now)
		err = errGone
	}
	for i := range e.gang.Parts {
		p := &e.gang.Parts[i]
		if p.Pilot.Key == 0 {
			own = p.Processors
			continue
		}
		there := false
		for _, l := range sp.book.Leases() {
			if !l.Lent && l.State == lease.Active && l.Source == p.Pilot.Site && l.Key == p.Pilot.Key {
				there = true
				ids = append(ids, l.ID)
				gone = max(gone, sp.book.Gone(l.ID))
			}
		}
		if !there {
			err = errGone
		}
	}
	return own, ids, gone, err
}

// apart is the way of jobs that may be spread at a site that leases nothing.
type apart struct{ here }

var errTogether = errors.New("this site leases nothing: it starts no tasks together")

func (apart) wants(j *grid.Job) bool { return j.Spread }

func (apart) admit(grid.Time, *grid.Job) error {
	return fmt.Errorf("%w: %w", ErrInvalid, errTogether)
}

func (t apart) place(now grid.Time, e *entry, out *grid.Outbox) { t.resume(now, e, out) }

// resume refuses a job of before the site has left its federation.
func (t apart) resume(now grid.Time, e *entry, out *grid.Outbox) {
	e.reason = errTogether.Error()
	t.refuse(now, e, out)
}
