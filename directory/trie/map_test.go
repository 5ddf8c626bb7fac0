package trie

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// A map against the list of all prefixes on it.
func TestMapAgainstAllPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMap()
		all := []Prefix{{}}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			x := drawPrefix(t, "prefix")
			if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
				m.Forget(x)
				all = slices.DeleteFunc(all, func(y Prefix) bool { return y == x && y.Length > 0 })
			} else {
				m.Add(x)
				if !slices.Contains(all, x) {
					all = append(all, x)
				}
			}
		}
		if len(m.cells) != len(all) {
			t.Fatalf("%d cells, want %d", len(m.cells), len(all))
		}
		var except []Prefix
		for _, x := range all {
			if x.Length > 0 && rapid.IntRange(0, 3).Draw(t, "except") == 0 {
				except = append(except, x)
			}
		}
		at := drawPosition(t, "at")
		longest := Prefix{}
		for _, x := range all {
			if x.Contains(at) && x.Length > longest.Length && !slices.Contains(except, x) {
				longest = x
			}
		}
		if got := m.Find(at, except).Prefix; got != longest {
			t.Fatalf("find %v: %v, want %v of %v except %v", at, got, longest, all, except)
		}
		up, down := longest.End(), longest.Bits
		for _, x := range all {
			if longest.Covers(x) && !slices.Contains(except, x) {
				if at.Less(x.Bits) && x.Bits.Prev().Less(up) {
					up = x.Bits.Prev()
				}
				if x.End().Less(at) && down.Less(x.End().Next()) {
					down = x.End().Next()
				}
			}
		}
		if got := m.Edge(longest, at, false, except); got != up {
			t.Fatalf("the stretch of %v upwards from %v ends at %v, want %v; all %v except %v", longest, at, got, up, all, except)
		}
		if got := m.Edge(longest, at, true, except); got != down {
			t.Fatalf("the stretch of %v downwards from %v ends at %v, want %v; all %v except %v", longest, at, got, down, all, except)
		}
	})
}

// TestLearn: what a holder tells is on the map, and which fences it was is known, so that it need not tell again.
func TestLearn(t *testing.T) {
	m := NewMap()
	x := PrefixOf(Position{1 << 63, 0}, 1)
	m.Add(x)
	fences := []Prefix{PrefixOf(Position{1 << 63, 0}, 3), PrefixOf(Position{3 << 62, 0}, 2)}
	m.Learn(x, append(fences, PrefixOf(Position{}, 2))) // the last is not below x
	if len(m.cells) != 4 || m.Get(fences[0]) == nil || m.Get(fences[1]) == nil {
		t.Errorf("on the map are %v", m.cells)
	}
	if m.Learn(x, fences); m.Get(x).Digest != Digest(fences) || Digest(fences) == 0 || Digest(fences) == Digest(fences[:1]) {
		t.Errorf("of %v the digest %x is known, want %x", fences, m.Get(x).Digest, Digest(fences))
	}
}

// TestRefresh: a map is forgotten at the end of each span, and not before.
func TestRefresh(t *testing.T) {
	var m Map
	const span = grid.Hour
	for i, tt := range []struct {
		now grid.Time
		add bool
		has int
	}{{10, true, 1}, {10, false, 2}, {10 + span - 1, false, 2}, {10 + span, true, 1}, {10 + span + 1, false, 2}, {10 + 2*span, false, 1}} {
		if m.Refresh(tt.now, span); len(m.cells) != tt.has {
			t.Errorf("%d: at %v %d cells are known, want %d", i, tt.now, len(m.cells), tt.has)
		}
		if tt.add {
			m.Add(PrefixOf(Position{}, 1))
		}
	}
}

func TestMapIsBounded(t *testing.T) {
	m := NewMap()
	for i := range 3 * mapMax {
		m.Add(PrefixOf(Position{uint64(i) << 40, 0}, 64))
		if len(m.cells) > mapMax {
			t.Fatalf("%d cells", len(m.cells))
		}
	}
}
