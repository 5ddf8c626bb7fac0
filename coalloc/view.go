package coalloc

import (
	"slices"

	"gridnode/grid"
)

// SitesMax bounds the sites of a View.
const SitesMax = 100_000

// Site is what a placement needs to know of one site.
type Site struct {
	ID         grid.SiteID
	Name       string // what people call it; empty: its ID
	Processors int64  // in all
	Bounded    bool   // it has more, and lends so many at most
	Free       int64  // idle now, 0 to Processors

	// Wait returns how long a component of that many processors would have to wait
	// for the site, by the estimates of what runs there; grid.Never if it is not
	// known or never will start. Only Adaptive asks. It may be nil: not known.
	Wait func(processors int64) grid.Time

	Group int32 // latency group (see Groups); sites of one View that are in none have 0
}

// called returns what people call the site.
func (s *Site) called() string {
	if s.Name != "" {
		return s.Name
	}
	return string(s.ID)
}

// View is the sites as a scheduler sees them at one instant, with what placing needs
// again and again. Sites are told apart by index. A View is not safe for concurrent
// use; placements change Free only where they say so.
type View struct {
	Sites   []Site
	Network Network // between the sites, by index; nil: nobody knows, and all are equal

	// By how much a job that is split runs longer follows from what was seen of its
	// application, or else from its CCR and the penalty of communication between sites:
	// that of the Experience, if there is one.
	Penalty    Penalty
	Experience *Experience

	index map[grid.SiteID]int32
	total int64 // of Free
	most  int64 // of Processors

	order   []int32 // scratch: sites in the order of a policy
	left    []int64 // scratch: idle processors of sites during one placement
	touched []int32 // scratch: sites whose left differs from Free
	sizes   []int32 // scratch: components by decreasing size
	byWidth []int32 // sites by decreasing Free, then ID; valid if sorted
	sorted  bool
	near    *nearness // shared with idle
	idle    *View     // the same sites as if nothing ran anywhere; nil: to be made
	parts   [2][]Part // scratch of Adaptive
}

// NewView returns a view of sites. It keeps sites. A second site of one name is left out.
func NewView(sites []Site, network Network) *View {
	v := &View{Network: network, near: &nearness{}, index: make(map[grid.SiteID]int32, len(sites))}
	for _, s := range sites {
		if _, known := v.index[s.ID]; known || len(v.Sites) == SitesMax {
			continue
		}
		s.Free = min(max(s.Free, 0), max(s.Processors, 0))
		v.index[s.ID] = int32(len(v.Sites))
		v.Sites = append(v.Sites, s)
		v.total += s.Free
		v.most = max(v.most, s.Processors)
	}
	v.left = make([]int64, len(v.Sites))
	for i := range v.Sites {
		v.left[i] = v.Sites[i].Free
	}
	return v
}

// Put enters a site, or what is new about one that is known. A View with SitesMax sites
// takes no further one. Nothing is known of the ways to a new one until SetNetwork.
func (v *View) Put(s Site) {
	s.Processors = max(s.Processors, 0)
	s.Free = min(max(s.Free, 0), s.Processors)
	at, known := v.index[s.ID]
	switch {
	case !known && len(v.Sites) == SitesMax:
		return
	case !known:
		v.index[s.ID] = int32(len(v.Sites))
		v.Sites = append(v.Sites, s)
		v.left = append(v.left, s.Free)
		v.total += s.Free
		v.near, v.idle = &nearness{}, nil
	default:
		old := &v.Sites[at]
		if old.Processors == v.most && s.Processors < v.most {
			v.most = 0 // perhaps
		}
		v.total += s.Free - old.Free
		if old.Group != s.Group || old.Processors != s.Processors {
			v.near, v.idle = &nearness{}, nil
		}
		*old = s
		if v.idle != nil {
			v.idle.Sites[at].Wait = s.Wait
		}
		v.left[at] = s.Free
	}
	v.sorted = false
	if v.most > 0 {
		v.most = max(v.most, s.Processors)
		return
	}
	for i := range v.Sites {
		v.most = max(v.most, v.Sites[i].Processors)
	}
}

// Keep takes out the sites that have left, those of which there is false. The others
// move up: indices from before are void, and so is the Network, until SetNetwork.
func (v *View) Keep(there func(id grid.SiteID) bool) {
	before := len(v.Sites)
	v.Sites = slices.DeleteFunc(v.Sites, func(s Site) bool { return !there(s.ID) })
	if len(v.Sites) == before {
		return
	}
	clear(v.index)
	v.total, v.most, v.left = 0, 0, v.left[:0]
	for i := range v.Sites {
		s := &v.Sites[i]
		v.index[s.ID] = int32(i)
		v.left = append(v.left, s.Free)
		v.total += s.Free
		v.most = max(v.most, s.Processors)
	}
	v.byWidth, v.sorted = v.byWidth[:0], false
	v.SetNetwork(nil)
}

// SetNetwork says what is known now of the ways between the sites.
func (v *View) SetNetwork(n Network) { v.Network, v.near, v.idle = n, &nearness{}, nil }

// Index returns the index of a site, or -1.
func (v *View) Index(id grid.SiteID) int {
	if i, ok := v.index[id]; ok {
		return int(i)
	}
	return -1
}

// SetFree says how many processors of a site are idle now.
func (v *View) SetFree(site int, free int64) {
	s := &v.Sites[site]
	free = min(max(free, 0), s.Processors)
	if free != s.Free {
		v.total += free - s.Free
		s.Free, v.left[site] = free, free
		v.sorted = false
	}
}

// Free returns the idle processors of all sites.
func (v *View) Free() int64 { return v.total }

// Take subtracts a placement from what is idle, Give adds it again.
func (v *View) Take(parts []Part) {
	for _, p := range parts {
		v.SetFree(int(p.Site), v.Sites[p.Site].Free-p.Processors)
	}
}

// Give adds a placement to what is idle.
func (v *View) Give(parts []Part) {
	for _, p := range parts {
		v.SetFree(int(p.Site), v.Sites[p.Site].Free+p.Processors)
	}
}

// use takes processors of a site for the placement that is being made.
func (v *View) use(site int32, processors int64) {
	v.left[site] -= processors
	v.touched = append(v.touched, site)
}

// restore forgets what use has taken.
func (v *View) restore() {
	for _, i := range v.touched {
		v.left[i] = v.Sites[i].Free
	}
	v.touched = v.touched[:0]
}
