package directory

import (
	"slices"
	"testing"

	"gridnode/internal/grid"
)

// crowd makes all sites ask for the cheapest, one after the other, for a while, and
// returns how many scans each has answered.
func (n *network) crowd(t *testing.T, rounds int) map[grid.SiteID]int {
	t.Helper()
	pages := map[grid.SiteID]int{}
	n.onSend = func(from, _ grid.SiteID, m grid.Message) {
		if p, ok := m.(*Page); ok && p.Token != 0 {
			pages[from]++
		}
	}
	for range rounds {
		for _, s := range n.sites {
			if !s.down {
				n.check(s, Query{Limit: 8, Filter: Filter{FreeMin: n.rng.Int64N(200)}})
				n.run(50 * grid.Millisecond)
			}
		}
	}
	n.onSend = nil
	return pages
}

// hot returns a settled network whose root everybody asks, and who its holders are.
func hot(t *testing.T, seed uint64) (*network, []grid.SiteID) {
	n := newNetwork(t, seed, Config{})
	populate(n, 60, n.any)
	n.run(n.cfg.Lifetime + 10*grid.Minute)
	n.crowd(t, 30)
	return n, n.closest(root(Price).key(""), 4)
}

func most(pages map[grid.SiteID]int) (most, all int) {
	for _, n := range pages {
		most, all = max(most, n), all+n
	}
	return most, all
}

// A cell that everybody asks is answered by many: no site has to answer more than
// 15 % of the questions, where it was a quarter or more; and all answers are right.
func TestHotCellIsMirrored(t *testing.T) {
	n, holders := hot(t, 1)
	for _, id := range holders {
		if h := n.byID[id].dir.holding(root(Price)); len(n.byID[id].dir.mirrors(n.now, h)) != mirrorsMax {
			t.Fatalf("%s answers alone", id)
		}
	}
	if most, all := most(n.crowd(t, 20)); 100*most > 15*all {
		t.Errorf("one of 60 sites answered %d of %d questions", most, all)
	}
	n.run(grid.Hour) // calm: what is left of the mirrors does no harm
	n.crowd(t, 1)
}

// A change of terms, a site that comes and one that leaves are seen by all within a
// round trip and a question, mirrors or not.
func TestMirrorsHearOfNewTerms(t *testing.T) {
	n, _ := hot(t, 2)
	for i := range 12 {
		s := n.sites[n.rng.IntN(60)]
		switch q := n.offer(s, grid.Price(n.rng.Int64N(1000)), 100, 100); i % 3 {
		case 0:
			n.set(s, q)
		case 1:
			n.withdraw(s)
		default:
			s = n.join()
			n.set(s, n.offer(s, grid.Price(i), 100, 100))
		}
		n.run(grid.Second)
		n.crowd(t, 1)
	}
}

// Mirrors that lie, break the stream, say nothing or do not know the cell are caught
// like holders: all answers stay right.
func TestMirrorsThatLie(t *testing.T) {
	for name, lie := range map[string]func(p *Page) *Page{
		"silence":      func(*Page) *Page { return nil },
		"not held":     func(p *Page) *Page { return &Page{Token: p.Token, Cell: p.Cell} },
		"wrong order":  func(p *Page) *Page { p.Quotes = slices.Clone(p.Quotes); slices.Reverse(p.Quotes); return p },
		"twice":        func(p *Page) *Page { p.Quotes = append(slices.Clone(p.Quotes), p.Quotes...); return p },
		"other quotes": func(p *Page) *Page { p.Quotes = []*Quote{quoteAt("nobody", 1, 1, 1)}; return p },
		"not mature":   func(p *Page) *Page { p.Mature, p.Quotes = false, nil; return p },
	} {
		t.Run(name, func(t *testing.T) {
			n, holders := hot(t, 3)
			told := 0
			n.lies = map[grid.SiteID]func(*Page) *Page{}
			for _, id := range n.closest(root(Price).key(""), 20)[4:] {
				if !slices.Contains(holders, id) {
					n.lies[id] = func(p *Page) *Page {
						if p.Token == 0 || len(p.Quotes) == 0 || n.byID[id].dir.holding(p.Cell) != nil {
							return p
						}
						told++
						return lie(p)
					}
				}
			}
			n.crowd(t, 2)
			if told == 0 {
				t.Error("nobody lied")
			}
		})
	}
}

// Strangers who ask for copies of many cells cost a mirror no more than it has room
// for, and a holder who does not answer keeps nobody waiting for ever.
func TestMirrorIsBounded(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	for i := range 3 * mirroredMax {
		c := cell{Price, prefixOf(position{uint64(i) << 50, 0}, 20)}
		for range 2 * mirrorWaitMax {
			d.Step(0, &grid.Delivery{From: "asker", Message: &Scan{Token: 1, Cell: c, Limit: 1, Via: "holder"}}, &out)
		}
	}
	waiting := 0
	for _, c := range d.mirrored {
		waiting += len(c.waiting)
	}
	if len(d.mirrored) != mirroredMax || waiting != mirroredMax*mirrorWaitMax {
		t.Errorf("%d copies, %d waiting", len(d.mirrored), waiting)
	}
	out.Reset()
	d.Step(d.NextTimer(), grid.Tick{}, &out)
	if len(out.Sends) != waiting || d.requests.open != 0 {
		t.Errorf("%d answers to %d who waited, %d requests open", len(out.Sends), waiting, d.requests.open)
	}
}
