package p2p

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// greeting is the protocol in which two nodes show each other that they are members:
// a frame each, the dialled one's second. Until then a peer may speak nothing else, but
// what Config.Strangers names.
const greeting = protocol.ID("/gridnode/greeting/1")

// Membership is how a node tells members from strangers.
type Membership struct {
	Proof func() []byte // of this node, shown to every peer

	// Admit returns nil for a member, and remembers it before it returns: messages may
	// follow at once. It is called concurrently, once per connection.
	Admit func(from grid.SiteID, proof []byte) error

	Strangers []string // protocols of Handle that everybody may speak
}

// Barred is returned by Admit for a peer that is to be told why it is not admitted.
type Barred struct {
	Err   error
	Words []byte // shown to it in place of this node's proof
}

// Error implements error.
func (b *Barred) Error() string { return b.Err.Error() }

// Unwrap returns Err.
func (b *Barred) Unwrap() error { return b.Err }

// ErrStranger is wrapped by the errors of a peer that is not admitted, or that does not
// admit this node.
var ErrStranger = errors.New("the peer and this node are not members of one federation")

// gate is what stands between the network and strangers. It is a host whose streams, in
// both directions, are those of admitted peers only.
type gate struct {
	host.Host
	cfg   *Membership
	stats *stats
	log   func(string, ...any)

	free map[protocol.ID]bool // that everybody may speak

	mu     sync.Mutex
	peers  map[peer.ID]*standing // of connected peers
	banned map[peer.ID]time.Time // until when nothing is made of a connection

	greetings sync.WaitGroup
	closed    bool // none is begun any more
}

// standing is what a connected peer has shown.
type standing struct {
	greeting bool          // somebody is greeting it
	admitted bool          // it has shown that it is a member
	greeted  int           // proofs of it that were read
	changed  chan struct{} // closed when admitted, or when a greeting has failed
	since    time.Time     // of the first connection
	until    time.Time     // it is not greeted before this, as it was a moment ago
	failure  error         // of the last greeting
}

func newGate(h host.Host, cfg *Membership, free []string, s *stats, log func(string, ...any)) *gate {
	g := &gate{Host: h, cfg: cfg, stats: s, log: log, peers: make(map[peer.ID]*standing), banned: make(map[peer.ID]time.Time)}
	// Identification and pings are libp2p's own, and come before anything else.
	g.free = map[protocol.ID]bool{greeting: true, identify.ID: true, identify.IDPush: true, ping.ID: true}
	for _, id := range append(free, cfg.Strangers...) {
		g.free[protocol.ID(id)] = true
	}
	h.SetStreamHandler(greeting, g.greeted)
	h.Network().SetStreamHandler(g.receive)
	h.Network().Notify(&network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) { g.connected(c) },
		DisconnectedF: func(net network.Network, c network.Conn) {
			if net.Connectedness(c.RemotePeer()) != network.Connected {
				g.forget(c.RemotePeer())
			}
		},
	})
	return g
}

// connected gives a peer some time to show that it is a member, on this connection: one that it
// makes later has a time of its own.
func (g *gate) connected(c network.Conn) {
	p := c.RemotePeer()
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.standing(p)
	if st == nil || st.admitted {
		return
	}
	time.AfterFunc(greetTimeMax, func() {
		if !g.admitted(p) {
			_ = c.Close()
		}
	})
}

// standing returns a peer's, a new one if it has none; nil if there are too many peers.
func (g *gate) standing(p peer.ID) *standing {
	st := g.peers[p]
	if st == nil && len(g.peers) >= peersMax {
		g.forgetAbsent()
	}
	if st == nil && len(g.peers) < peersMax {
		st = &standing{changed: make(chan struct{}), since: time.Now()}
		g.peers[p] = st
	}
	return st
}

// forgetAbsent drops peers that could not be connected and are not being greeted.
func (g *gate) forgetAbsent() {
	for p, st := range g.peers {
		if !st.greeting && g.Host.Network().Connectedness(p) != network.Connected {
			delete(g.peers, p)
		}
	}
}

