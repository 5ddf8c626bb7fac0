package lease

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// TestARefusalIsBelieved for a while, or until the site says anew that it has room; one that is
// about money, or a recall, for all of it.
func TestARefusalIsBelieved(t *testing.T) {
	const now = grid.Hour
	for _, tt := range []struct {
		name   string
		reason Reason
		spare  int64
		report uint64
		at     grid.Time // from now
		barred bool
	}{
		{"nothing new", Busy, 0, 7, 0, true},
		{"the same report", Busy, 8, 7, 0, true},
		{"a newer one, of no room", Busy, 3, 8, 0, true},
		{"a newer one, of room", Busy, 4, 8, 0, false},
		{"it lends now", Denied, 4, 8, 0, false},
		{"there again", Unreachable, 4, 8, 0, false},
		{"it asks for money", Unpaid, 8, 8, 0, true},
		{"it asks for more", Dear, 8, 8, 0, true},
		{"it wanted them back", Accepted, 8, 8, 0, true},
		{"long ago", Unpaid, 0, 7, grid.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster, err := lrms.New(lrms.Config{Processors: 1})
			if err != nil {
				t.Fatal(err)
			}
			book, err := New(Config{Site: "a"}, cluster)
			if err != nil {
				t.Fatal(err)
			}
			spare, report := int64(0), uint64(7)
			loads := func(grid.SiteID) (int64, uint64, bool) { return spare, report, true }
			m, err := NewMatchmaker(MatchConfig{Links: []Link{{Site: "b", Relation: Sibling}}, Retry: grid.Minute}, cluster, book, loads, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			var out grid.Outbox
			id := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}
			if err := m.SubmitWide(now, Work{Request: lrms.Request{ID: id, Processors: 4, Estimate: grid.Hour}}, &out); err != nil {
				t.Fatal(err)
			}
			m.hearsay.believe("b", refusal{processors: 4, ttl: TTLMax, reason: tt.reason, until: now + grid.Minute})
			spare, report = tt.spare, tt.report
			m.Step(now+tt.at, grid.Tick{}, &out)
			list := m.Barred(id)
			targets := m.targetsOf(now+tt.at, m.demands[id], 4)
			if (len(list) == 1) != tt.barred || (len(targets) == 0) != tt.barred {
				t.Fatalf("barred %+v, to be asked %+v; want barred: %v", list, targets, tt.barred)
			}
			if want := (Barred{"b", tt.reason, now + grid.Minute}); tt.barred && list[0] != want {
				t.Errorf("%+v, want %+v", list[0], want)
			}
			if tt.barred && list[0].String() == "" {
				t.Error("it says no reason")
			}
			if fewer := m.targetsOf(now+tt.at, m.demands[id], 3); len(fewer) != 1 {
				t.Errorf("for fewer processors %+v are asked, want b", fewer)
			}
		})
	}
}
