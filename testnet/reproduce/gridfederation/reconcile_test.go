package gridfederation

import (
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/scenario/federation"
)

// TestClaimsSayWhereTheyHold checks that a claim which fails at the reading of the
// experiments does not hold, and names those at which it would.
func TestClaimsSayWhereTheyHold(t *testing.T) {
	s := &federationStudy{readings: []*reading{{name: "as above"}, {name: "half"}, {name: "twice"}}}
	for _, tt := range []struct {
		at    []string
		holds bool
		want  string
	}{
		{[]string{"as above", "twice"}, true, "as above: as above!; at 2 of 3"},
		{[]string{"half"}, false, "as above: as above!; it would be so at half (load – %): half!"},
		{nil, false, "as above: as above!; at none of 3"},
	} {
		c := s.across("text", "published", func(r *reading) (bool, string) {
			return strings.Contains(strings.Join(tt.at, ","), r.name), r.name + "!"
		})
		if c.Holds != tt.holds || c.Here != tt.want {
			t.Errorf("%v: %q holds %v, want %q", tt.at, c.Here, c.Holds, tt.want)
		}
	}
}

// TestWorkWithinTheTwoDays checks which share of a run counts.
func TestWorkWithinTheTwoDays(t *testing.T) {
	const end = federation.Begin + federation.Span
	for _, tt := range []struct {
		start, end grid.Time
		want       float64
	}{{0, end, 1}, {end - grid.Hour, end + 3*grid.Hour, 0.25}, {end, end + 1, 0}} {
		if got := within(&grid.Result{Start: tt.start, End: tt.end}); got != tt.want {
			t.Errorf("from %v to %v: %v, want %v", tt.start, tt.end, got, tt.want)
		}
	}
}
