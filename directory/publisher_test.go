package directory

import (
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// "A changed price is seen by another node within a second", even if the network
// is slow.
func TestChangedPriceIsSeenWithinASecond(t *testing.T) {
	for _, count := range []int{1, 2, 3, 5, 50, 150} {
		n := newNetwork(t, uint64(count), Config{})
		n.latency = 80 * grid.Millisecond
		populate(n, count, n.any)
		n.run(grid.Minute)
		for range 20 {
			s := n.anyone()
			n.set(s, n.offer(s, grid.Price(n.rng.Int64N(5_000_000)), s.want.Speed, s.want.Free))
			n.run(grid.Second)
			n.check(n.anyone(), Query{})
			n.check(n.anyone(), Query{Attribute: Speed, Limit: 10})
		}
	}
}

// publishing counts the quotes and the messages with which a site publishes.
type publishing struct {
	quotes   map[uint64]bool
	messages int
}

func (n *network) watch(s *site) *publishing {
	p := &publishing{quotes: map[uint64]bool{}}
	n.onSend = func(from, to grid.SiteID, m grid.Message) {
		if m, ok := m.(*Publish); ok && from == s.id {
			p.quotes[m.Quote.Sequence] = true
			p.messages++
		}
	}
	return p
}

// A change of load that matters goes out at once, but the more slowly the longer it
// goes on; the last one counts, and changes of terms do not wait.
func TestLoadThatMattersIsPaced(t *testing.T) {
	n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
	populate(n, 10, n.same)
	n.run(10 * grid.Second)
	s := n.sites[0]
	p := n.watch(s)
	n.set(s, n.offer(s, 5_000_000, 100, 0))
	if len(p.quotes) != 1 {
		t.Fatalf("the first change was published as %d quotes at once", len(p.quotes))
	}
	for i := range 1200 { // for a minute
		n.set(s, n.offer(s, 5_000_000, 100, int64(i%2)))
		n.run(50 * grid.Millisecond)
	}
	if len(p.quotes) < 5 || len(p.quotes) > 8 {
		t.Errorf("%d quotes in the first minute, want 5 to 8", len(p.quotes))
	}
	clear(p.quotes)
	for i := range 6000 { // for ten minutes
		n.set(s, n.offer(s, 5_000_000, 100, int64(i%2)))
		n.run(100 * grid.Millisecond)
	}
	if len(p.quotes) < 10 || len(p.quotes) > 20 { // one in 37.5 s, and two renewals
		t.Errorf("%d quotes in ten minutes, want 10 to 20", len(p.quotes))
	}
	n.set(s, n.offer(s, 5_000_000, 100, 3))
	n.run(40 * grid.Second)
	n.check(n.sites[5], Query{})

	clear(p.quotes)
	n.set(s, n.offer(s, 5_000_000, 100, 1))
	n.set(s, n.offer(s, 5_000_001, 100, 2))
	n.set(s, n.offer(s, 5_000_002, 100, 3))
	if len(p.quotes) < 2 {
		t.Errorf("two new prices were published as %d quotes", len(p.quotes))
	}
	n.run(grid.Second)
	n.check(n.sites[5], Query{})
}

// A change of load that matters little goes out with the renewal.
func TestLoadThatMattersLittleWaits(t *testing.T) {
	n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
	populate(n, 10, n.same)
	n.run(n.cfg.Lifetime) // nobody is young any more, who asks holders who the others are
	s := n.sites[0]
	p := n.watch(s)
	for i := range 30 {
		n.set(s, n.offer(s, 5_000_000, 100, int64(64+i)))
		n.run(grid.Second)
	}
	if len(p.quotes) != 0 {
		t.Errorf("%d quotes before the renewal", len(p.quotes))
	}
	n.run(n.cfg.Lifetime * renewAfter / 16)
	n.check(n.sites[5], Query{})
	n.check(n.sites[5], Query{Filter: Filter{FreeMin: 93}})
}

// A change of load that matters is the renewal if that is due before long, and is none if it is not.
func TestLateLoadIsTheRenewal(t *testing.T) {
	n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
	populate(n, 10, n.same)
	n.run(n.cfg.Lifetime)
	s := n.sites[0]
	const span = renewAfter * 10 * grid.Minute / 16
	for i, left := range []grid.Time{span/2 + grid.Minute/4, span/2 - grid.Minute/4} {
		pub := &s.dir.publisher
		n.run(pub.republishAt - n.now - left)
		renewals, due := pub.renewals, pub.republishAt
		n.set(s, n.offer(s, 5_000_000, 100, int64(i)))
		n.run(grid.Second)
		if renewed := pub.renewals > renewals; renewed != (left < span/2) || renewed != (pub.republishAt > due) {
			t.Errorf("%v before the renewal: renewed %t, again at %v, which was %v", left, renewed, pub.republishAt, due)
		}
		n.check(n.sites[5], Query{})
	}
}

func TestLoadMatters(t *testing.T) {
	now := grid.Hour
	for _, tt := range []struct {
		name        string
		published   Quote
		changed     Quote
		matter, new bool
	}{
		{"nothing", Quote{Free: 4, Widest: 2}, Quote{Free: 4, Widest: 2}, false, false},
		{"fewer", Quote{Free: 9}, Quote{Free: 5}, false, true},
		{"half", Quote{Free: 10}, Quote{Free: 5}, false, true},
		{"a third", Quote{Free: 15}, Quote{Free: 5}, true, true},
		{"three times", Quote{Free: 5}, Quote{Free: 15}, true, true},
		{"none left", Quote{Free: 1}, Quote{}, true, true},
		{"the first", Quote{}, Quote{Free: 1}, true, true},
		{"narrower", Quote{Free: 9, Widest: 9}, Quote{Free: 9, Widest: 3}, true, true},
		{"no wait any more", Quote{Wait: 1, Issued: now}, Quote{Issued: now}, true, true},
		{"the same end of the wait", Quote{Wait: grid.Hour, Issued: now - 30*grid.Minute}, Quote{Wait: 30 * grid.Minute, Issued: now}, false, false},
		{"a little later", Quote{Wait: 20 * grid.Second, Issued: now}, Quote{Wait: 50 * grid.Second, Issued: now}, false, true},
		{"much later", Quote{Wait: 2 * grid.Minute, Issued: now}, Quote{Wait: 6 * grid.Minute, Issued: now}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.published.loadMatters(now, &tt.changed); got != tt.matter {
				t.Errorf("matters: %v", got)
			}
			if got := !tt.published.sameLoad(now, &tt.changed); got != tt.new {
				t.Errorf("changed: %v", got)
			}
		})
	}
}

