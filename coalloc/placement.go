package coalloc

import (
	"fmt"

	"gridnode/grid"
)

// Part is a component with the site it is placed at.
type Part struct {
	Component  int32 // 0, 1, …: its place in the split, or in the order of placing if the job is flexible
	Site       int32 // index in the View
	Processors int64
}

// Clusters returns how many different sites parts are at.
func Clusters(parts []Part) int {
	n := 0
	for i := range parts {
		first := true
		for j := range i {
			first = first && parts[j].Site != parts[i].Site
		}
		if first {
			n++
		}
	}
	return n
}

// Fits returns an error unless parts are a placement of r in v: all of its
// processors, no site with more than it has idle, all limits kept. It says what a
// policy must guarantee; tests and whoever takes a placement from elsewhere ask it.
func (r *Request) Fits(parts []Part, v *View) error {
	defer v.restore()
	var sum int64
	for i, p := range parts {
		if p.Site < 0 || int(p.Site) >= len(v.Sites) || p.Processors < 1 {
			return fmt.Errorf("part %d has %d processors at site %d of %d", i+1, p.Processors, p.Site, len(v.Sites))
		}
		if v.use(p.Site, p.Processors); v.left[p.Site] < 0 {
			return fmt.Errorf("%s has %d idle processors, the parts there need more", v.Sites[p.Site].ID, v.Sites[p.Site].Free)
		}
		sum += p.Processors
	}
	clusters := Clusters(parts)
	switch {
	case sum != r.Processors:
		return fmt.Errorf("the parts add up to %d processors, the job has %d", sum, r.Processors)
	case r.ClustersMax > 0 && clusters > r.ClustersMax:
		return fmt.Errorf("%d sites are combined, the limit is %d", clusters, r.ClustersMax)
	}
	if len(r.Splits) > 0 {
		for _, s := range r.Splits {
			if s.is(parts, v) {
				return nil
			}
		}
		return fmt.Errorf("the parts are none of the splits that were asked for")
	}
	if n := len(parts); n != clusters || n < r.ComponentsMin || n > r.most() {
		return fmt.Errorf("%d components at %d sites, want %d to %d, each at a site of its own", n, clusters, max(r.ComponentsMin, 1), r.most())
	}
	for i, p := range parts {
		if p.Processors < r.least() || p.Processors%r.each() != 0 {
			return fmt.Errorf("component %d has %d processors, want at least %d, and a multiple of %d", i+1, p.Processors, r.least(), r.each())
		}
	}
	return nil
}

// is reports whether parts are the components of s, each once, where it has to be.
func (s Split) is(parts []Part, v *View) bool {
	if len(parts) != len(s) {
		return false
	}
	var seen [ComponentsMax]bool
	for _, p := range parts {
		if p.Component < 0 || int(p.Component) >= len(s) || seen[p.Component] {
			return false
		}
		seen[p.Component] = true
		c := &s[p.Component]
		if c.Processors != p.Processors || c.Site != "" && v.Sites[p.Site].ID != c.Site {
			return false
		}
	}
	return true
}

// Placeable returns an error wrapping ErrRequest if r, which is valid, could not be
// placed on the sites of v even if all of their processors were idle. It names the
// component, the site and the numbers.
func (r *Request) Placeable(v *View) error {
	if len(r.Splits) == 0 {
		return r.placeableFlexible(v)
	}
	var first error
	for i, s := range r.Splits {
		err := r.placeableSplit(i+1, s, v)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// PlaceableBy returns an error wrapping ErrRequest if a policy would not place r, which
// is Placeable, on the sites of v even if all of their processors were idle.
func (r *Request) PlaceableBy(p Policy, v *View, estimate grid.Time) error {
	if _, ok := p.Place(nil, r, idleView(v), estimate); ok {
		return nil
	}
	return badRequest("%d processors: %s does not place it even if all sites are idle%s", r.Processors, p, r.closedText())
}

func (r *Request) placeableSplit(number int, s Split, v *View) error {
	named := make(map[int32]int64, len(s))
	for i, c := range s {
		if c.Site == "" {
			if c.Processors > v.most {
				return badRequest("component %d of split %d has %d processors, the widest site %d", i+1, number, c.Processors, v.most)
			}
			continue
		}
		at := v.Index(c.Site)
		if at < 0 {
			return badRequest("component %d of split %d: no site %q is known", i+1, number, c.Site)
		}
		if named[int32(at)] += c.Processors; named[int32(at)] > v.Sites[at].Processors {
			verb := "has"
			if v.Sites[at].Bounded {
				verb = "lends at most"
			}
			return badRequest("component %d of split %d: %s %s %d processors, the components there need %d", i+1, number, v.Sites[at].called(), verb, v.Sites[at].Processors, named[int32(at)])
		}
	}
	// Whether the rest fits is bin packing; the policy's own rule on an idle system
	// decides, so that nothing waits for what will never be tried.
	idle := idleView(v)
	if _, ok := worstFitSplit(nil, r, s, idle); !ok {
		return badRequest("split %d does not fit the sites even if all of them are idle%s", number, r.limitText())
	}
	return nil
}

func (r *Request) limitText() string {
	if r.ClustersMax == 0 {
		return ""
	}
	return fmt.Sprintf(", with at most %d sites", r.ClustersMax)
}

// idleView returns v as if nothing ran anywhere.
//
// It is made once and kept until a site has another size, group or network.
func idleView(v *View) *View {
	if v.idle != nil {
		return v.idle
	}
	idle := &View{Network: v.Network, Penalty: v.Penalty, Experience: v.Experience, index: v.index, most: v.most, near: v.near}
	for _, s := range v.Sites {
		s.Free = s.Processors
		idle.Sites, idle.left = append(idle.Sites, s), append(idle.left, s.Free)
		idle.total += s.Free
	}
	v.idle = idle
	return idle
}

func (r *Request) placeableFlexible(v *View) error {
	if int64(r.ComponentsMin) > int64(len(v.Sites)) {
		return badRequest("at least %d components, each at a site of its own: %d sites are known", r.ComponentsMin, len(v.Sites))
	}
	idle := idleView(v)
	if _, ok := minimize(nil, r, idle, idle.widest()); ok {
		return nil
	}
	var sum int64
	sites := 0
	for _, i := range idle.widest() {
		if sites == r.most() || idle.Sites[i].Free < r.least() {
			break
		}
		sum += r.whole(idle.Sites[i].Free)
		sites++
	}
	return badRequest("%d processors in %d to %d components of at least %d each: the %d widest sites that count have %d",
		r.Processors, max(r.ComponentsMin, 1), min(r.most(), len(v.Sites)), r.least(), sites, sum)
}
