package coalloc

import (
	"slices"

	"gridnode/grid"
)

// Bounds of a reckoning.
const (
	// changedSpan is how long what this site did counts against reports: twice the longest
	// time for which a site holds its quote back.
	changedSpan = 2 * grid.Minute

	// refusedSpan is how long a refusal does. What others run may end at any time, and if
	// nothing else has changed nobody is told; asking again costs two messages.
	refusedSpan = 30 * grid.Second

	reckonedMax = 64 // of one site; beyond it the oldest are forgotten
)

// reckoning is what this site knows of the idle processors of others better than their
// reports do, which lag behind: what it has taken and given back there since, and what
// refusals have said.
type reckoning struct {
	sites map[grid.SiteID]*reckoned
}

// reckoned is what is known of one site.
type reckoned struct {
	issued grid.Time // of its newest report, on its clock
	events []reckonedEvent
}

// reckonedEvent is something that reports from before it do not tell.
type reckonedEvent struct {
	at     grid.Time // on this site's clock
	issued grid.Time // of the newest report known then, on the other's

	refused bool
	number  int64 // processors: idle, as a refusal said, or else given back, negative if taken
}

// span returns for how long the event counts.
func (e *reckonedEvent) span() grid.Time {
	if e.refused {
		return refusedSpan
	}
	return changedSpan
}

// of returns what is known of a site, without what is too long ago.
func (r *reckoning) of(now grid.Time, site grid.SiteID) *reckoned {
	k := r.sites[site]
	if k == nil {
		k = &reckoned{issued: -1}
		r.sites[site] = k
	}
	old := 0
	for old < len(k.events) && now-k.events[old].at > k.events[old].span() {
		old++
	}
	k.events = slices.Delete(k.events, 0, max(old, len(k.events)-reckonedMax))
	return k
}

// changed notes that so many processors of a site are given back, or taken if negative.
func (r *reckoning) changed(now grid.Time, site grid.SiteID, processors int64) {
	k := r.of(now, site)
	k.events = append(k.events, reckonedEvent{at: now, issued: k.issued, number: processors})
}

// refused notes how many processors a site has just said are idle.
func (r *reckoning) refused(now grid.Time, site grid.SiteID, free int64) {
	k := r.of(now, site)
	k.events = append(k.events[:0], reckonedEvent{at: now, issued: k.issued, refused: true, number: free})
}

// reported takes in what a site reports as idle, and returns what counts. A report lacks
// an event if it is no newer than the one that was known when it happened. One that is
// newer is compared by its time: where clocks differ it may lack, or count twice, what
// was done within that difference. Claiming decides in any case.
func (r *reckoning) reported(now grid.Time, site grid.SiteID, free int64, issued grid.Time) int64 {
	k := r.of(now, site)
	k.issued = max(k.issued, issued)
	for _, e := range k.events {
		switch {
		case issued > e.issued && issued > e.at:
		case e.refused:
			free = e.number
		default:
			free += e.number
		}
	}
	return max(free, 0)
}

// Reported takes in how many processors a site says are idle, by a quote or by gossip
// that it issued then by its clock, and returns how many count as idle, for the View: a
// report lags behind what this site has placed there since, and behind what the site has
// said in refusing.
func (c *Coordinator) Reported(now grid.Time, site grid.SiteID, free int64, issued grid.Time) int64 {
	return c.reckoning.reported(now, site, free, issued)
}

// Keep takes sites out of the View that have left: see View.Keep.
func (c *Coordinator) Keep(there func(id grid.SiteID) bool) {
	c.view.Keep(there)
	for id := range c.reckoning.sites {
		if !there(id) {
			delete(c.reckoning.sites, id)
		}
	}
}
