package site

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
)

// coallocator is the part of a site that runs jobs at several sites at once: a
// coalloc.Coordinator, what it knows of the sites, and which executions are alive.
type coallocator struct {
	coord *coalloc.Coordinator
	home  *coalloc.Home
	sites map[grid.SiteID]seenSite
	scan  scan

	previews  []Preview            // to be answered then
	newcomers []*entry             // to be handed over when the scan that is under way has ended
	looked    grid.Time            // when refresh last looked at the sites: now, to whatever places jobs
	gangs     map[grid.TaskID]bool // executions of which something may be alive
	readers   []*entry             // jobs handed over that read data sets, in order
}

// seenSite is what is known of a site besides what the coordinator places by.
type seenSite struct {
	name   string
	issued grid.Time // on the site's clock: of the quote or report that its idle processors are from

	// A site that has refused for a reason that will last counts as having nothing idle
	// for a while, so that jobs find others.
	closed grid.Time // until then; 0: it is not
	why    lease.Reason
}

// How long a refusal counts for jobs that come after it.
const (
	closedLong  = 10 * grid.Minute // the site does not lend
	closedShort = 30 * grid.Second // it was not reached, or had room but not for this job
)

// close notes why a site has refused, if that will last.
func (s *Site) close(now grid.Time, in *lease.Refused) {
	seen := s.co.sites[in.Lender]
	switch in.Reason {
	case lease.Denied:
		seen.closed = now + closedLong
	case lease.TooWide, lease.TooLong, lease.Unreachable, lease.Silent, lease.Full:
		seen.closed = now + closedShort
	default:
		return
	}
	seen.why = in.Reason
	s.co.sites[in.Lender] = seen
}

// scan is a look at what the sites of the federation have.
type scan struct {
	query directory.QueryID // 0: none is under way
	seen  map[grid.SiteID]bool
	pages int
	whole bool      // no page so far may lack sites
	due   grid.Time // of the next one, while jobs wait; grid.Never while none do
	pause grid.Time // until the one after that
}

// Times and bounds of scans. While a job waits the directory is looked at again soon,
// as quotes lag behind what they tell of, then less and less often; in between the
// placement queue goes by gossip.
const (
	scanPauseMin  = grid.Second
	scanPauseMax  = 10 * grid.Second
	queueInterval = 2 * grid.Second
	looksMax      = 3               // scans that may lack sites before a job is refused because of what they did not find
	boundLooksMax = 8               // scans before a job is refused because its inputs' holders cannot run it, about a minute
	holdSpan      = 6 * grid.Second // more than one repetition of a message; a lost component is waited out as much longer
	scanPages     = 16              // of directory.LimitMax quotes each
)

func newCoallocator(cfg *Config, s *Site, seed uint64) (*coallocator, error) {
	c := &coallocator{
		home:  coalloc.NewHome(cfg.ID, s.cluster, s.book),
		sites: make(map[grid.SiteID]seenSite), scan: scan{due: grid.Never}, gangs: make(map[grid.TaskID]bool),
	}
	if cfg.Coallocation.Queue.Interval == 0 {
		cfg.Coallocation.Queue.Interval = queueInterval
	}
	if cfg.Coallocation.Hold == 0 {
		cfg.Coallocation.Hold = holdSpan
	}
	view := coalloc.NewView([]coalloc.Site{{
		ID: cfg.ID, Name: cfg.Name, Processors: cfg.Processors, Free: cfg.Processors, Wait: func(processors int64) grid.Time {
			start := s.cluster.EarliestStart(c.looked, processors, lrms.NominalDefault)
			if start == grid.Never {
				return grid.Never
			}
			return start - c.looked
		},
	}}, nil)
	var err error
	c.coord, err = coalloc.NewCoordinator(cfg.Coallocation, view, c.home, rand.New(rand.NewPCG(seed, 5)))
	return c, err
}

// divided reports whether a job may run at several sites at once.
func divided(j *grid.Job) bool { return j.Coallocate != nil }

// admitDivided checks what a job says about co-allocation.
func (s *Site) admitDivided(j *grid.Job) error {
	switch _, err := coalloc.OfJob(j); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case s.co == nil:
		return fmt.Errorf("%w: this site is alone: it cannot place a job at several sites", ErrInvalid)
	case s.marketed(j):
		return fmt.Errorf("%w: a job that is divided over sites can have no deadline, budget, site or policy of the market", ErrInvalid)
	}
	return nil
}

// divide has a job placed at several sites, once the sites have been looked at.
func (s *Site) divide(now grid.Time, e *entry, out *grid.Outbox) {
	s.seek(now, e.job, out)
	e.lookEnd = now + lookMax
	s.co.newcomers = append(s.co.newcomers, e)
	s.scanSites(now, out)
}

