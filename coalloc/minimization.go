package coalloc

import (
	"cmp"
	"slices"
)

// ClusterMinimization appends a placement by Flexible Cluster Minimization (section
// IV-B) to dst: it "first orders the clusters according to decreasing number of idle
// processors" and "places on clusters one by one a component of the job of size equal
// to the number of idle processors in that cluster"; the last may be smaller. Sites
// with fewer idle processors than a component must have are passed over, and a
// component leaves to those that follow what they must have. Requests with splits are placed
// by WorstFit. It takes O(sites × log sites) time if something changed, else O(components).
func ClusterMinimization(dst []Part, r *Request, v *View) ([]Part, bool) {
	if len(r.Splits) > 0 {
		return WorstFit(dst, r, v)
	}
	if r.Processors > v.total {
		return dst, false
	}
	return minimize(dst, r, v, v.widest())
}

// widest returns the sites by decreasing number of idle processors, then by name.
func (v *View) widest() []int32 {
	if v.sorted {
		return v.byWidth
	}
	if len(v.byWidth) != len(v.Sites) {
		v.byWidth = v.byWidth[:0]
		for i := range v.Sites {
			v.byWidth = append(v.byWidth, int32(i))
		}
	}
	slices.SortFunc(v.byWidth, func(a, b int32) int {
		if c := cmp.Compare(v.Sites[b].Free, v.Sites[a].Free); c != 0 {
			return c
		}
		return cmp.Compare(v.Sites[a].ID, v.Sites[b].ID)
	})
	v.sorted = true
	return v.byWidth
}

// minimize fills as few sites as suffice, one after the other in the given order. If
// the order is that of decreasing idle processors it finds a placement whenever there
// is one: k sites can hold the job if the k widest can.
func minimize(dst []Part, r *Request, v *View, order []int32) ([]Part, bool) {
	least, most, fewest := r.least(), r.most(), max(r.ComponentsMin, 1)
	var idle int64
	k := 0
	for _, i := range order {
		if free := r.whole(v.Sites[i].Free); free >= least {
			idle += free
			k++
		}
		if k == most || k >= fewest && idle >= r.Processors {
			break
		}
	}
	if idle < r.Processors || k < fewest || int64(k)*least > r.Processors {
		return dst, false
	}
	left, n := r.Processors, 0
	for _, i := range order {
		if n == k {
			break
		}
		free := r.whole(v.Sites[i].Free)
		if free < least {
			continue
		}
		n++
		size := min(free, left-least*int64(k-n)) // what follows needs its least
		dst = append(dst, Part{int32(n - 1), i, size})
		left -= size
	}
	return dst, true
}
