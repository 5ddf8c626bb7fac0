package reach

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	circuitv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Reachability says who can connect to this node.
type Reachability string

const (
	Unknown Reachability = "unknown" // nobody has said yet
	Public  Reachability = "public"  // everybody
	Private Reachability = "private" // nobody from outside: there is a NAT or a firewall
	Local   Reachability = "local"   // those in its network; no NAT is in sight
)

// Env is what the service needs of the network it is part of.
type Env struct {
	Member  func(peer.ID) bool                    // a connected peer is of this federation
	Find    func(context.Context) []peer.AddrInfo // relays that provider records name
	Offer   func(context.Context) bool            // puts such a record of this node into the DHT
	Routing protocol.ID                           // of the DHT
	Logger  *slog.Logger
}

// Service finds out how this node is reached, and does something about it. Safe for
// concurrent use.
type Service struct {
	cfg       Config
	announced []multiaddr.Multiaddr
	active    bool // this node listens on more than loopback, and its owner wants to know
	upgrader  transport.Upgrader
	prober    *autonatv2.AutoNAT
	punches   punches

	host   host.Host
	env    Env
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ended  chan struct{}        // closed when watch has ended
	emit   event.Emitter        // of the reachability, for libp2p
	auto   *autorelay.AutoRelay // nil: relays were not needed yet
	again  chan struct{}        // holds a token when relays may be looked for at once

	mu           sync.Mutex
	reachability Reachability
	seen         map[string]sight // how connected peers see this node, by peer.ID
	checked      event.EvtHostReachableAddrsChanged
	refused      map[string]bool       // announced addresses that were tried: whether nobody was able to connect
	relays       []multiaddr.Multiaddr // addresses of this node behind relays
	serving      *server               // nil: this node is no relay
}

// sight is this node as a peer sees it.
type sight struct {
	observed multiaddr.Multiaddr
	nat      bool // that is not an address of this node
	came     bool // it is one, a public one, and the peer has dialled it of its own accord
}

// Start begins to find out. h is the host behind the gate.
func (s *Service) Start(h host.Host, env Env) error {
	s.host, s.env, s.reachability = h, env, Unknown
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.again = make(chan struct{}, 1)
	if !s.active {
		return nil
	}
	s.punches.proven = s.afterPunch
	if s.cfg.Relay != RelayOff {
		if err := circuitv2.AddTransport(h, s.upgrader); err != nil {
			return fmt.Errorf("start using relays: %w", err)
		}
	}
	var err error
	if s.emit, err = h.EventBus().Emitter(new(event.EvtLocalReachabilityChanged), eventbus.Stateful); err != nil {
		return fmt.Errorf("tell of reachability: %w", err)
	}
	events, err := h.EventBus().Subscribe([]any{
		new(event.EvtHostReachableAddrsChanged), new(event.EvtPeerIdentificationCompleted), new(event.EvtAutoRelayAddrsUpdated),
	}, eventbus.Name("reach"), eventbus.BufSize(64))
	if err != nil {
		return fmt.Errorf("watch reachability: %w", err)
	}
	s.ended = make(chan struct{})
	go s.watch(events)
	return nil
}

// Strangers are the protocols that nodes that are no members may speak: whoever finds out
// for this node whether it can be dialled does so under a name that nobody knows, and what
// it says is a number that it was given.
func (s *Service) Strangers() []string {
	if !s.active {
		return nil
	}
	return []string{autonatv2.DialBackProtocol}
}

// Close ends what Start began. The host is closed after it.
func (s *Service) Close() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	if s.ended != nil {
		<-s.ended
	}
	if s.auto != nil {
		_ = s.auto.Close()
	}
	s.stopServing()
	s.wg.Wait()
	if s.emit != nil {
		_ = s.emit.Close()
	}
}

