package grid

import "math/bits"

// SiteIndex finds the numbers of sites, say their places in a list, by their IDs. It keeps
// no IDs: whoever numbers the sites knows them. So it lies close together in memory and is
// nothing to the garbage collector, where a map of many sites' few neighbours is in no cache
// when it is needed. The zero value is ready.
type SiteIndex struct {
	slots []uint64 // a hash of the ID, and the number + 1; 0: empty. Their count is a power of two
	used  int
}

const siteIndexMin = 8 // slots

// Len returns how many sites have a number.
func (x *SiteIndex) Len() int { return x.used }

// Find returns the number of a site, and whether it has one. named returns the ID of the
// site with a number.
func (x *SiteIndex) Find(id SiteID, named func(number int32) SiteID) (number int32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	hash := hashOf(id)
	for at := x.first(hash); x.slots[at] != 0; at = x.after(at) {
		if slot := x.slots[at]; uint32(slot>>32) == hash {
			if number = int32(uint32(slot)) - 1; named(number) == id {
				return number, true
			}
		}
	}
	return 0, false
}

// Add gives a number, 0 or more, to a site that has none.
func (x *SiteIndex) Add(id SiteID, number int32) {
	if 4*(x.used+1) > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]uint64, max(2*len(old), siteIndexMin))
		for _, slot := range old {
			if slot != 0 {
				x.put(slot)
			}
		}
	}
	x.put(uint64(hashOf(id))<<32 | uint64(uint32(number+1)))
	x.used++
}

// Remove takes the number of a site away, which it must have.
func (x *SiteIndex) Remove(id SiteID, number int32) {
	slot := uint64(hashOf(id))<<32 | uint64(uint32(number+1))
	hole := x.first(uint32(slot >> 32))
	for x.slots[hole] != slot {
		if x.slots[hole] == 0 {
			panic("grid: site " + string(id) + " does not have the number that is taken away")
		}
		hole = x.after(hole)
	}
	// Those behind it that belong no later than here move up, so that they are still found.
	for at := x.after(hole); x.slots[at] != 0; at = x.after(at) {
		belongs := x.first(uint32(x.slots[at] >> 32))
		if mask := uint32(len(x.slots) - 1); (at-belongs)&mask >= (at-hole)&mask {
			x.slots[hole], hole = x.slots[at], at
		}
	}
	x.slots[hole] = 0
	x.used--
}

// put puts what stands in a slot into the first that is empty.
func (x *SiteIndex) put(slot uint64) {
	at := x.first(uint32(slot >> 32))
	for x.slots[at] != 0 {
		at = x.after(at)
	}
	x.slots[at] = slot
}

// first returns the slot where an ID with that hash belongs.
func (x *SiteIndex) first(hash uint32) uint32 { return hash & uint32(len(x.slots)-1) }

// after returns the slot behind another one; the first is behind the last.
func (x *SiteIndex) after(at uint32) uint32 { return (at + 1) & uint32(len(x.slots)-1) }

// hashOf returns a hash of an ID, the same on every machine.
func hashOf(id SiteID) uint32 {
	const odd = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio
	hash := uint64(len(id))
	for ; len(id) >= 8; id = id[8:] {
		hash = fold(hash^word(id), odd)
	}
	var rest uint64
	for i := range len(id) {
		rest = rest<<8 | uint64(id[i])
	}
	hash = fold(hash^rest, odd)
	return uint32(hash>>32 ^ hash)
}

// word returns the first eight bytes of an ID as a number.
func word(id SiteID) uint64 {
	_ = id[7]
	return uint64(id[0]) | uint64(id[1])<<8 | uint64(id[2])<<16 | uint64(id[3])<<24 |
		uint64(id[4])<<32 | uint64(id[5])<<40 | uint64(id[6])<<48 | uint64(id[7])<<56
}

// fold returns the two halves of a product, one over the other.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
