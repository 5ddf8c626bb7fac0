package directory

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/directory/trie"
	"gridnode/grid"
)

func TestSmallFederations(t *testing.T) {
	for _, count := range []int{1, 2, 3, 4, 5, 6} {
		n := newNetwork(t, 1, Config{})
		populate(n, count, n.any)
		n.run(grid.Second)
		for a := range Attribute(attributes) {
			for _, s := range n.sites {
				n.check(s, Query{Attribute: a})
			}
		}
		n.run(20 * grid.Second)
		if f := n.check(n.sites[0], Query{}); count <= 4 && f.Messages != 0 {
			t.Errorf("%d sites, each of which holds all: %d messages", count, f.Messages)
		}
	}
}

func TestEmptyDirectory(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	for range 10 {
		n.join()
	}
	if f := n.check(n.sites[0], Query{}); !f.End {
		t.Errorf("there is more: %+v", f)
	}
}

// A site whose router knows nobody holds its own quote.
func TestRouterThatKnowsNobody(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	d.SetQuote(0, Quote{Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, &out)
	d.Find(0, Query{}, &out)
	for _, key := range slices.Clone(out.Keys) {
		d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"me"}}, &out)
	}
	if len(out.Locals) != 1 || len(out.Sends) != 0 {
		t.Fatalf("%d answers, %d messages", len(out.Locals), len(out.Sends))
	}
	if f := out.Locals[0].(*Found); len(f.Quotes) != 1 || f.Err != nil {
		t.Errorf("found %+v", f)
	}
}

