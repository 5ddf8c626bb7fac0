package coalloc

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/grid"
)

// TestReportsRest: sites that stay where they are hardly report it any more, and what they
// know of each other stays as good; one that is moved says so within minutes.
func TestReportsRest(t *testing.T) {
	const sites = 24
	plane := onPlane(sites, 60*grid.Millisecond, 5)
	far := grid.Time(0)
	c := newSurveyors(t, sites, func(a, b int) grid.Time {
		if (a == 0) != (b == 0) {
			return plane(a, b) + far
		}
		return plane(a, b)
	})
	c.run(grid.Hour)
	middle := func() int64 { d, _ := c.deviations(1); return d[len(d)/2] }
	before := middle()
	c.told = 0
	c.run(4 * grid.Hour)
	if most := 3 * 3 * sites; c.told > most {
		t.Errorf("%d reports in three hours, at most %d are of use", c.told, most)
	}
	if after := middle(); after > before+20 {
		t.Errorf("estimates are %d thousandths off in the middle, %d three hours before", after, before)
	}
	sequence := func() uint64 { return c.all[1].peer(c.ids[0]).report.Sequence }
	said := sequence()
	far = 200 * grid.Millisecond
	c.run(4*grid.Hour + 5*grid.Minute)
	if sequence() == said {
		t.Error("five minutes after it was moved a site has not said so")
	}
}

// TestNewSiblingIsTold: a new sibling is told alone where this site is, and once.
func TestNewSiblingIsTold(t *testing.T) {
	siblings := []grid.SiteID{"b", "c"}
	s, err := NewSurvey(SurveyConfig{Self: "a", Siblings: func() []grid.SiteID { return siblings }}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	told := func() (to []grid.SiteID) {
		out := &grid.Outbox{}
		s.Resound(grid.Second, out)
		for _, m := range out.Sends {
			to = append(to, m.To)
		}
		return to
	}
	if to := told(); !slices.Equal(to, siblings) {
		t.Errorf("%v were told, want all", to)
	}
	siblings = []grid.SiteID{"b", "d"}
	if to := told(); !slices.Equal(to, []grid.SiteID{"d"}) {
		t.Errorf("%v were told, want d", to)
	}
	if to := told(); to != nil {
		t.Errorf("%v were told again", to)
	}
}

// TestWhoDoesNotAnswerIsForgotten: a site that answers no measurement is measured no more.
func TestWhoDoesNotAnswerIsForgotten(t *testing.T) {
	s, err := NewSurvey(SurveyConfig{Self: "a", Topic: "load"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	out := &grid.Outbox{}
	s.Step(0, &grid.Delivery{From: "b", Message: &LatencyReport{Site: "b", Sequence: 1, Coordinate: newCoordinate(), Within: 30}}, out)
	probed := func(trip grid.Time, times int) {
		for range times {
			s.Step(grid.Second, &grid.Probed{To: "b", RoundTrip: trip}, out)
		}
	}
	probed(-1, missesMax-1)
	probed(grid.Millisecond, 1)
	probed(-1, missesMax-1)
	if s.peer("b") == nil {
		t.Fatal("a site that has answered in between is forgotten")
	}
	probed(-1, 1)
	if s.peer("b") != nil {
		t.Error("a site that never answers is remembered")
	}
}
