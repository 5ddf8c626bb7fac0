package site

import (
	"maps"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
)

// scout looks at what the sites of the federation have, for jobs that are divided over
// them. Where the sites are given beforehand there is nothing to look for.
type scout struct {
	*base
	gangs   *gangs
	quotes  *quotes                                                // nil where the sites are given
	network func(now grid.Time, ids []grid.SiteID) coalloc.Network // what lies between sites

	// acquaint asks sites where in the network they are; nil: nobody is asked.
	acquaint func(now grid.Time, sites []grid.SiteID, out *grid.Outbox)

	sites  map[grid.SiteID]seenSite
	looked grid.Time // when refresh last looked at the sites: now, to whatever places jobs

	query directory.QueryID // 0: no scan is under way
	seen  map[grid.SiteID]bool
	idle  int64 // processors of those that are not closed, and of this site
	wants int64 // idle processors after which the scan may end; 0: it goes to the end
	pages int
	whole bool      // no page so far may lack sites
	again grid.Time // of the next scan that goes to the end at any rate
	due   grid.Time // of the next scan, while jobs wait; grid.Never while none do
	pause grid.Time // until the one after that
}

// seenSite is what is known of a site besides what the coordinator places by.
type seenSite struct {
	name   string
	issued grid.Time // on the site's clock: of the quote or report that its idle processors are from

	// A site that has refused for a reason that will last counts as having nothing idle
	// for a while, so that jobs find others.
	closed  grid.Time // until then; 0: it is not
	why     lease.Reason
	before  grid.Time // on the site's clock: of the newest quote or report when it refused
	lending bool      // by that report it had processors to lend, so that its refusal is for us

	// Of a site that has refused more than it ever lends, that much counts.
	most   int64     // processors that it lends at once
	capped grid.Time // until then
}

// bound has no more of a site's processors count than it lends.
func (s *seenSite) bound(now grid.Time, site *coalloc.Site) {
	if s.capped > now && s.most < site.Processors {
		site.Processors, site.Bounded = s.most, true
	}
}

// How long a refusal counts for jobs that come after it.
const (
	closedLong  = 2 * grid.Hour    // the site does not lend so: longer than the back-offs of a job that meets several such
	closedRule  = 10 * grid.Minute // its owner's rules are against it, of which some go by the hour
	closedShort = 30 * grid.Second // it was not reached, or had room but not for this job
)

// Times and bounds of scans. While a job waits the directory is looked at again soon,
// as quotes lag behind what they tell of, then less and less often; in between the
// placement queue goes by gossip.
const (
	scanPauseMin = grid.Second
	scanPauseMax = 10 * grid.Second
	scanPages    = 16 // of directory.LimitMax quotes each, if it goes to the end

	// What a scan costs does not grow with the federation: it sees the cheapest sites that
	// have a part of what is wanted idle, so many at a time, and all only now and then.
	scanSites = 32
	scanWhole = 10 * grid.Minute
	scanSpare = 2             // times the processors that a job wants
	scanPart  = 4 * scanSpare // a quarter of the job
)

// close notes why a site has refused, if that will last.
func (sc *scout) close(now grid.Time, in *lease.Refused) {
	bounded := in.Lends > 0 && (in.Reason == lease.ByRule || in.Reason == lease.Busy) // perhaps as this very job holds some there
	if bounded || in.Reason == lease.TooWide {
		sc.narrow(now, in)
		return
	}
	seen := sc.sites[in.Lender]
	switch in.Reason {
	case lease.Denied, lease.Unpaid, lease.Dear:
		seen.closed = now + closedLong
	case lease.ByRule:
		seen.closed = now + closedRule
	case lease.TooLong, lease.Unreachable, lease.Silent, lease.Full:
		seen.closed = now + closedShort
	default:
		return
	}
	seen.why, seen.before, seen.lending = in.Reason, seen.issued, false
	if sc.quotes != nil {
		if l, known := sc.quotes.dir.Load(in.Lender); known {
			seen.before, seen.lending = max(seen.before, l.Issued), l.Spare > 0
		}
	}
	sc.sites[in.Lender] = seen
}

