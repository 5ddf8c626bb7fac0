package testnet

import (
	"crypto/sha256"
	"slices"

	"gridnode/grid"
)

// Router is a site's node of the DHT as a core of its own: it answers
// EffectClosest by messages of the virtual network. Its messages are no inputs of its
// site, and it gets a grid.Tick only when it has asked for one.
type Router interface {
	Site
	// Speaks reports whether messages of this kind are the router's.
	Speaks(kind grid.Kind) bool
	// Closest begins a look-up. The answer comes as a *grid.Closest among
	// Outbox.Locals, in this call or a later Step.
	Closest(now grid.Time, key grid.Key, out *grid.Outbox)
	// ClosestAll is a Closest that asks all whom it names: those that are to keep a provider record.
	ClosestAll(now grid.Time, key grid.Key, out *grid.Outbox)
}

// closestTo begins a look-up for a site.
func (l *lane) closestTo(s int32, key grid.Key) {
	m := &l.members[s]
	if m.router != nil {
		if now := m.Clock.Local(l.now); slices.ContainsFunc(m.orders[key], recordOrder.stores) {
			m.router.ClosestAll(now, key, l.outbox())
		} else {
			m.router.Closest(now, key, l.outbox())
		}
		m.asked()
		l.carryRouter(s)
		l.armRouter(s)
		return
	}
	at := l.now + l.roundTrip(s) // as if it had asked one of them
	i := l.lookups.put(lookup{key, m.incarnation})
	l.push(at, classOther, event{kind: eventClosest, to: s, from: s, index: i})
}

// carryRouter carries out what a router ordered and gives its site the answers.
func (l *lane) carryRouter(s int32) {
	base := len(l.answers) // a step may ask the router again: answers are a stack
	l.answers = append(l.answers, l.out.Locals...)
	l.out.Locals = l.out.Locals[:0]
	l.carryOut(s)
	for i, end := base, len(l.answers); i < end; i++ {
		l.providing.lookedUp(s, l.answers[i])
	}
	clear(l.answers[base:])
	l.answers = l.answers[:base]
}

// lookup is a question to the oracle.
type lookup struct {
	key         grid.Key
	incarnation uint32
}

// answerClosest is the oracle's answer: the sites that are up now.
func (l *lane) answerClosest(e *event) {
	look := l.lookups.take(e.index)
	if m := &l.members[e.to]; m.core == nil || m.incarnation != look.incarnation {
		return
	}
	l.closest.Key = look.key
	l.closest.Peers = l.Closest(l.closest.Peers[:0], look.key, l.cfg.Closest)
	l.step(e.to, &l.closest)
}

// Closest appends the count sites that are up and nearest to key by Kademlia's
// measure (XOR of SHA-256), nearest first: what a perfect look-up finds.
func (n *Network) Closest(peers []grid.SiteID, key grid.Key, count int) []grid.SiteID {
	n.oracle.sort()
	w := walk{n: n, key: key, want: len(peers) + count, peers: peers}
	w.visit(0, len(n.oracle.points), 0)
	return w.peers
}

// oracle knows every site's place in the key space.
type oracle struct {
	points   []point // ordered by key, once sorted
	unsorted bool
}

type point struct {
	key  grid.Key
	site int32
}

func (o *oracle) add(id grid.SiteID, s int32) {
	o.points = append(o.points, point{sha256.Sum256([]byte(id)), s})
	o.unsorted = true
}

func (o *oracle) sort() {
	if o.unsorted {
		slices.SortFunc(o.points, func(a, b point) int { return slices.Compare(a.key[:], b.key[:]) })
		o.unsorted = false
	}
}

// walk is a search for the nearest points: the sorted points are the leaves of a
// binary trie, and at each branch the side that shares the key's bit is nearer.
type walk struct {
	n     *Network
	key   grid.Key
	want  int
	peers []grid.SiteID
}

// visit walks the points from lo to hi, which share their first bits.
func (w *walk) visit(lo, hi, bit int) {
	if lo >= hi || len(w.peers) >= w.want {
		return
	}
	points := w.n.oracle.points
	if hi-lo == 1 || bit == 256 {
		for _, p := range points[lo:hi] {
			if m := &w.n.members[p.site]; m.core != nil && len(w.peers) < w.want {
				w.peers = append(w.peers, m.ID)
			}
		}
		return
	}
	set := func(k *grid.Key) bool { return k[bit/8]>>(7-bit%8)&1 == 1 }
	middle := lo // the first point with the bit set
	for span := hi - lo; span > 0; {
		half := span / 2
		if set(&points[middle+half].key) {
			span = half
		} else {
			middle += half + 1
			span -= half + 1
		}
	}
	if set(&w.key) {
		w.visit(middle, hi, bit+1)
		w.visit(lo, middle, bit+1)
	} else {
		w.visit(lo, middle, bit+1)
		w.visit(middle, hi, bit+1)
	}
}
