package directory

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// tester is what a network needs of a testing.T, a testing.B or a rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// network is a small virtual network of directories with a router that knows
// everything: it names the sites that are truly nearest to a key.
type network struct {
	t      tester
	now    grid.Time
	rng    *rand.Rand
	cfg    Config
	sites  []*site // in the order in which they came, dead ones included
	byID   map[grid.SiteID]*site
	events events
	order  int

	loss, twice float64                         // chances that a message is lost, delivered twice
	latency     grid.Time                       // mean one-way latency; each message has 0.5 to 1.5 times that
	silent      bool                            // senders do not learn that a site is down
	cut         func(from, to grid.SiteID) bool // whose messages are lost; nil: nobody's

	counter wire.Counter
	asked   map[grid.SiteID]int // look-ups by site
	out     grid.Outbox
	found   map[found]*Found
	onSend  func(from, to grid.SiteID, m grid.Message)
	lies    map[grid.SiteID]func(*Page) *Page // what these sites make of their pages; nil: a stream that breaks
}

type found struct {
	site grid.SiteID
	id   QueryID
}

type site struct {
	id   grid.SiteID
	key  grid.Key
	dir  *Directory
	down bool
	want *Quote // what it offers, as it was last set; nil if nothing
}

type event struct {
	at    grid.Time
	order int
	to    *site
	dir   *Directory // the event is void once the site has another
	in    grid.Input // nil: a timer
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func newNetwork(t tester, seed uint64, cfg Config) *network {
	return &network{
		t: t, rng: rand.New(rand.NewPCG(seed, 99)), cfg: cfg, byID: map[grid.SiteID]*site{},
		latency: 20 * grid.Millisecond, found: map[found]*Found{}, asked: map[grid.SiteID]int{},
	}
}

// join adds a site that knows nobody.
func (n *network) join() *site {
	id := grid.SiteID(fmt.Sprintf("s%04d", len(n.sites)))
	s := &site{id: id, key: sha256.Sum256([]byte(id))}
	n.sites = append(n.sites, s)
	n.byID[id] = s
	n.restart(s)
	return s
}

// restart gives a site a directory that has forgotten everything.
func (n *network) restart(s *site) {
	cfg := n.cfg
	cfg.Self = s.id
	s.dir = New(cfg, rand.New(rand.NewPCG(n.rng.Uint64(), 7)))
	s.down, s.want = false, nil
}

func (n *network) kill(s *site) { s.down, s.want = true, nil }

// offer is a quote that passes every check.
func (n *network) offer(s *site, price grid.Price, speed, free int64) Quote {
	return Quote{
		Site: s.id, Name: string(s.id), Resources: grid.Resources{Processors: 4096}, Rating: grid.Rating{Speed: speed, Bandwidth: 1000},
		Price: price, Free: free, Widest: free, Foreign: true,
	}
}

func (n *network) set(s *site, q Quote) {
	q.Issued = n.now
	s.want = &q
	s.dir.SetQuote(n.now, q, &n.out)
	n.carry(s)
}

func (n *network) withdraw(s *site) {
	s.want = nil
	s.dir.Withdraw(n.now, &n.out)
	n.carry(s)
}

func (n *network) step(s *site, in grid.Input) {
	s.dir.Step(n.now, in, &n.out)
	n.carry(s)
}

func (n *network) carry(s *site) {
	for _, e := range n.out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			send := n.out.Sends[e.Index]
			n.send(s, send.To, send.Message)
		case grid.EffectPublish:
			send := n.out.Sends[e.Index]
			for _, to := range n.sites {
				if to != s {
					n.post(to, n.delay(), &grid.Delivery{From: s.id, Message: send.Message})
				}
			}
		case grid.EffectClosest:
			n.asked[s.id]++
			n.post(s, 4*n.latency, &grid.Closest{Key: n.out.Keys[e.Index]})
		default:
			n.t.Fatalf("the directory ordered effect %d", e.Kind)
		}
	}
	for _, in := range n.out.Locals {
		f := in.(*Found)
		n.found[found{s.id, f.ID}] = f
	}
	n.out.Reset()
	heap.Push(&n.events, event{at: max(s.dir.NextTimer(), n.now), order: n.next(), to: s, dir: s.dir})
}

func (n *network) next() int { n.order++; return n.order }

func (n *network) delay() grid.Time { return n.latency/2 + grid.Time(n.rng.Int64N(int64(n.latency))) }

func (n *network) post(to *site, after grid.Time, in grid.Input) {
	heap.Push(&n.events, event{at: n.now + after, order: n.next(), to: to, dir: to.dir, in: in})
}

func (n *network) send(from *site, id grid.SiteID, m grid.Message) {
	to := n.byID[id]
	if to == nil || to == from {
		n.t.Fatalf("%s sends %T to %q", from.id, m, id)
	}
	n.counter.Sent(m.MessageKind(), 0)
	if p, ok := m.(*Page); ok && n.lies[from.id] != nil {
		lie := *p
		if p = n.lies[from.id](&lie); p == nil {
			return
		}
		m = p
	}
	if n.onSend != nil {
		n.onSend(from.id, id, m)
	}
	if to.down {
		if !n.silent {
			n.post(from, 2*n.latency, &grid.Undelivered{To: id, Message: m})
		}
		return
	}
	if n.rng.Float64() < n.loss || n.cut != nil && n.cut(from.id, id) {
		return
	}
	n.post(to, n.delay(), &grid.Delivery{From: from.id, Message: m})
	if n.rng.Float64() < n.twice {
		n.post(to, n.delay()*3, &grid.Delivery{From: from.id, Message: m})
	}
}

