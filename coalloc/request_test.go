package coalloc

import (
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
)

func TestParseComponents(t *testing.T) {
	r, err := ParseComponents("8@leiden, 8,16")
	if err != nil || r.Processors != 32 || r.Kind() != NonFixed || len(r.Splits) != 1 || r.Splits[0][0] != (Component{8, "leiden"}) || r.Splits[0][2] != (Component{16, ""}) {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = ParseComponents("16@a,16@b|32@c")
	if err != nil || r.Kind() != Fixed || len(r.Splits) != 2 || r.CCR != CCRUnknown {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "PROCESSORS@SITE"},
		{"8,,8", "PROCESSORS@SITE"},
		{"8@", `"8@"`},
		{"0", "1 to"},
		{"-8", `"-8"`},
		{"8.5@a", `"8.5@a"`},
		{"99999999999999999999", "1 to"},
		{"16777217", "1 to 16777216"},
		{"8,8|8", `"8" adds up to 8 processors, "8,8" to 16`},
		{strings.Repeat("1,", 64) + "1", "more than 64"},
		{strings.Repeat("1|", 16) + "1", "more than 16 alternatives"},
	} {
		if _, err := ParseComponents(tt.text); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: error %v, want one with %q", tt.text, err, tt.want)
		}
	}
}

func TestParseFlexible(t *testing.T) {
	for _, tt := range []struct {
		text     string
		min, max int
	}{{"2..4", 2, 4}, {"3", 3, 3}, {"..4", 0, 4}, {"2..", 2, 0}} {
		r, err := ParseFlexible(tt.text, 32, 4)
		if err != nil || r.ComponentsMin != tt.min || r.ComponentsMax != tt.max || r.ComponentMin != 4 || r.Kind() != Flexible {
			t.Errorf("%q: got %+v, %v", tt.text, r, err)
		}
	}
	for _, tt := range []struct {
		text                string
		processors, perSite int64
		want                string
	}{
		{"", 32, 0, "range like 2..4"},
		{"..", 32, 0, "range like 2..4"},
		{"0", 32, 0, "1 to 64 components"},
		{"2..x", 32, 0, `"x"`},
		{"65", 100, 0, "1 to 64"},
		{"4..2", 32, 0, "at least 4 components and at most 2"},
		{"4", 32, 16, "4 components of at least 16 processors each are 64, the job has 32"},
		{"4", 3, 0, "4 components of at least 1 processors each are 4, the job has 3"},
		{"..2", 32, 33, "at least 33 processors, the job has 32"},
		{"2", 32, -1, "at least -1"},
		{"2", 0, 0, "0 processors"},
	} {
		if _, err := ParseFlexible(tt.text, tt.processors, tt.perSite); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.text, err, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	split := Split{{8, "a"}, {8, "b"}}
	unknown := policyLast + 1
	for _, tt := range []struct {
		r    Request
		want string
	}{
		{Request{Processors: 16, Splits: []Split{split}, ClustersMax: 1}, "names 2 sites, the limit is 1"},
		{Request{Processors: 17, Splits: []Split{split}}, "add up to 16 processors, the job has 17"},
		{Request{Processors: 16, Splits: []Split{split}, ComponentMin: 4}, "components are given"},
		{Request{Processors: 16, Splits: []Split{{}}}, "0 components"},
		{Request{Processors: 16, Splits: []Split{{{-1, ""}, {17, ""}}}}, "-1 processors"},
		{Request{Processors: 16, ClustersMax: -1}, "limit of -1"},
		{Request{Processors: 16, ComponentsMin: 3, ClustersMax: 2}, "at least 3 components on at most 2 sites"},
		{Request{Processors: 16, CCR: CCRMax + 1}, "communication"},
		{Request{Processors: 16, Inputs: []Input{{Bytes: -1}}}, "-1 bytes"},
		{Request{Processors: ProcessorsMax + 1}, "processors"},
		{Request{Processors: 16, ComponentsMax: -1}, "components"},
		{Request{Processors: 16, Inputs: make([]Input, InputsMax+1)}, "input files"},
		{Request{Processors: 16, Policy: &unknown}, "policy 5 is unknown"},
	} {
		if err := tt.r.Validate(); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want one with %q", tt.r, err, tt.want)
		}
	}
	if err := (&Request{Processors: 16, Splits: []Split{{{8, "a"}, {8, "a"}}}, ClustersMax: 1}).Validate(); err != nil {
		t.Errorf("two components at one site are two sites: %v", err)
	}
}

