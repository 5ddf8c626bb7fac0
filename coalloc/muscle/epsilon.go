package muscle

import (
	"math/bits"

	"gridnode/grid"
)

// workload is what a cluster was given of a batch (section 4.3).
type workload struct {
	jobs    int       // p_i
	etSum   grid.Time // run times
	sizeSum int       // processors
	slkSum  grid.Time // slacks
}

func (w *workload) add(rule Rule, j Held) {
	w.jobs++
	w.etSum = w.etSum.Add(j.Span)
	w.sizeSum += j.Processors
	w.slkSum = w.slkSum.Add(rule.slack(j))
}

// epsilon returns ε = p · etSum · sizeSum / (slkSum · m) (equation 3), 0 for a cluster
// without jobs. Where no job has slack left the divisor is one microsecond, so that
// such a cluster comes last and ε stays a number.
func (w *workload) epsilon(rule Rule, processors int) ratio {
	left := w.slkSum
	if rule == Urgent {
		left = left.Add(w.etSum)
	}
	var r ratio
	r.above = product(uint64(w.jobs), uint64(w.etSum), uint64(w.sizeSum))
	r.below = product(uint64(max(left, 1)), uint64(processors))
	return r
}

// ratio is a quotient of products. Ratios are compared exactly, so that every machine
// shares a batch out alike.
type ratio struct{ above, below wide }

// compare returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a *ratio) compare(b *ratio) int {
	x, y := a.above.times(&b.below), b.above.times(&a.below)
	for k := len(x) - 1; k >= 0; k-- {
		switch {
		case x[k] < y[k]:
			return -1
		case x[k] > y[k]:
			return 1
		}
	}
	return 0
}

// float returns about what a ratio is, to be read.
func (a *ratio) float() float64 { return a.above.float() / a.below.float() }

// wide is a number of six words, the lowest first. Three factors of a ratio's upper part
// and two of its lower one have room in it.
type wide [6]uint64

func product(factors ...uint64) wide {
	w := wide{1}
	for _, f := range factors {
		w = w.by(f)
	}
	return w
}

// add adds v.
func (w *wide) add(v wide) {
	var c uint64
	for k := range w {
		w[k], c = bits.Add64(w[k], v[k], c)
	}
}

// by returns w · f.
func (w *wide) by(f uint64) (sum wide) {
	var carry uint64
	for k := range w {
		hi, lo := bits.Mul64(w[k], f)
		var c uint64
		sum[k], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return sum
}

// times returns w · f, of which f has two words at most.
func (w *wide) times(f *wide) (sum wide) {
	low, high := w.by(f[0]), w.by(f[1])
	sum[0] = low[0]
	var c uint64
	for k := 1; k < len(w); k++ {
		sum[k], c = bits.Add64(low[k], high[k-1], c)
	}
	return sum
}

func (w *wide) float() (v float64) {
	for k := len(w) - 1; k >= 0; k-- {
		v = v*(1<<64) + float64(w[k])
	}
	return v
}
