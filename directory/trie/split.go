package trie

import "gridnode/grid"

// rootShare: the root keeps half as many quotes again as other cells. Most queries are
// for the lowest or the highest values, and find them there; but each of these sites
// publishes to the root's holders, who are busy anyway.
const rootShare = 2

// Room returns how many quotes of its own a cell keeps, if others keep most.
func (x Prefix) Room(most int) int {
	if x.IsRoot() {
		return most + most/rootShare
	}
	return most
}

// Split makes cells of parts of the cell x until it has at most Room(most) points of its
// own, and reports whether it has made any. points are the live quotes that are in no
// fence, in order; Split reorders the slice. The fences that it adds expire at expires.
//
// Several sites hold a cell, and each splits it as it sees fit, without asking the
// others. That does no harm: a cell is named by a prefix, so whoever splits where,
// a quote can only be in cells whose prefixes it begins with, and whoever looks for
// it asks those, from the longest one upwards.
func (f *Fences) Split(x Prefix, points []Position, most int, expires grid.Time) (split bool) {
	for most = x.Room(most); len(points) > most; split = true {
		keep := 0
		if x.IsRoot() {
			keep = len(points) / 4
		}
		part, ok := carve(points, keep)
		for ; !ok && keep > 0; keep /= 2 {
			part, ok = carve(points, keep/2)
		}
		if !ok || !x.Covers(part) || !f.Add(part, expires) {
			return split
		}
		rest := points[:0]
		for _, p := range points {
			if !part.Contains(p) {
				rest = append(rest, p)
			}
		}
		points = rest
	}
	return split
}

// groupAt is how many fences a cell may have that do not cover each other.
const groupAt = 48

// Group makes a cell that covers about half of the outer fences if there are too many.
// Their cells then report to that one, and x has fewer to tell of.
func (f *Fences) Group(x Prefix, expires grid.Time) {
	if len(f.list) <= groupAt {
		return
	}
	var points []Position
	for o := range f.Outer {
		points = append(points, o.Bits)
	}
	if len(points) <= groupAt {
		return
	}
	if part, ok := carve(points, 0); ok && x.Covers(part) {
		f.Add(part, expires)
	}
}

// carve returns the prefix that about half of the points begin with. With keep > 0
// it is one that none of the first and last keep points begin with: most queries
// ask for the lowest or the highest values, and find them in the root if it keeps
// them. It reports false if there is no prefix that at least an eighth begin with.
func carve(points []Position, keep int) (best Prefix, ok bool) {
	n := len(points)
	score := n // distance of the count from half of the points, twice
	var walk func(low, high int)
	walk = func(low, high int) {
		shared := common(points[low], points[high-1])
		if high-low < 2 || shared >= 128 {
			return
		}
		middle := low // the first point with a one behind what they share
		for one := PrefixOf(points[high-1], shared+1).Bits; points[middle].Less(one); {
			middle++
		}
		for _, half := range [2][2]int{{low, middle}, {middle, high}} {
			count := half[1] - half[0]
			if s := abs(2*count - n); half[0] >= keep && half[1] <= n-keep && 8*count >= n && s < score {
				best, ok, score = PrefixOf(points[half[0]], shared+1), true, s
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
