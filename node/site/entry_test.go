package site

import (
	"testing"

	"gridnode/grid"
)

// TestTimesOfWhatWasTakenUp: an execution that was taken up after a restart began when it began, unless the
// clock was set back since: then it still took some time, or nobody would ask for what it wrote.
func TestTimesOfWhatWasTakenUp(t *testing.T) {
	for _, tt := range []struct {
		name             string
		start            grid.Time // as was noted before the restart
		from, to         grid.Time // as its end says
		wantFrom, wantTo grid.Time
	}{
		{"as usual", 3, 8, 9, 3, 9},
		{"the clock was set back", 100, 8, 9, 8, 9},
		{"lost", 3, 0, 0, 0, 0},
	} {
		e := &entry{job: &grid.Job{}, state: Done, start: tt.start, result: grid.Result{Start: tt.from, End: tt.to}}
		if e.result.Start = e.begun(); e.result.Start != tt.wantFrom || e.result.End != tt.wantTo {
			t.Errorf("%s: from %d to %d, want %d to %d", tt.name, e.result.Start, e.result.End, tt.wantFrom, tt.wantTo)
		}
		if v := e.view(); tt.to > 0 && (v.Start != tt.wantFrom || v.End != tt.wantTo) {
			t.Errorf("%s: users are told from %d to %d", tt.name, v.Start, v.End)
		}
	}
}
