package grid

import (
	"slices"
	"testing"
)

// TestGangRanks: tasks are numbered through over the parts, and each has a name of its
// own from which its gang follows.
func TestGangRanks(t *testing.T) {
	g := &Gang{Task: TaskID{JobID{1, 2}, 7}, Each: 2, Parts: []GangPart{{Site: "a", Processors: 2}, {Site: "b", Processors: 6}, {Site: "a", Processors: 2}}}
	sites := g.Sites()
	if !slices.Equal(sites, []SiteID{"a", "b", "b", "b", "a"}) {
		t.Errorf("sites %v", sites)
	}
	for rank, want := range [][3]int{{0, 0, 1}, {1, 0, 3}, {1, 1, 3}, {1, 2, 3}, {2, 0, 1}, {-1, 0, 0}} {
		part, local, size := g.Part(rank)
		if got := [3]int{part, local, size}; got != want {
			t.Errorf("rank %d is part, local rank, size %v, want %v", rank, got, want)
		}
	}
	for _, rank := range []int{0, 1, RanksMax - 1} {
		id := RankTask(g.Task, rank)
		if gang, number, ok := GangOf(id); !ok || gang != g.Task || number != rank {
			t.Errorf("task %d of the gang comes back as %v, %d, %v", rank, gang, number, ok)
		}
	}
	if _, _, ok := GangOf(g.Task); ok {
		t.Error("the gang itself is taken for one of its tasks")
	}
}
