package market

import (
	"testing"

	"pgregory.net/rapid"

	"gridnode/internal/grid"
)

// TestTimers compares the heap with a list that is searched.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts timers
		all := make([]timer, 8)
		order := map[int]int{} // when each was set
		at := map[int]grid.Time{}
		clock := 0
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "timer")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				when := grid.Time(rapid.IntRange(0, 5).Draw(t, "at"))
				ts.set(&all[i], when)
				clock++
				order[i], at[i] = clock, when
			case 1:
				ts.stop(&all[i])
				delete(at, i)
			case 2:
				now := grid.Time(rapid.IntRange(0, 5).Draw(t, "now"))
				want := -1
				for j, when := range at {
					if when <= now && (want < 0 || when < at[want] || when == at[want] && order[j] < order[want]) {
						want = j
					}
				}
				got := ts.pop(now)
				if want < 0 && got != nil || want >= 0 && got != &all[want] {
					t.Fatalf("popped %v at %v, want timer %d of %v", got, now, want, at)
				}
				if want >= 0 {
					delete(at, want)
				}
			}
			next := grid.Never
			for _, when := range at {
				next = min(next, when)
			}
			if ts.next() != next || len(ts.heap) != len(at) {
				t.Fatalf("next %v of %d, want %v of %d", ts.next(), len(ts.heap), next, len(at))
			}
		}
	})
}

func TestTimerForNeverIsStopped(t *testing.T) {
	var ts timers
	var one timer
	ts.set(&one, 5)
	ts.set(&one, grid.Never)
	if len(ts.heap) != 0 {
		t.Error("a timer for never is still set")
	}
}