// scanSites begins a scan of the directory, unless one is under way.
func (s *Site) scanSites(now grid.Time, out *grid.Outbox) {
	c := s.co
	if c.scan.query != 0 {
		return
	}
	c.scan.seen, c.scan.pages, c.scan.whole = make(map[grid.SiteID]bool), 0, true
	c.scan.pause = min(max(2*c.scan.pause, scanPauseMin), scanPauseMax)
	c.scan.due = now + c.scan.pause
	c.scan.query = s.dir.Find(now, directory.Query{Attribute: directory.Free, Descending: true}, out)
}

// sitesFound takes in one page of a scan, and reports whether it was one.
func (s *Site) sitesFound(now grid.Time, in *directory.Found, out *grid.Outbox) bool {
	c := s.co
	if c == nil || c.scan.query == 0 || in.ID != c.scan.query {
		return false
	}
	c.scan.pages++
	c.scan.whole = c.scan.whole && in.Certain
	view := c.coord.View()
	for i := range in.Quotes {
		q := &in.Quotes[i]
		if q.Site == s.cfg.ID {
			continue
		}
		c.scan.seen[q.Site] = true
		seen := c.sites[q.Site]
		seen.name, seen.issued = q.Name, q.Issued
		c.sites[q.Site] = seen
		site := coalloc.Site{ID: q.Site, Name: q.Name, Processors: q.Processors}
		if seen.closed <= now { // else nobody knows how long a job would wait for it
			site.Free, site.Wait = q.Free, waitOf(q.Processors, q.Free, q.Wait)
		}
		view.Put(site)
	}
	if !in.End && in.Err == nil && len(in.Quotes) > 0 && c.scan.pages < scanPages {
		after := directory.Behind(&in.Quotes[len(in.Quotes)-1], directory.Free)
		c.scan.query = s.dir.Find(now, directory.Query{Attribute: directory.Free, Descending: true, After: after}, out)
		return true
	}
	c.scan.query = 0
	if in.Err != nil && len(c.scan.seen) == 0 {
		for i := range c.previews {
			out.Answer(c.previews[i].Token, &market.PreviewResult{Err: in.Err})
		}
		c.previews = nil
		return true // the directory cannot be reached: what waits goes on waiting for the next scan
	}
	if in.End && in.Err == nil {
		there := func(id grid.SiteID) bool { return id == s.cfg.ID || c.scan.seen[id] }
		view.Keep(there)
		maps.DeleteFunc(c.sites, func(id grid.SiteID, _ seenSite) bool { return !there(id) })
	}
	s.handOver(now, true, out)
	return true
}

// waitOf returns how long a component would wait for a site of that size, of which so
// much is idle, and at which a job as wide as the site waits for so long.
func waitOf(processors, free int64, wait grid.Time) func(int64) grid.Time {
	return func(wanted int64) grid.Time {
		switch {
		case wanted > processors:
			return grid.Never
		case wanted <= free:
			return 0
		}
		return wait
	}
}

// handOver gives the newcomers to the coordinator, and has it try those that wait on
// what has been found. scanned reports whether a scan has just ended.
func (s *Site) handOver(now grid.Time, scanned bool, out *grid.Outbox) {
	c := s.co
	s.refresh(now, out)
	s.setNetwork()
	view := c.coord.View()
	c.previews = slices.DeleteFunc(c.previews, func(p Preview) bool {
		known := s.seek(now, p.Job, out)
		if known {
			s.dividedPreview(now, &p, out)
		}
		return known
	})
	due := c.newcomers
	c.newcomers = nil
	for _, e := range due {
		if e.state.Terminal() || e.state == Cancelling || c.coord.Knows(e.job.ID) {
			continue
		}
		r, err := coalloc.OfJob(e.job)
		if err != nil {
			s.notPlaceable(now, e, err, out)
			continue
		}
		if !s.seek(now, e.job, out) && now < e.lookEnd {
			e.reason = "looks for who holds its inputs"
			c.newcomers = append(c.newcomers, e)
			continue
		}
		r.Inputs = s.inputsOf(nil, e.job)
		err, most := r.Placeable(view), 0
		if !c.scan.whole {
			most = looksMax
		}
		if err == nil && r.Bound() && r.Policy != nil { // a holder may be starting, and has no quote yet
			err, most = r.PlaceableBy(*r.Policy, view, s.limitOf(e)), boundLooksMax
		}
		if err != nil && e.looks < most {
			if scanned {
				e.looks++ // a site that has just started does not find all the others at once
			}
			e.reason = fmt.Sprintf("looks for more sites: %v", err)
			c.newcomers = append(c.newcomers, e)
			continue
		}
		if len(e.job.Inputs) > 0 && !slices.Contains(c.readers, e) {
			c.readers = append(c.readers, e)
		}
		c.coord.Step(now, &coalloc.Submit{Task: e.task(), Request: &r, Estimate: s.limitOf(e)}, out)
		if e.state == Placing && c.coord.Knows(e.job.ID) {
			e.state, e.reason = Queued, ""
			if c.coord.Queue().Waiting(e.job.ID) != nil {
				e.verdicts = s.dividedVerdicts(now, e.job, nil)
			}
			out.Save(e)
			out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: s.cfg.ID})
		}
	}
	if c.coord.Queue().Len() > 0 {
		c.coord.Step(now, grid.Tick{}, out)
	}
}

