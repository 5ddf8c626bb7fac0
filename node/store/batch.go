package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

// Bounds of a record.
const (
	KeyMax   = 1 << 10
	ValueMax = 512 << 10
)

// batchMax is the size at which a batch is split in two, each atomic by itself.
const batchMax = 4 << 20

// Batch is a list of changes in order. The zero value is empty and ready; Reset
// keeps its memory. Not safe for concurrent use.
type Batch struct {
	parts [][]byte // encoded changes, each part behind batchHead bytes for kind and sequence number
	count int
	err   error // the first change that is out of bounds, told by Commit
}

// A record of a mirror file begins with its kind.
const (
	kindIdentity = 'I' // first in every file: the owner
	kindBatch    = 'B' // sequence number, 8 bytes big-endian, and changes
	kindState    = 'S' // changes; part of a state file
	kindEnd      = 'E' // sequence number; last in a complete state file
)

const batchHead = 1 + 8

const (
	changeSet    = 1
	changeDelete = 2
)

// Set orders value to be stored under key. Both are copied. Key is 1 to KeyMax
// bytes and does not begin with a zero byte, value at most ValueMax.
func (b *Batch) Set(key string, value []byte) {
	if len(value) > ValueMax {
		b.refuse(fmt.Errorf("record %.80q of %d bytes, at most %d", key, len(value), ValueMax))
		return
	}
	b.add(changeSet, key, value)
}

// Delete orders the record under key to be forgotten; it need not exist.
func (b *Batch) Delete(key string) { b.add(changeDelete, key, nil) }

// Len returns the number of changes.
func (b *Batch) Len() int { return b.count }

// Reset empties the batch.
func (b *Batch) Reset() {
	if len(b.parts) > 0 {
		b.parts[0] = b.parts[0][:batchHead]
		b.parts = b.parts[:1]
	}
	b.count, b.err = 0, nil
}

func (b *Batch) add(change byte, key string, value []byte) {
	if len(key) == 0 || len(key) > KeyMax || key[0] == 0 {
		b.refuse(fmt.Errorf("record key %.80q of %d bytes: want 1 to %d, not beginning with a zero byte", key, len(key), KeyMax))
		return
	}
	last := len(b.parts) - 1
	if last < 0 || len(b.parts[last]) > batchMax {
		b.parts = append(b.parts, make([]byte, batchHead, 4096))
		last++
	}
	b.parts[last] = appendChange(b.parts[last], change, key, value)
	b.count++
}

func (b *Batch) refuse(err error) {
	if b.err == nil {
		b.err = err
	}
}

func appendChange(dst []byte, change byte, key string, value []byte) []byte {
	dst = append(dst, change)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	dst = append(dst, key...)
	return append(dst, value...)
}

var errChanges = errors.New("malformed list of changes")

// change is one decoded change; key and value alias what it was decoded from.
type change struct {
	kind  byte
	key   []byte
	value []byte
	at    int // where value begins in what it was decoded from
}

// changes decodes what appendChange wrote, behind the first skip bytes of record.
// The error is errChanges, and then the last element.
func changes(record []byte, skip int) iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		for at := skip; at < len(record); {
			c, next := decodeChange(record, at)
			if next < 0 {
				yield(change{}, fmt.Errorf("%w at byte %d of %d", errChanges, at, len(record)))
				return
			}
			if !yield(c, nil) {
				return
			}
			at = next
		}
	}
}

// decodeChange returns the change at a place and where the next begins, -1 if
// there is no valid one.
func decodeChange(record []byte, at int) (c change, next int) {
	c.kind = record[at]
	at++
	keySize, n := binary.Uvarint(record[at:])
	if n <= 0 || keySize == 0 || keySize > KeyMax {
		return c, -1
	}
	at += n
	valueSize, n := binary.Uvarint(record[at:])
	if n <= 0 || valueSize > ValueMax {
		return c, -1
	}
	at += n
	if keySize+valueSize > uint64(len(record)-at) || c.kind != changeSet && c.kind != changeDelete {
		return c, -1
	}
	c.key = record[at : at+int(keySize)]
	c.at = at + int(keySize)
	next = c.at + int(valueSize)
	c.value = record[c.at:next]
	return c, next
}
