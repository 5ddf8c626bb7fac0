package lrms

import "math/bits"

// widthsMax is the number of width classes of the widest site.
const widthsMax = 2*24 + 1

// width returns the class of a number of processors: a power of two is a class of
// its own, as most parallel jobs ask for one; what lies between two of them is
// another. Narrower jobs have lower classes.
func width(processors int64) int {
	k := bits.Len64(uint64(processors)) - 1
	if processors == 1<<k {
		return 2 * k
	}
	return 2*k + 1
}

// narrowest returns the fewest processors of a class.
func narrowest(class int) int64 {
	return 1<<(class/2) + int64(class%2)
}
