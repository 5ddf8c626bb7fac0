package directory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
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
		if h := n.byID[id].dir.holder.holding(root(Price)); len(n.byID[id].dir.holder.mirrors(n.now, h)) != mirrorsMax {
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
			shown := 0
			n.lies = map[grid.SiteID]func(*Page) *Page{}
			for _, id := range n.closest(root(Price).key(""), 20)[4:] {
				if !slices.Contains(holders, id) {
					n.lies[id] = func(p *Page) *Page {
						if p.Token == 0 || len(p.Quotes) == 0 || n.byID[id].dir.holder.holding(p.Cell) != nil {
							return p
						}
						shown++
						return lie(p)
					}
				}
			}
			n.crowd(t, 2)
			if shown == 0 {
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
	for i := range 3 * imagesMax {
		c := cell{Price, trie.PrefixOf(trie.Position{Hi: uint64(i) << 50}, 20)}
		for range 2 * mirrorWaitMax {
			d.Step(0, &grid.Delivery{From: "asker", Message: &Scan{Token: 1, Cell: c, Limit: 1, Via: "holder"}}, &out)
		}
	}
	waiting := 0
	for _, c := range d.images.list {
		waiting += len(c.waiting)
	}
	if len(d.images.list) != imagesMax || waiting != imagesMax*mirrorWaitMax {
		t.Errorf("%d copies, %d waiting", len(d.images.list), waiting)
	}
	out.Reset()
	d.Step(d.NextTimer(), grid.Tick{}, &out)
	if len(out.Sends) != waiting || d.requests.open != 0 {
		t.Errorf("%d answers to %d who waited, %d requests open", len(out.Sends), waiting, d.requests.open)
	}
}

// newcomer returns a site that has been told by the router who is nearest to the root,
// and of some cells, but has not asked any holder yet.
func newcomer(i, cells int) (*Directory, []grid.SiteID) {
	d := New(Config{Self: grid.SiteID(fmt.Sprintf("site %d", i))}, rand.New(rand.NewPCG(1, 2)))
	var peers []grid.SiteID
	for j := range 20 {
		peers = append(peers, grid.SiteID(fmt.Sprintf("peer %d", j)))
	}
	var out grid.Outbox
	r := d.rings.get(0, root(Price), &out)
	d.Step(grid.Second, &grid.Closest{Key: r.key, Peers: peers}, &out)
	d.maps[Price].Refresh(grid.Second, grid.Hour)
	for j := range cells {
		d.maps[Price].Add(trie.PrefixOf(trie.Position{Hi: uint64(j+1) << 52}, 12))
	}
	return d, peers
}

// Whoever has not asked for the root yet goes to a mirror if there are many cells, and to
// a holder if there are few. All who go to one mirror name the same holder.
func TestFirstQuestionsAreSpread(t *testing.T) {
	const sites = 2000
	for _, tt := range []struct {
		cells    int
		mirrored bool // a site next to the holders is asked
	}{{0, false}, {mirrorCells*4 - 1, false}, {mirrorCells * 5, true}, {mirrorCells * 40, true}} {
		asked := map[grid.SiteID]int{}
		vias := map[grid.SiteID]grid.SiteID{}
		for i := range sites {
			d, peers := newcomer(i, tt.cells)
			var out grid.Outbox
			d.Find(grid.Minute, Query{Limit: 1}, &out)
			send := out.Sends[0]
			scan := send.Message.(*Scan)
			asked[send.To]++
			switch via, known := vias[send.To]; {
			case slices.Contains(peers[:4], send.To):
				if scan.Via != "" {
					t.Fatalf("holder %s is asked in the stead of %s", send.To, scan.Via)
				}
			case !slices.Contains(peers[:4], scan.Via) || known && via != scan.Via:
				t.Fatalf("mirror %s is asked in the stead of %q and %q", send.To, scan.Via, via)
			default:
				vias[send.To] = scan.Via
			}
		}
		most := 0
		for _, n := range asked {
			most = max(most, n)
		}
		if mirrored := len(vias) > 0; mirrored != tt.mirrored || tt.cells >= 40*mirrorCells && (len(asked) != 20 || most > sites/10) {
			t.Errorf("with %d cells %d sites are asked, %d of them as mirrors, one %d times of %d", tt.cells, len(asked), len(vias), most, sites)
		}
	}
}

// What a site knows of the root does not count for ever, or against what a holder says.
func TestLikelyMirrorsGiveWay(t *testing.T) {
	d, _ := newcomer(2, 40*mirrorCells)
	r := d.rings.list[root(Price)]
	if n := len(d.rings.likelyMirrors(grid.Minute, r)); n != mirrorsMax {
		t.Fatalf("%d mirrors are likely", n)
	}
	if n := len(d.rings.likelyMirrors(grid.Second+spanMax*d.cfg.Lifetime+1, r)); n != 0 {
		t.Errorf("%d mirrors long after the router named them", n)
	}
	d.maps[Price].Refresh(grid.Day, grid.Hour)
	if n := len(d.rings.likelyMirrors(grid.Minute, r)); n != mirrorsMax {
		t.Errorf("%d mirrors as the map was forgotten", n)
	}
	if _, _, ok := d.rings.mirror(grid.Minute, r); !ok {
		t.Fatal("no mirror is asked first")
	}
	for name, tell := range map[string]func(){
		"a holder says there are none": func() { r.heed("peer 0", false, nil) },
		"a mirror did not answer":      func() { r.forgo("peer 9") },
	} {
		r.instructed = false
		r.mirrors = nil
		tell()
		if site, _, ok := d.rings.mirror(grid.Minute, r); ok {
			t.Errorf("%s, and %s is asked", name, site)
		}
	}
}

// A holder counts what mirrors answer in its stead, and calls for as many as it takes.
func TestDemandCountsMirrors(t *testing.T) {
	for _, tt := range []struct{ own, answered, mirrors int }{
		{10, 0, 0}, {14, 5, 4}, {30, 0, 4}, {10, 20, 4}, {10, 27, 8}, {10, 1000, mirrorsMax},
	} {
		var m heat
		for i := range tt.own {
			m.count(grid.Time(i), 1, 4)
		}
		m.count(grid.Minute, int64(tt.answered), 4)
		if m.named != tt.mirrors {
			t.Errorf("%d scans here and %d at mirrors make %d mirrors, want %d", tt.own, tt.answered, m.named, tt.mirrors)
		}
	}
}

// After a mirror that does not hold the cell a holder is asked, also by the next query.
func TestUselessMirrorIsNotAskedAgain(t *testing.T) {
	d, peers := newcomer(2, 40*mirrorCells)
	var out grid.Outbox
	d.Find(grid.Minute, Query{Limit: 1}, &out)
	if scan := out.Sends[0].Message.(*Scan); scan.Via == "" {
		t.Fatal("no mirror is asked first")
	}
	d.Step(grid.Minute, pageOf(&out, Page{}), &out)
	d.Find(grid.Minute, Query{Limit: 1}, &out)
	if len(out.Sends) != 2 {
		t.Fatalf("%d messages, want one of each query", len(out.Sends))
	}
	for _, send := range out.Sends {
		if !slices.Contains(peers[:4], send.To) || send.Message.(*Scan).Via != "" {
			t.Errorf("%s is asked in the stead of %q", send.To, send.Message.(*Scan).Via)
		}
	}
}

// pageOf answers the scan that was sent last.
func pageOf(out *grid.Outbox, p Page) *grid.Delivery {
	send := out.Sends[len(out.Sends)-1]
	p.Token, p.Cell = send.Message.(*Scan).Token, send.Message.(*Scan).Cell
	out.Reset()
	return &grid.Delivery{From: send.To, Message: &p}
}

// question asks a site in the stead of "holder" for a page of the root.
func question() *grid.Delivery {
	return &grid.Delivery{From: "asker", Message: &Scan{Token: 7, Cell: root(Price), Limit: 1, Via: "holder"}}
}

// A mirror tells the holder how many questions it has answered since it said so last,
// and a copy that the holder has called out of date while it came is used only once.
func TestMirrorFetches(t *testing.T) {
	d := newDirectory(Config{})
	var out grid.Outbox
	held := Page{Held: true, Mature: true, HasFences: true}
	ask := func(now grid.Time, questions int, want int32) {
		t.Helper()
		out.Reset()
		for range questions {
			d.Step(now, question(), &out)
		}
		i := slices.IndexFunc(out.Sends, func(s grid.Send) bool { return s.To == "holder" })
		switch {
		case want == 0 && i >= 0:
			t.Fatalf("at %v the holder is asked", now)
		case want == 0:
			return
		case i < 0:
			t.Fatalf("at %v the holder is not asked", now)
		}
		scan := out.Sends[i].Message.(*Scan)
		if scan.Answered != want || !scan.Image {
			t.Fatalf("at %v the holder hears of %d answers, want %d", now, scan.Answered, want)
		}
		out.Reset()
		out.Send("holder", scan)
	}
	ask(grid.Second, 1, 1)
	d.Step(grid.Second, pageOf(&out, held), &out)
	ask(2*grid.Second, 4, 0)
	ask(grid.Minute, 1, 5)
	d.Step(grid.Minute, &grid.Delivery{From: "holder", Message: &Page{Cell: root(Price)}}, &out)
	d.Step(grid.Minute, pageOf(&out, held), &out)
	if len(out.Sends) != 1 || !out.Sends[0].Message.(*Page).Held {
		t.Fatalf("%d answers to the one who waited", len(out.Sends))
	}
	ask(grid.Minute+1, 1, 1)
	d.Step(grid.Minute+1, pageOf(&out, held), &out)
	ask(grid.Minute+2, 2*mirroredScansMax, 0)
	ask(2*grid.Minute, 1, mirroredScansMax)
}

// A holder that never comes to an end, or does not keep the order, is given up.
func TestMirrorGivesUp(t *testing.T) {
	ordered := func(i int) []*Quote { return []*Quote{quoteAt("a", grid.Price(10+i), 1, 0)} }
	for name, tt := range map[string]struct {
		quotes func(i int) []*Quote
		pages  int
	}{
		"endless": {ordered, mirrorPagesMax + 1},
		"again":   {func(int) []*Quote { return ordered(0) }, 2},
		"empty":   {func(int) []*Quote { return nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(Config{})
			var out grid.Outbox
			d.Step(0, question(), &out)
			pages := 0
			for len(out.Sends) == 1 && out.Sends[0].To == "holder" && pages < 100 {
				d.Step(0, pageOf(&out, Page{Held: true, Mature: true, HasFences: pages == 0, More: true, Quotes: tt.quotes(pages)}), &out)
				pages++
			}
			if pages != tt.pages || len(out.Sends) != 1 || out.Sends[0].Message.(*Page).Held {
				t.Errorf("%d pages, want %d; then %d messages", pages, tt.pages, len(out.Sends))
			}
		})
	}
}
