package coalloc

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"gridnode/grid"
)

// CloseToFiles appends a placement by Close-to-Files (Mohamed and Epema 2004) to dst.
// It places the components of a split like WorstFit, but each on the site to which the
// job's inputs can be brought soonest among those with room; of equal ones the one
// with most idle processors. A flexible request is filled like FCM, in the order of
// the transfer times; where so many components are not enough, as the closest sites have
// too little idle, it is filled with the widest of the closest sites that suffice. Sites
// to which an input cannot be brought are left out. Where nothing is known of files,
// that is WorstFit and FCM.
func CloseToFiles(dst []Part, r *Request, v *View) ([]Part, bool) {
	if r.Processors > v.total {
		return dst, false
	}
	transfer := make([]grid.Time, len(v.Sites))
	for i := range transfer {
		transfer[i] = Transfer(r.Inputs, v, i)
	}
	if len(r.Splits) == 0 {
		v.order = append(v.order[:0], v.widest()...)
		v.order = slices.DeleteFunc(v.order, func(i int32) bool { return transfer[i] == grid.Never })
		slices.SortStableFunc(v.order, func(a, b int32) int { return cmp.Compare(transfer[a], transfer[b]) })
		if parts, ok := minimize(dst, r, v, v.order); ok {
			return parts, true
		}
		return closestWide(dst, r, v, v.order)
	}
	closest := func(c *Component, only []Part) int32 {
		best := int32(-1)
		consider := func(i int32) {
			switch {
			case v.left[i] < c.Processors || transfer[i] == grid.Never:
			case best < 0 || transfer[i] < transfer[best]:
				best = i
			case transfer[i] > transfer[best]:
			case v.left[i] > v.left[best] || v.left[i] == v.left[best] && v.Sites[i].ID < v.Sites[best].ID:
				best = i
			}
		}
		for i := range v.Sites {
			if len(only) == 0 || slices.ContainsFunc(only, func(p Part) bool { return p.Site == int32(i) }) {
				consider(int32(i))
			}
		}
		return best
	}
	for _, s := range r.Splits {
		if parts, ok := placeSplit(dst, r, s, v, closest); ok {
			return parts, true
		}
	}
	return dst, false
}

// closestWide fills the widest of the first sites of an order, of as few as suffice.
func closestWide(dst []Part, r *Request, v *View, order []int32) ([]Part, bool) {
	wide := make([]int32, 0, len(order))
	first := func(n int) ([]Part, bool) {
		wide = append(wide[:0], order[:n]...)
		slices.SortStableFunc(wide, func(a, b int32) int { return cmp.Compare(v.Sites[b].Free, v.Sites[a].Free) })
		return minimize(dst, r, v, wide)
	}
	n := sort.Search(len(order), func(n int) bool { // if n sites suffice, more do
		_, ok := first(n + 1)
		return ok
	})
	if n == len(order) {
		return dst, false
	}
	return first(n + 1)
}

// Transfer estimates how long it takes to bring inputs to a site, one after the other,
// each from the holder from which that takes least: latency plus size over bandwidth.
// A file that the site has takes no time. One that nobody in v has takes as long
// everywhere, which counts as none. Without a Network all transfers take a second a
// gigabyte. At most grid.SpanMax, or grid.Never if there is one that nobody lets it copy.
func Transfer(inputs []Input, v *View, site int) grid.Time {
	var sum grid.Time
	for i := range inputs {
		in := &inputs[i]
		best := grid.Never
		for _, holder := range in.Holders {
			from := v.Index(holder)
			if from == site {
				best = 0
			}
			if from >= 0 && best > 0 {
				best = min(best, v.transfer(in.Bytes, from, site))
			}
		}
		if slices.Contains(in.Closed, v.Sites[site].ID) {
			best = 0
		}
		if best == grid.Never && len(in.Closed) > 0 && len(in.Holders) == 0 {
			return grid.Never
		}
		if best != grid.Never {
			sum = min(sum+best, grid.SpanMax)
		}
	}
	return sum
}

// Bound reports whether an input can be read at its holders only.
func (r *Request) Bound() bool {
	return slices.ContainsFunc(r.Inputs, func(in Input) bool { return len(in.Closed) > 0 && len(in.Holders) == 0 })
}

// closedText says so.
func (r *Request) closedText() string {
	if r.Bound() {
		return ", as nobody may copy what it reads to other sites than its holders"
	}
	return ""
}

// bandwidthAssumed is that of a network nobody has measured, in bytes a second.
const bandwidthAssumed = 1_000_000_000

func (v *View) transfer(bytes int64, from, to int) grid.Time {
	latency, bandwidth := grid.Time(0), int64(bandwidthAssumed)
	if v.Network != nil {
		latency, bandwidth = v.Network.Latency(from, to), max(v.Network.Bandwidth(from, to), 1)
	}
	hi, lo := bits.Mul64(uint64(bytes), uint64(grid.Second))
	if hi >= uint64(bandwidth) {
		return grid.SpanMax
	}
	span, _ := bits.Div64(hi, lo, uint64(bandwidth))
	return latency + grid.Time(min(span, uint64(grid.SpanMax)))
}
