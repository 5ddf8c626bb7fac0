package directory

import (
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// gossiped returns the reports published and empties the outbox.
func gossiped(out *grid.Outbox) (loads []Load) {
	for _, e := range out.Effects {
		if e.Kind == grid.EffectPublish {
			loads = append(loads, out.Sends[e.Index].Message.(*LoadReport).Load)
		}
	}
	out.Reset()
	return loads
}

func TestLoadIsGossipedOnChange(t *testing.T) {
	d := newDirectory(Config{Topic: "load/das", GossipInterval: 2 * grid.Second, HeartbeatInterval: 30 * grid.Second})
	var out grid.Outbox
	d.SetLoad(10*grid.Second, Load{Free: 5}, &out)
	if out.Sends[0].To != "load/das" {
		t.Errorf("published on %q", out.Sends[0].To)
	}
	if got := gossiped(&out); len(got) != 1 || got[0].Free != 5 || got[0].Site != "me" || got[0].Sequence == 0 {
		t.Fatalf("first: %+v", got)
	}
	d.SetLoad(10*grid.Second+1, Load{Free: 6}, &out)
	d.SetLoad(10*grid.Second+2, Load{Free: 7}, &out)
	if got := gossiped(&out); len(got) != 0 {
		t.Errorf("within the interval: %+v", got)
	}
	if at := d.NextTimer(); at != 12*grid.Second {
		t.Fatalf("next timer at %v", at)
	}
	d.Step(12*grid.Second, grid.Tick{}, &out)
	if got := gossiped(&out); len(got) != 1 || got[0].Free != 7 || got[0].Issued != 12*grid.Second {
		t.Errorf("after the interval: %+v", got)
	}
	d.SetLoad(20*grid.Second, Load{Free: 7}, &out)
	if got := gossiped(&out); len(got) != 0 {
		t.Errorf("nothing new: %+v", got)
	}
	beats := 0
	for now := 12 * grid.Second; now < 612*grid.Second; {
		now = d.NextTimer()
		d.Step(now, grid.Tick{}, &out)
		beats += len(gossiped(&out))
	}
	if beats < 20 || beats > 24 {
		t.Errorf("%d heartbeats in ten minutes", beats)
	}
}

func TestNoTopicNoGossip(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	d.SetLoad(0, Load{Free: 5}, &out)
	if len(out.Effects) != 0 || d.NextTimer() != grid.Never {
		t.Errorf("%d effects, timer %v", len(out.Effects), d.NextTimer())
	}
}

func TestLoadReports(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	now := grid.Hour
	hear := func(from grid.SiteID, l Load) {
		d.Step(now, &grid.Delivery{From: from, Message: &LoadReport{Load: l}}, &out)
	}
	hear("a", Load{Site: "a", Free: 1, Sequence: 5, Issued: now})
	hear("a", Load{Site: "a", Free: 2, Sequence: 4, Issued: now})                 // late
	hear("a", Load{Site: "a", Free: 3, Sequence: 5, Issued: now})                 // a copy
	hear("b", Load{Site: "a", Free: 4, Sequence: 6, Issued: now})                 // of another site
	hear("a", Load{Site: "a", Free: 5, Sequence: 6, Issued: now + 2*skewMax})     // from the future
	hear("a", Load{Site: "a", Free: -1, Sequence: 7, Issued: now})                // nonsense
	hear("a", Load{Site: "a", Free: 6, Sequence: 8, QueuedWork: -1, Issued: now}) // nonsense
	if l, ok := d.Load("a"); !ok || l.Free != 1 {
		t.Errorf("knows %+v, %v", l, ok)
	}
	if d.Rejected != 4 {
		t.Errorf("rejected %d, want 4", d.Rejected)
	}
	hear("a", Load{Site: "a", Free: 9, Sequence: 9, Issued: now})
	if l, _ := d.Load("a"); l.Free != 9 {
		t.Errorf("knows %+v", l)
	}
	for i := range loadsMax + 5 {
		id := grid.SiteID(strings.Repeat("x", i%100+1)) + grid.SiteID(rune('0'+i/100))
		hear(id, Load{Site: id, Sequence: 1, Issued: now})
	}
	if len(d.gossip.loads.values) > loadsMax {
		t.Errorf("remembers %d sites", len(d.gossip.loads.values))
	}
}

func TestLoadReportOnTheWire(t *testing.T) {
	longest := grid.SiteID(strings.Repeat("x", siteMax))
	for _, tt := range []struct {
		name string
		from grid.SiteID
		load Load
		bad  bool
	}{
		{"good", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, false},
		{"most", "a", Load{"a", processorsMax, processorsMax, processorsMax, queuedMax, queuedWorkMax, grid.SpanMax, 1 << 63, grid.SpanMax, Headed{}, 0}, false},
		{"headed", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, headed, 0}, false},
		{"headed by nobody", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, headedBy("", 8, 4), 0}, true},
		{"headed, too many processors", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, headedBy("h", processorsMax+1, 4), 0}, true},
		{"headed, negative weight", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, headedBy("h", 8, -1), 0}, true},
		{"headed, too large a weight", "a", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, headedBy("h", 8, weightMax+1), 0}, true},
		{"somebody else's", "b", Load{"a", 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too many processors", "a", Load{"a", processorsMax + 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too wide", "a", Load{"a", 1, processorsMax + 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too much to spare", "a", Load{"a", 1, 1, processorsMax + 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too many jobs", "a", Load{"a", 1, 1, 1, queuedMax + 1, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too much work", "a", Load{"a", 1, 1, 1, 2, queuedWorkMax + 1, 6, 4, 5, Headed{}, 0}, true},
		{"endless wait", "a", Load{"a", 1, 1, 1, 2, 3, grid.SpanMax + 1, 4, 5, Headed{}, 0}, true},
		{"no sequence", "a", Load{"a", 1, 1, 1, 2, 3, 6, 0, 5, Headed{}, 0}, true},
		{"longest name", longest, Load{longest, 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, false},
		{"too long a name", longest + "x", Load{longest + "x", 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"no site", "", Load{"", 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
		{"too large", grid.SiteID(strings.Repeat("x", 600)), Load{grid.SiteID(strings.Repeat("x", 600)), 1, 1, 1, 2, 3, 6, 4, 5, Headed{}, 0}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frame, err := wire.Encode(&LoadReport{tt.load, 8})
			if err != nil {
				t.Fatal(err)
			}
			m, err := decodeFrame(&Gossip, tt.from, frame)
			if (err != nil) != tt.bad {
				t.Fatalf("%+v, %v", m, err)
			}
			if err == nil && m.(*LoadReport).Load != tt.load {
				t.Errorf("came back as %+v", m)
			}
		})
	}
}

// headed is what a member of a head tells.
var headed = headedBy("h", 8, 4)

func headedBy(head grid.SiteID, processors, weight int64) Headed {
	return Headed{Head: head, Name: "a's name", Processors: processors, Rating: grid.Rating{Speed: 7, Bandwidth: 9}, Weights: [3]int64{weight, 0, 1}}
}

// TestHeaded: a head finds those that consent to it, and no longer those that do not.
func TestHeaded(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	now := grid.Hour
	for i, site := range []grid.SiteID{"c", "a", "b", "d"} {
		l := Load{Site: site, Sequence: 1, Issued: now, Headed: headed}
		if i == 3 {
			l.Headed = headedBy("other", 8, 4)
		}
		d.Step(now, &grid.Delivery{From: site, Message: &LoadReport{Load: l}}, &out)
	}
	names := func() (s string) {
		for _, l := range d.Headed("h") {
			s += string(l.Site)
			if l.Heard != now {
				t.Errorf("%s was heard at %v, want %v", l.Site, l.Heard, now)
			}
		}
		return s
	}
	if got := names(); got != "abc" {
		t.Errorf("headed by h: %q, want abc", got)
	}
	d.Step(now, &grid.Delivery{From: "b", Message: &LoadReport{Load: Load{Site: "b", Sequence: 2, Issued: now}}}, &out)
	if got := names(); got != "ac" {
		t.Errorf("headed by h once b has left: %q, want ac", got)
	}
	if got := d.Headed(""); len(got) != 0 {
		t.Errorf("headed by nobody: %v", got)
	}
}

// TestWhoIsToldWhat: the head hears each change, watchers heartbeats, and the others what
// matters to them and a refreshment now and then; a new sibling is told alone.
func TestWhoIsToldWhat(t *testing.T) {
	siblings := []grid.SiteID{"head", "other", "watcher"}
	d := newDirectory(Config{
		GossipInterval: 2 * grid.Second, HeartbeatInterval: 30 * grid.Second, RefreshInterval: 10 * grid.Minute,
		Siblings: func() []grid.SiteID { return siblings }, Watchers: func() []grid.SiteID { return []grid.SiteID{"watcher"} },
	})
	var out grid.Outbox
	told := map[grid.SiteID]int{}
	last := map[grid.SiteID]*LoadReport{}
	sequence := uint64(0)
	take := func() {
		for _, s := range out.Sends {
			m := s.Message.(*LoadReport)
			told[s.To]++
			last[s.To] = m
			if m.Load.Sequence < sequence {
				t.Fatalf("report %d after %d", m.Load.Sequence, sequence)
			}
			sequence = m.Load.Sequence
		}
		out.Reset()
	}
	want := func(what string, head, watcher, other int) {
		t.Helper()
		if told["head"] < head || told["head"] > head+head/4 || told["watcher"] < watcher || told["watcher"] > watcher+watcher/4 || told["other"] != other {
			t.Errorf("%s: the head was told %d times, the watcher %d, the other %d; want %d, %d, %d", what, told["head"], told["watcher"], told["other"], head, watcher, other)
		}
		clear(told)
	}
	pass := func(until grid.Time) {
		for now := d.NextTimer(); now < until; now = d.NextTimer() {
			d.Step(now, grid.Tick{}, &out)
		}
		take()
	}
	load := Load{Free: 100, Widest: 100, Headed: headedBy("head", 8, 4)}
	now := grid.Hour
	d.SetLoad(now, load, &out)
	take()
	want("at first", 1, 1, 1)
	for site, again := range map[grid.SiteID]grid.Time{"head": 5 * grid.Second, "watcher": 5 * grid.Minute, "other": 10 * grid.Minute} {
		if last[site].Again != again {
			t.Errorf("%s is told again within %v, want %v", site, last[site].Again, again)
		}
	}
	pass(now + 8*grid.Minute)
	want("at rest", 96, 1, 0)
	pass(now + 10*grid.Minute)
	if told["other"] != 1 {
		t.Errorf("within ten minutes the other is told %d times, want once", told["other"])
	}
	clear(told)
	now = now + 10*grid.Minute
	load.Free = 70
	d.SetLoad(now, load, &out)
	pass(now + 2*grid.Second + 1)
	want("what matters to the head alone", 1, 0, 0)
	load.Free = 0
	d.SetLoad(now+3*grid.Second, load, &out)
	pass(now + 6*grid.Second)
	want("what matters to all", 1, 1, 1)
	siblings = append(siblings, "zoe")
	d.Resound(now+7*grid.Second, &out)
	take()
	if told["zoe"] != 1 || len(told) != 1 || last["zoe"].Load.Free != 0 {
		t.Errorf("a new sibling: %v were told", told)
	}
	clear(told)
	d.Unheard("other")
	d.Resound(now+8*grid.Second, &out)
	take()
	if told["other"] != 1 || len(told) != 1 {
		t.Errorf("a sibling that has forgotten: %v were told", told)
	}
}

// TestLoadThatGoesOnIsToldSlowly: a load that changes all the time, so that it matters, is
// told no more often than heartbeats in the long run, and at once after a rest.
func TestLoadThatGoesOnIsToldSlowly(t *testing.T) {
	d := newDirectory(Config{GossipInterval: 2 * grid.Second, HeartbeatInterval: 30 * grid.Second,
		Siblings: func() []grid.SiteID { return []grid.SiteID{"other"} }, Watchers: func() []grid.SiteID { return nil }})
	var out grid.Outbox
	now := grid.Hour
	for i := range int64(600) {
		d.SetLoad(now, Load{Free: i % 2}, &out)
		now += grid.Second + 1
	}
	if n := len(out.Sends); n < 15 || n > 30 {
		t.Errorf("%d reports in ten minutes", n)
	}
	out.Reset()
	d.SetLoad(now+grid.Hour, Load{Free: 8}, &out)
	if n := len(out.Sends); n != 1 {
		t.Errorf("%d reports after a rest, want 1", n)
	}
}

// TestHearersAreTold: a sibling that has not heard is told once, and once more when it hears as another.
func TestHearersAreTold(t *testing.T) {
	var g gossip
	for i, tt := range []struct {
		site grid.SiteID
		ear  int
		want bool
	}{{"a", others, true}, {"a", others, false}, {"b", others, true}, {"a", watchers, true}, {"a", watchers, false}, {"b", others, false}} {
		if got := g.enlist(tt.site, tt.ear); got != tt.want {
			t.Errorf("%d: %s is told %v, want %v", i, tt.site, got, tt.want)
		}
	}
	if len(g.hearers) != 2 {
		t.Errorf("hearers %v", g.hearers)
	}
}
