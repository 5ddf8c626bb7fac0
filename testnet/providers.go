package testnet

import (
	"slices"

	"gridnode/grid"
)

// recordLife is how long a provider record lasts, as live.
const recordLife = 3 * grid.Hour

// providerRecord says that a site provides what a key stands for.
type providerRecord struct {
	site  int32
	until grid.Time
}

// providers is the provider records of a network.
type providers struct {
	n       *Network
	records map[grid.Key][]providerRecord
}

// recordOrder is an order about a provider record that waits for the look-up of who would
// keep it.
type recordOrder struct {
	key         grid.Key
	put         bool
	incarnation uint32
}

// provide puts a provider record into the DHT. Records are kept as by a DHT that loses
// none before its time: by nobody in particular. A site with a router looks up who would
// keep it, as live ones do; without one it takes a round trip to another site.
func (ps *providers) provide(s int32, key grid.Key) {
	ps.n.trace.effect(s, grid.EffectProvide, uint64(key[0]))
	ps.begin(s, recordOrder{key, true, ps.n.members[s].incarnation})
}

// find looks for provider records.
func (ps *providers) find(s int32, key grid.Key) {
	ps.n.trace.effect(s, grid.EffectProviders, uint64(key[0]))
	ps.begin(s, recordOrder{key, false, ps.n.members[s].incarnation})
}

// begin begins to carry out an order.
func (ps *providers) begin(s int32, o recordOrder) {
	n := ps.n
	m := &n.members[s]
	if m.router == nil {
		n.inject(n.now+n.roundTrip(s), s, m.incarnation, ps.answer(s, o))
		return
	}
	if m.orders == nil {
		m.orders = make(map[grid.Key][]recordOrder)
	}
	m.orders[o.key] = append(m.orders[o.key], o)
	n.keys = append(n.keys, o.key)
}

// answer carries an order out and returns the answer.
func (ps *providers) answer(s int32, o recordOrder) grid.Input {
	n := ps.n
	if o.put {
		stored := len(n.members) > 1
		if stored {
			of := slices.DeleteFunc(ps.records[o.key], func(r providerRecord) bool { return r.site == s || r.until <= n.now })
			if ps.records == nil {
				ps.records = make(map[grid.Key][]providerRecord)
			}
			ps.records[o.key] = append(of, providerRecord{s, n.now + recordLife})
		}
		return &grid.Provided{Key: o.key, Stored: stored}
	}
	answer := &grid.Providers{Key: o.key}
	for _, r := range ps.records[o.key] {
		if r.site != s && r.until > n.now && len(answer.Peers) < grid.ProvidersMax {
			answer.Peers = append(answer.Peers, n.members[r.site].ID)
		}
	}
	return answer
}

// lookedUp gives a site the answer to a look-up: it asked for it, or for records.
func (ps *providers) lookedUp(s int32, answer grid.Input) {
	n := ps.n
	m := &n.members[s]
	found, ok := answer.(*grid.Closest)
	if !ok || m.orders[found.Key] == nil {
		n.step(s, answer)
		return
	}
	orders := m.orders[found.Key]
	delete(m.orders, found.Key)
	for _, o := range orders {
		if m.core != nil && o.incarnation == m.incarnation {
			n.step(s, ps.answer(s, o))
		}
	}
}

// roundTrip returns what a question to another site and its answer take.
func (n *Network) roundTrip(s int32) grid.Time {
	if len(n.members) == 1 {
		return 0
	}
	other := (s + 1) % int32(len(n.members))
	return n.wires.latency(s, other) + n.wires.latency(other, s)
}
