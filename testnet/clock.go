package testnet

import (
	"math/bits"

	"gridnode/grid"
)

// DriftMax bounds the drift of a clock, in millionths. Quartz keeps within 100.
const DriftMax = 100_000

// Clock is how a site's clock runs against true time. The zero value is right.
type Clock struct {
	Offset grid.Time // what it shows at true time 0; not negative
	Drift  int64     // millionths it gains (or, negative, loses); at most DriftMax either way
}

// Local returns what the clock shows at the true instant t, which is not negative.
// It never goes back.
func (c Clock) Local(t grid.Time) grid.Time {
	if c.Drift == 0 {
		return t + c.Offset
	}
	const million = 1_000_000
	whole, rest := int64(t)/million, int64(t)%million
	gained := rest * c.Drift
	if gained < 0 {
		gained -= million - 1 // round down
	}
	return t + c.Offset + grid.Time(whole*c.Drift+gained/million)
}

// True returns the first true instant at which the clock shows local or later:
// the inverse of Local. It is 0 for what is past at true time 0, and grid.Never
// for grid.Never.
func (c Clock) True(local grid.Time) grid.Time {
	switch {
	case local == grid.Never:
		return grid.Never
	case local <= c.Offset:
		return 0
	case c.Drift == 0:
		return local - c.Offset
	}
	// The least t with t·rate/10⁶ ≥ local-Offset, as Local rounds down.
	rate := uint64(1_000_000 + c.Drift)
	hi, lo := bits.Mul64(uint64(local-c.Offset), 1_000_000)
	lo, carry := bits.Add64(lo, rate-1, 0)
	hi += carry
	if hi >= rate {
		return grid.Never
	}
	t, _ := bits.Div64(hi, lo, rate)
	if t > uint64(grid.SpanMax)*256 {
		return grid.Never
	}
	return grid.Time(t)
}
