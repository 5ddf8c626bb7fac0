package sibling

import (
	"slices"

	"gridnode/grid"
)

// watch is what a site knows of whether a sibling is there. Siblings keep connections with each
// other, over which the transport looks for signs of life: one that ends says that the daemon
// or its machine may be gone. And a sibling says with what it gossips within which span it does
// so again: more often to its watchers, who so miss one that lives but does nothing. Any message
// of it is a sign of life. Whoever misses one asks, by a Greet, whether they are siblings, and if
// nothing comes of that warns the others, who ask for themselves: nobody is believed to be dead
// on another's word.
//
//	           due, or parted         no answer: others are warned        for two thirds of Silence
//	there ------------> asked ----------------------------------> asked ---------------------------> none
//	  ^                   |   cannot be reached: others are warned                                    ^
//	  +-- any message ----+---------------------------------------------------------------------------+
type watch struct {
	again grid.Time     // within which it gossips; 0: it has not said
	due   grid.Time     // when it is missed
	asked grid.Time     // when it was first asked
	asks  int           // since it was last heard
	told  []grid.SiteID // who have been warned, as far as known
}

// Times and bounds of a watch.
const (
	againMax = 30 * grid.Minute // a promise of more than that is as good as none
	lateMin  = 2 * grid.Second  // a sibling may be late by a 32nd of the span and so much
	askMin   = 10 * grid.Second // between two questions; it doubles

	partedPause = grid.Second // the same, before the second one to whom the connection has ended
)

// alive notes a sign of life.
func (w *watch) alive(now, silence grid.Time) {
	w.asks, w.told = 0, nil
	if w.due = now + silence/3; w.again > 0 {
		w.due = now + w.again + w.again/32 + lateMin
	}
}

// Alive says that a message of any kind has come from a site.
func (c *Circle) Alive(now grid.Time, from grid.SiteID) {
	if m := c.member(from); m != nil {
		before := m.due
		m.alive(now, c.cfg.Silence)
		c.moved(before, m)
	}
}

// Heard says that a site has gossiped, and does so again within a span, 0 if it does not
// say. One that is no sibling is told.
func (c *Circle) Heard(now grid.Time, from grid.SiteID, again grid.Time, out *grid.Outbox) {
	if m := c.member(from); m != nil {
		before := m.due
		m.again = min(again, againMax)
		m.alive(now, c.cfg.Silence)
		c.moved(before, m)
		return
	}
	if n := c.name(from); n == nil || !n.pending {
		out.Send(from, &Reply{})
	}
}

// Lost says that gossip, or a Greet, did not reach a site.
func (c *Circle) Lost(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	c.unknown = true
	if n := c.name(site); n != nil {
		n.pending = false
	}
	if m := c.member(site); m != nil {
		told := m.told
		c.remove(now, site)
		c.warn(site, told, out)
	}
	c.tell(out)
}

// parted takes notice that the connection with a site has ended: it is asked at once, and the
// others are warned soon.
func (c *Circle) parted(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	if m := c.member(site); m != nil && m.asks == 0 {
		m.asked = now
		c.ask(now, m, out)
		m.due = now + partedPause
	}
}

// miss goes on with a sibling that is due.
func (c *Circle) miss(now grid.Time, m *member, out *grid.Outbox) {
	patience := c.cfg.Silence / 3 * 2
	switch {
	case m.asks > 0 && now-m.asked >= patience:
		c.drop(now, m.site, out)
		return
	case m.asks == 0:
		m.asked = now
	case m.asks == 1:
		m.told = c.warn(m.site, m.told, out)
	}
	c.ask(now, m, out)
	m.due = min(m.due, max(m.asked+patience, now+1))
}

// ask asks a sibling whether it is one.
func (c *Circle) ask(now grid.Time, m *member, out *grid.Outbox) {
	m.due = now + askMin<<min(m.asks, 4)
	m.asks++
	out.Send(m.site, &Greet{Authority: c.cfg.Authority, Kin: m.kin})
}

// warn tells the siblings that one seems to have died, but those who know, and returns who
// does now.
func (c *Circle) warn(missed grid.SiteID, told []grid.SiteID, out *grid.Outbox) []grid.SiteID {
	var to []grid.SiteID
	for i := range c.members {
		if m := &c.members[i]; m.site != missed && !m.kin && !slices.Contains(told, m.site) {
			to = append(to, m.site)
		}
	}
	all := append(slices.Clone(told), to...)
	all = all[:min(len(all), othersMax)]
	for _, site := range to {
		out.Send(site, &Reply{Taken: true, Others: all, Missed: missed})
	}
	return all
}

// warned takes a sibling's word that one of its siblings seems to have died.
func (c *Circle) warned(now grid.Time, from grid.SiteID, w *Reply, out *grid.Outbox) {
	m := c.member(w.Missed)
	if m == nil || c.member(from) == nil {
		return
	}
	if m.asks > 0 {
		for _, site := range append(slices.Clone(w.Others), from) {
			if len(m.told) < othersMax && !slices.Contains(m.told, site) {
				m.told = append(m.told, site)
			}
		}
		return
	}
	if m.asked > 0 && now-m.asked < askMin {
		return
	}
	m.told = append(slices.Clone(w.Others), from)
	m.asked = now
	c.ask(now, m, out)
}

// Watchers returns the siblings that this site is to be missed by: the next one in the
// order of IDs, so that in a group of all with all each site has one, and all kin. The
// slice is not changed later.
func (c *Circle) Watchers() []grid.SiteID { return c.watchers }

// watched works out the watchers.
func (c *Circle) watched() (sites []grid.SiteID) {
	next := -1
	for i := range c.members {
		switch m := &c.members[i]; {
		case m.kin:
			sites = append(sites, m.site)
		case next < 0 || c.members[next].site < c.cfg.Self && m.site > c.cfg.Self:
			next = i
		}
	}
	if next >= 0 {
		sites = append(sites, c.members[next].site)
	}
	return sites
}
