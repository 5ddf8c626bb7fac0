package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// errNames says why an address with a DNS name is refused: resolving it would send
// the federation's addresses to a resolver outside it.
var errNames = errors.New("names are not resolved: give the IP address")

// parseAddr reads a TCP multiaddr with an IP address.
func parseAddr(text string) (multiaddr.Multiaddr, error) {
	addr, err := multiaddr.NewMultiaddr(text)
	if err != nil {
		return nil, fmt.Errorf("%w (want something like /ip4/127.0.0.1/tcp/7531)", err)
	}
	protocols := addr.Protocols()
	switch protocols[0].Code {
	case multiaddr.P_DNS, multiaddr.P_DNS4, multiaddr.P_DNS6, multiaddr.P_DNSADDR:
		return nil, errNames
	case multiaddr.P_IP4, multiaddr.P_IP6:
	default:
		return nil, errors.New("want /ip4/… or /ip6/…")
	}
	if len(protocols) != 2 || protocols[1].Code != multiaddr.P_TCP {
		return nil, errors.New("want an IP address and a TCP port, as in /ip4/127.0.0.1/tcp/7531")
	}
	return addr, nil
}

// parsePeer reads the address of a peer, as Network.Addrs of that peer prints it.
func parsePeer(text string) (peer.AddrInfo, error) {
	whole, err := multiaddr.NewMultiaddr(text)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("%w (want something like /ip4/192.0.2.1/tcp/7531/p2p/12D3Koo…)", err)
	}
	info, err := peer.AddrInfoFromP2pAddr(whole)
	if err != nil || len(info.Addrs) != 1 {
		return peer.AddrInfo{}, errors.New("want an address that ends in /p2p/ID; `gridnode peers` of that node prints it")
	}
	if _, err := parseAddr(info.Addrs[0].String()); err != nil {
		return peer.AddrInfo{}, err
	}
	return *info, nil
}

func text(addrs []multiaddr.Multiaddr) []string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// listenCause shortens libp2p's report of a failed listen to what the user can act on.
func listenCause(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errors.New("the port is in use: stop the other program or choose another port")
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// noNames is the resolver of a node that resolves nothing.
type noNames struct{}

func (noNames) ResolveDNSAddr(context.Context, peer.ID, multiaddr.Multiaddr, int, int) ([]multiaddr.Multiaddr, error) {
	return nil, errNames
}

func (noNames) ResolveDNSComponent(context.Context, multiaddr.Multiaddr, int) ([]multiaddr.Multiaddr, error) {
	return nil, errNames
}

var _ network.MultiaddrDNSResolver = noNames{}
