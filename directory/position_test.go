package directory

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

func drawPosition(t *rapid.T, label string) position {
	// Few distinct bits, so that prefixes meet.
	return position{rapid.Uint64Range(0, 15).Draw(t, label) << 60, rapid.Uint64Range(0, 3).Draw(t, label+" low") << 62}
}

func drawPrefix(t *rapid.T, label string) prefix {
	return prefixOf(drawPosition(t, label), uint8(rapid.IntRange(0, 66).Draw(t, label+" length")))
}

func TestPositionsKeepTheOrder(t *testing.T) {
	value := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, valueMax), rapid.Just(int64(grid.CreditsMax)), rapid.Just(int64(grid.RatingMax)))
	rapid.Check(t, func(t *rapid.T) {
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		x, y := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y")
		want := cmp.Or(cmp.Compare(a, b), cmp.Compare(x, y))
		if got := positionOf(a, x).compare(positionOf(b, y)); got != want {
			t.Fatalf("(%d, %x) against (%d, %x): %d, want %d", a, x, b, y, got, want)
		}
		if got := positionOf(a, x).less(positionOf(b, y)); got != (want < 0) {
			t.Fatalf("(%d, %x) less than (%d, %x): %v", a, x, b, y, got)
		}
	})
}

func TestNextAndPrevAreNeighbours(t *testing.T) {
	for _, p := range []position{{}, {0, ^uint64(0)}, {7, 0}, {1, 2}} {
		if n := p.next(); !p.less(n) || n.prev() != p {
			t.Errorf("%v.next() = %v", p, n)
		}
	}
}

func TestPrefixesAgainstText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, p := drawPrefix(t, "x"), drawPrefix(t, "y"), drawPosition(t, "p")
		text := prefixOf(p, 128).String()
		begins := func(s, with string) bool { return len(s) >= len(with) && s[:len(with)] == with }
		if got, want := x.contains(p), begins(text, x.String()); got != want {
			t.Fatalf("%v contains %v: %v", x, text, got)
		}
		if got, want := x.covers(y), x.length < y.length && begins(y.String(), x.String()); got != want {
			t.Fatalf("%v covers %v: %v", x, y, got)
		}
		if end := x.end(); !x.contains(end) || end != last && x.contains(end.next()) {
			t.Fatalf("%v ends at %v", x, end)
		}
		n := 0
		for n < 128 && text[n] == prefixOf(y.bits, 128).String()[n] {
			n++
		}
		if got := common(p, y.bits); int(got) != n {
			t.Fatalf("%v and %v have %d bits in common, want %d", text, y.bits, got, n)
		}
	})
}

func TestCellsHaveDifferentKeys(t *testing.T) {
	seen := map[grid.Key]string{}
	for _, federation := range []string{"", "a", "b"} {
		for a := range Attribute(attributes) {
			for _, x := range []prefix{{}, prefixOf(first, 1), prefixOf(first, 2), prefixOf(last, 1), prefixOf(last, 2)} {
				key := cell{a, x}.key(federation)
				if other, ok := seen[key]; ok {
					t.Errorf("%v of %q has the key of %s", cell{a, x}, federation, other)
				}
				seen[key] = cell{a, x}.String()
			}
		}
	}
}

// A tenth or more of the points are in the prefix, and not all; with keep, neither
// the first nor the last ones.
func TestCarve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<20), rapid.Just(int64(5_000_000)))
		seen := map[position]bool{}
		for len(seen) < 65 {
			seen[positionOf(value.Draw(t, "value"), rapid.Uint64().Draw(t, "spread"))] = true
		}
		var points []position
		for p := range seen {
			points = append(points, p)
		}
		slices.SortFunc(points, position.compare)
		inside := func(x prefix) (n int) {
			for _, p := range points {
				if x.contains(p) {
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
				if x.contains(p) && (i < 16 || i >= len(points)-16) {
					t.Fatalf("%v has the point %d of %d", x, i, len(points))
				}
			}
		}
	})
}

func TestLeavesAgainstAllPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l leaves
		l.reset()
		all := []prefix{{}}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			x := drawPrefix(t, "prefix")
			if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
				l.forget(x)
				all = slices.DeleteFunc(all, func(y prefix) bool { return y == x && y.length > 0 })
			} else {
				l.add(x)
				if !slices.Contains(all, x) {
					all = append(all, x)
				}
			}
		}
		if len(l.list) != len(all) {
			t.Fatalf("%d leaves, want %d", len(l.list), len(all))
		}
		var except []prefix
		for _, x := range all {
			if x.length > 0 && rapid.IntRange(0, 3).Draw(t, "except") == 0 {
				except = append(except, x)
			}
		}
		at := drawPosition(t, "at")
		longest := prefix{}
		for _, x := range all {
			if x.contains(at) && x.length > longest.length && !slices.Contains(except, x) {
				longest = x
			}
		}
		if got := l.find(at, except).prefix; got != longest {
			t.Fatalf("find %v: %v, want %v of %v except %v", at, got, longest, all, except)
		}
		up, down := longest.end(), longest.bits
		for _, x := range all {
			if longest.covers(x) && !slices.Contains(except, x) {
				if at.less(x.bits) && x.bits.prev().less(up) {
					up = x.bits.prev()
				}
				if x.end().less(at) && down.less(x.end().next()) {
					down = x.end().next()
				}
			}
		}
		if got := l.next(longest, at, false, except); got != up {
			t.Fatalf("the stretch of %v upwards from %v ends at %v, want %v; all %v except %v", longest, at, got, up, all, except)
		}
		if got := l.next(longest, at, true, except); got != down {
			t.Fatalf("the stretch of %v downwards from %v ends at %v, want %v; all %v except %v", longest, at, got, down, all, except)
		}
	})
}

func TestLeavesAreBounded(t *testing.T) {
	var l leaves
	l.reset()
	for i := range 3 * leavesMax {
		l.add(prefixOf(position{uint64(i) << 40, 0}, 64))
		if len(l.list) > leavesMax {
			t.Fatalf("%d leaves", len(l.list))
		}
	}
}
