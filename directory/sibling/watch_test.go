package sibling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// group returns a group of eight in which only watchers hear a site often.
func group(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed)
	w.seldom = 10 * grid.Minute
	for range 8 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Authority: "one"})
	}
	w.run(10 * grid.Minute)
	w.check(7)
	return w
}

// TestWatchersAreARing: in a group of all with all each site is watched by one.
func TestWatchersAreARing(t *testing.T) {
	w := group(t, 1)
	for i, id := range w.order {
		if got := w.sites[id].circle.Watchers(); !slices.Equal(got, []grid.SiteID{w.order[(i+1)%8]}) {
			t.Errorf("%s is watched by %v", id, got)
		}
	}
}

// TestDeathIsNoticed: who dies is no sibling of anybody any more half a minute later,
// though most heard of it every ten minutes only; so is one that is cut off after Silence,
// where nothing comes back.
func TestDeathIsNoticed(t *testing.T) {
	for _, cut := range []bool{false, true} {
		var mean grid.Time
		const rounds = 20
		for seed := range uint64(rounds) {
			w := group(t, seed)
			dead := w.order[seed%8]
			w.run(w.now + grid.Time(w.rng.Int64N(int64(grid.Minute))))
			died := w.now
			if cut {
				w.cut = dead
			} else {
				delete(w.sites, dead)
			}
			noticed := func() (n int) {
				for id, p := range w.sites {
					if id != dead && !slices.Contains(p.circle.Members(), dead) {
						n++
					}
				}
				return n
			}
			for n := 0; n < 7; w.run(w.now + grid.Second) {
				if more := noticed() - n; more > 0 {
					n += more
					mean += grid.Time(more) * (w.now - died) / (7 * rounds)
				}
				if w.now-died > 200*grid.Second {
					t.Fatalf("seed %d, cut %t: %d of 7 have noticed after %v", seed, cut, n, w.now-died)
				}
			}
			if most := 45 * grid.Second; !cut && w.now-died > most {
				t.Errorf("seed %d: all have noticed after %v, want %v", seed, w.now-died, most)
			}
		}
		t.Logf("cut %t: noticed after %v on average", cut, mean)
	}
}

// TestSlanderIsInVain: a sibling that is said to be dead, and answers, stays one, and is
// asked once in askMin however often that is said.
func TestSlanderIsInVain(t *testing.T) {
	w := group(t, 3)
	liar, victim, p := w.order[1], w.order[2], w.sites[w.order[5]]
	before := p.messages
	for range 90 {
		w.push(grid.Millisecond, p.id, &grid.Delivery{From: liar, Message: &Reply{Taken: true, Missed: victim}})
		w.push(grid.Millisecond, p.id, &grid.Delivery{From: "stranger", Message: &Reply{Taken: true, Missed: w.order[3]}})
		w.run(w.now + 100*grid.Millisecond)
	}
	w.run(w.now + 30*grid.Second)
	if n := p.messages - before; n > 2 {
		t.Errorf("%d messages because of lies", n)
	}
	if !slices.Contains(p.circle.Members(), victim) {
		t.Error("the victim is no sibling any more")
	}
}

// TestForgetfulSiblingIsTold: a sibling that greets again has forgotten what it was told.
func TestForgetfulSiblingIsTold(t *testing.T) {
	w := group(t, 4)
	out := &grid.Outbox{}
	w.sites[w.order[0]].circle.Step(w.now, &grid.Delivery{From: w.order[4], Message: &Greet{Authority: "one"}}, out)
	told := slices.ContainsFunc(out.Locals, func(in grid.Input) bool {
		g, ok := in.(*Greeted)
		return ok && g.Site == w.order[4]
	})
	if !told {
		t.Error(fmt.Sprint("nobody is told of the greeting: ", out.Locals))
	}
}

