package coalloc

import (
	"math"
	"math/bits"

	"gridnode/grid"
)

// CCRAssumed is the CCR, in thousandths, of a job about which nothing is known: that
// of the paper's Poisson application, which gains from co-allocation as long as the
// system is not full.
const CCRAssumed = 250

// The paper prints one figure of how communication suffers: in one cluster the Wave
// application (CCR 4) takes 200 s, on the four of DAS-3 without Delft 750 s (figure
// 4), so its communication, 4/5 of the time, takes 4.4375 times as long there. The
// slowest link between those four is 970 µs slower than within a cluster (table II).
const (
	spreadWave   = 3_437_500 // millionths
	latencyWave  = 970       // µs
	clustersWave = 4
	spreadMax    = 1_000_000_000 // millionths: a thousand times
)

// Spread estimates by how many millionths communication takes longer on parts than
// within one site: 0 for parts at one site, at most a thousandfold.
//
// Processes of an iterative application wait for each other in every step, so the
// slowest link counts: the time grows in proportion to its latency beyond that within
// a site, and with the square root of the number of further sites. Scaled to the one
// printed figure, Wave then takes 355 s on two, 534 s on three and 750 s on four
// clusters, averaged over their combinations: it "increases markedly" and evenly, as in
// figures 3 and 4.
func Spread(parts []Part, network Network) int64 {
	clusters := Clusters(parts)
	if clusters < 2 || network == nil {
		return 0
	}
	var slowest grid.Time
	for i := range parts {
		for j := range i {
			slowest = max(slowest, beyond(network, int(parts[i].Site), int(parts[j].Site)))
		}
	}
	const scale = 1_000_000 // of the root
	root := sqrt(uint64(clusters-1) * scale * scale / (clustersWave - 1))
	hi, lo := bits.Mul64(uint64(slowest)*spreadWave/latencyWave, root) // below 2^36 · 2^23
	spread, _ := bits.Div64(hi, lo, scale)
	return int64(min(spread, spreadMax))
}

// beyond returns how much longer a message takes between two sites than within the
// better connected one.
func beyond(network Network, a, b int) grid.Time {
	if a == b {
		return 0
	}
	return max(network.Latency(a, b)-min(network.Latency(a, a), network.Latency(b, b)), 0)
}

// sqrt returns the integer square root: exactly, and so the same on every machine, as
// what floating point is off by is put right.
func sqrt(v uint64) uint64 {
	root := min(uint64(math.Sqrt(float64(v))), math.MaxUint32)
	for root*root > v {
		root--
	}
	for root < math.MaxUint32 && (root+1)*(root+1) <= v {
		root++
	}
	return root
}

// Slowdown estimates how much longer a job of that CCR, in thousandths, runs on parts
// than within one site, in thousandths of its time there: 0 if it does not. An unknown
// CCR (negative) counts as CCRAssumed.
//
// "When the application runs on co-allocated clusters, the communication part is
// multiplied by a specific factor" (section VI-C), here 1 + Spread; that part is
// CCR/(1 + CCR) of the time within one site.
func Slowdown(ccr int64, parts []Part, network Network) int64 {
	if ccr < 0 {
		ccr = CCRAssumed
	}
	ccr = min(ccr, CCRMax)
	return Spread(parts, network) * ccr / (1000 + ccr) / 1000
}
