package coalloc

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// surveyors are surveys in a network whose true latencies are known: reports and
// measurements are carried at once, as of the instant at which they are ordered.
type surveyors struct {
	t     *testing.T
	ids   []grid.SiteID
	all   []*Survey
	true  func(a, b int) grid.Time
	lie   func(from int, r *LatencyReport) // may change a report on its way; nil: nobody lies
	now   grid.Time
	asked int // probes
	most  int // probes of one step
	told  int // reports
}

func newSurveyors(t *testing.T, n int, latency func(a, b int) grid.Time) *surveyors {
	c := &surveyors{t: t, true: latency}
	for i := range n {
		c.ids = append(c.ids, grid.SiteID(fmt.Sprintf("site-%03d", i)))
		s, err := NewSurvey(SurveyConfig{Self: c.ids[i], Topic: "load"}, rand.New(rand.NewPCG(7, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		c.all = append(c.all, s)
	}
	return c
}

// run lets time pass: whoever wants a Tick first gets it.
func (c *surveyors) run(until grid.Time) {
	var out grid.Outbox
	for {
		next, at := -1, until
		for i, s := range c.all {
			if t := s.NextTimer(); t < at {
				next, at = i, t
			}
		}
		if next < 0 {
			c.now = until
			return
		}
		c.now = max(c.now, at)
		c.all[next].Step(c.now, grid.Tick{}, &out)
		if c.all[next].NextTimer() <= c.now {
			c.t.Fatalf("%s wants another Tick at %v", c.ids[next], c.now)
		}
		c.carry(next, &out)
	}
}

func (c *surveyors) carry(from int, out *grid.Outbox) {
	var none grid.Outbox
	for _, to := range out.Probes {
		c.asked++
		at := slices.Index(c.ids, to)
		c.all[from].Step(c.now, &grid.Probed{To: to, RoundTrip: 2 * c.true(from, at)}, &none)
	}
	c.most = max(c.most, len(out.Probes))
	for i := range out.Sends {
		c.told++
		r := *out.Sends[i].Message.(*LatencyReport)
		if c.lie != nil {
			r.Nearest = slices.Clone(r.Nearest)
			c.lie(from, &r)
		}
		for at, s := range c.all {
			if at != from {
				s.Step(c.now, &grid.Delivery{From: c.ids[from], Message: &r}, &none)
			}
		}
	}
	out.Reset()
}

// onPlane returns latencies between points drawn evenly in a square of that side, plus
// a way of its own from each.
func onPlane(n int, side grid.Time, seed uint64) func(a, b int) grid.Time {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y, own := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range n {
		x[i], y[i], own[i] = rng.Int64N(int64(side)), rng.Int64N(int64(side)), 10+rng.Int64N(int64(side)/20)
	}
	return func(a, b int) grid.Time {
		dx, dy := x[a]-x[b], y[a]-y[b]
		return grid.Time(int64(sqrt(uint64(dx*dx+dy*dy))) + own[a] + own[b])
	}
}

// deviations returns the deviations of what one site knows from the truth, in
// thousandths, sorted, over all pairs of which neither end is the site.
func (c *surveyors) deviations(of int) (deviations []int64, sources map[LatencySource]int) {
	e := c.all[of].Network(c.now, c.ids, nil)
	sources = make(map[LatencySource]int)
	for a := range c.ids {
		for b := range a {
			latency, source := e.Between(a, b)
			if back, _ := e.Between(b, a); back != latency {
				c.t.Fatalf("%d to %d: %v there, %v back", a, b, latency, back)
			}
			sources[source]++
			if a != of && b != of {
				deviations = append(deviations, abs(int64(latency-c.true(a, b)))*1000/int64(c.true(a, b)))
			}
		}
	}
	slices.Sort(deviations)
	return deviations, sources
}

func TestSurveyEstimatesWhatNobodyMeasured(t *testing.T) {
	const n = 100
	c := newSurveyors(t, n, onPlane(n, 20*grid.Millisecond, 3))
	c.run(30 * grid.Minute)
	deviations, sources := c.deviations(0)
	if middle := deviations[len(deviations)/2]; middle > 100 {
		t.Errorf("half of the estimates are off by more than %d thousandths, want at most 100", middle)
	}
	if most := deviations[len(deviations)*9/10]; most > 400 {
		t.Errorf("a tenth of the estimates is off by more than %d thousandths, want at most 400", most)
	}
	if sources[LatencyUnknown] > 0 || sources[LatencyMeasured] == 0 || sources[LatencyReported] == 0 || sources[LatencyEstimated] < n*n/4 {
		t.Errorf("sources: %v", sources)
	}
	// Never all pairs: a few sites in a round, whatever the number of sites.
	if rounds := 30*60/25 + 10; c.most > 4 || c.asked > n*rounds*4 {
		t.Errorf("%d probes by %d sites in 30 minutes, %d at a time: want at most 4", c.asked, n, c.most)
	}
	if perSite := c.told / n; perSite > 45 {
		t.Errorf("%d reports a site in 30 minutes, want about one a minute", perSite)
	}
}

func TestSurveyOfFewSitesMeasuresAll(t *testing.T) {
	c := newSurveyors(t, 5, onPlane(5, grid.Millisecond, 5))
	c.run(30 * grid.Second)
	for of := range c.all {
		deviations, sources := c.deviations(of)
		if sources[LatencyMeasured] != 4 || sources[LatencyEstimated]+sources[LatencyUnknown] > 0 || deviations[len(deviations)-1] != 0 {
			t.Errorf("site %d knows after 30 s: %v, deviations %v", of, sources, deviations)
		}
	}
}

// TestSurveyForgetsWhoIsSilent: what is not repeated is not believed, and in the end
// nobody is asked any more.
func TestSurveyForgetsWhoIsSilent(t *testing.T) {
	c := newSurveyors(t, 2, onPlane(2, grid.Millisecond, 5))
	c.run(grid.Minute)
	e := c.all[0].Network(c.now, c.ids, nil)
	if _, source := e.Between(0, 1); source != LatencyMeasured {
		t.Fatalf("after a minute the latency is %v", source)
	}
	e = c.all[0].Network(c.now+pingAge+reportAge, c.ids, nil)
	if latency, source := e.Between(0, 1); source != LatencyUnknown || latency != LatencyMax {
		t.Errorf("20 minutes later it is %v, %v", latency, source)
	}
	var out grid.Outbox
	c.all[0].Step(c.now+3*reportAge, grid.Tick{}, &out)
	if len(out.Probes) > 0 || len(c.all[0].peers) > 0 || c.all[0].nextRound != grid.Never {
		t.Errorf("half an hour later %d sites are asked and %d known", len(out.Probes), len(c.all[0].peers))
	}
}

// TestLiarsCoordinate: a site that says it is far away, and moves all the time, moves
// the others by no more than the latency they measure to it, so the estimates between
// honest sites hold.
func TestLiarsCoordinate(t *testing.T) {
	const n = 40
	c := newSurveyors(t, n, onPlane(n, 20*grid.Millisecond, 3))
	c.lie = func(from int, r *LatencyReport) {
		if from >= n-4 { // a tenth
			r.X, r.Y, r.Error = -coordinateMax, coordinateMax*int64(1-2*(r.Sequence%2)), errorMin
		}
	}
	c.run(30 * grid.Minute)
	var honest []int64
	for a := range n - 4 {
		for b := range a {
			d := c.all[a].coordinate.Distance(&c.all[b].coordinate)
			honest = append(honest, abs(int64(d-c.true(a, b)))*1000/int64(c.true(a, b)))
		}
	}
	slices.Sort(honest)
	if middle := honest[len(honest)/2]; middle > 600 {
		t.Errorf("half of the coordinates' estimates between honest sites are off by more than %d thousandths, want at most 600", middle)
	}

	// One step, whatever it says.
	for range 100 {
		s, _ := NewSurvey(SurveyConfig{Self: "me", Topic: "load"}, rand.New(rand.NewPCG(1, 1)))
		before := s.coordinate
		liar := Coordinate{X: coordinateMax, Y: -coordinateMax, Height: coordinateMax, Error: errorMin}
		s.coordinate.move(&liar, grid.Millisecond, s.rng)
		if moved := s.coordinate.Distance(&before); moved > grid.Millisecond+1 {
			t.Fatalf("moved by %v after a latency of 1ms", moved)
		}
	}
}

// TestLiarsLatencies: who says that it is near everybody gets no nearer than the other
// ends say, and no nearer than what is measured from here allows.
func TestLiarsLatencies(t *testing.T) {
	const n = 6
	far := func(a, b int) grid.Time { return 20 * grid.Millisecond }
	liar := n - 1
	c := newSurveyors(t, n, far)
	c.lie = func(from int, r *LatencyReport) {
		if from == liar {
			for i := range r.Nearest {
				r.Nearest[i].Latency = 1
			}
		}
	}
	c.run(2 * grid.Minute)
	e := c.all[0].Network(c.now, c.ids, nil)
	for b := 1; b < liar; b++ {
		if latency, _ := e.Between(liar, b); latency != 20*grid.Millisecond {
			t.Errorf("the liar is %v from site %d, which says 20ms", latency, b)
		}
	}
	// If the other end is silent about it, what is measured from here counts.
	near := func(a, b int) grid.Time {
		if a == 0 && b == liar || b == 0 && a == liar {
			return 2 * grid.Millisecond
		}
		return 20 * grid.Millisecond
	}
	c = newSurveyors(t, n, near)
	c.lie = func(from int, r *LatencyReport) {
		if from != liar {
			r.Nearest = nil
			return
		}
		for i := range r.Nearest {
			r.Nearest[i].Latency = 1
		}
	}
	c.run(2 * grid.Minute)
	e = c.all[0].Network(c.now, c.ids, nil)
	if latency, _ := e.Between(liar, 1); latency != 9*grid.Millisecond { // (20−2)/2
		t.Errorf("the liar is %v from site 1; 2 ms and 20 ms measured from here allow no less than 9ms", latency)
	}
}

func TestSurveyRefusesTheAbsurd(t *testing.T) {
	honest := LatencyReport{Site: "b", Sequence: 5, Coordinate: newCoordinate(), Within: 30}
	for _, tt := range []struct {
		name   string
		change func(r *LatencyReport)
	}{
		{"another site's", func(r *LatencyReport) { r.Site = "c" }},
		{"negative latency within", func(r *LatencyReport) { r.Within = -1 }},
		{"latency within of more than LatencyMax", func(r *LatencyReport) { r.Within = LatencyMax + 1 }},
		{"coordinate out of bounds", func(r *LatencyReport) { r.X = coordinateMax + 1 }},
		{"height below the plane", func(r *LatencyReport) { r.Height = -1 }},
		{"no error", func(r *LatencyReport) { r.Error = 0 }},
		{"error of more than all", func(r *LatencyReport) { r.Error = errorMax + 1 }},
		{"negative latency", func(r *LatencyReport) { r.Nearest = []Nearby{{1, -5}} }},
		{"latency of more than LatencyMax", func(r *LatencyReport) { r.Nearest = []Nearby{{1, LatencyMax + 1}} }},
		{"too many latencies", func(r *LatencyReport) { r.Nearest = slices.Repeat([]Nearby{{1, 5}}, NearestMax+1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := honest
			tt.change(&r)
			body, err := proto.Marshal(r.Proto())
			if err != nil {
				t.Fatal(err)
			}
			if m, err := GossipDecoder("b", body); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("decoded as %+v, error %v", m, err)
			}
		})
	}
	body, err := proto.Marshal(honest.Proto())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := GossipDecoder("b", body); err != nil {
		t.Errorf("the honest report is refused: %v", err)
	}

	s, err := NewSurvey(SurveyConfig{Self: "a", Topic: "load"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	s.Step(0, &grid.Delivery{From: "b", Message: &honest}, &out)
	before := s.coordinate
	s.Step(0, &grid.Probed{To: "b", RoundTrip: 2*LatencyMax + 2}, &out)
	if s.Rejected != 1 || s.coordinate != before {
		t.Errorf("a round trip of more than twice LatencyMax: %d rejected, coordinate %+v", s.Rejected, s.coordinate)
	}
	old := honest
	old.Sequence, old.Within = 4, 77
	s.Step(0, &grid.Delivery{From: "b", Message: &old}, &out)
	if got := s.peer("b").report.Within; got != 30 {
		t.Errorf("an older report replaced a newer one: %v within", got)
	}
	first := honest
	first.Site, first.Sequence = "c", 0
	s.Step(0, &grid.Delivery{From: "c", Message: &first}, &out)
	if s.peer("c") != nil || s.Rejected != 2 {
		t.Errorf("a report without a number is one of a site that is known (%d rejected)", s.Rejected)
	}
}

// TestPlacesOfCoordinates: a site is placed in the plane where its coordinate says, in microseconds.
func TestPlacesOfCoordinates(t *testing.T) {
	e := &Estimates{rows: []row{{}, {known: true, coordinate: Coordinate{X: 3000 * coordinateUnit, Y: -5000 * coordinateUnit}}}}
	if _, _, known := e.Place(0); known {
		t.Error("the place of a site without a coordinate is known")
	}
	if x, y, known := e.Place(1); x != 3*grid.Millisecond || y != -5*grid.Millisecond || !known {
		t.Errorf("it is at %v, %v, known %v", x, y, known)
	}
}

// TestSurveyIsBounded: a flood of names makes nobody forget whom it has heard lately.
func TestSurveyIsBounded(t *testing.T) {
	s, err := NewSurvey(SurveyConfig{Self: "a", Topic: "load"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	hear := func(now grid.Time, id grid.SiteID) {
		s.Step(now, &grid.Delivery{From: id, Message: &LatencyReport{Site: id, Sequence: 1, Coordinate: newCoordinate(), Within: 30}}, &out)
	}
	for i := range PeersMax + 100 {
		hear(grid.Second, grid.SiteID(fmt.Sprint("site-", i)))
	}
	if len(s.peers) != PeersMax || len(s.marks) != PeersMax+1 || s.peer("site-0") == nil || s.Rejected != 100 {
		t.Errorf("%d sites, %d marks, %d rejected", len(s.peers), len(s.marks), s.Rejected)
	}
	hear(2*grid.Second+reportAge, "late")
	if len(s.peers) != PeersMax || s.peer("late") == nil || s.peer("site-0") != nil {
		t.Errorf("%d sites; a newcomer does not take the place of the first that is silent", len(s.peers))
	}
}

func FuzzGossipDecoder(f *testing.F) {
	r := LatencyReport{Site: "b", Sequence: 5, Coordinate: newCoordinate(), Within: 30, Nearest: []Nearby{{7, 30}}}
	body, _ := proto.Marshal(r.Proto())
	f.Add(body)
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		m, err := GossipDecoder("b", body)
		if err != nil {
			return
		}
		again, err := proto.Marshal(m.(*LatencyReport).Proto())
		if err != nil {
			t.Fatal(err)
		}
		back, err := GossipDecoder("b", again)
		if err != nil {
			t.Fatalf("what was decoded is refused: %v", err)
		}
		third, _ := proto.Marshal(back.(*LatencyReport).Proto())
		if !bytes.Equal(again, third) {
			t.Errorf("%x is %x after a round trip", again, third)
		}
	})
}
