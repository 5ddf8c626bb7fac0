package testnet

import (
	"math/bits"
	"math/rand/v2"

	"gridnode/grid"
)

// purpose separates the random draws of one site, so that one more draw for one
// purpose shifts no other.
type purpose uint64

const (
	purposeSite   purpose = iota + 1 // the site's own cores
	purposeLink                      // latency, loss, duplication, reordering of what it sends
	purposeClock                     // offset and drift
	purposeRouter                    // its Kademlia node
	purposeFault                     // the schedule of faults
	purposeJob                       // goals and identities of its jobs
	purposeClaim                     // back-off of its co-allocator
)

// newPCG returns the generator of one site for one purpose. It depends on the
// run's seed, the site's name and the purpose alone, so adding a site does not
// shift its neighbours' draws.
func newPCG(seed uint64, site grid.SiteID, p purpose) *rand.PCG {
	lo := mix(mix(seed, uint64(p)), hashText(string(site)))
	return rand.NewPCG(seed^uint64(p)<<56, lo)
}

// hashText is FNV-1a.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix folds v into h. It is a bijection of h for each v, and every bit of v
// reaches every bit of the result.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}

// uniform draws from 0 to n-1; n is at least 1.
func uniform(pcg *rand.PCG, n uint64) uint64 {
	hi, _ := bits.Mul64(pcg.Uint64(), n)
	return hi
}

// chance draws whether something of the given probability, in millionths, happens.
func chance(pcg *rand.PCG, perMillion int32) bool {
	return perMillion > 0 && uniform(pcg, 1_000_000) < uint64(perMillion)
}
