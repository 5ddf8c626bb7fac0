package kademlia

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/node/p2p/patience"
	"gridnode/node/p2p/refresh"
)

// world is a small network of nodes: messages take 10 to 30 ms.
type world struct {
	now   grid.Time
	nodes map[grid.SiteID]*Node
	order []*Node
	dead  map[grid.SiteID]bool
	lost  int  // one message in so many is lost; 0: none
	loud  bool // whoever sends to a dead node learns it
	queue mail
	out   grid.Outbox
	found map[grid.SiteID][]*grid.Closest
	rng   *rand.Rand
	count int
}

type letter struct {
	at       grid.Time
	sequence int
	from, to grid.SiteID
	message  grid.Message
	bounced  bool
}

type mail []letter

func (m mail) Len() int { return len(m) }
func (m mail) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].sequence < m[j].sequence
}
func (m mail) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *mail) Push(v any)   { *m = append(*m, v.(letter)) }
func (m *mail) Pop() any     { old := *m; v := old[len(old)-1]; *m = old[:len(old)-1]; return v }

func newWorld(count int, cfg Config, seed uint64) *world {
	w := &world{nodes: map[grid.SiteID]*Node{}, dead: map[grid.SiteID]bool{}, found: map[grid.SiteID][]*grid.Closest{}, rng: rand.New(rand.NewPCG(seed, 7))}
	for i := range count {
		n := New(cfg, NewPeer(grid.SiteID(fmt.Sprintf("site-%d", i))))
		w.nodes[n.Self().ID] = n
		w.order = append(w.order, n)
	}
	return w
}

func (w *world) carryOut(from grid.SiteID) {
	for _, in := range w.out.Locals {
		c := in.(*grid.Closest) // used again
		w.found[from] = append(w.found[from], &grid.Closest{Key: c.Key, Peers: slices.Clone(c.Peers)})
	}
	for _, s := range w.out.Sends {
		w.count++
		if w.lost > 0 && w.rng.IntN(w.lost) == 0 {
			continue
		}
		l := letter{w.now + 10*grid.Millisecond + grid.Time(w.rng.Int64N(20_000)), w.count, from, s.To, s.Message, false}
		if w.dead[s.To] {
			l.from, l.to, l.bounced = s.To, from, w.loud || w.rng.IntN(2) == 0
			if !l.bounced {
				continue // silence
			}
		}
		heap.Push(&w.queue, l)
	}
	w.out.Reset()
}

// run delivers everything, time-outs included.
func (w *world) run() {
	for {
		due, who := grid.Never, (*Node)(nil)
		for _, n := range w.order {
			if t := n.NextTimer(); t < due && !w.dead[n.Self().ID] {
				due, who = t, n
			}
		}
		switch {
		case len(w.queue) > 0 && w.queue[0].at <= due:
			l := heap.Pop(&w.queue).(letter)
			w.now = max(w.now, l.at)
			var in grid.Input = &grid.Delivery{From: l.from, Message: l.message}
			if l.bounced {
				in = &grid.Undelivered{To: l.from, Message: l.message}
			}
			if !w.dead[l.to] {
				w.nodes[l.to].Step(w.now, in, &w.out)
				w.carryOut(l.to)
			}
		case who != nil:
			w.now = max(w.now, due)
			who.Step(w.now, grid.Tick{}, &w.out)
			w.carryOut(who.Self().ID)
		default:
			return
		}
	}
}

// truth returns the k nearest live sites by looking at all of them.
func (w *world) truth(key grid.Key, k int) []grid.SiteID {
	var peers []*Peer
	for _, n := range w.order {
		if !w.dead[n.Self().ID] {
			peers = append(peers, n.Self())
		}
	}
	slices.SortFunc(peers, func(a, b *Peer) int {
		if nearer(&key, &a.Key, &b.Key) {
			return -1
		}
		return 1
	})
	var ids []grid.SiteID
	for _, p := range peers[:min(k, len(peers))] {
		ids = append(ids, p.ID)
	}
	return ids
}

