package lease

import (
	"slices"

	"gridnode/grid"
)

// SetMembers replaces the sites outside the neighbourhood that OrderGossip may ask, too:
// those whose reports reach this one. A member that has a link is asked as a neighbour.
func (m *Matchmaker) SetMembers(sites []grid.SiteID) {
	m.cfg.Members = slices.DeleteFunc(slices.Clone(sites), func(site grid.SiteID) bool {
		return slices.ContainsFunc(m.cfg.Links, func(l Link) bool { return l.Site == site })
	})
}
