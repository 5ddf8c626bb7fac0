package slurm

import (
	"slices"
	"testing"
)

func TestProcessesSitOnNodes(t *testing.T) {
	s := seats{most: 9, size: []int64{4, 2, 4}, used: make([]int64, 3)}
	for _, tt := range []struct {
		processors int64
		several    bool
		want       []share
	}{
		{2, false, []share{{1, 2}}}, // it fills the second
		{3, false, []share{{0, 3}}},
		{5, false, nil},
		{4, true, []share{{2, 4}}}, // one node has room: not the one left on the first
		{1, false, nil},            // the cluster gave one more than was asked for
	} {
		if got := s.take(tt.processors, tt.several); !slices.Equal(got, tt.want) {
			t.Errorf("%d processors, over several nodes %v: got %v, want %v", tt.processors, tt.several, got, tt.want)
		}
	}
	s.give([]share{{2, 4}})
	s.give([]share{{1, 2}})
	wide := s.take(6, true)
	if want := []share{{0, 1}, {1, 2}, {2, 3}}; !slices.Equal(wide, want) {
		t.Errorf("a wide one got %v, want %v", wide, want)
	}
	s.give(wide)
	if s.free() != 6 || s.widest() != 4 {
		t.Errorf("%d free, widest %d; want 6 and 4", s.free(), s.widest())
	}
}
