package reproduce

import (
	"slices"
	"testing"

	"gonum.org/v1/plot/plotter"
)

// TestZeroHasNoSign: on an axis that begins below it.
func TestZeroHasNoSign(t *testing.T) {
	var got []string
	for _, tick := range (ticks{}).Ticks(-45, 219) {
		got = append(got, tick.Label)
	}
	if want := []string{"0", "50", "100", "150", "200"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGapsInLines: where a line has no figure it is not drawn through.
func TestGapsInLines(t *testing.T) {
	p := Plot{At: []float64{10, 20, 30, 40, 50, 60}}
	got := p.stretches([]Number{None, 1, 2, None, 4, None})
	want := []plotter.XYs{{{X: 20, Y: 1}, {X: 30, Y: 2}}, {{X: 50, Y: 4}}}
	if !slices.EqualFunc(got, want, slices.Equal[plotter.XYs]) {
		t.Errorf("%v, want %v", got, want)
	}
}
