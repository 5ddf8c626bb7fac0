package market

import (
	"testing"

	"gridnode/grid"
)

// TestPreviewSaysWhetherItIsCertain checks that a preview vouches for as much as all
// pages of the directory together.
func TestPreviewSaysWhetherItIsCertain(t *testing.T) {
	for _, tt := range []struct {
		unsure int // which page is not certain
		deaf   bool
	}{{0, false}, {1, false}, {2, false}, {0, true}} {
		n := alike(t, 1, previewPage+3) // two pages
		n.unsure, n.deaf = tt.unsure, tt.deaf
		home := n.sites["home0"]
		home.step(&Preview{Token: 1, Job: n.job(1, "home0", 1, grid.Hour, grid.GoalCost)})
		for range 2 * failuresMax { // a failed query is repeated
			n.now += grid.Minute
			home.step(grid.Tick{})
		}
		if r := home.previewed; r == nil || r.Certain != (tt.unsure == 0 && !tt.deaf) || !tt.deaf && len(r.Verdicts) != previewPage+4 {
			t.Errorf("%+v: %+v", tt, r)
		}
	}
}