// lookups makes count random look-ups and returns the share of the true k nearest
// sites found and the requests per look-up.
func (w *world) lookups(count, k int) (recall, requests float64) {
	var hit, all int
	var before, after Stats
	for _, n := range w.order {
		before.Requests += n.Stats().Requests
	}
	for range count {
		key := NewPeer(grid.SiteID(fmt.Sprint(w.rng.Uint64()))).Key
		n := w.order[w.rng.IntN(len(w.order))]
		for w.dead[n.Self().ID] {
			n = w.order[w.rng.IntN(len(w.order))]
		}
		clear(w.found)
		n.Closest(w.now, key, &w.out)
		w.carryOut(n.Self().ID)
		w.run()
		got := w.found[n.Self().ID][0].Peers
		for _, id := range w.truth(key, k) {
			all++
			if slices.Contains(got, id) {
				hit++
			}
		}
	}
	for _, n := range w.order {
		after.Requests += n.Stats().Requests
	}
	return float64(hit) / float64(all), float64(after.Requests-before.Requests) / float64(count)
}

// A look-up ends when the nearest have answered: it does not ask k sites. How many live ones ask is
// compared by TestModelLooksUpAsLiveNodesDo.
func TestLookupsCostWhatTheyCostLive(t *testing.T) {
	for _, tt := range []struct {
		sites    int
		cfg      Config
		from, to float64 // requests per look-up
	}{
		{50, Config{K: 20, Alpha: 10}, 15, 22},
		{100, Config{K: 20, Alpha: 10}, 17, 24},
		{100, Config{}, 5, 8},
		{100, Config{K: 8, Alpha: 3}, 6, 8.5},
		{200, Config{K: 8, Alpha: 3}, 6, 9},
		{50, Config{K: 11, Alpha: 3}, 5, 7.5},
		{100, Config{K: 11, Alpha: 3}, 5.5, 8},
		{1000, Config{K: 8, Alpha: 3}, 7, 12},
	} {
		w := newWorld(tt.sites, tt.cfg, 1)
		Fill(w.order, w.rng)
		recall, requests := w.lookups(200, w.order[0].cfg.K)
		t.Logf("%5d sites, k=%d α=%d: recall %.4f, %.1f requests per look-up", tt.sites, tt.cfg.K, tt.cfg.Alpha, recall, requests)
		if recall < 0.99 || requests < tt.from || requests > tt.to {
			t.Errorf("%d sites: recall %.4f, %.1f requests; want at least 0.99 and %v to %v", tt.sites, recall, requests, tt.from, tt.to)
		}
	}
}

func TestJoiningFillsTables(t *testing.T) {
	w := newWorld(200, Config{K: 8, Alpha: 3}, 2)
	for i, n := range w.order {
		if i > 0 { // three random earlier sites, as live nodes do
			n.Join(w.order[w.rng.IntN(i)].Self(), w.order[w.rng.IntN(i)].Self(), w.order[w.rng.IntN(i)].Self())
			n.Closest(w.now, n.Self().Key, &w.out)
			w.carryOut(n.Self().ID)
			w.run()
		}
	}
	if recall, requests := w.lookups(200, 8); recall < 0.98 {
		t.Errorf("recall %.4f after joining, %.1f requests", recall, requests)
	}
}