// narrow notes that a site lends less at once than it was asked for.
func (sc *scout) narrow(now grid.Time, in *lease.Refused) {
	seen := sc.sites[in.Lender]
	seen.most, seen.capped = in.Lends, now+closedLong
	if in.Lends == 0 || in.Reason == lease.TooWide && in.Lends >= in.Processors { // a site of before this says no number
		seen.most = in.Processors - 1
	}
	if seen.most == 0 { // it has nothing at all at present
		seen.most, seen.why, seen.closed = 1, in.Reason, now+closedShort
	}
	sc.sites[in.Lender] = seen
	view := sc.gangs.coord.View()
	if at := view.Index(in.Lender); at >= 0 {
		s := view.Sites[at]
		seen.bound(now, &s)
		view.Put(s)
	}
}

// reopen ends a refusal that what a site has said since contradicts: one that could not be reached
// is there again, and one that lent nothing has processors to lend.
func (sc *scout) reopen(now grid.Time, id grid.SiteID, seen *seenSite) {
	if seen.closed <= now {
		return
	}
	l, known := sc.quotes.dir.Load(id)
	known = known && l.Issued > seen.before
	switch seen.why {
	case lease.Unreachable, lease.Silent:
		if seen.issued > seen.before || known {
			seen.closed = 0
		}
	case lease.Denied:
		if known && l.Spare > 0 && !seen.lending {
			seen.closed = 0
		}
	}
}

// scan begins a scan of the directory, unless one is under way.
func (sc *scout) scan(now grid.Time, out *grid.Outbox) {
	if sc.query != 0 || sc.quotes == nil {
		return
	}
	sc.seen, sc.pages, sc.whole, sc.idle, sc.wants = make(map[grid.SiteID]bool), 0, true, sc.cluster.Idle(now), 0
	if now < sc.again {
		if most, anywhere := sc.gangs.wanted(); anywhere {
			sc.wants = scanSpare * most
		}
	}
	sc.pause = min(max(2*sc.pause, scanPauseMin), scanPauseMax)
	sc.due = now + sc.pause
	sc.next(now, nil, out)
}

// next asks for the next page of a scan.
func (sc *scout) next(now grid.Time, after *directory.Cursor, out *grid.Outbox) {
	q := directory.Query{Attribute: directory.Price, After: after}
	if sc.wants > 0 {
		q.Limit, q.Filter.FreeMin = scanSites, sc.least()
	}
	sc.query = sc.quotes.find(now, q, sc, out)
}

// found takes in one page of a scan.
func (sc *scout) found(now grid.Time, in *directory.Found, out *grid.Outbox) {
	if in.ID != sc.query {
		return
	}
	sc.pages++
	sc.whole = sc.whole && in.Certain
	view := sc.gangs.coord.View()
	var others []grid.SiteID
	for i := range in.Quotes {
		q := &in.Quotes[i]
		if q.Site == sc.cfg.ID {
			continue
		}
		others = append(others, q.Site)
		sc.seen[q.Site] = true
		seen := sc.sites[q.Site]
		seen.name, seen.issued = q.Name, q.Issued
		sc.reopen(now, q.Site, &seen)
		sc.sites[q.Site] = seen
		site := coalloc.Site{ID: q.Site, Name: q.Name, Processors: q.Processors}
		seen.bound(now, &site)
		free := sc.gangs.coord.Reported(now, q.Site, q.Free, q.Issued)
		if seen.closed <= now { // else nobody knows how long a job would wait for it
			site.Free = min(free, site.Processors)
			site.Wait = waitOf(site.Processors, site.Free, q.Wait)
			sc.idle += site.Free
		}
		view.Put(site)
	}
	if sc.acquaint != nil {
		sc.acquaint(now, others, out)
	}
	if !in.End && in.Err == nil && len(in.Quotes) > 0 && sc.pages < scanPages {
		if sc.wants == 0 || sc.idle < sc.wants {
			sc.next(now, directory.Behind(&in.Quotes[len(in.Quotes)-1], directory.Price), out)
			return
		}
	}
	if sc.wants > 0 && in.Err == nil {
		if sc.idle < sc.wants { // then all are looked at
			sc.wants = 0
			sc.next(now, nil, out)
			return
		}
		sc.whole = false
		sc.bound(sc.least() - 1)
	}
	sc.query = 0
	if in.Err != nil && len(sc.seen) == 0 {
		sc.gangs.unseen(in.Err, out)
		return // the directory cannot be reached: what waits goes on waiting for the next scan
	}
	if in.End && in.Err == nil && sc.wants == 0 {
		there := func(id grid.SiteID) bool { return id == sc.cfg.ID || sc.seen[id] }
		sc.again = now + scanWhole
		sc.gangs.coord.Keep(there)
		maps.DeleteFunc(sc.sites, func(id grid.SiteID, _ seenSite) bool { return !there(id) })
	}
	sc.gangs.handOver(now, true, out)
}

