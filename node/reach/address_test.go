package reach

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

const (
	someone = "12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp"
	another = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
)

func texts(addrs []multiaddr.Multiaddr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return strings.Join(all, " ")
}

func TestAddresses(t *testing.T) {
	peers := func(text string) ([]multiaddr.Multiaddr, error) {
		info, err := Peer(text)
		if err == nil && info.ID.String() != someone {
			t.Errorf("%s: of %s", text, info.ID)
		}
		return info.Addrs, err
	}
	for _, tt := range []struct {
		read       func(string) ([]multiaddr.Multiaddr, error)
		text, want string // want: the addresses, or a part of the error behind a !
	}{
		{Listen, "/ip4/127.0.0.1/tcp/7531", "/ip4/127.0.0.1/tcp/7531"},
		{Listen, "/ip6/::/udp/0/quic-v1", "/ip6/::/udp/0/quic-v1"},
		{Listen, "192.0.2.1:7531", "/ip4/192.0.2.1/udp/7531/quic-v1 /ip4/192.0.2.1/tcp/7531"},
		{Listen, "[::]:0", "/ip6/::/udp/0/quic-v1 /ip6/::/tcp/0"},
		{Listen, "example.org:7531", "!a name is no address to listen on"},
		{Listen, "/dns4/example.org/tcp/1", "!a name is no address to listen on"},
		{Listen, "/ip4/127.0.0.1/udp/1", "!want ADDRESS:PORT"},
		{Listen, "/ip4/127.0.0.1/tcp/1/ws", "!want ADDRESS:PORT"},
		{Listen, "/ip4/127.0.0.1", "!want ADDRESS:PORT"},
		{Listen, "127.0.0.1", "!want ADDRESS:PORT"},
		{Listen, "127.0.0.1:99999", `!port "99999"`},
		{Listen, "/ip4/127.0.0.1/tcp/1/p2p/" + someone, "!want ADDRESS:PORT"},
		{Announce, "grid.example.org:7531", "/dns/grid.example.org/udp/7531/quic-v1 /dns/grid.example.org/tcp/7531"},
		{Announce, "/dns6/example.org/udp/1/quic-v1", "/dns6/example.org/udp/1/quic-v1"},
		{Announce, "192.0.2.1:0", `!port "0"`},
		{Announce, "/dnsaddr/example.org/tcp/1", "!want HOST:PORT"},
		{peers, "/ip4/192.0.2.1/tcp/1/p2p/" + someone, "/ip4/192.0.2.1/tcp/1"},
		{peers, "example.org:1/p2p/" + someone, "/dns/example.org/udp/1/quic-v1 /dns/example.org/tcp/1"},
		{peers, "/ip4/192.0.2.1/tcp/1/p2p/" + another + "/p2p-circuit/p2p/" + someone, "/ip4/192.0.2.1/tcp/1/p2p/" + another + "/p2p-circuit"},
		{peers, "/ip4/192.0.2.1/tcp/1", "!which node is expected"},
		{peers, "/ip4/192.0.2.1/tcp/1/p2p/12D3", "!want /ip4/ADDRESS/tcp/PORT/p2p/ID"},
		{peers, "/p2p/" + someone, "!want /ip4/ADDRESS/tcp/PORT/p2p/ID"},
		{peers, "/p2p/" + another + "/p2p-circuit/p2p/" + someone, "!its relay"},
		{peers, "/ip4/192.0.2.1/tcp/1/p2p/" + another + "/p2p-circuit/p2p/" + another + "/p2p-circuit/p2p/" + someone, "!through two relays"},
	} {
		addrs, err := tt.read(tt.text)
		if part, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, %v, want an error about %q", tt.text, addrs, err, part)
			}
		} else if err != nil || texts(addrs) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.text, texts(addrs), err, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	ctx := context.Background()
	got, err := Names{}.ResolveDNSComponent(ctx, multiaddr.StringCast("/dns4/localhost/udp/7/quic-v1"), 100)
	if err != nil || texts(got) != "/ip4/127.0.0.1/udp/7/quic-v1" {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = Names{}.ResolveDNSComponent(ctx, multiaddr.StringCast("/dns/localhost/tcp/7"), 100)
	if err != nil || !slices.ContainsFunc(got, func(a multiaddr.Multiaddr) bool { return a.String() == "/ip4/127.0.0.1/tcp/7" }) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := (Names{}).ResolveDNSAddr(ctx, peer.ID(""), multiaddr.StringCast("/dnsaddr/localhost"), 1, 1); err == nil {
		t.Errorf("a list of addresses was fetched: %v", got)
	}
}
