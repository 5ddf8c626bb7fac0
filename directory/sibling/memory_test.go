package sibling

import (
	"testing"

	"gridnode/grid"
)

// TestRemember: a circle that comes up again greets whom it remembers, measures nobody anew, and looks
// for others only if too few of them answer. Who remembers nobody looks at once.
func TestRemember(t *testing.T) {
	before := newLone(t, Config{Authority: "a", Size: 8}, "b", "c", "d", "e")
	before.step(grid.Second, "", &grid.Probed{To: "c", RoundTrip: 7})
	before.step(grid.Second, "", &grid.Provided{Key: before.rendez, Stored: true})
	memory := before.Memory()
	if err := memory.Check(); err != nil || len(memory.Siblings) != 4 || memory.Siblings[1] != (Known{"c", 7}) || memory.Announced != grid.Second {
		t.Fatalf("%+v (%v) is remembered", memory, err)
	}
	const now = 20 * grid.Minute
	for _, tt := range []struct {
		name    string
		memory  Memory
		answers []grid.SiteID
		tick    string // what the first tick has it do
		later   string // and the tick after lookAgain
	}{
		{"nothing", Memory{}, nil, "look", "look"},
		{"all answer", memory, []grid.SiteID{"b", "c", "d", "e"}, "greet c; greet b; greet d; greet e", ""},
		{"some answer", memory, []grid.SiteID{"c", "d", "e"}, "greet c; greet b; greet d; greet e", ""},
		{"few answer", memory, []grid.SiteID{"c"}, "greet c; greet b; greet d; greet e", "look"},
	} {
		l := newLone(t, Config{Authority: "a", Size: 8})
		l.Remember(now, tt.memory)
		if did := l.step(now, "", grid.Tick{}); did != tt.tick {
			t.Errorf("%s: it begins with %q, want %q", tt.name, did, tt.tick)
		}
		for _, site := range tt.answers {
			l.step(now+1, site, &Reply{Taken: true})
		}
		if did := l.step(now+lookAgain, "", grid.Tick{}); did != tt.later {
			t.Errorf("%s: then it does %q, want %q", tt.name, did, tt.later)
		}
		if c := l.member("c"); len(tt.answers) > 0 && (c == nil || c.distance != 7) {
			t.Errorf("%s: c is %+v", tt.name, c)
		}
	}
}

// TestRememberedAnnouncement: what the site announced before it went down need not be announced again.
func TestRememberedAnnouncement(t *testing.T) {
	for _, tt := range []struct {
		now, announced, least grid.Time
	}{
		{10 * grid.Minute, 0, 10*grid.Minute + announceLost},
		{10 * grid.Minute, grid.Minute, announceSpan - announceSpan/8},
		{3 * grid.Hour, grid.Minute, 3*grid.Hour + announceLost},
		{3 * grid.Hour, 9 * grid.Hour, 4*grid.Hour - announceSpan/8}, // by a clock that was ahead
	} {
		l := newLone(t, Config{Authority: "a"})
		l.Remember(tt.now, Memory{Siblings: []Known{{"b", 1}}, Announced: tt.announced})
		if at := l.announce; at < tt.least || at > tt.now+announceSpan {
			t.Errorf("at %v, announced at %v: it is again at %v", tt.now, tt.announced, at)
		}
	}
}

// TestMemoryCheck: what no circle remembers is refused, and as much as one may is not.
func TestMemoryCheck(t *testing.T) {
	most := Memory{Siblings: make([]Known, othersMax-1)}
	for i := range most.Siblings {
		most.Siblings[i].Site = grid.SiteID(make([]byte, siteMax))
	}
	if err := most.Check(); err != nil {
		t.Errorf("the most that a circle remembers: %v", err)
	}
	for _, m := range []Memory{
		{Announced: -1}, {Siblings: []Known{{"", 1}}}, {Siblings: []Known{{"b", -1}}}, {Siblings: append(most.Siblings, Known{"b", 1})},
		{Siblings: []Known{{grid.SiteID(make([]byte, siteMax+1)), 1}}},
	} {
		if m.Check() == nil {
			t.Errorf("%+v is taken", m)
		}
	}
}