// However often its load changes, a site sends a bounded number of messages, one to
// each holder, and the bound does not depend on how many sites there are.
func TestPublishingIsBoundedWhateverTheSize(t *testing.T) {
	for _, count := range []int{4, 10, 50, 200} {
		n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
		populate(n, count, n.any)
		n.run(10 * grid.Minute)
		s := n.sites[count/2]
		p := n.watch(s)
		for i := range 3600 { // for half an hour
			n.set(s, n.offer(s, s.want.Price, s.want.Speed, int64(i%2*100)))
			n.run(500 * grid.Millisecond)
		}
		const span, holders = 30, 12 // minutes; of three cells, at most
		quotes := span*60*16/600 + span/5 + 8
		t.Logf("%3d sites: %.1f messages a minute, %d quotes", count, float64(p.messages)/span, len(p.quotes))
		if len(p.quotes) > quotes || len(p.quotes) < quotes/2 {
			t.Errorf("%d sites: %d quotes in half an hour, want %d at most and half of them at least", count, len(p.quotes), quotes)
		}
		if most := quotes * holders * 5 / 4; p.messages > most { // some go to the cell that the quote leaves
			t.Errorf("%d sites: %d messages in half an hour, at most %d", count, p.messages, most)
		}
	}
}

// The same quote again costs nothing.
func TestUnchangedQuoteIsNotPublished(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	populate(n, 10, n.same)
	n.run(10 * grid.Minute) // nobody is young any more
	before := n.counter.SentOf(wire.DirectoryPublish).Messages
	for range 10 {
		n.set(n.sites[0], n.offer(n.sites[0], 5_000_000, 100, 64))
		n.run(grid.Second)
	}
	if sent := n.counter.SentOf(wire.DirectoryPublish).Messages - before; sent != 0 {
		t.Errorf("%d messages for nothing new", sent)
	}
}

// Load that changes and changes back within the interval is not published.
func TestLoadThatChangesBack(t *testing.T) {
	n := newNetwork(t, 1, Config{LoadInterval: 5 * grid.Second})
	populate(n, 10, n.same)
	n.set(n.sites[9], n.offer(n.sites[9], 5_000_000, 100, 0)) // too soon
	n.set(n.sites[9], n.offer(n.sites[9], 5_000_000, 100, 64))
	before := n.sites[9].dir.publisher.own.Sequence
	n.run(20 * grid.Second)
	if n.sites[9].dir.publisher.own.Sequence != before {
		t.Error("a load that changed back was published")
	}
}