func (g *gate) forget(p peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if st := g.peers[p]; st != nil {
		delete(g.peers, p)
		st.settle()
	}
}

// settle wakes whoever waits for a change.
func (s *standing) settle() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (g *gate) admitted(p peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.peers[p]
	return st != nil && st.admitted
}

// negotiateMax bounds the wait for a stream to say its protocol.
const negotiateMax = 10 * time.Second

// receive is given every stream that a peer opens, in place of the host itself, so that
// what libp2p serves of its own accord is guarded like everything else: streams of peers
// that do not show in time that they are members are reset.
func (g *gate) receive(s network.Stream) {
	_ = s.SetDeadline(time.Now().Add(negotiateMax))
	id, serve, err := g.Host.Mux().Negotiate(s)
	if err == nil {
		_ = s.SetDeadline(time.Time{})
		err = s.SetProtocol(id)
	}
	if err != nil {
		_ = s.ResetWithError(network.StreamProtocolNegotiationFailed)
		return
	}
	if !g.free[id] && !g.await(s.Conn()) {
		g.stats.strangers.Add(1)
		_ = s.Reset()
		return
	}
	_ = serve(id, s)
}

// IDService is looked for by parts of libp2p that wait until a peer was identified.
func (g *gate) IDService() identify.IDService {
	h, ok := g.Host.(interface{ IDService() identify.IDService })
	if !ok {
		panic(fmt.Sprintf("p2p: a host without identification: %T", g.Host))
	}
	return h.IDService()
}

// await waits until a peer is admitted: its greeting may come after its first stream.
// Nothing of the stream is read meanwhile.
func (g *gate) await(c network.Conn) bool {
	p := c.RemotePeer()
	g.mu.Lock()
	if c.IsClosed() { // nobody would wake us: the peer may be forgotten already
		g.mu.Unlock()
		return false
	}
	st := g.standing(p)
	if st == nil || st.admitted {
		g.mu.Unlock()
		return st != nil
	}
	changed, left := st.changed, greetTimeMax-time.Since(st.since)
	g.mu.Unlock()
	t := time.NewTimer(max(left, 0))
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
	return g.admitted(p)
}

// NewStream implements host.Host: it greets the peer first, if that is to be done.
func (g *gate) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if err := g.meet(ctx, p); err != nil {
		return nil, err
	}
	return g.Host.NewStream(ctx, p, ids...)
}

// meet greets a peer that is not admitted yet, or waits for whoever does. The greeting goes on
// when who began it does not wait any more, as others may.
func (g *gate) meet(ctx context.Context, p peer.ID) error {
	g.mu.Lock()
	st := g.standing(p)
	switch {
	case st == nil || g.closed:
		g.mu.Unlock()
		return network.ErrNoConn
	case st.admitted:
		g.mu.Unlock()
		return nil
	case !st.greeting && time.Now().Before(st.until):
		g.mu.Unlock()
		return fmt.Errorf("%w: it was greeted a moment ago", ErrStranger)
	case !st.greeting:
		st.greeting = true
		g.greetings.Go(func() { g.begin(context.WithoutCancel(ctx), p, st) })
	}
	changed := st.changed
	g.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.peers[p]; st.admitted || now != nil && now.admitted {
		return nil
	}
	return cmp.Or(st.failure, fmt.Errorf("%w: the connection ended", ErrStranger))
}

// begin greets a peer and notes what has become of it.
func (g *gate) begin(ctx context.Context, p peer.ID, st *standing) {
	reached, err := g.greet(ctx, p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if st.greeting = false; st.admitted {
		return
	}
	if st.failure = err; reached {
		st.until = time.Now().Add(redialMin)
	}
	st.settle()
}

// close waits until nobody is greeted any more. The host is closed.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.greetings.Wait()
}

