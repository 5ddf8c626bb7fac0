package market

import (
	"math/rand/v2"

	"gridnode/grid"
)

// number returns a number higher than last that was never used before, not even
// before a restart, as long as the clock does not go back across it. The instant
// in it lets the receiver tell how much later one request was made than another.
func number(last uint64, now grid.Time) uint64 {
	return max(last+1, uint64(max(now, 0))<<numberShift, 1)
}

const numberShift = 8

// numberSpan returns by how much the request newer was made later than older.
func numberSpan(newer, older uint64) grid.Time {
	if newer <= older {
		return 0
	}
	return grid.Time((newer - older) >> numberShift)
}

// backoff is the pause between repetitions of a message that nobody confirmed.
type backoff struct{ pause grid.Time }

const (
	backoffFirst = 2 * grid.Second
	// backoffMax bounds the pause while a site waits for an answer, backoffResult
	// while a result waits for its home: a home that comes back speaks first.
	backoffMax    = grid.Minute
	backoffResult = 10 * grid.Minute
)

// next returns when to repeat: after 2 s, 4 s, … at most longest, each up to a
// quarter later, so that a site that comes back is not met by everybody at once.
func (b *backoff) next(now, longest grid.Time, rng *rand.Rand) grid.Time {
	b.pause = min(max(2*b.pause, backoffFirst), longest)
	return now.Add(b.pause).Add(grid.Time(rng.Int64N(int64(b.pause / 4))))
}
