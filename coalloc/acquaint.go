package coalloc

import (
	"slices"

	"gridnode/grid"
)

// Bounds of what a Survey says to sites that are no siblings.
const (
	acquaintMax  = 16              // of one call of Acquaint
	acquaintSpan = reportAge / 2   // what a site has told of itself need not be asked for again for so long
	tellsMax     = 16              // reports to single sites in tellsSpan
	tellsSpan    = reportAge / 100 // 6 s
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
		p := s.peers[id]
		if id == s.cfg.Self || p != nil && now-p.heard < acquaintSpan || asked == acquaintMax || !s.mayTell(now, id) {
			continue
		}
		asked++
		s.tell(now, id, out)
	}
}

// greet answers the report of a site that is no sibling with one to that site alone,
// unless it had one lately.
func (s *Survey) greet(now grid.Time, from grid.SiteID, out *grid.Outbox) {
	if s.cfg.Siblings == nil || s.peers[from] == nil || slices.Contains(s.cfg.Siblings(), from) || !s.mayTell(now, from) {
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
