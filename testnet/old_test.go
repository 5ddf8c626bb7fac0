package testnet

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// TestOldCopy: a site comes up with what it had saved when its copy was made, and with nothing of
// what came later; the network around it goes on.
func TestOldCopy(t *testing.T) {
	n, err := New(Config{Durable: true})
	if err == nil {
		_, err = n.Add(Member{ID: "a", New: func(int) (Site, error) { return &toySite{name: "a", timer: grid.Never}, nil }})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Schedule(Fault{Kind: FaultOld, At: 10 * grid.Minute, For: grid.Minute, Delay: 5 * grid.Minute, Sites: []int{0}}); err != nil {
		t.Fatal(err)
	}
	records := n.members[0].records
	records["job/1"] = []byte("taken")
	n.Call(6*grid.Minute, 0, func() {
		copy(records["job/1"], "freed")
		records["job/2"] = []byte("taken")
	})
	if err := n.Run(t.Context(), 9*grid.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if n.Records(0) != 2 {
		t.Errorf("there are %d records before the site dies, want 2", n.Records(0))
	}
	if err := n.Run(t.Context(), 12*grid.Minute, nil); err != nil { // records that differ it does not take up
		t.Fatal(err)
	}
	keys := slices.Sorted(func(yield func(string) bool) {
		for key := range n.Saved(0) {
			if !yield(key) {
				return
			}
		}
	})
	if !slices.Equal(keys, []string{"job/1"}) || string(SavedRecord(n, 0, "job/1")) != "taken" {
		t.Errorf("it has saved %v, the first %q, want job/1, taken", keys, SavedRecord(n, 0, "job/1"))
	}
	if n.Core(0) == nil {
		t.Error("it is down still")
	}
}