// What the known sites can never give is refused at once, with the reason.
func TestPlaceable(t *testing.T) {
	v := viewOf(nil, 0, 0, 0) // of 100 each; whether they are idle does not matter
	for _, tt := range []struct {
		r    Request
		want string // empty: it can be placed
	}{
		{Request{Processors: 300}, ""},
		{Request{Processors: 301}, "301 processors in 1 to 3 components of at least 1 each: the 3 widest sites that count have 300"},
		{Request{Processors: 201, ClustersMax: 2}, "the 2 widest sites"},
		{Request{Processors: 8, ComponentsMin: 4}, "at least 4 components, each at a site of its own: 3 sites are known"},
		{Request{Processors: 202, ComponentMin: 101}, "the 0 widest sites that count have 0"},
		{Request{Processors: 100, Splits: []Split{{{100, "x"}}}}, `no site "x" is known`},
		{Request{Processors: 101, Splits: []Split{{{101, "a"}}}}, "a has 100 processors, the components there need 101"},
		{Request{Processors: 110, Splits: []Split{{{60, "a"}, {50, "a"}}}}, "component 2 of split 1: a has 100 processors, the components there need 110"},
		{Request{Processors: 101, Splits: []Split{{{101, ""}}}}, "the widest site 100"},
		{Request{Processors: 240, Splits: []Split{{{60, ""}, {60, ""}, {60, ""}, {60, ""}}}}, "does not fit the sites even if all of them are idle"},
		{Request{Processors: 180, Splits: []Split{{{60, ""}, {60, ""}, {60, ""}}}, ClustersMax: 2}, "with at most 2 sites"},
		{Request{Processors: 101, Splits: []Split{{{101, "a"}}, {{51, "a"}, {50, ""}}}}, ""},
	} {
		if err := tt.r.Validate(); err != nil {
			t.Fatalf("%+v: %v", tt.r, err)
		}
		err := tt.r.Placeable(v)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: error %v, want one with %q", tt.r, err, tt.want)
		}
	}
}

// A lying peer's latencies are refused, or bounded by what was measured from here.
func TestAbsurdLatencies(t *testing.T) {
	m := NewMatrix(2)
	for _, tt := range []struct {
		a, b      int
		latency   grid.Time
		bandwidth int64
	}{{0, 1, 0, 0}, {0, 1, -5, 0}, {0, 1, LatencyMax + 1, 0}, {0, 2, 5, 0}, {-1, 0, 5, 0}, {0, 1, 5, -1}, {0, 1, 5, BandwidthMax + 1}} {
		if err := m.Set(tt.a, tt.b, tt.latency, tt.bandwidth); !errors.Is(err, ErrAbsurd) {
			t.Errorf("%+v: error %v", tt, err)
		}
	}
	if m.Latency(0, 1) != LatencyMax || m.Bandwidth(0, 1) != 1 {
		t.Error("a refused measurement changed something")
	}
	const ms = grid.Millisecond
	for _, tt := range []struct{ reported, toA, toB, want grid.Time }{
		{30 * ms, 10 * ms, 20 * ms, 30 * ms},
		{1 * ms, 100 * ms, 10 * ms, 45 * ms},   // "we are next door": it is 90 ms further from here
		{2000 * ms, 10 * ms, 20 * ms, 45 * ms}, // "nobody is far but us"
		{-1, 5, 5, 1},
		{grid.Never, LatencyMax, LatencyMax, LatencyMax},
	} {
		got, err := Believable(tt.reported, tt.toA, tt.toB)
		if got != tt.want || (err != nil) != (got != tt.reported) || err != nil && !errors.Is(err, ErrAbsurd) {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
	// A circle of peers that claim to be nearer to each other than any is to itself.
	m = NewMatrix(3)
	for _, p := range [][2]int{{0, 1}, {1, 2}, {2, 0}} {
		if err := m.Set(p[0], p[1], 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	parts := []Part{{0, 0, 1}, {1, 1, 1}, {2, 2, 1}}
	slowdown := func(ccr int64, m Network) int64 {
		v := View{Network: m, Penalty: wave}
		return v.Slowdown(&Request{CCR: ccr}, parts)
	}
	if got := slowdown(CCRMax, m); got != 0 {
		t.Errorf("slowdown of %d where between sites it is faster than within", got)
	}
	if got := slowdown(CCRMax+5, NewMatrix(3)); got != 0 { // nothing known: as far apart as within
		t.Errorf("slowdown of %d where nothing is known", got)
	}
	far := NewMatrix(3)
	for i := range 3 {
		if err := far.Set(i, i, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := slowdown(CCRMax, far); got < 1000 || got > PenaltyMax/1000 {
		t.Errorf("slowdown of %d thousandths at the longest latency", got)
	}
}
