package p2p

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
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

// watch notices when the last peer is gone, and when there are peers to remember.
func (n *Network) watch() network.Notifiee {
	return &network.NotifyBundle{
		ConnectedF: func(network.Network, network.Conn) { ring(n.met) },
		DisconnectedF: func(net network.Network, c network.Conn) {
			if net.Connectedness(c.RemotePeer()) == network.Connected {
				return
			}
			n.pings.forget(c.RemotePeer())
			if len(net.Peers()) == 0 {
				ring(n.rejoin)
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

// keepRemembering writes new peers down soon after they connected, so that a crash
// forgets few. A node that others join, and that joins nobody, finds them again by
// nothing else.
func (n *Network) keepRemembering() {
	for {
		select {
		case <-n.met:
		case <-n.ctx.Done():
			return
		}
		if !n.sleep(rememberPause) {
			return
		}
		n.remember()
	}
}

// remember writes the addresses of connected members for the next start. Failing
// costs only a slower start, so it is only logged.
func (n *Network) remember() {
	if n.cfg.Remember == "" {
		return
	}
	var lines []string
	known := n.router.RoutingTable().ListPeers()
	for _, id := range known[:min(len(known), rememberedMax)] {
		info := peer.AddrInfo{ID: id, Addrs: n.host.Peerstore().Addrs(id)}
		reach.Order(info.Addrs)
		info.Addrs = info.Addrs[:min(len(info.Addrs), rememberedAddrs)]
		addrs, err := peer.AddrInfoToP2pAddrs(&info)
		if err != nil {
			continue
		}
		lines = append(lines, text(addrs)...)
	}
	if len(lines) == 0 {
		return // the peers of the last run are better than none
	}
	slices.Sort(lines)
	if err := replaceFile(n.cfg.Remember, strings.Join(lines, "\n")+"\n"); err != nil {
		n.log.Warn("cannot remember the peers", "error", err)
	}
}

// replaceFile writes a file so that a crash leaves the old or the new one.
func replaceFile(path, content string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temp.WriteString(content)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}

// readRemembered returns the peers of the last run; lines that are no addresses
// are skipped.
func readRemembered(path string) []peer.AddrInfo {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var peers []peer.AddrInfo
	for lines := bufio.NewScanner(f); lines.Scan() && len(peers) < rememberedMax*rememberedAddrs; {
		if info, err := reach.Peer(lines.Text()); err == nil {
			peers = append(peers, info)
		}
	}
	return mergeInfos(peers)
}
