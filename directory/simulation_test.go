package directory

import (
	"flag"
	"slices"
	"testing"

	"gridnode/grid"
)

var (
	seedFirst = flag.Uint64("seed", 0, "first seed of the simulations")
	seedCount = flag.Uint64("seeds", 6, "seeds per simulation")
	large     = flag.Bool("large", false, "simulate thousands of sites, too")
)

// simulate runs one simulation per seed; a failure names its seed.
func simulate(t *testing.T, run func(n *network, seed uint64)) {
	for seed := *seedFirst; seed < *seedFirst+*seedCount; seed++ {
		n := newNetwork(t, seed, Config{CellMax: 8, Lifetime: 2 * grid.Minute, Timeout: grid.Second})
		done := false
		func() {
			defer func() {
				if !done {
					t.Logf("replay with: go test ./directory -run '^%s$' -seed %d -seeds 1", t.Name(), seed)
				}
			}()
			run(n, seed)
			done = true
		}()
	}
}

// Everybody finds everything, whatever the values and whatever the network loses.
// Cells of eight quotes make deep tries.
func TestSettledDirectoryAnswersExactly(t *testing.T) {
	simulate(t, func(n *network, seed uint64) {
		loss := []float64{0, 0.02, 0.05}[seed%3]
		n.loss, n.twice = loss, loss
		populate(n, 1+n.rng.IntN(120), []func(int) (grid.Price, int64, int64){n.same, n.falling, n.table1, n.any}[seed%4])
		n.run(20 * grid.Second)
		for i := range 40 {
			n.loss = 0
			n.run(2 * grid.Second)
			n.check(n.anyone(), Query{Attribute: Attribute(i % attributes), Descending: i%2 == 0, Limit: n.rng.IntN(40)})
			n.loss = loss
			n.run(grid.Time(n.rng.IntN(20)) * grid.Second)
		}
	})
}

// Sites change their quotes, leave, crash, restart with nothing and join, while the
// network loses, repeats and reorders. At every moment answers are valid; once all
// is calm, a lifetime later, they are complete.
func TestAnswersUnderChurn(t *testing.T) {
	simulate(t, func(n *network, seed uint64) {
		n.silent = seed%2 == 0
		loss := []float64{0, 0.02, 0.05}[seed%3]
		n.loss, n.twice = loss, loss
		populate(n, 1+n.rng.IntN(80), n.any)
		n.run(10 * grid.Second)
		for range 8 {
			for range n.rng.IntN(40) {
				disturb(n)
				n.run(grid.Time(n.rng.Int64N(int64(5 * grid.Second))))
				n.valid(n.anyone(), Query{Attribute: Attribute(n.rng.IntN(attributes)), Descending: n.rng.IntN(2) == 0, Limit: 1 + n.rng.IntN(20)})
			}
			n.run(n.cfg.Lifetime + n.cfg.Lifetime/8)
			n.loss = 0
			n.run(2 * grid.Second)
			for a := range Attribute(attributes) {
				n.check(n.anyone(), Query{Attribute: a, Descending: n.rng.IntN(2) == 0})
				n.check(n.anyone(), Query{Attribute: a, Descending: n.rng.IntN(2) == 0, Limit: 1 + n.rng.IntN(20)})
				n.check(n.anyone(), Query{Attribute: a, Descending: n.rng.IntN(2) == 0, Limit: 1 + n.rng.IntN(20), Filter: Filter{FreeMin: n.rng.Int64N(512)}})
				n.check(n.anyone(), Query{Attribute: a, Descending: n.rng.IntN(2) == 0, Limit: 5, Filter: Filter{PriceMax: grid.Price(n.rng.Int64N(1_000_000)), SpeedMin: n.rng.Int64N(1000)}})
			}
			n.loss = loss
		}
	})
}

// disturb lets one thing happen to one site. At least one stays up.
func disturb(n *network) {
	s := n.sites[n.rng.IntN(len(n.sites))]
	price, speed, free := n.any(0)
	switch op := n.rng.IntN(12); {
	case s.down && op < 3:
		n.restart(s)
		n.set(s, n.offer(s, price, speed, free))
	case s.down:
	case op < 4:
		n.set(s, n.offer(s, price, speed, free))
	case op < 6 && s.want != nil:
		n.set(s, n.offer(s, s.want.Price, s.want.Speed, free))
	case op == 6:
		n.withdraw(s)
	case op == 7 && s != n.sites[0]:
		n.kill(s)
	case op == 8:
		s := n.join()
		n.set(s, n.offer(s, price, speed, free))
	}
}

// valid checks what holds at every moment: quotes in order, none expired, none
// withdrawn, each site once, all as asked for.
func (n *network) valid(s *site, q Query) {
	n.t.Helper()
	f := n.find(s, q)
	seen := map[grid.SiteID]bool{}
	for i := range f.Quotes {
		x := &f.Quotes[i]
		switch {
		case x.Expires() <= n.now || x.Withdrawn || !q.Filter.Match(x) || x.Check() != nil:
			n.t.Fatalf("at %v %s got %+v", n.now, s.id, x)
		case seen[x.Site]:
			n.t.Fatalf("at %v %s got %s twice", n.now, s.id, x.Site)
		case i > 0 && f.Quotes[i-1].at(q.Attribute).Less(x.at(q.Attribute)) == q.Descending:
			n.t.Fatalf("at %v %s got %s out of order", n.now, s.id, x.Site)
		case len(f.Quotes) > q.Limit && q.Limit > 0:
			n.t.Fatalf("at %v %s got %d quotes, wanted %d", n.now, s.id, len(f.Quotes), q.Limit)
		}
		seen[x.Site] = true
	}
}