// A site whose look-ups fail does not know that it is alone: it looks again, and its queries
// wait for that.
func TestFailedLookUpIsNoAnswer(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	d.SetQuote(0, Quote{Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, &out)
	d.Find(0, Query{}, &out)
	keys := slices.Clone(out.Keys)
	for now := grid.Time(0); now < 5*d.cfg.Timeout; now = d.NextTimer() {
		out.Reset()
		for _, key := range keys {
			d.Step(now, &grid.Closest{Key: key}, &out)
		}
		if len(out.Locals) != 0 || len(out.Keys) != 0 {
			t.Fatalf("at %v, nothing known: %d answers, %d look-ups at once", now, len(out.Locals), len(out.Keys))
		}
		for len(out.Keys) < len(keys) {
			if now = d.NextTimer(); now > 10*d.cfg.Timeout {
				t.Fatalf("%d look-ups after %v, want %d", len(out.Keys), now, len(keys))
			}
			d.Step(now, grid.Tick{}, &out)
		}
	}
	now := d.NextTimer()
	out.Reset()
	for _, key := range keys {
		d.Step(now, &grid.Closest{Key: key, Peers: []grid.SiteID{"me"}}, &out)
	}
	if len(out.Locals) != 1 {
		t.Errorf("%d answers, want 1 as it is known that nobody else is there", len(out.Locals))
	}
}

// A look-up is a query's if the query made the router be asked, and only then.
func TestQueryLookupsAreCounted(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	d.Find(0, Query{}, &out)
	d.Find(0, Query{}, &out) // waits for the same answer
	if d.QueryLookups != 1 || len(out.Keys) != 1 {
		t.Errorf("%d look-ups counted for two queries of one cell, %d ordered", d.QueryLookups, len(out.Keys))
	}
	d.SetQuote(0, Quote{Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, &out)
	if d.QueryLookups != 1 || len(out.Keys) < 2 {
		t.Errorf("%d look-ups counted for queries once a quote is published, %d ordered", d.QueryLookups, len(out.Keys))
	}
}

func TestFiltersAgainstList(t *testing.T) {
	n := newNetwork(t, 1, Config{CellMax: 8})
	populate(n, 100, n.any)
	n.run(grid.Minute)
	for range 200 {
		q := Query{Attribute: Attribute(n.rng.IntN(attributes)), Descending: n.rng.IntN(2) == 0, Limit: n.rng.IntN(30)}
		if n.rng.IntN(2) == 0 {
			q.Filter.PriceMax = grid.Price(n.rng.Int64N(5_000_000))
		}
		if n.rng.IntN(2) == 0 {
			q.Filter.SpeedMin = n.rng.Int64N(1000)
		}
		if n.rng.IntN(2) == 0 {
			q.Filter.FreeMin = n.rng.Int64N(512)
		}
		if n.rng.IntN(4) == 0 {
			q.Filter.ProcessorsMin = 4096
			q.Filter.ForeignOnly = true
		}
		n.check(n.anyone(), q)
	}
	if f := n.check(n.anyone(), Query{Filter: Filter{ProcessorsMin: 4097}}); !f.End || len(f.Quotes) != 0 {
		t.Errorf("found %+v", f)
	}
}

// Page after page, every quote comes exactly once.
func TestCursorGoesThroughEverything(t *testing.T) {
	for _, draw := range []func(n *network) func(int) (grid.Price, int64, int64){
		func(n *network) func(int) (grid.Price, int64, int64) { return n.any },
		func(n *network) func(int) (grid.Price, int64, int64) { return n.same },
	} {
		n := newNetwork(t, 1, Config{CellMax: 8})
		populate(n, 90, draw(n))
		n.run(grid.Minute)
		for a := range Attribute(attributes) {
			for _, down := range []bool{false, true} {
				all := n.want(Query{Attribute: a, Descending: down})
				var got []grid.SiteID
				q := Query{Attribute: a, Descending: down, Limit: 7}
				for {
					f := n.check(n.anyone(), q)
					got = append(got, ids(f.Quotes)...)
					if f.End {
						break
					}
					q.After = Behind(&f.Quotes[len(f.Quotes)-1], a)
				}
				if !slices.Equal(got, all) {
					t.Fatalf("%v down %v: %v, want %v", a, down, got, all)
				}
			}
		}
	}
}

// A query may begin amid quotes of equal value: it finds those on one side of the
// place, and then other values.
func TestAmidEqualQuotes(t *testing.T) {
	n := newNetwork(t, 1, Config{CellMax: 8})
	populate(n, 90, n.table1)
	n.run(grid.Minute)
	for range 100 {
		a, down, spread := Attribute(n.rng.IntN(attributes)), n.rng.IntN(2) == 0, n.rng.Uint64()
		s := n.anyone()
		q := Query{Attribute: a, Descending: down, After: Amid(s.want, a, spread)}
		f := n.check(n.anyone(), q)
		behind := 0
		for _, other := range n.sites {
			passed := q.After.Passed(other.want, down)
			if !passed {
				behind++
			}
			switch value, at := other.want.value(a), s.want.value(a); {
			case !Equal(other.want, s.want, a) && passed != (value < at != down),
				Equal(other.want, s.want, a) && passed != (Spread(other.id) <= spread != down):
				t.Errorf("%v down %v: a quote of %d is passed by amid %d: %v", a, down, value, at, passed)
			}
		}
		if len(f.Quotes) != behind {
			t.Errorf("%v down %v: found %d, %d are behind", a, down, len(f.Quotes), behind)
		}
	}
}

// Holders who cannot be reached, at once or by silence, make a query fail in time
// and say so; once they are back it succeeds.
func TestUnreachableHolders(t *testing.T) {
	for _, silent := range []bool{false, true} {
		n := newNetwork(t, 1, Config{})
		n.silent = silent
		populate(n, 30, n.any)
		n.run(grid.Minute)
		holders := n.closest(root(Price).key(""), 4)
		s := n.anyone()
		for slices.Contains(holders, s.id) {
			s = n.anyone()
		}
		if f := n.find(s, Query{}); !f.Certain { // it knows who holds the cell
			t.Errorf("silent %v: settled, but not certain", silent)
		}
		for _, x := range n.sites {
			if x != s {
				n.kill(x)
			}
		}
		begun := n.now
		f := n.find(s, Query{})
		if spent := n.now - begun; spent > queryTimeout*2*grid.Second || !silent && spent > 2*grid.Second {
			t.Errorf("silent %v: answered after %v", silent, spent)
		}
		if f.Certain {
			t.Errorf("silent %v: certain that %v are all", silent, ids(f.Quotes))
		}
		if f.Err == nil && (len(f.Quotes) > 1 || len(f.Quotes) == 1 && f.Quotes[0].Site != s.id) || f.Err != nil && !errors.Is(f.Err, ErrUnreachable) {
			t.Errorf("silent %v: found %v, %v", silent, ids(f.Quotes), f.Err)
		}
		if len(s.dir.seeker.queries) != 0 || s.dir.requests.open != 0 {
			t.Errorf("silent %v: %d queries and %d requests left", silent, len(s.dir.seeker.queries), s.dir.requests.open)
		}
		for _, x := range n.sites {
			if x != s {
				n.restart(x)
				n.set(x, n.offer(x, 5, 6, 7))
			}
		}
		n.run(n.cfg.Lifetime + 12*grid.Minute)
		n.check(s, Query{})
	}
}

// A router that never answers does not leave a query without an answer.
func TestRouterThatNeverAnswers(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	id := d.Find(0, Query{}, &out)
	at := d.NextTimer()
	d.Step(at, grid.Tick{}, &out)
	if len(out.Locals) != 1 || at > queryTimeout*d.cfg.Timeout {
		t.Fatalf("%d answers at %v", len(out.Locals), at)
	}
	if f := out.Locals[0].(*Found); f.ID != id || !errors.Is(f.Err, ErrUnreachable) {
		t.Errorf("found %+v", f)
	}
	if len(d.seeker.queries) != 0 || d.NextTimer() != grid.Never {
		t.Errorf("%d queries left, next timer %v", len(d.seeker.queries), d.NextTimer())
	}
}

// TestManyQueriesAreOverdue: each query that nobody answers ends, of many at once, too.
func TestManyQueriesAreOverdue(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	const queries = 5
	for range queries {
		d.Find(0, Query{}, &out)
	}
	d.Step(d.NextTimer(), grid.Tick{}, &out)
	if len(out.Locals) != queries || len(d.seeker.queries) != 0 {
		t.Errorf("%d queries of %d end, %d are left", len(out.Locals), queries, len(d.seeker.queries))
	}
}

// TestSilenceIsRemembered: an answer one of whose cells was silent is not whole, whoever answered since.
func TestSilenceIsRemembered(t *testing.T) {
	d := newDirectory(Config{})
	q := d.seeker.newQuery()
	q.begin()
	for i, heard := range []bool{true, false, true} {
		q.visit.heard, q.visit.mature = heard, false
		d.seeker.judge(q)
		if q.failed != (i >= 1) {
			t.Errorf("after visit %d (heard %v) it counts as failed: %v", i, heard, q.failed)
		}
	}
}

// TestEndedQueriesAreForgotten: what is noted of queries to give them up in time does not grow with all
// that there were, though there is always one under way.
func TestEndedQueriesAreForgotten(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	const most = 3 * queriesMax
	for i := range 3 * most {
		now := grid.Time(i) * grid.Second / 2 // some are always under way, as each takes as long until it is given up
		d.Find(now, Query{}, &out)
		d.Step(now, grid.Tick{}, &out)
		if n := len(d.seeker.queries); i > 1000 && n == 0 {
			t.Fatal("no query is under way")
		}
		if n := len(d.seeker.deadlines); n > most {
			t.Fatalf("after %d queries %d are noted", i+1, n)
		}
		out.Reset()
	}
}

func TestQueriesAreBounded(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	for i := range queriesMax + 1 {
		out.Reset()
		d.Find(0, Query{}, &out)
		if busy := len(out.Locals) == 1; busy != (i == queriesMax) {
			t.Fatalf("query %d: %d answers", i, len(out.Locals))
		}
	}
	if f := out.Locals[0].(*Found); !errors.Is(f.Err, ErrBusy) {
		t.Errorf("found %+v", f)
	}
}

func TestBadQueryPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative limit was accepted")
		}
	}()
	newDirectory(Config{}).Find(0, Query{Limit: -1}, &grid.Outbox{})
}

