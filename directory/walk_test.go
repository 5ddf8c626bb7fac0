package directory

import (
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// TestNewerQuoteOfASiteCounts: of two holders one may have a quote that its site has replaced;
// whichever answers first, the newer one is in the answer, once, in its place.
func TestNewerQuoteOfASiteCounts(t *testing.T) {
	quote := func(site string, sequence uint64, price int64) candidate {
		q := &Quote{Site: grid.SiteID(site), Sequence: sequence}
		q.Price, q.spread = grid.Price(price), spreadOf(q.Site)
		return candidate{q.at(Price), q}
	}
	older, newer, other := quote("a", 4, 10), quote("a", 5, 30), quote("b", 1, 20)
	for _, order := range [][]candidate{{older, other, newer}, {newer, other, older}} {
		q := &query{ask: Query{Attribute: Price}}
		for _, c := range order {
			q.add(c)
		}
		if len(q.found) != 2 || q.found[0].quote != other.quote || q.found[1].quote != newer.quote {
			t.Errorf("found %d quotes, the first of %s at %d", len(q.found), q.found[0].quote.Site, q.found[0].quote.Price)
		}
	}
}

// TestBarrenCellsArePassedOver: all that lie one after the other, whatever the order in which they
// were told of, and no further.
func TestBarrenCellsArePassedOver(t *testing.T) {
	cell := func(n uint64) trie.Prefix { return trie.PrefixOf(trie.Position{Hi: n << 60}, 4) }
	for _, order := range [][]uint64{{3, 4, 5}, {5, 4, 3}, {4, 5, 3}, {9, 4, 3, 5}} {
		q := &query{at: trie.Position{Hi: 3<<60 | 7}, limit: trie.Last()}
		down := &query{at: trie.Position{Hi: 5<<60 | 7}, limit: trie.First(), ask: Query{Descending: true}}
		for _, n := range order {
			q.barren, down.barren = append(q.barren, cell(n)), append(down.barren, cell(n))
		}
		q.skip()
		down.skip()
		if q.at != cell(6).Bits || q.end || down.at != cell(2).End() || down.end {
			t.Errorf("told of %v: goes on at %x, end %v, and downwards at %x, end %v", order, q.at.Hi, q.end, down.at.Hi, down.end)
		}
	}
}
