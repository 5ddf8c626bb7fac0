package coalloc

import (
	"fmt"
	"testing"

	"gridnode/grid"
)

// triangle is three sites, a and b a millisecond apart and c four from both.
func triangle(t *testing.T) *View {
	t.Helper()
	m := NewMatrix(3)
	for i, row := range [][]grid.Time{{30}, {1030, 30}, {4030, 4030, 30}} {
		for j, latency := range row {
			if err := m.Set(i, j, latency, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := viewOf(m, 9, 9, 9)
	v.Experience = NewExperience()
	return v
}

// on returns parts at sites.
func on(sites ...int32) (parts []Part) {
	for i, s := range sites {
		parts = append(parts, Part{int32(i), s, 1})
	}
	return parts
}

// TestExperience: what splitting costs is nothing until the site's own jobs have shown it.
func TestExperience(t *testing.T) {
	v := triangle(t)
	wave := &Request{Processors: 2, CCR: CCRUnknown, Application: "wave"}
	ended := func(r *Request, seconds grid.Time, sites ...int32) {
		v.Experience.Ended(r, on(sites...), v.Network, seconds*grid.Second)
	}
	check := func(what string, r *Request, want int64, sites ...int32) {
		t.Helper()
		if got := v.Slowdown(r, on(sites...)); got < want-want/100 || got > want+want/100 {
			t.Errorf("%s: %d thousandths longer, want %d", what, got, want)
		}
	}
	check("nothing is known", wave, 0, 0, 1)
	ended(wave, 200, 0)
	ended(wave, 200, 2)
	ended(wave, 300, 0, 1)
	check("one run may be an odd one", wave, 0, 0, 1)
	ended(wave, 300, 1, 0)
	check("as seen", wave, 500, 0, 1)
	check("four times as far", wave, 2000, 0, 2)
	check("two further sites", wave, 2828, 0, 1, 2)
	check("at one site", wave, 0, 1, 1)

	// Another application communicates as it says: wave, of which nobody knows, counts as
	// CCR 0.25, so its communication took 3.5 times as long.
	other := &Request{Processors: 2, CCR: 1000, Application: "other"}
	check("half of the time is communication", other, 1250, 0, 1)
	check("an application without a name", &Request{Processors: 2, CCR: 1000}, 1250, 0, 1)
	check("it does not communicate", &Request{Processors: 2, Application: "prime"}, 0, 0, 1)

	calm := &Request{Processors: 2, CCR: CCRUnknown, Application: "calm"} // that one loses nothing counts for those of no name
	ended(calm, 200, 0)
	ended(calm, 200, 2)
	ended(calm, 200, 0, 1)
	ended(calm, 200, 0, 1)
	check("of two applications, without a name", &Request{Processors: 2, CCR: 1000}, 625, 0, 1)

	for range 20 { // a program that has become better is seen to be
		ended(wave, 220, 0, 1)
	}
	check("old runs fade", wave, 100, 0, 1)
	for range 2 { // one that is faster on several sites is not slowed down
		ended(other, 100, 0)
		ended(other, 90, 0, 1)
	}
	check("faster over two sites", other, 0, 0, 1)
}

// TestExperienceIsBounded: neither names, nor times, nor ways that nobody knows do harm.
func TestExperienceIsBounded(t *testing.T) {
	v := triangle(t)
	x := v.Experience
	for i := range 3 * applicationsMax {
		r := &Request{Application: fmt.Sprint(i)}
		for range runsNeeded {
			x.Ended(r, on(0), v.Network, grid.Second)
			x.Ended(r, on(0, 1), v.Network, 2*grid.Second)
		}
	}
	if _, known := x.of("0"); known || len(x.applications) != applicationsMax {
		t.Errorf("%d applications are known, the first of them %t", len(x.applications), known)
	}
	if _, known := x.of(fmt.Sprint(3*applicationsMax - 1)); !known {
		t.Error("the last one is forgotten")
	}
	before := x.ended
	x.Ended(&Request{}, on(0), v.Network, grid.Second)
	x.Ended(&Request{Application: "a"}, nil, v.Network, grid.Second)
	x.Ended(&Request{Application: "a"}, on(0), v.Network, 0)
	x.Ended(&Request{Application: "a"}, on(0), v.Network, grid.SpanMax+1)
	x.Ended(&Request{Application: "a"}, on(0, 1), nil, grid.Second)
	x.Ended(&Request{Application: "a"}, on(0, 1), NewMatrix(2), grid.Second)
	if x.ended != before {
		t.Error("something was learned from nothing")
	}
	long := &Request{CCR: 1, Application: "long"}
	for range runsNeeded {
		x.Ended(long, on(0), v.Network, 1)
		x.Ended(long, on(0, 1), v.Network, grid.SpanMax)
	}
	if p, known := x.of("long"); !known || p.Extra != PenaltyMax {
		t.Errorf("penalty %+v", p)
	}
	for _, r := range []*Request{long, {CCR: CCRMax}} {
		if got := v.Slowdown(r, on(0, 1, 2)); got < 0 || got > PenaltyMax/1000 {
			t.Errorf("%d thousandths longer", got)
		}
	}
}
