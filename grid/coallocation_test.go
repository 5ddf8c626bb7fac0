package grid

import (
	"slices"
	"testing"
)

// TestGangRanks: tasks are numbered through over the parts, and each part has a
// name of its own from which its gang follows.
func TestGangRanks(t *testing.T) {
	g := &Gang{Task: TaskID{JobID{1, 2}, 7}, Each: 2, Parts: []GangPart{{Site: "a", Processors: 2}, {Site: "b", Processors: 6}, {Site: "a", Processors: 2}}}
	sites := g.Sites()
	if !slices.Equal(sites, []SiteID{"a", "b", "b", "b", "a"}) {
		t.Errorf("sites %v", sites)
	}
	if g.Tasks() != len(sites) {
		t.Errorf("%d tasks at %v", g.Tasks(), sites)
	}
	for part, want := range [][2]int{{0, 1}, {1, 3}, {4, 1}} {
		if got := [2]int{g.FirstOf(part), (&Squad{Gang: g, Part: part}).Tasks()}; got != want {
			t.Errorf("part %d begins with, and has, %v tasks, want %v", part, got, want)
		}
	}
	for _, part := range []int{0, 1, 1023} {
		id := SquadTask(g.Task, part)
		if gang, number, ok := SquadOf(id); !ok || gang != g.Task || number != part {
			t.Errorf("part %d of the gang comes back as %v, %d, %v", part, gang, number, ok)
		}
	}
	if _, _, ok := SquadOf(g.Task); ok {
		t.Error("the gang itself is taken for one of its parts")
	}
}
