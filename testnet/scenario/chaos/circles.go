package chaos

import (
	"slices"

	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// circleWatch looks at with which sites each site gossips:
//
//   - siblings are so mutually, for longer than it takes to be told, while all is well (D-6);
//   - whoever has said no, or was given up, is not asked again at once.
type circleWatch struct {
	n       *testnet.Network
	checks  *testnet.Checker
	alive   *aliveWatch
	turns   int
	circles map[int][]grid.SiteID // of each site, as last seen
	came    map[int]grid.Time     // when a site last came up
	asked   map[circled]grid.Time // when a site last asked another, which is no sibling of it, to be one, or lost it
	lone    map[circled]grid.Time // since when a site has had a sibling that does not have it
}

// circled is a site and another one.
type circled struct {
	at int
	of grid.SiteID
}

// The bounds of a circleWatch.
const (
	circleTurns = 32               // it looks at one turn of so many
	circleMost  = 40 * grid.Minute // for which the one may believe what the other does not: a calm site says seldom that it is there
	againLeast  = 4 * grid.Minute  // between two questions to who has said no
)

// watchCircles starts to watch.
func watchCircles(n *testnet.Network, c *testnet.Checker, alive *aliveWatch) {
	w := &circleWatch{n: n, checks: c, alive: alive, circles: make(map[int][]grid.SiteID), came: comings(n), asked: make(map[circled]grid.Time), lone: make(map[circled]grid.Time)}
	n.Observe(testnet.Observer{Turn: w.turn, Send: w.send, Fault: w.fault})
}

// fault: who comes up has no siblings yet.
func (w *circleWatch) fault(_ grid.Time, f *testnet.Fault) {
	if f.Healing() && f.Kind.Kills() {
		delete(w.circles, f.Sites[0])
	}
}

// send looks at whom a site asks to be its sibling. Whom it is to gossip with in any case it asks often.
func (w *circleWatch) send(now grid.Time, at int, to grid.SiteID, m grid.Message) {
	g, yes := m.(*sibling.Greet)
	s, up := scenario.SiteAt(w.n, at)
	if !yes || g.Kin || !up {
		return
	}
	circle := s.Siblings()
	w.lost(now, at, circle)
	if slices.Contains(circle, to) { // it is asked whether it is there
		return
	}
	key := circled{at, to}
	if last, ever := w.asked[key]; ever && last >= w.came[at] && now-last < againLeast && !w.alive.clocks.set(at) {
		w.checks.Violated("%s asks %s at %v to be its sibling, and did at %v, or was its sibling until then", w.n.ID(at), to, now, last)
	}
	w.asked[key] = now
}

// lost notes who is no sibling of a site any more.
func (w *circleWatch) lost(now grid.Time, at int, circle []grid.SiteID) {
	was := w.circles[at]
	if slices.Equal(was, circle) {
		return
	}
	for _, site := range was {
		if !slices.Contains(circle, site) {
			w.asked[circled{at, site}] = now
		}
	}
	w.circles[at] = circle
}

// turn looks at whether the siblings of a site have it as one.
func (w *circleWatch) turn(now grid.Time, at int) {
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	circle := s.Siblings()
	w.lost(now, at, circle)
	if w.turns++; w.turns%circleTurns != 0 || !w.alive.certain {
		return
	}
	for _, site := range circle {
		of, _ := w.n.Index(site)
		key := circled{at, site}
		other, up := scenario.SiteAt(w.n, of)
		since, lone := w.lone[key]
		switch {
		case !up || slices.Contains(other.Siblings(), w.n.ID(at)):
			delete(w.lone, key)
		case !lone || !w.alive.calm(since, at) || !w.alive.calm(since, of) || !w.alive.well(now, at) || !w.alive.well(now, of):
			w.lone[key] = now
		case now-since > circleMost:
			w.checks.Violated("%s has had %s as its sibling since %v, and not the other way round", w.n.ID(at), site, since)
		}
	}
}
