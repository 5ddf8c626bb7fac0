package coalloc

import (
	"slices"

	"gridnode/grid"
)

// Bounds of what a Survey says to sites that are no siblings.
const (
	acquaintMax   = 16               // of one call of Acquaint
	acquaintSpan  = 5 * grid.Minute  // what a site has told of itself need not be asked for again for so long
	acquaintSure  = 30 * grid.Minute // the same, of one that knew where it is
	acquaintError = 250              // its Coordinate.Error then, at most
	tellsMax      = 16               // reports to single sites in tellsSpan
	tellsSpan     = 6 * grid.Second
)

// Acquaint asks sites that have not told where they are for long, acquaintMax of them at
// most, by telling them where this one is: they answer in kind. So the latency to a site, and between two,
// can be estimated although neither is a sibling.
func (s *Survey) Acquaint(now grid.Time, sites []grid.SiteID, out *grid.Outbox) {
	if s.cfg.Siblings == nil {
		return // they all report on the topic
	}
	asked := 0
	for _, id := range sites {
		p := s.peer(id)
		if id == s.cfg.Self || p != nil && p.fresh(now) || asked == acquaintMax || !s.mayTell(now, id) {
			continue
		}
		asked++
		s.tell(now, id, out)
	}
}

// fresh reports whether what a site has told of itself is good for long yet.
func (p *surveyed) fresh(now grid.Time) bool {
	span := acquaintSpan
	if p.report.Coordinate.Error <= acquaintError {
		span = acquaintSure
	}
	return now-p.heard < span
}

// Resound tells the siblings who have not been siblings before where this site is.
func (s *Survey) Resound(now grid.Time, out *grid.Outbox) {
	if s.cfg.Siblings == nil {
		return
	}
	siblings := s.cfg.Siblings()
	for _, site := range siblings {
		if !slices.Contains(s.listeners, site) {
			out.Send(site, s.made(now))
		}
	}
	s.listeners = append(s.listeners[:0], siblings...)
}

// Unheard says that a sibling may have forgotten where this site is: Resound tells it.
func (s *Survey) Unheard(site grid.SiteID) {
	s.listeners = slices.DeleteFunc(s.listeners, func(id grid.SiteID) bool { return id == site })
}

// greet answers the report of a site that is no sibling with one to that site alone,
// unless it had one lately.
func (s *Survey) greet(now grid.Time, from grid.SiteID, out *grid.Outbox) {
	if s.cfg.Siblings == nil || s.peer(from) == nil || slices.Contains(s.cfg.Siblings(), from) || !s.mayTell(now, from) {
		return
	}
	s.tell(now, from, out)
}

// mayTell reports whether a site has not been told lately, nor too many others.
func (s *Survey) mayTell(now grid.Time, site grid.SiteID) bool {
	if now-s.tellsSince >= tellsSpan {
		s.tellsSince, s.tells = now, 0
		for id, at := range s.told {
			if now-at >= acquaintSpan {
				delete(s.told, id)
			}
		}
	}
	_, lately := s.told[site]
	return !lately && s.tells < tellsMax
}

func (s *Survey) tell(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	s.tells++
	s.told[site] = now
	out.Send(site, s.made(now))
}
