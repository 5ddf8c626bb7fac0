package measure

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"gridnode/grid"
)

// Sum is a 128-bit sum of products of non-negative integers: weighted times of
// years of jobs on big machines do not fit 64 bits.
type Sum struct{ hi, lo uint64 }

// Add adds a·b; negative factors count as 0.
func (s *Sum) Add(a, b int64) {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	s.plus(Sum{hi, lo})
}

// plus adds another sum.
func (s *Sum) plus(t Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, t.lo, 0)
	s.hi, carry = bits.Add64(s.hi, t.hi, carry)
	if carry != 0 {
		s.hi, s.lo = math.MaxUint64, math.MaxUint64
	}
}

// minus returns s-t, which must not be negative.
func (s Sum) minus(t Sum) Sum {
	lo, borrow := bits.Sub64(s.lo, t.lo, 0)
	hi, _ := bits.Sub64(s.hi, t.hi, borrow)
	return Sum{hi, lo}
}

// Scaled adds weight·v, where weight is a sum itself; it saturates.
func (s *Sum) Scaled(weight Sum, v int64) {
	if v <= 0 {
		return
	}
	over, hi := bits.Mul64(weight.hi, uint64(v))
	carry, lo := bits.Mul64(weight.lo, uint64(v))
	hi, c := bits.Add64(hi, carry, 0)
	if over != 0 || c != 0 {
		hi, lo = math.MaxUint64, math.MaxUint64
	}
	s.plus(Sum{hi, lo})
}

func (s Sum) big() *big.Int {
	v := new(big.Int).SetUint64(s.hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(s.lo))
}

// Over returns scale·s/d rounded to the nearest integer, halves up, and 0 if d is 0.
func (s Sum) Over(d Sum, scale int64) int64 {
	den := d.big()
	if den.Sign() == 0 {
		return 0
	}
	num := s.big()
	num.Mul(num, big.NewInt(2*scale)).Add(num, den)
	num.Quo(num, den.Lsh(den, 1))
	if !num.IsInt64() {
		return math.MaxInt64
	}
	return num.Int64()
}

// SumOf returns the sum that is n, or 0 if that is negative.
func SumOf(n int64) Sum { return Sum{0, uint64(max(n, 0))} }

// Decimal is a number with two decimals, in hundredths, so that it prints the same
// on every machine. What it measures stands where it is used.
type Decimal int64

// Float returns d as a number, for plots and comparisons.
func (d Decimal) Float() float64 { return float64(d) / 100 }

// String prints two decimals, or none if both are zero.
func (d Decimal) String() string {
	if d%100 == 0 {
		return strconv.FormatInt(int64(d/100), 10)
	}
	return Fixed(int64(d), 2)
}

// MarshalJSON implements json.Marshaler: a number.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// Ratio is a number with four decimals, in ten-thousandths.
type Ratio int64

// Float returns r as a number, for plots and comparisons.
func (r Ratio) Float() float64 { return float64(r) / 10_000 }

// String prints four decimals.
func (r Ratio) String() string { return Fixed(int64(r), 4) }

// MarshalJSON implements json.Marshaler: a number.
func (r Ratio) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// Amount is credits that marshal as a number of credits.
type Amount grid.Credits

// String prints credits with the decimals they need.
func (a Amount) String() string { return grid.Credits(a).String() }

// MarshalJSON implements json.Marshaler: a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// Fixed prints v/10^decimals.
func Fixed(v int64, decimals int) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	digits := strconv.FormatInt(v, 10)
	for len(digits) <= decimals {
		digits = "0" + digits
	}
	point := len(digits) - decimals
	return sign + digits[:point] + "." + digits[point:]
}
