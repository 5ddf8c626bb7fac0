package site

import (
	"errors"
	"fmt"
	"slices"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
)

// gangs is the part that runs jobs of this site at several sites at once: it owns the
// coordinator that places their components and claims processors for them, and knows
// which executions are alive.
type gangs struct {
	*base
	jobs     *jobs
	coord    *coalloc.Coordinator
	home     *coalloc.Home
	scout    scout
	inputs   *inputs // nil: no job reads data sets
	book     *lease.Book
	recovery *recovery
	limbo    *limbo
	siteName func(grid.SiteID) string

	previews  []Preview            // to be answered when a scan has ended
	newcomers []*entry             // to be handed over when the scan that is under way has ended
	alive     map[grid.TaskID]bool // executions of which something may be alive
	readers   []*entry             // jobs handed over that read data sets, in order

	recovering bool // after a restart, until the driver has said which tasks still run
}

// gangNotes is what gangs knows of a job besides what is stored.
type gangNotes struct {
	tries   int32     // placements tried until its latest execution started; not after a restart
	failed  int32     // of them, whose claim failed
	resumed bool      // its execution was taken up after a restart
	here    bool      // … and something of it was found running here
	lookEnd grid.Time // until when it waits for who holds its inputs
	looks   int       // scans of the directory that found no sites that could ever hold it
}

// splitDoubt is by how much longer than expected a job may take that is split, in
// thousandths of its bound: as long again. What is expected is learned from few runs, or
// from none, and a job that is killed at its bound is lost.
const splitDoubt = 1000

// Times and bounds of placing.
const (
	queueInterval = 2 * grid.Second
	holdSpan      = 6 * grid.Second  // more than one repetition of a message; a lost component is waited out as much longer
	lookMax       = 30 * grid.Second // how long a job waits at first for who holds its inputs, if the look-ups have to wait for others
	looksMax      = 3                // scans that may lack sites before a job is refused because of what they did not find
	boundLooksMax = 8                // scans before a job is refused because its inputs' holders cannot run it, about a minute
)

// coordinate makes the coordinator.
func (c *gangs) coordinate(seed uint64) (err error) {
	cfg := c.cfg.Coallocation
	if cfg.Queue.Interval == 0 {
		cfg.Queue.Interval = queueInterval
	}
	if cfg.Hold == 0 {
		cfg.Hold = holdSpan
	}
	view := c.cfg.Sites
	if view == nil {
		view = coalloc.NewView([]coalloc.Site{{
			ID: c.cfg.ID, Name: c.cfg.Name, Processors: c.cfg.Processors, Free: c.cfg.Processors, Wait: c.waitHere,
		}}, nil)
		if c.cfg.Penalty != nil {
			view.Penalty = *c.cfg.Penalty
		} else {
			view.Experience = coalloc.NewExperience()
		}
		if cfg.Doubt == 0 {
			cfg.Doubt = splitDoubt
		}
	}
	c.coord, err = coalloc.NewCoordinator(cfg, view, c.home, streamDivide.of(seed))
	return err
}

// waitHere returns how long a component would wait for processors of this site.
func (c *gangs) waitHere(processors int64) grid.Time {
	start := c.cluster.EarliestStart(c.scout.looked, processors, lrms.NominalDefault)
	if start == grid.Never {
		return grid.Never
	}
	return start - c.scout.looked
}

func (*gangs) takes(b *board) {
	of := func(s *Site) *gangs { return s.gangs }
	take(b, of, (*gangs).rejected)
	take(b, of, (*gangs).start)
	take(b, of, (*gangs).aborted)
	take(b, of, (*gangs).broken)
}

func (c *gangs) tick(now grid.Time, out *grid.Outbox) {
	c.home.Tick(now, out)
	if c.scout.quotes == nil && len(c.newcomers)+len(c.previews) > 0 {
		c.handOver(now, true, out)
	}
	c.scout.tick(now, c.coord.Queue().Len() > 0 || len(c.newcomers) > 0, out)
	if c.coord.NextTimer() <= now {
		c.refresh(now, out)
		c.coord.Step(now, grid.Tick{}, out)
	}
}

