package directory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// wideAndNarrow populates a network: the fastest sites are narrow and all busy, the
// slowest ones wide and idle.
func wideAndNarrow(n *network, narrow, wide int) {
	for i := range narrow + wide {
		s := n.join()
		q := n.offer(s, grid.Price(1000+i), int64(10_000-40*i), 512)
		if i < narrow {
			q.Processors, q.Free, q.Widest = 64, 0, 0
		}
		n.set(s, q)
		n.run(10 * grid.Millisecond)
	}
	n.run(3 * n.cfg.Lifetime)
}

// A query does not ask the cells that have nothing for it, however many they are.
func TestBarrenCellsAreSkipped(t *testing.T) {
	n := newNetwork(t, 1, Config{CellMax: 8, Lifetime: 2 * grid.Minute, Timeout: grid.Second})
	wideAndNarrow(n, 160, 40)
	if c := n.cells(Speed); c < 20 {
		t.Fatalf("only %d cells", c)
	}
	for _, q := range []Query{
		{Attribute: Speed, Descending: true, Limit: 3, Filter: Filter{ProcessorsMin: 65}},
		{Attribute: Price, Limit: 3, Filter: Filter{FreeMin: 1}},
		{Attribute: Speed, Descending: true, Limit: 3, Filter: Filter{PriceMax: 1001}},
		{Attribute: Price, Descending: true, Limit: 3, Filter: Filter{SpeedMin: 9900}},
	} {
		for range 5 {
			if f := n.check(n.anyone(), q); f.Messages > 36 { // without summaries, up to 250
				t.Errorf("%+v took %d messages", q, f.Messages)
			}
		}
	}
}

// What comes into a barren cell is found as soon as its holders have said so, above
// all other cells as well, though messages are lost.
func TestBarrenCellBecomesFertile(t *testing.T) {
	simulate(t, func(n *network, seed uint64) {
		wideAndNarrow(n, 80, 10)
		loss := []float64{0, 0.05}[seed%2]
		for range 6 {
			s := n.sites[n.rng.IntN(80)]
			q := *s.want
			q.Free = 1 + n.rng.Int64N(64)
			if q.Widest = q.Free; n.rng.IntN(2) == 0 || loss > 0 { // load is told without receipts
				q.Processors = 128 + n.rng.Int64N(1000)
			}
			n.loss = loss
			n.set(s, q)
			n.run(6 * n.cfg.Timeout)
			n.loss = 0
			for _, q := range []Query{
				{Attribute: Speed, Descending: true, Filter: Filter{ProcessorsMin: 65}},
				{Attribute: Price, Limit: 10, Filter: Filter{FreeMin: 1}},
			} {
				if f, want := n.find(n.anyone(), q), n.want(q); !slices.Equal(ids(f.Quotes), want) {
					n.t.Fatalf("at %v %s changed; %+v finds %v, want %v", n.now, s.id, q, ids(f.Quotes), want)
				}
			}
		}
	})
}

// A summary is barren for a filter only if none of its quotes passes.
func TestSummaryCoversItsQuotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1000)
		s := trie.Nothing()
		var quotes []Quote
		for range rapid.IntRange(0, 5).Draw(t, "quotes") {
			q := Quote{Price: grid.Price(number.Draw(t, "price")), Free: number.Draw(t, "free")}
			q.Processors, q.Speed = number.Draw(t, "processors"), number.Draw(t, "speed")
			quotes = append(quotes, q)
			s.Merge(q.summary())
		}
		f := Filter{
			PriceMax: grid.Price(number.Draw(t, "price")), SpeedMin: number.Draw(t, "speed"),
			FreeMin: number.Draw(t, "free"), ProcessorsMin: number.Draw(t, "processors"),
		}
		for i := range quotes {
			if f.Match(&quotes[i]) && s.Barren(f.need()) {
				t.Fatalf("%+v is barren for %+v, which %+v passes", s, f, quotes[i])
			}
		}
	})
}
