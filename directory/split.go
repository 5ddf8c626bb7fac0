package directory

import "gridnode/grid"

// rootShare: the root keeps half as many quotes again as other cells. Most queries are
// for the lowest or the highest values, and find them there; but each of these sites
// publishes to the root's holders, who are busy anyway.
const rootShare = 2

// split makes cells of parts of a cell that has more than cellMax quotes of its own.
//
// Several sites hold a cell, and each splits it as it sees fit, without asking the
// others. That does no harm: a cell is named by a prefix, so whoever splits where,
// a quote can only be in cells whose prefixes it begins with, and whoever looks for
// it asks those, from the longest one upwards.
func (h *holding) split(now grid.Time, cellMax int, expires grid.Time) {
	if h.cell.isRoot() {
		cellMax += cellMax / rootShare
	}
	if len(h.entries) <= cellMax {
		return
	}
	for {
		var points []position
		for e := range func(yield func(*entry) bool) { h.own(now, yield) } {
			points = append(points, e.at)
		}
		if len(points) <= cellMax {
			return
		}
		keep := 0
		if h.cell.isRoot() {
			keep = len(points) / 4
		}
		x, ok := carve(points, keep)
		for ; !ok && keep > 0; keep /= 2 {
			x, ok = carve(points, keep/2)
		}
		if !ok || !h.cell.covers(x) || !h.addFence(x, expires) {
			return
		}
		h.upkeep.next = min(h.upkeep.next, now) // for the strays to be told
	}
}

// groupAt is how many fences a cell may have that do not cover each other.
const groupAt = 48

// group makes a cell that covers about half of the fences if there are too many.
// Their cells then report to that one.
func (h *holding) group(expires grid.Time) {
	if len(h.fences) <= groupAt {
		return
	}
	var points []position
	var outer prefix
	for i := range h.fences {
		if f := h.fences[i].prefix; i == 0 || !outer.covers(f) {
			outer = f
			points = append(points, f.bits)
		}
	}
	if len(points) <= groupAt {
		return
	}
	if x, ok := carve(points, 0); ok && h.cell.covers(x) {
		h.addFence(x, expires)
	}
}

// carve returns the prefix that about half of the points begin with. With keep > 0
// it is one that none of the first and last keep points begin with: most queries
// ask for the lowest or the highest values, and find them in the root if it keeps
// them. It reports false if there is no prefix that at least an eighth begin with.
func carve(points []position, keep int) (best prefix, ok bool) {
	n := len(points)
	score := n // distance of the count from half of the points, twice
	var walk func(low, high int)
	walk = func(low, high int) {
		shared := common(points[low], points[high-1])
		if high-low < 2 || shared >= 128 {
			return
		}
		middle := low // the first point with a one behind what they share
		for one := prefixOf(points[high-1], shared+1).bits; points[middle].less(one); {
			middle++
		}
		for _, half := range [2][2]int{{low, middle}, {middle, high}} {
			count := half[1] - half[0]
			if s := abs(2*count - n); half[0] >= keep && half[1] <= n-keep && 8*count >= n && s < score {
				best, ok, score = prefixOf(points[half[0]], shared+1), true, s
			}
			if 8*count >= n {
				walk(half[0], half[1])
			}
		}
	}
	walk(0, n)
	return best, ok
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
