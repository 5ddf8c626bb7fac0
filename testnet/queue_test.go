package testnet

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// TestQueueIsAStableSort: whatever is pushed and popped in between, events come out
// by time, ends of executions before others, and otherwise in order of insertion.
func TestQueueIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			at    grid.Time
			class uint64
			to    int32
		}
		var h eventQueue
		var naive []entry
		for i := range rapid.IntRange(1, 400).Draw(t, "operations") {
			if len(naive) > 0 && rapid.IntRange(0, 2).Draw(t, "operation") == 0 {
				if got, want := h.next(), naive[0].at; got != want {
					t.Fatalf("next is %v, want %v", got, want)
				}
				if _, got := h.pop(); got.to != naive[0].to {
					t.Fatalf("popped event %d, want %d", got.to, naive[0].to)
				}
				naive = naive[1:]
				continue
			}
			// Near and far, at the edges of buckets and of levels, and before what was
			// popped last: the queue does not know the time.
			at := rapid.OneOf(
				rapid.Int64Range(0, 9), rapid.Int64Range(60, 70), rapid.Int64Range(1<<16-2, 1<<16+2),
				rapid.Int64Range(0, 1<<27), rapid.Int64Range(0, int64(grid.Never)-1), rapid.SampledFrom([]int64{1<<26 - 1, 1 << 26, 1<<36 - 1, 1 << 36, 1<<62 - 1}),
			).Draw(t, "at")
			e := entry{grid.Time(at), classOther, int32(i)}
			if rapid.Bool().Draw(t, "end") {
				e.class = classEnd
			}
			h.push(e.at, e.class|uint64(i+1), event{to: e.to})
			naive = append(naive, e)
			slices.SortStableFunc(naive, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.class, b.class)) })
		}
		if h.len() != len(naive) {
			t.Fatalf("%d events left, want %d", h.len(), len(naive))
		}
	})
}
