package directory

import (
	"cmp"
	"slices"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// jury is a site that asks four holders, of whom some may hide a quote.
type jury struct {
	*Directory
	t     *testing.T
	limit int // of questions; 0: 10
	hides map[grid.SiteID]bool
}

// ask has the site look for all quotes, and returns what it has found, and whom it has asked.
func (j *jury) ask(now grid.Time) (found, asked []grid.SiteID) {
	j.t.Helper()
	var out grid.Outbox
	j.Find(now, Query{Limit: cmp.Or(j.limit, 10)}, &out)
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
	j := &jury{newDirectory(Config{Witnesses: 2}), t, 0, map[grid.SiteID]bool{}}
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
	one := &jury{newDirectory(Config{}), t, 0, map[grid.SiteID]bool{}}
	if _, asked := one.ask(now); len(asked) != 1 {
		t.Errorf("without witnesses %v were asked", asked)
	}
}

// TestWordsForOneQuestion: the word of a holder with which witnesses have agreed is enough for
// the question on which they did, and for the answer that it gave.
func TestWordsForOneQuestion(t *testing.T) {
	j := &jury{newDirectory(Config{Witnesses: 2}), t, 0, map[grid.SiteID]bool{}}
	now := grid.Hour
	_, asked := j.ask(now)
	first := asked[0]
	if _, asked = j.ask(now + grid.Second); len(asked) != 1 || asked[0] != first {
		t.Fatalf("the same question again: asked %v", asked)
	}
	j.hides[first] = true // it has told the truth so far
	if found, asked := j.ask(now + 2*grid.Second); !slices.Equal(found, []grid.SiteID{"a", "c"}) || len(asked) != 3 {
		t.Errorf("another answer: found %v, asked %v", found, asked)
	}
	j.hides[first] = false
	j.ask(now + grid.Minute)
	j.limit = 9
	if _, asked = j.ask(now + grid.Minute + grid.Second); len(asked) != 3 {
		t.Errorf("another question: asked %v", asked)
	}
}

// TestHintsAreNoWitnesses: where members may lie, only the router says who holds a cell, and who
// does not answer is passed over until it does.
func TestHintsAreNoWitnesses(t *testing.T) {
	d := newDirectory(Config{Witnesses: 2})
	c := cell{Price, trie.PrefixOf(trie.Last(), 3)}
	d.rings.hint(0, c, "liar", []grid.SiteID{"friend"})
	if d.rings.knows(c) {
		t.Error("a hint is believed")
	}
	d.rings.suspects.strike(0, "mute", false)
	d.rings.heard(1, "mute")
	if !d.rings.suspects.has(1, "mute") {
		t.Error("who did not answer is asked again because it says something else")
	}
	d.rings.suspects.answered("mute")
	if d.rings.suspects.has(1, "mute") {
		t.Error("who has answered is passed over")
	}
}

// TestCellsThatOneTellsOf: of a cell that most do not hold, a liar's word that it has all quotes
// counts for nothing, nor does what it tells of cells below.
func TestCellsThatOneTellsOf(t *testing.T) {
	d := newDirectory(Config{Witnesses: 3})
	v := &visit{answers: 4, holders: 1, words: 1}
	if d.seeker.carries(v, new(ring)) || v.known() {
		t.Error("one of four is believed")
	}
	v = &visit{answers: 4, holders: 3, words: 3}
	if !d.seeker.carries(v, new(ring)) || !v.known() {
		t.Error("three of four are not believed")
	}
	q := &query{visit: visit{answers: 4, holders: 1, fences: []trie.Prefix{trie.PrefixOf(trie.Last(), 5)}}}
	d.seeker.chart(q)
	if d.maps[Price].Get(trie.PrefixOf(trie.Last(), 5)) != nil {
		t.Error("a cell below one that most do not hold is on the map")
	}
	q.visit.holders = 2
	d.seeker.chart(q)
	if d.maps[Price].Get(trie.PrefixOf(trie.Last(), 5)) == nil {
		t.Error("a cell that holders tell of is not on the map")
	}
}

// TestBarrenByOne: while the holders of a cell are proving, the one that calls itself mature may
// be a liar: that it calls cells barren hides none of them.
func TestBarrenByOne(t *testing.T) {
	d := newDirectory(Config{Witnesses: 3})
	now := grid.Hour
	below := trie.PrefixOf(trie.PositionOf(50, 0), 64)
	var out grid.Outbox
	d.Find(now, Query{Limit: 10}, &out)
	for len(out.Sends) > 0 || len(out.Keys) > 0 {
		sends, keys := slices.Clone(out.Sends), slices.Clone(out.Keys)
		out.Sends, out.Keys, out.Effects = nil, nil, nil
		for _, key := range keys {
			d.Step(now, &grid.Closest{Key: key, Peers: []grid.SiteID{"h1", "h2", "h3", "liar"}}, &out)
		}
		for _, s := range sends {
			scan := s.Message.(*Scan)
			p := &Page{Token: scan.Token, Cell: scan.Cell, Held: true, Quotes: []*Quote{quoteAt("c", 50, 7, now)}}
			if scan.Cell.IsRoot() {
				p.Quotes, p.Fences, p.HasFences = []*Quote{quoteAt("a", 5, 7, now)}, []trie.Prefix{below}, true
			}
			if s.To == "liar" {
				p.Mature, p.Quotes, p.Barren = true, nil, p.Fences
			}
			d.Step(now, &grid.Delivery{From: s.To, Message: p}, &out)
		}
	}
	if len(out.Locals) != 1 {
		t.Fatalf("%d answers", len(out.Locals))
	}
	if f := out.Locals[0].(*Found); !slices.Equal(ids(f.Quotes), []grid.SiteID{"a", "c"}) || f.Certain {
		t.Errorf("found %v, certain %v", ids(f.Quotes), f.Certain)
	}
}

// TestOneOtherToAsk: a site that has just started in a federation of two takes the word of the
// other for all there is; of more, one is no witness.
func TestOneOtherToAsk(t *testing.T) {
	for _, tt := range []struct {
		sites int
		down  int // of the others
	}{{2, 0}, {3, 0}, {4, 1}} {
		n := newNetwork(t, 1, Config{Witnesses: 2})
		populate(n, tt.sites, n.any)
		n.run(10 * grid.Minute)
		s := n.sites[0]
		n.restart(s)
		n.set(s, n.offer(s, 1, 1000, 8))
		for _, other := range n.sites[1 : 1+tt.down] {
			n.kill(other)
		}
		n.run(10 * grid.Second)
		if f := n.find(s, Query{}); !f.Certain || len(f.Quotes) < tt.sites-tt.down {
			t.Errorf("%d sites, %d of them down: certain %v of %v, want all", tt.sites, tt.down, f.Certain, ids(f.Quotes))
		}
	}
	d := newDirectory(Config{Self: "me", Witnesses: 2})
	if v := (&visit{answers: 2, words: 1, asked: []grid.SiteID{"me", "h1"}}); d.seeker.carries(v, &ring{peers: []grid.SiteID{"h1", "h2", "me"}}) {
		t.Error("one of two others is believed")
	}
}

// TestWhoseWordCarries: where members may lie, that of most who have answered, or of as many as can
// hold a cell; elsewhere anybody's.
func TestWhoseWordCarries(t *testing.T) {
	for _, tt := range []struct {
		witnesses, answers, words int
		want                      bool
	}{
		{0, 4, 1, true}, {3, 4, 1, false}, {3, 4, 2, false}, {3, 4, 3, true}, {3, 1, 1, true},
		{3, 4 * replicasMax, replicasMax, true}, {3, 4 * replicasMax, replicasMax - 1, false},
	} {
		d := newDirectory(Config{Witnesses: tt.witnesses})
		if got := d.seeker.carries(&visit{answers: tt.answers, words: tt.words}, new(ring)); got != tt.want {
			t.Errorf("%d of %d, with %d witnesses wanted: %v", tt.words, tt.answers, tt.witnesses, got)
		}
	}
}
