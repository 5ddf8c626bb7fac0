package sibling

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// lone is the circle of "me", of which a test says what others say.
type lone struct {
	*Circle
	t *testing.T
}

func newLone(t *testing.T, cfg Config, siblings ...grid.SiteID) *lone {
	t.Helper()
	cfg.Self = "me"
	c, err := New(cfg, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	l := &lone{c, t}
	for _, site := range siblings {
		l.step(0, site, &Greet{Authority: cfg.Authority})
	}
	return l
}

// told says in words what the circle wants carried out.
func told(out *grid.Outbox) string {
	var words []string
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			s := out.Sends[e.Index]
			switch m := s.Message.(type) {
			case *Greet:
				words = append(words, "greet "+string(s.To))
			case *Reply:
				word := map[bool]string{true: "take ", false: "refuse "}[m.Taken]
				if m.Missed != "" {
					word = "warn of " + string(m.Missed) + " "
				}
				words = append(words, word+string(s.To)+fmt.Sprint(m.Others))
			}
		case grid.EffectProbe:
			words = append(words, "probe "+string(out.Probes[e.Index]))
		case grid.EffectClosest:
			words = append(words, "draw")
		case grid.EffectProviders:
			words = append(words, "look")
		case grid.EffectProvide:
			words = append(words, "announce")
		}
	}
	for _, in := range out.Locals {
		words = append(words, strings.Trim(fmt.Sprintf("%T", in)+fmt.Sprint(in)[1:], "*{}"))
	}
	return strings.Join(words, "; ")
}

// step gives the circle a message, or another input if it is of no site, and returns what it wants.
func (l *lone) step(now grid.Time, from grid.SiteID, in any) string {
	var out grid.Outbox
	if m, ok := in.(grid.Message); ok && from != "" {
		in = &grid.Delivery{From: from, Message: m}
	}
	l.Step(now, in, &out)
	return told(&out)
}

// want fails unless the circle does what is wanted.
func (l *lone) want(want, got string) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("it does %q, want %q", got, want)
	}
}

