package lease

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// TestSpare: what others may hope for are idle processors that nobody waits for here.
func TestSpare(t *testing.T) {
	for _, tt := range []struct {
		name           string
		lend           bool
		running, queue int64
		want           int64
	}{
		{"idle", true, 0, 0, 10},
		{"busy in part", true, 4, 0, 6},
		{"a wide job waits for all", true, 4, 10, 0},
		{"it does not lend", false, 4, 0, 0},
	} {
		cluster, err := lrms.New(lrms.Config{Processors: 10})
		if err != nil {
			t.Fatal(err)
		}
		book, err := New(Config{Site: "a"}, cluster)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatchmaker(MatchConfig{Lend: tt.lend}, cluster, book, nil, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var out grid.Outbox
		for i, processors := range []int64{tt.running, tt.queue} {
			if processors == 0 {
				continue
			}
			if err := m.Submit(0, Work{Request: lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: uint64(i + 1)}, Epoch: 1}, Processors: processors, Estimate: grid.Hour}}, &out); err != nil {
				t.Fatal(err)
			}
			m.Dispatch(0, nil, &out)
		}
		if got := m.Spare(0); got != tt.want {
			t.Errorf("%s: %d processors to spare, want %d", tt.name, got, tt.want)
		}
	}
}