// figures are the messages that queries take.
type figures struct{ warm, cold, lookups float64 }

// Messages per query do not grow with the federation: a warm query of sixteen is
// one scan and one page, two of each if it crosses into the next cell, seldom three; a cold one
// follows at most as many cells down as the trie is deep, which is O(log n).
func TestMessagesPerQuery(t *testing.T) {
	for _, count := range []int{10, 50, 100, 300, 1000} {
		if count > 300 && !*large {
			break
		}
		n := newNetwork(t, 1, Config{})
		populate(n, count, n.table1)
		n.run(20 * grid.Minute) // what moved while it grew has expired
		for _, tt := range []struct {
			name string
			q    Query
			cold float64
		}{
			{"cheapest", Query{Limit: 16}, 4},
			{"fastest", Query{Attribute: Speed, Descending: true, Limit: 16}, 4},
			{"with room", Query{Filter: Filter{FreeMin: 1}, Limit: 16}, 4},
			{"from the middle", Query{Attribute: Speed, Filter: Filter{SpeedMin: 720}, Limit: 16}, 14},
		} {
			f := n.measure(tt.q)
			t.Logf("%4d sites, %-15s: warm %.1f messages, cold %.1f and %.1f look-ups", count, tt.name, f.warm, f.cold, f.lookups)
			if f.warm > 4.5 || f.cold > tt.cold {
				t.Errorf("%d sites, %s: warm %.1f messages, at most 4.5; cold %.1f, at most %.0f", count, tt.name, f.warm, f.cold, tt.cold)
			}
		}
	}
}