func (c *gangs) nextTimer() grid.Time {
	return min(c.home.NextTimer(), c.coord.NextTimer(), c.scout.nextTimer())
}

func (c *gangs) keeps() []string { return []string{coalloc.RecordPrefix, coalloc.HomePrefix} }

func (c *gangs) recover(now grid.Time, stored records, out *grid.Outbox) error {
	if err := c.coord.Recover(stored.each, out); err != nil {
		return err
	}
	c.recovering = true
	return c.home.Recover(now, stored.each, out)
}

func (*gangs) wants(j *grid.Job) bool { return divided(j) }

// admit checks what a job says about co-allocation.
func (c *gangs) admit(_ grid.Time, j *grid.Job) error {
	switch _, err := coalloc.OfJob(j); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case c.marketed(j):
		return fmt.Errorf("%w: a job that is divided over sites can have no deadline, budget, site or policy of the market", ErrInvalid)
	case c.inputs == nil && len(j.Inputs) > 0:
		return fmt.Errorf("%w: this site knows no data sets", ErrInvalid)
	}
	return nil
}

// place has a job placed at several sites, once the sites have been looked at.
func (c *gangs) place(now grid.Time, e *entry, out *grid.Outbox) {
	c.seekSites(now, e, out)
}

// seekSites has the sites looked at for a job.
func (c *gangs) seekSites(now grid.Time, e *entry, out *grid.Outbox) {
	c.inputs.seek(now, e.job, out)
	e.notes().lookEnd = now + lookMax
	c.newcomers = append(c.newcomers, e)
	c.scout.scan(now, out)
}

// withdraw takes a job back that has not started.
func (c *gangs) withdraw(now grid.Time, e *entry, out *grid.Outbox) {
	c.newcomers = slices.DeleteFunc(c.newcomers, func(o *entry) bool { return o == e })
	c.coord.Step(now, &coalloc.Withdraw{Job: e.job.ID}, out)
	c.vacateHome(now, e.job.ID, out)
}

// preview answers how a job would be placed once the sites have been looked at.
func (c *gangs) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	c.inputs.seek(now, in.Job, out)
	c.previews = append(c.previews, *in)
	c.scout.scan(now, out)
}

// unseen: the sites could not be looked at.
func (c *gangs) unseen(why error, out *grid.Outbox) {
	for i := range c.previews {
		out.Answer(c.previews[i].Token, &market.PreviewResult{Err: why})
	}
	c.previews = nil
}

// learnt: a look-up of a data set has ended, for which jobs may have waited.
func (c *gangs) learnt(now grid.Time, out *grid.Outbox) {
	if c.scout.query == 0 && (len(c.newcomers) > 0 || len(c.previews) > 0) {
		c.handOver(now, false, out)
	}
}

// handOver gives the newcomers to the coordinator, and has it try those that wait on
// what has been found. scanned reports whether a scan has just ended.
func (c *gangs) handOver(now grid.Time, scanned bool, out *grid.Outbox) {
	c.refresh(now, out)
	c.scout.setNetwork()
	c.previews = slices.DeleteFunc(c.previews, func(p Preview) bool {
		known := c.inputs.seek(now, p.Job, out)
		if known {
			c.answer(now, &p, out)
		}
		return known
	})
	due := c.newcomers
	c.newcomers = nil
	for _, e := range due {
		if e.state.Terminal() || e.state == Cancelling || c.coord.Knows(e.job.ID) {
			continue
		}
		if r := c.ready(now, e, scanned, out); r != nil {
			c.submit(now, e, r, out)
		}
	}
	if c.coord.Queue().Len() > 0 {
		c.coord.Step(now, grid.Tick{}, out)
	}
}