// TestFewAnnounceThemselves: in a group of all with all two announce themselves for the
// others, who look nothing up; if they die others do, and newcomers find the group.
func TestFewAnnounceThemselves(t *testing.T) {
	w := group(t, 5)
	key := w.sites[w.order[0]].circle.rendez
	for round := range 3 {
		w.records[key] = nil
		for _, p := range w.sites {
			p.asked = 0
		}
		w.run(w.now + 3*grid.Hour)
		if round == 0 {
			asked := 0
			for _, p := range w.sites {
				asked += p.asked
			}
			if n := len(w.records[key]); n != announcers || asked > 4*announcers {
				t.Errorf("%d announce themselves, and the records were looked up %d times in 3 h", n, asked)
			}
		}
		for range announcers {
			delete(w.sites, w.order[round*announcers])
			delete(w.sites, w.order[round*announcers+1])
		}
		w.records[key] = nil // they have expired
		w.run(w.now + 5*grid.Minute)
		if n := len(w.records[key]); n < min(announcers, len(w.sites)) {
			t.Errorf("round %d: %d announce themselves after those who did have died", round, n)
		}
	}
	p := w.add(0, Config{Authority: "one"})
	w.run(w.now + 5*grid.Minute)
	if n := len(p.circle.Members()); n != len(w.sites)-1 {
		t.Errorf("a newcomer has %d siblings, want %d", n, len(w.sites)-1)
	}
}

// TestDeathIsNoReasonToLook: where all sites of an authority are siblings, one that dies has
// left nobody to find, so next to nothing is looked up; it is a sibling again when it comes
// back.
func TestDeathIsNoReasonToLook(t *testing.T) {
	w := group(t, 6)
	w.run(w.now + 2*grid.Hour)
	dead := w.order[3]
	delete(w.sites, dead)
	for _, p := range w.sites {
		p.asked = 0
	}
	w.run(w.now + 40*grid.Minute)
	asked := 0
	for _, p := range w.sites {
		if asked += p.asked; slices.Contains(p.circle.Members(), dead) {
			t.Errorf("%s still takes %s for a sibling", p.id, dead)
		}
	}
	if asked > 2*len(w.sites)+2*announcers {
		t.Errorf("the records were looked up %d times in 40 min by %d sites", asked, len(w.sites))
	}
	p := w.add(0, Config{Authority: "one"})
	w.run(w.now + grid.Minute)
	if n := len(p.circle.Members()); n != len(w.sites)-1 {
		t.Errorf("who comes in its place has %d siblings after a minute, want %d", n, len(w.sites)-1)
	}
}

// TestKinWatch: a sibling that becomes kin is one that the site is missed by, be it named here or there.
func TestKinWatch(t *testing.T) {
	l := newLone(t, Config{Heads: true}, "s1", "s2", "s3")
	if got := l.Watchers(); len(got) != 1 {
		t.Fatalf("watched by %v", got)
	}
	var out grid.Outbox
	l.SetKin(0, []grid.SiteID{"s1"}, &out)
	l.step(0, "s2", &Greet{Kin: true})
	if got := l.Watchers(); !slices.Equal(got, []grid.SiteID{"s1", "s2", "s3"}) {
		t.Errorf("watched by %v", got)
	}
}

// TestKinOfBefore: a site that was known before it is named as kin is greeted as that, and one that is kin no
// more is not.
func TestKinOfBefore(t *testing.T) {
	l := newLone(t, Config{Authority: "a", Size: 2}, "s1")
	l.step(0, "s1", &Reply{Taken: true, Others: []grid.SiteID{"s2"}})
	now := grid.Time(0)
	for ; l.round < grid.Never; now += grid.Second { // until nothing is to be done with those that are known
		l.step(now, "", grid.Tick{})
	}
	var out grid.Outbox
	l.SetKin(now, []grid.SiteID{"s2", "s3"}, &out)
	l.want("greet s2; greet s3", l.step(now, "", grid.Tick{}))
	l.step(now, "s2", &Reply{Taken: true}) // the other one does not answer
	l.SetKin(now, nil, &out)
	for end := now + retryPause - grid.Second; now < end; now = max(l.NextTimer(), now+1) {
		if got := l.step(now, "", grid.Tick{}); strings.Contains(got, "greet s2") || strings.Contains(got, "greet s3") {
			t.Fatalf("at %v: %s", now, got)
		}
	}
	if err := l.Audit(now); err != nil {
		t.Error(err)
	}
}