// measure asks the same twice at each of fifty sites: cold, as if it had just
// joined, and warm.
func (n *network) measure(q Query) (f figures) {
	const times = 50
	for range times {
		s := n.anyone()
		for a := range s.dir.maps {
			s.dir.maps[a].Reset()
		}
		s.dir.rings.list = nil
		before := n.asked[s.id]
		f.cold += float64(n.check(s, q).Messages) / times
		f.lookups += float64(n.asked[s.id]-before) / times
		f.warm += float64(n.check(s, q).Messages) / times
	}
	return f
}

// A cell without a mature holder is new: some of its quotes may still be in the
// cell that it was split off.
func TestCellsAboveAYoungOneAreAsked(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	x := trie.PrefixOf(quoteAt("a", 5, 1, 0).at(Price), 3)
	d.maps[Price].Refresh(0, grid.Hour)
	d.maps[Price].Add(x)
	d.Find(0, Query{After: &Cursor{Price, x.Bits}, Filter: Filter{PriceMax: 6}}, &out)
	for range 20 {
		if len(out.Locals) > 0 {
			break
		}
		keys, sends := slices.Clone(out.Keys), slices.Clone(out.Sends)
		out.Reset()
		for _, key := range keys {
			d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"holder"}}, &out)
		}
		for _, s := range sends {
			scan := s.Message.(*Scan)
			p := &Page{Token: scan.Token, Cell: scan.Cell, Held: true, Quotes: []*Quote{quoteAt("moved", 5, 1, 0)}}
			if scan.Cell == root(Price) {
				p.Mature, p.Quotes = true, []*Quote{quoteAt("stray", 6, 1, 0)}
			}
			d.Step(0, &grid.Delivery{From: s.To, Message: p}, &out)
		}
	}
	if len(out.Locals) != 1 {
		t.Fatalf("%d answers", len(out.Locals))
	}
	if f := out.Locals[0].(*Found); !slices.Equal(ids(f.Quotes), []grid.SiteID{"moved", "stray"}) {
		t.Errorf("found %v, %v", ids(f.Quotes), f.Err)
	}
}