// run lets time pass.
func (n *network) run(span grid.Time) {
	end := n.now + span
	for len(n.events) > 0 && n.events[0].at <= end {
		n.one()
	}
	n.now = end
}

func (n *network) one() {
	e := heap.Pop(&n.events).(event)
	n.now = e.at
	s := e.to
	if s.down || s.dir != e.dir {
		return
	}
	if e.in == nil {
		if s.dir.NextTimer() <= n.now {
			n.step(s, grid.Tick{})
		}
		return
	}
	if c, ok := e.in.(*grid.Closest); ok {
		c.Peers = n.closest(c.Key, 20)
	}
	n.step(s, e.in)
}

func (n *network) closest(key grid.Key, k int) []grid.SiteID {
	type near struct {
		distance uint64 // its first bits, which differ
		site     *site
	}
	best := make([]near, 0, k+1) // ordered, at most k
	for _, s := range n.sites {
		if s.down {
			continue
		}
		x := near{binary.BigEndian.Uint64(key[:]) ^ binary.BigEndian.Uint64(s.key[:]), s}
		if len(best) == k && best[k-1].distance <= x.distance {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, x, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
		best = slices.Insert(best[:min(len(best), k-1)], i, x)
	}
	ids := make([]grid.SiteID, len(best))
	for i, x := range best {
		ids[i] = x.site.id
	}
	return ids
}

// find asks a site and waits for the answer.
func (n *network) find(s *site, q Query) *Found {
	n.t.Helper()
	id := s.dir.Find(n.now, q, &n.out)
	n.carry(s)
	for n.found[found{s.id, id}] == nil {
		if len(n.events) == 0 {
			n.t.Fatalf("%s got no answer to %+v", s.id, q)
		}
		n.one()
	}
	f := n.found[found{s.id, id}]
	delete(n.found, found{s.id, id})
	return f
}

// want returns the brute-force answer: what all sites offer that are up.
func (n *network) want(q Query) (ids []grid.SiteID) {
	var all []*Quote
	for _, s := range n.sites {
		if s.want != nil && q.Filter.Match(s.want) {
			all = append(all, s.want)
		}
	}
	slices.SortFunc(all, func(a, b *Quote) int {
		c := cmp.Or(cmp.Compare(a.value(q.Attribute), b.value(q.Attribute)), cmp.Compare(spreadOf(a.Site), spreadOf(b.Site)))
		if q.Descending {
			return -c
		}
		return c
	})
	for _, w := range all {
		if q.After != nil {
			if c := w.at(q.Attribute).Compare(q.After.at); c == 0 || (c < 0) != q.Descending {
				continue
			}
		}
		if q.Limit == 0 || len(ids) < q.Limit {
			ids = append(ids, w.Site)
		}
	}
	return ids
}

func ids(quotes []Quote) (ids []grid.SiteID) {
	for i := range quotes {
		ids = append(ids, quotes[i].Site)
	}
	return ids
}

// check compares an answer with the brute-force list.
func (n *network) check(s *site, q Query) *Found {
	n.t.Helper()
	f := n.find(s, q)
	want := n.want(q)
	if f.Err != nil || !slices.Equal(ids(f.Quotes), want) {
		n.t.Fatalf("at %v %s asked %+v\n got %v, %v\nwant %v", n.now, s.id, q, ids(f.Quotes), f.Err, want)
	}
	for i := range f.Quotes {
		got, want := &f.Quotes[i], n.byID[f.Quotes[i].Site].want
		if !got.sameTerms(want) || !got.sameLoad(n.now, want) {
			n.t.Fatalf("at %v %s got the quote %+v, want %+v", n.now, s.id, got, want)
		}
	}
	return f
}

// populate lets count sites join and publish, ten milliseconds apart.
func populate(n *network, count int, draw func(i int) (price grid.Price, speed, free int64)) {
	for i := range count {
		s := n.join()
		price, speed, free := draw(i)
		n.set(s, n.offer(s, price, speed, free))
		n.run(10 * grid.Millisecond)
	}
}

// anyone returns a site that is up.
func (n *network) anyone() *site {
	for {
		if s := n.sites[n.rng.IntN(len(n.sites))]; !s.down {
			return s
		}
	}
}

// any is an offer with random values.
func (n *network) any(int) (price grid.Price, speed, free int64) {
	return grid.Price(n.rng.Int64N(5_000_000)), 1 + n.rng.Int64N(1000), n.rng.Int64N(512)
}

// table1 is what the sites of Grid-Federation's table 1 offer, over and over, as in
// experiment 5: hundreds of sites share eight values.
func (n *network) table1(i int) (price grid.Price, speed, free int64) {
	prices := []grid.Price{4_840_000, 5_120_000, 3_980_000, 3_590_000, 5_300_000, 4_040_000, 4_160_000, 5_240_000}
	speeds := []int64{850, 900, 700, 630, 930, 710, 730, 920}
	return prices[i%8], speeds[i%8], n.rng.Int64N(1024)
}

// same is everybody at one price.
func (n *network) same(int) (price grid.Price, speed, free int64) { return 5_000_000, 100, 64 }

// falling is each site cheaper than the one before.
func (n *network) falling(i int) (price grid.Price, speed, free int64) {
	return grid.Price(100_000_000 - i*1000), int64(1 + i), int64(i)
}
