package shim

import (
	"encoding/binary"
	"errors"
)

var errEncoding = errors.New("malformed message")

// The socket and the journal use one encoding: unsigned varints, strings behind
// their length, lists behind their count.

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

// decoder reads what the functions above wrote. After the first malformed field
// every further one is zero.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// int returns a number of at most max, 0 for a larger one, which is malformed.
func (d *decoder) int(max int64) int64 {
	n := d.uint()
	if n > uint64(max) {
		d.bad = true
		return 0
	}
	return int64(n)
}

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) strings() []string {
	n := d.uint()
	if n > uint64(len(d.rest)) { // each takes a byte at least
		d.bad, d.rest = true, nil
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.string()
	}
	return list
}

// end returns errEncoding if anything was malformed or is left over.
func (d *decoder) end() error {
	if d.bad || len(d.rest) > 0 {
		return errEncoding
	}
	return nil
}
