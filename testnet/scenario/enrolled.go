package scenario

import (
	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
)

// Enrolled is a virtual site that has to do with members only: before it hears a site it is
// shown what the roots say of it, as nodes greet each other before they speak.
type Enrolled struct {
	*site.Site
	Members func(id grid.SiteID) *member.Member // nil: that site is no member, and nothing can be shown
}

// Step implements testnet.Site.
func (e *Enrolled) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *grid.Delivery:
		e.greet(now, in.From, out)
	case *grid.Closest: // a look-up speaks to all that it names
		for _, site := range in.Peers {
			e.greet(now, site, out)
		}
	}
	e.Site.Step(now, in, out)
}

// Core returns the site itself.
func (e *Enrolled) Core() *site.Site { return e.Site }

// SiteOf returns the site that a core of a network is, or stands around; nil: it is down, or
// no site.
func SiteOf(core testnet.Site) *site.Site {
	switch s := core.(type) {
	case *site.Site:
		return s
	case interface{ Core() *site.Site }:
		return s.Core()
	}
	return nil
}

// SiteAt returns a site of a network if it is up.
func SiteAt(n *testnet.Network, at int) (s *site.Site, up bool) {
	s = SiteOf(n.Core(at))
	return s, s != nil
}

// greet introduces a site that was not met, was taken out since, or has a new certificate.
func (e *Enrolled) greet(now grid.Time, from grid.SiteID, out *grid.Outbox) {
	roll := e.Roll()
	if roll == nil {
		return
	}
	known := roll.Member(from)
	if known == nil && roll.Is(from) {
		return // it is this site itself
	}
	if m := e.Members(from); m != nil && m != known && now < m.Expires {
		e.Site.Step(now, &member.Introduce{Member: m}, out)
	}
}
