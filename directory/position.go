package directory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"gridnode/grid"
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

// valueMax bounds what positionOf can encode; every field of a quote is below it.
const valueMax = 1<<58 - 1

// positionOf returns the place of a value from 0 to valueMax. First comes the
// value in a self-delimiting code that keeps the order: six bits for its length in
// bits, then what follows its leading one (as in Elias' gamma code). Then comes
// the spread, and zeros. Cells are cut where positions differ, so equal values,
// which differ in the spread only, are cut as easily as any others.
func positionOf(value int64, spread uint64) position {
	length := bits.Len64(uint64(value))
	width, code := 6, uint64(length) // bits of the code
	if length > 1 {
		width += length - 1
		code = code<<(length-1) | uint64(value)&(1<<(length-1)-1)
	}
	return position{code<<(64-width) | spread>>width, spread << (64 - width)}
}

// width returns how many bits of p are the code of its value.
func (p position) width() uint8 {
	return 6 + uint8(max(p.hi>>58, 1)) - 1
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

// head returns the first n bits of p, the rest zero.
func (p position) head(n uint8) position {
	m := mask(n)
	return position{p.hi & m.hi, p.lo & m.lo}
}

// mask returns n ones, then zeros.
func mask(n uint8) position {
	if n <= 64 {
		return position{^uint64(0) << (64 - n), 0}
	}
	return position{^uint64(0), ^uint64(0) << (128 - n)}
}

// common returns how many bits p and q begin with in common.
func common(p, q position) uint8 {
	if x := p.hi ^ q.hi; x != 0 {
		return uint8(bits.LeadingZeros64(x))
	}
	return uint8(64 + bits.LeadingZeros64(p.lo^q.lo))
}

// prefix is what all positions of a stretch begin with: the first length bits.
type prefix struct {
	bits   position // zero behind length
	length uint8    // 0 to 128
}

// prefixOf returns the first length bits of p.
func prefixOf(p position, length uint8) prefix { return prefix{p.head(length), length} }

// contains reports whether p begins with x.
func (x prefix) contains(p position) bool { return p.head(x.length) == x.bits }

// covers reports whether y begins with x and is longer.
func (x prefix) covers(y prefix) bool { return x.length < y.length && x.contains(y.bits) }

// end returns the last position that begins with x.
func (x prefix) end() position {
	m := mask(x.length)
	return position{x.bits.hi | ^m.hi, x.bits.lo | ^m.lo}
}

// compare orders prefixes by where they begin, longer ones behind shorter ones.
func (x prefix) compare(y prefix) int {
	return cmp.Or(x.bits.compare(y.bits), cmp.Compare(x.length, y.length))
}

// String prints the bits.
func (x prefix) String() string {
	return fmt.Sprintf("%064b%064b", x.bits.hi, x.bits.lo)[:x.length]
}

// cell names a part of the order of one attribute: that of the positions with a prefix.
type cell struct {
	attribute Attribute
	prefix
}

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.attribute, d.attribute), c.prefix.compare(d.prefix))
}

// root returns the cell that exists always: whoever knows nothing begins there.
func root(a Attribute) cell { return cell{attribute: a} }

func (c cell) isRoot() bool { return c.length == 0 }

// String prints the attribute and the prefix.
func (c cell) String() string { return c.attribute.String() + "/" + c.prefix.String() }

// RootKey returns the key by which the sites that hold an attribute's root cell are
// looked up: the replicas nearest to it hold the lowest and highest quotes, and
// where there are few quotes, all of them.
func RootKey(federation string, a Attribute) grid.Key { return cell{attribute: a}.key(federation) }

// key returns the point of the DHT's key space whose nearest sites hold the cell.
func (c cell) key(federation string) grid.Key {
	name := make([]byte, 0, 128)
	name = append(name, "gridnode/cell/"...)
	name = append(name, byte(c.attribute), c.length)
	name = binary.BigEndian.AppendUint64(name, c.bits.hi)
	name = binary.BigEndian.AppendUint64(name, c.bits.lo)
	name = append(name, federation...)
	return sha256.Sum256(name)
}
