package away

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// What runs leave is carried from one process of a build to another of the same, so types need
// not be described, and fields that are not exported are carried like others. Functions are left
// out, and so is what is behind an interface, unless it is a pointer and there is one of that type
// at the place where it is to come.

// pack appends what v holds.
func pack(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Float32, reflect.Float64:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case reflect.String:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		return append(b, v.String()...)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return pack(append(b, 1), v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		return packAll(binary.AppendUvarint(b, uint64(v.Len())+1), v)
	case reflect.Array:
		return packAll(b, v)
	case reflect.Map:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		for all := v.MapRange(); all.Next(); {
			b = pack(pack(b, all.Key()), all.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			b = pack(b, v.Field(i))
		}
	case reflect.Interface:
		var within []byte
		if behind, there := pointed(v); there {
			within = pack(nil, behind)
		}
		b = binary.AppendUvarint(b, uint64(len(within)))
		return append(b, within...)
	}
	return b
}

// pointed returns what a pointer behind an interface points to.
func pointed(v reflect.Value) (behind reflect.Value, there bool) {
	if p := v.Elem(); p.Kind() == reflect.Pointer && !p.IsNil() {
		return p.Elem(), true
	}
	return behind, false
}

// packAll appends the elements of v.
func packAll(b []byte, v reflect.Value) []byte {
	for i := range v.Len() {
		b = pack(b, v.Index(i))
	}
	return b
}

// unpack fills v in with what pack has appended, and returns what follows that. What v points to
// is filled in place, and so are slices that are as long.
func unpack(b []byte, v reflect.Value) (rest []byte, err error) {
	r := reader{b: b}
	r.fill(v)
	return r.b, r.err
}

// reader takes values from bytes until there is an error.
type reader struct {
	b   []byte
	err error
}

var errShort = errors.New("it is cut short")

// take returns so many bytes, nil if there are not as many.
func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if r.take(uint64(max(size, 1))); r.err != nil {
		return 0
	}
	return n
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.b)
	if r.take(uint64(max(size, 1))); r.err != nil {
		return 0
	}
	return n
}

// length returns how many elements there are, and whether there are any at all or nil.
func (r *reader) length() (n int, there bool) {
	size := r.uint()
	if size > uint64(len(r.b))+1 { // each takes a byte at least
		r.err = errShort
	}
	return int(max(size, 1) - 1), size > 0 && r.err == nil
}

func (r *reader) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.uint() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.uint())
	case reflect.Float32, reflect.Float64:
		if b := r.take(8); b != nil {
			v.SetFloat(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
	case reflect.String:
		v.SetString(string(r.take(r.uint())))
	case reflect.Pointer:
		switch {
		case r.uint() == 0:
			v.SetZero()
			return
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
		}
		r.fill(v.Elem())
	case reflect.Slice:
		n, there := r.length()
		if !there {
			v.SetZero()
			return
		}
		if v.IsNil() || v.Len() != n {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		r.fillAll(v)
	case reflect.Array:
		r.fillAll(v)
	case reflect.Map:
		n, there := r.length()
		if !there {
			v.SetZero()
			return
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), n))
		for i := 0; i < n && r.err == nil; i++ {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key)
			r.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && r.err == nil; i++ {
			f := v.Field(i)
			r.fill(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()) // so that it may be set
		}
	case reflect.Interface:
		within := reader{b: r.take(r.uint())}
		if behind, there := pointed(v); there && len(within.b) > 0 {
			within.fill(behind)
			r.err = errors.Join(r.err, within.err)
		}
	}
}

// fillAll fills the elements of v.
func (r *reader) fillAll(v reflect.Value) {
	for i := 0; i < v.Len() && r.err == nil; i++ {
		r.fill(v.Index(i))
	}
}

// packed returns what a run has left.
func packed(result any) []byte { return pack(nil, reflect.ValueOf(result).Elem()) }

// unpacked fills in what a run has left.
func unpacked(b []byte, result any) error {
	v := reflect.ValueOf(result)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("%T is no place for what a run leaves", result)
	}
	rest, err := unpack(b, v.Elem())
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes are left over", len(rest))
	}
	return err
}
