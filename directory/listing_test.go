package directory

import (
	"slices"
	"testing"

	"gridnode/internal/grid"
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

// Changes of load are published at most once per interval, the last one counts, and
// changes of terms do not wait.
func TestLoadIsRateLimited(t *testing.T) {
	n := newNetwork(t, 1, Config{LoadInterval: grid.Second})
	populate(n, 10, n.same)
	n.run(10 * grid.Second)
	s := n.sites[0]
	published := map[uint64]bool{}
	n.onSend = func(from, to grid.SiteID, m grid.Message) {
		if p, ok := m.(*Publish); ok && from == s.id {
			published[p.Quote.Sequence] = true
		}
	}
	begun := n.now
	for i := range 100 {
		n.set(s, n.offer(s, 5_000_000, 100, int64(100+i)))
		n.run(50 * grid.Millisecond)
	}
	if most := int((n.now-begun)/grid.Second) + 1; len(published) < 3 || len(published) > most {
		t.Errorf("%d quotes published in %v, want 3 to %d", len(published), n.now-begun, most)
	}
	n.run(2 * grid.Second)
	n.check(n.sites[5], Query{})

	clear(published)
	n.set(s, n.offer(s, 5_000_000, 100, 1))
	n.set(s, n.offer(s, 5_000_001, 100, 2))
	n.set(s, n.offer(s, 5_000_002, 100, 3))
	if len(published) < 2 {
		t.Errorf("two new prices were published as %d quotes", len(published))
	}
	n.run(grid.Second)
	n.check(n.sites[5], Query{})
}

// The same quote again costs nothing.
func TestUnchangedQuoteIsNotPublished(t *testing.T) {
	n := newNetwork(t, 1, Config{})
	populate(n, 10, n.same)
	n.run(10 * grid.Second)
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
	n.set(n.sites[9], n.offer(n.sites[9], 5_000_000, 100, 1))
	n.set(n.sites[9], n.offer(n.sites[9], 5_000_000, 100, 64))
	before := n.sites[9].dir.own.Sequence
	n.run(20 * grid.Second)
	if n.sites[9].dir.own.Sequence != before {
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
	n.check(n.sites[11], Query{Attribute: Free})
	for _, s := range n.sites[5:] {
		if l := len(s.dir.holdings); l > 3 {
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
	got, err := OpenQuote(d.own.Sealed)
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
