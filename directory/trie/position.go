package trie

import (
	"cmp"
	"math/bits"
)

// Position is a place in an order: 128 bits, compared as a binary fraction. Quotes are
// ordered by value, those of equal value by spread.
type Position struct{ Hi, Lo uint64 }

// First returns the lowest position.
func First() Position { return Position{} }

// Last returns the highest position.
func Last() Position { return Position{^uint64(0), ^uint64(0)} }

// ValueMax bounds the values that PositionOf can encode.
const ValueMax = 1<<58 - 1

// PositionOf returns the place of a value from 0 to ValueMax. First comes the value in a
// self-delimiting code that keeps the order: six bits for its length in bits, then what
// follows its leading one (as in Elias' gamma code). Then comes the spread, and zeros.
// Cells are cut where positions differ, so equal values, which differ in the spread
// only, are cut as easily as any others.
func PositionOf(value int64, spread uint64) Position {
	length := bits.Len64(uint64(value))
	width, code := 6, uint64(length) // bits of the code
	if length > 1 {
		width += length - 1
		code = code<<(length-1) | uint64(value)&(1<<(length-1)-1)
	}
	return Position{code<<(64-width) | spread>>width, spread << (64 - width)}
}

// Width returns how many bits of p are the code of its value; the spread follows.
func (p Position) Width() uint8 {
	return 6 + uint8(max(p.Hi>>58, 1)) - 1
}

// Compare returns -1, 0 or 1, as p is lower than q, the same or higher.
func (p Position) Compare(q Position) int {
	if p.Hi != q.Hi {
		return cmp.Compare(p.Hi, q.Hi)
	}
	return cmp.Compare(p.Lo, q.Lo)
}

// Less reports whether p is lower than q.
func (p Position) Less(q Position) bool { return p.Hi < q.Hi || p.Hi == q.Hi && p.Lo < q.Lo }

// Next returns the position behind p. Behind the last one comes the first.
func (p Position) Next() Position {
	lo, carry := bits.Add64(p.Lo, 1, 0)
	return Position{p.Hi + carry, lo}
}

// Prev returns the position before p. Before the first one comes the last.
func (p Position) Prev() Position {
	lo, borrow := bits.Sub64(p.Lo, 1, 0)
	return Position{p.Hi - borrow, lo}
}

// head returns the first n bits of p, the rest zero.
func (p Position) head(n uint8) Position {
	m := mask(n)
	return Position{p.Hi & m.Hi, p.Lo & m.Lo}
}

// mask returns n ones, then zeros.
func mask(n uint8) Position {
	if n <= 64 {
		return Position{^uint64(0) << (64 - n), 0}
	}
	return Position{^uint64(0), ^uint64(0) << (128 - n)}
}

// common returns how many bits p and q begin with in common.
func common(p, q Position) uint8 {
	if x := p.Hi ^ q.Hi; x != 0 {
		return uint8(bits.LeadingZeros64(x))
	}
	return uint8(64 + bits.LeadingZeros64(p.Lo^q.Lo))
}
