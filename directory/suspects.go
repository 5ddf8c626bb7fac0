package directory

import (
	"slices"

	"gridnode/grid"
)

const (
	suspectsMax = 64 // sites remembered not to answer
	strikesMax  = 2  // requests in a row without an answer that make a site suspect
)

// suspects are the sites that did not answer, or lied. A suspect is passed over for a
// while if there are others to ask.
type suspects struct {
	list []suspect
	span grid.Time // for which a strike counts
}

// suspect is one of them.
type suspect struct {
	site    grid.SiteID
	strikes int
	lied    bool      // hearing from it does not help it
	until   grid.Time // it is passed over until then, if it has strikesMax strikes
}

// has reports whether a site is to be passed over.
func (s *suspects) has(now grid.Time, site grid.SiteID) bool {
	for i := range s.list {
		if x := &s.list[i]; x.site == site {
			return x.strikes >= strikesMax && now < x.until
		}
	}
	return false
}

// strike notes that a site did not answer in time, or, if certain, that it cannot
// be reached at all.
func (s *suspects) strike(now grid.Time, site grid.SiteID, certain bool) *suspect {
	i := slices.IndexFunc(s.list, func(x suspect) bool { return x.site == site })
	if i < 0 {
		if len(s.list) >= suspectsMax {
			s.list = slices.Delete(s.list, 0, 1)
		}
		s.list = append(s.list, suspect{site: site})
		i = len(s.list) - 1
	}
	x := &s.list[i]
	if now >= x.until {
		x.strikes, x.lied = 0, false
	}
	x.strikes++
	if certain {
		x.strikes = max(x.strikes, strikesMax)
	}
	x.until = now + s.span
	return x
}

// distrust notes that a site has said what cannot be true.
func (s *suspects) distrust(now grid.Time, site grid.SiteID) { s.strike(now, site, true).lied = true }

// heard notes that a site is alive.
func (s *suspects) heard(site grid.SiteID) {
	if len(s.list) > 0 {
		s.list = slices.DeleteFunc(s.list, func(x suspect) bool { return x.site == site && !x.lied })
	}
}
