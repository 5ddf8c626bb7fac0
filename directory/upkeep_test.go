package directory

import (
	"slices"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// A holder asks its way from the root downwards, then reports to the parent straight,
// and asks again after four lifetimes, eight, and every eight.
func TestRoute(t *testing.T) {
	sh := &newDirectory(Config{Lifetime: grid.Minute}).shared
	at := trie.Position{Hi: 0x5 << 60}
	root, parent, between, x := trie.Prefix{}, trie.PrefixOf(at, 4), trie.PrefixOf(at, 8), trie.PrefixOf(at, 12)
	var r route
	expect := func(what string, bearing bearing, way trie.Prefix) {
		t.Helper()
		if r.bearing != bearing || r.way != way {
			t.Fatalf("%s: bearing %d, asks %v; want %d, %v", what, r.bearing, r.way, bearing, way)
		}
	}
	r.begin(0, sh)
	expect("at first", lost, root)
	if r.moved(trie.PrefixOf(trie.Last(), 4), x) || r.moved(x, x) {
		t.Fatal("is led to a cell that is not above its own")
	}
	if !r.moved(parent, x) {
		t.Fatal("is not led to the parent")
	}
	expect("on the way", lost, parent)
	r.arrived()
	expect("once the parent has noted it", settled, parent)
	r.begin(grid.Minute, sh)
	expect("in the next round", settled, parent)

	now := r.again
	if now < 3*grid.Minute || now > 4*grid.Minute {
		t.Errorf("asks from the root again after %v", now)
	}
	r.begin(now, sh)
	expect("when it is time", checking, root)
	if r.again < now+6*grid.Minute || r.again > now+8*grid.Minute {
		t.Errorf("asks again after another %v", r.again-now)
	}
	r.begin(now+1, sh)
	expect("after a round without an answer", settled, parent)
	if !r.moved(between, x) || r.moved(between, x) {
		t.Fatal("is not led to a cell that has come between, once")
	}
	expect("to a cell between", lost, between)
	r.arrived()
	expect("once that has noted it", settled, between)

	for i := range hopsMax + 1 {
		r.way = root
		if r.moved(parent, x) != (i < hopsMax-1) { // one was between
			t.Fatalf("hop %d", i)
		}
	}

	r = route{bearing: settled} // the root is the parent
	r.begin(grid.Hour, sh)
	expect("to the root", settled, root)
}

// A holder is mature when in one round nobody differs and no stray is left above, or
// when it has been there for long; not when a question is open.
func TestUpkeepConcludes(t *testing.T) {
	const lifetime = grid.Minute
	for _, tt := range []struct {
		name   string
		round  round
		isRoot bool
		age    grid.Time
		want   standing
		clear  bool
	}{
		{"all agree, and the parent knows it", round{noted: true}, false, 0, mature, true},
		{"all agree about the root", round{}, true, 0, mature, true},
		{"the parent does not know it", round{}, false, 0, proving, false},
		{"another holder differs", round{noted: true, differs: true}, false, 0, proving, true},
		{"there are strays above", round{noted: true, strays: true}, false, 0, proving, false},
		{"long ago", round{differs: true, strays: true}, false, matureAge * lifetime / 2, mature, false},
		{"a question is open", round{open: 1, noted: true}, false, 0, proving, false},
	} {
		u := upkeep{round: tt.round, fresh: true}
		u.round.open++
		u.conclude(tt.age, tt.isRoot, lifetime)
		if u.standing != tt.want || u.clear != tt.clear || u.fresh != (tt.want == proving) {
			t.Errorf("%s: standing %d, clear %v, fresh %v", tt.name, u.standing, u.clear, u.fresh)
		}
	}
}

// Who is displaced takes its time; who has doubts asks soon, but not for ever.
func TestUpkeepSpans(t *testing.T) {
	sh := &newDirectory(Config{Timeout: grid.Second}).shared
	var u upkeep
	u.prove(0, sh)
	if u.next >= grid.Second {
		t.Errorf("first round at %v", u.next)
	}
	for i := range 40 {
		now := u.next
		u.begin(now, sh)
		if span := u.next - now; (span <= 2*grid.Second) != (i < eagerMax) || span > sh.cfg.Lifetime/2 {
			t.Fatalf("round %d is followed after %v", i, span)
		}
	}
	if u.next-u.last < sh.cfg.Lifetime/3 {
		t.Errorf("at last every %v", u.next-u.last)
	}
	for _, tt := range []struct {
		standing    standing
		clear       bool
		first, then grid.Time
	}{
		{mature, true, 4 * grid.Second, sh.cfg.Lifetime / 2},
		{displaced, false, 4 * grid.Second, sh.cfg.Lifetime / 2},
		{mature, false, 4 * grid.Second, 4 * grid.Second},
	} {
		u = upkeep{}
		for _, want := range []grid.Time{tt.first, tt.then} { // the first time it proves, and when it has rested and had doubts
			u.prove(0, sh)
			u.standing, u.clear = tt.standing, tt.clear
			if u.begin(0, sh); u.pause != want {
				t.Errorf("%d, clear %t, waits %v for the next round, want %v", tt.standing, tt.clear, u.pause, want)
			}
			for range 20 {
				u.begin(0, sh)
			}
		}
	}
}

// A mature holder asks again soon when it has learned nothing certain of the cells above, as those below
// it cannot prove theirs until then.
func TestCloudedHolderAsksAgain(t *testing.T) {
	d := newDirectory(Config{Self: "h", Timeout: grid.Second})
	h := d.holder.hold(0, cell{Price, trie.Prefix{Length: 1}})
	u := &h.upkeep
	u.standing, u.clear, u.pause, u.span = mature, true, 5*grid.Minute, 5*grid.Minute
	for _, tt := range []struct {
		name  string
		round round
		want  grid.Time
	}{
		{"all is well", round{open: 1, noted: true}, 5 * grid.Minute},
		{"a holder of the parent is silent", round{open: 1, noted: true, strays: true}, 2 * grid.Second},
		{"it still is", round{open: 1, noted: true, strays: true}, 4 * grid.Second},
		{"it is not any more", round{open: 1, noted: true}, 8 * grid.Second},
	} {
		u.begin(grid.Hour, d.holder.shared)
		u.round = tt.round
		d.holder.conclude(grid.Hour, h)
		if wait := u.next - grid.Hour; wait > tt.want || wait < tt.want-tt.want/8 {
			t.Errorf("%s: the next round is in %v, want %v", tt.name, wait, tt.want)
		}
	}
	if u.begin(grid.Hour, d.holder.shared); u.pause != 5*grid.Minute {
		t.Errorf("the round after that is in %v", u.pause)
	}
}

// Whether there are strays above is known by those who hold the parent, not by who stands in for one of them.
func TestStandInKnowsNothingOfStrays(t *testing.T) {
	d := newDirectory(Config{Self: "h"})
	parent, child := cell{Price, trie.Prefix{Length: 1}}, cell{Price, trie.Prefix{Length: 2}}
	for s, want := range map[standing]int32{proving: 1, mature: 1, displaced: 0} {
		d.holder.hold(0, parent).upkeep.standing = s
		if got := d.holder.note(0, "x", &Report{Cell: parent, Child: child.Prefix}); got.Strays != want {
			t.Errorf("standing %d says that there are %d strays, want %d", s, got.Strays, want)
		}
	}
	h := d.holder.hold(0, child)
	r := d.rings.at(0, parent)
	d.rings.fill(r, []grid.SiteID{"a", "b", "c", "d", "e"})
	for _, tt := range []struct {
		name string
		from grid.SiteID
		ring uint64
		want bool
	}{
		{"a holder", "d", r.digest, true},
		{"a holder that knows others", "d", r.digest + 1, false},
		{"a stand-in", "e", r.digest, false},
	} {
		h.upkeep.route.parent = parent.Prefix
		h.upkeep.round = round{number: 1, open: 2}
		d.holder.onReported(0, request{purpose: forKeep, site: tt.from, cell: child, round: 1}, &Reported{Ring: tt.ring}, &grid.Outbox{})
		if h.upkeep.round.noted != tt.want {
			t.Errorf("%s has taken the report: %t, want %t", tt.name, h.upkeep.round.noted, tt.want)
		}
	}
}

// What the parent's holders have been told is said again only if the cell has more, or
// is not known any more.
func TestWord(t *testing.T) {
	low, high := trie.SummaryOf(1, 1, 1, 9), trie.SummaryOf(1, 1, 8, 9)
	var w word
	if w.raise(high) || w.retract() {
		t.Error("nothing was said, and it is to be said again")
	}
	w = word{given: true, summary: low}
	if w.raise(low) || !w.raise(high) || w.raise(high) || w.retries != triesMax {
		t.Errorf("a rise is not said once: %+v", w)
	}
	if !w.retract() || w.retract() || w.raise(high) {
		t.Errorf("what is not known any more is not said once: %+v", w)
	}
}

// A holder that still lacks quotes after its first round fetches what another one has, and
// believes that it has all once that one also knows that it holds the cell.
func TestNewHolderCopiesWhatOthersHave(t *testing.T) {
	for _, tt := range []struct {
		name      string
		witnesses int
		eager     int
		old       bool
		page      Page
		want      bool
	}{
		{"another one has more", 0, copyAfter, true, Page{Held: true, Count: 3, Sum: 7}, true},
		{"another one has others", 0, copyAfter, true, Page{Held: true, Count: 1, Sum: 7}, true},
		{"in the first round", 0, copyAfter - 1, true, Page{Held: true, Count: 3, Sum: 7}, false},
		{"another one has fewer", 0, copyAfter, true, Page{Held: true, Sum: 7}, false},
		{"it is no holder", 0, copyAfter, true, Page{Count: 3, Sum: 7}, false},
		{"it knows other cells below", 0, copyAfter, false, Page{Held: true, Sum: 7, HasFences: true}, true},
		{"it knows cells that have expired here", 0, copyAfter, true, Page{Held: true, Count: 3, Sum: 7, HasFences: true}, false},
		{"members may lie", 1, copyAfter, true, Page{Held: true, Count: 3, Sum: 7}, false},
		{"members may lie about cells", 1, copyAfter, false, Page{Held: true, Count: 3, Sum: 7, HasFences: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, h, out := newHolding(Config{Witnesses: tt.witnesses})
			h.upkeep.eager, h.upkeep.fresh = tt.eager, !tt.old
			for _, from := range []grid.SiteID{"a", "b"} {
				d.holder.onSum(0, request{purpose: forSum, site: from, cell: h.cell, round: 1}, &tt.page, out)
			}
			if asked := len(out.Sends) == 1 && out.Sends[0].To == "a" && out.Sends[0].Message.(*Scan).Limit == PageMax; asked != tt.want || len(out.Sends) > 1 {
				t.Errorf("sends %v, want one question to a: %t", out.Sends, tt.want)
			} else if asked && (out.Sends[0].Message.(*Scan).At == trie.Last()) != tt.page.HasFences {
				t.Error("asks for quotes, and not for the cells below first, or the other way round")
			}
			if !h.upkeep.round.differs {
				t.Error("they agree")
			}
		})
	}

	d, h, out := newHolding(Config{})
	h.upkeep.eager = copyAfter
	d.holder.onSum(0, request{purpose: forSum, site: "a", cell: h.cell, round: 1}, &Page{Held: true, Count: 3, Sum: 7}, out)
	stale := quoteAt("e", 5, 1, 0)
	stale.Lifetime = 0
	below := trie.PrefixOf(trie.Last(), 4)
	page := &Page{Cell: h.cell, More: true, HasFences: true, Fences: []trie.Prefix{below}, Quotes: []*Quote{quoteAt("q", 1, 1, 0), quoteAt("r", 2, 1, 0), stale, quoteAt("s", 3, 1, 0)}}
	ask := out.Sends[0].Message.(*Scan)
	out.Reset()
	d.Step(0, &grid.Delivery{From: "a", Message: withToken(page, ask.Token)}, out)
	if got := held(d, 0, h.cell); !slices.Equal(got, []grid.SiteID{"q", "r", "s"}) {
		t.Fatalf("holds %v after the first page", got)
	}
	if strays := h.strays(0, trie.Prefix{}); strays != 1 {
		t.Errorf("waits for the sites of %d copies to move them, want 1: those of the others do not know it", strays)
	}
	if f := h.fences.Get(below); f == nil || f.Expires != d.cfg.Lifetime {
		t.Errorf("of the cell below it knows %v", f)
	}
	later := trie.PrefixOf(trie.Last(), 5)
	h.upkeep.fresh = false
	d.holder.onCopies(0, request{cell: h.cell}, &Page{Cell: h.cell, HasFences: true, Fences: []trie.Prefix{later}}, &grid.Outbox{})
	if h.fences.Get(later) != nil {
		t.Error("takes cells that others know though it has been mature")
	}
	next := out.Sends[0].Message.(*Scan)
	if want := page.Quotes[3].at(Price).Next(); next.At != want {
		t.Errorf("goes on at %v, want %v", next.At, want)
	}
	d.Step(0, &grid.Delivery{From: "a", Message: withToken(&Page{Cell: h.cell}, next.Token)}, out)
	if soon := d.cfg.Timeout / 4; h.upkeep.next > soon {
		t.Errorf("compares again at %v, want by %v", h.upkeep.next, soon)
	}
	count, sum := h.stand(0)
	for ring, differs := range map[uint64]bool{h.upkeep.round.ring: false, 1: true} {
		h.upkeep.round.open, h.upkeep.round.differs = 2, false
		d.holder.onSum(0, request{purpose: forSum, site: "a", cell: h.cell, round: 1}, &Page{Held: true, Count: count, Sum: sum, Ring: ring}, out)
		if h.upkeep.round.differs != differs {
			t.Errorf("differs %t from one whose ring is %d", h.upkeep.round.differs, ring)
		}
	}
}

// A mature holder that begins to doubt asks the others, and tells its parent only if the doubt lasts, or if there is
// more to say.
func TestDoubtIsToldIfItLasts(t *testing.T) {
	same, other := Page{Held: true}, Page{Held: true, Count: 1, Sum: 7}
	for _, tt := range []struct {
		name    string
		before  func(*Directory, *holding)
		say     Page // of one of the others; they say the same otherwise
		reports int  // to the parent, in the first round
		then    int  // in the second, if it is not mature after the first
	}{
		{"it has all", nil, same, 0, -1},
		{"another one differs", nil, other, 0, 4},
		{"the parent knows no summary", func(_ *Directory, h *holding) { h.upkeep.word.given = false }, same, 4, -1},
		{"the parent is not clear", func(_ *Directory, h *holding) { h.upkeep.clear = false }, same, 4, -1},
		{"a round was due", func(_ *Directory, h *holding) { h.upkeep.next = grid.Minute }, same, 4, -1},
		{"it has others beside it", func(_ *Directory, h *holding) { h.upkeep.told++ }, same, 4, -1},
		{"it has more", func(d *Directory, h *holding) {
			d.holder.doubt(grid.Minute, h)
			d.holder.raise(grid.Minute, h, trie.SummaryOf(1, 1, 8, 9))
		}, same, 4, -1},
		{"it doubted before", func(d *Directory, h *holding) { d.holder.doubt(grid.Minute, h) }, same, 0, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const now, due = grid.Minute, 4 * grid.Minute
			d, h := newChild(now)
			u := &h.upkeep
			u.standing, u.clear, u.next, u.word = mature, true, due, word{given: true, summary: trie.Nothing()}
			u.told = d.rings.list[h.cell].digest
			if tt.before != nil {
				tt.before(d, h)
			}
			d.holder.doubt(now, h)
			round := func(say Page) (reports int) {
				out := &grid.Outbox{}
				d.holder.inspect(u.next, h, out)
				for _, s := range out.Sends {
					switch m := s.Message.(type) {
					case *Report:
						reports++
						d.Step(u.last, &grid.Delivery{From: s.To, Message: &Reported{Token: m.Token, Ring: d.rings.list[root(Price)].digest}}, &grid.Outbox{})
					case *Scan:
						answer := say
						answer.Token, answer.Cell = m.Token, m.Cell
						d.Step(u.last, &grid.Delivery{From: s.To, Message: &answer}, &grid.Outbox{})
						say = same
					}
				}
				if digest := d.rings.list[h.cell].digest; reports > 0 && u.told != digest {
					t.Errorf("the parent knows the holders %x, not %x", u.told, digest)
				}
				return reports
			}
			if got := round(tt.say); got != tt.reports {
				t.Errorf("reports to %d, want %d", got, tt.reports)
			}
			switch {
			case tt.then >= 0:
				if u.standing != proving || u.next > now+3*d.cfg.Timeout {
					t.Fatalf("standing %d, and asks again at %v", u.standing, u.next)
				}
				if got := round(same); got != tt.then || u.standing != mature {
					t.Errorf("reports to %d the second time, want %d; standing %d", got, tt.then, u.standing)
				}
			case u.standing != mature:
				t.Error("it is not mature")
			case tt.reports == 0 && u.next != due:
				t.Errorf("reports at %v, want %v as before", u.next, due)
			case tt.reports > 0 && u.next > now+3*d.cfg.Timeout:
				t.Errorf("says at %v that it has all", u.next)
			}
		})
	}
}

