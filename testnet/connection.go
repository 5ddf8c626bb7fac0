package testnet

import (
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/node/p2p/patience"
	"gridnode/testnet/draw"
)

// silence draws after how long one end of a connection notices that the other one has fallen
// silent, by the rule of package patience. It heard last what one of the two ends has asked, or answered.
func silence(pcg *rand.PCG) grid.Time {
	span := uint64(patience.Silence)
	return patience.Silence + patience.Answer - grid.Time(min(draw.Uniform(pcg, span), draw.Uniform(pcg, span)))
}

// attend notes with whom a site keeps connections. It is told of those that are down.
func (w *wires) attend(from int32, sites []grid.SiteID) {
	l := w.l
	m := &l.members[from]
	m.trace.effect(from, grid.EffectAttend, uint64(len(sites)))
	before := l.attended[from]
	list := make([]int32, 0, len(sites))
	for _, site := range sites {
		to, known := l.find(site)
		if !known {
			continue
		}
		list = append(list, to)
		if l.members[to].core == nil && !slices.Contains(before, to) {
			l.inject(l.now+l.cfg.DialTimeout, from, m.incarnation, &grid.Parted{Site: site})
		}
	}
	l.attended[from] = list
}

// attend reports whether two sites keep a connection with each other.
func (n *Network) attend(a, b int32) bool {
	return slices.Contains(n.attended[a], b) && slices.Contains(n.attended[b], a)
}

// parted has those notice who are connected with a site that goes down: a daemon's connections
// are ended by its machine, those of a machine without power by who waits for it in vain.
func (fs *faults) parted(s int32, machine bool) {
	n := fs.n
	for _, t := range n.attended[s] {
		if !n.attend(s, t) || n.members[t].core == nil {
			continue
		}
		l := n.laneOf(t)
		after := l.wires.latency(t, s)
		if machine {
			after = silence(&n.members[t].link)
		}
		l.inject(n.now+after, t, n.members[t].incarnation, &grid.Parted{Site: n.members[s].ID})
	}
	n.attended[s] = nil
}

// divided has both ends of connections across a partition notice, if it lasts.
func (fs *faults) divided(c *cut, sites []int) {
	n := fs.n
	part := func(at, from int32) {
		incarnation := n.members[at].incarnation
		n.Call(n.now+silence(&n.members[at].link), int(at), func() {
			m := &n.members[at]
			if m.core != nil && m.incarnation == incarnation && n.attend(at, from) && (fs.severed(at, from) || fs.severed(from, at)) {
				n.Step(int(at), &grid.Parted{Site: n.members[from].ID})
			}
		})
	}
	for _, s := range sites {
		for _, t := range n.attended[s] {
			if c.inside[s] != c.inside[t] && n.attend(int32(s), t) {
				part(int32(s), t)
				part(t, int32(s))
			}
		}
	}
}
