package away

import (
	"math"
	"reflect"
	"testing"
)

type inner struct{ n int64 }

// all has a field of each kind of data.
type all struct {
	flag   bool
	small  int8
	big    uint64
	part   float64
	text   string
	list   []inner
	empty  []int
	none   []int
	byName map[string]*inner
	pair   [2]*inner
	behind any
}

// TestCarry: what is packed is unpacked as it was, whatever is at the place before; cut short it
// is an error and no panic.
func TestCarry(t *testing.T) {
	left := &all{
		flag: true, small: -3, big: math.MaxUint64, part: math.Inf(-1), text: "a\x00b", list: []inner{{1}, {-2}}, empty: []int{},
		byName: map[string]*inner{"x": {7}, "nobody": nil}, pair: [2]*inner{nil, {9}}, behind: &inner{5},
	}
	b := packed(left)
	same := make([]inner, 2)
	for name, place := range map[string]*all{
		"empty": {behind: new(inner)}, "full": {none: []int{1}, list: same, pair: [2]*inner{{1}, {1}}, byName: map[string]*inner{"old": nil}, behind: &inner{1}},
	} {
		if err := unpacked(b, place); err != nil || !reflect.DeepEqual(place, left) {
			t.Errorf("%s: %+v, %v; want %+v", name, place, err, left)
		}
	}
	if same[1].n != -2 {
		t.Error("a slice as long is not filled in place")
	}
	without := new(all)
	if err := unpacked(b, without); err != nil || without.behind != nil || without.pair[1].n != 9 {
		t.Errorf("without a place behind the interface: %+v, %v", without, err)
	}
	for n := range len(b) {
		if err := unpacked(b[:n], new(all)); err == nil {
			t.Errorf("cut at %d of %d bytes there is no error", n, len(b))
		}
	}
	if err := unpacked(append(b, 0), new(all)); err == nil {
		t.Error("what is left over is no error")
	}
}
