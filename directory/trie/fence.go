package trie

import (
	"slices"

	"gridnode/grid"
)

// Fence is a cell that was split off another one, as the holders of that one remember
// it: quotes inside belong there.
type Fence struct {
	Prefix
	Expires grid.Time     // unless its holders report again
	Holders []grid.SiteID // as one of them has reported; shared by messages, does not change

	witnesses []witness // what some of these say of the cell, each once
	vouched   *Summary  // of a fence in a mirror's image: what the holder makes of that
}

// witness is one holder's summary of a fence's cell.
type witness struct {
	site    grid.SiteID
	summary Summary
	expires grid.Time
}

// Testify notes what a holder of the fence's cell says; with nil it takes back what it
// said before. Who is not one of its holders says nothing.
func (f *Fence) Testify(site grid.SiteID, s *Summary, expires grid.Time) {
	f.witnesses = slices.DeleteFunc(f.witnesses, func(w witness) bool {
		return w.site == site || !slices.Contains(f.Holders, w.site)
	})
	if s != nil && slices.Contains(f.Holders, site) {
		f.witnesses = append(f.witnesses, witness{site, *s, expires})
	}
}

// Vouch takes over what the holder of the cell above makes of the testimonies; with nil
// it knows nothing.
func (f *Fence) Vouch(s *Summary) { f.vouched = s }

// Summary returns what more than half of the holders of the fence's cell agree that
// nothing there exceeds: the most that any of them says.
func (f *Fence) Summary(now grid.Time) (s Summary, ok bool) {
	if f.vouched != nil {
		return *f.vouched, true
	}
	s, count := Nothing(), 0
	for i := range f.witnesses {
		if w := &f.witnesses[i]; now < w.expires {
			s.Merge(w.summary)
			count++
		}
	}
	return s, count > 0 && 2*count > len(f.Holders)
}
