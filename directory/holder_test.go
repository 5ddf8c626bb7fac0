package directory

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/directory/trie"
	"gridnode/grid"
)

func newDirectory(cfg Config) *Directory {
	cfg.Self = "me"
	return New(cfg, rand.New(rand.NewPCG(1, 2)))
}

// quoteAt is a quote as it comes from another site.
func quoteAt(site string, price grid.Price, sequence uint64, issued grid.Time) *Quote {
	q := goodQuote()
	q.Site, q.Price, q.Sequence, q.Issued = grid.SiteID(site), price, sequence, issued
	q.spread = spreadOf(q.Site)
	return &q
}

// held returns what a scan of a cell finds.
func held(d *Directory, now grid.Time, c cell) (ids []grid.SiteID) {
	for _, q := range d.holder.onScan(now, "asker", &Scan{Cell: c, Limit: PageMax}).Quotes {
		ids = append(ids, q.Site)
	}
	return ids
}

// A holder against a plain map of what was published and not withdrawn.
func TestHolderAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDirectory(Config{CellMax: cellMaxMax})
		now := grid.Time(0)
		newest := map[grid.SiteID]*Quote{} // by sequence, withdrawn or not
		stored := map[grid.SiteID]*Quote{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += grid.Time(rapid.Int64Range(0, int64(4*grid.Minute)).Draw(t, "passes"))
			site := fmt.Sprint("s", rapid.IntRange(0, 5).Draw(t, "site"))
			q := quoteAt(site, grid.Price(rapid.IntRange(0, 3).Draw(t, "price")), uint64(rapid.IntRange(1, 9).Draw(t, "sequence")),
				now-grid.Time(rapid.Int64Range(0, int64(min(now, 12*grid.Minute))).Draw(t, "age")))
			if old := newest[q.Site]; old != nil && old.Sequence == q.Sequence {
				q = old // a site issues one quote under a sequence
			}
			late := newest[q.Site] != nil && newest[q.Site].Sequence > q.Sequence
			valid := q.Expires() > now
			if valid && !late {
				newest[q.Site] = q
			}
			if rapid.IntRange(0, 3).Draw(t, "withdraw") == 0 {
				d.holder.drop(now, &Withdraw{Cell: root(Price), Quote: q})
				if s := stored[q.Site]; valid && s != nil && s.Sequence <= q.Sequence {
					delete(stored, q.Site)
				}
			} else {
				reply := d.holder.keep(now, q, &Copy{Cell: root(Price)})
				if reply.Refused == valid {
					t.Fatalf("at %v the quote %+v got %+v", now, q, reply)
				}
				if valid && !late {
					stored[q.Site] = q
				}
			}
			var want []*Quote
			for _, s := range stored {
				if s.Expires() > now {
					want = append(want, s)
				}
			}
			slices.SortFunc(want, func(a, b *Quote) int {
				return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.spread, b.spread))
			})
			down := rapid.Bool().Draw(t, "down")
			at := trie.First()
			if down {
				slices.Reverse(want)
				at = trie.Last()
			}
			if p := d.holder.onScan(now, "asker", &Scan{Cell: root(Price), At: at, Descending: down, Limit: PageMax}); !slices.Equal(p.Quotes, want) {
				t.Fatalf("at %v: %d quotes, want %d", now, len(p.Quotes), len(want))
			}
		}
	})
}

// TestPageBeginsAtItsPosition: the quote at the position that is asked for is the first of the page,
// whichever way that goes.
func TestPageBeginsAtItsPosition(t *testing.T) {
	d := newDirectory(Config{CellMax: cellMaxMax})
	for i := range 5 {
		d.holder.keep(0, quoteAt(fmt.Sprint("s", i), grid.Price(10+i), 1, 0), &Copy{Cell: root(Price)})
	}
	for _, e := range d.holder.holding(root(Price)).records {
		for _, down := range []bool{false, true} {
			p := d.holder.onScan(0, "asker", &Scan{Cell: root(Price), At: e.at, Descending: down, Limit: 1})
			if len(p.Quotes) != 1 || p.Quotes[0] != e.quote {
				t.Errorf("from the price of %s, downwards %t: %d quotes, want that of %s first", e.quote.Site, down, len(p.Quotes), e.quote.Site)
			}
		}
	}
}

