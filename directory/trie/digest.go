package trie

// Digest returns what two sites compare to see whether they know the same cells, which
// are in order. It is 0 if there are none.
func Digest(cells []Prefix) uint64 {
	h := uint64(0)
	for _, x := range cells {
		h = digestWith(h, x)
	}
	return h
}

// digestWith returns the digest with one cell more.
func digestWith(h uint64, x Prefix) uint64 {
	h = (h ^ x.Bits.Hi) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ x.Bits.Lo) * 0xbf58476d1ce4e5b9
	return (h ^ h>>32 ^ uint64(x.Length)) * 0x94d049bb133111eb
}
