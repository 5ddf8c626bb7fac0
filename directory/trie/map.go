package trie

import (
	"slices"

	"gridnode/grid"
)

// Map is what a site remembers of the cells of one order. It only guides: a cell that is
// missing is told by the one that covers it, one that is gone is found out by asking
// there. The root is always on it. NewMap makes one.
type Map struct {
	cells []Known   // ordered by prefix; never empty, cells[0] is the root
	until grid.Time // all but the root is forgotten then
	lost  int       // cells that were forgotten last
}

// Known is one cell on a map.
type Known struct {
	Prefix
	above  uint8  // length of the longest one on the map that covers it; the root's is itself
	Digest uint64 // of the fences that its holders told last
}

// Above returns the longest cell on the map that covers this one; the root's is itself.
func (k *Known) Above() Prefix { return PrefixOf(k.Bits, k.above) }

// mapMax bounds the cells on a map. Whoever walks through a larger directory finds its
// way from the root anew each time they are dropped.
const mapMax = 4096

// NewMap returns a map of the root alone. The first Refresh sets when it is forgotten.
func NewMap() Map {
	m := Map{}
	m.Reset()
	return m
}

// Find returns the longest known cell that contains a position. Those in except, which
// may not include the root, are passed over.
func (m *Map) Find(at Position, except []Prefix) *Known {
	i, _ := slices.BinarySearchFunc(m.cells, at, beginsAfter)
	k := &m.cells[i-1]
	for !k.Contains(at) || slices.Contains(except, k.Prefix) {
		k = m.Get(k.Above())
	}
	return k
}

// beginsAfter says, for a binary search, whether a cell begins behind a position.
func beginsAfter(k Known, at Position) int {
	if at.Less(k.Bits) {
		return 1
	}
	return -1
}

// Get returns a cell that is known, or nil. The pointer is good until the map changes.
func (m *Map) Get(x Prefix) *Known {
	if i, ok := m.seek(x); ok {
		return &m.cells[i]
	}
	return nil
}

func (m *Map) seek(x Prefix) (int, bool) {
	return slices.BinarySearchFunc(m.cells, x, func(k Known, x Prefix) int { return k.Prefix.Compare(x) })
}

// Size returns how many cells are known, or were before they were forgotten last.
func (m *Map) Size() int { return max(len(m.cells), m.lost) }

// Branches reports whether a cell below the root is known, or was before they were
// forgotten.
func (m *Map) Branches() bool { return m.Size() > 1 }

// Add remembers a cell. If there are too many already the others are forgotten.
func (m *Map) Add(x Prefix) {
	i, known := m.seek(x)
	if known {
		return
	}
	if len(m.cells) >= mapMax {
		m.Reset()
		i = 1
	}
	above := m.cells[i-1].Prefix // the list begins with the root
	for !above.Covers(x) {
		above = m.Get(above).Above()
	}
	m.cells = grid.AppendOne(m.cells, Known{})
	copy(m.cells[i+1:], m.cells[i:])
	m.cells[i] = Known{Prefix: x, above: above.Length}
	for j := i + 1; j < len(m.cells) && x.Covers(m.cells[j].Prefix); j++ {
		m.cells[j].above = max(m.cells[j].above, x.Length)
	}
}

// Forget removes a cell, except the root.
func (m *Map) Forget(x Prefix) {
	i, ok := m.seek(x)
	if !ok || x.IsRoot() {
		return
	}
	above := m.cells[i].above
	m.cells = slices.Delete(m.cells, i, i+1)
	for ; i < len(m.cells) && x.Covers(m.cells[i].Prefix); i++ {
		if m.cells[i].above == x.Length {
			m.cells[i].above = above
		}
	}
}

// Learn takes over what a holder of the cell x told of its fences.
func (m *Map) Learn(x Prefix, fences []Prefix) {
	for _, f := range fences {
		if x.Covers(f) {
			m.Add(f)
		}
	}
	if k := m.Get(x); k != nil {
		k.Digest = Digest(fences)
	}
}

// Reset forgets all but the root.
func (m *Map) Reset() {
	m.lost = len(m.cells)
	if len(m.cells) == 0 {
		m.cells = make([]Known, 1, 4)
	}
	m.cells = m.cells[:1]
	m.cells[0] = Known{}
}

// Refresh forgets all but the root if that is due, and again after a span, so that no
// mistake on the map lasts.
func (m *Map) Refresh(now, span grid.Time) {
	if now >= m.until || len(m.cells) == 0 {
		m.Reset()
		m.until = now + span
	}
}

// Edge returns the last position behind at, in either direction, before a cell begins
// that the cell x covers; x is the longest one that contains at. Cells in except do not
// count.
func (m *Map) Edge(x Prefix, at Position, descending bool, except []Prefix) Position {
	if descending {
		edge := x.Bits
		i, _ := m.seek(x)
		for i++; i < len(m.cells) && x.Covers(m.cells[i].Prefix) && m.cells[i].Bits.Less(at); i++ {
			if y := m.cells[i].Prefix; !slices.Contains(except, y) && y.End().Less(at) && !y.End().Less(edge) {
				edge = y.End().Next()
			}
		}
		return edge
	}
	i, _ := slices.BinarySearchFunc(m.cells, at, beginsAfter)
	for ; i < len(m.cells) && x.Covers(m.cells[i].Prefix); i++ {
		if !slices.Contains(except, m.cells[i].Prefix) {
			return m.cells[i].Bits.Prev()
		}
	}
	return x.End()
}
