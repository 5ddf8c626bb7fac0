package reach

import (
	"context"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// TryAnnounced has members try the announced addresses: the owner is believed, and told if
// that was wrong. A member tries one address in two minutes, so that not all are tried at
// once where members are few; what was found before then stays.
func (s *Service) TryAnnounced(ctx context.Context) {
	if !s.active {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeMax)
	defer cancel()
	var wg sync.WaitGroup
	for _, a := range s.announced {
		wg.Go(func() {
			refused, tried := s.try(ctx, a)
			if !tried {
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused[a.String()] = refused
		})
	}
	wg.Wait()
}

// try has a member dial an address: AutoNAT takes no names.
func (s *Service) try(ctx context.Context, a multiaddr.Multiaddr) (refused, tried bool) {
	resolved, err := Names{}.ResolveDNSComponent(ctx, a, 1)
	if err != nil || len(resolved) == 0 || !manet.IsPublicAddr(resolved[0]) {
		return false, false
	}
	result, err := s.prober.GetReachability(ctx, []autonatv2.Request{{Addr: resolved[0], SendDialData: true}})
	if err != nil || result.AllAddrsRefused || result.Reachability == network.ReachabilityUnknown {
		return false, false
	}
	return result.Reachability == network.ReachabilityPrivate, true
}
