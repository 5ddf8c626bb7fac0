package directory

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// jury is a site that asks four holders, of whom some may hide a quote.
type jury struct {
	*Directory
	t     *testing.T
	hides map[grid.SiteID]bool
}

// ask has the site look for all quotes, and returns what it has found, and whom it has asked.
func (j *jury) ask(now grid.Time) (found, asked []grid.SiteID) {
	j.t.Helper()
	var out grid.Outbox
	j.Find(now, Query{Limit: 10}, &out)
	for len(out.Sends) > 0 || len(out.Keys) > 0 {
		sends, keys := slices.Clone(out.Sends), slices.Clone(out.Keys)
		out.Sends, out.Keys, out.Effects = nil, nil, nil
		for _, key := range keys {
			j.Step(now, &grid.Closest{Key: key, Peers: []grid.SiteID{"h1", "h2", "h3", "h4"}}, &out)
		}
		for _, s := range sends {
			asked = append(asked, s.To)
			scan := s.Message.(*Scan)
			p := &Page{Token: scan.Token, Cell: scan.Cell, Held: true, Mature: true, Quotes: []*Quote{quoteAt("a", 5, 7, now), quoteAt("c", 50, 7, now)}}
			if j.hides[s.To] {
				p.Quotes = p.Quotes[1:]
			}
			j.Step(now, &grid.Delivery{From: s.To, Message: p}, &out)
		}
	}
	if len(out.Locals) != 1 {
		j.t.Fatalf("%d answers, asked %v", len(out.Locals), asked)
	}
	return ids(out.Locals[0].(*Found).Quotes), asked
}

// TestWitnesses: what one holder hides, witnesses tell. The word of one with which they
// agreed is enough for a while; with one that hides something they never agree.
func TestWitnesses(t *testing.T) {
	j := &jury{newDirectory(Config{Witnesses: 2}), t, map[grid.SiteID]bool{}}
	now := grid.Hour
	span := j.cfg.Lifetime / vouchShare
	var asked []grid.SiteID
	for _, tt := range []struct {
		name  string
		at    grid.Time
		asked int
	}{{"at first", 0, 3}, {"once they have agreed", grid.Second, 1}, {"a moment before it is over", span - 1, 1}, {"later", span, 3}} {
		var found []grid.SiteID
		if found, asked = j.ask(now + tt.at); !slices.Equal(found, []grid.SiteID{"a", "c"}) || len(asked) != tt.asked {
			t.Errorf("%s: found %v, asked %v, want %d holders asked", tt.name, found, asked, tt.asked)
		}
	}
	now += 2 * span
	j.hides[asked[0]] = true // who is asked first
	for i := range 4 {
		if found, asked := j.ask(now + grid.Time(i)*grid.Second); !slices.Equal(found, []grid.SiteID{"a", "c"}) || len(asked) != 3 {
			t.Errorf("question %d beside one that hides: found %v, asked %v", i, found, asked)
		}
	}
	one := &jury{newDirectory(Config{}), t, map[grid.SiteID]bool{}}
	if _, asked := one.ask(now); len(asked) != 1 {
		t.Errorf("without witnesses %v were asked", asked)
	}
}
