package testnet

import (
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// counts is how many messages of each kind every site of a lane has sent and received. It is
// kept by kind: few kinds make up most messages, and their counts stay in the cache
// however many sites there are.
type counts struct {
	kinds [wire.KindMax][]sentReceived // by site of the lane, as far as it has any
}

type sentReceived struct{ sent, received int64 }

func (c *counts) at(k grid.Kind, site int) *sentReceived {
	if int(k) >= wire.KindMax {
		return new(sentReceived) // as wire.Counter: nobody can ask for it
	}
	list := c.kinds[k]
	if site >= len(list) {
		list = append(list, make([]sentReceived, site+1-len(list))...)
		c.kinds[k] = list
	}
	return &list[site]
}

func (c *counts) sent(k grid.Kind, site int)     { c.at(k, site).sent++ }
func (c *counts) received(k grid.Kind, site int) { c.at(k, site).received++ }

// of returns the counts of one site.
func (c *counts) of(site int) *wire.Counter {
	counter := new(wire.Counter)
	for k, list := range c.kinds {
		if site < len(list) {
			counter.Set(grid.Kind(k), wire.Count{Messages: list[site].sent}, wire.Count{Messages: list[site].received})
		}
	}
	return counter
}

// Tally returns what each site has counted by now, whatever it counts later. It keeps a fraction of
// what Counters of all sites would take: those of the kinds that there are.
func (n *Network) Tally() func(site int) *Counter {
	lanes := make([]counts, len(n.lanes))
	for i, l := range n.lanes {
		for k, list := range l.counts.kinds {
			lanes[i].kinds[k] = slices.Clone(list)
		}
	}
	return func(site int) *Counter { return lanes[LaneOf(n.cfg.Workers, site)].of(n.inLane(int32(site))) }
}
