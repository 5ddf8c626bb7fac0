package directory

import (
	"slices"

	"gridnode/grid"
)

// leaves is what a site remembers of the cells of one attribute. It only guides: a
// cell that is missing is told by the one that covers it, one that is gone is found
// out by asking there.
type leaves struct {
	list  []leaf    // ordered by prefix; never empty, list[0] is the root
	until grid.Time // all but the root is forgotten then
	lost  int       // cells that were forgotten last
}

// leaf is one cell.
type leaf struct {
	prefix
	above  prefix // the longest one in the list that covers it; the root's is itself
	digest uint64 // of the fences that its holders last told
}

// leavesMax bounds the cells remembered per attribute. Whoever walks through a
// larger directory finds its way from the root anew each time they are dropped.
const leavesMax = 4096

// find returns the longest known cell that contains a position. Those in except,
// which may not include the root, are passed over.
func (l *leaves) find(at position, except []prefix) *leaf {
	i, _ := slices.BinarySearchFunc(l.list, at, func(f leaf, at position) int {
		if at.less(f.bits) {
			return 1
		}
		return -1
	})
	f := &l.list[i-1]
	for !f.contains(at) || slices.Contains(except, f.prefix) {
		f = l.get(f.above)
	}
	return f
}

// get returns the leaf of a cell, or nil.
func (l *leaves) get(x prefix) *leaf {
	if i, ok := l.seek(x); ok {
		return &l.list[i]
	}
	return nil
}

func (l *leaves) seek(x prefix) (int, bool) {
	return slices.BinarySearchFunc(l.list, x, func(f leaf, x prefix) int { return f.prefix.compare(x) })
}

// branches reports whether a cell below the root is known, or was before they were
// forgotten.
func (l *leaves) branches() bool { return l.size() > 1 }

// add remembers a cell.
func (l *leaves) add(x prefix) {
	i, known := l.seek(x)
	if known {
		return
	}
	if len(l.list) >= leavesMax {
		l.reset()
		i = 1
	}
	above := l.list[i-1].prefix // the list begins with the root
	for !above.covers(x) {
		above = l.get(above).above
	}
	l.list = slices.Insert(l.list, i, leaf{prefix: x, above: above})
	for j := i + 1; j < len(l.list) && x.covers(l.list[j].prefix); j++ {
		if l.list[j].above.length < x.length {
			l.list[j].above = x
		}
	}
}

// forget removes a cell, except the root.
func (l *leaves) forget(x prefix) {
	i, ok := l.seek(x)
	if !ok || x.length == 0 {
		return
	}
	above := l.list[i].above
	l.list = slices.Delete(l.list, i, i+1)
	for ; i < len(l.list) && x.covers(l.list[i].prefix); i++ {
		if l.list[i].above == x {
			l.list[i].above = above
		}
	}
}

// learn takes over what a holder of the cell x told of its fences.
func (l *leaves) learn(x prefix, fences []prefix) {
	for _, f := range fences {
		if x.covers(f) {
			l.add(f)
		}
	}
	if f := l.get(x); f != nil {
		f.digest = digestOf(fences)
	}
}

// size returns how many cells are known, or were before they were forgotten last.
func (l *leaves) size() int { return max(len(l.list), l.lost) }

// reset forgets all but the root.
func (l *leaves) reset() {
	l.lost = len(l.list)
	if len(l.list) == 0 {
		l.list = make([]leaf, 1, 4)
	}
	l.list = l.list[:1]
	l.list[0] = leaf{}
}

// refresh forgets all but the root if that is due, so that no mistake in the map
// lasts.
func (l *leaves) refresh(now, span grid.Time) {
	if now >= l.until || len(l.list) == 0 {
		l.reset()
		l.until = now + span
	}
}

// next returns the last position behind at, in either direction, before a cell
// begins that the cell x covers; x is the longest one that contains at. Cells in
// except do not count.
func (l *leaves) next(x prefix, at position, descending bool, except []prefix) position {
	if descending {
		edge := x.bits
		i, _ := l.seek(x)
		for i++; i < len(l.list) && x.covers(l.list[i].prefix) && l.list[i].bits.less(at); i++ {
			if f := l.list[i].prefix; !slices.Contains(except, f) && f.end().less(at) && !f.end().less(edge) {
				edge = f.end().next()
			}
		}
		return edge
	}
	i, _ := slices.BinarySearchFunc(l.list, at, func(f leaf, at position) int {
		if at.less(f.bits) {
			return 1
		}
		return -1
	})
	for ; i < len(l.list) && x.covers(l.list[i].prefix); i++ {
		if !slices.Contains(except, l.list[i].prefix) {
			return l.list[i].bits.prev()
		}
	}
	return x.end()
}

// digestOf returns what two sites compare to see whether they know the same
// fences. It is 0 if there are none.
func digestOf(fences []prefix) uint64 {
	h := uint64(0)
	for _, f := range fences {
		h = digestWith(h, f)
	}
	return h
}

// digestWith returns the digest of one fence more.
func digestWith(h uint64, f prefix) uint64 {
	h = (h ^ f.bits.hi) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ f.bits.lo) * 0xbf58476d1ce4e5b9
	return (h ^ h>>32 ^ uint64(f.length)) * 0x94d049bb133111eb
}
