package reach

import (
	"fmt"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/fx"
)

// Relay is what a node does with relays.
type Relay uint8

const (
	RelayOff   Relay = iota // neither use nor offer: nobody who cannot be dialled is dialled
	RelayUse                // use those of others if this node needs them
	RelayOffer              // that, and be one for others if they can connect to this node
)

// ParseRelay reads off, use or offer.
func ParseRelay(text string) (Relay, error) {
	for r := RelayOff; r <= RelayOffer; r++ {
		if text == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q: want use, offer or off", text)
}

func (r Relay) String() string { return [...]string{"off", "use", "offer"}[r] }

// Config is what an owner says about ways to this node. With the zero value the node is
// known by the addresses that it listens on, and asks and helps nobody.
type Config struct {
	Announce []string // addresses told to others besides, as Announce reads them
	Probe    bool     // find out whether others can connect, by asking them
	Relay    Relay    // counts only with Probe
	Rate     int64    // most bytes a second relayed for others; 0: no bound
	PortMap  bool     // ask the router (UPnP, NAT-PMP) to let others in
}

// Check returns the announced addresses, or what is wrong with them.
func (c *Config) Check() ([]multiaddr.Multiaddr, error) {
	var all []multiaddr.Multiaddr
	for _, text := range c.Announce {
		addrs, err := Announce(text)
		if err != nil {
			return nil, fmt.Errorf("announced address %q: %w", text, err)
		}
		all = append(all, addrs...)
	}
	if len(all) > announcedMax {
		return nil, fmt.Errorf("%d announced addresses, at most %d", len(all), announcedMax)
	}
	return all, nil
}

// New returns the service of a node that listens on addrs, which Start starts.
func New(cfg Config, addrs []multiaddr.Multiaddr) (*Service, error) {
	announced, err := cfg.Check()
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, announced: announced, seen: make(map[string]sight), refused: make(map[string]bool)}
	for _, a := range addrs {
		s.active = s.active || cfg.Probe && !manet.IsIPLoopback(a)
	}
	return s, nil
}

// Options are for libp2p.New. They say nothing about transports.
func (s *Service) Options() []libp2p.Option {
	opts := []libp2p.Option{
		libp2p.MultiaddrResolver(Names{}),
		libp2p.DisableRelay(),            // Start has the gate do it
		libp2p.ForceReachabilityPublic(), // keeps AutoNAT of version 1 still
	}
	if len(s.announced) > 0 {
		opts = append(opts, libp2p.AddrsFactory(func(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
			return append(addrs, s.announced...)
		}))
	}
	if !s.active {
		return append(opts, libp2p.DisableIdentifyAddressDiscovery())
	}
	opts = append(opts, libp2p.EnableAutoNATv2(), libp2p.WithFxOption(fx.Populate(&s.upgrader, &s.prober)))
	if s.cfg.Relay != RelayOff {
		opts = append(opts, libp2p.EnableHolePunching(holepunch.WithTracer(&s.punches)))
	}
	if s.cfg.PortMap {
		opts = append(opts, libp2p.NATPortMap())
	}
	return opts
}
