package p2p

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multiaddr"

	"gridnode/grid"
	"gridnode/node/reach"
)

// Peer is a connected peer as users see it.
type Peer struct {
	Site    grid.SiteID
	Addr    string        // of the connection, as seen from here
	Inbound bool          // the peer dialled us
	Since   time.Time     // when the connection was made
	Latency time.Duration // of a round trip, smoothed; 0 if not known
	Agent   string        // program and version it says it runs
	Member  bool          // it speaks this federation's DHT protocol

	Kind    reach.Kind  // of the connection
	Relay   grid.SiteID // that it leads through; empty if through none
	Punched bool        // it leads through a hole in NATs that was punched
}

// Peers returns the connected peers, ordered by ID. It measures the latency of
// those not measured lately, at most for pingTimeMax: what nobody asks for costs
// nothing.
func (n *Network) Peers(ctx context.Context) []Peer {
	ids := n.host.Network().Peers()
	n.measure(ctx, ids)
	peers := make([]Peer, 0, len(ids))
	for _, id := range ids {
		conns := n.host.Network().ConnsToPeer(id)
		if len(conns) == 0 {
			continue
		}
		conn := reach.Direct(conns)
		if conn == nil {
			conn = conns[0]
		}
		p := Peer{
			Site: grid.SiteID(id.String()), Addr: conn.RemoteMultiaddr().String(),
			Inbound: conn.Stat().Direction == network.DirInbound, Since: conn.Stat().Opened,
			Latency: n.host.Peerstore().LatencyEWMA(id), Kind: reach.KindOf(conn.RemoteMultiaddr()),
		}
		if p.Kind == reach.KindRelayed {
			relay, _ := conn.RemoteMultiaddr().ValueForProtocol(multiaddr.P_P2P)
			p.Relay = grid.SiteID(relay)
		} else {
			p.Punched = n.reach.Punched(id)
		}
		if agent, err := n.host.Peerstore().Get(id, "AgentVersion"); err == nil {
			p.Agent, _ = agent.(string)
		}
		if spoken, err := n.host.Peerstore().SupportsProtocols(id, n.kademlia()); err == nil {
			p.Member = len(spoken) > 0
		}
		peers = append(peers, p)
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(string(a.Site), string(b.Site)) })
	return peers
}

// Members returns the connected peers of a node that take part in its federation, in no order.
func Members(n *Network) (members []grid.SiteID) {
	for _, id := range n.host.Network().Peers() {
		if spoken, err := n.host.Peerstore().SupportsProtocols(id, n.kademlia()); err == nil && len(spoken) > 0 {
			members = append(members, grid.SiteID(id.String()))
		}
	}
	return members
}

// measure pings peers whose latency is older than pingFresh.
func (n *Network) measure(ctx context.Context, ids []peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeMax)
	defer cancel()
	var wg sync.WaitGroup
	for _, id := range ids {
		if !n.pings.due(id, time.Now()) {
			continue
		}
		wg.Go(func() {
			once, stop := context.WithCancel(ctx)
			defer stop()
			<-ping.Ping(once, n.host, id) // records it in the peerstore
		})
	}
	wg.Wait()
}

// pings remembers when the latency of connected peers was measured.
type pings struct {
	mu sync.Mutex
	at map[peer.ID]time.Time
}

func (p *pings) due(id peer.ID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.at[id]) < pingFresh {
		return false
	}
	if p.at == nil {
		p.at = make(map[peer.ID]time.Time)
	}
	p.at[id] = now
	return true
}

func (p *pings) forget(id peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, id)
}

// kept are the peers with whom connections are kept: the site attends to them.
type kept struct {
	mu    sync.Mutex
	peers map[peer.ID]bool
}

// tagKept is what libp2p's connection manager knows them by.
const tagKept = "gridnode-attended"

// Attend keeps the node's connections with these sites, and with no others any more. That one of
// them has ended, or that there is none, is reported as *grid.Parted.
func Attend(n *Network, sites []grid.SiteID) {
	peers := make(map[peer.ID]bool, len(sites))
	for _, site := range sites {
		if id, err := peer.Decode(string(site)); err == nil && id != n.host.ID() {
			peers[id] = true
		}
	}
	n.kept.mu.Lock()
	before := n.kept.peers
	n.kept.peers = peers
	n.kept.mu.Unlock()
	for id := range before {
		if !peers[id] {
			n.host.ConnManager().Unprotect(id, tagKept)
		}
	}
	for id := range peers {
		if before[id] {
			continue
		}
		n.host.ConnManager().Protect(id, tagKept)
		if n.host.Network().Connectedness(id) != network.Connected {
			n.cfg.Report(&grid.Parted{Site: grid.SiteID(id.String())})
		}
	}
}

func (k *kept) has(id peer.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.peers[id]
}

// watch notices when the last peer is gone, or one to whom the site attends, and when there are peers to remember.
func (n *Network) watch() network.Notifiee {
	return &network.NotifyBundle{
		ConnectedF: func(network.Network, network.Conn) { ring(n.met) },
		DisconnectedF: func(net network.Network, c network.Conn) {
			if net.Connectedness(c.RemotePeer()) == network.Connected {
				return
			}
			n.pings.forget(c.RemotePeer())
			if n.kept.has(c.RemotePeer()) {
				n.cfg.Report(&grid.Parted{Site: grid.SiteID(c.RemotePeer().String())})
			}
			if len(net.Peers()) == 0 {
				ring(n.rejoin)
			}
			if time.Since(c.Stat().Opened) < youngMax && slices.ContainsFunc(n.join, func(p peer.AddrInfo) bool { return p.ID == c.RemotePeer() }) {
				ring(n.shut)
			}
		},
	}
}

// ring puts a token into c unless there is one.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
