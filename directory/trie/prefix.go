package trie

import (
	"cmp"
	"fmt"
)

// Prefix names a cell: the positions that begin with its bits. The zero value is the
// root, which exists always: whoever knows nothing begins there.
type Prefix struct {
	Bits   Position // zero behind Length
	Length uint8    // 0 to 128
}

// PrefixOf returns the first length bits of p.
func PrefixOf(p Position, length uint8) Prefix { return Prefix{p.head(length), length} }

// Valid reports whether x is what PrefixOf may return.
func (x Prefix) Valid() bool { return x.Length <= 128 && x.Bits.head(x.Length) == x.Bits }

// IsRoot reports whether x contains every position.
func (x Prefix) IsRoot() bool { return x.Length == 0 }

// Contains reports whether p begins with x.
func (x Prefix) Contains(p Position) bool { return p.head(x.Length) == x.Bits }

// Covers reports whether y begins with x and is longer: y is a cell below x.
func (x Prefix) Covers(y Prefix) bool { return x.Length < y.Length && x.Contains(y.Bits) }

// End returns the last position that begins with x.
func (x Prefix) End() Position {
	m := mask(x.Length)
	return Position{x.Bits.Hi | ^m.Hi, x.Bits.Lo | ^m.Lo}
}

// Compare orders prefixes by where they begin, longer ones behind shorter ones: so a
// cell comes before all that are below it.
func (x Prefix) Compare(y Prefix) int {
	return cmp.Or(x.Bits.Compare(y.Bits), cmp.Compare(x.Length, y.Length))
}

// String prints the bits.
func (x Prefix) String() string {
	return fmt.Sprintf("%064b%064b", x.Bits.Hi, x.Bits.Lo)[:x.Length]
}
