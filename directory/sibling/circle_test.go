package sibling

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// world is circles over a network in virtual time.
type world struct {
	t        *testing.T
	now      grid.Time
	rng      *rand.Rand
	queue    events
	sites    map[grid.SiteID]*place
	order    []grid.SiteID
	records  map[grid.Key][]grid.SiteID
	messages int
	latency  func(a, b *place) grid.Time
	seldom   grid.Time   // at which whoever is no watcher hears of a site; 0: like them
	cut      grid.SiteID // what it sends, and is sent, is lost
}

type place struct {
	id       grid.SiteID
	x        grid.Time
	circle   *Circle
	gossip   grid.Time
	refresh  grid.Time // when all hear of it
	changes  int
	messages int
	sampled  int
	drawn    int // random keys looked up
	asked    int // look-ups of the authority's records
	provided int // records put there
}

// gossip is what a site gossips.
type gossip struct {
	from    grid.SiteID
	refresh bool // to one that is no watcher
}

type event struct {
	at     grid.Time
	number int
	to     grid.SiteID
	in     grid.Input
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)   { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), sites: make(map[grid.SiteID]*place), records: make(map[grid.Key][]grid.SiteID),
		latency: func(a, b *place) grid.Time { return max(a.x-b.x, b.x-a.x) + grid.Millisecond },
	}
}

func (w *world) add(x grid.Time, cfg Config) *place {
	cfg.Self = grid.SiteID(fmt.Sprintf("s%04d", len(w.order)))
	c, err := New(cfg, rand.New(rand.NewPCG(9, uint64(len(w.order)))))
	if err != nil {
		w.t.Fatal(err)
	}
	p := &place{id: cfg.Self, x: x, circle: c, gossip: w.now + grid.Time(w.rng.Int64N(int64(30*grid.Second)))}
	w.sites[p.id], w.order = p, append(w.order, p.id)
	return p
}

func (w *world) push(after grid.Time, to grid.SiteID, in grid.Input) {
	w.messages++
	heap.Push(&w.queue, event{w.now + after, w.messages, to, in})
}

// carry carries out what a site orders.
func (w *world) carry(p *place, out *grid.Outbox) {
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			s := out.Sends[e.Index]
			p.messages++
			if w.cut != "" && (w.cut == p.id || w.cut == s.To) {
				continue
			}
			if to := w.sites[s.To]; to == nil {
				w.push(grid.Millisecond, p.id, &grid.Undelivered{To: s.To, Message: s.Message})
			} else {
				w.push(w.latency(p, to), s.To, &grid.Delivery{From: p.id, Message: s.Message})
			}
		case grid.EffectProbe:
			to := out.Probes[e.Index]
			trip := grid.Time(-1)
			if w.sites[to] != nil {
				trip = 2 * w.latency(p, w.sites[to])
			}
			w.push(max(trip, grid.Second), p.id, &grid.Probed{To: to, RoundTrip: trip})
		case grid.EffectClosest:
			p.drawn++
			var some []grid.SiteID
			for range 20 {
				if id := w.order[w.rng.IntN(len(w.order))]; !slices.Contains(some, id) && w.sites[id] != nil {
					some = append(some, id)
				}
			}
			w.push(50*grid.Millisecond, p.id, &grid.Closest{Key: out.Keys[e.Index], Peers: some})
		case grid.EffectProvide:
			p.provided++
			key := out.Keys[e.Index]
			if !slices.Contains(w.records[key], p.id) {
				w.records[key] = append(w.records[key], p.id)
			}
			w.push(50*grid.Millisecond, p.id, &grid.Provided{Key: key, Stored: true})
		case grid.EffectProviders:
			p.asked++
			key := out.Keys[e.Index]
			others := slices.DeleteFunc(slices.Clone(w.records[key]), func(id grid.SiteID) bool { return id == p.id })
			w.push(50*grid.Millisecond, p.id, &grid.Providers{Key: key, Peers: others[:min(len(others), grid.ProvidersMax)]})
		}
	}
	for _, in := range out.Locals {
		switch in := in.(type) {
		case *Changed:
			p.changes++
		case *Sampled:
			p.sampled += len(in.Sites)
		}
	}
}

