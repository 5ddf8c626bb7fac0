package lrms

import (
	"slices"
	"testing"

	"gridnode/grid"

	"pgregory.net/rapid"
)

// naiveGap finds what timeline.search finds, on a sorted list.
func naiveGap(breaks []grid.Time, change map[grid.Time]int64, v, level int64, span, limit grid.Time) grid.Time {
	start, open := grid.Time(0), v >= level
	for _, at := range breaks {
		if open && at >= max(start, limit)+span {
			return start
		}
		v += change[at]
		if v >= level && !open {
			start = at
		}
		open = v >= level
	}
	return start
}

func TestTimelineEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := newTimeline()
		change := map[grid.Time]int64{}
		var breaks []grid.Time
		reach := rapid.Int64Range(1, 4000).Draw(t, "reach")
		add := func(at grid.Time, by int64) {
			line.add(at, by)
			if change[at] += by; change[at] == 0 {
				delete(change, at)
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			// Many changes at once, from one draw: the tree has to get deep.
			seed := rapid.Uint64().Draw(t, "seed")
			for range rapid.IntRange(0, 3000).Draw(t, "changes") {
				seed = seed*6364136223846793005 + 1442695040888963407
				from := 1 + grid.Time(seed>>33)%grid.Time(reach)
				processors := 1 + int64(seed>>20)%5
				add(from, -processors)
				add(from+1+grid.Time(seed>>40)%50, processors)
			}
			for range rapid.IntRange(0, 3000).Draw(t, "drops") {
				if line.first != grid.Never {
					at := line.first
					if by := line.dropFirst(); by != change[at] {
						t.Fatalf("first change at %d is %d, want %d", int64(at), by, change[at])
					}
					delete(change, at)
				}
			}
			breaks = breaks[:0]
			for at := range change {
				breaks = append(breaks, at)
			}
			slices.Sort(breaks)
			line.verify(t, line.root, line.height, line.first, grid.Never)
			if len(breaks) > 0 && line.first != breaks[0] {
				t.Fatalf("first breakpoint %d, want %d", int64(line.first), int64(breaks[0]))
			}
			if used := len(line.leaves) - len(line.leavesFree); used > len(breaks)+1 {
				t.Fatalf("%d leaves for %d breakpoints", used, len(breaks))
			}

			total := int64(0)
			lows := make([]int64, len(breaks))
			for i, at := range breaks {
				total += change[at]
				lows[i] = total
			}
			if line.sum() != total {
				t.Fatalf("sum %d, want %d", line.sum(), total)
			}
			for range 10 {
				v := rapid.Int64Range(0, 30).Draw(t, "v")
				level := rapid.Int64Range(-20, 30).Draw(t, "level")
				want := grid.Never
				if i := slices.IndexFunc(lows, func(low int64) bool { return v+low < level }); i >= 0 {
					want = breaks[i]
				}
				if got := line.fall(v, level); got != want {
					t.Fatalf("%d falls below %d at %d, want %d", v, level, int64(got), int64(want))
				}
				to := grid.Time(rapid.Int64Range(0, reach+60).Draw(t, "to"))
				lowest := v
				for i, at := range breaks {
					if at < to {
						lowest = min(lowest, v+lows[i])
					}
				}
				if got := line.least(v, to); got != lowest {
					t.Fatalf("least before %d is %d, want %d", int64(to), got, lowest)
				}
				level = min(level, v+total) // so that the search ends
				g := gap{level: level, span: grid.Time(rapid.Int64Range(1, 300).Draw(t, "span")), limit: grid.Time(rapid.Int64Range(0, 20).Draw(t, "limit"))}
				g.step(0, v)
				line.search(&g, line.root, line.height)
				if want := naiveGap(breaks, change, v, level, g.span, g.limit); !g.open || g.start != want {
					t.Fatalf("gap of %d for %d starts at %d, want %d", level, int64(g.span), int64(g.start), int64(want))
				}
			}
		}
	})
}

// sum returns the function's final value.
func (t *timeline) sum() int64 { return t.totalsOf(t.root, t.height).sum }