// ready returns what a newcomer asks of the coordinator, or nil if it is over, or waits
// for more to be known of sites and inputs.
func (c *gangs) ready(now grid.Time, e *entry, scanned bool, out *grid.Outbox) *coalloc.Request {
	view := c.coord.View()
	r, err := coalloc.OfJob(e.job)
	if err != nil {
		c.notPlaceable(now, e, err, out)
		return nil
	}
	if !c.inputs.seek(now, e.job, out) && now < e.notes().lookEnd {
		e.reason = "looks for who holds its inputs"
		c.newcomers = append(c.newcomers, e)
		return nil
	}
	r.Inputs = c.inputsOf(nil, e.job)
	err, most := r.Placeable(view), 0
	if !c.scout.whole {
		most = looksMax
	}
	if err == nil && r.Bound() && r.Policy != nil { // a holder may be starting, and has no quote yet
		err, most = r.PlaceableBy(*r.Policy, view, c.limitOf(e.job)), boundLooksMax
	}
	if err != nil && e.notes().looks < most {
		if scanned {
			e.notes().looks++ // a site that has just started does not find all the others at once
		}
		e.reason = fmt.Sprintf("looks for more sites: %v", err)
		c.newcomers = append(c.newcomers, e)
		return nil
	}
	return &r
}

// submit gives a job to the coordinator.
func (c *gangs) submit(now grid.Time, e *entry, r *coalloc.Request, out *grid.Outbox) {
	if len(e.job.Inputs) > 0 && !slices.Contains(c.readers, e) {
		c.readers = append(c.readers, e)
	}
	c.coord.Step(now, &coalloc.Submit{Task: e.task(), Request: r, Estimate: c.limitOf(e.job)}, out)
	if e.state == Placing && c.coord.Knows(e.job.ID) {
		e.state, e.reason = Queued, ""
		if c.coord.Queue().Waiting(e.job.ID) != nil {
			e.verdicts = c.verdicts(now, e.job, nil)
		}
		out.Save(e)
		out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: c.cfg.ID})
	}
}

// wanted returns the most processors that one of the jobs wants for which sites are looked
// for, and whether none of them is tied to certain sites, by what it names or reads, or has
// looked in vain.
func (c *gangs) wanted() (most int64, anywhere bool) {
	anywhere = true
	take := func(j *grid.Job) {
		r, err := coalloc.OfJob(j)
		most = max(most, j.Processors)
		anywhere = anywhere && err == nil && len(j.Inputs) == 0 && !r.Names()
	}
	for _, e := range c.newcomers {
		take(e.job)
		anywhere = anywhere && e.notes().looks == 0
	}
	for i := range c.previews {
		take(c.previews[i].Job)
	}
	for w := range c.coord.Queue().All() {
		most = max(most, w.Request.Processors)
		anywhere = anywhere && len(w.Request.Inputs) == 0 && !w.Request.Names()
	}
	return most, anywhere
}

// refresh looks at the sites, and at who holds what the jobs in the placement queue read.
func (c *gangs) refresh(now grid.Time, out *grid.Outbox) {
	c.scout.looked = now
	kept := c.readers[:0]
	for _, e := range c.readers {
		if e.state.Terminal() || !c.coord.Knows(e.job.ID) {
			continue
		}
		kept = append(kept, e)
		if w := c.coord.Queue().Waiting(e.job.ID); w != nil {
			c.inputs.seek(now, e.job, out)
			w.Request.Inputs = c.inputsOf(w.Request.Inputs[:0], e.job)
		}
	}
	clear(c.readers[len(kept):])
	c.readers = kept
	c.scout.refresh(now)
}

// inputsOf appends what is known of a job's inputs, and enters their holders among the
// sites, as their place in the network counts also if they have no processors.
func (c *gangs) inputsOf(dst []coalloc.Input, j *grid.Job) []coalloc.Input {
	view := c.coord.View()
	before := len(view.Sites)
	dst = c.inputs.of(dst, j, func(site grid.SiteID) {
		if view.Index(site) < 0 {
			view.Put(coalloc.Site{ID: site})
		}
	})
	if len(view.Sites) > before {
		c.scout.setNetwork()
	}
	return dst
}

