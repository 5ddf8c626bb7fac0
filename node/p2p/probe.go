package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"gridnode/grid"
)

// Probe measures the round trip to a site and reports it as *grid.Probed: the
// shortest of probePings pings one after the other, as the first carries the
// negotiation of its stream and any may meet a busy machine. It connects if need be, but
// does not drive out connections that others need: a node that has enough measures only
// sites that it is connected to.
// At most probesMax are under way; more are answered at once as if nobody were there.
func (n *Network) Probe(site grid.SiteID) {
	id, err := peer.Decode(string(site))
	if err != nil || n.ctx.Err() != nil {
		n.cfg.Report(&grid.Probed{To: site, RoundTrip: -1})
		return
	}
	if n.probing.Add(1) > probesMax {
		n.probing.Add(-1)
		n.cfg.Report(&grid.Probed{To: site, RoundTrip: -1})
		return
	}
	n.wg.Go(func() {
		n.cfg.Report(&grid.Probed{To: site, RoundTrip: n.roundTrip(id)})
		n.probing.Add(-1)
	})
}

// roundTrip returns the shortest round trip, -1 if there was none.
func (n *Network) roundTrip(id peer.ID) grid.Time {
	ctx, cancel := context.WithTimeout(n.ctx, dialTimeMax+pingTimeMax)
	defer cancel()
	best := time.Duration(-1)
	from := n.routed
	if len(n.host.Network().Peers()) >= n.enough {
		from, ctx = n.host, network.WithNoDial(ctx, "enough connections")
	}
	results := ping.Ping(ctx, from, id)
	for range probePings {
		r, more := <-results
		if !more || r.Error != nil {
			break
		}
		if best < 0 || r.RTT < best {
			best = r.RTT
		}
	}
	if best < 0 {
		return -1
	}
	return grid.FromDuration(best)
}
