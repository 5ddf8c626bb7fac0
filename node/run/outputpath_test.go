package run

import (
	"testing"

	"gridnode/grid"
)

func TestOutputPath(t *testing.T) {
	one := &grid.Job{Number: 7, User: "ann", Name: "sim[3]/x"}
	part := &grid.Job{Number: 9, User: "ann", Name: "sim[3]", Array: &grid.Array{Number: 7, Index: 3}}
	for _, tt := range []struct {
		pattern string
		job     *grid.Job
		want    string
	}{
		{"/d/slurm-%j.out", one, "/d/slurm-7.out"},
		{"/d/%x-%u-%N", one, "/d/sim[3]_x-ann-be_ta"},
		{"/d/%A_%a.%j %x", part, "/d/7_3.9 sim"},
		{"/d/%3a.%04j", part, "/d/003.0009"},
		{"/d/100%%.%q%", part, "/d/100%.%q%"},
		{`/d/\%j`, part, "/d/%j"},
		{"/d/%99999999999999999999j", part, "/d/0000000009"},
	} {
		if got := OutputPath(tt.pattern, tt.job, "be/ta"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.pattern, got, tt.want)
		}
	}
}
