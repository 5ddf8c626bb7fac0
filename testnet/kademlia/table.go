package kademlia

import (
	"math/bits"
	"slices"

	"gridnode/grid"
)

// table is a node's k-buckets: buckets[i] holds peers whose keys share exactly i
// first bits with the node's own.
type table struct {
	self    *Peer
	k       int
	buckets [][]contact
}

// add puts p into its bucket unless that has it. A full bucket takes only who has answered, in
// place of the one that it has had for longest.
func (t *table) add(p *Peer, answered bool) {
	if p == t.self {
		return
	}
	i := prefix(&t.self.Key, &p.Key)
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, nil)
	}
	switch b := t.buckets[i]; {
	case slices.Contains(b, contactOf(p)):
	case len(b) < t.k:
		t.buckets[i] = append(b, contactOf(p))
	case answered:
		copy(b, b[1:])
		b[len(b)-1] = contactOf(p)
	}
}

// remove drops p.
func (t *table) remove(p *Peer) {
	i := prefix(&t.self.Key, &p.Key)
	if i >= len(t.buckets) {
		return
	}
	if j := slices.Index(t.buckets[i], contactOf(p)); j >= 0 {
		t.buckets[i] = slices.Delete(t.buckets[i], j, j+1)
	}
}

// size returns how many peers are known.
func (t *table) size() (n int) {
	for _, b := range t.buckets {
		n += len(b)
	}
	return n
}

// nearest fills into with the known peers nearest to key, nearest first, leaving
// out one, and returns how many there are.
//
// Which bucket is nearer than which follows from where key and our own key differ, so
// only those are read that are needed. The bucket at the depth where key leaves our own
// key holds the nearest peers. Of the deeper ones, the first whose bit differs in key
// comes before all that are deeper still, one whose bit does not after them. The
// shallower ones follow, deepest first.
func (t *table) nearest(into []contact, key *grid.Key, without *Peer) int {
	self := &t.self.Key
	n, shared, end := 0, prefix(self, key), len(t.buckets)
	if shared < end {
		n = t.take(into, n, key, without, shared)
	}
	for i := shared + 1; i < end && n < len(into); i++ {
		if differ(self, key, i) {
			n = t.take(into, n, key, without, i)
		}
	}
	for i := end - 1; i > shared && n < len(into); i-- {
		if !differ(self, key, i) {
			n = t.take(into, n, key, without, i)
		}
	}
	for i := min(shared, end) - 1; i >= 0 && n < len(into); i-- {
		n = t.take(into, n, key, without, i)
	}
	return n
}

// take appends the peers of bucket i to the n there are, by distance, as far as into
// has room.
func (t *table) take(into []contact, n int, key *grid.Key, without *Peer, i int) int {
	const position = 1<<5 - 1 // in the bucket, in the place of the last bits of a distance
	b, head := t.buckets[i], headOf(key)
	var order [KMax]uint64
	m := 0
	for j, c := range b {
		if c.peer == without {
			continue
		}
		v := (c.head^head)&^position | uint64(j)
		at := m
		for ; at > 0; at-- {
			w := order[at-1]
			if v^w <= position { // too near to each other to tell by this
				if !c.nearer(head, key, b[w&position]) {
					break
				}
			} else if v > w {
				break
			}
			order[at] = w
		}
		order[at] = v
		m++
	}
	m = min(m, len(into)-n)
	for j, v := range order[:m] {
		into[n+j] = b[v&position]
	}
	return n + m
}

// differ reports whether a and b differ in the bit at a depth.
func differ(a, b *grid.Key, depth int) bool {
	return (a[depth/8]^b[depth/8])>>(7-depth%8)&1 == 1
}

// prefix returns how many first bits a and b share, 256 if they are equal.
func prefix(a, b *grid.Key) int {
	for i := range a {
		if x := a[i] ^ b[i]; x != 0 {
			return i*8 + bits.LeadingZeros8(x)
		}
	}
	return len(a) * 8
}

// nearer reports whether a is nearer to key than b, by XOR.
func nearer(key, a, b *grid.Key) bool {
	for i := range key {
		if x, y := a[i]^key[i], b[i]^key[i]; x != y {
			return x < y
		}
	}
	return false
}