func TestPagesFollowEachOther(t *testing.T) {
	d := newDirectory(Config{CellMax: cellMaxMax})
	for i := range 100 {
		d.holder.keep(0, quoteAt(fmt.Sprint("s", i), grid.Price(i/3), 1, 0), &Copy{Cell: root(Price)})
	}
	for _, down := range []bool{false, true} {
		var got []grid.Price
		for at, more := map[bool]trie.Position{false: trie.First(), true: trie.Last()}[down], true; more; {
			p := d.holder.onScan(0, "asker", &Scan{Cell: root(Price), At: at, Descending: down, Limit: 7, Filter: Filter{PriceMax: 30}})
			for _, q := range p.Quotes {
				got = append(got, q.Price)
				if at = q.at(Price).Next(); down {
					at = q.at(Price).Prev()
				}
			}
			more = p.More
		}
		if down {
			slices.Reverse(got)
		}
		if len(got) != 93 || !slices.IsSorted(got) {
			t.Errorf("down %v: %d quotes, want 93 in order: %v", down, len(got), got)
		}
	}
}

func TestVoidQuotesAreRejected(t *testing.T) {
	now := grid.Hour
	for _, tt := range []struct {
		name   string
		change func(q *Quote)
		bad    bool
	}{
		{"fresh", func(q *Quote) {}, false},
		{"from a clock that is a little ahead", func(q *Quote) { q.Issued = now + skewMax }, false},
		{"from the future", func(q *Quote) { q.Issued = now + skewMax + 1 }, true},
		{"about to expire", func(q *Quote) { q.Issued = now - q.Lifetime + 1 }, false},
		{"expired", func(q *Quote) { q.Issued = now - q.Lifetime }, true},
		{"withdrawn", func(q *Quote) { q.Withdrawn = true }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDirectory(Config{})
			q := quoteAt("a", 1, 1, now)
			tt.change(q)
			reply := d.holder.keep(now, q, &Copy{Cell: root(Price)})
			if reply.Refused != tt.bad || (len(held(d, now, root(Price))) == 0) != tt.bad {
				t.Errorf("refused %v, held %v", reply.Refused, held(d, now, root(Price)))
			}
		})
	}
}

// A quote lives as long as it says, even if its clock is ahead of ours.
func TestLifeIsCountedFromOurClock(t *testing.T) {
	d := newDirectory(Config{})
	q := quoteAt("a", 1, 1, skewMax)
	d.holder.keep(0, q, &Copy{Cell: root(Price)})
	if len(held(d, q.Lifetime-1, root(Price))) != 1 || len(held(d, q.Lifetime, root(Price))) != 0 {
		t.Errorf("held at its end %v, after it %v", held(d, q.Lifetime-1, root(Price)), held(d, q.Lifetime, root(Price)))
	}
}

func TestQuoteThatDoesNotBelongIntoTheCell(t *testing.T) {
	d := newDirectory(Config{})
	q := quoteAt("a", 5, 1, 0)
	other := cell{Price, trie.PrefixOf(trie.Last(), 3)}
	if reply := d.holder.keep(0, q, &Copy{Cell: other}); !reply.Refused || len(d.holder.holdings) != 0 {
		t.Errorf("got %+v, holds %d cells", reply, len(d.holder.holdings))
	}
	if reply := d.holder.keep(0, q, &Copy{Cell: root(Price), Spare: true, Skip: trie.Prefix{}}); !reply.Refused {
		t.Errorf("a spare of the cell itself got %+v", reply)
	}
}

