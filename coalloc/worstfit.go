package coalloc

import (
	"cmp"
	"slices"
)

// WorstFit appends a placement by Worst Fit (section IV-A) to dst: it "orders the
// components of a job with a non-fixed request type according to decreasing size and
// places them in this order, one by one, on the cluster with the largest (remaining)
// number of idle processors". Components that name a site go there first. With
// ClustersMax sites in use only those are considered. Of several splits the first
// that fits is taken; a flexible request is one component (WF does not split). It
// takes O(components × sites) time.
func WorstFit(dst []Part, r *Request, v *View) ([]Part, bool) {
	if len(r.Splits) == 0 {
		if r.ComponentsMin > 1 {
			return dst, false
		}
		return single(dst, r.Processors, v)
	}
	if r.Processors > v.total {
		return dst, false
	}
	for _, s := range r.Splits {
		if parts, ok := worstFitSplit(dst, r, s, v); ok {
			return parts, true
		}
	}
	return dst, false
}

// single places a job of one component on the site with most idle processors.
func single(dst []Part, processors int64, v *View) ([]Part, bool) {
	best := v.roomiest(nil)
	if best < 0 || v.Sites[best].Free < processors {
		return dst, false
	}
	return append(dst, Part{0, best, processors}), true
}

// roomiest returns the site with most processors left, the first by name among
// equals, or -1; if only is not empty, of those that parts are at.
func (v *View) roomiest(only []Part) int32 {
	best := int32(-1)
	better := func(i int32) bool {
		if best < 0 || v.left[i] != v.left[best] {
			return best < 0 || v.left[i] > v.left[best]
		}
		return v.Sites[i].ID < v.Sites[best].ID
	}
	if len(only) > 0 {
		for _, p := range only {
			if better(p.Site) {
				best = p.Site
			}
		}
		return best
	}
	for i := range v.Sites {
		if better(int32(i)) {
			best = int32(i)
		}
	}
	return best
}

// splitOrder returns the components of s: those that name a site, then the others by
// decreasing size.
func (v *View) splitOrder(s Split) []int32 {
	v.sizes = v.sizes[:0]
	for i := range s {
		v.sizes = append(v.sizes, int32(i))
	}
	slices.SortStableFunc(v.sizes, func(a, b int32) int {
		if named := cmp.Compare(btoi(s[b].Site != ""), btoi(s[a].Site != "")); named != 0 {
			return named
		}
		return cmp.Compare(s[b].Processors, s[a].Processors)
	})
	return v.sizes
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// worstFitSplit places the components of one split.
func worstFitSplit(dst []Part, r *Request, s Split, v *View) ([]Part, bool) {
	return placeSplit(dst, r, s, v, func(c *Component, only []Part) int32 { return v.roomiest(only) })
}

// placeSplit places the components of a split one by one: where they have to be, or
// where choose says; only is not empty once no further site may be used.
func placeSplit(dst []Part, r *Request, s Split, v *View, choose func(c *Component, only []Part) int32) ([]Part, bool) {
	defer v.restore()
	begin := len(dst)
	for _, i := range v.splitOrder(s) {
		c, placed := &s[i], dst[begin:]
		full := r.ClustersMax > 0 && Clusters(placed) >= r.ClustersMax
		var at int32
		switch {
		case c.Site != "":
			at = int32(v.Index(c.Site))
			if at >= 0 && full && !slices.ContainsFunc(placed, func(p Part) bool { return p.Site == at }) {
				return dst[:begin], false
			}
		case full:
			at = choose(c, placed)
		default:
			at = choose(c, nil)
		}
		if at < 0 || v.left[at] < c.Processors {
			return dst[:begin], false
		}
		v.use(at, c.Processors)
		dst = append(dst, Part{i, at, c.Processors})
	}
	return dst, true
}
