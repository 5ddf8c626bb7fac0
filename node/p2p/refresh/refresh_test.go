package refresh

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// looks returns the minutes at which a node looks itself up that asks each minute.
func looks(p *Pause, from, to grid.Time, known func(grid.Time) int) (at []int) {
	for now := from; now < to; now += grid.Minute {
		if p.Over(now, known(now), 20) {
			at = append(at, int(now/grid.Minute))
			p.Begin(now, known(now))
		}
	}
	return at
}

func TestPause(t *testing.T) {
	for _, tt := range []struct {
		name  string
		known func(grid.Time) int
		want  []int
	}{
		{"all is well", func(grid.Time) int { return 30 }, []int{0, 5, 15, 35, 75, 135, 195}},
		{"a small network grows", func(now grid.Time) int { return min(int(now/(30*grid.Minute)), 3) }, []int{0, 5, 15, 30, 40, 60, 70, 90, 100, 120, 160}},
		{"a large network grows", func(now grid.Time) int { return 20 + int(now/grid.Minute) }, []int{0, 5, 15, 35, 75, 135, 195}},
		{"others leave", func(now grid.Time) int { return 10 - min(int(now/(20*grid.Minute)), 9) }, []int{0, 5, 15, 35, 75, 135, 195}},
	} {
		if got := looks(new(Pause), 0, 200*grid.Minute, tt.known); !slices.Equal(got, tt.want) {
			t.Errorf("%s: look-ups after %v minutes, want %v", tt.name, got, tt.want)
		}
	}
	var p Pause
	looks(&p, 0, grid.Hour, func(grid.Time) int { return 30 })
	p.End()
	if !p.Over(grid.Hour, 30, 20) {
		t.Error("a pause that was ended goes on")
	}
	if p.Begin(grid.Hour, 30); p.Over(grid.Hour+Min-1, 30, 20) || !p.Over(grid.Hour+Min, 30, 20) {
		t.Error("after that the shortest pause does not follow")
	}
}