// watch takes notice of what happens, and acts on it when it has settled.
func (s *Service) watch(events event.Subscription) {
	defer close(s.ended)
	defer events.Close()
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	for {
		select {
		case e, ok := <-events.Out():
			if !ok {
				return
			}
			s.note(e)
			settled.Reset(settleTime)
			if s.judge() == Public {
				s.act() // good news need not settle
			}
		case <-settled.C:
			s.act()
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Service) note(e any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case event.EvtHostReachableAddrsChanged:
		s.checked = e
	case event.EvtPeerIdentificationCompleted:
		s.sighted(&e)
	case event.EvtAutoRelayAddrsUpdated:
		if len(e.RelayAddrs) < len(s.relays) {
			ring(s.again)
		}
		s.relays = e.RelayAddrs
	}
}

// sighted notes how a peer sees this node. The lock is held.
func (s *Service) sighted(e *event.EvtPeerIdentificationCompleted) {
	local := e.Conn.LocalMultiaddr()
	if e.ObservedAddr == nil || Relayed(e.Conn.RemoteMultiaddr()) || Relayed(e.ObservedAddr) || manet.IsIPLoopback(local) {
		return
	}
	at, err := manet.ToIP(e.ObservedAddr)
	if err != nil {
		return
	}
	for p := range s.seen { // of those that are gone nothing counts
		if s.host.Network().Connectedness(peer.ID(p)) != network.Connected {
			delete(s.seen, p)
		}
	}
	own := s.own(at.String(), local)
	came := own && manet.IsPublicAddr(e.ObservedAddr) && e.Conn.Stat().Direction == network.DirInbound && !s.behindRelay(e.Peer)
	s.seen[string(e.Peer)] = sight{e.ObservedAddr, !own, came || s.seen[string(e.Peer)].came}
}

// own reports whether an IP address is one of this machine's.
func (s *Service) own(ip string, local multiaddr.Multiaddr) bool {
	if a, err := manet.ToIP(local); err == nil && a.String() == ip {
		return true
	}
	addrs, err := s.host.Network().InterfaceListenAddresses()
	if err != nil {
		return true // nothing is known: no NAT is in sight
	}
	for _, a := range addrs {
		if at, err := manet.ToIP(a); err == nil && at.String() == ip {
			return true
		}
	}
	return false
}

// behindRelay reports whether a peer is connected through a relay, too: then a direct
// connection may lead through a hole that was punched into a firewall.
func (s *Service) behindRelay(p peer.ID) bool {
	for _, c := range s.host.Network().ConnsToPeer(p) {
		if Relayed(c.RemoteMultiaddr()) {
			return true
		}
	}
	return false
}

// judge draws a conclusion from what is known.
func (s *Service) judge() Reachability {
	s.mu.Lock()
	defer s.mu.Unlock()
	nat, came := false, false
	for _, v := range s.seen {
		nat, came = nat || v.nat, came || v.came
	}
	switch {
	case len(s.announced) > 0 || len(s.checked.Reachable) > 0:
		return Public
	case nat || len(s.checked.Unreachable) > 0 && len(s.checked.Unknown) == 0:
		return Private
	case came: // it takes AutoNAT several members to say so
		return Public
	case len(s.seen) == 0 || len(s.checked.Unknown) > 0:
		return Unknown
	}
	return Local
}

// act does what the reachability asks for, if it is a new one.
func (s *Service) act() {
	reachability := s.judge()
	s.mu.Lock()
	before := s.reachability
	if reachability == Unknown {
		reachability = before // what was found out is not forgotten with the last peer
	}
	s.reachability = reachability
	s.mu.Unlock()
	if reachability == before {
		return
	}
	s.env.Logger.Info("who can connect to this node", "reachability", reachability)
	switch reachability {
	case Private:
		s.stopServing()
		s.tell(network.ReachabilityPrivate)
		s.useRelays()
	case Public:
		s.tell(network.ReachabilityPublic)
		s.serve()
	case Local:
		s.stopServing()
		s.tell(network.ReachabilityPublic)
	}
}

func (s *Service) tell(r network.Reachability) {
	_ = s.emit.Emit(event.EvtLocalReachabilityChanged{Reachability: r})
}

// ring puts a token into c unless there is one.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
