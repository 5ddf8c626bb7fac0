package others

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

func cluster(t *testing.T, processors int64) *lrms.Cluster {
	t.Helper()
	c, err := lrms.New(lrms.Config{Processors: processors})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func task(n uint64) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1} }

func TestWhatOthersHoldIsNeitherFreeNorPromised(t *testing.T) {
	c := cluster(t, 8)
	l := New(c)
	l.Take(0, []Taken{{3, grid.Hour}, {2, grid.Never}})
	if free := c.Idle(0); free != 3 || l.Held() != 5 {
		t.Errorf("%d free and %d held, want 3 and 5", free, l.Held())
	}
	for _, tt := range []struct {
		processors int64
		start      grid.Time
	}{{3, 0}, {6, grid.Hour}} {
		if start := c.EarliestStart(0, tt.processors, grid.Minute); start != tt.start {
			t.Errorf("%d processors could start at %v, want %v", tt.processors, start, tt.start)
		}
	}
	if start := c.EarliestStart(0, 7, grid.Minute); start < grid.SpanMax {
		t.Errorf("7 processors could start at %v, although nobody knows when 2 come back", start)
	}
	l.Take(grid.Minute, nil)
	if free := c.Idle(grid.Minute); free != 8 || l.Held() != 0 {
		t.Errorf("%d free and %d held once others are gone, want 8 and 0", free, l.Held())
	}
}

func TestWhatWasStartedButNotBegunCountsOnce(t *testing.T) {
	c := cluster(t, 4)
	l := New(c)
	if err := c.Submit(0, lrms.Request{ID: task(1), Processors: 3, Estimate: grid.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := c.Schedule(0, nil); len(got) != 1 {
		t.Fatalf("%d started, want 1", len(got))
	}
	l.Take(0, []Taken{{4, grid.Hour}}) // another user was faster
	if l.Held() != 1 || c.Idle(0) != 0 {
		t.Errorf("%d held and %d free, want 1 and 0", l.Held(), c.Idle(0))
	}
}

func TestAMarginIsLearnedAndForgottenSlowly(t *testing.T) {
	c := cluster(t, 2)
	l := New(c)
	l.Began(10*grid.Minute, true)
	if l.Margin() != 10*grid.Minute || l.Broken() != 1 {
		t.Fatalf("margin %v after 10 minutes, %d broken", l.Margin(), l.Broken())
	}
	l.Take(0, []Taken{{2, grid.Hour}})
	if start := c.EarliestStart(0, 1, grid.Minute); start != grid.Hour+10*grid.Minute {
		t.Errorf("promised from %v on, want the margin later than foretold", start)
	}
	again := New(c)
	if err := again.Recover(l.Record().AppendRecord(nil)); err != nil || again.Margin() != l.Margin() || again.Broken() != 1 {
		t.Errorf("recovered %v and %d (%v)", again.Margin(), again.Broken(), err)
	}
	for range 16 {
		l.Began(0, false)
	}
	if m := l.Margin(); m < 3*grid.Minute || m > 4*grid.Minute {
		t.Errorf("margin %v after 16 jobs that began in time, want a third of it left", m)
	}
	for _, bad := range []string{"", "\x01", "\x01\x01\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x01"} {
		if New(c).Recover([]byte(bad)) == nil {
			t.Errorf("%q was taken for a record", bad)
		}
	}
}

// TestWhatOthersHoldOfAFullCluster: of what is more than idle nothing counts, and what comes after nothing does; how long it is
// held is counted from now.
func TestWhatOthersHoldOfAFullCluster(t *testing.T) {
	const now = 5 * grid.Hour
	c := cluster(t, 8)
	l := New(c)
	l.Take(now, []Taken{{0, grid.Never}, {3, now + grid.Hour}, {-1, grid.Never}, {4, now + 2*grid.Hour}, {5, grid.Never}})
	if l.Held() != 8 || c.Idle(now) != 0 {
		t.Errorf("%d held and %d free, want 8 and 0", l.Held(), c.Idle(now))
	}
	for processors, want := range map[int64]grid.Time{3: now + grid.Hour, 7: now + 2*grid.Hour} {
		if start := c.EarliestStart(now, processors, grid.Minute); start != want {
			t.Errorf("%d processors could start at %v, want %v", processors, start, want)
		}
	}
}