// setNetwork tells the coordinator what is known of the ways between the sites, and
// groups them by it if there are groups.
func (s *Site) setNetwork() {
	view := s.co.coord.View()
	ids := make([]grid.SiteID, len(view.Sites))
	for i := range view.Sites {
		ids[i] = view.Sites[i].ID
	}
	view.SetNetwork(s.Network(s.co.looked, ids))
	if s.cfg.Radius > 0 {
		coalloc.Groups(view, s.cfg.Radius)
	}
}

// refresh tells the coordinator what is idle at home, what sites have gossiped since
// their quotes, and who holds what jobs read. It comes before jobs are placed.
func (s *Site) refresh(now grid.Time, out *grid.Outbox) {
	s.co.looked = now
	s.refreshInputs(now, out)
	view := s.co.coord.View()
	for i := range view.Sites {
		id := view.Sites[i].ID
		if id == s.cfg.ID {
			view.SetFree(i, s.cluster.Idle(now))
			continue
		}
		seen := s.co.sites[id]
		if seen.closed > now {
			view.SetFree(i, 0)
			continue
		}
		if l, known := s.dir.Load(id); known && l.Issued > seen.issued {
			seen.issued = l.Issued
			s.co.sites[id] = seen
			view.SetFree(i, l.Free)
		}
	}
}

// coallocTick does what is due.
func (s *Site) coallocTick(now grid.Time, out *grid.Outbox) {
	c := s.co
	if c == nil {
		return
	}
	c.home.Tick(now, out)
	waiting := c.coord.Queue().Len() > 0 || len(c.newcomers) > 0
	switch {
	case !waiting:
		c.scan.due, c.scan.pause = grid.Never, 0
	case c.scan.due == grid.Never:
		c.scan.due = now + scanPauseMin
	case c.scan.due <= now && c.scan.query == 0:
		s.scanSites(now, out)
	}
	if c.coord.NextTimer() <= now {
		s.refresh(now, out)
		c.coord.Step(now, grid.Tick{}, out)
	}
}

// coallocTimer returns when coallocTick has something to do.
func (s *Site) coallocTimer() grid.Time {
	if s.co == nil {
		return grid.Never
	}
	t := min(s.co.home.NextTimer(), s.co.coord.NextTimer())
	if s.co.scan.query == 0 {
		t = min(t, s.co.scan.due)
	}
	return t
}

// coallocInput handles what the coordinator says, and what the books tell it, and
// reports whether it was that.
func (s *Site) coallocInput(now grid.Time, in grid.Input, out *grid.Outbox) bool {
	if s.co == nil {
		return false
	}
	switch in := in.(type) {
	case *coalloc.Rejected:
		if e := s.current(in.Task); e != nil && !e.state.Terminal() {
			s.notPlaceable(now, e, in.Err, out)
		}
	case *coalloc.Start:
		s.startGang(now, in, out)
	case *coalloc.Aborted:
		s.vacateHome(now, in.Task.Job, out)
	case *coalloc.Broken:
		s.gangBroken(now, in, out)
	case *lease.Granted:
		return s.toCoordinator(now, in.ID, in, out)
	case *lease.Refused:
		if s.co.coord.Has(in.ID) && !coalloc.Own(in.ID) {
			s.close(now, in)
		}
		return s.toCoordinator(now, in.ID, in, out)
	case *lease.Claimed:
		return s.toCoordinator(now, in.ID, in, out)
	case *lease.Recalled:
		return s.toCoordinator(now, in.ID, in, out)
	case *lease.Ended:
		return !in.Lent && s.toCoordinator(now, in.ID, in, out)
	default:
		return false
	}
	return true
}

// toCoordinator passes on what a book says about a lease of a co-allocated job, and
// reports whether it is one.
func (s *Site) toCoordinator(now grid.Time, id lease.ID, in grid.Input, out *grid.Outbox) bool {
	if s.co.coord.Has(id) {
		s.co.coord.Step(now, in, out)
		return true
	}
	return coalloc.Own(id)
}

// notPlaceable is the end of a job that no set of sites could hold. One that was taken
// before waits on: sites come back.
func (s *Site) notPlaceable(now grid.Time, e *entry, why error, out *grid.Outbox) {
	e.reason = why.Error()
	if e.state != Placing || e.epoch > 1 || errors.Is(why, coalloc.ErrKnown) {
		e.state = Queued
		s.co.newcomers = append(s.co.newcomers, e)
		out.Save(e)
		return
	}
	out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
	s.end(now, e, Refused, out)
}

// siteName returns what people call a site.
func (s *Site) SiteName(id grid.SiteID) string {
	switch {
	case id == s.cfg.ID:
		return s.cfg.Name
	case s.co != nil && s.co.sites[id].name != "":
		return s.co.sites[id].name
	}
	if q, known := s.Known(id); known && q.Name != "" {
		return q.Name
	}
	return string(id)
}
