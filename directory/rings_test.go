package directory

import (
	"slices"
	"strings"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// settledRing returns a directory that has been told who holds the root cell.
func settledRing(t *testing.T, peers ...grid.SiteID) (*Directory, *ring, *grid.Outbox) {
	t.Helper()
	d := newDirectory(Config{})
	out := &grid.Outbox{}
	r := d.rings.get(0, root(Price), out)
	d.Step(0, &grid.Closest{Key: r.key, Peers: peers}, out)
	out.Reset()
	return d, r, out
}

// Holders who confirm who they are need not be looked up again; one who contradicts
// makes the router be asked.
func TestHoldersConfirmEachOther(t *testing.T) {
	d, r, out := settledRing(t, "a", "b", "c", "d")
	later := 10 * grid.Minute
	if !d.rings.compare(later, r, "a", r.digest, nil) || r.until <= later {
		t.Errorf("believed until %v after a confirmation at %v", r.until, later)
	}
	if !d.rings.compare(later, r, "a", 0, nil) {
		t.Error("who says nothing contradicts")
	}
	if d.rings.compare(later, r, "a", r.digest+1, nil) || r.until > later {
		t.Errorf("believed until %v after a contradiction at %v", r.until, later)
	}
	if d.rings.get(later, root(Price), out); len(out.Keys) != 1 {
		t.Errorf("%d look-ups after a contradiction", len(out.Keys))
	}

	d, r, _ = settledRing(t, "me", "b", "c", "d")
	fresh := r.until
	if d.rings.compare(later, r, "b", r.digest, nil); r.until != fresh {
		t.Error("a holder itself was content with a confirmation: then nobody would look up")
	}
}

// Who is not answered by anybody does not hold a cell alone: it may be that it is not heard.
func TestNobodyHoldsACellAloneForWantOfAnswers(t *testing.T) {
	d, r, _ := settledRing(t, "a", "me", "b", "c")
	for _, tt := range []struct{ mute, want []grid.SiteID }{
		{nil, []grid.SiteID{"a", "me", "b", "c"}},
		{[]grid.SiteID{"a", "b"}, []grid.SiteID{"me", "c"}},
		{[]grid.SiteID{"c"}, []grid.SiteID{"a", "me", "b", "c"}},
	} {
		for _, site := range tt.mute {
			d.rings.suspects.strike(0, site, true)
		}
		if got := d.rings.holders(1, r, nil); !slices.Equal(got, tt.want) {
			t.Errorf("after %v did not answer, too: %v, want %v", tt.mute, got, tt.want)
		}
	}
}

// A holder whom others contradict looks, but not for each of them.
func TestContradictedHolderLooks(t *testing.T) {
	d, r, _ := settledRing(t, "me", "b", "c", "d")
	d.holder.hold(0, root(Price))
	r.until = grid.Hour
	d.holder.contradicted(grid.Second, root(Price), r.digest+1)
	if r.until != grid.Hour {
		t.Error("looks again although it has just done so")
	}
	d.holder.contradicted(grid.Minute, root(Price), r.digest)
	d.holder.contradicted(grid.Minute, root(Price), 0)
	if r.until != grid.Hour {
		t.Error("looks although nobody contradicts")
	}
	if d.holder.contradicted(grid.Minute, root(Price), r.digest+1); r.until != grid.Minute {
		t.Error("does not look")
	}
}

// A holder that has always been told the same by the router looks the less often because
// others contradict. If a copy has expired it looks soon: whoever left it may have other holders.
func TestHolderThatIsSureLooksSeldom(t *testing.T) {
	d, r, _ := settledRing(t, "me", "b", "c", "d")
	h := d.holder.hold(0, root(Price))
	r.span, r.until = grid.Hour, grid.Hour
	d.holder.contradicted(grid.Minute, root(Price), r.digest+1)
	if r.until != grid.Hour {
		t.Error("looks a minute after the router has said the same")
	}
	if d.holder.contradicted(8*grid.Minute, root(Price), r.digest+1); r.until != 8*grid.Minute {
		t.Error("does not look")
	}
	r.until = grid.Hour
	soon := d.cfg.Lifetime / 16
	if d.holder.doubt(grid.Second, h); r.until != soon {
		t.Errorf("a copy has expired, perhaps as others hold the cell: looks at %v, want %v", r.until, soon)
	}
	r.until = grid.Hour
	h.upkeep.eager, h.upkeep.round.differs = wonderAfter, true
	if d.holder.wonder(2*grid.Minute, h); r.until != 2*grid.Minute {
		t.Errorf("others have other quotes, and it looks at %v", r.until)
	}
}

// A round in which all agree is no proof if others are found to hold the cell before it ends, or
// the router is asked and has not answered yet.
func TestRoundWithOtherHoldersProvesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		router []grid.SiteID // answers before the round ends; nil: it does not
		want   standing
	}{
		{"nobody else", []grid.SiteID{"me", "b", "c"}, mature},
		{"somebody else", []grid.SiteID{"d", "me", "b", "c"}, proving},
		{"no answer", nil, proving},
	} {
		d, r, out := settledRing(t, "me", "b", "c")
		h := d.holder.hold(0, root(Price))
		now := h.upkeep.next
		d.holder.inspect(now, h, out)
		scans := slices.Clone(out.Sends)
		d.rings.lookUp(now, r, out)
		if tt.router != nil {
			d.Step(now, &grid.Closest{Key: r.key, Peers: tt.router}, out)
		}
		for _, s := range scans {
			if m, ok := s.Message.(*Scan); ok {
				d.Step(now, &grid.Delivery{From: s.To, Message: &Page{Token: m.Token, Cell: m.Cell, Held: true}}, out)
			}
		}
		if h.upkeep.standing != tt.want || h.upkeep.round.open != 0 {
			t.Errorf("%s: standing %d, want %d; %d questions open", tt.name, h.upkeep.standing, tt.want, h.upkeep.round.open)
		}
	}
}

