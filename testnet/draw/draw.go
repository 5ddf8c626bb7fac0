// Package draw has the random streams of a run: one for each site and purpose, all
// determined by the run's seed, and what is drawn from them. Everything is of
// integers, so it is the same on every machine.
package draw

import (
	"math/bits"
	"math/rand/v2"

	"gridnode/grid"
)

// Purpose separates the random draws of one site, so that one more draw for one
// purpose shifts no other.
type Purpose uint64

// What draws are for.
const (
	ForSite   Purpose = iota + 1 // the site's own cores
	ForLinks                     // latency, loss, duplication, reordering of what it sends
	ForClock                     // offset and drift
	ForRouter                    // its Kademlia node
	ForFaults                    // the schedule of faults
	ForJobs                      // goals and identities of its jobs
	ForClaims                    // back-off of its co-allocator
)

// PCG returns the generator of one site for one purpose. It depends on the
// run's seed, the site's name and the purpose alone, so adding a site does not
// shift its neighbours' draws.
func PCG(seed uint64, site grid.SiteID, p Purpose) *rand.PCG {
	lo := Mix(Mix(seed, uint64(p)), Text(string(site)))
	return rand.NewPCG(seed^uint64(p)<<56, lo)
}

// Text is FNV-1a.
func Text(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Mix folds v into h. It is a bijection of h for each v, and every bit of v
// reaches every bit of the result.
func Mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}

// Uniform draws from 0 to n-1; n is at least 1.
func Uniform(pcg *rand.PCG, n uint64) uint64 {
	hi, _ := bits.Mul64(pcg.Uint64(), n)
	return hi
}

// Chance draws whether something of the given probability, in millionths, happens.
func Chance(pcg *rand.PCG, perMillion int32) bool {
	return perMillion > 0 && Uniform(pcg, 1_000_000) < uint64(perMillion)
}
