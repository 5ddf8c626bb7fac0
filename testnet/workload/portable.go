package workload

import "math"

// One seed must give one workload on every machine. math.Exp, math.Log and
// math.Pow do not promise that: their last bit depends on the processor (they
// are written in assembly for some, and use fused multiply-add where there is
// one), and the compiler may fuse x*y+z in Go code as well. The functions here
// use only the operations that IEEE 754 rounds exactly, with each product
// rounded by an explicit conversion, which forbids fusing. They are good to about
// two units in the last place.

const (
	ln2     = 0.693147180559945309417232121458
	ln2High = 0x1.62e42feep-1 // the leading 32 bits, so that k*ln2High is exact
	ln2Low  = ln2 - ln2High
)

// inverseFactorials are 1/0! to 1/13!; a Taylor series of this length is exact to
// the last place for arguments up to ln(2)/2.
var inverseFactorials = func() (c [14]float64) {
	factorial := 1.0
	for i := range c {
		if i > 0 {
			factorial *= float64(i)
		}
		c[i] = 1 / factorial
	}
	return c
}()

// exp returns e^x for x between -700 and 700.
func exp(x float64) float64 {
	k := math.Floor(float64(x/ln2) + 0.5)
	r := x - float64(k*ln2High)
	r -= float64(k * ln2Low)
	sum := inverseFactorials[13]
	for i := 12; i >= 0; i-- {
		sum = float64(sum*r) + inverseFactorials[i]
	}
	return math.Ldexp(sum, int(k))
}

// log returns the natural logarithm of x, which must be positive and finite.
func log(x float64) float64 {
	m, e := math.Frexp(x) // m in [0.5, 1)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	// ln m = 2 artanh s; |s| is at most 0.172, so twelve terms suffice.
	s := (m - 1) / (m + 1)
	square := float64(s * s)
	sum := 1.0 / 25
	for odd := 23.0; odd >= 1; odd -= 2 {
		sum = float64(sum*square) + 1/odd
	}
	artanh := float64(s * sum)
	return float64(float64(e)*ln2High) + (float64(float64(e)*ln2Low) + 2*artanh)
}

// pow returns x^y for positive x.
func pow(x, y float64) float64 { return exp(float64(y * log(x))) }

// logGamma returns ln Γ(a) for positive a, by Stirling's series.
func logGamma(a float64) float64 {
	product := 1.0 // Γ(a) = Γ(a+n) / (a (a+1) ... (a+n-1))
	for a < 10 {
		product = float64(product * a)
		a++
	}
	square := float64(a * a)
	sum := 1.0 / 1188
	for _, term := range [...]float64{-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		sum = float64(sum/square) + term
	}
	const halfLog2Pi = 0.918938533204672741780329736406
	stirling := float64(float64(a-0.5)*log(a)) - a
	return stirling + halfLog2Pi + float64(sum/a) - log(product)
}
