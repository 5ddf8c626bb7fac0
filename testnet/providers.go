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

// provide puts a provider record into the DHT. Records are kept as by a DHT that loses
// none before its time: by nobody in particular, for a round trip to another site.
func (n *Network) provide(s int32, key grid.Key) {
	n.trace.effect(s, grid.EffectProvide, uint64(key[0]))
	stored := len(n.members) > 1
	if stored {
		of := slices.DeleteFunc(n.providers[key], func(r providerRecord) bool { return r.site == s || r.until <= n.now })
		if n.providers == nil {
			n.providers = make(map[grid.Key][]providerRecord)
		}
		n.providers[key] = append(of, providerRecord{s, n.now + recordLife})
	}
	n.inject(n.now+n.roundTrip(s), s, n.members[s].incarnation, &grid.Provided{Key: key, Stored: stored})
}

// findProviders looks for provider records.
func (n *Network) findProviders(s int32, key grid.Key) {
	n.trace.effect(s, grid.EffectProviders, uint64(key[0]))
	answer := &grid.Providers{Key: key}
	for _, r := range n.providers[key] {
		if r.site != s && r.until > n.now && len(answer.Peers) < grid.ProvidersMax {
			answer.Peers = append(answer.Peers, n.members[r.site].ID)
		}
	}
	n.inject(n.now+n.roundTrip(s), s, n.members[s].incarnation, answer)
}

// roundTrip returns what a question to another site and its answer take.
func (n *Network) roundTrip(s int32) grid.Time {
	if len(n.members) == 1 {
		return 0
	}
	other := (s + 1) % int32(len(n.members))
	return n.wires.latency(s, other) + n.wires.latency(other, s)
}
