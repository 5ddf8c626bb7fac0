package trie

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// naive is a list of fences that looks at all of them every time.
type naive []struct {
	Prefix
	expires grid.Time
}

// covered reports whether another fence covers one.
func (n naive) covered(x Prefix) bool {
	for _, y := range n {
		if y.Covers(x) {
			return true
		}
	}
	return false
}

// Fences against a plain list: what is known of a position, a stretch and the expiry is
// what looking at every single one of them shows.
func TestFencesAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fences
		var all naive
		now := grid.Time(0)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			default:
				x := drawPrefix(t, "prefix")
				expires := now + grid.Time(rapid.Int64Range(1, 40).Draw(t, "life"))
				f.Add(x, expires)
				if i := slices.IndexFunc(all, func(y struct {
					Prefix
					expires grid.Time
				}) bool {
					return y.Prefix == x
				}); i >= 0 {
					all[i].expires = max(all[i].expires, expires)
				} else {
					all = append(all, naive{{x, expires}}...)
				}
			case 3:
				now += grid.Time(rapid.Int64Range(0, 20).Draw(t, "passes"))
				lapsed := false
				for _, x := range all {
					lapsed = lapsed || now >= x.expires && !all.covered(x.Prefix)
				}
				if got := f.Lapsed(now); got != lapsed {
					t.Fatalf("at %v lapsed: %v, want %v of %v", now, got, lapsed, all)
				}
				f.Expire(now)
				kept := all[:0]
				for _, x := range all {
					if now < x.expires {
						kept = append(kept, x)
					}
				}
				all = kept
			}
			compare(t, &f, all)
		}
	})
}

// compare compares fences with a list of the same ones.
func compare(t *rapid.T, f *Fences, all naive) {
	var list, outer []Prefix
	for _, x := range all {
		list = append(list, x.Prefix)
		if !all.covered(x.Prefix) {
			outer = append(outer, x.Prefix)
		}
	}
	slices.SortFunc(list, Prefix.Compare)
	slices.SortFunc(outer, Prefix.Compare)
	if got, digest := f.List(); !slices.Equal(got, list) || digest != Digest(list) {
		t.Fatalf("fences %v, want %v", got, list)
	}
	if got := f.Edges(); got != Digest(outer) {
		t.Fatalf("edges %x, want those of %v", got, outer)
	}

	at, skip := drawPosition(t, "at"), drawPrefix(t, "skip")
	to, moved := Prefix{}, false
	for _, x := range list {
		if x.Contains(at) && (skip.IsRoot() || x.Length < skip.Length) && (!moved || x.Length > to.Length) {
			to, moved = x, true
		}
	}
	if gotTo, got := f.Way(at, skip); gotTo != to || got != moved {
		t.Fatalf("the way to %v but for %v is %v, %v, want %v, %v", at, skip, gotTo, got, to, moved)
	}

	below := slices.DeleteFunc(slices.Clone(list), func(x Prefix) bool { return !skip.Covers(x) })
	if got := f.Below(skip); !slices.Equal(got, below) {
		t.Fatalf("below %v are %v, want %v", skip, got, below)
	}

	for _, down := range []bool{false, true} {
		want := slices.DeleteFunc(slices.Clone(list), func(x Prefix) bool { return down && at.Less(x.Bits) || !down && x.End().Less(at) })
		if down {
			slices.Reverse(want)
		}
		var got []Prefix
		for x := range f.Ahead(at, down) {
			got = append(got, x.Prefix)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("ahead of %v, down %v: %v, want %v", at, down, got, want)
		}
	}

	points := []Position{First(), at, drawPosition(t, "point"), drawPosition(t, "point"), Last()}
	slices.SortFunc(points, Position.Compare)
	outside := f.Sieve()
	for _, p := range points {
		if got, want := outside.Passes(p), !slices.ContainsFunc(list, func(x Prefix) bool { return x.Contains(p) }); got != want {
			t.Fatalf("%v is outside of %v: %v", p, list, got)
		}
	}
}

func TestFencesAreBounded(t *testing.T) {
	var f Fences
	for i := range 2 * FencesMax {
		if added := f.Add(PrefixOf(Position{Hi: uint64(i) << 40}, 64), grid.Hour); added != (i < FencesMax) {
			t.Fatalf("fence %d added: %v", i, added)
		}
	}
	if f.Add(PrefixOf(Position{}, 64), grid.Day); f.Get(PrefixOf(Position{}, 64)).Expires != grid.Day {
		t.Error("a fence that is known was not renewed, as there are too many")
	}
}

// A cell has a summary of what is below it only if all outer fences have one.
func TestSummaryOfFences(t *testing.T) {
	var f Fences
	a, b, inner := PrefixOf(First(), 2), PrefixOf(Last(), 2), PrefixOf(Last(), 4)
	for i, x := range []Prefix{a, b, inner} {
		f.Add(x, grid.Hour)
		f.Get(x).Holders = []grid.SiteID{"h"}
		if i < 2 {
			if _, ok := f.Summary(0); ok {
				t.Fatalf("a summary although nothing is known of %v", x)
			}
			f.Get(x).Testify("h", &Summary{Processors: int64(1 + i), Price: grid.Price(7 - i)}, grid.Minute)
		}
	}
	if s, ok := f.Summary(0); !ok || s != (Summary{Processors: 2, Price: 6}) {
		t.Errorf("summary %+v, %v", s, ok)
	}
	if s, ok := f.Summary(grid.Minute); ok {
		t.Errorf("summary %+v when all has expired", s)
	}
	f.Get(b).Vouch(&Summary{Processors: 9})
	f.Get(a).Vouch(&Summary{})
	if s, ok := f.Summary(grid.Minute); !ok || s.Processors != 9 {
		t.Errorf("summary %+v, %v, want what was vouched for", s, ok)
	}
}
