package site

import (
	"errors"
	"fmt"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
)

// start is the barrier: every component has its processors. Again, after a
// restart, it takes up what may be running.
func (c *gangs) start(now grid.Time, in *coalloc.Start, out *grid.Outbox) {
	e := c.jobs.current(in.Task)
	if e == nil || e.state.Terminal() {
		c.coord.Step(now, &coalloc.Finish{Job: in.Task.Job}, out)
		c.vacateHome(now, in.Task.Job, out)
		return
	}
	c.recovery.forget(e)
	g := &grid.Gang{Task: in.Task, Each: e.job.Processors / e.job.Tasks}
	left := grid.Never // of the leases
	for _, p := range in.Parts {
		part := grid.GangPart{Site: p.Site, Processors: p.Processors}
		if l, there := c.book.Get(p.Lease); there {
			part.Pilot = grid.Pilot{Site: l.Source, Key: l.Key}
			left = min(left, l.Limit-now)
		}
		g.Parts = append(g.Parts, part)
	}
	c.alive[in.Task] = true
	notes := e.notes()
	notes.tries, notes.failed = in.Tries, in.Failures
	notes.resumed, e.start = in.Again && e.award.Start > 0, now
	if notes.resumed { // it began then, whatever is started of it now
		e.start = e.award.Start
	}
	if e.gang = g; !in.Again || len(e.verdicts) == 0 { // after a restart less is known of the sites
		e.verdicts = c.verdicts(now, e.job, g)
	}
	e.award = market.Award{Site: c.cfg.ID, Epoch: e.epoch, Price: c.price(), Until: grid.Never, Start: e.start,
		Cost: c.cfg.Cost.Cost(c.price(), e.job.Processors, c.limitOf(e.job))}
	cancelling := e.state == Cancelling
	if !cancelling {
		e.state, e.reason = Running, ""
	}
	out.Save(e)
	task := grid.Task{ID: in.Task, Job: e.job, Limit: max(c.limitOf(e.job), in.Limit), Gang: g, Again: notes.resumed, Bring: in.Bring}
	if in.Again && left != grid.Never { // how long it was to take is not known any more
		task.Bring = max(left-task.Limit, 0)
	}
	out.Start(task)
	c.jobs.gate.Begun(e.job, &c.jobs.table)
	if !in.Again {
		out.Tell(grid.Event{Kind: grid.JobStarted, Job: e.job, Epoch: e.epoch, Site: c.cfg.ID})
	}
	if cancelling {
		out.Kill(grid.Task{ID: in.Task, Job: e.job, Cause: e.reason})
	}
}

// aborted: an execution did not come about.
func (c *gangs) aborted(now grid.Time, in *coalloc.Aborted, out *grid.Outbox) {
	c.vacateHome(now, in.Task.Job, out)
}

// broken ends an execution that has lost one of its parts. It starts again when
// nothing is left of it anywhere.
func (c *gangs) broken(now grid.Time, in *coalloc.Broken, out *grid.Outbox) {
	e := c.jobs.current(in.Task)
	why := fmt.Sprintf("the component at %s was lost: %s", c.siteName(in.Site), in.Cause)
	task := grid.Task{ID: in.Task, Cause: why, Abandon: true}
	if e != nil && !e.state.Terminal() {
		task.Job = e.job
		e.losses++
		e.strand(now, in.Gone)
		if e.state != Cancelling {
			e.reason = why + "; it starts again once nothing of it is left anywhere"
		}
		out.Save(e)
		c.limbo.put(e)
	}
	if c.alive[in.Task] {
		out.Kill(task)
		return
	}
	c.vacateHome(now, in.Task.Job, out) // after a restart, and nothing of it was here
}

// taskEnded implements watcher: it is the end of all tasks of an execution, or of those
// that anybody waits for.
func (c *gangs) taskEnded(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) bool {
	if !c.alive[in.ID] {
		return false
	}
	delete(c.alive, in.ID)
	if task, started := c.coord.Started(in.ID.Job); started && task == in.ID {
		c.coord.Step(now, &coalloc.Finish{Job: in.ID.Job}, out)
	}
	c.vacateHome(now, in.ID.Job, out)
	e := c.jobs.current(in.ID)
	if e != nil && e.state == Queued {
		c.jobs.queue.dequeue(now, e, out) // an older copy of the store did not know that it had begun
	}
	switch {
	case e == nil || e.state.Terminal():
	case e.gone > now && (in.Lost || e.repeats(&in.Result)): // limbo tells when nothing is left
	case in.Lost && e.gone != 0:
		e.reason = ""
		c.jobs.lost(now, in.ID, out)
	case in.Lost && e.state != Cancelling:
		e.losses++
		c.jobs.lost(now, in.ID, out)
	default:
		e.result = e.resultOf(now, in)
		if e.notes().resumed {
			e.result.Start = e.begun()
		}
		e.result.Cost = min(c.cfg.Cost.Cost(e.award.Price, e.job.Processors, max(e.result.End-e.result.Start, 0)), e.award.Cost)
		c.learn(e)
		out.Tell(grid.Event{Kind: grid.JobEnded, Job: e.job, Epoch: e.epoch, Site: c.cfg.ID, Result: e.result})
		c.jobs.finish(now, e, out)
	}
	return true
}