// run lets time pass. Every half minute each site gossips.
func (w *world) run(until grid.Time) {
	for w.now < until {
		next := until
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		for _, p := range w.sites {
			w.timed(p.circle)
			next = min(next, p.circle.NextTimer(), p.gossip)
		}
		w.now = max(w.now, next)
		for len(w.queue) > 0 && w.queue[0].at <= w.now {
			e := heap.Pop(&w.queue).(event)
			p := w.sites[e.to]
			if p == nil {
				continue
			}
			out := &grid.Outbox{}
			if in, ok := e.in.(*gossip); ok {
				again := 30 * grid.Second
				if in.refresh && w.seldom > 0 {
					again = w.seldom
				}
				p.circle.Heard(w.now, in.from, again, out)
			} else {
				p.circle.Step(w.now, e.in, out)
			}
			w.carry(p, out)
		}
		for _, id := range w.order {
			p := w.sites[id]
			if p == nil {
				continue
			}
			if p.gossip <= w.now {
				p.gossip += 30 * grid.Second
				all := w.seldom == 0 || p.refresh <= w.now
				if all {
					p.refresh = w.now + w.seldom
				}
				for _, to := range p.circle.Members() {
					switch {
					case w.cut != "" && (w.cut == id || w.cut == to):
					case !slices.Contains(p.circle.Watchers(), to) && !all:
					case w.sites[to] != nil:
						w.push(w.latency(p, w.sites[to]), to, &gossip{id, !slices.Contains(p.circle.Watchers(), to)})
					default:
						out := &grid.Outbox{}
						p.circle.Lost(w.now, to, out)
						w.carry(p, out)
					}
				}
			}
			if p.circle.NextTimer() <= w.now {
				out := &grid.Outbox{}
				p.circle.Step(w.now, grid.Tick{}, out)
				w.carry(p, out)
			}
		}
	}
}

// timed compares what a circle notes about its members with the members.
func (w *world) timed(c *Circle) {
	at, sieve := min(c.next, c.mend, c.sample, c.round), uint64(0)
	for i := range c.members {
		at, sieve = min(at, c.members[i].due), sieve|sieveOf(c.members[i].site)
	}
	if got := c.NextTimer(); got != at || c.sieve != sieve {
		w.t.Fatalf("%s needs a Tick at %v and sifts by %x, want %v and %x", c.cfg.Self, got, c.sieve, at, sieve)
	}
}

// check wants circles to be bounded and mutual, and returns the mean number of siblings.
func (w *world) check(least int) float64 {
	w.t.Helper()
	sum, n := 0, 0
	for _, p := range w.sites {
		members := p.circle.Members()
		if len(members) > SizeDefault-1 || len(members) < least {
			w.t.Errorf("%s has %d siblings, want %d to %d", p.id, len(members), least, SizeDefault-1)
		}
		for _, m := range members {
			if other := w.sites[m]; other == nil || !slices.Contains(other.circle.Members(), p.id) {
				w.t.Errorf("%s takes %s for a sibling, which does not", p.id, m)
			}
		}
		sum += len(members)
		n++
	}
	return float64(sum) / float64(n)
}

// TestAuthoritiesAreGroups: all sites of an authority of eight are siblings of each
// other, and of nobody else.
func TestAuthoritiesAreGroups(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 40 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Authority: fmt.Sprint("authority ", i/8)})
	}
	w.run(5 * grid.Minute)
	if mean := w.check(7); mean != 7 {
		t.Errorf("%v siblings, want 7", mean)
	}
	for i, id := range w.order {
		for _, m := range w.sites[id].circle.Members() {
			if j := slices.Index(w.order, m); i/8 != j/8 {
				t.Errorf("%s and %s of different authorities are siblings", id, m)
			}
		}
	}
}

