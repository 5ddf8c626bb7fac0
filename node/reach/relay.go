package reach

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/multiformats/go-multiaddr"
)

// server is this node as a relay.
type server struct {
	relay  *relay.Relay
	host   *relayHost
	cancel context.CancelFunc
}

// serve makes this node a relay, if its owner offers that.
func (s *Service) serve() {
	s.mu.Lock()
	busy := s.serving != nil
	s.mu.Unlock()
	if s.cfg.Relay != RelayOffer || busy {
		return
	}
	h := &relayHost{Host: s.host, pace: pace{rate: s.cfg.Rate}}
	r, err := relay.New(h, relay.WithACL(&members{s.env.Member, h}), relay.WithResources(relay.Resources{
		// Members are trusted with more than the two minutes that strangers would get: what
		// bounds them is the rate, and the number of connections.
		ReservationTTL: reservationLife, MaxReservations: reservationsMax, MaxCircuits: circuitsPeerMax, BufferSize: relayBuffer,
		MaxReservationsPerIP: reservationsMax, MaxReservationsPerASN: reservationsMax, MaxReservationsPerPeer: 1,
	}))
	if err != nil {
		s.env.Logger.Error("cannot be a relay", "error", err)
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.serving = &server{r, h, cancel}
	s.mu.Unlock()
	s.wg.Go(func() { s.keepOffering(ctx) })
	s.env.Logger.Info("this node is a relay for members that nobody can connect to")
}

func (s *Service) stopServing() {
	s.mu.Lock()
	serving := s.serving
	s.serving = nil
	s.mu.Unlock()
	if serving != nil {
		serving.cancel()
		_ = serving.relay.Close()
	}
}

// keepOffering renews the record by which others find this relay.
func (s *Service) keepOffering(ctx context.Context) {
	for {
		wait := offerAgain
		if s.env.Offer(ctx) {
			wait = offerEvery
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// members lets a relay serve members only.
type members struct {
	member func(peer.ID) bool
	host   *relayHost
}

// AllowReserve implements relay.ACLFilter.
func (m *members) AllowReserve(p peer.ID, _ multiaddr.Multiaddr) bool { return m.member(p) }

// AllowConnect implements relay.ACLFilter.
func (m *members) AllowConnect(from peer.ID, _ multiaddr.Multiaddr, to peer.ID) bool {
	return m.host.circuits.Load() < circuitsMax && m.member(from) && m.member(to)
}

// relayHost is the host that a relay sees: it counts the connections relayed, and reads
// their bytes no faster than the owner allows.
type relayHost struct {
	host.Host
	pace     pace
	circuits atomic.Int32
}

// SetStreamHandler implements host.Host.
func (h *relayHost) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s network.Stream) { serve(&relayStream{Stream: s, pace: &h.pace}) })
}

var errCircuits = errors.New("this relay carries as many connections as it may")

// NewStream implements host.Host: it opens the second half of a relayed connection.
func (h *relayHost) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if len(ids) != 1 || ids[0] != proto.ProtoIDv2Stop {
		return h.Host.NewStream(ctx, p, ids...)
	}
	if h.circuits.Add(1) > circuitsMax {
		h.circuits.Add(-1)
		return nil, errCircuits
	}
	s, err := h.Host.NewStream(ctx, p, ids...)
	if err != nil {
		h.circuits.Add(-1)
		return nil, err
	}
	return &relayStream{Stream: s, pace: &h.pace, ended: sync.OnceFunc(func() { h.circuits.Add(-1) })}, nil
}

// relayStream is one half of a relayed connection.
type relayStream struct {
	network.Stream
	pace  *pace
	ended func() // nil: the other half is counted
}

// Read implements network.Stream.
func (s *relayStream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	time.Sleep(s.pace.next(time.Now(), n))
	return n, err
}

// Close implements network.Stream.
func (s *relayStream) Close() error {
	if s.ended != nil {
		s.ended()
	}
	return s.Stream.Close()
}

// Reset implements network.Stream.
func (s *relayStream) Reset() error {
	if s.ended != nil {
		s.ended()
	}
	return s.Stream.Reset()
}

// pace spreads bytes over time. Safe for concurrent use.
type pace struct {
	rate int64 // bytes a second; 0: no bound

	mu   sync.Mutex
	free time.Time // when all bytes before have had their time
}

// next returns how long to wait after reading bytes.
func (p *pace) next(now time.Time, bytes int) time.Duration {
	if p.rate <= 0 || bytes <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second)))
	return p.free.Sub(now)
}