// least is how many idle processors make a site worth seeing in a scan that need not see all.
func (sc *scout) least() int64 { return max(sc.wants/scanPart, 1) }

// bound takes in that the sites which a scan has passed over have at most so many processors
// idle. Those that it has not come to are not needed.
func (sc *scout) bound(free int64) {
	view := sc.gangs.coord.View()
	for i := range view.Sites {
		if s := &view.Sites[i]; s.Free > free && s.ID != sc.cfg.ID && !sc.seen[s.ID] {
			view.SetFree(i, free)
		}
	}
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

// setNetwork tells the coordinator what is known of the ways between the sites, and
// groups them by it if there are groups.
func (sc *scout) setNetwork() {
	if sc.quotes == nil {
		return
	}
	view := sc.gangs.coord.View()
	ids := make([]grid.SiteID, len(view.Sites))
	for i := range view.Sites {
		ids[i] = view.Sites[i].ID
	}
	view.SetNetwork(sc.network(sc.looked, ids))
	if sc.cfg.Radius > 0 {
		coalloc.Groups(view, sc.cfg.Radius)
	}
}

// refresh tells the coordinator what is idle at home, and what sites have gossiped since
// their quotes. It comes before jobs are placed.
func (sc *scout) refresh(now grid.Time) {
	sc.looked = now
	if sc.quotes == nil {
		return
	}
	view := sc.gangs.coord.View()
	for i := range view.Sites {
		id := view.Sites[i].ID
		if id == sc.cfg.ID {
			view.SetFree(i, sc.cluster.Idle(now))
			continue
		}
		seen := sc.sites[id]
		sc.reopen(now, id, &seen)
		if seen.closed > now {
			view.SetFree(i, 0)
			continue
		}
		if l, known := sc.quotes.dir.Load(id); known && l.Issued > seen.issued {
			seen.issued = l.Issued
			view.SetFree(i, sc.gangs.coord.Reported(now, id, l.Free, l.Issued))
		}
		sc.sites[id] = seen
	}
}

// tick begins a scan if jobs wait for one.
func (sc *scout) tick(now grid.Time, waiting bool, out *grid.Outbox) {
	switch {
	case !waiting:
		sc.due, sc.pause = grid.Never, 0
	case sc.due == grid.Never:
		sc.due = now + scanPauseMin
	case sc.due <= now && sc.query == 0:
		sc.scan(now, out)
	}
}

// nextTimer returns when tick has something to do.
func (sc *scout) nextTimer() grid.Time {
	if sc.query != 0 || sc.quotes == nil {
		return grid.Never
	}
	return sc.due
}

// nameOf returns what people call a site, as far as scans have told.
func (sc *scout) nameOf(id grid.SiteID) string { return sc.sites[id].name }
