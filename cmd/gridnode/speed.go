package main

import (
	"runtime"
	"time"
)

// rateSpeed measures the speed of one processor as a MIPS rating: millions of
// simple operations a second, of a loop that mixes integer arithmetic, shifts,
// branches and loads from a table that fits the first-level cache. It takes about
// a third of a second. The best of several runs counts, since other work on the
// machine can only make it slower. Sites compare each other's ratings, so the
// loop must stay as it is.
func rateSpeed() int64 {
	const (
		rounds     = 1 << 22
		operations = 10 // of one round: see spin
		runs       = 8
	)
	var best time.Duration
	for run := range runs {
		start := time.Now()
		runtime.KeepAlive(spin(rounds, uint64(run))) // or the compiler would leave it out
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	return max(int64(rounds*operations)/max(best.Microseconds(), 1), 1)
}

// spin does rounds of: three shifts and three xors (xorshift64), one masked load,
// one addition, one comparison with a branch that is taken half of the time, and
// one store.
func spin(rounds int, seed uint64) uint64 {
	var table [1024]uint64
	x, sum := seed*2+0x9e3779b97f4a7c15, uint64(0)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		slot := &table[x&1023]
		if x&(1<<40) != 0 {
			sum += *slot
		}
		*slot = x
	}
	return sum
}
