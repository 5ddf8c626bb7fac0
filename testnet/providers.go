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

// providers is the provider records of a network. They are one for all lanes, so orders about
// them are carried out between strides (lane.between).
type providers map[grid.Key][]providerRecord

// providing is what a lane's sites do with provider records.
type providing struct{ l *lane }

// recordOrder is an order about a provider record that waits for the look-up of who would
// keep it.
type recordOrder struct {
	key         grid.Key
	put         bool
	incarnation uint32
}

func (o recordOrder) stores() bool { return o.put }

// provide puts a provider record into the DHT. Records are kept as by a DHT that loses
// none before its time: by nobody in particular. A site with a router looks up who would
// keep it, as live ones do; without one it takes a round trip to another site.
func (ps providing) provide(s int32, key grid.Key) {
	ps.l.members[s].trace.effect(s, grid.EffectProvide, uint64(key[0]))
	ps.begin(s, recordOrder{key, true, ps.l.members[s].incarnation})
}

// find looks for provider records.
func (ps providing) find(s int32, key grid.Key) {
	ps.l.members[s].trace.effect(s, grid.EffectProviders, uint64(key[0]))
	ps.begin(s, recordOrder{key, false, ps.l.members[s].incarnation})
}

// begin begins to carry out an order.
func (ps providing) begin(s int32, o recordOrder) {
	l := ps.l
	m := &l.members[s]
	if m.router == nil {
		ps.carryOut(s, o)
		return
	}
	if m.orders == nil {
		m.orders = make(map[grid.Key][]recordOrder)
	}
	m.orders[o.key] = append(m.orders[o.key], o)
	l.keys = append(l.keys, o.key)
}

// carryOut carries out an order that has found who is to keep the record, or has it: its
// answer comes a round trip later.
func (ps providing) carryOut(s int32, o recordOrder) {
	l := ps.l
	at := l.now + l.roundTrip(s)
	l.between(func(now grid.Time) {
		l.inject(at, s, o.incarnation, l.providers.answer(l.Network, now, s, o))
	})
}

// answer carries an order out and returns the answer.
func (p providers) answer(n *Network, now grid.Time, s int32, o recordOrder) grid.Input {
	if o.put {
		stored := len(n.members) > 1
		if stored {
			of := slices.DeleteFunc(p[o.key], func(r providerRecord) bool { return r.site == s || r.until <= now })
			p[o.key] = append(of, providerRecord{s, now + recordLife})
		}
		return &grid.Provided{Key: o.key, Stored: stored}
	}
	answer := &grid.Providers{Key: o.key}
	for _, r := range p[o.key] {
		if r.site != s && r.until > now && len(answer.Peers) < grid.ProvidersMax {
			answer.Peers = append(answer.Peers, n.members[r.site].ID)
		}
	}
	return answer
}

// lookedUp gives a site the answer to a look-up: it asked for it, or for records.
func (ps providing) lookedUp(s int32, answer grid.Input) {
	l := ps.l
	m := &l.members[s]
	found, ok := answer.(*grid.Closest)
	if !ok || m.orders[found.Key] == nil {
		l.step(s, answer)
		return
	}
	orders := m.orders[found.Key]
	delete(m.orders, found.Key)
	for _, o := range orders {
		if m.core != nil && o.incarnation == m.incarnation {
			ps.carryOut(s, o)
		}
	}
}

// roundTrip returns what a question to another site and its answer take.
func (l *lane) roundTrip(s int32) grid.Time {
	if len(l.members) == 1 {
		return 0
	}
	other := (s + 1) % int32(len(l.members))
	return l.wires.roundTrip(s, other)
}
