package trie

import (
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

const lifetime = 10 * grid.Minute

// The life of a cell of at most 64 quotes, as one of its holders sees it.
func TestLife(t *testing.T) {
	few := Census{Quotes: 8, Max: 64, Leaf: true, Mature: true}
	with := func(change func(c *Census)) Census {
		c := few
		change(&c)
		return c
	}
	safe := with(func(c *Census) { c.Safe = true })
	for _, tt := range []struct {
		name string
		from Life
		at   grid.Time
		c    Census
		want Stage
	}{
		{"few quotes", Life{}, 0, few, Sparse},
		{"a quote more", Life{}, 0, with(func(c *Census) { c.Quotes = 9 }), Stays},
		{"the root, or with cells below", Life{}, 0, with(func(c *Census) { c.Leaf = false }), Stays},
		{"perhaps not all of its quotes", Life{}, 0, with(func(c *Census) { c.Mature = false }), Stays},
		{"few for less than a lifetime", Life{Sparse, 0}, lifetime - 1, few, Sparse},
		{"few for a lifetime", Life{Sparse, 0}, lifetime, few, Closing},
		{"more again", Life{Sparse, 0}, lifetime, with(func(c *Census) { c.Quotes = 9 }), Stays},
		{"not all have a second copy", Life{Closing, 0}, lifetime, few, Closing},
		{"all have one", Life{Closing, 0}, lifetime, safe, Leaving},
		{"more, but not too many", Life{Closing, 0}, lifetime, with(func(c *Census) { c.Quotes = 16 }), Closing},
		{"too many", Life{Closing, 0}, lifetime, with(func(c *Census) { c.Quotes = 17 }), Stays},
		{"a cell below", Life{Closing, 0}, lifetime, with(func(c *Census) { c.Leaf = false }), Stays},
		{"leaving, and not believed alone", Life{Leaving, 0}, lifetime, with(func(c *Census) { c.Mature = false }), Leaving},
		{"too many, though leaving", Life{Leaving, 0}, lifetime, with(func(c *Census) { c.Quotes = 17 }), Stays},
		{"leaving for less than two lifetimes", Life{Leaving, 0}, 2*lifetime - 1, safe, Leaving},
		{"for two", Life{Leaving, 0}, 2 * lifetime, safe, Closed},
		{"closed, and too many", Life{Leaving, 0}, 2 * lifetime, with(func(c *Census) { c.Quotes = 17 }), Stays},
	} {
		l := tt.from
		l.Reconsider(tt.at, lifetime, tt.c)
		if got := l.Stage(tt.at, lifetime); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for stage := Stays; stage <= Leaving; stage++ {
		l := Life{stage, 0}
		if l.Published(true); l.stage != stage {
			t.Errorf("a quote with a second copy makes %v to %v", stage, l.stage)
		}
		if l.Published(false); l.stage != stage && stage != Leaving || stage == Leaving && l.stage != Stays {
			t.Errorf("a quote without a second copy makes %v to %v", stage, l.stage)
		}
	}
}

// Whatever comes, a cell that is leaving has had few quotes, each with a second copy, and
// a whole lifetime lies between Sparse and Closing, two between Leaving and Closed.
func TestLifeTakesItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Life
		now := grid.Time(0)
		var began [Closed + 1]grid.Time
		stage := Stays
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			now += grid.Time(rapid.Int64Range(1, int64(lifetime)/2).Draw(t, "passes"))
			c := Census{Quotes: rapid.IntRange(0, 20).Draw(t, "quotes"), Max: 64}
			c.Safe, c.Leaf, c.Mature = rapid.Bool().Draw(t, "safe"), rapid.IntRange(0, 9).Draw(t, "leaf") > 0, rapid.IntRange(0, 9).Draw(t, "mature") > 0
			safe := rapid.IntRange(0, 9).Draw(t, "safe quote") > 0
			l.Published(safe)
			l.Reconsider(now, lifetime, c)
			next := l.Stage(now, lifetime)
			if next == stage {
				continue
			}
			began[next] = now
			switch {
			case next == Sparse && (c.Quotes > 8 || !c.Mature || !c.Leaf),
				next == Closing && (stage != Sparse || now-began[Sparse] < lifetime),
				next == Leaving && (stage != Closing || !c.Safe),
				next == Closed && (stage != Leaving || now-began[Leaving] < 2*lifetime):
				t.Fatalf("from %v to %v after %v with %+v", stage, next, now-began[stage], c)
			}
			if l.Leaves() != (next >= Leaving) {
				t.Fatalf("%v leaves: %v", next, l.Leaves())
			}
			stage = next
		}
	})
}