func TestDeadPeersAreDropped(t *testing.T) {
	w := newWorld(200, Config{K: 8, Alpha: 3}, 3)
	Fill(w.order, w.rng)
	for i := range 40 {
		w.dead[w.order[i*5].Self().ID] = true
	}
	known := func() (dead int) {
		for _, n := range w.order {
			for _, b := range n.table.buckets {
				for _, c := range b {
					if w.dead[c.peer.ID] {
						dead++
					}
				}
			}
		}
		return dead
	}
	before := known()
	recall, _ := w.lookups(500, 8)
	t.Logf("%d, then %d entries for dead sites; recall %.4f", before, known(), recall)
	if known() > before*9/10 {
		t.Errorf("%d entries for dead sites, of %d", known(), before)
	}
	// A site that has died since its neighbours last asked it is named all the same.
	if recall < 0.85 {
		t.Errorf("recall %.4f with a fifth of the sites dead, live it is 0.87 to 0.96", recall)
	}
	for _, n := range w.order {
		if len(n.pending) != 0 || len(n.lookups) != 0 {
			t.Fatalf("%s still has %d requests and %d look-ups", n.Self().ID, len(n.pending), len(n.lookups))
		}
	}
}

// Two halves that cannot reach each other forget each other, and find each other again
// once they rejoin; a node that knows nobody does so by itself.
func TestHalvesFindEachOtherAgain(t *testing.T) {
	w := newWorld(40, Config{K: 8, Alpha: 3}, 3)
	Fill(w.order, w.rng)
	for _, n := range w.order {
		for i, other := range w.order {
			if i%2 == 0 {
				n.lose(other.Self())
			}
		}
	}
	one := w.order[1]
	for _, n := range w.order {
		one.lose(n.Self())
	}
	if one.Known() != 0 || len(one.lost) != one.cfg.K {
		t.Fatalf("%d peers known and %d remembered, want 0 and %d", one.Known(), len(one.lost), one.cfg.K)
	}
	one.lookSelfUp(0, false, new(grid.Outbox))
	if one.Known() == 0 {
		t.Error("a node that knows nobody asks nobody")
	}
	n, lost := w.order[3], w.order[0].Self()
	n.lost = []*Peer{lost}
	if n.Rejoin(); len(n.lost) != 0 || !slices.ContainsFunc(n.table.buckets[:], func(b []contact) bool {
		return slices.ContainsFunc(b, func(c contact) bool { return c.peer == lost })
	}) {
		t.Error("a lost peer is not tried again")
	}
}

// A node that was started again knows whom the one before it knew, and the lost ones as
// well; with one other that knows nobody it does not stay alone with that.
func TestFewOthersAreNotEnough(t *testing.T) {
	w := newWorld(12, Config{}, 5)
	outcast := w.order[1]
	for i, n := range w.order {
		switch {
		case i == 0:
			n.Seed(outcast.Self())
			for _, other := range w.order[2:] {
				n.lose(other.Self())
			}
		case n != outcast:
			for _, other := range w.order[2:] {
				n.Seed(other.Self())
			}
		}
	}
	before := w.order[0]
	if got := before.Acquaintances(); len(got) != 11 || got[0] != outcast.Self() {
		t.Fatalf("%d acquaintances, want 11, and who is in the table first", len(got))
	}
	w.now = 2 * retryPeriod
	for range 2 {
		before.Closest(w.now, before.Self().Key, &w.out)
		w.carryOut(before.Self().ID)
		w.run()
	}
	if before.Known() != 11 {
		t.Errorf("it knows %d others, want 11", before.Known())
	}
	if w.order[5].Known() != 10 {
		t.Errorf("another one knows %d others, want 10: it is known again", w.order[5].Known())
	}
}

func TestLossOnlyDelays(t *testing.T) {
	w := newWorld(100, Config{K: 8, Alpha: 3}, 4)
	Fill(w.order, w.rng)
	w.lost = 10
	if recall, _ := w.lookups(100, 8); recall < 0.75 {
		t.Errorf("recall %.4f with a tenth of the messages lost", recall)
	}
}

