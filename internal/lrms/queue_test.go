package lrms

import (
	"testing"

	"gridnode/grid"

	"pgregory.net/rapid"
)

func TestWidthClasses(t *testing.T) {
	class := 0
	for p := int64(1); p <= 1<<12; p++ {
		if k := width(p); k != class {
			if k <= class || narrowest(k) != p {
				t.Fatalf("%d processors are in class %d after %d, whose narrowest is %d", p, k, class, narrowest(k))
			}
			class = k
		}
	}
	if k := width(ProcessorsMax); k != widthsMax-1 {
		t.Errorf("the widest class is %d, want %d", k, widthsMax-1)
	}
}

// The index finds the same job as a walk, in queues of several levels, with holes.
func TestQueueEqualsWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const widest = 40
		q := newQueue(widest)
		var slab []task
		seed := rapid.Uint64().Draw(t, "seed")
		random := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			for range rapid.IntRange(0, 3000).Draw(t, "pushes") {
				if q.full() {
					q.compact(slab)
				}
				e := waiter{grid.Time(1 + random(500)), int32(1 + random(widest)), int32(len(slab))}
				slab = append(slab, task{link: q.push(e)})
			}
			for range rapid.IntRange(0, 3000).Draw(t, "removals") {
				if q.size > 0 {
					at := q.head
					for range random(len(q.entries)) {
						at++
					}
					for at >= len(q.entries) || q.entries[at].processors == 0 {
						at = (at + 1) % len(q.entries)
					}
					q.remove(at)
				}
			}
			checkIndex(t, &q, slab)
			for range 20 {
				var w window
				w.widths = rapid.IntRange(0, width(widest)+1).Draw(t, "widths")
				reach := grid.Time(rapid.Int64Range(0, 6).Draw(t, "reach"))
				for k := w.widths - 1; k >= 0; k-- {
					w.reach[k] = reach
					reach *= grid.Time(rapid.Int64Range(1, 2).Draw(t, "more"))
				}
				at := rapid.IntRange(0, len(q.entries)).Draw(t, "at")
				want := -1
				for i := at; i < len(q.entries); i++ {
					e := q.entries[i]
					if e.processors > 0 && width(int64(e.processors)) < w.widths && e.estimate <= w.reach[width(int64(e.processors))] {
						want = i
						break
					}
				}
				if got := q.next(at, &w); got != want {
					t.Fatalf("next from %d of %d is %d, a walk finds %d", at, len(q.entries), got, want)
				}
			}
		}
	})
}

// checkIndex compares every cell of the index with the jobs below it.
func checkIndex(t *rapid.T, q *queue, slab []task) {
	size, parked := 0, 0
	for at, e := range q.entries {
		if e.processors == 0 {
			continue
		}
		if e.processors < 0 {
			parked++
		} else if size++; size == 1 && q.head != at {
			t.Fatalf("head at %d, want %d", q.head, at)
		}
		if int(slab[e.task].link) != at {
			t.Fatalf("job at %d believes it is at %d", at, slab[e.task].link)
		}
	}
	if size != q.size || parked != q.parked {
		t.Fatalf("%d jobs in the queue and %d parked, counted as %d and %d", size, parked, q.size, q.parked)
	}
	for i, level := range q.levels {
		span := blockSize << (fanShift * i)
		want := make([]grid.Time, len(level))
		for cell := range want {
			want[cell] = grid.Never
		}
		for at, e := range q.entries {
			if e.processors > 0 {
				cell := at/span*q.widths + width(int64(e.processors))
				want[cell] = min(want[cell], e.estimate)
			}
		}
		for cell := range want {
			if level[cell] != want[cell] {
				t.Fatalf("level %d node %d class %d: shortest %d, index says %d", i, cell/q.widths, cell%q.widths, int64(want[cell]), int64(level[cell]))
			}
		}
	}
}