// A site that says nothing more is forgotten after a lifetime, one that lives stays.
func TestQuotesExpireAndAreRepublished(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	populate(n, 20, n.any)
	n.run(10 * grid.Second)
	for _, s := range n.sites[:5] {
		n.kill(s)
	}
	n.run(10 * grid.Minute)
	n.check(n.sites[10], Query{})
	n.run(10 * grid.Hour)
	n.check(n.sites[11], Query{Attribute: Speed})
	for _, s := range n.sites[5:] {
		if l := len(s.dir.holder.holdings); l > 3 {
			t.Errorf("%s still holds %d cells", s.id, l)
		}
	}
}

func TestWithdraw(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	populate(n, 20, n.any)
	n.run(10 * grid.Second)
	s := n.sites[3]
	n.withdraw(s)
	n.withdraw(s) // again is nothing
	n.run(grid.Second)
	n.check(n.sites[10], Query{})
	n.run(grid.Hour) // and nothing is republished
	n.check(n.sites[11], Query{})
	n.set(s, n.offer(s, 3, 4, 5))
	n.run(grid.Second)
	n.check(n.sites[12], Query{})
}

// Sequences rise across restarts, so that what was published before does not win.
func TestRestartedSiteIsHeard(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	populate(n, 20, n.any)
	n.run(10 * grid.Second)
	for i := range 50 { // many quotes in a short time
		n.set(n.sites[0], n.offer(n.sites[0], grid.Price(100+i), 100, 5))
	}
	n.run(grid.Second)
	n.restart(n.sites[0])
	n.set(n.sites[0], n.offer(n.sites[0], 7, 100, 5))
	n.run(grid.Second)
	n.check(n.sites[5], Query{Limit: 1})
}

func TestBadOwnQuotePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative price was published")
		}
	}()
	newDirectory(Config{}).SetQuote(0, Quote{Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Price: -1}, &grid.Outbox{})
}

// What is published is signed, and says what the site said.
func TestOwnQuoteIsSealed(t *testing.T) {
	s := newSigner(t, 9)
	d := New(Config{Self: s.id, Seal: s.seal}, newNetwork(t, 1, Config{}).rng)
	var out grid.Outbox
	q := goodQuote()
	d.SetQuote(grid.Hour, q, &out)
	got, err := OpenQuote(d.publisher.own.Sealed)
	if err != nil || got.Site != s.id || got.Price != q.Price || got.Issued != grid.Hour || got.Lifetime != 10*grid.Minute || got.Sequence == 0 {
		t.Errorf("sealed as %+v, %v", got, err)
	}
}

// A holder that certainly cannot be reached is not tried again; the next one is.
func TestUnreachableHolderIsReplaced(t *testing.T) {
	d := newDirectory(Config{Replicas: 2})
	var out grid.Outbox
	d.SetQuote(0, Quote{Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, &out)
	keys := slices.Clone(out.Keys)
	out.Reset()
	peers := []grid.SiteID{"a", "b", "c"}
	for _, key := range keys {
		d.Step(0, &grid.Closest{Key: key, Peers: peers}, &out)
	}
	sent := map[grid.SiteID]int{}
	count := func() (lost []grid.Message) {
		for _, s := range out.Sends {
			sent[s.To]++
			if s.To == "a" {
				lost = append(lost, s.Message)
			}
		}
		out.Reset()
		return lost
	}
	for _, m := range count() {
		d.Step(1, &grid.Undelivered{To: "a", Message: m}, &out)
	}
	if lost := count(); len(lost) != 0 || sent["a"] != attributes || sent["c"] != attributes {
		t.Errorf("sent %v", sent)
	}
}

// TestReceiptIsOfOneQuote: a holder that has an older quote does not count as having the newest,
// which it is sent once more.
func TestReceiptIsOfOneQuote(t *testing.T) {
	p := place{copies: []replica{{site: "h"}}, role: proper}
	c := &p.copies[0]
	c.note(4, 10)
	c.note(5, 20)
	if !p.answered("h", 4, &Receipt{}) || c.has != 4 || c.deadline == 0 {
		t.Errorf("after the receipt of quote 4: has %d, deadline %v, want 4 and that the answer about 5 is awaited", c.has, c.deadline)
	}
	c.deadline = 0 // it has passed
	if !c.due(5, 5) {
		t.Error("quote 5 is not sent again, and nobody has said that it has come")
	}
	if p.answered("h", 5, &Receipt{}); c.has != 5 || c.due(5, 5) {
		t.Errorf("after the receipt of quote 5: has %d, due %t", c.has, c.due(5, 5))
	}
}