// A round that begins as the router is asked who the holders are ends with its answer. It proves
// nothing if that is another one, or none, or if a doubt has come up before.
func TestRoundWaitsForTheRouter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		router []grid.SiteID
		doubt  bool
		want   standing
	}{
		{"the same", []grid.SiteID{"me", "b", "c"}, false, mature},
		{"somebody else", []grid.SiteID{"d", "me", "b", "c"}, false, proving},
		{"nobody", nil, false, proving},
		{"the same, after a doubt", []grid.SiteID{"me", "b", "c"}, true, proving},
	} {
		d, r, out := settledRing(t, "me", "b", "c")
		h := d.holder.hold(0, root(Price))
		now := h.upkeep.next
		d.rings.lookUp(now, r, out)
		d.holder.inspect(now, h, out)
		for _, s := range slices.Clone(out.Sends) {
			if m, ok := s.Message.(*Scan); ok {
				d.Step(now, &grid.Delivery{From: s.To, Message: &Page{Token: m.Token, Cell: m.Cell, Held: true}}, out)
			}
		}
		if h.isMature() || h.upkeep.round.open != 1 {
			t.Fatalf("%s: standing %d with %d questions open, want the router's", tt.name, h.upkeep.standing, h.upkeep.round.open)
		}
		if tt.doubt {
			d.holder.doubt(now, h)
		}
		d.Step(now, &grid.Closest{Key: r.key, Peers: tt.router}, out)
		if h.upkeep.standing != tt.want || h.upkeep.round.open != 0 {
			t.Errorf("%s: standing %d, want %d; %d questions open", tt.name, h.upkeep.standing, tt.want, h.upkeep.round.open)
		}
		d.Step(now, &grid.Closest{Key: r.key, Peers: tt.router}, out) // that nobody has asked for
		if h.upkeep.round.open != 0 {
			t.Errorf("%s: %d questions open after another answer", tt.name, h.upkeep.round.open)
		}
	}
}

// Who was alone, as far as the router knew, has proved nothing about what others hold: it proves anew
// once the router names some. More than are to hold the cell make no difference.
func TestWhoWasAloneProvesAnew(t *testing.T) {
	d, r, _ := settledRing(t, "me")
	h := d.holder.hold(0, root(Price))
	var out grid.Outbox
	for _, tt := range []struct {
		name string
		want standing // before the next round
	}{{"me", mature}, {"me b", proving}, {"me b c d", proving}, {"me b c d e", mature}} {
		now := h.upkeep.next
		d.rings.lookUp(now, r, &out)
		var peers []grid.SiteID
		for _, s := range strings.Fields(tt.name) {
			peers = append(peers, grid.SiteID(s))
		}
		if tt.name == "me" {
			d.holder.inspect(now, h, &out)
		}
		d.Step(now, &grid.Closest{Key: r.key, Peers: peers}, &out)
		if h.upkeep.standing != tt.want {
			t.Fatalf("with %s: standing %d, want %d", tt.name, h.upkeep.standing, tt.want)
		}
		out.Reset()
		d.holder.inspect(h.upkeep.next, h, &out)
		for _, s := range slices.Clone(out.Sends) {
			if m, ok := s.Message.(*Scan); ok {
				d.Step(now, &grid.Delivery{From: s.To, Message: &Page{Token: m.Token, Cell: m.Cell, Held: true}}, &out)
			}
		}
		if len(out.Keys) > 0 {
			d.Step(now, &grid.Closest{Key: r.key, Peers: peers}, &out)
		}
		if !h.isMature() {
			t.Fatalf("with %s: standing %d after a round in which all agree", tt.name, h.upkeep.standing)
		}
	}
}

