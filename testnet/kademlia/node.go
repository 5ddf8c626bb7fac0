package kademlia

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/patience"
	"gridnode/node/p2p/refresh"
)

// Config says how a network's nodes route. A zero field takes the default named
// beside it.
type Config struct {
	K       int       // peers per bucket and sites per answer; 20, at most KMax
	Alpha   int       // requests of one look-up under way; 3
	Beta    int       // nearest sites that must have answered; 3
	Timeout grid.Time // of one request; 10 s

	// Refresh has a node look itself up when a refresh.Pause is over, as live ones do.
	Refresh bool

	// Hash makes the nodes look up SHA-256 of the keys they are given, as kad-dht does.
	Hash bool

	// Pool is shared by the nodes of a lane of a network that delivers no message twice. If it is
	// nil, everything is made anew.
	Pool *Pool
}

// joining is how far a node is that joins through peers it knows.
type joining uint8

const (
	joined  joining = iota // or never had to
	toJoin                 // it looks itself up before it looks up anything else
	inquiry                // it is doing so, and other look-ups wait
)

// A node that knows fewer than sparse others tries those again that it has lost, once in a
// retryPeriod, as a real one does whenever it looks itself up.
const (
	sparse      = 4
	retryPeriod = 5 * grid.Minute
)

// acquaintedMax bounds whom a node remembers over a restart, as a real one does.
const acquaintedMax = 64

// lookupsMax bounds the look-ups under way at one node; further ones wait.
const lookupsMax = 64

// Node is one site's router. Not safe for concurrent use.
type Node struct {
	cfg     Config
	table   table
	due     grid.Time // when Step needs a Tick next; grid.Never if it does not
	refresh grid.Time // when the node sees whether its pause is over; 0 before its first step
	pause   refresh.Pause
	joining joining
	young   grid.Time // until when its look-ups are thorough in a network that has not grown
	filled  bool      // it is not young, as all have been there for long
	lookups []*lookup // under way, oldest first
	backlog []wanted
	pending []request // sent and not answered, by deadline and by token
	token   uint32
	lost    []*Peer   // dropped from the table, the latest last
	again   grid.Time // when they may be tried again by a node with few others
	stats   Stats
}

// Stats counts what look-ups cost.
type Stats struct {
	Lookups  int64 // but for those by which the node joined
	Requests int64 // of these
	Joining  int64 // requests of the others
	Failures int64
}

// wanted is a look-up that is to be made.
type wanted struct {
	key      grid.Key
	thorough bool
}

type request struct {
	token    uint32
	to       *Peer
	lookup   *lookup // nil: it has ended, and passed over whom this is to
	deadline grid.Time
	doubted  bool // no look-up waits for it any more
}

// New returns a node that knows nobody.
func New(cfg Config, self *Peer) *Node {
	if cfg.K <= 0 {
		cfg.K = 20
	}
	if cfg.Alpha <= 0 {
		cfg.Alpha = 3
	}
	if cfg.Beta <= 0 {
		cfg.Beta = 3
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * grid.Second
	}
	cfg.K = min(cfg.K, KMax)
	return &Node{cfg: cfg, table: table{self: self, k: cfg.K}, due: grid.Never}
}

// Self returns the node's own place.
func (n *Node) Self() *Peer { return n.table.self }

// Known returns how many peers are in the table.
func (n *Node) Known() int { return n.table.size() }

// Stats returns what the look-ups so far cost.
func (n *Node) Stats() Stats { return n.stats }

// Seed puts peers into the table.
func (n *Node) Seed(peers ...*Peer) {
	for _, p := range peers {
		n.table.add(p, false)
	}
}

// Join makes the node one that has not joined yet and knows of some peers: before its
// first look-up, which waits for that, it looks itself up.
func (n *Node) Join(peers ...*Peer) {
	if n.Seed(peers...); n.Known() > 0 {
		n.joining = toJoin
	}
}

// Rejoin puts the peers into the table again that it has lost: whoever was cut off makes
// its connections anew once it can.
func (n *Node) Rejoin() {
	n.Seed(n.lost...)
	n.lost = nil
}

// Acquaintances returns whom the node remembers over a restart: those in its table, then
// those that it has lost.
func (n *Node) Acquaintances() (peers []*Peer) {
	for _, b := range n.table.buckets {
		for _, c := range b {
			peers = append(peers, c.peer)
		}
	}
	for _, p := range n.lost {
		if !slices.Contains(peers, p) {
			peers = append(peers, p)
		}
	}
	return peers[:min(len(peers), acquaintedMax)]
}

// Restarted returns the node as it comes up again: it joins through those whom it remembers, its
// Stats go on, and its tokens, so that an answer to what it asked before is none to what it asks now.
func (n *Node) Restarted() *Node {
	again := New(n.cfg, n.table.self)
	again.Join(n.Acquaintances()...)
	again.stats, again.token = n.stats, n.token
	return again
}

