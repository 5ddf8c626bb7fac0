package site

import (
	"fmt"
	"slices"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/market"
)

// startGang is the barrier: every component has its processors. Again, after a
// restart, it takes up what may be running.
func (s *Site) startGang(now grid.Time, in *coalloc.Start, out *grid.Outbox) {
	e := s.current(in.Task)
	if e == nil || e.state.Terminal() {
		s.co.coord.Step(now, &coalloc.Finish{Job: in.Task.Job}, out)
		s.co.home.Vacated(now, in.Task.Job, out)
		return
	}
	s.forgetRecovered(e)
	g := &grid.Gang{Task: in.Task, Each: e.job.Processors / e.job.Tasks}
	left := grid.Never // of the leases
	for _, p := range in.Parts {
		part := grid.GangPart{Site: p.Site, Processors: p.Processors}
		if l, there := s.book.Get(p.Lease); there {
			part.Pilot = grid.Pilot{Site: l.Source, Key: l.Key}
			left = min(left, l.Limit-now)
		}
		g.Parts = append(g.Parts, part)
	}
	s.co.gangs[in.Task] = true
	e.resumed, e.start = in.Again && e.award.Start > 0, now
	if e.resumed { // it began then, whatever is started of it now
		e.start = e.award.Start
	}
	if e.gang = g; !in.Again || len(e.verdicts) == 0 { // after a restart less is known of the sites
		e.verdicts = s.dividedVerdicts(now, e.job, g)
	}
	e.award = market.Award{Site: s.cfg.ID, Epoch: e.epoch, Price: s.Price(), Until: grid.Never, Start: e.start,
		Cost: s.cfg.Cost.Cost(s.Price(), e.job.Processors, s.limitOf(e))}
	cancelling := e.state == Cancelling
	if !cancelling {
		e.state, e.reason = Running, ""
	}
	out.Save(e)
	task := grid.Task{ID: in.Task, Job: e.job, Limit: max(s.limitOf(e), in.Limit), Gang: g, Bring: in.Bring}
	if in.Again && left != grid.Never { // how long it was to take is not known any more
		task.Bring = max(left-task.Limit, 0)
	}
	out.Start(task)
	if !in.Again {
		out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID})
	}
	if cancelling {
		out.Kill(grid.Task{ID: in.Task, Job: e.job, Cause: e.reason})
	}
}

// gangBroken ends an execution that has lost one of its parts. It starts again when
// nothing is left of it anywhere.
func (s *Site) gangBroken(now grid.Time, in *coalloc.Broken, out *grid.Outbox) {
	e := s.current(in.Task)
	if !s.co.gangs[in.Task] {
		s.co.home.Vacated(now, in.Task.Job, out)
		if e != nil {
			s.lost(now, in.Task, out)
		}
		return
	}
	why := fmt.Sprintf("the component at %s was lost: %s", s.SiteName(in.Site), in.Cause)
	task := grid.Task{ID: in.Task, Cause: why, Abandon: true}
	if e != nil && !e.state.Terminal() {
		task.Job = e.job
		e.losses++
		e.gone = max(in.Gone, now)
		if e.state != Cancelling {
			e.reason = why + "; it starts again once nothing of it is left anywhere"
		}
		out.Save(e)
		s.strand(limbo{in.Task, e.gone})
	}
	out.Kill(task)
}

// gangEnded is the end of all tasks of a co-allocated execution, or of those that
// anybody waits for. It reports whether it was one.
func (s *Site) gangEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool {
	if s.co == nil || !s.co.gangs[in.ID] {
		return false
	}
	delete(s.co.gangs, in.ID)
	if task, started := s.co.coord.Started(in.ID.Job); started && task == in.ID {
		s.co.coord.Step(now, &coalloc.Finish{Job: in.ID.Job}, out)
	}
	s.co.home.Vacated(now, in.ID.Job, out)
	e := s.current(in.ID)
	switch {
	case e == nil || e.state.Terminal():
	case in.Lost && e.gone > now: // rescue comes
	case in.Lost && e.gone != 0:
		e.reason = ""
		s.lost(now, in.ID, out)
	case in.Lost && e.state != Cancelling:
		e.losses++
		s.lost(now, in.ID, out)
	default:
		e.result = in.Result
		if e.resumed {
			e.result.Start = e.start
		}
		e.result.Cost = min(s.cfg.Cost.Cost(e.award.Price, e.job.Processors, max(e.result.End-e.result.Start, 0)), e.award.Cost)
		out.Tell(grid.Event{Kind: grid.JobEnded, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID, Result: e.result})
		s.finish(now, e, out)
	}
	return true
}

// withdrawDivided takes a job back that has not started.
func (s *Site) withdrawDivided(now grid.Time, e *entry, out *grid.Outbox) {
	s.co.newcomers = slices.DeleteFunc(s.co.newcomers, func(o *entry) bool { return o == e })
	s.co.coord.Step(now, &coalloc.Withdraw{Job: e.job.ID}, out)
	s.co.home.Vacated(now, e.job.ID, out)
}

// rejoin takes up, after a restart, a job that is not known to have started.
func (s *Site) rejoin(now grid.Time, e *entry, out *grid.Outbox) {
	switch {
	case s.co == nil: // the site has left its federation
		e.reason = "this site is alone: it cannot place a job at several sites"
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
		s.end(now, e, Refused, out)
	case e.state == Cancelling:
		s.withdraw(now, e, e.reason, out)
	case e.gone != 0:
		s.recoverBorrowed(now, e)
	case s.co.coord.Knows(e.job.ID): // it was decided, and is being claimed
		e.state = Queued
	default:
		e.state = Queued
		s.divide(now, e, out)
	}
}

// recoverHome gives back, after a restart, what was claimed at home for jobs that the
// coordinator does not know any more.
func (s *Site) recoverHome(now grid.Time, out *grid.Outbox) {
	if s.co == nil {
		return
	}
	for _, l := range s.co.home.Leases() {
		if s.co.coord.Has(l.ID) {
			continue
		}
		_ = s.co.home.Release(now, l.ID, out) // it is there
		s.vacateHome(now, l.Subject, out)
	}
}

// vacateHome gives back what a job had at home, unless something of it may be alive.
func (s *Site) vacateHome(now grid.Time, job grid.JobID, out *grid.Outbox) {
	for id := range s.co.gangs {
		if id.Job == job {
			return
		}
	}
	s.co.home.Vacated(now, job, out)
}

// adoptedGang: after a restart, something of a co-allocated execution still runs here.
func (s *Site) adoptedGang(id grid.TaskID, out *grid.Outbox) {
	known := s.co != nil && s.co.gangs[id]
	if !known {
		if s.co != nil {
			s.co.gangs[id] = true // until it is dead
		}
		out.Kill(grid.Task{ID: id, Cause: "nobody waits for it any more", Abandon: true})
	}
}

// WantsRank reports whether a task of a gang at another site is still wanted: its lease
// goes on.
func (s *Site) WantsRank(id grid.TaskID) bool {
	gang, _, ok := grid.GangOf(id)
	if !ok || s.co == nil || !s.co.gangs[gang] {
		return false
	}
	task, started := s.co.coord.Started(gang.Job)
	return started && task == gang
}
