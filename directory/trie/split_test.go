package trie

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// A tenth or more of the points are in the prefix, and not all; with keep, neither
// the first nor the last ones.
func TestCarve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<20), rapid.Just(int64(5_000_000)))
		seen := map[Position]bool{}
		for len(seen) < 65 {
			seen[PositionOf(value.Draw(t, "value"), rapid.Uint64().Draw(t, "spread"))] = true
		}
		var points []Position
		for p := range seen {
			points = append(points, p)
		}
		slices.SortFunc(points, Position.Compare)
		inside := func(x Prefix) (n int) {
			for _, p := range points {
				if x.Contains(p) {
					n++
				}
			}
			return n
		}
		x, ok := carve(points, 0)
		if n := inside(x); !ok || n < len(points)/4 || n > len(points)*3/4 {
			t.Fatalf("%v has %d of %d points", x, n, len(points))
		}
		if x, ok := carve(points, 16); ok {
			if inside(x) < len(points)/8 {
				t.Fatalf("%v has %d of %d points", x, inside(x), len(points))
			}
			for i, p := range points {
				if x.Contains(p) && (i < 16 || i >= len(points)-16) {
					t.Fatalf("%v has the point %d of %d", x, i, len(points))
				}
			}
		}
	})
}

// drawPoints returns n points in order, many of the same value.
func drawPoints(t *rapid.T, n int) (points []Position) {
	value := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<20))
	for len(points) < n {
		p := PositionOf(value.Draw(t, "value"), rapid.Uint64().Draw(t, "spread"))
		if i, known := slices.BinarySearchFunc(points, p, Position.Compare); !known {
			points = slices.Insert(points, i, p)
		}
	}
	return points
}

// After a split a cell has room for what is left to it; the root keeps its lowest and
// highest points, and no fence has more than it had.
func TestSplitMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 16
		points := drawPoints(t, rapid.IntRange(1, 120).Draw(t, "points"))
		x := Prefix{}
		if rapid.Bool().Draw(t, "below the root") { // one that contains all of them
			x = PrefixOf(points[0], common(points[0], points[len(points)-1]))
		}
		var f Fences
		split := f.Split(x, slices.Clone(points), most, grid.Hour)
		if split != (f.Len() > 0) || split != (len(points) > x.Room(most)) {
			t.Fatalf("%d points: split %v, %d fences", len(points), split, f.Len())
		}
		outside, left := f.Sieve(), 0
		for _, p := range points {
			if outside.Passes(p) {
				left++
			}
		}
		if left > x.Room(most) || len(points) > most && left < most/8 {
			t.Fatalf("%d of %d points are left to %v, which has room for %d", left, len(points), x, x.Room(most))
		}
		for o := range f.Outer {
			if !x.Covers(o.Prefix) || o.Expires != grid.Hour {
				t.Fatalf("%v has the fence %v until %v", x, o.Prefix, o.Expires)
			}
			for _, p := range []Position{points[0], points[len(points)-1]} {
				if x.IsRoot() && len(points) <= 48 && o.Contains(p) {
					t.Fatalf("the root does not keep its outermost point %v, but %v has it", p, o.Prefix)
				}
			}
		}
	})
}

// However many cells there are, no more than a few do not cover each other.
func TestGroup(t *testing.T) {
	var f Fences
	for i := range 3 * groupAt {
		f.Add(PrefixOf(Position{Hi: uint64(i) << 50}, 14), grid.Hour)
		f.Group(Prefix{}, grid.Hour)
		outer := 0
		for range f.Outer {
			outer++
		}
		if outer > groupAt {
			t.Fatalf("%d outer fences after %d were added", outer, i+1)
		}
	}
	if f.Len() > FencesMax {
		t.Errorf("%d fences", f.Len())
	}
}

// "The root keeps half as many quotes again."
func TestRoom(t *testing.T) {
	if got := (Prefix{}).Room(64); got != 96 {
		t.Errorf("the root keeps %d quotes where others keep 64", got)
	}
	if got := PrefixOf(First(), 1).Room(64); got != 64 {
		t.Errorf("a cell keeps %d quotes", got)
	}
}