// TestLargeAuthority: an authority of many sites has circles as well.
func TestLargeAuthority(t *testing.T) {
	w := newWorld(t, 1)
	for range 100 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Authority: "one"})
	}
	w.run(30 * grid.Minute)
	if mean := w.check(3); mean < 6 {
		t.Errorf("%v siblings on average", mean)
	}
	for _, of := range w.records {
		if len(of) > 100 {
			t.Errorf("%d sites announce themselves", len(of))
		}
	}
}

// TestAnnouncers: two siblings announce themselves for all, and another one does if one of them is lost, but
// neither if any other is lost nor a newcomer whom they name.
func TestAnnouncers(t *testing.T) {
	w := newWorld(t, 1)
	for range 7 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Authority: "one"})
	}
	w.run(3 * grid.Hour)
	announced := func(least, most int, by ...int) {
		t.Helper()
		for i, id := range w.order {
			p := w.sites[id]
			switch {
			case p == nil:
			case slices.Contains(by, i) && (p.provided < least || p.provided > most):
				t.Errorf("%s was announced %d times, want %d to %d", id, p.provided, least, most)
			case !slices.Contains(by, i) && p.provided > 0:
				t.Errorf("%s was announced %d times", id, p.provided)
			}
			if p != nil {
				p.provided = 0
			}
		}
	}
	for _, p := range w.sites {
		p.provided = 0 // as they came up who found nobody
	}
	w.run(w.now + 3*grid.Hour)
	announced(2, 5, 0, 1)
	delete(w.sites, w.order[6])
	w.run(w.now + 10*grid.Minute)
	announced(0, 1, 0, 1)
	w.add(0, Config{Authority: "one"})
	w.run(w.now + 10*grid.Minute)
	announced(0, 1, 0, 1)
	delete(w.sites, w.order[0])
	w.run(w.now + 10*grid.Minute)
	announced(1, 1, 2)
}

// TestNearSitesAreSiblings: without authorities, sites of one place find each other, and
// what a site says does not grow with the federation.
func TestNearSitesAreSiblings(t *testing.T) {
	for _, n := range []int{24, 96} {
		w := newWorld(t, 2)
		for i := range n {
			w.add(grid.Time(i%(n/8))*50*grid.Millisecond, Config{Samples: true}) // eight sites at each place
		}
		w.run(4 * grid.Hour)
		if mean := w.check(3); mean < 6 {
			t.Errorf("%d sites: %v siblings on average", n, mean)
		}
		near, all, changes, most := 0, 0, 0, 0
		for _, p := range w.sites {
			for _, m := range p.circle.Members() {
				all++
				if w.sites[m].x == p.x {
					near++
				}
			}
			changes += p.changes
			most = max(most, p.messages)
		}
		t.Logf("%d sites: %d of %d siblings are at the same place; %d changes, at most %d messages of a site in 4 h", n, near, all, changes, most)
		if near < all/2 {
			t.Errorf("%d sites: %d of %d siblings are at the same place", n, near, all)
		}
		if most > 400 {
			t.Errorf("%d sites: one has sent %d messages in 4 h", n, most)
		}
		for _, p := range w.sites {
			p.changes = 0
		}
		w.run(8 * grid.Hour)
		changes = 0
		for _, p := range w.sites {
			changes += p.changes
		}
		if changes > n {
			t.Errorf("%d sites: after 4 h circles have changed %d times in as many again", n, changes)
		}
	}
}

// TestNewcomers: one site more among circles that are full finds siblings.
func TestNewcomers(t *testing.T) {
	w := newWorld(t, 3)
	for range 64 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Samples: true})
	}
	w.run(30 * grid.Minute)
	p := w.add(50*grid.Millisecond, Config{Samples: true})
	w.run(40 * grid.Minute)
	if n := len(p.circle.Members()); n < 3 {
		t.Errorf("the newcomer has %d siblings after ten minutes", n)
	}
	w.check(3)
}

