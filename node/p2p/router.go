package p2p

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/routing"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"gridnode/grid"
	"gridnode/node/p2p/refresh"
)

// Closest looks up the k sites nearest to key and reports them as *grid.Closest:
// nearest first, this site at its place among them, empty if the look-up failed
// or too many are waiting. A node that knows no other is the nearest itself.
//
// Nearness is kad-dht's: it hashes the key it is given, so the point looked up is
// SHA-256 of key, at every node alike.
func (n *Network) Closest(key grid.Key) {
	if !n.lookups.add(key) {
		n.cfg.Report(&grid.Closest{Key: key})
	}
}

func (n *Network) lookUp(key grid.Key) {
	n.cfg.Report(&grid.Closest{Key: key, Peers: n.closest(key)})
}

func (n *Network) closest(key grid.Key) []grid.SiteID {
	ctx, cancel := context.WithTimeout(n.ctx, lookupTimeMax)
	defer cancel()
	if !n.awaitJoin(ctx) { // an answer before that would name us alone
		return nil
	}
	var peers []peer.ID
	var err error
	n.counted(ctx, func(ctx context.Context) { peers, err = n.seeker.nearestTo(ctx, string(key[:])) })
	if err != nil && !errors.Is(err, kbucket.ErrLookupFailure) { // that one says: no peer is known
		n.log.Debug("look-up failed", "error", err)
		return nil
	}
	return merge(key, n.host.ID(), peers, n.cfg.bucketSize())
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

// counted has the DHT look something up and counts the look-up and its requests.
func (n *Network) counted(ctx context.Context, lookUp func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	ctx, events := routing.RegisterForQueryEvents(ctx)
	counted := make(chan int64)
	go func() { counted <- countRequests(events) }()
	lookUp(ctx)
	cancel() // closes events
	n.stats.requests.Add(<-counted)
	n.stats.lookups.Add(1)
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

// merge puts self at its place among peers, which GetClosestPeers returns nearest
// first and without self, and keeps the first k.
func merge(key grid.Key, self peer.ID, peers []peer.ID, k int) []grid.SiteID {
	target := kbucket.ConvertKey(string(key[:]))
	mine := distance(target, self)
	sites := make([]grid.SiteID, 0, len(peers)+1)
	placed := false
	for _, p := range peers {
		if !placed && bytes.Compare(mine, distance(target, p)) < 0 {
			sites = append(sites, grid.SiteID(self.String()))
			placed = true
		}
		sites = append(sites, grid.SiteID(p.String()))
	}
	if !placed {
		sites = append(sites, grid.SiteID(self.String()))
	}
	return sites[:min(k, len(sites))]
}

func distance(target kbucket.ID, p peer.ID) []byte {
	id := kbucket.ConvertPeerID(p)
	d := make([]byte, len(id))
	for i := range id {
		d[i] = id[i] ^ target[i]
	}
	return d
}

// stayJoined keeps this node in the federation's routing tables: it connects to
// the peers to join through and looks itself up, which makes it known to those
// nearest to it. It does so again soon while it knows nobody, or one of those peers does
// not have it, as when it was banned there, and now and then otherwise; then it also tries
// some it has not heard of for long, which mends a network that fell apart. The longer all is
// well, the more seldom it looks itself up.
func (n *Network) stayJoined() {
	alone, apart := rejoinMin, rejoinMin // the next pauses
	began := time.Now()
	var pause refresh.Pause // by the time that has passed since
	known := func() int { return n.router.RoutingTable().Size() }
	for first := true; ; first = false {
		if now := grid.FromDuration(time.Since(began)); n.joinOnce(first, pause.Over(now, known(), n.cfg.bucketSize())) {
			pause.Begin(now, known())
		}
		wait := refreshMin + rand.N(refreshMin/4) // so that a fleet does not refresh at once
		switch {
		case known() > 0:
			alone = rejoinMin
			n.remember()
			if isApart(n) {
				wait = min(wait, apart+rand.N(apart/4))
			}
		case len(n.join) > 0 || len(n.known.all()) > 0:
			wait, alone = alone+rand.N(alone/4), min(2*alone, rejoinMax)
			apart = rejoinMin
		}
		quiet := false
		select {
		case <-time.After(wait):
			quiet = wait >= refreshMin
		case <-n.rejoin:
			if !n.sleep(rejoinMin) { // a lost peer is often back in a moment
				return
			}
		case <-n.shut:
			if !n.sleep(apart + rand.N(apart/4)) {
				return
			}
		case <-n.ctx.Done():
			return
		}
		if isApart(n) {
			apart = min(2*apart, refreshMin)
		} else if quiet {
			apart = rejoinMin
		}
		if !quiet {
			pause.End()
		}
	}
}

// isApart reports whether one of the peers to join through is not connected.
func isApart(n *Network) bool {
	return slices.ContainsFunc(n.join, func(p peer.AddrInfo) bool {
		return p.ID != n.host.ID() && n.host.Network().Connectedness(p.ID) != network.Connected
	})
}

// joinOnce connects to peers that this node should know and does not, and looks itself up the first time,
// when that is due, and when it has connected. It reports whether it has.
func (n *Network) joinOnce(first, due bool) bool {
	if first {
		done := time.AfterFunc(joinTimeMax, sync.OnceFunc(func() { close(n.joined) }))
		defer func() {
			if done.Stop() {
				close(n.joined)
			}
		}()
	}
	ctx, cancel := context.WithTimeout(n.ctx, 2*dialTimeMax)
	defer cancel()
	met := n.connect(ctx, n.join, slog.LevelWarn)
	connected := func(id peer.ID) bool { return n.host.Network().Connectedness(id) == network.Connected }
	switch table := n.router.RoutingTable(); {
	case table.Size() == 0:
		met += n.connect(ctx, n.known.all(), slog.LevelDebug)
	case table.Size() < sparseTable:
		met += n.connect(ctx, n.known.missed(connected, sparseTable), slog.LevelDebug)
	default:
		for _, p := range n.known.missed(connected, 1) {
			useful := table.UsefulNewPeer(p.ID) // else it is known that it is there, or there are enough of its sort
			if n.connect(ctx, []peer.AddrInfo{p}, slog.LevelDebug) > 0 && useful {
				met++
			}
		}
	}
	if !first && !due && met == 0 || !n.awaitTable(ctx) {
		return false
	}
	var err error
	if self := string(n.host.ID()); first || met > 0 { // all that are near are to know this node
		_, err = n.router.GetClosestPeers(ctx, self)
	} else {
		n.counted(ctx, func(ctx context.Context) { _, err = n.seeker.nearestTo(ctx, self) })
	}
	if err != nil {
		n.log.Debug("looking ourselves up failed", "error", err)
	}
	return true
}

// connect dials peers that are not connected, all at once, and returns how many then are. Failures are
// logged at a level.
func (n *Network) connect(ctx context.Context, peers []peer.AddrInfo, level slog.Level) int {
	var wg sync.WaitGroup
	var met atomic.Int64
	for _, info := range peers {
		if info.ID == n.host.ID() || n.host.Network().Connectedness(info.ID) == network.Connected {
			continue
		}
		wg.Go(func() {
			n.forgetFailures(info.ID)
			if err := n.host.Connect(ctx, info); err != nil {
				if n.ctx.Err() == nil {
					n.log.Log(n.ctx, level, "cannot join through a peer", "peer", info.ID, "addresses", text(info.Addrs), "error", err)
				}
				return
			}
			met.Add(1)
			n.log.Info("connected", "peer", info.ID)
		})
	}
	wg.Wait()
	return int(met.Load())
}

// forgetFailures lets a peer be dialled at once. The swarm would pause up to five
// minutes after failures; this package has pauses of its own.
func (n *Network) forgetFailures(id peer.ID) {
	if s, ok := n.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(id)
	}
}

// awaitTable waits until a connected peer has entered the routing table, which
// happens when libp2p has learnt that it speaks the federation's DHT protocol. It
// returns false if nobody is connected or nobody does.
func (n *Network) awaitTable(ctx context.Context) bool {
	for n.router.RoutingTable().Size() == 0 {
		if len(n.host.Network().Peers()) == 0 || ctx.Err() != nil {
			return false
		}
		if n.strangers() {
			n.log.Warn("the peers connected are not in this federation", "federation", n.cfg.Federation)
			return false
		}
		if !n.sleep(10 * time.Millisecond) {
			return false
		}
	}
	return true
}

// strangers reports whether every connected peer is known to speak protocols, but
// not this federation's DHT.
func (n *Network) strangers() bool {
	for _, p := range n.host.Network().Peers() {
		spoken, err := n.host.Peerstore().GetProtocols(p)
		if err != nil || len(spoken) == 0 || slices.Contains(spoken, n.kademlia()) {
			return false
		}
	}
	return true
}

// kademlia is the protocol that the members of this federation speak.
func (n *Network) kademlia() protocol.ID {
	return protocol.ID("/gridnode/" + n.cfg.Federation + "/kad/1.0.0")
}