// Who comes to stand in for a holder that it cannot reach is not believed alone any more, neither
// by others nor by itself.
func TestWhoStandsInIsNotMature(t *testing.T) {
	for _, how := range []string{"asked", "in its round"} {
		d, r, out := settledRing(t, "me", "b", "c", "d")
		h := d.holder.hold(0, root(Price))
		h.upkeep.standing = mature
		if p := d.holder.onScan(0, "asker", &Scan{Cell: h.cell, Limit: 1}); !p.Mature {
			t.Fatal("a holder that was mature is not")
		}
		d.rings.suspects.strike(0, "e", true)
		d.rings.lookUp(0, r, out)
		d.Step(0, &grid.Closest{Key: r.key, Peers: []grid.SiteID{"e", "b", "c", "d", "me"}}, out)
		mature := false
		if how == "asked" {
			mature = d.holder.onScan(0, "asker", &Scan{Cell: h.cell, Limit: 1}).Mature
		} else {
			d.holder.inspect(0, h, out)
			mature = h.isMature()
		}
		if mature || h.upkeep.standing != proving {
			t.Errorf("%s: mature %t, standing %d, want it to prove", how, mature, h.upkeep.standing)
		}
	}
}

// A round asks a holder, too, that is passed over as it did not answer: it may have what nobody else
// has. Only who lies is left out.
func TestRoundAsksSuspects(t *testing.T) {
	for _, tt := range []struct {
		name          string
		lied, answers bool
		want          standing
	}{
		{"it answers", false, true, mature},
		{"it does not", false, false, proving},
		{"it lies", true, false, mature},
	} {
		d, _, out := settledRing(t, "me", "b", "c", "d", "e")
		h := d.holder.hold(0, root(Price))
		now := h.upkeep.next
		if tt.lied {
			d.rings.suspects.distrust(now, "b")
		} else {
			d.rings.suspects.strike(now, "b", true)
		}
		d.holder.inspect(now, h, out)
		for _, s := range slices.Clone(out.Sends) {
			if m, ok := s.Message.(*Scan); ok && (s.To != "b" || tt.answers) {
				d.Step(now, &grid.Delivery{From: s.To, Message: &Page{Token: m.Token, Cell: m.Cell, Held: true}}, out)
			}
		}
		if h.upkeep.standing != tt.want {
			t.Errorf("%s: standing %d, want %d", tt.name, h.upkeep.standing, tt.want)
		}
		d.Step(now+2*d.cfg.Timeout, grid.Tick{}, out)
		if suspect := d.rings.suspects.has(now, "b"); suspect == tt.answers {
			t.Errorf("%s: passed over afterwards: %t", tt.name, suspect)
		}
	}
}

// Who is told by a holder who the others are takes its word a few times before it asks the
// router, unless it is one of them, somebody else says so, or members may lie.
func TestWordOfHolders(t *testing.T) {
	now := 10 * grid.Minute
	holders := []grid.SiteID{"a", "b", "c", "e"}
	for _, tt := range []struct {
		name    string
		self    grid.SiteID // that the router has named instead of d
		from    grid.SiteID
		says    []grid.SiteID
		witness int
		want    bool
	}{
		{"its word counts", "d", "b", holders, 0, true},
		{"one that is a holder no more", "d", "d", holders, 0, true},
		{"it does not say who", "d", "b", nil, 0, false},
		{"a stranger", "d", "x", holders, 0, false},
		{"this site is a holder", "me", "b", holders, 0, false},
		{"this site is to be one", "d", "b", []grid.SiteID{"a", "b", "c", "me"}, 0, false},
		{"members may lie", "d", "b", holders, 1, false},
	} {
		d, r, out := settledRing(t, "a", "b", "c", tt.self, "f")
		d.rings.cfg.Witnesses = tt.witness
		if d.rings.compare(now, r, tt.from, r.digest+1, tt.says) {
			t.Errorf("%s: they agree", tt.name)
		}
		d.rings.get(now, root(Price), out)
		if took := slices.Equal(r.peers, []grid.SiteID{"a", "b", "c", "e", "d", "f"}); took != tt.want || (len(out.Keys) == 0) != tt.want {
			t.Errorf("%s: holders are %v, %d look-ups", tt.name, r.peers, len(out.Keys))
		}
	}
	d, r, out := settledRing(t, "a", "b", "c", "d")
	for i := range wordsMax + 1 {
		now += grid.Minute
		word := []grid.SiteID{"a", "b", "c", grid.SiteID(rune('e' + i))}
		d.rings.compare(now, r, "a", r.digest+1, word)
		d.rings.compare(now+1, r, "b", r.digest+1, holders) // an answer that was under way
		if d.rings.get(now+1, root(Price), out); i < wordsMax && (!slices.Equal(r.peers[:4], word) || len(out.Keys) > 0) {
			t.Errorf("word %d: %v, %d look-ups", i, r.peers, len(out.Keys))
		}
	}
	if len(out.Keys) != 1 {
		t.Errorf("%d look-ups when holders say one thing and another", len(out.Keys))
	}
}