// Who proves tells its parent once that it does, and not in each round, as long as the parent remembers.
func TestProofIsReportedOnce(t *testing.T) {
	d, h := newChild(0)
	u := &h.upkeep
	for i, want := range []bool{false, true, true} {
		u.begin(u.next, d.holder.shared)
		u.round = round{open: 1, noted: true, differs: true, rests: u.last < u.due}
		if u.round.rests != want {
			t.Errorf("round %d rests %t", i, u.round.rests)
		}
		d.holder.conclude(u.last, h)
	}
	if u.due <= 0 || u.due > d.cfg.Lifetime/2 {
		t.Errorf("tells it again at %v", u.due)
	}
}

// As long as a holder does not answer there is no proof, and the rounds become rarer; when it does, they are as
// frequent as at first.
func TestSilentHolderIsAwaited(t *testing.T) {
	d, h := newChild(0)
	r, u := d.rings.list[h.cell], &h.upkeep
	d.rings.suspects.strike(0, "c", true)
	for i, want := range []grid.Time{2, 4, 8, 16} {
		d.holder.inspect(u.next, h, &grid.Outbox{})
		if u.pause != want*grid.Second {
			t.Errorf("round %d: the next one in %v, want %d s", i, u.pause, want)
		}
		r.until = grid.Day
	}
	d.rings.suspects.answered("c")
	if d.holder.inspect(u.next, h, &grid.Outbox{}); u.pause != 2*grid.Second || u.next-u.last > 2*grid.Second {
		t.Errorf("when it answers, the next one in %v", u.pause)
	}
}

