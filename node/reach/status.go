package reach

import (
	"cmp"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Status is how a node is reached.
type Status struct {
	Active       bool // the node finds out; else it listens on loopback only, or its owner does not want it to
	Reachability Reachability
	Relay        Relay
	Announced    []multiaddr.Multiaddr
	Refused      []multiaddr.Multiaddr // of those announced, at which a member was not able to connect
	Reachable    []multiaddr.Multiaddr // public addresses at which others were able to connect
	Unreachable  []multiaddr.Multiaddr
	Unchecked    []multiaddr.Multiaddr
	Observed     []multiaddr.Multiaddr // how peers see this node; one of each IP address
	NAT          bool                  // not all of them are this node's own
	Relays       []peer.ID             // that have a place for this node
	Serving      bool                  // this node is a relay
	Circuits     int                   // connections relayed for others now
	Punched      int                   // holes punched so far
	InVain       int                   // attempts that failed
}

// Status returns what was found out.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Active: s.active, Reachability: cmp.Or(s.reachability, Unknown), Relay: s.cfg.Relay, Announced: s.announced, Serving: s.serving != nil,
		Reachable: s.checked.Reachable, Unreachable: s.checked.Unreachable, Unchecked: s.checked.Unknown,
	}
	if st.Serving {
		st.Circuits = int(s.serving.host.circuits.Load())
	}
	for _, a := range s.announced {
		if s.refused[a.String()] {
			st.Refused = append(st.Refused, a)
		}
	}
	ips := make(map[string]multiaddr.Multiaddr)
	for _, v := range s.seen {
		st.NAT = st.NAT || v.nat
		if ip, err := manet.ToIP(v.observed); err == nil {
			ips[ip.String()] = v.observed
		}
	}
	for _, a := range ips {
		st.Observed = append(st.Observed, a)
	}
	slices.SortFunc(st.Observed, multiaddr.Multiaddr.Compare)
	for p := range relaysOf(s.relays) {
		st.Relays = append(st.Relays, p)
	}
	slices.Sort(st.Relays)
	s.punches.mu.Lock()
	defer s.punches.mu.Unlock()
	st.Punched, st.InVain = s.punches.made, s.punches.failed
	return st
}

// Order sorts addresses: those first at which most others can connect.
func Order(addrs []multiaddr.Multiaddr) {
	rank := func(a multiaddr.Multiaddr) int {
		_, named := formOf(a)
		switch {
		case Relayed(a):
			return 2
		case named:
			return 0
		case manet.IsPublicAddr(a):
			return 1
		case manet.IsIPLoopback(a):
			return 4
		}
		return 3
	}
	slices.SortStableFunc(addrs, func(a, b multiaddr.Multiaddr) int { return rank(a) - rank(b) })
}