// "After three holders of a cell are killed queries stay complete within half a
// quote lifetime": with four holders they stay so all the time.
func TestThreeOfFourHoldersDie(t *testing.T) {
	simulate(t, func(n *network, seed uint64) {
		n.silent = seed%2 == 0
		populate(n, 50, n.any)
		n.run(grid.Minute)
		for _, id := range n.closest(root(Price).key(""), 3) {
			n.kill(n.byID[id])
		}
		dead := map[grid.SiteID]bool{}
		for _, s := range n.sites {
			dead[s.id] = s.down
		}
		complete := func() {
			n.t.Helper()
			got := map[grid.SiteID]bool{}
			f := n.find(n.anyone(), Query{})
			for _, id := range ids(f.Quotes) {
				got[id] = true
			}
			for _, s := range n.sites { // the dead may be found until their quotes expire
				if !dead[s.id] && !got[s.id] {
					n.t.Fatalf("at %v %s was not found; error %v", n.now, s.id, f.Err)
				}
			}
		}
		for range 10 {
			complete()
			n.run(n.cfg.Lifetime / 20)
		}
		n.run(n.cfg.Lifetime)
		n.check(n.anyone(), Query{})
	})
}

// All holders of a cell die at once: within half a lifetime all sites have found
// the new ones.
func TestAllHoldersDie(t *testing.T) {
	simulate(t, func(n *network, seed uint64) {
		populate(n, 50, n.any)
		n.run(grid.Minute)
		for _, id := range n.closest(root(Price).key(""), 4) {
			n.kill(n.byID[id])
		}
		n.run(n.cfg.Lifetime/2 + 10*n.cfg.Timeout)
		f := n.find(n.anyone(), Query{})
		got := map[grid.SiteID]bool{}
		for _, id := range ids(f.Quotes) {
			got[id] = true
		}
		for _, s := range n.sites {
			if !s.down && !got[s.id] {
				n.t.Fatalf("%s was not found; error %v", s.id, f.Err)
			}
		}
	})
}

// Cells split while a federation grows and become one again when it shrinks.
func TestCellsSplitAndMerge(t *testing.T) {
	n := newNetwork(t, 1, Config{CellMax: 32, Lifetime: 2 * grid.Minute, Timeout: grid.Second})
	populate(n, 200, n.any)
	n.run(grid.Minute)
	if c := n.cells(Price); c < 7 {
		t.Fatalf("200 quotes in %d cells of at most 32", c)
	}
	n.check(n.anyone(), Query{})
	for _, s := range n.sites[4:] {
		n.withdraw(s)
		n.run(100 * grid.Millisecond)
	}
	n.check(n.anyone(), Query{})
	for range 20 {
		n.run(n.cfg.Lifetime)
		n.check(n.anyone(), Query{})
		n.check(n.anyone(), Query{Attribute: Speed, Descending: true, Limit: 2})
	}
	if c := n.cells(Price); c != 1 {
		t.Errorf("4 quotes are left in %d cells", c)
	}
}

// cells returns in how many cells quotes of an attribute are held.
func (n *network) cells(a Attribute) int {
	cells := map[cell]bool{}
	for _, s := range n.sites {
		for _, h := range s.dir.holder.holdings {
			if h.cell.attribute == a && !s.down {
				cells[h.cell] = true
			}
		}
	}
	return len(cells)
}

// The same seed gives the same messages.
func TestDirectoryIsDeterministic(t *testing.T) {
	run := func() (trace []string) {
		n := newNetwork(t, 5, Config{CellMax: 8, Lifetime: 2 * grid.Minute, Timeout: grid.Second})
		n.onSend = func(from, to grid.SiteID, m grid.Message) {
			trace = append(trace, n.now.String()+string(from)+string(to)+string(rune('a'+m.MessageKind())))
		}
		populate(n, 40, n.any)
		for range 60 {
			disturb(n)
			n.run(2 * grid.Second)
			n.find(n.anyone(), Query{Limit: 5})
		}
		return trace
	}
	a, b := run(), run()
	if len(a) != len(b) {
		t.Fatalf("%d messages, then %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("message %d: %s, then %s", i, a[i], b[i])
		}
	}
}

// A site that could not reach the holders of a cell for a while, as none answered in time, sees
// everything again soon after they do, and so does a holder that could not reach the others:
// they are passed over no longer than that, though others answer in their place.
func TestHoldersAnswerAgain(t *testing.T) {
	for _, witnesses := range []int{0, 2} {
		simulate(t, func(n *network, _ uint64) {
			n.cfg.Witnesses, n.cfg.Lifetime = witnesses, 20*grid.Minute
			populate(n, 50, n.any)
			n.run(grid.Minute)
			near := n.closest(root(Price).key(""), 20)
			for _, lonely := range []*site{n.byID[near[len(near)-1]], n.byID[near[0]]} {
				n.cut = func(from, to grid.SiteID) bool {
					return (from == lonely.id || to == lonely.id) && (slices.Contains(near[:4], from) || slices.Contains(near[:4], to))
				}
				if lonely.id == near[0] { // it restarts: else it knows everything
					q := *lonely.want
					n.restart(lonely)
					n.set(lonely, q)
				}
				for range 10 {
					n.find(lonely, Query{})
					n.run(2 * grid.Second)
				}
				n.cut = nil
				n.run(5 * grid.Second)
				n.find(lonely, Query{})
				n.run(5 * grid.Second)
				n.check(lonely, Query{})
			}
		})
	}
}