// borrows implements loans' borrower.
func (c *gangs) borrows(id lease.ID) bool { return c.coord.Has(id) || coalloc.Own(id) }

// leased passes on what a book says about a lease of a co-allocated job.
func (c *gangs) leased(now grid.Time, id lease.ID, in grid.Input, out *grid.Outbox) {
	if !c.coord.Has(id) {
		return // of a job that is not placed any more
	}
	if no, refused := in.(*lease.Refused); refused && !coalloc.Own(id) {
		c.scout.close(now, no)
	}
	c.coord.Step(now, in, out)
}

// castOut ends the jobs that wait for a site which will not come back.
func (c *gangs) castOut(now grid.Time, out *grid.Outbox) {
	var wait []*entry
	for _, e := range c.jobs.live {
		if !e.foreign && divided(e.job) && (e.state == Queued || e.state == Placing) {
			wait = append(wait, e)
		}
	}
	slices.SortFunc(wait, func(a, b *entry) int { return a.job.ID.Compare(b.job.ID) })
	for _, e := range wait {
		c.ended(now, e, out)
	}
}

// ended ends a job that can run nowhere, as each way to divide it names an outcast, and
// reports whether it has.
func (c *gangs) ended(now grid.Time, e *entry, out *grid.Outbox) bool {
	r, err := coalloc.OfJob(e.job)
	if err != nil || len(r.Splits) == 0 {
		return false
	}
	var gone grid.SiteID
	for _, split := range r.Splits {
		i := slices.IndexFunc(split, func(part coalloc.Component) bool { return c.jobs.members.outcast(part.Site) })
		if i < 0 {
			return false
		}
		gone = split[i].Site
	}
	c.jobs.withdraw(now, e, fmt.Sprintf("it names site %s, which is a member of the federation no longer", gone), out)
	return true
}

// rejected: the coordinator has not taken a job.
func (c *gangs) rejected(now grid.Time, in *coalloc.Rejected, out *grid.Outbox) {
	if e := c.jobs.current(in.Task); e != nil && !e.state.Terminal() {
		c.notPlaceable(now, e, in.Err, out)
	}
}

// notPlaceable is the end of a job that no set of sites could hold. One that was taken
// before waits on: sites come back, unless they are outcasts.
func (c *gangs) notPlaceable(now grid.Time, e *entry, why error, out *grid.Outbox) {
	if c.ended(now, e, out) {
		return
	}
	e.reason = why.Error()
	if e.state != Placing || e.epoch > 1 || errors.Is(why, coalloc.ErrKnown) {
		e.state = Queued
		c.newcomers = append(c.newcomers, e)
		out.Save(e)
		return
	}
	c.jobs.refuse(now, e, out)
}

// audit returns which job has a place in the placement queue that does not wait, what is kept for
// one of which nothing is alive, or which does not have it, or what is wrong with one that is claimed.
func (c *gangs) audit(now grid.Time) error {
	for w := range c.coord.Queue().All() {
		id := grid.TaskID{Job: w.Job, Epoch: w.Epoch}
		if e := c.jobs.current(id); e == nil || e.state != Queued {
			return fmt.Errorf("job %s, epoch %d, is in the placement queue, and does not wait", id.Job, id.Epoch)
		}
	}
	for l := range c.home.Each {
		if l.State == lease.Ending && !c.recovering && !c.lives(l.Subject) {
			return fmt.Errorf("%d processors at home are kept for job %s, of which nothing is alive", l.Processors, l.Subject)
		}
	}
	for l := range lease.All(c.book) {
		if l.Lent || l.State == lease.Requested || l.State == lease.Ending || c.coord.Has(l.ID) || c.recovering {
			continue
		}
		if e := c.jobs.byID[l.Subject]; e != nil && !e.foreign && e.job.Coallocate != nil {
			return fmt.Errorf("lease %d of %s, %v, is kept for a component of job %s, which does not have it", l.Number, l.Lender, l.State, l.Subject)
		}
	}
	return coalloc.Audit(now, c.coord, c.home, c.book)
}
