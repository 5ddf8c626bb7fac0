package p2p

import (
	"context"
	"slices"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"gridnode/grid"
)

// recordOrder is to put a record of this node into the DHT, or to look for those there.
// Such orders have no part in the bounds of look-ups, so that the directory never waits
// for them.
type recordOrder struct {
	key grid.Key
	put bool
}

// Provide puts a provider record of this node into the DHT and reports what became of
// it as *grid.Provided.
func (n *Network) Provide(key grid.Key) {
	if !n.records.add(recordOrder{key, true}) {
		n.cfg.Report(&grid.Provided{Key: key})
	}
}

// FindProviders looks for provider records in the DHT and reports whose there are as
// *grid.Providers, nobody if the look-up failed or too many orders are waiting.
func (n *Network) FindProviders(key grid.Key) {
	if !n.records.add(recordOrder{key, false}) {
		n.cfg.Report(&grid.Providers{Key: key})
	}
}

func (n *Network) carryRecords(o recordOrder) {
	if o.put {
		n.cfg.Report(&grid.Provided{Key: o.key, Stored: n.provide(o.key)})
	} else {
		n.cfg.Report(&grid.Providers{Key: o.key, Peers: n.providers(o.key)})
	}
}

// cidOf is the name of a key in the DHT. The DHT hashes it once more.
func cidOf(key grid.Key) cid.Cid {
	digest, err := multihash.Encode(key[:], multihash.SHA2_256)
	if err != nil {
		panic(err) // the code is known
	}
	return cid.NewCidV1(cid.Raw, digest)
}

func (n *Network) provide(key grid.Key) bool {
	ctx, cancel := context.WithTimeout(n.ctx, recordTimeMax)
	defer cancel()
	if !n.awaitJoin(ctx) {
		return false
	}
	var err error
	n.counted(ctx, func(ctx context.Context) { err = n.router.Provide(ctx, cidOf(key), true) })
	if err != nil {
		n.log.Debug("a provider record was not stored", "error", err)
		return false
	}
	return n.router.RoutingTable().Size() > 0
}

func (n *Network) providers(key grid.Key) []grid.SiteID {
	ctx, cancel := context.WithTimeout(n.ctx, recordTimeMax)
	defer cancel()
	if !n.awaitJoin(ctx) {
		return nil
	}
	var sites []grid.SiteID
	name := cidOf(key)
	find := func(ctx context.Context) {
		for p := range n.router.FindProvidersAsync(ctx, name, grid.ProvidersMax+1) {
			site := grid.SiteID(p.ID.String())
			if p.ID != n.host.ID() && len(sites) < grid.ProvidersMax && !slices.Contains(sites, site) {
				sites = append(sites, site)
			}
		}
	}
	n.counted(ctx, func(ctx context.Context) { n.seeker.seek(ctx, string(name.Hash()), find) })
	return sites
}