// learn notes how long a job has run that is done, if this site learns what splitting costs.
func (c *gangs) learn(e *entry) {
	view := c.coord.View()
	if view.Experience == nil || e.gang == nil || e.result.ExitCode != 0 || e.result.Reason != "" {
		return
	}
	r, err := coalloc.OfJob(e.job)
	if err != nil {
		return
	}
	var parts []coalloc.Part
	for i := range e.gang.Parts {
		at := view.Index(e.gang.Parts[i].Site)
		if at < 0 {
			return // it has left: nobody knows how far it was
		}
		parts = append(parts, coalloc.Part{Component: int32(i), Site: int32(at), Processors: e.gang.Parts[i].Processors})
	}
	view.Experience.Ended(&r, parts, view.Network, e.result.End-e.result.Start)
}

// minds implements watcher: the end of an execution that may be alive will be told.
func (c *gangs) minds(id grid.TaskID) bool { return c.alive[id] }

// adopted implements watcher: after a restart, something of an execution still runs here.
func (c *gangs) adopted(in *Adopted, out *grid.Outbox) bool {
	id, _, yes := grid.SquadOf(in.ID)
	if yes && !c.alive[id] {
		c.alive[id] = true // until it is dead
		out.Kill(grid.Task{ID: id, Cause: causeUnwanted, Abandon: true})
	}
	return yes
}

// resume takes up, after a restart, a job that is not known to have started.
func (c *gangs) resume(now grid.Time, e *entry, out *grid.Outbox) {
	switch {
	case e.state == Cancelling:
		c.jobs.withdraw(now, e, e.reason, out)
	case e.gone != 0:
		c.limbo.putBack(now, e)
	case c.coord.Knows(e.job.ID): // it was decided, and is being claimed
		e.state = Queued
	default:
		e.state = Queued
		c.seekSites(now, e, out)
	}
}

// recovered gives back what was claimed at home, before a restart, for jobs that the
// coordinator does not know any more and of which nothing runs here.
func (c *gangs) recovered(now grid.Time, out *grid.Outbox) {
	c.recovering = false
	for _, l := range c.home.Leases() {
		if c.coord.Has(l.ID) {
			continue
		}
		_ = c.home.Release(now, l.ID, out) // it is there
		c.vacateHome(now, l.Subject, out)
	}
}

// vacateHome gives back what a job had at home, unless something of it may be alive: until the
// driver has said what still runs, that is anything.
func (c *gangs) vacateHome(now grid.Time, job grid.JobID, out *grid.Outbox) {
	if !c.recovering && !c.lives(job) {
		c.home.Vacated(now, job, out)
	}
}

// lives reports whether something of a job is alive here.
func (c *gangs) lives(job grid.JobID) bool {
	for id := range c.alive {
		if id.Job == job {
			return true
		}
	}
	return false
}

// whole is the way of jobs that ask to be divided where there is no co-allocation.
type whole struct{ *jobs }

var errWhole = errors.New("this site is alone: it cannot place a job at several sites")

func (whole) wants(j *grid.Job) bool { return divided(j) }

func (whole) admit(_ grid.Time, j *grid.Job) error {
	if _, err := coalloc.OfJob(j); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errWhole)
}

func (w whole) place(now grid.Time, e *entry, out *grid.Outbox) { w.resume(now, e, out) }

// resume refuses a job of before the site has left its federation.
func (w whole) resume(now grid.Time, e *entry, out *grid.Outbox) {
	e.reason = errWhole.Error()
	w.refuse(now, e, out)
}

func (whole) withdraw(grid.Time, *entry, *grid.Outbox) {}

func (whole) explain(*entry, *View, bool) {}

func (whole) preview(_ grid.Time, in *Preview, out *grid.Outbox) {
	out.Answer(in.Token, &market.PreviewResult{Certain: true})
}

// verdictsMax bounds the sites about which a co-allocated job says something.
const verdictsMax = 64

