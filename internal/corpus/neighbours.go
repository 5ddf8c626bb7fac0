package corpus

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
)

// neighbours draws inputs that lie near one: some of its bytes are changed, left out, doubled or moved, or, where it is a
// message of Protocol Buffers, some of its fields, also within others.
type neighbours struct {
	of  []byte
	rng *rand.Rand
	buf []byte
}

// nearMost bounds what is drawn, in bytes, of an input that is no longer itself.
const nearMost = 64 << 10

func newNeighbours(of []byte) *neighbours {
	h := fnv.New64a()
	h.Write(of)
	return &neighbours{of: of, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// next returns one. It is overwritten by the next.
func (n *neighbours) next() []byte {
	n.buf = append(n.buf[:0], n.of...)
	for again := true; again; again = n.rng.IntN(2) == 0 {
		if n.rng.IntN(2) == 0 {
			if edited, ok := n.editFields(n.buf, 0); ok {
				n.buf = edited
				continue
			}
		}
		n.buf = n.editBytes(n.buf)
	}
	n.buf = n.buf[:min(len(n.buf), max(nearMost, len(n.of)))]
	return n.buf
}

// telling are bytes that decoders treat in ways of their own.
var telling = []byte{0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, '\n', '"', '/', '.', '-', '0', '9', ' '}

// span draws a part of so many bytes, which is not empty, most often a short one.
func (n *neighbours) span(size int) (from, to int) {
	from = n.rng.IntN(size)
	longest := size - from
	if n.rng.IntN(4) > 0 {
		longest = min(longest, 8)
	}
	return from, from + 1 + n.rng.IntN(longest)
}

func (n *neighbours) editBytes(b []byte) []byte {
	if len(b) == 0 {
		return append(b, byte(n.rng.Uint32()))
	}
	at := n.rng.IntN(len(b))
	switch n.rng.IntN(8) {
	case 0:
		b[at] ^= 1 << n.rng.IntN(8)
	case 1:
		b[at] = telling[n.rng.IntN(len(telling))]
	case 2:
		b[at] += byte(n.rng.IntN(17)) - 8
	case 3:
		from, to := n.span(len(b))
		b = append(b[:from], b[to:]...)
	case 4:
		from, to := n.span(len(b))
		b = insert(b, at, b[from:to])
	case 5:
		var drawn [8]byte
		binary.LittleEndian.PutUint64(drawn[:], n.rng.Uint64())
		b = insert(b, at, drawn[:1+n.rng.IntN(len(drawn))])
	case 6:
		from, to := n.span(len(b))
		copy(b[at:], b[from:to])
	default:
		b = b[:at]
	}
	return b
}

// insert puts a part before one of its bytes, also a part of itself.
func insert(b []byte, at int, part []byte) []byte {
	return append(b[:at:at], append(bytes.Clone(part), b[at:]...)...)
}

// Bounds of what is looked into.
const (
	fieldsMost = 256
	depthMost  = 6
)

// field is where one lies in a message: its number and type, and then its value; of bytes also where these begin.
type field struct {
	from, value, inner, to int
	kind                   protowire.Type
}

// fieldsOf returns the fields of a message; none if it is none.
func fieldsOf(b []byte) (list []field) {
	for at := 0; at < len(b); {
		_, kind, tag := protowire.ConsumeTag(b[at:])
		if tag < 0 || len(list) == fieldsMost {
			return nil
		}
		size := protowire.ConsumeFieldValue(1, kind, b[at+tag:])
		if size < 0 || kind == protowire.StartGroupType {
			return nil
		}
		f := field{from: at, value: at + tag, inner: at + tag, to: at + tag + size, kind: kind}
		if kind == protowire.BytesType {
			_, length := protowire.ConsumeVarint(b[f.value:])
			f.inner += length
		}
		list = append(list, f)
		at = f.to
	}
	return list
}

// numbers are such as decoders treat in ways of their own, as varints.
var numbers = []uint64{0, 1, 2, 127, 128, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<62 - 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// editFields changes a field of a message; ok is false if it is none.
func (n *neighbours) editFields(b []byte, depth int) (edited []byte, ok bool) {
	list := fieldsOf(b)
	if len(list) == 0 {
		return b, false
	}
	f := list[n.rng.IntN(len(list))]
	switch n.rng.IntN(6) {
	case 0: // without it
		return append(b[:f.from], b[f.to:]...), true
	case 1: // twice
		return insert(b, f.to, b[f.from:f.to]), true
	case 2: // elsewhere
		part := bytes.Clone(b[f.from:f.to])
		to := list[n.rng.IntN(len(list))].from
		b = append(b[:f.from], b[f.to:]...)
		if to > f.from {
			to -= f.to - f.from
		}
		return insert(b, to, part), true
	}
	var value []byte
	switch f.kind {
	case protowire.VarintType:
		value = protowire.AppendVarint(nil, n.number(b[f.value:f.to]))
	case protowire.BytesType:
		inner, message := bytes.Clone(b[f.inner:f.to]), false
		if depth < depthMost && n.rng.IntN(4) > 0 {
			inner, message = n.editFields(inner, depth+1)
		}
		if !message {
			inner = n.editBytes(inner)
		}
		value = protowire.AppendBytes(nil, inner)
	default:
		value = n.editBytes(bytes.Clone(b[f.value:f.to]))
	}
	return append(b[:f.value:f.value], append(value, b[f.to:]...)...), true
}

// number draws one instead of another.
func (n *neighbours) number(encoded []byte) uint64 {
	was, _ := protowire.ConsumeVarint(encoded)
	switch n.rng.IntN(3) {
	case 0:
		return numbers[n.rng.IntN(len(numbers))]
	case 1:
		return was + uint64(n.rng.IntN(17)) - 8
	default:
		return n.rng.Uint64() >> n.rng.IntN(64)
	}
}
