package p2p

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/reach"
)

// relaysKey is where members that are relays put their provider records.
var relaysKey = grid.Key(sha256.Sum256([]byte("gridnode relays")))

// reachEnv is what the part that finds ways to this node needs of the network.
func (n *Network) reachEnv() reach.Env {
	return reach.Env{
		Member:  n.isMember,
		Find:    n.findRelays,
		Offer:   func(context.Context) bool { return n.provide(relaysKey) },
		Routing: n.kademlia(),
		Logger:  n.log,
	}
}

// isMember reports whether a connected peer is of this federation: it was admitted, and
// speaks the federation's DHT protocol.
func (n *Network) isMember(p peer.ID) bool {
	if n.gate != nil && !n.gate.admitted(p) {
		return false
	}
	spoken, err := n.host.Peerstore().SupportsProtocols(p, n.kademlia())
	return err == nil && len(spoken) > 0
}

// findRelays looks for members that are relays, and where they are.
func (n *Network) findRelays(ctx context.Context) (found []peer.AddrInfo) {
	if !n.awaitJoin(ctx) {
		return nil
	}
	n.counted(ctx, func(ctx context.Context) {
		for p := range n.router.FindProvidersAsync(ctx, cidOf(relaysKey), grid.ProvidersMax) {
			if len(p.Addrs) == 0 {
				p.Addrs = n.host.Peerstore().Addrs(p.ID)
			}
			if p.ID != n.host.ID() && !slices.ContainsFunc(found, func(f peer.AddrInfo) bool { return f.ID == p.ID }) {
				found = append(found, p)
			}
		}
	})
	return found
}
