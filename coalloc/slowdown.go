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

// Penalty says how much longer communication takes over several sites than within one:
// by Extra over so many Sites, if the slowest way between two of them takes so much
// longer than one within a site. The zero Penalty is none.
//
// Processes of an iterative application wait for each other in every step, so the slowest
// way counts: the time grows in proportion to its latency beyond that within a site, and
// with the square root of the number of further sites.
type Penalty struct {
	Extra   int64     // millionths, 0 to PenaltyMax
	Latency grid.Time // at least 1 if there is an Extra
	Sites   int       // at least 2 if there is an Extra
	Least   grid.Time // shorter ways count as this long
}

// PenaltyMax bounds a penalty: a thousand times as long.
const PenaltyMax = 1_000_000_000

// Of estimates by how many millionths communication takes longer on parts than within
// one site: 0 for parts at one site, at most PenaltyMax.
func (p *Penalty) Of(parts []Part, network Network) int64 {
	clusters := Clusters(parts)
	if clusters < 2 || network == nil || p.Extra == 0 {
		return 0
	}
	const scale = 1_000_000 // of the root
	root := sqrt(uint64(clusters-1) * scale * scale / uint64(p.Sites-1))
	way := max(farthest(parts, network), p.Least)
	hi, lo := bits.Mul64(uint64(way)*uint64(p.Extra)/uint64(p.Latency), root) // below 2^54 · 2^23
	extra, _ := bits.Div64(hi, lo, scale)
	return int64(min(extra, PenaltyMax))
}

// farthest returns the latency of the slowest way between two parts, beyond that within a site.
func farthest(parts []Part, network Network) (way grid.Time) {
	for i := range parts {
		for j := range i {
			way = max(way, beyond(network, int(parts[i].Site), int(parts[j].Site)))
		}
	}
	return way
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

// Slowdown estimates how much longer a job runs on parts than within one site, in
// thousandths of its time there: 0 if it does not, or if nobody knows. Of an application
// that the site has seen both ways it is what was seen. Else it follows from the CCR:
// "when the application runs on co-allocated clusters, the communication part is
// multiplied by a specific factor" (section VI-C); that part is CCR/(1 + CCR) of the time
// within one site. An unknown CCR (negative) counts as CCRAssumed.
func (v *View) Slowdown(r *Request, parts []Part) int64 {
	penalty := v.Penalty
	if v.Experience != nil {
		if seen, known := v.Experience.of(r.Application); known {
			return seen.Of(parts, v.Network) / 1000
		}
		penalty = v.Experience.all
	}
	ccr := r.ccr()
	return penalty.Of(parts, v.Network) * ccr / (1000 + ccr) / 1000
}

// ccr returns the CCR that counts, 0 to CCRMax.
func (r *Request) ccr() int64 {
	if r.CCR < 0 {
		return CCRAssumed
	}
	return min(r.CCR, CCRMax)
}
