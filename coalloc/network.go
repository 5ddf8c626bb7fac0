package coalloc

import (
	"errors"
	"fmt"

	"gridnode/grid"
)

// Network tells what messages take between sites of a View, by index. Within a site
// both indices are the same. Latencies are at least a microsecond, at most
// LatencyMax; bandwidths are bytes a second, at least 1. Of an index beyond its sites,
// one that has joined the View since, nothing is known: LatencyMax and a byte a second.
type Network interface {
	Latency(a, b int) grid.Time
	Bandwidth(a, b int) int64
}

// LatencyMax bounds every latency: what is longer, or not known, counts as it.
const LatencyMax = 10 * grid.Second

// BandwidthMax bounds every bandwidth, in bytes a second.
const BandwidthMax = 1 << 50

// Matrix is a Network of few sites: what was measured between each two. Pairs about
// which nothing is known have LatencyMax and a byte a second.
type Matrix struct {
	n         int
	latency   []grid.Time
	bandwidth []int64
}

// MatrixMax bounds the sites of a Matrix: larger federations use coordinates.
const MatrixMax = 512

// NewMatrix returns a matrix of n sites, at most MatrixMax, that knows nothing.
func NewMatrix(n int) *Matrix {
	if n < 0 || n > MatrixMax {
		panic(fmt.Sprintf("coalloc: matrix of %d sites", n))
	}
	m := &Matrix{n, make([]grid.Time, n*n), make([]int64, n*n)}
	for i := range m.latency {
		m.latency[i], m.bandwidth[i] = LatencyMax, 1
	}
	return m
}

// Latency implements Network.
func (m *Matrix) Latency(a, b int) grid.Time {
	if max(a, b) >= m.n {
		return LatencyMax
	}
	return m.latency[a*m.n+b]
}

// Bandwidth implements Network.
func (m *Matrix) Bandwidth(a, b int) int64 {
	if max(a, b) >= m.n {
		return 1
	}
	return m.bandwidth[a*m.n+b]
}

// Len returns the number of sites.
func (m *Matrix) Len() int { return m.n }

// ErrAbsurd is wrapped by every error about a measurement that cannot be true. The
// caller leaves it out and may say who reported it.
var ErrAbsurd = errors.New("absurd measurement")

// Set notes what was measured between two sites, in both directions. A bandwidth of
// 0 leaves what was known. The error wraps ErrAbsurd; nothing is changed then.
func (m *Matrix) Set(a, b int, latency grid.Time, bandwidth int64) error {
	switch {
	case a < 0 || a >= m.n || b < 0 || b >= m.n:
		return fmt.Errorf("%w: between sites %d and %d of %d", ErrAbsurd, a, b, m.n)
	case latency < 1 || latency > LatencyMax:
		return fmt.Errorf("%w: latency of %d µs, want 1 µs to %v", ErrAbsurd, int64(latency), LatencyMax)
	case bandwidth < 0 || bandwidth > BandwidthMax:
		return fmt.Errorf("%w: bandwidth of %d bytes a second, want at most %d", ErrAbsurd, bandwidth, int64(BandwidthMax))
	}
	m.latency[a*m.n+b], m.latency[b*m.n+a] = latency, latency
	if bandwidth > 0 {
		m.bandwidth[a*m.n+b], m.bandwidth[b*m.n+a] = bandwidth, bandwidth
	}
	return nil
}

// Believable bounds a latency that somebody reports between two other sites by what
// this site has measured to both: a detour over this site is no shorter than the
// direct way, |toA − toB| ≤ latency ≤ toA + toB, with a tolerance of half, as real
// networks route badly. It returns the nearest believable value, and an error
// wrapping ErrAbsurd if that is another one.
func Believable(reported, toA, toB grid.Time) (grid.Time, error) {
	low, high := max(toA-toB, toB-toA), toA+toB
	low, high = max(low-low/2, 1), min(high+high/2, LatencyMax)
	if bounded := min(max(reported, low), high); bounded != reported {
		return bounded, fmt.Errorf("%w: %v reported, but %v and %v measured from here allow %v to %v", ErrAbsurd, reported, toA, toB, low, high)
	}
	return reported, nil
}
