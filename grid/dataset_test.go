package grid

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckInputs(t *testing.T) {
	digest := DigestPrefix + strings.Repeat("0f", 32)
	set := func(name string, size int64) DataSet { return DataSet{name, size} }
	var many []DataSet
	for i := range InputsMax + 1 {
		many = append(many, set(fmt.Sprint("x", i), 1))
	}
	for _, tt := range []struct {
		inputs []DataSet
		word   string // of the error; empty: fine
	}{
		{nil, ""},
		{[]DataSet{set("x", SizeUnknown), set("a/b:c@d+e-f_g.h", DataSizeMax), set(digest, 0)}, ""},
		{many[:InputsMax], ""},
		{many, "at most 32"},
		{[]DataSet{set("x", 1), set("x", 2)}, "twice"},
		{[]DataSet{set("x", -2)}, "-2 bytes"},
		{[]DataSet{set("x", DataSizeMax+1)}, "at most"},
		{[]DataSet{set("", 1)}, "0 bytes"},
		{[]DataSet{set(strings.Repeat("x", DataNameMax), 1)}, ""},
		{[]DataSet{set(strings.Repeat("x", DataNameMax+1), 1)}, "201 bytes"},
		{[]DataSet{set("../x", 1)}, "beginning with"},
		{[]DataSet{set("x\x00", 1)}, "no name"},
		{[]DataSet{set("é", 1)}, "no name"},
		{[]DataSet{set(digest[:70], 1)}, "64 hexadecimal"},
		{[]DataSet{set(strings.ToUpper(digest), 1)}, ""}, // another name, which is no digest
		{[]DataSet{set(DigestPrefix+strings.Repeat("0F", 32), 1)}, "64 hexadecimal"},
	} {
		err := CheckInputs(tt.inputs)
		if (err == nil) != (tt.word == "") || err != nil && !strings.Contains(err.Error(), tt.word) {
			t.Errorf("%.60v: %v, want %q", tt.inputs, err, tt.word)
		}
	}
}
