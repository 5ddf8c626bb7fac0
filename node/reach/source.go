package reach

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/multiformats/go-multiaddr"
)

// useRelays has places reserved at relays as long as this node is private.
func (s *Service) useRelays() {
	if s.cfg.Relay == RelayOff || s.auto != nil {
		return
	}
	search := &search{s: s}
	auto, err := autorelay.NewAutoRelay(s.host,
		autorelay.WithPeerSource(search.source),
		autorelay.WithNumRelays(relaysWanted), autorelay.WithMinCandidates(1), autorelay.WithMaxCandidates(relaysKnown),
		autorelay.WithBootDelay(0), autorelay.WithBackoff(relayBackoff), autorelay.WithMinInterval(relayInterval))
	if err != nil {
		s.env.Logger.Error("cannot use relays", "error", err)
		return
	}
	s.auto = auto
	auto.Start()
}

// search looks for relays: among connected peers at any time, in the DHT while there are
// too few, and ever less often while there are none.
type search struct {
	s     *Service
	next  time.Time // no look-up in the DHT before this
	pause time.Duration
}

// source implements autorelay.PeerSource. It is not called again before it has closed the
// channel.
func (f *search) source(ctx context.Context, most int) <-chan peer.AddrInfo {
	found := make(chan peer.AddrInfo)
	f.s.wg.Go(func() {
		defer close(found)
		f.find(ctx, most, func(p peer.AddrInfo) bool {
			select {
			case found <- p:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	return found
}

func (f *search) find(ctx context.Context, most int, give func(peer.AddrInfo) bool) {
	s := f.s
	used := relaysOf(s.relayAddrs())
	for _, p := range s.host.Network().Peers() {
		if most > 0 && !used[p] && s.isRelay(p) {
			if !give(peer.AddrInfo{ID: p, Addrs: s.host.Peerstore().Addrs(p)}) {
				return
			}
			most--
		}
	}
	select {
	case <-s.again:
		f.next, f.pause = time.Time{}, 0
	default:
	}
	if most <= 0 || len(used) >= relaysWanted || time.Now().Before(f.next) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeMax)
	defer cancel()
	fresh := 0
	for _, p := range s.env.Find(ctx) {
		if p.ID == s.host.ID() || used[p.ID] || most == 0 {
			continue
		}
		if !give(p) {
			return
		}
		most, fresh = most-1, fresh+1
	}
	f.pause = min(max(2*f.pause, searchMin), searchMax)
	f.next = time.Now().Add(f.pause)
	s.env.Logger.Debug("looked for relays", "found", fresh)
}

// isRelay reports whether a peer that is connected without a relay says that it is one.
func (s *Service) isRelay(p peer.ID) bool {
	spoken, err := s.host.Peerstore().SupportsProtocols(p, proto.ProtoIDv2Hop)
	return err == nil && len(spoken) > 0 && Direct(s.host.Network().ConnsToPeer(p)) != nil
}

// Direct returns the connection that leads through no relay, nil if there is none.
func Direct(conns []network.Conn) network.Conn {
	for _, c := range conns {
		if !Relayed(c.RemoteMultiaddr()) {
			return c
		}
	}
	return nil
}

func (s *Service) relayAddrs() []multiaddr.Multiaddr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.relays
}

// relaysOf returns whose relays addresses lead through.
func relaysOf(addrs []multiaddr.Multiaddr) map[peer.ID]bool {
	relays := make(map[peer.ID]bool)
	for _, a := range addrs {
		if text, err := a.ValueForProtocol(multiaddr.P_P2P); err == nil {
			if id, err := peer.Decode(text); err == nil {
				relays[id] = true
			}
		}
	}
	return relays
}
