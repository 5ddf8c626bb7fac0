package reach

import (
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// punches counts what became of attempts to make a direct connection in place of a
// relayed one. It implements holepunch.EventTracer.
type punches struct {
	proven func(peer.ID) // a direct connection was made

	mu           sync.Mutex
	made, failed int
	direct       map[peer.ID]bool // peers that a hole was punched to; false: in vain
}

// Trace implements holepunch.EventTracer.
func (c *punches) Trace(e *holepunch.Event) {
	switch what := e.Evt.(type) {
	case *holepunch.DirectDialEvt:
		if what.Success {
			c.proven(e.Remote)
		}
	case *holepunch.EndHolePunchEvt:
		c.mu.Lock()
		if what.Success {
			c.made++
		} else {
			c.failed++
		}
		if c.direct == nil || len(c.direct) >= punchesMax {
			c.direct = make(map[peer.ID]bool)
		}
		c.direct[e.Remote] = what.Success
		c.mu.Unlock()
		if what.Success {
			c.proven(e.Remote)
		}
	}
}

// Punched reports whether the direct connection to a peer leads through a hole that was
// punched.
func (s *Service) Punched(p peer.ID) bool {
	s.punches.mu.Lock()
	defer s.punches.mu.Unlock()
	return s.punches.direct[p]
}

// afterPunch frees the relay when nobody uses it any more: what was under way has time to
// end.
func (s *Service) afterPunch(p peer.ID) { s.lookAgain(p, directTries) }

func (s *Service) lookAgain(p peer.ID, tries int) {
	time.AfterFunc(directAfter, func() {
		if s.ctx.Err() == nil && !s.dropRelayed(p) && tries > 1 {
			s.lookAgain(p, tries-1)
		}
	})
}

// dropRelayed closes relayed connections to a peer that is connected directly, too, but not
// those that somebody uses, and reports whether none is left.
func (s *Service) dropRelayed(p peer.ID) bool {
	conns := s.host.Network().ConnsToPeer(p)
	if Direct(conns) == nil {
		return true
	}
	left := false
	for _, c := range conns {
		switch {
		case !Relayed(c.RemoteMultiaddr()):
		case s.used(c):
			left = true
		default:
			_ = c.Close()
		}
	}
	return !left
}

// Outdated reports whether a stream leads through a relay although there is a direct
// connection by now.
func (s *Service) Outdated(stream network.Stream) bool {
	if !s.active || !Relayed(stream.Conn().RemoteMultiaddr()) {
		return false
	}
	return Direct(s.host.Network().ConnsToPeer(stream.Conn().RemotePeer())) != nil
}

// used reports whether a connection has streams other than those of gossip and of the DHT,
// which find the other way by themselves.
func (s *Service) used(c network.Conn) bool {
	for _, stream := range c.GetStreams() {
		switch id := stream.Protocol(); id {
		case "", pubsub.GossipSubID_v13, pubsub.GossipSubID_v12, pubsub.GossipSubID_v11, holepunch.Protocol, s.env.Routing:
		default:
			s.env.Logger.Debug("a relayed connection is in use", "peer", c.RemotePeer(), "protocol", id)
			return true
		}
	}
	return false
}
