package coalloc

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestSqrt: the root is exact, at the ends of its range and where floating point is not.
func TestSqrt(t *testing.T) {
	check := func(v uint64) {
		if want := new(big.Int).Sqrt(new(big.Int).SetUint64(v)).Uint64(); sqrt(v) != want {
			t.Fatalf("the root of %d is %d, want %d", v, sqrt(v), want)
		}
	}
	for _, v := range []uint64{0, 1, 2, 3, 4, math.MaxUint64, math.MaxUint64 - 1} {
		check(v)
	}
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.Uint64Range(1, math.MaxUint32).Draw(t, "root")
		for v := root*root - 1; v <= root*root+1; v++ {
			check(v)
		}
		check(rapid.Uint64().Draw(t, "v"))
	})
}