// newChild returns a holder of a cell below the root, with three others, that knows the way to its parent.
func newChild(now grid.Time) (*Directory, *holding) {
	d := newDirectory(Config{Timeout: grid.Second})
	h := d.holder.hold(0, cell{Price, trie.Prefix{Length: 1}})
	for c, peers := range map[cell][]grid.SiteID{h.cell: {"me", "a", "b", "c", "e"}, root(Price): {"a", "b", "c", "e"}} {
		r := d.rings.at(now, c)
		d.rings.fill(r, peers)
		r.named, r.until, r.span = now, grid.Day, grid.Day
	}
	h.upkeep.route = route{bearing: settled, again: grid.Day}
	return d, h
}

// newHolding returns a holder that compares its cell, of which it has one quote, with three others.
func newHolding(cfg Config) (*Directory, *holding, *grid.Outbox) {
	d := newDirectory(cfg)
	d.holder.keep(0, quoteAt("q", 1, 1, 0), &Copy{Cell: root(Price)})
	r := d.rings.at(0, root(Price))
	d.rings.fill(r, []grid.SiteID{"me", "a", "b", "c"})
	h := d.holder.holding(root(Price))
	h.upkeep.round = round{number: 1, open: 3, ring: r.digest}
	return d, h, &grid.Outbox{}
}

func withToken(p *Page, token uint64) *Page {
	p.Token = token
	return p
}

// A site that was a holder is told twice who the holders are, and again when others are.
func TestDisplacedHolderIsToldTwice(t *testing.T) {
	d, h, out := newHolding(Config{})
	r := d.rings.at(0, h.cell)
	for _, tt := range []struct {
		peers []grid.SiteID
		to    grid.SiteID
	}{{[]grid.SiteID{"me", "a", "b", "c", "e"}, "e"}, {[]grid.SiteID{"me", "a", "b", "f", "c"}, "c"}} {
		d.rings.fill(r, tt.peers)
		for range 5 {
			d.holder.displace(h, r, tt.peers[:4], out)
		}
		if len(out.Sends) != 2 || out.Sends[0].To != tt.to || out.Sends[1].To != tt.to {
			t.Errorf("with %v: %v, want two to %s", tt.peers, out.Sends, tt.to)
		}
		out.Reset()
	}
}
