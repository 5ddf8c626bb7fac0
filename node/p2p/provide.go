package p2p

import (
	"context"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/routing"
	"github.com/multiformats/go-multihash"

	"gridnode/internal/grid"
)

// recordOrders are the orders about provider records that are not carried out yet. They
// have no part in the bounds of look-ups, so that the directory never waits for them.
type recordOrders struct {
	mu      sync.Mutex
	running int
	waiting []recordOrder
}

// recordOrder is to put a record of this node into the DHT, or to look for those there.
type recordOrder struct {
	key grid.Key
	put bool
}

// Provide puts a provider record of this node into the DHT and reports what became of
// it as *grid.Provided.
func (n *Network) Provide(key grid.Key) { n.order(recordOrder{key, true}) }

// FindProviders looks for provider records in the DHT and reports whose there are as
// *grid.Providers, nobody if the look-up failed or too many orders are waiting.
func (n *Network) FindProviders(key grid.Key) { n.order(recordOrder{key, false}) }

func (n *Network) order(o recordOrder) {
	n.records.mu.Lock()
	defer n.records.mu.Unlock()
	switch {
	case n.ctx.Err() != nil || len(n.records.waiting) >= recordOrdersMax:
		if o.put {
			n.cfg.Report(&grid.Provided{Key: o.key})
		} else {
			n.cfg.Report(&grid.Providers{Key: o.key})
		}
	case n.records.running >= recordOrdersAlive:
		n.records.waiting = append(n.records.waiting, o)
	default:
		n.records.running++
		n.wg.Go(func() { n.carryRecords(o) })
	}
}

// carryRecords carries an order out and then those that wait.
func (n *Network) carryRecords(o recordOrder) {
	for {
		if o.put {
			n.cfg.Report(&grid.Provided{Key: o.key, Stored: n.provide(o.key)})
		} else {
			n.cfg.Report(&grid.Providers{Key: o.key, Peers: n.providers(o.key)})
		}
		n.records.mu.Lock()
		if len(n.records.waiting) == 0 || n.ctx.Err() != nil {
			n.records.running--
			n.records.mu.Unlock()
			return
		}
		o = n.records.waiting[0]
		n.records.waiting = slices.Delete(n.records.waiting, 0, 1)
		n.records.mu.Unlock()
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

// awaitJoin waits for the first join, and reports whether ctx goes on.
func (n *Network) awaitJoin(ctx context.Context) bool {
	select {
	case <-n.joined:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *Network) provide(key grid.Key) bool {
	ctx, cancel := context.WithTimeout(n.ctx, recordTimeMax)
	defer cancel()
	if !n.awaitJoin(ctx) {
		return false
	}
	if err := n.router.Provide(ctx, cidOf(key), true); err != nil {
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
	ctx, events := routing.RegisterForQueryEvents(ctx)
	counted := make(chan int64)
	go func() { counted <- countRequests(events) }()
	var sites []grid.SiteID
	for p := range n.router.FindProvidersAsync(ctx, cidOf(key), grid.ProvidersMax+1) {
		site := grid.SiteID(p.ID.String())
		if p.ID != n.host.ID() && len(sites) < grid.ProvidersMax && !slices.Contains(sites, site) {
			sites = append(sites, site)
		}
	}
	cancel() // closes events
	n.stats.requests.Add(<-counted)
	n.stats.lookups.Add(1)
	return sites
}

// countRequests counts the requests of a look-up until its events end.
func countRequests(events <-chan *routing.QueryEvent) (requests int64) {
	for e := range events {
		if e.Type == routing.SendingQuery {
			requests++
		}
	}
	return requests
}
