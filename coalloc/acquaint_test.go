package coalloc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

// TestStrangersTellEachOther: a site learns where one is that is no sibling by asking it,
// in two messages and not again for a while, and nobody else hears of it.
func TestStrangersTellEachOther(t *testing.T) {
	surveys := make(map[grid.SiteID]*Survey)
	for _, id := range []grid.SiteID{"a", "b"} {
		s, err := NewSurvey(SurveyConfig{Self: id, Siblings: func() []grid.SiteID { return []grid.SiteID{"sibling of " + id} }}, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		surveys[id] = s
	}
	said := 0
	carry := func(now grid.Time, from grid.SiteID, out *grid.Outbox) {
		for queue := []grid.Send(out.Sends); len(queue) > 0; {
			m := queue[0]
			queue = queue[1:]
			said++
			if m.To == from {
				t.Fatalf("%s tells itself", from)
			}
			back := &grid.Outbox{}
			surveys[m.To].Step(now, &grid.Delivery{From: from, Message: m.Message}, back)
			queue = append(queue, back.Sends...)
			from = m.To
		}
	}
	now := grid.Time(grid.Second)
	for range 3 {
		out := &grid.Outbox{}
		surveys["a"].Acquaint(now, []grid.SiteID{"a", "b"}, out)
		carry(now, "a", out)
		now += grid.Minute
	}
	if said != 2 {
		t.Errorf("%d messages, want one each", said)
	}
	for id, s := range surveys {
		if _, source := s.Network(now, []grid.SiteID{"a", "b"}, nil).Between(0, 1); source != LatencyEstimated {
			t.Errorf("%s: the latency is %v", id, source)
		}
	}
}

// TestAcquaintIsBounded: however many sites there are, few are asked at a time, and few
// who ask are answered.
func TestAcquaintIsBounded(t *testing.T) {
	s, err := NewSurvey(SurveyConfig{Self: "me", Siblings: func() []grid.SiteID { return nil }}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var all []grid.SiteID
	for i := range 1000 {
		all = append(all, grid.SiteID(fmt.Sprint(i)))
	}
	out := &grid.Outbox{}
	s.Acquaint(0, all, out)
	if n := len(out.Sends); n != acquaintMax {
		t.Errorf("%d sites are asked, want %d", n, acquaintMax)
	}
	out.Reset()
	for i, id := range all {
		c := newCoordinate()
		s.Step(grid.Minute+grid.Time(i), &grid.Delivery{From: id, Message: &LatencyReport{Site: id, Sequence: 1, Coordinate: c, Within: 1}}, out)
	}
	if n := len(out.Sends); n == 0 || n > tellsMax {
		t.Errorf("%d sites are answered, want 1 to %d", n, tellsMax)
	}
}