// TestDeaths: who dies is replaced.
func TestDeaths(t *testing.T) {
	w := newWorld(t, 4)
	for range 64 {
		w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), Config{Samples: true})
	}
	w.run(30 * grid.Minute)
	for i, id := range w.order {
		if i%2 == 0 {
			delete(w.sites, id)
		}
	}
	w.run(60 * grid.Minute)
	w.check(3)
}

// TestFullCirclesRest: who is full looks up next to nothing, whether there are authorities
// or not, and who dies is found out and replaced as ever.
func TestFullCirclesRest(t *testing.T) {
	for _, free := range []bool{false, true} {
		w := newWorld(t, 6)
		for i := range 64 {
			cfg := Config{Samples: true}
			if !free {
				cfg.Authority = fmt.Sprint("authority ", i/8)
			}
			w.add(grid.Time(w.rng.Int64N(int64(100*grid.Millisecond))), cfg)
		}
		w.run(10 * grid.Minute)
		for _, p := range w.sites {
			p.drawn, p.asked = 0, 0
		}
		w.run(10*grid.Minute + 8*grid.Hour)
		for _, p := range w.sites {
			if n := len(p.circle.Members()); n < SizeDefault-1 && !free {
				t.Errorf("%s has %d siblings", p.id, n)
			} else if n == SizeDefault-1 && p.drawn > 6 || p.asked > 10 {
				t.Errorf("%s, free %t, with %d siblings: %d random keys and %d times the authority's records looked up in 8 h", p.id, free, n, p.drawn, p.asked)
			}
		}
		dead := w.order[0]
		delete(w.sites, dead)
		w.run(w.now + 4*grid.Minute)
		for _, p := range w.sites {
			if slices.Contains(p.circle.Members(), dead) {
				t.Errorf("%s still takes %s for a sibling", p.id, dead)
			}
		}
		if free {
			w.run(w.now + 20*grid.Minute)
			w.check(3)
		}
	}
}

