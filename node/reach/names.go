package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// Names resolves the names in addresses by the system's resolver, which knows /etc/hosts.
// A name is asked for when somebody is dialled there, and not before.
type Names struct{}

var _ network.MultiaddrDNSResolver = Names{}

// errList says why lists of addresses are not fetched: an address that a peer sends would
// make this node ask for many names.
var errList = errors.New("/dnsaddr is not resolved: give a name with /dns, /dns4 or /dns6")

// ResolveDNSAddr implements network.MultiaddrDNSResolver.
func (Names) ResolveDNSAddr(context.Context, peer.ID, multiaddr.Multiaddr, int, int) ([]multiaddr.Multiaddr, error) {
	return nil, errList
}

// ResolveDNSComponent implements network.MultiaddrDNSResolver.
func (Names) ResolveDNSComponent(ctx context.Context, a multiaddr.Multiaddr, most int) ([]multiaddr.Multiaddr, error) {
	first, rest := multiaddr.SplitFirst(a)
	if first == nil {
		return nil, errors.New("an empty address")
	}
	network := map[int]string{multiaddr.P_DNS: "ip", multiaddr.P_DNS4: "ip4", multiaddr.P_DNS6: "ip6"}[first.Protocol().Code]
	if network == "" {
		return []multiaddr.Multiaddr{a}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, network, first.Value())
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", first.Value(), err)
	}
	var addrs []multiaddr.Multiaddr
	for _, ip := range ips[:min(len(ips), most, namesMax)] {
		ip = ip.Unmap().WithZone("")
		addrs = append(addrs, multiaddr.StringCast(prefix(ip)+ip.String()).Encapsulate(rest))
	}
	return addrs, nil
}

func prefix(ip netip.Addr) string {
	if ip.Is4() {
		return "/ip4/"
	}
	return "/ip6/"
}
