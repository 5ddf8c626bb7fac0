package muscle

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// TestRatiosCompareExactly: as fractions of any size do.
func TestRatiosCompareExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() (ratio, *big.Rat) {
			w := workload{
				jobs: rapid.IntRange(0, JobsMax).Draw(t, "jobs"), sizeSum: rapid.IntRange(0, 1<<30).Draw(t, "sizes"),
				etSum: grid.Time(rapid.Int64Range(0, int64(grid.SpanMax)).Draw(t, "times")), slkSum: grid.Time(rapid.Int64Range(0, int64(grid.SpanMax)).Draw(t, "slacks")),
			}
			m := rapid.IntRange(1, ProcessorsMax).Draw(t, "processors")
			above := new(big.Int).Mul(big.NewInt(int64(w.jobs)), big.NewInt(int64(w.etSum)))
			above.Mul(above, big.NewInt(int64(w.sizeSum)))
			below := new(big.Int).Mul(big.NewInt(int64(max(w.slkSum, 1))), big.NewInt(int64(m)))
			return w.epsilon(Published, m), new(big.Rat).SetFrac(above, below)
		}
		a, x := draw()
		b, y := draw()
		if got, want := a.compare(&b), x.Cmp(y); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", x, y, got, want)
		}
	})
}
