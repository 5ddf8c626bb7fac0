package corpus

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// message returns one of Protocol Buffers with a field of each type, and one within another.
func message() []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 300)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), 7)
	inner := protowire.AppendString(protowire.AppendTag(nil, 5, protowire.BytesType), "a site")
	return protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), inner)
}

// FuzzNear: whatever an input is, others lie near it, none of them too long, and again the same ones. With each input of a
// target as many are executed as it is told.
func FuzzNear(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(message())
	inputs, executed := make(map[string]bool), 0
	if flag.Lookup("test.fuzz").Value.String() == "" {
		f.Setenv(NearVariable, "3")
		defer func() {
			if len(inputs) < 2 || executed != 4*len(inputs) {
				f.Errorf("with %d inputs %d were executed, want 4 each", len(inputs), executed)
			}
		}()
	}
	Fuzz(f, func(t *testing.T, input []byte) {
		if executed++; executed%4 == 1 {
			inputs[string(input)] = true
		}
		a, b := newNeighbours(input), newNeighbours(input)
		for range 4 {
			if one, again := a.next(), b.next(); !bytes.Equal(one, again) || len(one) > max(nearMost, len(input)) {
				t.Fatalf("near %q lie %q, and %q", input, one, again)
			}
		}
	})
}

// TestNeighbours: of a message many neighbours are messages; each field and each byte comes to be another one.
func TestNeighbours(t *testing.T) {
	of := message()
	n := newNeighbours(of)
	const drawn = 2000
	messages, different, same := 0, make(map[string]bool), make([]int, len(of))
	for range drawn {
		b := n.next()
		if len(fieldsOf(b)) > 0 {
			messages++
		}
		different[string(b)] = true
		for i := range min(len(b), len(of)) {
			if b[i] == of[i] {
				same[i]++
			}
		}
	}
	if messages < drawn/4 || len(different) < drawn/4 || slices.Max(same) > drawn*9/10 {
		t.Errorf("of %d near a message %d are one, %d different ones; as it was a byte is in up to %d", drawn, messages, len(different), slices.Max(same))
	}
	for _, text := range []string{"", "\xff", "a text", "\x0b\x0c"} {
		if list := fieldsOf([]byte(text)); len(list) > 0 {
			t.Errorf("%q has fields %+v", text, list)
		}
	}
}

// TestNearOf: how many were executed together is read as it is printed.
func TestNearOf(t *testing.T) {
	if n := NearOf([]byte("fuzz: elapsed\n" + fmt.Sprintf(nearSaid, 127) + "PASS\n")); n != 127 {
		t.Errorf("%d, want 127", n)
	}
	if n := NearOf([]byte("PASS\n")); n != 0 {
		t.Errorf("%d, want none", n)
	}
}