// TestPoolChangesNothing: what is used again is used up. Lost and refused messages
// do not come back.
func TestPoolChangesNothing(t *testing.T) {
	var answers [2]map[grid.SiteID][]*grid.Closest
	var counts [2]int
	for i, pool := range []*Pool{nil, new(Pool)} {
		w := newWorld(150, Config{K: 8, Alpha: 3, Pool: pool}, 9)
		Fill(w.order, w.rng)
		w.lost = 20
		for j := range 15 {
			w.dead[w.order[j*7].Self().ID] = true
		}
		for round := range 5 { // ten look-ups at each of many sites under way at once
			for j, n := range w.order {
				if !w.dead[n.Self().ID] {
					n.Closest(w.now, NewPeer(grid.SiteID(fmt.Sprint(round, j%10))).Key, &w.out)
					w.carryOut(n.Self().ID)
				}
			}
			w.run()
		}
		answers[i], counts[i] = w.found, w.count
	}
	if counts[0] != counts[1] || !reflect.DeepEqual(answers[0], answers[1]) {
		t.Errorf("%d messages with a pool, %d without, or other answers", counts[1], counts[0])
	}
	if counts[0] < 10_000 {
		t.Errorf("only %d messages were sent", counts[0])
	}
}

// TestPoolKeepsNoMoreThanItNeeds: thousands of sites that come up at once leave no memory
// behind.
func TestPoolKeepsNoMoreThanItNeeds(t *testing.T) {
	p := new(Pool)
	for range 2 * poolMax {
		p.back(new(Find))
		p.back(new(Nodes))
		p.ended(new(lookup))
	}
	if len(p.finds) != poolMax || len(p.nodes) != poolMax || len(p.lookups) != poolMax {
		t.Errorf("%d questions, %d answers and %d look-ups are kept, want %d of each", len(p.finds), len(p.nodes), len(p.lookups), poolMax)
	}
	if last(&p.finds); len(p.finds) != poolMax-1 {
		t.Errorf("one was taken, %d of %d are left", len(p.finds), poolMax)
	}
}

func TestAloneAndInPairs(t *testing.T) {
	w := newWorld(2, Config{}, 5)
	a, b := w.order[0], w.order[1]
	a.Closest(0, grid.Key{}, &w.out)
	w.carryOut(a.Self().ID)
	if got := w.found[a.Self().ID]; len(got) != 1 || !slices.Equal(got[0].Peers, []grid.SiteID{a.Self().ID}) {
		t.Fatalf("alone: %+v", got)
	}
	a.Join(b.Self())
	a.Closest(w.now, grid.Key{}, &w.out)
	w.carryOut(a.Self().ID)
	w.run()
	if a.Known() != 1 || b.Known() != 1 {
		t.Errorf("know %d and %d peers", a.Known(), b.Known())
	}
	clear(w.found)
	a.Closest(w.now, grid.Key{}, &w.out)
	a.Closest(w.now, grid.Key{}, &w.out) // while the first is under way
	w.carryOut(a.Self().ID)
	w.run()
	if got := w.found[a.Self().ID]; len(got) != 1 || !slices.Equal(got[0].Peers, w.truth(grid.Key{}, 2)) {
		t.Errorf("in a pair: %+v, want one answer %v", got, w.truth(grid.Key{}, 2))
	}
}

func TestBacklogIsWorkedOff(t *testing.T) {
	w := newWorld(20, Config{K: 8, Alpha: 3}, 6)
	Fill(w.order, w.rng)
	n := w.order[0]
	for i := range 3 * lookupsMax {
		n.Closest(w.now, grid.Key{byte(i), byte(i >> 8), 1}, &w.out)
	}
	if len(n.lookups) != lookupsMax {
		t.Fatalf("%d look-ups under way", len(n.lookups))
	}
	w.carryOut(n.Self().ID)
	w.run()
	if got := len(w.found[n.Self().ID]); got != 3*lookupsMax {
		t.Errorf("%d of %d look-ups answered", got, 3*lookupsMax)
	}
}

func TestNearestAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		self := NewPeer("self")
		tab := table{self: self, k: KMax}
		var all []*Peer
		alike := rapid.Bool().Draw(t, "alike")
		for i := range rapid.IntRange(0, 60).Draw(t, "peers") {
			p := NewPeer(grid.SiteID(fmt.Sprint(i, rapid.Uint8().Draw(t, "salt"))))
			if alike { // but for their last bytes
				p.Key = grid.Key{0: p.Key[0] & 0xc0, 7: p.Key[7] & 3, 30: p.Key[30], 31: byte(i)}
			}
			tab.add(p, false)
			tab.add(p, false)
			if prefix(&self.Key, &p.Key) < len(tab.buckets) && slices.Contains(tab.buckets[prefix(&self.Key, &p.Key)], contactOf(p)) && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
		key := NewPeer(grid.SiteID(fmt.Sprint(rapid.Uint64().Draw(t, "key")))).Key
		slices.SortFunc(all, func(a, b *Peer) int {
			if nearer(&key, &a.Key, &b.Key) {
				return -1
			}
			return 1
		})
		var without *Peer
		if len(all) > 0 && rapid.Bool().Draw(t, "without") {
			without = all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			all = slices.DeleteFunc(all, func(p *Peer) bool { return p == without })
		}
		into := make([]contact, rapid.IntRange(1, KMax).Draw(t, "want"))
		got := into[:tab.nearest(into, &key, without)]
		if !slices.EqualFunc(got, all[:min(len(into), len(all))], func(c contact, p *Peer) bool { return c.peer == p }) {
			t.Fatalf("nearest gave %d peers in another order than sorting %d", len(got), len(all))
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	for _, sites := range []int{100, 10_000} {
		b.Run(fmt.Sprint(sites), func(b *testing.B) {
			w := newWorld(sites, Config{K: 8, Alpha: 3}, 1)
			Fill(w.order, w.rng)
			b.ReportAllocs()
			for b.Loop() {
				n := w.order[w.rng.IntN(sites)]
				w.found = map[grid.SiteID][]*grid.Closest{}
				n.Closest(w.now, NewPeer(grid.SiteID(fmt.Sprint(w.rng.Uint64()))).Key, &w.out)
				for w.carryOut(n.Self().ID); len(w.queue) > 0; {
					l := heap.Pop(&w.queue).(letter)
					w.now = l.at
					w.nodes[l.to].Step(w.now, &grid.Delivery{From: l.from, Message: l.message}, &w.out)
					w.carryOut(l.to)
				}
			}
		})
	}
}

// TestRestartedNodeGoesOnCounting: what a node has counted is not lost when it comes up again.
func TestRestartedNodeGoesOnCounting(t *testing.T) {
	n := New(Config{}, NewPeer("a"))
	var out grid.Outbox
	n.Closest(0, grid.Key{1}, &out)
	if again := n.Restarted(); again.Stats() != n.Stats() || again.Stats().Lookups != 1 {
		t.Errorf("%+v after the restart, %+v before", again.Stats(), n.Stats())
	}
}

// TestRestartedNodeTakesNoOldAnswer: an answer to what a node asked before it was restarted is none
// to what it asks since.
func TestRestartedNodeTakesNoOldAnswer(t *testing.T) {
	n, b := New(Config{}, NewPeer("a")), NewPeer("b")
	ask := func(n *Node) uint32 {
		var out grid.Outbox
		n.Seed(b)
		n.Closest(0, grid.Key{1}, &out)
		return out.Sends[0].Message.(*Find).Token
	}
	before := ask(n)
	again := n.Restarted()
	asked := ask(again)
	var out grid.Outbox
	again.Step(1, &grid.Delivery{From: "b", Message: &Nodes{To: n.Self(), Token: before}}, &out)
	if len(again.pending) != 1 || again.pending[0].token != asked {
		t.Errorf("an answer from before the restart leaves %d of 1 questions", len(again.pending))
	}
}

// TestSilentPeerIsPassedOver: a look-up ends soon without the answer of one that is silent, and names it, as
// it may be slow; the table forgets it once it is known to be dead. One that answers late stays.
func TestSilentPeerIsPassedOver(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(200, Config{}, 3)
		Fill(w.order, w.rng)
		n, silent := w.order[0], w.order[7].Self()
		n.Seed(silent)
		var out grid.Outbox
		n.Closest(w.now, silent.Key, &out)
		var answer *Nodes
		for now, ticks := w.now, 0; len(out.Locals) == 0; {
			sends := slices.Clone(out.Sends)
			out.Reset()
			for _, send := range sends {
				find := send.Message.(*Find)
				if send.To == silent.ID {
					answer = &Nodes{To: n.Self(), Token: find.Token}
					continue
				}
				var back grid.Outbox
				w.nodes[send.To].Step(now, &grid.Delivery{From: n.Self().ID, Message: find}, &back)
				n.Step(now, &grid.Delivery{From: send.To, Message: back.Sends[0].Message}, &out)
			}
			if len(out.Sends) == 0 && len(out.Locals) == 0 {
				if now, ticks = n.NextTimer(), ticks+1; now > w.now+patience.Span || ticks > 10 {
					t.Fatalf("the look-up waits until %v", now)
				}
				n.Step(now, grid.Tick{}, &out)
			}
		}
		if got := out.Locals[0].(*grid.Closest); got.Peers[0] != silent.ID {
			t.Errorf("the look-up names %v, not the silent %v", got.Peers, silent.ID)
		}
		if late {
			n.Step(w.now+2*patience.Span, &grid.Delivery{From: silent.ID, Message: answer}, &out)
		}
		n.Step(w.now+n.cfg.Timeout, grid.Tick{}, &out)
		if known := slices.Contains(n.Acquaintances()[:n.Known()], silent); known != late {
			t.Errorf("answers late: %v; in the table: %v", late, known)
		}
		if len(n.pending) != 0 {
			t.Errorf("%d requests are under way for ever", len(n.pending))
		}
	}
}

