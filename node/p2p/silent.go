package p2p

import (
	"context"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
)

// Silent returns which of these sites do not answer, in their order: the node n is
// not connected to them and cannot connect. It asks at most silentMax, the first ones, and
// none while it has as many connections as it needs: of the others it says nothing. It
// blocks for silentSpan at most.
func Silent(ctx context.Context, n *Network, sites []grid.SiteID) (silent []grid.SiteID) {
	ctx, cancel := context.WithTimeout(ctx, silentSpan)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	asked := 0
	for _, site := range sites {
		id, err := peer.Decode(string(site))
		if err != nil || id == n.host.ID() || n.host.Network().Connectedness(id) == network.Connected {
			continue
		}
		if asked++; asked > silentMax || len(n.host.Network().Peers()) >= n.enough {
			break
		}
		wg.Go(func() {
			if n.routed.Connect(ctx, peer.AddrInfo{ID: id}) == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			silent = append(silent, site)
		})
	}
	wg.Wait()
	slices.SortFunc(silent, func(a, b grid.SiteID) int { return slices.Index(sites, a) - slices.Index(sites, b) })
	return silent
}