// A holder that does not answer is replaced by one that the router has named already; it is
// asked again when there is none.
func TestSpareHolders(t *testing.T) {
	d, r, out := settledRing(t, "a", "b", "c", "d", "e")
	now := grid.Second
	d.SetQuote(now, goodQuote(), out)
	until := r.until
	for i, dead := range []grid.SiteID{"b", "e"} {
		d.Step(now, &grid.Undelivered{To: dead, Message: &Publish{Quote: d.publisher.own, Copies: []Copy{{Cell: root(Price)}}}}, out)
		if looks := r.until != until; looks != (i == 1) {
			t.Errorf("%s cannot be reached: looks again at %v, without it %v", dead, r.until, until)
		}
	}
}

// A hint spares a look-up, but does not replace what the router has said.
func TestHints(t *testing.T) {
	d, r, out := settledRing(t, "a", "b", "c", "d")
	d.rings.hint(0, root(Price), "x", []grid.SiteID{"x"})
	if !slices.Equal(r.peers, []grid.SiteID{"a", "b", "c", "d"}) {
		t.Errorf("a hint replaced the router's answer: %v", r.peers)
	}
	c := cell{Price, trie.PrefixOf(trie.Last(), 3)}
	d.rings.hint(0, c, "x", []grid.SiteID{"e", "f"})
	if r := d.rings.forQuery(0, c, out); !slices.Equal(r.peers, []grid.SiteID{"e", "f"}) || len(out.Keys) != 0 {
		t.Errorf("with a hint %v, %d look-ups", r.peers, len(out.Keys))
	}
}

// Fences tell who holds their cells in the order in which a scan comes to them, and
// only what one of those holders has said itself.
func TestHintsComeInOrder(t *testing.T) {
	d := newDirectory(Config{})
	var cells []trie.Prefix
	for _, bits := range []uint64{0x2, 0x5, 0x9} {
		cells = append(cells, trie.PrefixOf(trie.Position{Hi: bits << 60}, 4))
	}
	for i, x := range cells {
		site := grid.SiteID(rune('a' + i))
		d.holder.note(0, site, &Report{Cell: root(Price), Child: x, Holders: []grid.SiteID{site, "other"}})
	}
	d.holder.note(0, "liar", &Report{Cell: root(Price), Child: cells[1], Holders: []grid.SiteID{"accomplice"}})
	h := d.holder.holding(root(Price))
	for _, tt := range []struct {
		at   trie.Position
		down bool
		want string
	}{
		{trie.First(), false, "abc"}, {trie.Last(), true, "cba"}, {trie.Position{Hi: 0x3 << 60}, false, "bc"},
		{trie.Position{Hi: 0x5<<60 | 1}, false, "bc"}, {trie.Position{Hi: 0x5<<60 | 1}, true, "ba"}, {trie.First(), true, ""},
	} {
		got := ""
		for _, hint := range h.hints(tt.at, tt.down, nil) {
			got += string(hint.Holders[0])
		}
		if got != tt.want {
			t.Errorf("from %x, down %v: %q, want %q", tt.at.Hi, tt.down, got, tt.want)
		}
	}
}