// answer says how a divided job would be placed now. Nothing is held.
func (c *gangs) answer(now grid.Time, in *Preview, out *grid.Outbox) {
	result := &market.PreviewResult{}
	view := c.coord.View()
	r, err := coalloc.OfJob(in.Job)
	if err == nil {
		r.Inputs = c.inputsOf(nil, in.Job)
		err = r.Placeable(view)
	}
	if err != nil {
		result.Err = err
		out.Answer(in.Token, result)
		return
	}
	policy := c.cfg.Coallocation.Queue.Policy
	if r.Policy != nil {
		policy = *r.Policy
	}
	parts, ok := policy.Place(nil, &r, view, c.limitOf(in.Job))
	var gang *grid.Gang
	if ok {
		gang = &grid.Gang{Each: in.Job.Processors / in.Job.Tasks}
		for _, p := range parts {
			gang.Parts = append(gang.Parts, grid.GangPart{Site: view.Sites[p.Site].ID, Processors: p.Processors})
		}
	}
	result.Verdicts, result.Waits = c.verdicts(now, in.Job, gang), true
	out.Answer(in.Token, result)
}

// explain implements way: why a divided job waits changes from scan to scan, and is not
// stored.
func (c *gangs) explain(e *entry, v *View, whole bool) {
	if e.state != Queued {
		return
	}
	v.Reason = c.whyWaiting(e)
	w := c.coord.Queue().Waiting(e.job.ID)
	if w == nil || !whole {
		return
	}
	if err := w.Request.Placeable(c.coord.View()); err != nil { // as a site has left, or never lends so much
		v.Reason = fmt.Sprintf("waits in the placement queue until the sites are others: %v; tried %d times", err, w.Tries)
	}
}

// whyWaiting says why a divided job has not started.
func (c *gangs) whyWaiting(e *entry) string {
	view := c.coord.View()
	w := c.coord.Queue().Waiting(e.job.ID)
	switch {
	case w != nil && w.Failures > 0:
		return fmt.Sprintf("waits in the placement queue: tried %d times, %d of them %s; %d processors are idle at %d sites",
			w.Tries, w.Failures, c.inVain(w), view.Free(), withProcessors(view))
	case w != nil:
		return fmt.Sprintf("waits in the placement queue: tried %d times; %d processors are idle at %d sites, in parts that do not fit",
			w.Tries, view.Free(), withProcessors(view))
	case c.coord.Knows(e.job.ID):
		return "its components are being claimed"
	case e.reason != "":
		return e.reason
	}
	return "waits for a look at the sites"
}

// inVain says at which site the claims of a job fail, by the latest.
func (c *gangs) inVain(w *coalloc.Waiting) string {
	if w.RefusedBy == "" || w.Refusal == lease.Busy {
		return "at a site that had no room after all"
	}
	return fmt.Sprintf("in vain, the last as %s refused: %v", c.siteName(w.RefusedBy), w.Refusal)
}

// withProcessors counts the sites that are there.
func withProcessors(view *coalloc.View) (n int) {
	for i := range view.Sites {
		if view.Sites[i].Processors > 0 {
			n++
		}
	}
	return n
}

// verdicts says what came of each site: first those that have a component, then
// the others, as many as there is room for.
func (c *gangs) verdicts(now grid.Time, j *grid.Job, g *grid.Gang) []market.Verdict {
	inputs, unheld := c.inputsOf(nil, j), c.inputs.unheld(j)
	view := c.coord.View()
	var verdicts []market.Verdict
	chosen := make(map[grid.SiteID]bool)
	if g != nil {
		for i := range g.Parts {
			p := &g.Parts[i]
			chosen[p.Site] = true
			verdicts = append(verdicts, market.Verdict{
				Site: p.Site, Name: c.siteName(p.Site), Finish: grid.Never, Outcome: market.OutcomeChosen,
				Detail: joined(fmt.Sprintf("component %d: %d processors", i, p.Processors), inputsNote(view, j, inputs, unheld, p.Site)),
			})
		}
	}
	for i := range view.Sites {
		v := &view.Sites[i]
		if chosen[v.ID] || v.Processors == 0 || len(verdicts) >= verdictsMax {
			continue
		}
		verdict := market.Verdict{
			Site: v.ID, Name: c.siteName(v.ID), Finish: grid.Never, Outcome: market.OutcomeCandidate,
			Detail: joined(fmt.Sprintf("%d of %d processors are idle", v.Free, v.Processors), inputsNote(view, j, inputs, unheld, v.ID)),
		}
		seen := c.scout.sites[v.ID]
		if seen.capped > now {
			verdict.Detail = joined(verdict.Detail, fmt.Sprintf("it lends %d at most, by what it has said; it is asked for more in %v", seen.most, (seen.capped-now)/grid.Second*grid.Second))
		}
		if seen.closed > now {
			verdict.Outcome, verdict.Until = market.OutcomeRefused, seen.closed
			verdict.Detail = seen.why.String()
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// joined puts a note behind what is said of a site, if there is one.
func joined(text, note string) string {
	if note == "" {
		return text
	}
	return text + "; " + note
}