// Nobody publishes, withdraws or reports for another site.
func TestSpeakingForOthersChangesNothing(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	d.Step(0, &grid.Delivery{From: "a", Message: &Publish{Quote: quoteAt("a", 1, 1, 0), Copies: []Copy{{Cell: root(Price)}}}}, &out)
	out.Reset()
	for _, m := range []grid.Message{
		&Publish{Quote: quoteAt("a", 9, 2, 0), Copies: []Copy{{Cell: root(Price)}}},
		&Withdraw{Cell: root(Price), Quote: quoteAt("a", 9, 2, 0)},
		&Page{Token: 1, Cell: root(Price), Quotes: []*Quote{quoteAt("b", 1, 1, 0)}},
		&Published{Sequence: 1, Receipts: []Receipt{{Cell: root(Price)}}},
		&Reported{Token: 1},
		&LoadReport{Load: Load{Site: "a", Sequence: 1}},
	} {
		d.Step(0, &grid.Delivery{From: "mallory", Message: m}, &out)
		if len(out.Sends) != 0 || len(out.Locals) != 0 {
			t.Errorf("%T was answered", m)
		}
	}
	if q, _ := d.Known("a"); q.Price != 1 || len(held(d, 0, root(Price))) != 1 {
		t.Errorf("a is known for %v, held %v", q.Price, held(d, 0, root(Price)))
	}
	if _, ok := d.Load("a"); ok {
		t.Error("took a load report from another site")
	}
}

func TestHolderIsBounded(t *testing.T) {
	t.Run("copies of one site", func(t *testing.T) {
		d := newDirectory(Config{})
		q := quoteAt("a", 1<<20, 1, 0)
		for i := range publisherMax + 1 {
			c := cell{Price, trie.PrefixOf(q.at(Price), uint8(i))}
			if reply := d.holder.keep(0, q, &Copy{Cell: c}); reply.Refused != (i >= publisherMax) {
				t.Fatalf("copy %d: refused %v", i+1, reply.Refused)
			}
		}
		if d.holder.perSite["a"] != publisherMax || d.holder.recorded != publisherMax {
			t.Errorf("counts %d and %d", d.holder.perSite["a"], d.holder.recorded)
		}
		for _, h := range slices.Clone(d.holder.holdings) {
			d.holder.expire(grid.Hour, h)
		}
		if len(d.holder.perSite) != 0 || d.holder.recorded != 0 {
			t.Errorf("after expiry %d publishers, %d records", len(d.holder.perSite), d.holder.recorded)
		}
	})
	t.Run("copies in one cell", func(t *testing.T) {
		d := newDirectory(Config{CellMax: 8})
		h := d.holder.hold(0, root(Price))
		for i := range 8 * crowdFactor {
			h.put(record{at: trie.Position{Hi: uint64(i)}, quote: quoteAt(fmt.Sprint("s", i), 1, 1, 0), expires: grid.Hour})
		}
		if reply := d.holder.keep(0, quoteAt("a", 1, 1, 0), &Copy{Cell: root(Price)}); !reply.Refused {
			t.Errorf("a cell of %d copies took another one", len(h.records))
		}
	})
	t.Run("copies in all", func(t *testing.T) {
		d := newDirectory(Config{})
		d.holder.recorded = recordsMax - 1
		for i, refused := range []bool{false, true} {
			if reply := d.holder.keep(0, quoteAt(fmt.Sprint("s", i), 1, 1, 0), &Copy{Cell: root(Price)}); reply.Refused != refused {
				t.Errorf("copy %d: refused %v", i, reply.Refused)
			}
		}
	})
	t.Run("cells", func(t *testing.T) {
		d := newDirectory(Config{})
		for i := range holdingsMax + 10 {
			d.holder.note(0, "x", &Report{Cell: cell{Price, trie.PrefixOf(trie.Position{Hi: uint64(i) << 40}, 64)}, Child: trie.PrefixOf(trie.Position{Hi: uint64(i) << 40}, 65)})
		}
		if len(d.holder.holdings) != holdingsMax {
			t.Errorf("holds %d cells", len(d.holder.holdings))
		}
	})
	t.Run("fences", func(t *testing.T) {
		d := newDirectory(Config{})
		for i := range 1000 {
			d.holder.note(0, "x", &Report{Cell: root(Price), Child: trie.PrefixOf(trie.Position{Hi: uint64(i) << 48}, 30)})
		}
		if h := d.holder.holding(root(Price)); h.fences.Len() > trie.FencesMax {
			t.Errorf("%d fences", h.fences.Len())
		}
	})
	t.Run("newest quotes", func(t *testing.T) {
		d := newDirectory(Config{})
		for i := range knownMax + 10 {
			d.learn(quoteAt(fmt.Sprint("s", i), 1, 1, 0))
		}
		if _, ok := d.Known("s0"); ok || len(d.known.values) != knownMax || d.known.index.Len() != knownMax {
			t.Errorf("knows %d sites, the first still: %v", d.known.index.Len(), ok)
		}
	})
	t.Run("suspects", func(t *testing.T) {
		d := newDirectory(Config{})
		for i := range 3 * suspectsMax {
			d.rings.suspects.strike(0, grid.SiteID(fmt.Sprint("s", i)), true)
		}
		if len(d.rings.suspects.list) != suspectsMax {
			t.Errorf("%d suspects", len(d.rings.suspects.list))
		}
	})
	t.Run("rings", func(t *testing.T) {
		d := newDirectory(Config{})
		var out grid.Outbox
		for i := range 2 * ringsMax {
			d.rings.get(grid.Time(i), cell{Price, trie.PrefixOf(trie.Position{Hi: uint64(i) << 40}, 64)}, &out)
		}
		if len(d.rings.list) > ringsMax || len(d.rings.lookups) > ringsMax {
			t.Errorf("%d rings, %d look-ups", len(d.rings.list), len(d.rings.lookups))
		}
	})
}