// A query that has a tie to look for ends with the first cell's quotes if they are of
// one value, and else goes on to its limit.
func TestTieEndsAQuery(t *testing.T) {
	n := newNetwork(t, 1, Config{CellMax: 16})
	populate(n, 200, func(i int) (grid.Price, int64, int64) { return 1000, int64(1 + i/4), 10 })
	n.run(grid.Minute)
	s := n.anyone()
	for _, tt := range []struct {
		q     Query
		least int
		most  int
	}{
		{Query{Limit: 60}, 60, 60},
		{Query{Limit: 60, Tie: 4}, 4, 59},
		{Query{Limit: 60, Tie: 4, Attribute: Speed}, 60, 60},
		{Query{Limit: 3, Tie: 4}, 3, 3},
	} {
		f := n.find(s, tt.q)
		if f.Err != nil || len(f.Quotes) < tt.least || len(f.Quotes) > tt.most || f.End {
			t.Errorf("%+v: %d quotes, end %v, error %v; want %d to %d", tt.q, len(f.Quotes), f.End, f.Err, tt.least, tt.most)
		}
	}
}

// A place drawn around another one is in the same cell, and among quotes of the same
// value; with one cell, anywhere among these.
func TestAroundStaysInTheCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDirectory(Config{})
		q := quoteAt("x", grid.Price(rapid.Int64Range(0, 1<<40).Draw(t, "price")), 1, 0)
		place, random := rapid.Uint64().Draw(t, "place"), rapid.Uint64().Draw(t, "random")
		at := trie.PositionOf(q.value(Price), place)
		d.maps[Price].Reset()
		if got := d.Around(q, Price, place, random); got != random {
			t.Fatalf("%x in the root, want %x", got, random)
		}
		c := trie.PrefixOf(at, uint8(rapid.IntRange(1, 128).Draw(t, "length")))
		d.maps[Price].Add(c)
		got := trie.PositionOf(q.value(Price), d.Around(q, Price, place, random))
		if value := trie.PrefixOf(at, at.Width()); !c.Contains(got) || !value.Contains(got) {
			t.Fatalf("%x is not in %v of value %d", got, c, q.Price)
		}
		if d.Around(q, Price, place, 0) > place || d.Around(q, Price, place, ^uint64(0)) < place {
			t.Fatal("not all of the cell can be drawn")
		}
	})
}

// A holder's word is not enough about a quote that is about to expire: the renewal may have
// been lost on its way to that one, and the answer would lack a site that is there.
func TestQuoteThatIsAboutToExpire(t *testing.T) {
	for _, tt := range []struct {
		left grid.Time // until the quote expires when the page comes
		asks int       // holders asked besides
	}{{grid.Millisecond, 3}, {grid.Minute, 0}} {
		d, r, out := settledRing(t, "a", "b", "c", "d")
		now := 20 * grid.Minute
		d.Find(now, Query{}, out)
		scan, ok := out.Sends[0].Message.(*Scan)
		if !ok || len(out.Sends) != 1 {
			t.Fatalf("%d messages begin a query, want a scan", len(out.Sends))
		}
		first := out.Sends[0].To
		out.Reset()
		q := goodQuote()
		q.Site, q.Sequence, q.Lifetime, q.spread = "x", 1, d.cfg.Lifetime, Spread("x")
		q.Issued = now + tt.left - q.Lifetime
		d.Step(now, &grid.Delivery{From: first, Message: &Page{Token: scan.Token, Cell: root(Price), Quotes: []*Quote{&q}, Held: true, Mature: true, Ring: r.digest}}, out)
		if len(out.Sends) != tt.asks {
			t.Errorf("%v before it expires %d other holders are asked, want %d", tt.left, len(out.Sends), tt.asks)
		}
	}
}
