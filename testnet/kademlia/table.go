package kademlia

import (
	"math/bits"
	"slices"

	"gridnode/internal/grid"
)

// table is a node's k-buckets: buckets[i] holds peers whose keys share exactly i
// first bits with the node's own.
type table struct {
	self    *Peer
	k       int
	buckets [][]contact
}

// add puts p into its bucket unless that is full or has it.
func (t *table) add(p *Peer) {
	if p.ID == t.self.ID {
		return
	}
	i := prefix(&t.self.Key, &p.Key)
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, nil)
	}
	if b := t.buckets[i]; len(b) < t.k && !slices.Contains(b, contactOf(p)) {
		t.buckets[i] = append(b, contactOf(p))
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
// The bucket at the depth where key leaves our own key holds the nearest peers;
// the deeper buckets together come next, and then the shallower ones, deepest
// first: each group is nearer than the next as a whole.
func (t *table) nearest(into []contact, key *grid.Key, without *Peer) int {
	n, shared := 0, prefix(&t.self.Key, key)
	n = t.take(into, n, key, without, shared, shared+1)
	n = t.take(into, n, key, without, shared+1, len(t.buckets))
	for i := min(shared, len(t.buckets)) - 1; i >= 0 && n < len(into); i-- {
		n = t.take(into, n, key, without, i, i+1)
	}
	return n
}

// take inserts the peers of the buckets from lo to hi behind the n there are, by
// distance, as far as into has room.
func (t *table) take(into []contact, n int, key *grid.Key, without *Peer, lo, hi int) int {
	first, head := n, headOf(key)
	for i := lo; i < min(hi, len(t.buckets)); i++ {
		for _, c := range t.buckets[i] {
			if c.peer == without {
				continue
			}
			at := n
			for at > first && c.nearer(head, key, into[at-1]) {
				at--
			}
			if at >= len(into) {
				continue
			}
			n = min(n+1, len(into))
			for j := n - 1; j > at; j-- { // few: a copy with its write barrier costs more
				into[j] = into[j-1]
			}
			into[at] = c
		}
	}
	return n
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