// "A cell with more than B live quotes splits", the root with half as many again:
// the holder says where each quote goes, and its own stretch keeps at most that.
func TestSplit(t *testing.T) {
	for name, price := range map[string]func(i int) grid.Price{
		"different": func(i int) grid.Price { return grid.Price(i * 1_000_003) },
		"equal":     func(i int) grid.Price { return 5_000_000 },
		"two":       func(i int) grid.Price { return grid.Price(i % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(Config{CellMax: 64})
			for i := range 97 {
				reply := d.holder.keep(0, quoteAt(fmt.Sprint("s", i), price(i), 1, 0), &Copy{Cell: root(Price)})
				if reply.Moved {
					t.Fatalf("moved quote %d on to %v", i, reply.To)
				}
			}
			h := d.holder.holding(root(Price))
			if n, _ := h.stand(0); n > 96 || h.fences.Len() == 0 {
				t.Fatalf("%d own quotes, %d fences", n, h.fences.Len())
			}
			moved := 0
			for i := range 97 { // each publishes again
				q := quoteAt(fmt.Sprint("s", i), price(i), 2, 0)
				if reply := d.holder.keep(0, q, &Copy{Cell: root(Price)}); reply.Moved {
					moved++
					if !reply.To.Contains(q.at(Price)) || !slices.Contains(reply.Fences, reply.To) {
						t.Fatalf("%v is sent to %v of %v", q.at(Price), reply.To, reply.Fences)
					}
				}
			}
			if moved < 12 || moved > 72 {
				t.Errorf("%d of 97 quotes move", moved)
			}
		})
	}
}