// TestStandIn: a sibling that is lost is replaced by a site that is known, and nothing is
// looked up for that.
func TestStandIn(t *testing.T) {
	c, err := New(Config{Self: "me", Size: 2}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	out := &grid.Outbox{}
	step := func(now grid.Time, in grid.Input) (keys int, greeted []grid.SiteID) {
		out.Reset()
		c.Step(now, in, out)
		for _, s := range out.Sends {
			if _, ok := s.Message.(*Greet); ok {
				greeted = append(greeted, s.To)
			}
		}
		return len(out.Keys), greeted
	}
	step(0, grid.Tick{})
	step(0, &grid.Closest{Key: c.key, Peers: []grid.SiteID{"a", "b"}})
	step(0, grid.Tick{}) // both are measured
	step(grid.Second, &grid.Probed{To: "a", RoundTrip: grid.Millisecond})
	step(grid.Second, &grid.Probed{To: "b", RoundTrip: 2 * grid.Millisecond})
	if _, greeted := step(2*grid.Second, grid.Tick{}); !slices.Equal(greeted, []grid.SiteID{"a"}) {
		t.Fatalf("%v were greeted, want a", greeted)
	}
	step(2*grid.Second, &grid.Delivery{From: "a", Message: &Reply{Taken: true}})
	now := grid.Hour
	for c.next <= now { // the look-up of a circle that is full
		c.Alive(c.next, "a")
		step(c.next, grid.Tick{})
	}
	c.Alive(now, "a")
	step(now, &grid.Undelivered{To: "a", Message: &Greet{}})
	keys, greeted := step(now, grid.Tick{})
	if keys != 0 || !slices.Equal(greeted, []grid.SiteID{"b"}) {
		t.Fatalf("%d look-ups, and %v were greeted; want none, and b", keys, greeted)
	}
	step(now, &grid.Delivery{From: "b", Message: &Reply{Taken: true}})
	if keys, _ := step(now+lookAgain, grid.Tick{}); keys != 0 || !slices.Equal(c.Members(), []grid.SiteID{"b"}) {
		t.Errorf("%d look-ups; siblings are %v", keys, c.Members())
	}
	step(now+lookAgain, &grid.Undelivered{To: "b", Message: &Greet{}})
	step(now+lookAgain, grid.Tick{})
	if keys, _ := step(now+2*lookAgain, grid.Tick{}); keys != 1 {
		t.Errorf("%d look-ups when nobody is left, want 1", keys)
	}
}

// TestKin: kin are siblings beyond the size, of another authority, and though only the one
// that is headed knows them.
func TestKin(t *testing.T) {
	w := newWorld(t, 5)
	head := w.add(0, Config{Authority: "a", Heads: true})
	for range 8 {
		w.add(0, Config{Authority: "a"})
	}
	for range 12 {
		p := w.add(0, Config{Authority: "b"})
		out := &grid.Outbox{}
		p.circle.SetKin(0, []grid.SiteID{head.id}, out)
		w.carry(p, out)
	}
	w.run(2 * grid.Minute)
	if n := head.circle.count(true); n != 12 {
		t.Errorf("the head hears %d sites, want 12", n)
	}
	if n := head.circle.count(false); n > 7 {
		t.Errorf("the head has %d siblings besides", n)
	}
}

// TestKinOfAnotherAuthority: whom a site hears across authorities does not make it greet
// the siblings of that one, who would not take it.
func TestKinOfAnotherAuthority(t *testing.T) {
	w := newWorld(t, 6)
	var first *place
	for i := range 16 {
		p := w.add(0, Config{Authority: []string{"a", "b"}[i/8]})
		if i == 0 {
			first = p
		}
	}
	last := w.sites[w.order[15]]
	w.run(grid.Minute) // the authorities have their siblings
	for _, pair := range [][2]*place{{first, last}, {last, first}} {
		out := &grid.Outbox{}
		pair[0].circle.SetKin(w.now, []grid.SiteID{pair[1].id}, out)
		w.carry(pair[0], out)
	}
	w.run(12 * grid.Minute)
	for _, p := range []*place{first, last} {
		if p.circle.count(true) != 1 || p.circle.count(false) != 7 {
			t.Errorf("%s has %d kin and %d siblings, want 1 and 7", p.id, p.circle.count(true), p.circle.count(false))
		}
		for i := range p.circle.names {
			t.Errorf("%s knows %s, which is of the other authority", p.id, p.circle.names[i].site)
		}
	}
}

// TestMessagesSurviveTheWire: what is sent is what arrives, and nothing beyond the
// bounds does.
func TestMessagesSurviveTheWire(t *testing.T) {
	body := func(frame []byte) []byte { // behind its length
		_, n := binary.Uvarint(frame)
		return frame[n:]
	}
	longest := grid.SiteID(strings.Repeat("x", siteMax))
	for _, m := range []wire.Message{
		&Greet{}, &Greet{"a", true, true}, &Greet{Authority: strings.Repeat("a", AuthorityMax)}, &Reply{}, &Reply{true, []grid.SiteID{"x", "y"}, "z"},
		&Reply{Others: slices.Repeat([]grid.SiteID{"x"}, othersMax)}, &Reply{Others: []grid.SiteID{longest}, Missed: longest},
	} {
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Protocol.Decode("z", body(frame)); err != nil || fmt.Sprint(back) != fmt.Sprint(m) {
			t.Errorf("%v came back as %v, %v", m, back, err)
		}
	}
	for _, m := range []wire.Message{
		&Greet{Authority: strings.Repeat("a", AuthorityMax+1)}, &Reply{Others: make([]grid.SiteID, 1)},
		&Reply{Others: slices.Repeat([]grid.SiteID{"x"}, othersMax+1)}, &Reply{Others: []grid.SiteID{longest + "x"}},
		&Reply{Missed: longest + "x"},
	} {
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Protocol.Decode("z", body(frame)); err == nil {
			t.Errorf("%v was taken", back)
		}
	}
	for _, decode := range Protocol.Decoders {
		if back, err := decode("z", []byte{0xff}); err == nil || back != nil {
			t.Errorf("what is no message was taken as %v, %v", back, err)
		}
	}
}
