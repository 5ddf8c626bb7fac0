package kademlia

import (
	"math/rand/v2"
	"slices"
)

// Fill makes every node one that has been there for long, with the table that joining leads
// to: up to k peers in each bucket, drawn by rng from all there are. It takes O(n log n) time
// and sends nothing.
func Fill(nodes []*Node, rng *rand.Rand) {
	sorted := make([]*Peer, len(nodes))
	for i, n := range nodes {
		sorted[i] = n.table.self
	}
	slices.SortFunc(sorted, func(a, b *Peer) int { return slices.Compare(a.Key[:], b.Key[:]) })
	for _, n := range nodes {
		fillTable(&n.table, sorted, rng)
		n.filled = true
	}
}

// fillTable walks down the sorted keys towards the node's own: at each bit, the
// side on which the node is not makes up one bucket.
func fillTable(t *table, sorted []*Peer, rng *rand.Rand) {
	for bit := 0; len(sorted) > 1 && bit < 256; bit++ {
		middle, _ := slices.BinarySearchFunc(sorted, bit, func(p *Peer, bit int) int {
			if p.Key[bit/8]>>(7-bit%8)&1 == 1 {
				return 1
			}
			return -1
		})
		near, far := sorted[:middle], sorted[middle:]
		if t.self.Key[bit/8]>>(7-bit%8)&1 == 1 {
			near, far = far, near
		}
		t.buckets = append(t.buckets, make([]contact, 0, min(len(far), t.k))) // grown one by one it would be a third larger
		if len(far) <= t.k {
			for _, p := range far {
				t.add(p, false)
			}
		} else {
			for range t.k { // a draw that hits the same peer twice leaves a gap, as joining does
				t.add(far[rng.IntN(len(far))], false)
			}
		}
		sorted = near
	}
}
