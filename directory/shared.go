package directory

import (
	"math/rand/v2"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// shared is what all parts of a directory have in common: how it is configured, its
// random numbers, the questions it has open, and the newest quotes it has seen. What a
// part decides by itself is in the part.
type shared struct {
	cfg    Config
	rng    *rand.Rand
	spread uint64 // of Config.Self
	*Slabs        // what is handed out is the driver's

	requests requests
	maps     [attributes]trie.Map // the cells that this site knows of
	known    newest[*Quote]       // the newest quote of each site
	counts   *Counts
}

// Counts are numbers of a Directory for whoever watches it. They only rise.
type Counts struct {
	// Rejected counts what other sites sent and should not have: quotes that have
	// expired or come from the future, or that do not answer the question.
	Rejected int64

	// Outdated counts quotes that a holder had and whose site has published elsewhere
	// or withdrawn since. Just after a change that is no fault.
	Outdated int64

	// QueryLookups counts the look-ups of holders that queries asked for; all others
	// are for keeping the index.
	QueryLookups int64
}

// jitter returns a random span below max, so that sites that began together do not
// stay together.
func (sh *shared) jitter(max grid.Time) grid.Time {
	if max <= 0 {
		return 0
	}
	return grid.Time(sh.rng.Int64N(int64(max)))
}

// knownMax bounds the sites whose newest quote is remembered.
const knownMax = 4096

// learn remembers a quote if it is the newest of its site, and else returns the one
// that is newer.
func (sh *shared) learn(q *Quote) (newer *Quote) {
	v, fresh := sh.known.put(q.Site)
	if fresh || (*v).Sequence < q.Sequence {
		*v = q
	}
	if (*v).Sequence == q.Sequence {
		return nil
	}
	return *v
}