// TestRestartedNodeJoins: before its first look-up it looks itself up, as it is in few tables.
func TestRestartedNodeJoins(t *testing.T) {
	w := newWorld(100, Config{}, 1)
	Fill(w.order, w.rng)
	again := w.order[3].Restarted()
	var out grid.Outbox
	again.Closest(w.now, grid.Key{1}, &out)
	for _, send := range out.Sends {
		if find := send.Message.(*Find); find.Key != again.Self().Key {
			t.Errorf("it looks %x up first", find.Key[:4])
		}
	}
	if len(out.Sends) == 0 {
		t.Error("it asks nobody")
	}
}

// TestYoungNodeAsksAll: the look-ups of a node that has just joined a network that may still grow ask all whom
// they name, later ones, and those in a large network, only the nearest.
func TestYoungNodeAsksAll(t *testing.T) {
	first, later := youngRequests(100)
	if first < 20 || later >= 20 {
		t.Errorf("%d requests as it joined, %d later", first, later)
	}
	if first, _ = youngRequests(1000); first >= 20 {
		t.Errorf("%d requests as it joined a large network", first)
	}
}

// youngRequests returns the requests of two look-ups of a newcomer to a network.
func youngRequests(nodes int) (first, later int64) {
	w := newWorld(nodes, Config{}, 1)
	Fill(w.order, w.rng)
	n := New(Config{}, NewPeer("newcomer"))
	n.Join(w.order[0].Self(), w.order[1].Self())
	w.nodes[n.Self().ID], w.order = n, append(w.order, n)
	requests := func(key grid.Key) int64 {
		before := n.Stats().Requests
		n.Closest(w.now, key, &w.out)
		w.carryOut(n.Self().ID)
		w.run()
		return n.Stats().Requests - before
	}
	first = requests(grid.Key{1})
	w.now += refresh.Young
	return first, requests(grid.Key{2})
}
