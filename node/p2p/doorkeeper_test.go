package p2p

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"gridnode/node/reach"
)

// TestWhoAnAddressStandsFor: one customer is one address, and a relay none, whoever is behind it.
func TestWhoAnAddressStandsFor(t *testing.T) {
	const relay = "/p2p/12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp/p2p-circuit"
	for addr, want := range map[string]string{
		"/ip4/192.0.2.7/tcp/1":                    "192.0.2.7",
		"/ip4/192.0.2.7/udp/2/quic-v1":            "192.0.2.7",
		"/ip6/::ffff:192.0.2.7/tcp/1":             "192.0.2.7",
		"/ip6/2001:db8:1:2:3:4:5:6/tcp/1":         "2001:db8:1:2::/64",
		"/ip6/2001:db8:1:2:ffff:4:5:6/tcp/1":      "2001:db8:1:2::/64",
		"/ip6/2001:db8:1:3:3:4:5:6/tcp/1":         "2001:db8:1:3::/64",
		"/ip4/192.0.2.7/tcp/1" + relay:            "",
		"/ip6/2001:db8:1:2:3:4:5:6/tcp/1" + relay: "",
		"/dns4/example.org/tcp/1":                 "",
	} {
		if got := addressOf(multiaddr.StringCast(addr)); got != want {
			t.Errorf("%s stands for %q, want %q", addr, got, want)
		}
	}
}

// caller returns a host with the key of a seed, which takes part in nothing.
func caller(t *testing.T, memory *Memory, seed uint64) host.Host {
	t.Helper()
	n := newNetwork(Config{Key: key(seed), Memory: memory, Profile: ProfileFleet})
	_, cfg := config(t, seed, memory)
	listen, _, err := cfg.check()
	if err == nil {
		n.reach, err = reach.New(cfg.Reach, listen)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.newHost(&doorkeeper{n: n}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.cancel(); h.Close() })
	return h
}

// TestBannedAddressIsRefused: nobody connects from it before the ban is over or lifted.
func TestBannedAddressIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		n, cfg := config(t, 0, memory)
		cfg.Profile = ProfileNode
		n = start(t, n, cfg)
		defer n.Close()
		try := func(seed uint64) error {
			h := caller(t, memory, seed)
			defer h.Close()
			return h.Connect(t.Context(), peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Addrs()})
		}
		if err := try(1); err != nil {
			t.Fatal(err)
		}
		ban := n.Warden.bans.Address(time.Now(), "127.0.0.1", "test")
		if try(2) == nil {
			t.Error("a peer of a banned address connects")
		}
		time.Sleep(time.Until(ban.Until))
		if err := try(3); err != nil {
			t.Errorf("after the ban: %v", err)
		}
		n.Warden.bans.Address(time.Now(), "127.0.0.1", "test")
		if !n.Warden.Unban("127.0.0.1") || try(4) != nil {
			t.Error("a ban that was lifted keeps peers out")
		}
	})
}

// TestConnectionsOfAPeerAreBounded: one key, used by many hosts, has few of them.
func TestConnectionsOfAPeerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 1)
		defer closeAll(nodes)
		n := nodes[0]
		var id peer.ID
		for range connsMax + 3 {
			h := caller(t, n.cfg.Memory, 7)
			defer h.Close()
			id = h.ID()
			_ = h.Connect(t.Context(), peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Addrs()})
			time.Sleep(2 * time.Second) // it is not the allowance of new ones that keeps them out
		}
		if got := len(n.host.Network().ConnsToPeer(id)); got != connsMax || n.host.Network().Connectedness(id) != network.Connected {
			t.Errorf("the peer has %d connections, want %d", got, connsMax)
		}
	})
}