// lose drops a peer that does not answer, and remembers it.
func (n *Node) lose(p *Peer) {
	n.table.remove(p)
	if slices.Contains(n.lost, p) {
		return
	}
	if len(n.lost) >= n.cfg.K {
		n.lost = slices.Delete(n.lost, 0, 1)
	}
	n.lost = append(n.lost, p)
}

// Speaks reports whether messages of this kind are for a Node.
func (n *Node) Speaks(kind grid.Kind) bool {
	return kind == wire.KademliaFind || kind == wire.KademliaNodes
}

// Closest begins a look-up of the k sites nearest to key. The answer is a
// *grid.Closest among out.Locals, now or in a later Step. A key that is being
// looked up already is answered once.
func (n *Node) Closest(now grid.Time, key grid.Key, out *grid.Outbox) {
	n.lookUp(now, wanted{key: key}, out)
}

// ClosestAll is a Closest that asks all of the sites that it names, as kad-dht does where provider
// records are to be stored or found.
func (n *Node) ClosestAll(now grid.Time, key grid.Key, out *grid.Outbox) {
	n.lookUp(now, wanted{key, true}, out)
}

func (n *Node) lookUp(now grid.Time, w wanted, out *grid.Outbox) {
	n.plan(now)
	under := func(l *lookup) bool { return l.asked == w.key && !l.own }
	if n.joining == joined && slices.ContainsFunc(n.lookups, under) || slices.ContainsFunc(n.backlog, func(other wanted) bool { return other.key == w.key }) {
		return
	}
	if n.joining != joined || len(n.lookups) >= lookupsMax {
		n.backlog = append(n.backlog, w)
		if n.joining == toJoin {
			n.joining = inquiry
			n.lookSelfUp(now, true, out)
		}
		return
	}
	n.stats.Lookups++
	point := w.key
	if n.cfg.Hash {
		point = sha256.Sum256(w.key[:])
	}
	l := n.cfg.Pool.lookup(point)
	l.asked, l.thorough, l.young = w.key, w.thorough, now < n.young
	n.begin(now, l, out)
}

// lookSelfUp looks the node itself up.
func (n *Node) lookSelfUp(now grid.Time, thorough bool, out *grid.Outbox) {
	l := n.cfg.Pool.lookup(n.table.self.Key)
	l.own, l.thorough = true, thorough
	n.begin(now, l, out)
}

// begin begins a look-up.
func (n *Node) begin(now grid.Time, l *lookup, out *grid.Outbox) {
	if known := n.Known(); len(n.lost) > 0 && (known == 0 || known < sparse && n.again <= now) {
		n.again = now.Add(retryPeriod)
		n.Rejoin()
	}
	var near [KMax]contact
	l.hear(near[:n.table.nearest(near[:n.cfg.K], &l.key, nil)], n.table.self)
	n.lookups = append(n.lookups, l)
	n.advance(now, l, out)
}

