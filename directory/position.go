package directory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"gridnode/internal/grid"
)

// Attribute is a field of the quote by which the directory is ordered.
type Attribute uint8

const (
	Price Attribute = iota // micro-credits per hour
	Speed                  // MIPS rating
	Free                   // idle processors

	attributes = 3
)

var attributeNames = [attributes]string{"price", "speed", "free"}

// String returns the attribute's name.
func (a Attribute) String() string {
	if a >= attributes {
		return fmt.Sprintf("attribute %d", uint8(a))
	}
	return attributeNames[a]
}

// position is a place in the order of one attribute: 128 bits, compared as a
// binary fraction. Quotes are ordered by value, those of equal value by spread.
type position struct{ hi, lo uint64 }

var (
	first = position{}
	last  = position{^uint64(0), ^uint64(0)}
)

// positionOf returns the place of a non-negative value. The value comes first, in
// a self-delimiting code that keeps the order: six bits for its length in bits,
// then what follows its leading one. (Elias' gamma code has the same idea.) After
// that comes the spread, as far as there is room, which is 58 bits or more for
// every value that a quote can have. Short codes matter: cells are cut where
// positions differ, and equal values differ in the spread only.
func positionOf(value int64, spread uint64) position {
	length := bits.Len64(uint64(value))
	width := 6 // of the code
	code := uint64(length)
	if length > 1 {
		width += length - 1
		code = code<<(length-1) | uint64(value)&(1<<(length-1)-1)
	}
	if width > 64 { // a value beyond 2^59: its last bits stand in lo
		over := width - 64
		return position{code0(length, value, over), uint64(value)<<(64-over) | spread>>over}
	}
	if width == 64 {
		return position{code, spread}
	}
	return position{code<<(64-width) | spread>>width, spread << (64 - width)}
}

// code0 returns the first 64 bits of a code that is over bits longer than that.
func code0(length int, value int64, over int) uint64 {
	kept := length - 1 - over
	return uint64(length)<<kept | uint64(value)>>over&(1<<kept-1)
}

// rangeOf returns the first and the last position that quotes of values from low
// to high can have.
func rangeOf(low, high int64) (from, to position) {
	return positionOf(low, 0), positionOf(high, ^uint64(0)).orOnes(high)
}

// orOnes sets the bits behind the code and the spread, which are zero in a quote.
func (p position) orOnes(value int64) position {
	width := 6 + max(bits.Len64(uint64(value))-1, 0)
	if used := width + 64; used < 128 {
		p.lo |= 1<<(128-used) - 1
	}
	return p
}

func (p position) compare(q position) int {
	if p.hi != q.hi {
		return cmp.Compare(p.hi, q.hi)
	}
	return cmp.Compare(p.lo, q.lo)
}

func (p position) less(q position) bool { return p.hi < q.hi || p.hi == q.hi && p.lo < q.lo }

// next and prev return the neighbours of p; last.next() and first.prev() wrap.
func (p position) next() position {
	lo, carry := bits.Add64(p.lo, 1, 0)
	return position{p.hi + carry, lo}
}

func (p position) prev() position {
	lo, borrow := bits.Sub64(p.lo, 1, 0)
	return position{p.hi - borrow, lo}
}

// between returns the coarsest binary fraction f with p < f <= q: the bits p and q
// have in common, then a one. It needs p < q.
func between(p, q position) position {
	if x := p.hi ^ q.hi; x != 0 {
		n := bits.LeadingZeros64(x)
		return position{q.hi &^ (1<<(63-n) - 1), 0}
	}
	n := bits.LeadingZeros64(p.lo ^ q.lo)
	return position{q.hi, q.lo &^ (1<<(63-n) - 1)}
}

// cell names a stretch of the order of one attribute by where it begins. Where it
// ends is known to those who hold it.
type cell struct {
	attribute Attribute
	from      position
}

func (c cell) compare(d cell) int {
	if c.attribute != d.attribute {
		return cmp.Compare(c.attribute, d.attribute)
	}
	return c.from.compare(d.from)
}

// root is the cell that exists always: every search that knows nothing begins there.
func root(a Attribute) cell { return cell{attribute: a} }

// key returns the point of the DHT's key space whose nearest sites hold the cell.
func (c cell) key(federation string) grid.Key {
	name := make([]byte, 0, 96)
	name = append(name, "gridnode/cell/"...)
	name = append(name, byte(c.attribute))
	name = binary.BigEndian.AppendUint64(name, c.from.hi)
	name = binary.BigEndian.AppendUint64(name, c.from.lo)
	name = append(name, federation...)
	return sha256.Sum256(name)
}
