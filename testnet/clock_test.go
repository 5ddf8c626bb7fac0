package testnet

import (
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// TestClock: a clock never goes back, keeps its rate, and True is the first instant
// at which it shows what was asked for.
func TestClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Clock{
			Offset: grid.Time(rapid.Int64Range(0, int64(grid.Day)).Draw(t, "offset")),
			Drift:  rapid.Int64Range(-DriftMax, DriftMax).Draw(t, "drift"),
		}
		at := grid.Time(rapid.Int64Range(0, int64(400*grid.Day)).Draw(t, "at"))
		step := grid.Time(rapid.Int64Range(0, int64(grid.Day)).Draw(t, "step"))
		local, later := c.Local(at), c.Local(at+step)
		if gained := int64(later - local - step); gained*million > (c.Drift+1)*int64(step)+million || gained*million < (c.Drift-1)*int64(step)-million || later < local {
			t.Fatalf("in %v the clock went from %v to %v", step, local, later)
		}
		first := c.True(local)
		if first > at || c.Local(first) < local || first > 0 && c.Local(first-1) >= local {
			t.Fatalf("clock shows %v at %v; True says first at %v, when it shows %v", local, at, first, c.Local(first))
		}
	})
	if got := (Clock{Offset: grid.Hour, Drift: 7}).True(grid.Never); got != grid.Never {
		t.Errorf("True(Never) = %v", got)
	}
	if got := (Clock{Offset: grid.Hour}).True(grid.Minute); got != 0 {
		t.Errorf("what was shown before the start: True = %v, want 0", got)
	}
}