// Who let a copy or a fence expire does not speak for the cell alone any more: its
// site may publish elsewhere by now.
func TestExpiryCastsDoubt(t *testing.T) {
	for name, put := range map[string]func(d *Directory){
		"copy": func(d *Directory) {
			d.holder.keep(0, quoteAt("a", 1, 1, 0), &Copy{Cell: root(Price)})
		},
		"fence": func(d *Directory) {
			d.holder.note(0, "x", &Report{Cell: root(Price), Child: trie.PrefixOf(trie.First(), 3)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(Config{})
			put(d)
			d.holder.keep(5*grid.Minute, quoteAt("b", 2, 1, 5*grid.Minute), &Copy{Cell: root(Price)})
			d.holder.holding(root(Price)).upkeep.standing = mature
			end := 10 * grid.Minute
			if p := d.holder.onScan(end-1, "asker", &Scan{Cell: root(Price), Limit: 1}); !p.Mature {
				t.Error("not mature before anything expired")
			}
			if p := d.holder.onScan(end, "asker", &Scan{Cell: root(Price), Limit: 1}); p.Mature {
				t.Error("mature although something expired")
			}
		})
	}
}

// A fence that another one covers is let go of without doubt: its cell is told of
// elsewhere by now. With an outer one something has died.
func TestCoveredFenceLapsesQuietly(t *testing.T) {
	d := newDirectory(Config{})
	h := d.holder.hold(0, root(Price))
	inner, outer := trie.PrefixOf(trie.Position{Hi: 0x5 << 60}, 4), trie.PrefixOf(trie.Position{Hi: 0x4 << 60}, 2)
	h.fences.Add(inner, grid.Minute)
	h.fences.Add(outer, grid.Hour)
	if h.upkeep.standing = mature; h.lapsed(2*grid.Minute) || !h.lapsed(grid.Hour) {
		t.Errorf("lapsed with the inner fence: %v, with the outer one: %v", h.lapsed(2*grid.Minute), h.lapsed(grid.Hour))
	}
	if d.holder.expire(2*grid.Minute, h); !h.isMature() || h.fences.Get(inner) != nil || h.fences.Get(outer) == nil {
		t.Errorf("mature %v, fences %v after the inner one expired", h.isMature(), h.fences)
	}
	h.fences.Add(inner, 3*grid.Hour)
	if d.holder.expire(2*grid.Hour, h); h.isMature() {
		t.Error("mature although an outer fence expired")
	}
	if h.upkeep.standing = mature; !h.lapsed(3 * grid.Hour) {
		t.Error("not lapsed with a fence that is an outer one by now")
	}
}

// Holders who compare how a cell stands agree if they know the same outer fences.
func TestHoldersCompareOuterFences(t *testing.T) {
	inner, outer := trie.PrefixOf(trie.Position{Hi: 0x5 << 60}, 4), trie.PrefixOf(trie.Position{Hi: 0x4 << 60}, 2)
	digest := func(fences ...trie.Prefix) uint64 {
		h := newDirectory(Config{}).holder.hold(0, root(Price))
		for _, f := range fences {
			h.fences.Add(f, grid.Hour)
		}
		return h.fences.Edges()
	}
	for _, tt := range []struct {
		fences []trie.Prefix
		differ bool
	}{{nil, true}, {[]trie.Prefix{inner}, true}, {[]trie.Prefix{outer}, false}, {[]trie.Prefix{inner, outer}, false}} {
		d := newDirectory(Config{})
		h := d.holder.hold(0, root(Price))
		h.fences.Add(outer, grid.Hour)
		h.fences.Add(inner, grid.Hour)
		if p := d.holder.onScan(0, "other", &Scan{Cell: root(Price), Fences: digest(tt.fences...)}); p.HasFences != tt.differ || len(p.Fences) > 0 {
			t.Errorf("to who knows %v: differ %v, %d fences", tt.fences, p.HasFences, len(p.Fences))
		}
	}
}

// TestRoundThatGoesOnLater: a cell whose parent's holders turn out to be unknown in the middle of a
// round has its next one soon, be it that nothing else is due.
func TestRoundThatGoesOnLater(t *testing.T) {
	d, out := New(Config{Self: "self"}, rand.New(rand.NewPCG(1, 2))), new(grid.Outbox)
	h := d.holder.hold(0, cell{Price, trie.PrefixOf(trie.Position{}, 2)})
	h.upkeep.next, h.upkeep.route.way = grid.Hour, trie.PrefixOf(trie.Position{}, 1)
	d.holder.plan()
	d.holder.report(grid.Minute, h, out)
	if want := grid.Minute + d.cfg.Timeout; h.upkeep.next != want || d.NextTimer() != want {
		t.Errorf("its next round is at %v, with a timer for %v, want %v", h.upkeep.next, d.NextTimer(), want)
	}
}
