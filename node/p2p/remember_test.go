package p2p

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// A node that joins nobody, and that others do not miss since they have each other,
// finds them at its next start by what it wrote down before the crash.
func TestRemembersPeersThatJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		first, cfg := config(t, 0, memory)
		cfg.Remember = filepath.Join(t.TempDir(), "peers")
		start(t, first, cfg)
		var others []*node
		for i := range uint64(2) {
			n, joining := config(t, i+1, memory)
			start(t, n, joining)
			time.Sleep(time.Second) // until it knows its own addresses: what it tells before has none
			if err := n.host.Connect(t.Context(), peer.AddrInfo{ID: first.host.ID(), Addrs: first.host.Addrs()}); err != nil {
				t.Fatal(err)
			}
			others = append(others, n)
		}
		defer closeAll(others)
		time.Sleep(4 * rememberPause)
		if known := readRemembered(cfg.Remember); len(known) != 2 {
			t.Fatalf("%d peers are written down, want 2: %v", len(known), known)
		}
		cfg.Listen = []string{first.host.Network().ListenAddresses()[0].String()}
		first.Close()
		again, _ := config(t, 0, memory)
		start(t, again, cfg)
		defer again.Close()
		<-again.joined
		time.Sleep(3 * time.Second) // who was greeted by both at once is greeted again after a pause
		if n := again.router.RoutingTable().Size(); n != 2 {
			t.Errorf("the restarted node knows %d others soon after it has joined, want 2", n)
		}
	})
}

// A node that stops while it has few others left keeps those that it knew before.
func TestKeepsThoseItKnewBefore(t *testing.T) {
	memory := &Memory{}
	var infos []peer.AddrInfo
	for i := range uint64(3) {
		n, cfg := config(t, i, memory)
		start(t, n, cfg)
		defer n.Close()
		infos = append(infos, peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Network().ListenAddresses()})
	}
	path := filepath.Join(t.TempDir(), "peers")
	a := acquainted(path)
	for _, met := range [][]peer.AddrInfo{infos[:2], infos[2:]} {
		if err := a.meet(met); err != nil {
			t.Fatal(err)
		}
	}
	a = acquainted(path)
	if got, want := a.all(), []peer.ID{infos[2].ID, infos[0].ID, infos[1].ID}; len(got) != 3 || got[0].ID != want[0] || got[1].ID != want[1] || got[2].ID != want[2] {
		t.Errorf("it knows %v after a restart, want %v", got, want)
	}
	connected := func(id peer.ID) bool { return id == infos[2].ID }
	if missed := a.missed(connected, 5); len(missed) != 2 {
		t.Errorf("%v are missed, want the two that are not connected", missed)
	}
}

// Two halves of a federation that know of each other only from before find together again.
func TestNetworkThatFellApartIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		var nodes []*node
		for i := range uint64(4) {
			n, cfg := config(t, i, memory)
			if i%2 == 1 { // two pairs
				cfg.Join = nodes[i-1].Addrs()
			}
			start(t, n, cfg)
			<-n.joined
			nodes = append(nodes, n)
		}
		defer closeAll(nodes)
		known := peer.AddrInfo{ID: nodes[2].host.ID(), Addrs: nodes[2].host.Network().ListenAddresses()}
		if err := nodes[0].known.meet([]peer.AddrInfo{known}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * refreshMin) // two pauses, the second twice the first, each up to a quarter longer
		for i, n := range nodes {
			if size := n.router.RoutingTable().Size(); size != 3 {
				t.Errorf("node %d knows %d others, want 3", i, size)
			}
		}
	})
}

// A site that was banned at the one it joins through, for a minute, is back soon after, though it has others
// meanwhile: whether it was connected when the ban began, or started while it lasted.
func TestBannedPeerFindsBack(t *testing.T) {
	for name, restarts := range map[string]bool{"connected": false, "started anew": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := &Memory{}
				first, cfg := config(t, 0, memory)
				start(t, first, cfg)
				defer first.Close()
				other, cfg := config(t, 1, memory)
				cfg.Join = first.Addrs()
				start(t, other, cfg)
				defer other.Close()
				<-other.joined
				banned, cfg := config(t, 2, memory)
				cfg.Join = append(first.Addrs(), other.Addrs()...)
				start(t, banned, cfg)
				<-banned.joined
				time.Sleep(5 * time.Second)
				if restarts {
					banned.Close()
				}
				first.Warden.ban(banned.host.ID(), first.host.Network().ListenAddresses()[0], "a test")
				if restarts {
					time.Sleep(5 * time.Second)
					banned, _ = config(t, 2, memory)
					start(t, banned, cfg)
					<-banned.joined
				}
				defer func() { banned.Close() }()
				connected := func() bool { return banned.host.Network().Connectedness(first.host.ID()) == network.Connected }
				time.Sleep(50 * time.Second)
				if connected() || banned.router.RoutingTable().Size() == 0 {
					t.Fatalf("while it is banned: connected %t, and it knows %d others", connected(), banned.router.RoutingTable().Size())
				}
				time.Sleep(90 * time.Second)
				if !connected() {
					t.Error("a minute and more after the ban it is not back")
				}
			})
		})
	}
}
