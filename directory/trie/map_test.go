package trie

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
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

func TestMapIsBounded(t *testing.T) {
	m := NewMap()
	for i := range 3 * mapMax {
		m.Add(PrefixOf(Position{uint64(i) << 40, 0}, 64))
		if len(m.cells) > mapMax {
			t.Fatalf("%d cells", len(m.cells))
		}
	}
}
