package p2p

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	corecm "github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// A node of a fleet that has more than shedMost peers ends its connections with those it has
// exchanged nothing with for longest, until it has shedLeast. libp2p's own manager does so
// in the middle of requests, which then fail: the peer leaves the tables, and what was under
// way is lost.
const (
	shedMost   = 24
	shedLeast  = 16
	shedPeriod = time.Second      // how often connections are counted
	shedIdle   = 20 * time.Second // a connection used later than that ago is kept: an answer may be on its way
)

// uses remembers when something of the cores or of a look-up went to a peer, or came from it. A nil one
// remembers nothing: that of a node that sheds no connections.
type uses struct {
	mu sync.Mutex
	at map[peer.ID]time.Time
}

func (u *uses) touch(p peer.ID) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at[p] = time.Now()
}

func (u *uses) last(p peer.ID) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.at[p]
}

// keep forgets peers of which connected is false, if it remembers more than there are.
func (u *uses) keep(peers int, connected func(peer.ID) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.at) <= peers {
		return
	}
	for p := range u.at {
		if !connected(p) {
			delete(u.at, p)
		}
	}
}

// shedder ends idle connections of a node.
type shedder struct {
	n       *Network
	resting map[protocol.ID]bool // protocols whose streams stay open while nothing is to be sent
}

// newShedder returns one for a node that is complete.
func newShedder(n *Network) *shedder {
	sh := &shedder{n: n, resting: map[protocol.ID]bool{n.kademlia(): true}}
	for _, p := range n.cfg.Protocols {
		sh.resting[protocol.ID(p.ID)] = true
	}
	for _, id := range pubsub.GossipSubDefaultProtocols {
		sh.resting[id] = true
	}
	return sh
}

// run sheds connections until the network closes.
func (sh *shedder) run() {
	for sh.n.sleep(shedPeriod) {
		sh.shed(time.Now())
	}
}

// shed ends idle connections if there are too many peers.
func (sh *shedder) shed(now time.Time) {
	net := sh.n.host.Network()
	peers := net.Peers()
	sh.n.used.keep(len(peers), func(p peer.ID) bool { return net.Connectedness(p) == network.Connected })
	if len(peers) <= shedMost {
		return
	}
	type candidate struct {
		peer peer.ID
		used time.Time
	}
	var idle []candidate
	for _, p := range peers {
		if used, ok := sh.idle(now, p); ok && now.Sub(used) >= shedIdle {
			idle = append(idle, candidate{p, used})
		}
	}
	slices.SortFunc(idle, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(string(a.peer), string(b.peer)))
	})
	for _, c := range idle[:min(len(idle), len(peers)-shedLeast)] {
		_ = net.ClosePeer(c.peer)
	}
}

// idle reports whether nobody waits for anything on a peer's connections, and when they were
// used last. Connections that gossip needs are never idle, nor are young ones.
func (sh *shedder) idle(now time.Time, p peer.ID) (used time.Time, ok bool) {
	if sh.n.host.ConnManager().IsProtected(p, "") {
		return used, false
	}
	used = sh.n.used.last(p)
	for _, c := range sh.n.host.Network().ConnsToPeer(p) {
		if now.Sub(c.Stat().Opened) < youngMax {
			return used, false // who joined through this node would take it for a refusal
		}
		for _, s := range c.GetStreams() {
			if !sh.resting[s.Protocol()] {
				return used, false
			}
		}
	}
	return used, true
}

// unprotecting is libp2p's connection manager of a fleet, in which peers are not protected
// because they are in the DHT's table: their addresses remain there.
type unprotecting struct{ corecm.ConnManager }

// kbucketTag is what kad-dht calls peers in its table.
const kbucketTag = "kbucket"

// Protect implements connmgr.ConnManager.
func (m unprotecting) Protect(p peer.ID, tag string) {
	if tag != kbucketTag {
		m.ConnManager.Protect(p, tag)
	}
}

// usedStream notes that its peer is needed.
type usedStream struct {
	network.Stream
	n *Network
}

// Read implements network.Stream.
func (s *usedStream) Read(b []byte) (int, error) {
	k, err := s.Stream.Read(b)
	s.n.used.touch(s.Conn().RemotePeer())
	return k, err
}

// Write implements network.Stream.
func (s *usedStream) Write(b []byte) (int, error) {
	s.n.used.touch(s.Conn().RemotePeer())
	return s.Stream.Write(b)
}