// greet shows a peer this node's proof and reads the peer's. It reports whether the peer was there
// to be shown anything.
func (g *gate) greet(ctx context.Context, p peer.ID) (reached bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeMax)
	defer cancel()
	s, err := g.Host.NewStream(ctx, p, greeting)
	if err != nil {
		return false, err
	}
	_ = s.SetDeadline(time.Now().Add(greetTimeMax))
	if err = wire.WriteFrame(s, g.cfg.Proof()); err == nil {
		err = g.read(s)
	}
	end(s, err)
	return true, err
}

// again shows the proof, which is a new one, to every admitted peer.
func (g *gate) again(ctx context.Context) {
	g.mu.Lock()
	var peers []peer.ID
	for p, st := range g.peers {
		if st.admitted {
			peers = append(peers, p)
		}
	}
	g.mu.Unlock()
	for _, p := range peers {
		if _, err := g.greet(ctx, p); err != nil {
			g.log("a peer does not take the new certificate", "peer", p, "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// greeted serves the stream of a peer that greets.
func (g *gate) greeted(s network.Stream) {
	_ = s.SetDeadline(time.Now().Add(greetTimeMax))
	err := g.read(s)
	var barred *Barred
	switch {
	case err == nil:
		err = wire.WriteFrame(s, g.cfg.Proof())
		end(s, err)
	case errors.As(err, &barred):
		end(s, wire.WriteFrame(s, barred.Words)) // the connection ends when its time to greet is over
	default:
		end(s, err)
	}
	if err != nil {
		g.log("a peer was not admitted", "peer", s.Conn().RemotePeer(), "addr", s.Conn().RemoteMultiaddr(), "error", err)
	}
}

// read admits the peer if the proof it shows is good.
func (g *gate) read(s network.Stream) error {
	p := s.Conn().RemotePeer()
	if !g.mayGreet(p) {
		return fmt.Errorf("%w: it has shown %d proofs on one connection", ErrStranger, greetingsMax)
	}
	proof, err := wire.ReadFrame(bufio.NewReaderSize(s, 4096))
	if err != nil {
		return fmt.Errorf("%w: no proof of membership: %w", ErrStranger, err)
	}
	if err := g.cfg.Admit(grid.SiteID(p.String()), proof); err != nil {
		g.stats.strangers.Add(1)
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if st := g.standing(p); st != nil && !st.admitted {
		st.admitted = true
		st.settle()
	}
	return nil
}

// mayGreet counts the proofs that a peer shows: each costs its verification.
func (g *gate) mayGreet(p peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.standing(p)
	if st == nil || st.greeted >= greetingsMax {
		return false
	}
	st.greeted++
	return true
}

// shut takes nothing more of a peer whose connections end soon.
func (g *gate) shut(p peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if st := g.peers[p]; st != nil {
		st.admitted = false
	}
}

// tell says words to a connected peer in place of a proof, and reports whether it has read
// them, as far as can be seen.
func (g *gate) tell(ctx context.Context, p peer.ID, words []byte) bool {
	if g.Host.Network().Connectedness(p) != network.Connected {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeMax)
	defer cancel()
	s, err := g.Host.NewStream(network.WithNoDial(ctx, "it is expelled"), p, greeting)
	if err != nil {
		return false
	}
	if err := wire.WriteFrame(s, words); err != nil {
		s.Reset()
		return false
	}
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	_, _ = io.ReadAll(io.LimitReader(s, 1)) // it resets the stream once it has read them
	s.Reset()
	return ctx.Err() == nil
}

// expel ends the connections of a peer, and takes none of it for span.
func (g *gate) expel(p peer.ID, span time.Duration) {
	g.mu.Lock()
	now := time.Now()
	for id, until := range g.banned {
		if now.After(until) {
			delete(g.banned, id)
		}
	}
	if len(g.banned) < peersMax {
		g.banned[p] = now.Add(span)
	}
	if st := g.peers[p]; st != nil {
		st.admitted = false
	}
	g.mu.Unlock()
	_ = g.Host.Network().ClosePeer(p)
}

func (g *gate) isBanned(p peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.banned[p])
}