// Step applies one input at time now and appends the effects to out.
func (n *Node) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	n.plan(now)
	n.expire(now, out)
	n.doubt(now, out)
	if n.refresh <= now {
		n.refresh += n.period()
		if n.pause.Over(now, n.Known(), n.cfg.K) {
			n.pause.Begin(now, n.Known())
			n.stats.Lookups++
			n.lookSelfUp(now, false, out)
		}
		n.first()
	}
	switch in := in.(type) {
	case grid.Tick:
	case *grid.Delivery:
		n.delivery(now, in, out)
	case *grid.Undelivered:
		if find, ok := in.Message.(*Find); ok {
			n.settle(now, find.Token, nil, true, out)
		}
		n.cfg.Pool.back(in.Message)
	default:
		panic(fmt.Sprintf("kademlia: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (n *Node) NextTimer() grid.Time { return n.due }

// first notes when Step needs a Tick next, after a change to the requests or to refresh.
func (n *Node) first() {
	n.due = n.refresh
	if len(n.pending) > 0 {
		n.due = min(n.due, n.pending[0].deadline)
	}
	for i := range n.pending {
		if r := &n.pending[i]; !r.doubted {
			n.due = min(n.due, n.doubtful(r))
			break
		}
	}
}

// plan begins the first pause between look-ups of the node itself, and its youth, once it is there.
func (n *Node) plan(now grid.Time) {
	if n.refresh == 0 && !n.filled {
		n.young = now + refresh.Young
	}
	switch {
	case n.refresh != 0:
	case !n.cfg.Refresh:
		n.refresh = grid.Never
	default:
		n.pause.Begin(now, n.Known())
		n.refresh = now + n.period()
		n.first()
	}
}

// period returns how often the node sees whether its pause is over: not all do at once.
func (n *Node) period() grid.Time {
	return refresh.Min + refresh.Min/4*grid.Time(n.table.self.Key[31])/256
}

func (n *Node) delivery(now grid.Time, in *grid.Delivery, out *grid.Outbox) {
	switch m := in.Message.(type) {
	case *Find:
		answer := n.cfg.Pool.reply()
		answer.To, answer.Token = m.From, m.Token
		if answer.Count = 0; !m.Ended { // most ask for nothing any more
			answer.Count = n.table.nearest(answer.Peers[:n.cfg.K], &m.Key, m.From)
		}
		n.table.add(m.From, false)
		out.Send(in.From, answer)
	case *Nodes:
		if m.To == n.table.self {
			n.settle(now, m.Token, m, false, out)
		}
	}
	n.cfg.Pool.back(in.Message)
}

// settle ends a request: with an answer, or with nil if there will be none, perhaps
// because the peer could not even be reached.
func (n *Node) settle(now grid.Time, token uint32, answer *Nodes, unreached bool, out *grid.Outbox) {
	i, found := slices.BinarySearchFunc(n.pending, token, func(r request, token uint32) int {
		return cmp.Compare(int32(r.token-token), 0) // tokens begin again after 2³²
	})
	if !found {
		return // too late, or a copy
	}
	r := n.pending[i]
	n.pending = slices.Delete(n.pending, i, i+1)
	n.first()
	if r.lookup == nil {
		n.judge(r.to, answer != nil)
		if unreached {
			n.stats.Requests--
		}
		return
	}
	if unreached && r.lookup.stage != following {
		r.lookup.requests-- // kad-dht has only tried to connect
	}
	if r.lookup.stage != following { // kad-dht draws no conclusion for its table then
		n.judge(r.to, answer != nil)
	}
	if answer == nil {
		n.stats.Failures++
	}
	r.lookup.conclude(r.to, answer, n.table.self)
	n.advance(now, r.lookup, out)
}

// judge has the table follow what became of a request.
func (n *Node) judge(p *Peer, answered bool) {
	if answered {
		n.table.add(p, true)
	} else {
		n.lose(p)
	}
}

// expire gives up requests that were not answered in time.
func (n *Node) expire(now grid.Time, out *grid.Outbox) {
	for len(n.pending) > 0 && n.pending[0].deadline <= now {
		n.settle(now, n.pending[0].token, nil, false, out)
	}
}

// doubt has look-ups pass over whom they have waited for long enough.
func (n *Node) doubt(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(n.pending); i++ {
		r := &n.pending[i]
		switch {
		case r.doubted:
			continue
		case now < n.doubtful(r):
			return
		}
		r.doubted = true
		n.first()
		if l := r.lookup; l != nil && l.passOver(r.to) {
			n.advance(now, l, out)
			i = -1 // requests have come and gone
		}
	}
}

// doubtful returns when a request has been under way for so long that its look-up passes it over.
func (n *Node) doubtful(r *request) grid.Time { return r.deadline - n.cfg.Timeout + patience.Span }

// advance sends what a look-up may send, and answers it when it has ended.
func (n *Node) advance(now grid.Time, l *lookup, out *grid.Outbox) {
	for {
		l.proceed(n.cfg.K, n.cfg.Beta)
		p, done := l.next(n.cfg.Alpha)
		if done {
			n.end(now, l, out)
			return
		}
		if p == nil {
			return
		}
		n.token++
		n.pending = append(n.pending, request{token: n.token, to: p, lookup: l, deadline: now.Add(n.cfg.Timeout)})
		n.first()
		find := n.cfg.Pool.find()
		*find = Find{Key: l.key, Token: n.token, From: n.table.self, Ended: l.stage == following}
		out.Send(p.ID, find)
	}
}

// end ends a look-up and begins those that have waited for it.
func (n *Node) end(now grid.Time, l *lookup, out *grid.Outbox) {
	n.lookups = slices.DeleteFunc(n.lookups, func(other *lookup) bool { return other == l })
	if l.waiting > 0 { // nobody waits for these answers any more
		n.pending = slices.DeleteFunc(n.pending, func(r request) bool { return r.lookup == l && !l.passedOver(r.to) })
		for i := range n.pending {
			if r := &n.pending[i]; r.lookup == l {
				r.lookup = nil // live ones are asked once more, whether they are there
			}
		}
		n.first()
	}
	if l.own && l.thorough {
		n.joining = joined
		n.stats.Joining += int64(l.requests)
	} else {
		n.stats.Requests += int64(l.requests)
	}
	if !l.own {
		n.answer(now, l, out)
	}
	n.cfg.Pool.ended(l)
	for len(n.backlog) > 0 && len(n.lookups) < lookupsMax {
		w := n.backlog[0]
		n.backlog = n.backlog[1:]
		n.lookUp(now, w, out)
	}
}

// answer answers a look-up with the k nearest sites, this one among them if it is.
func (n *Node) answer(now grid.Time, l *lookup, out *grid.Outbox) {
	closest := n.cfg.Pool.answer(now)
	closest.Key = l.asked
	self := n.table.self
	for _, c := range l.candidates {
		if self != nil && nearer(&l.key, &self.Key, &c.peer.Key) {
			closest.Peers = append(closest.Peers, self.ID)
			self = nil
		}
		if len(closest.Peers) < n.cfg.K {
			closest.Peers = append(closest.Peers, c.peer.ID)
		}
	}
	if self != nil && len(closest.Peers) < n.cfg.K {
		closest.Peers = append(closest.Peers, self.ID)
	}
	out.Local(closest)
}