// TestConfigIsChecked: there is no circle that is out of bounds, and one that is at them.
func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{
		{Size: 1}, {Size: othersMax + 1}, {Silence: grid.Second - 1}, {Silence: grid.Day + 1}, {Authority: strings.Repeat("a", AuthorityMax+1)},
	} {
		if c, err := New(cfg, nil); err == nil || c != nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for _, cfg := range []Config{
		{}, {Size: 2}, {Size: othersMax}, {Silence: grid.Second}, {Silence: grid.Day}, {Authority: strings.Repeat("a", AuthorityMax)},
	} {
		if _, err := New(cfg, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestRoom: who greets is taken while there is room; then one that is poor, for whom the
// farthest makes room once in a while, and one that is nearer by half than that. Who is of
// another authority is told of nobody.
func TestRoom(t *testing.T) {
	l := newLone(t, Config{Size: 3, Authority: "one"})
	ordinary, poor := &Greet{Authority: "one"}, &Greet{Authority: "one", Poor: true}
	l.want("take a[]; sibling.Changed", l.step(0, "a", ordinary))
	l.want("take b[a]; sibling.Changed", l.step(0, "b", ordinary))
	l.want("take b[a]; sibling.Greeted{b", l.step(0, "b", ordinary))
	l.want("", l.step(0, "me", poor))
	l.want("refuse x[]", l.step(0, "x", &Greet{Authority: "two", Poor: true}))
	l.want("refuse c[a b]", l.step(0, "c", ordinary))
	l.want("refuse b[d]; take d[a]; sibling.Changed", l.step(0, "d", poor))
	l.want("refuse e[a d]", l.step(yieldPause-1, "e", poor))
	l.want("refuse d[e]; take e[a]; sibling.Changed", l.step(yieldPause, "e", poor))
	if l.name("c") == nil {
		t.Error("who was refused is not known")
	}
	if !slices.Equal(l.Members(), []grid.SiteID{"a", "e"}) {
		t.Errorf("siblings are %v", l.Members())
	}

	for site, trip := range map[grid.SiteID]grid.Time{"a": 100, "e": 50, "b": 51, "c": 50, "d": 49} {
		l.step(2*yieldPause, "", &grid.Probed{To: site, RoundTrip: trip})
		l.step(2*yieldPause, "", &grid.Probed{To: site, RoundTrip: -1})
		l.step(2*yieldPause, "", &grid.Probed{To: site, RoundTrip: grid.Second})
	}
	l.want("refuse b[a e]", l.step(2*yieldPause, "b", ordinary))
	l.want("refuse c[a e]", l.step(2*yieldPause, "c", ordinary))
	l.want("refuse a[d]; take d[e]; sibling.Changed", l.step(2*yieldPause, "d", ordinary))
}

// TestPace: a circle that has few siblings looks for more at spans that double, one that has
// half of them less often, and one that is full hardly at all.
func TestPace(t *testing.T) {
	for siblings, spans := range map[int][]grid.Time{
		2: {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1800, 1800},
		3: {1, 8, 64, 512, 1800, 1800},
		6: {1, 8, 64, 512, 1800, 1800},
		7: {1, 8, 64, 512, 4096, 4 * 3600, 4 * 3600},
	} {
		l := newLone(t, Config{}, []grid.SiteID{"a", "b", "c", "d", "e", "f", "g"}[:siblings]...)
		var now grid.Time
		for _, seconds := range append([]grid.Time{0}, spans...) {
			before := now
			now = l.next
			if span, most := now-before, seconds*grid.Second; span > most || span < most-most/8 {
				t.Errorf("%d siblings: looks after %v, want %v or a little less", siblings, span, most)
			}
			for _, site := range l.Members() {
				l.Alive(now, site)
			}
			if got := l.step(now, "", grid.Tick{}); !strings.Contains(got, "draw") {
				t.Errorf("%d siblings: it does %q", siblings, got)
			}
		}
	}
}

// TestSamples: a site of an authority that has use for samples draws them, ever less often,
// and learns nobody by that.
func TestSamples(t *testing.T) {
	drawn := []grid.SiteID{"me", "p", "q", "r", "s", "t"}
	for _, c := range []struct {
		cfg    Config
		learns bool
		said   string
	}{
		{Config{Authority: "one", Samples: true}, false, "sibling.Sampled{[p q r s]"},
		{Config{Samples: true}, true, "sibling.Sampled{[p q r s]"},
		{Config{}, true, ""},
	} {
		l := newLone(t, c.cfg)
		if got := l.step(0, "", grid.Tick{}); !strings.Contains(got, "draw") {
			t.Fatalf("%+v: it does %q", c.cfg, got)
		}
		key := l.key
		for i := 0; i < len(key); i += 8 {
			if [8]byte(key[i:]) == [8]byte{} {
				t.Errorf("%+v: it looks for %v", c.cfg, key)
			}
		}
		l.want("", l.step(1, "", &grid.Closest{Key: grid.Key{1}, Peers: drawn}))
		l.want(c.said, l.step(1, "", &grid.Closest{Key: key, Peers: drawn}))
		l.want("", l.step(1, "", &grid.Closest{Key: key, Peers: drawn}))
		if learnt := len(l.names) > 0; learnt != c.learns {
			t.Errorf("%+v: it knows %v", c.cfg, l.names)
		}
	}
	l := newLone(t, Config{Authority: "one", Samples: true})
	var now grid.Time
	for _, seconds := range []grid.Time{0, 10, 80, 640, 5120, 4 * 3600, 4 * 3600} {
		before := now
		now = l.sample
		if span, most := now-before, seconds*grid.Second; span > most || span < most-most/8 {
			t.Errorf("it draws after %v, want %v or a little less", span, most)
		}
		if got := l.step(now, "", grid.Tick{}); !strings.Contains(got, "draw") {
			t.Errorf("it does %q", got)
		}
	}
	if l = newLone(t, Config{Authority: "one"}); l.sample != grid.Never {
		t.Error("it draws samples for which nobody has use")
	}
}

// TestMissed: a sibling that does not gossip within the span that it said is asked at spans
// that double, the others are warned with the second question, and then it is none.
func TestMissed(t *testing.T) {
	for again, due := range map[grid.Time]grid.Time{
		0: grid.Minute, 32 * grid.Second: 35 * grid.Second, 320 * grid.Second: 332 * grid.Second,
		againMax + grid.Hour: againMax + againMax/32 + lateMin,
	} {
		l := newLone(t, Config{Size: 4}, "a", "b", "c")
		var out grid.Outbox
		l.Heard(0, "a", again, &out)
		l.next, l.mend = grid.Never, grid.Never
		for _, c := range []struct {
			after grid.Time
			want  string
		}{
			{0, "greet a"}, {10 * grid.Second, "warn of a b[b c]; warn of a c[b c]; greet a"}, {30 * grid.Second, "greet a"},
			{70 * grid.Second, "greet a"}, {120 * grid.Second, "refuse a[]; sibling.Changed"},
		} {
			now := due + c.after
			for _, at := range []grid.Time{now - 1, now} {
				l.Alive(at, "b")
				l.Alive(at, "c")
				l.round = grid.Never
				l.want(map[bool]string{true: c.want}[at == now], l.step(at, "", grid.Tick{}))
			}
		}
		if len(told(&out)) > 0 {
			t.Errorf("to a sibling that gossips it says %q", told(&out))
		}
	}
}

// TestParted: a sibling with whom the connection has ended is asked at once, and once; if nothing
// comes of that the others are warned, but those who know already.
func TestParted(t *testing.T) {
	l := newLone(t, Config{Size: 5}, "a", "b", "c", "d")
	now := grid.Second
	l.want("", l.step(now, "", &grid.Parted{Site: "x"}))
	l.want("greet a", l.step(now, "", &grid.Parted{Site: "a"}))
	l.want("", l.step(now, "", &grid.Parted{Site: "a"}))
	l.Alive(now, "a")
	l.want("greet a", l.step(now, "", &grid.Parted{Site: "a"}))
	l.want("", l.step(now, "b", &Reply{Taken: true, Others: []grid.SiteID{"c", "a"}, Missed: "a"}))
	l.want("", l.step(now, "c", &Reply{Taken: true, Others: []grid.SiteID{"b"}, Missed: "a"}))
	l.want("warn of a d[c a b d]; sibling.Changed", l.step(now, "", &grid.Undelivered{To: "a", Message: &Greet{}}))
	l.want("greet b", l.step(now, "", &grid.Parted{Site: "b"}))
	l.next, l.mend, l.round = grid.Never, grid.Never, grid.Never
	if at := l.NextTimer(); at != now+partedPause {
		t.Errorf("the next tick is due at %v, want %v", at, now+partedPause)
	}
	l.want("warn of b c[c d]; warn of b d[c d]; greet b", l.step(now+partedPause, "", grid.Tick{}))
}

// TestAttended: connections are kept with the siblings there are.
func TestAttended(t *testing.T) {
	l := newLone(t, Config{Size: 5}, "a", "b")
	for _, in := range []grid.Input{&grid.Delivery{From: "c", Message: &Greet{}}, &grid.Undelivered{To: "a", Message: &Greet{}}} {
		var out grid.Outbox
		l.Step(0, in, &out)
		if len(out.Attended) != 1 || !slices.Equal(out.Attended[0], l.Members()) {
			t.Errorf("after %T it attends to %v, its siblings are %v", in, out.Attended, l.Members())
		}
	}
}

// TestWarned: a sibling's word that another one seems to have died is reason to ask that one,
// but not to ask again soon, and who knows is not told.
func TestWarned(t *testing.T) {
	l := newLone(t, Config{Size: 5}, "a", "b", "c", "d")
	word := &Reply{Taken: true, Others: []grid.SiteID{"c"}, Missed: "a"}
	now := grid.Second
	l.want("", l.step(now, "x", word))
	l.want("", l.step(now, "b", &Reply{Taken: true, Missed: "x"}))
	l.want("greet a", l.step(now, "b", word))
	l.want("", l.step(now+askMin, "b", word)) // it has been asked, and has not answered
	l.Alive(now, "a")
	l.want("", l.step(now+askMin-1, "b", word))
	l.want("greet a", l.step(now+askMin, "b", word))
	var out grid.Outbox
	l.member("a").due = now + 2*askMin
	l.tick(now+2*askMin, &out)
	if got := told(&out); !strings.HasPrefix(got, "warn of a d[c b d]; greet a") {
		t.Errorf("it does %q", got)
	}
	out.Reset()
	l.Lost(now+2*askMin, "a", &out) // which all know already
	l.want("sibling.Changed", told(&out))
	out.Reset()
	l.Lost(now+2*askMin, "b", &out)
	l.want("warn of b c[c d]; warn of b d[c d]; sibling.Changed", told(&out))
	out.Reset()
	l.Heard(now+2*askMin, "b", 0, &out)
	l.want("refuse b[]", told(&out))
}

// TestAnnouncement: a site announces itself at once if it finds nobody, and else later, unless
// it is a sibling of others who do so for it, or there are many of them.
func TestAnnouncement(t *testing.T) {
	many := make([]grid.SiteID, announcedMax)
	for i := range many {
		many[i] = grid.SiteID(fmt.Sprint("n", i))
	}
	for _, c := range []struct {
		name            string
		siblings, found []grid.SiteID
		early, late     string
	}{
		{name: "nobody is there", early: "announce"},
		{name: "another is there", found: []grid.SiteID{"x"}, late: "announce"},
		{name: "one more is there than a few", found: many[1:], late: "announce"},
		{name: "many are there", found: many},
		{name: "it is the second sibling", siblings: []grid.SiteID{"a", "x"}, found: []grid.SiteID{"x"}, late: "announce"},
	} {
		l := newLone(t, Config{Authority: "one"}, c.siblings...)
		if got := l.step(0, "", grid.Tick{}); !strings.Contains(got, "look") {
			t.Fatalf("%s: at first it does %q", c.name, got)
		}
		if got := l.step(0, "", &grid.Providers{Key: l.rendez, Peers: c.found}); got != c.early {
			t.Errorf("%s: it does %q, want %q", c.name, got, c.early)
		}
		if c.early != "" {
			if l.announce > announceSpan || l.announce < announceSpan-announceSpan/8 {
				t.Errorf("%s: again at %v", c.name, l.announce)
			}
			l.step(grid.Second, "", &grid.Provided{Key: l.rendez, Stored: true})
			if l.announce < announceSpan/2 {
				t.Errorf("%s: again at %v, though it is there", c.name, l.announce)
			}
			l.step(grid.Second, "", &grid.Provided{Key: l.rendez})
			if want := grid.Second + announceSoon; l.announce != want || l.NextTimer() > want {
				t.Errorf("%s: after a failure again at %v, want %v", c.name, l.announce, want)
			}
			continue
		}
		if l.announce != announceLost || l.NextTimer() > announceLost {
			t.Errorf("%s: again at %v, want %v", c.name, l.announce, announceLost)
		}
		l.step(announceLost, "", grid.Tick{})
		if got := l.step(announceLost, "", &grid.Providers{Key: l.rendez, Peers: c.found}); got != c.late {
			t.Errorf("%s: after a minute it does %q, want %q", c.name, got, c.late)
		}
	}
	l := newLone(t, Config{Authority: "one", Size: 3}, "x", "y") // full: it looks how many there are every other time
	for i, want := range []string{"look", "announce", "look", "announce", "look", "look"} {
		now, out := l.announce, grid.Outbox{}
		if l.lookUp(now, &out); told(&out) != want {
			t.Errorf("announcement %d of a full circle begins with %q, want %q", i, told(&out), want)
		}
		if want == "look" {
			l.introduced = true
			l.step(now, "", &grid.Providers{Key: l.rendez, Peers: many[:min(1+i/4*announcedMax, announcedMax)]}) // at last there are many
		}
		if l.announce < now+announceSpan*7/8 {
			t.Errorf("announcement %d of a full circle at %v, the next at %v", i, now, l.announce)
		}
	}
	l = newLone(t, Config{Authority: "one"}, "a", "b") // two who do so for it
	l.step(0, "", grid.Tick{})
	l.want("", l.step(0, "", &grid.Providers{Key: l.rendez, Peers: many[:1]}))
	if l.announce < announceSpan/2 {
		t.Errorf("one for whom others do so announces itself at %v", l.announce)
	}
	now := l.announce - grid.Minute - 1
	l.Step(now, &grid.Undelivered{To: "a"}, &grid.Outbox{}) // nobody does so any more in its place
	if want := now + announceLost; l.announce != want || l.NextTimer() > want {
		t.Errorf("after one of those is lost it does so at %v, want %v", l.announce, want)
	}
}

// TestRounds: who is found is measured where there are more than there is room for, and then
// greeted, the nearest first; who does not answer keeps no place.
func TestRounds(t *testing.T) {
	const second = grid.Second
	l := newLone(t, Config{Size: 3, Authority: "one"})
	alone := func(now grid.Time, want string) { // only what a round does, when it wants one
		t.Helper()
		if l.next, l.mend = grid.Never, grid.Never; l.round != now {
			t.Errorf("the next round is at %v, want %v", l.round, now)
		}
		l.want(want, l.step(now, "", grid.Tick{}))
	}
	l.budget = 3
	l.step(0, "", &grid.Providers{Key: l.rendez, Peers: []grid.SiteID{"me", "a", "b", "c", "d", "e"}})
	alone(0, "probe a; probe b; probe c; probe d")
	l.step(second/2, "", &grid.Probed{To: "b", RoundTrip: 2})
	alone(second/2+second/4, "probe e")
	l.step(second-1, "", &grid.Probed{To: "c", RoundTrip: 1})
	alone(second+second/4-1, "") // a and d were measured longer ago, e was not
	l.step(second+second/4, "", &grid.Probed{To: "e", RoundTrip: 3})
	alone(second+second/2, "greet c; greet b")
	l.want("", l.step(5*second, "x", &Reply{Taken: true})) // whom nobody has greeted
	l.want("sibling.Changed", l.step(5*second, "c", &Reply{Taken: true, Others: []grid.SiteID{"b", "f"}}))
	alone(5*second, "probe f")
	alone(6*second, "") // there is a place for b only
	alone(11*second+second/2, "greet e")

	l = newLone(t, Config{Size: 3, Authority: "one"}) // there is room for all
	l.step(0, "", &grid.Providers{Key: l.rendez, Peers: []grid.SiteID{"a", "b"}})
	l.budget = 2
	alone(0, "greet a; greet b")

	// A circle that is full greets nobody but who is nearer by half.
	l = newLone(t, Config{Size: 2, Authority: "one"}, "z")
	l.budget = 1
	l.step(0, "", &grid.Providers{Key: l.rendez, Peers: []grid.SiteID{"a", "b"}})
	alone(0, "probe a; probe b; probe z")
	for site, trip := range map[grid.SiteID]grid.Time{"z": 8, "a": 4, "b": 3} {
		l.step(second, "", &grid.Probed{To: site, RoundTrip: trip})
	}
	alone(second, "greet b")
	alone(11*second, "") // that was all that it may greet
}

// TestLoss: a circle that has lost a sibling looks for others soon if nobody takes the place,
// but not time and again if it has half of those that it may have.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		pace, mend grid.Time
		siblings   []grid.SiteID
		look       grid.Time // after now
	}{
		{pace: 4 * grid.Second, mend: 4 * grid.Second, siblings: []grid.SiteID{"a", "b"}},
		{pace: grid.Minute, mend: lookAgain, siblings: []grid.SiteID{"a", "b"}},
		{pace: grid.Minute, mend: lookAgain, siblings: []grid.SiteID{"a", "b", "c", "d"}, look: lookMax - lookAgain},
	} {
		l := newLone(t, Config{Authority: "one"}, c.siblings...)
		l.last, l.look, l.next, l.pace = grid.Hour, grid.Day, grid.Day, c.pace
		l.Lost(grid.Hour, "a", &grid.Outbox{})
		if l.mend != grid.Hour+c.mend {
			t.Errorf("%+v: it wants a stand-in by %v", c, l.mend)
		}
		for _, site := range l.Members() {
			l.Alive(grid.Hour, site)
		}
		if got := l.step(l.mend, "", grid.Tick{}); strings.Contains(got, "look") != (c.look == 0) {
			t.Errorf("%+v: then it does %q", c, got)
		}
		if c.look > 0 && l.look != grid.Hour+c.mend+c.look || l.mend != grid.Never {
			t.Errorf("%+v: it looks at %v, and wants a stand-in by %v", c, l.look, l.mend)
		}
	}
}

// TestNames: as many sites are known as there is room for, those that are near, and of others
// those that have not been greeted.
func TestNames(t *testing.T) {
	var sites []grid.SiteID
	for i := range namesMax {
		sites = append(sites, grid.SiteID(fmt.Sprintf("n%02d", i)))
	}
	l := newLone(t, Config{Size: 3, Authority: "one"})
	l.SetKin(0, []grid.SiteID{"kin"}, &grid.Outbox{})
	l.step(0, "", &grid.Providers{Key: l.rendez, Peers: sites})
	l.name("n10").distance, l.name("n10").greeted = grid.Second, 5 // it is near
	l.name("n20").pending = true
	l.name("n30").greeted = 7
	l.name("n40").greeted = 9
	for i, want := range []grid.SiteID{"n40", "n30", "n63", "n62"} {
		l.learn(0, "n00", false) // is known
		l.learn(0, grid.SiteID(fmt.Sprintf("a%d", i)), false)
		if len(l.names) != namesMax+1 || l.name(want) != nil {
			t.Errorf("%d sites are known, %s is: %t", len(l.names), want, l.name(want) != nil)
		}
	}
	for _, site := range []grid.SiteID{"kin", "n10", "n20", "a3"} {
		if l.name(site) == nil {
			t.Errorf("%s is forgotten", site)
		}
	}
}

// TestKinIsBounded: a site has KinMax kin, is told of changes, and leaves who is none.
func TestKinIsBounded(t *testing.T) {
	l := newLone(t, Config{Size: 2}, "k010")
	var kin []grid.SiteID
	for i := range KinMax + 6 {
		kin = append(kin, grid.SiteID(fmt.Sprintf("k%03d", i)))
	}
	var out grid.Outbox
	l.SetKin(0, kin, &out)
	if got := l.step(0, "", grid.Tick{}); strings.Count(got, "greet") != KinMax-1 || len(told(&out)) > 0 {
		t.Errorf("of %d kin it greets %d", len(kin), strings.Count(got, "greet"))
	}
	l.SetKin(0, kin, &out)
	l.want("", told(&out))
	l.SetKin(0, kin[:10], &out)
	l.want("refuse k010[]; sibling.Changed", told(&out))

	// Of those that a head has not named it takes as many.
	l = newLone(t, Config{Size: 2, Heads: true})
	taken := 0
	for _, site := range kin {
		if strings.HasPrefix(l.step(0, site, &Greet{Authority: "two", Kin: true}), "take") {
			taken++
		}
	}
	if taken != KinMax {
		t.Errorf("%d kin were taken, want %d", taken, KinMax)
	}
}

// TestLargestReply: a reply is as large as it may be, and not larger.
func TestLargestReply(t *testing.T) {
	for _, size := range []int{messageMax, messageMax + 1} {
		body := binary.AppendUvarint(nil, 15<<3|2) // a field that nobody knows
		body = binary.AppendUvarint(body, uint64(size-3))
		body = append(body, make([]byte, size-len(body))...)
		m, err := Protocol.Decoders[wire.GossipReply]("z", body)
		if (err == nil) != (size <= messageMax) || (m == nil) != (err != nil) {
			t.Errorf("a reply of %d bytes is taken as %v, %v", size, m, err)
		}
	}
}
