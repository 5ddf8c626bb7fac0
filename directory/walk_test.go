package directory

import (
	"testing"

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
