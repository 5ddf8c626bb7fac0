package reach

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// Forms of addresses, for people.
const (
	listenForms   = "want ADDRESS:PORT, which is TCP and QUIC, or /ip4/ADDRESS/tcp/PORT, or /ip4/ADDRESS/udp/PORT/quic-v1"
	announceForms = "want HOST:PORT, which is TCP and QUIC, or /dns4/NAME/tcp/PORT, or /ip4/ADDRESS/udp/PORT/quic-v1, or the like"
	peerForms     = "want /ip4/ADDRESS/tcp/PORT/p2p/ID, /dns4/NAME/udp/PORT/quic-v1/p2p/ID, HOST:PORT/p2p/ID or the like"
)

// Listen reads an address to listen on: an IP address and a port of TCP or QUIC. IP:PORT
// stands for both.
func Listen(text string) ([]multiaddr.Multiaddr, error) { return read(text, false, listenForms) }

// Announce reads an address at which others reach this node: as Listen, or with a name.
// HOST:PORT stands for TCP and QUIC.
func Announce(text string) ([]multiaddr.Multiaddr, error) { return read(text, true, announceForms) }

// Peer reads the address of a peer: as Announce, and behind it /p2p/ID. It may lead through
// a relay: ADDRESS/p2p/RELAY/p2p-circuit/p2p/ID.
func Peer(text string) (peer.AddrInfo, error) {
	fail := func(err error) (peer.AddrInfo, error) {
		return peer.AddrInfo{}, fmt.Errorf("%w: %s", err, peerForms)
	}
	i := strings.LastIndex(text, "/p2p/")
	if i < 0 {
		return fail(errors.New("it does not say which node is expected there"))
	}
	id, err := peer.Decode(text[i+len("/p2p/"):])
	if err != nil {
		return fail(err)
	}
	before, through := strings.CutSuffix(text[:i], behind)
	if !through {
		addrs, err := read(before, true, peerForms)
		return peer.AddrInfo{ID: id, Addrs: addrs}, err
	}
	relay, err := Peer(before)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("its relay: %w", err)
	}
	info := peer.AddrInfo{ID: id}
	for _, a := range relay.Addrs {
		if Relayed(a) {
			return fail(errors.New("it leads through two relays"))
		}
		info.Addrs = append(info.Addrs, a.Encapsulate(multiaddr.StringCast("/p2p/"+relay.ID.String()+behind)))
	}
	return info, nil
}

// behind stands between a relay and whom it leads to.
const behind = "/p2p-circuit"

// read reads an address without /p2p/ID.
func read(text string, names bool, forms string) ([]multiaddr.Multiaddr, error) {
	if !strings.HasPrefix(text, "/") {
		return short(text, names, forms)
	}
	a, err := multiaddr.NewMultiaddr(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, forms)
	}
	switch form, named := formOf(a); {
	case named && !names:
		return nil, errors.New("a name is no address to listen on: " + forms)
	case form != formTCP && form != formQUIC:
		return nil, errors.New(forms)
	}
	return []multiaddr.Multiaddr{a}, nil
}

// short reads HOST:PORT.
func short(text string, names bool, forms string) ([]multiaddr.Multiaddr, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, errors.New(forms)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || names && n == 0 {
		return nil, fmt.Errorf("port %q: %s", port, forms)
	}
	first := ""
	if ip, err := netip.ParseAddr(host); err != nil {
		if !names {
			return nil, errors.New("a name is no address to listen on: " + forms)
		}
		first = "/dns/" + host
	} else if ip.Is4() {
		first = "/ip4/" + host
	} else {
		first = "/ip6/" + host
	}
	var addrs []multiaddr.Multiaddr
	for _, rest := range []string{"/udp/" + port + "/quic-v1", "/tcp/" + port} {
		a, err := multiaddr.NewMultiaddr(first + rest)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, forms)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// Forms that an address may have.
const (
	formOther = iota
	formTCP
	formQUIC
)

// formOf returns the form of an address without /p2p/ID, and whether it has a name.
func formOf(a multiaddr.Multiaddr) (form int, named bool) {
	p := a.Protocols()
	if len(p) < 2 {
		return formOther, false
	}
	switch p[0].Code {
	case multiaddr.P_IP4, multiaddr.P_IP6:
	case multiaddr.P_DNS, multiaddr.P_DNS4, multiaddr.P_DNS6:
		named = true
	default:
		return formOther, false
	}
	switch {
	case len(p) == 2 && p[1].Code == multiaddr.P_TCP:
		return formTCP, named
	case len(p) == 3 && p[1].Code == multiaddr.P_UDP && p[2].Code == multiaddr.P_QUIC_V1:
		return formQUIC, named
	}
	return formOther, named
}

// TCP reports whether an address is an IP address and a port of TCP.
func TCP(a multiaddr.Multiaddr) bool {
	form, named := formOf(a)
	return form == formTCP && !named
}

// QUIC reports whether one of the addresses is of QUIC.
func QUIC(addrs []multiaddr.Multiaddr) bool {
	for _, a := range addrs {
		if form, _ := formOf(a); form == formQUIC {
			return true
		}
	}
	return false
}

// Relayed reports whether an address leads through a relay.
func Relayed(a multiaddr.Multiaddr) bool {
	_, err := a.ValueForProtocol(multiaddr.P_CIRCUIT)
	return err == nil
}

// Kind is how two nodes are connected.
type Kind string

const (
	KindQUIC    Kind = "quic"
	KindTCP     Kind = "tcp"
	KindRelayed Kind = "relayed"
)

// KindOf returns the kind of a connection to an address.
func KindOf(a multiaddr.Multiaddr) Kind {
	if Relayed(a) {
		return KindRelayed
	}
	if _, err := a.ValueForProtocol(multiaddr.P_UDP); err == nil {
		return KindQUIC
	}
	return KindTCP
}
