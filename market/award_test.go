package market

import (
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// TestHomeOutlivesExecution: when home may run a job again, the executing site has ended it, also
// if both clocks are a thousandth off, one each way, and it took half of EndGrace to die.
func TestHomeOutlivesExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := grid.Time(rapid.Int64Range(0, int64(10*grid.Day)).Draw(t, "start"))
		limit := grid.Time(rapid.Int64Range(1, int64(100*grid.Day)).Draw(t, "limit"))
		slow, fast := 1-0.001, 1+0.001
		there := float64(untilThere(start, limit)) / slow // true time, as its clock is slow
		home := float64(untilHome(0, start, limit)) / fast
		if dead := there + float64(EndGrace/2); home < dead {
			t.Fatalf("home runs it again %v before it is dead", grid.Time(dead-home))
		}
	})
}
