package trie

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

func drawPosition(t *rapid.T, label string) Position {
	// Few distinct bits, so that prefixes meet.
	return Position{rapid.Uint64Range(0, 15).Draw(t, label) << 60, rapid.Uint64Range(0, 3).Draw(t, label+" low") << 62}
}

func drawPrefix(t *rapid.T, label string) Prefix {
	return PrefixOf(drawPosition(t, label), uint8(rapid.IntRange(0, 66).Draw(t, label+" length")))
}

func TestPositionsKeepTheOrder(t *testing.T) {
	value := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, ValueMax), rapid.Just(int64(grid.CreditsMax)), rapid.Just(int64(grid.RatingMax)))
	rapid.Check(t, func(t *rapid.T) {
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		x, y := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y")
		want := cmp.Or(cmp.Compare(a, b), cmp.Compare(x, y))
		if got := PositionOf(a, x).Compare(PositionOf(b, y)); got != want {
			t.Fatalf("(%d, %x) against (%d, %x): %d, want %d", a, x, b, y, got, want)
		}
		if got := PositionOf(a, x).Less(PositionOf(b, y)); got != (want < 0) {
			t.Fatalf("(%d, %x) less than (%d, %x): %v", a, x, b, y, got)
		}
	})
}

// TestWidth: the code of a value has that many bits: it is the same whatever the spread, which follows at once.
func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, ValueMax)).Draw(t, "value")
		least, most := PositionOf(value, 0), PositionOf(value, ^uint64(0))
		if w := least.Width(); most.Width() != w || PrefixOf(least, w) != PrefixOf(most, w) || PrefixOf(least, w+1) == PrefixOf(most, w+1) {
			t.Fatalf("the code of %d has %d bits, and %d: %v, %v", value, w, most.Width(), least, most)
		}
	})
}

func TestNextAndPrevAreNeighbours(t *testing.T) {
	for _, p := range []Position{{}, {0, ^uint64(0)}, {7, 0}, {1, 2}} {
		if n := p.Next(); !p.Less(n) || n.Prev() != p {
			t.Errorf("%v.next() = %v", p, n)
		}
	}
}

func TestPrefixesAgainstText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, p := drawPrefix(t, "x"), drawPrefix(t, "y"), drawPosition(t, "p")
		text := PrefixOf(p, 128).String()
		begins := func(s, with string) bool { return len(s) >= len(with) && s[:len(with)] == with }
		if got, want := x.Contains(p), begins(text, x.String()); got != want {
			t.Fatalf("%v contains %v: %v", x, text, got)
		}
		if got, want := x.Covers(y), x.Length < y.Length && begins(y.String(), x.String()); got != want {
			t.Fatalf("%v covers %v: %v", x, y, got)
		}
		if end := x.End(); !x.Contains(end) || end != Last() && x.Contains(end.Next()) {
			t.Fatalf("%v ends at %v", x, end)
		}
		n := 0
		for n < 128 && text[n] == PrefixOf(y.Bits, 128).String()[n] {
			n++
		}
		if got := common(p, y.Bits); int(got) != n {
			t.Fatalf("%v and %v have %d bits in common, want %d", text, y.Bits, got, n)
		}
	})
}
