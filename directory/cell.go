package directory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"gridnode/directory/trie"
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

// cell names a part of the order of one attribute: that of the positions with a prefix.
type cell struct {
	attribute Attribute
	trie.Prefix
}

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.attribute, d.attribute), c.Prefix.Compare(d.Prefix))
}

// root returns the cell that exists always: whoever knows nothing begins there.
func root(a Attribute) cell { return cell{attribute: a} }

// String prints the attribute and the prefix.
func (c cell) String() string { return c.attribute.String() + "/" + c.Prefix.String() }

// RootKey returns the key by which the sites that hold an attribute's root cell are
// looked up: the replicas nearest to it hold the lowest and highest quotes, and
// where there are few quotes, all of them.
func RootKey(federation string, a Attribute) grid.Key { return root(a).key(federation) }

// key returns the point of the DHT's key space whose nearest sites hold the cell.
func (c cell) key(federation string) grid.Key {
	name := make([]byte, 0, 128)
	name = append(name, "gridnode/cell/"...)
	name = append(name, byte(c.attribute), c.Length)
	name = binary.BigEndian.AppendUint64(name, c.Bits.Hi)
	name = binary.BigEndian.AppendUint64(name, c.Bits.Lo)
	name = append(name, federation...)
	return sha256.Sum256(name)
}