// A site that found nobody, or too few, looks again as soon as it hears of somebody,
// and by itself every few seconds as long as it is alone.
func TestLonelySiteFindsOthersQuickly(t *testing.T) {
	d, r, out := settledRing(t, "me")
	for range 20 {
		d.Step(r.until, grid.Tick{}, out)
		now := r.until
		d.rings.get(now, root(Price), out)
		d.Step(now, &grid.Closest{Key: r.key, Peers: []grid.SiteID{"me"}}, out)
		if r.until-now > spanAlone {
			t.Fatalf("alone for another %v", r.until-now)
		}
	}

	d, r, out = settledRing(t, "me", "b")
	r.until = grid.Hour
	d.Step(grid.Minute, &grid.Delivery{From: "b", Message: &Published{}}, out)
	if r.until != grid.Hour {
		t.Error("looks again because of a site that it knows")
	}
	d.Step(grid.Minute, &grid.Delivery{From: "stranger", Message: &Published{}}, out)
	if r.until != grid.Minute || d.NextTimer() > grid.Minute {
		t.Errorf("looks again at %v, wakes at %v", r.until, d.NextTimer())
	}
}

// TestHintsFitAPage: as many as there is room for, whatever the names; a mirror gets those from both ends.
func TestHintsFitAPage(t *testing.T) {
	const cells = 16
	for _, long := range []int{1, 40, siteMax} {
		d := newDirectory(Config{})
		for i := range uint64(cells) {
			x := trie.PrefixOf(trie.Position{Hi: i << 60}, 4)
			var holders []grid.SiteID
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				holders = append(holders, grid.SiteID(strings.Repeat(name, long)))
			}
			d.holder.note(0, holders[0], &Report{Cell: root(Price), Child: x, Holders: holders})
		}
		h := d.holder.holding(root(Price))
		room := min(HintsMax, cells, hintBytesMax/(5*(long+2)))
		up, down := h.hints(trie.First(), false, nil), h.hints(trie.Last(), true, nil)
		if len(up) != room || len(down) != room {
			t.Errorf("names of %d bytes: %d and %d hints, want %d", long, len(up), len(down), room)
		}
		var p Page
		d.holder.fillImage(0, "mirror", h, &Scan{At: trie.First()}, &p)
		if got, want := len(p.Hints), min(cells, 2*room); got != want || !p.HasFences || len(p.Fences) != cells {
			t.Errorf("names of %d bytes: an image has %d hints, want %d, and %d fences", long, got, want, len(p.Fences))
		}
	}
}

// TestRememberedRings: after a restart a site publishes to those who held the cell of its quote, without
// the router, and confirms within seconds that they still do; whom it remembers goes through the store.
func TestRememberedRings(t *testing.T) {
	first := newDirectory(Config{})
	out := &grid.Outbox{}
	offer := Quote{Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 7, Bandwidth: 1}, Price: 1000, spread: first.spread}
	deep := trie.PrefixOf(offer.at(Price), 20)
	first.Remember(0, []Ring{{Price, trie.Prefix{}, []grid.SiteID{"a", "b", "c", "d"}}, {Price, deep, []grid.SiteID{"e", "f", "g", "h", "i"}}})
	first.SetQuote(0, offer, out)
	to := func(m *grid.Outbox) (sites []grid.SiteID) {
		for _, s := range m.Sends {
			if p, ok := s.Message.(*Publish); ok && p.Copies[0].Cell == (cell{Price, deep}) {
				sites = append(sites, s.To)
			}
		}
		slices.Sort(sites)
		return sites
	}
	if got := to(out); len(got) != 1 || got[0] < "e" || got[0] > "h" || len(out.Keys) != 1 { // one first: the quote may belong further down
		t.Errorf("it publishes to %v and looks up %d cells, want one, of the other attribute", got, len(out.Keys))
	}
	known := first.Memory()
	if len(known) != 2 || known[1].Cell != deep || !slices.Equal(known[1].Holders, []grid.SiteID{"e", "f", "g", "h", "i"}) {
		t.Fatalf("it remembers %v", known)
	}
	for i := range known {
		r, err := OpenRing(known[i].Proto())
		if err != nil || r.Attribute != known[i].Attribute || r.Cell != known[i].Cell || !slices.Equal(r.Holders, known[i].Holders) {
			t.Errorf("%v is stored as %v (%v)", known[i], r, err)
		}
	}
	if r := first.rings.list[cell{Price, deep}]; r.until > 2*first.cfg.Timeout {
		t.Errorf("what it remembers is believed until %v", r.until)
	}
	bad := known[0].Proto()
	bad.Cell.Attribute = attributes
	if _, err := OpenRing(bad); err == nil {
		t.Error("a ring of no attribute is taken")
	}
}
