package directory

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// A holder that lies. What cannot be true or does not answer the question is
// dropped and counted, the liar is not believed and not asked again for a while, and
// the answer is complete by what the other holders say.
func TestLyingHolder(t *testing.T) {
	now := grid.Hour
	good := func() []*Quote { return []*Quote{quoteAt("a", 5, 7, now), quoteAt("c", 50, 7, now)} }
	for _, tt := range []struct {
		name     string
		lie      []*Quote
		rejected int64
		outdated int64
	}{
		{"dearer than asked for", append(good(), quoteAt("dear", 500, 1, now)), 1, 0},
		{"out of order", []*Quote{good()[1], good()[0]}, 1, 0},
		{"one twice", []*Quote{good()[0], good()[0]}, 1, 0},
		{"long expired", []*Quote{quoteAt("old", 6, 1, 0)}, 1, 0},
		{"from the future", []*Quote{quoteAt("early", 6, 1, now+2*skewMax+1)}, 1, 0},
		{"outdated price", []*Quote{quoteAt("a", 4, 6, now)}, 0, 1},
		{"taken back", []*Quote{quoteAt("gone", 4, 6, now)}, 0, 1},
	} {
		for _, mature := range []bool{false, true} {
			d := newDirectory(Config{})
			var out grid.Outbox
			d.learn(good()[0])
			gone := quoteAt("gone", 4, 7, now)
			gone.Withdrawn = true
			d.learn(gone)
			d.Find(now, Query{Limit: 10, Filter: Filter{PriceMax: 100}}, &out)
			d.Step(now, &grid.Closest{Key: out.Keys[0], Peers: []grid.SiteID{"liar", "honest"}}, &out)
			d.rings.list[root(Price)].preferred = "liar"
			out.Reset()
			d.Find(now, Query{Limit: 10, Filter: Filter{PriceMax: 100}}, &out)
			asked := map[grid.SiteID]int{}
			for range 4 {
				for _, s := range slices.Clone(out.Sends) {
					asked[s.To]++
					scan := s.Message.(*Scan)
					p := &Page{Token: scan.Token, Cell: scan.Cell, Held: true, Mature: mature, Quotes: tt.lie}
					if s.To == "honest" {
						p.Mature, p.Quotes = true, good()
					}
					out.Sends, out.Effects = nil, nil
					d.Step(now, &grid.Delivery{From: s.To, Message: p}, &out)
				}
			}
			if len(out.Locals) == 0 {
				t.Fatalf("%s, mature %v: no answer", tt.name, mature)
			}
			f := out.Locals[len(out.Locals)-1].(*Found)
			if got := ids(f.Quotes); !slices.Equal(got, []grid.SiteID{"a", "c"}) || f.Quotes[0].Sequence != 7 || f.Err != nil {
				t.Errorf("%s, mature %v: found %v, %v", tt.name, mature, got, f.Err)
			}
			if asked["liar"] != 1 || d.Rejected != tt.rejected || d.Outdated != tt.outdated {
				t.Errorf("%s, mature %v: asked %v, rejected %d, outdated %d", tt.name, mature, asked, d.Rejected, d.Outdated)
			}
			d.Step(now, &grid.Delivery{From: "liar", Message: &Published{}}, &out) // being alive does not help it
			if d.rings.suspects.has(now, "liar") != (tt.rejected > 0) || d.rings.suspects.has(now+d.cfg.Lifetime, "liar") {
				t.Errorf("%s, mature %v: suspect %v, a lifetime later %v", tt.name, mature, d.rings.suspects.has(now, "liar"), d.rings.suspects.has(now+d.cfg.Lifetime, "liar"))
			}
		}
	}
}

// One of the holders of each cell lies in all it says about it: queries of all sites
// stay complete.
func TestQueriesAreCompleteDespiteALiar(t *testing.T) {
	for name, lie := range map[string]func(n *network, stale map[grid.SiteID]*Quote) func(p *Page) *Page{
		"says that it has nothing": func(*network, map[grid.SiteID]*Quote) func(*Page) *Page {
			return func(p *Page) *Page { p.Quotes, p.Held, p.Mature, p.More = nil, false, false, false; return p }
		},
		"sends what breaks the stream": func(*network, map[grid.SiteID]*Quote) func(*Page) *Page {
			return func(*Page) *Page { return nil }
		},
		"foreign quotes": func(n *network, _ map[grid.SiteID]*Quote) func(*Page) *Page {
			return func(p *Page) *Page {
				p.Quotes, p.Mature = []*Quote{quoteAt("mallory", 9_999_999_999, 1, n.now)}, true
				return p
			}
		},
		"expired quotes": func(n *network, _ map[grid.SiteID]*Quote) func(*Page) *Page {
			return func(p *Page) *Page {
				p.Quotes, p.Mature = []*Quote{quoteAt("mallory", 0, 1, n.now-grid.Day)}, true
				return p
			}
		},
		"old prices": func(n *network, stale map[grid.SiteID]*Quote) func(*Page) *Page {
			return func(p *Page) *Page {
				list := slices.Clone(p.Quotes)
				for i, q := range list {
					if old := stale[q.Site]; old != nil {
						list[i] = old
					}
				}
				slices.SortFunc(list, func(a, b *Quote) int { return a.at(p.Cell.attribute).Compare(b.at(p.Cell.attribute)) })
				p.Quotes = list
				return p
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, 3, Config{})
			n.now = 2 * grid.Day
			populate(n, 40, n.any)
			n.run(20 * grid.Minute)
			stale := map[grid.SiteID]*Quote{}
			for _, s := range n.sites { // everybody has asked, and changes the price
				n.check(s, Query{Filter: Filter{PriceMax: 5_000_000}})
			}
			for _, s := range n.sites {
				stale[s.id] = s.dir.publisher.own
				n.set(s, n.offer(s, grid.Price(n.rng.Int64N(5_000_000)), s.want.Speed, s.want.Free))
			}
			n.run(10 * grid.Second)
			for _, s := range n.sites {
				n.check(s, Query{Filter: Filter{PriceMax: 5_000_000}})
			}
			n.lies = map[grid.SiteID]func(*Page) *Page{}
			liar := n.closest(root(Price).key(""), 1)[0]
			n.lies[liar] = lie(n, stale)
			for _, s := range n.sites {
				if r := s.dir.rings.list[root(Price)]; r != nil {
					r.preferred = liar
				}
				for range 3 {
					n.check(s, Query{Filter: Filter{PriceMax: 5_000_000}})
				}
			}
		})
	}
}
