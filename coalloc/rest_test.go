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

// TestMeasuringRests: sites that stay where they are measure the more seldom, but each other
// often enough to believe it; who comes, moves or does not answer is measured soon.
func TestMeasuringRests(t *testing.T) {
	const sites = 8
	plane := onPlane(sites, 60*grid.Millisecond, 5)
	c := newSurveyors(t, sites, plane)
	c.run(2 * grid.Hour)
	c.asked = 0
	for at := 2 * grid.Hour; at <= 3*grid.Hour; at += grid.Minute {
		c.run(at)
		for i := range c.all[0].peers {
			if p := &c.all[0].peers[i]; !p.ping.known(at) {
				t.Fatalf("at %v %s was measured at %v", at, p.report.Site, p.ping.at)
			}
		}
	}
	if often := int(grid.Hour / (30 * grid.Second) * 4 * sites); c.asked > often/3 {
		t.Errorf("%d measurements in an hour, %d if nobody rested", c.asked, often)
	}
	soon := func(what string) {
		t.Helper()
		if s := c.all[1]; s.nextRound-c.now > s.cfg.Interval || s.pace > s.cfg.Interval {
			t.Errorf("%s, and the next rounds are in %v and after %v", what, s.nextRound-c.now, s.pace)
		}
	}
	var out grid.Outbox
	step := func(in grid.Input) { c.all[1].Step(c.now, in, &out) }
	rested := func() {
		c.run(c.now + grid.Hour)
		for c.all[1].nextRound-c.now < grid.Minute {
			c.run(c.all[1].nextRound + 1)
		}
	}
	rested()
	step(&grid.Probed{To: c.ids[2], RoundTrip: -1})
	soon("a site has not answered")
	rested()
	step(&grid.Delivery{From: "new", Message: &LatencyReport{Site: "new", Sequence: 1, Coordinate: newCoordinate(), Within: 30}})
	soon("a site has come")
	c.all[1].forget("new")
	rested()
	for !c.all[1].moved() {
		step(&grid.Probed{To: c.ids[0], RoundTrip: 8 * grid.Second})
	}
	soon("this site finds itself elsewhere")
}

// TestRemember: a survey that comes up again is where it was, and repeats that only after the longest span.
func TestRemember(t *testing.T) {
	s, err := NewSurvey(SurveyConfig{Self: "a", Siblings: func() []grid.SiteID { return []grid.SiteID{"b"} }}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := s.Said(); ok {
		t.Errorf("it has said that it is at %v", c)
	}
	if s.Remember(0, Coordinate{}) == nil {
		t.Error("a coordinate without an error is taken")
	}
	place := Coordinate{X: 10, Y: 20, Height: 3, Error: 100}
	if err := s.Remember(grid.Hour, place); err != nil {
		t.Fatal(err)
	}
	if c, ok := s.Said(); c != place || !ok {
		t.Errorf("it is at %v, %v", c, ok)
	}
	out := &grid.Outbox{}
	if s.Resound(grid.Hour, out); len(out.Sends) != 1 || out.Sends[0].Message.(*LatencyReport).Coordinate != place {
		t.Errorf("it tells %v", out.Sends)
	}
	if due := s.NextTimer(); due < grid.Hour+s.cfg.Report*7/8 || due > grid.Hour+s.cfg.Report {
		t.Errorf("it reports again at %v", due)
	}
}
