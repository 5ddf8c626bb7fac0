package p2p

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/p2p/patience"
)

// TestSilentPeerIsPassedOver: a look-up does not wait for a peer that takes questions and never answers.
// It is named, as it may be slow, and is in the table no longer once it is known not to answer.
func TestSilentPeerIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		nodes := fleet(t, memory, 12)
		defer closeAll(nodes)
		silent, cfg := config(t, 100, memory)
		cfg.Join = nodes[0].Addrs()
		start(t, silent, cfg)
		silent.host.SetStreamHandler(silent.kademlia(), func(s network.Stream) {
			<-silent.ctx.Done()
			_ = s.Reset()
		})
		<-silent.joined
		time.Sleep(time.Minute)
		asker := nodes[3]
		if err := asker.host.Connect(t.Context(), peer.AddrInfo{ID: silent.host.ID(), Addrs: silent.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		table := asker.router.RoutingTable()
		if _, err := table.TryAddPeer(silent.host.ID(), true, false); err != nil {
			t.Fatal(err)
		}
		ids := []peer.ID{silent.host.ID()}
		for _, n := range nodes {
			ids = append(ids, n.host.ID())
		}
		rng := rand.New(rand.NewPCG(1, 1))
		key := randomKey(rng)
		for nearest(key, ids, 1)[0] != silent.Self() {
			key = randomKey(rng)
		}
		began, before := time.Now(), len(asker.inputs())
		asker.Closest(key)
		got := asker.await(func(in []grid.Input) bool { return len(in) > before })[before].(*grid.Closest)
		if took := time.Since(began); took > 2*time.Duration(patience.Span)*time.Microsecond || len(got.Peers) == 0 || got.Peers[0] != silent.Self() {
			t.Errorf("after %v the look-up names %v, the first is not %v", took, got.Peers, silent.Self())
		}
		time.Sleep(2 * dialTimeMax)
		if slices.Contains(table.ListPeers(), silent.host.ID()) {
			t.Error("the silent peer is still in the table")
		}
	})
}

// TestCourseOfGrownNetwork: whether a network is large is told by the farthest of those that a look-up names.
func TestCourseOfGrownNetwork(t *testing.T) {
	for _, tt := range []struct {
		name  string
		peers []passed
		want  bool
	}{
		{"both are near", []passed{{distance: []byte{0}}, {distance: []byte{0x0f}}}, true},
		{"one is not", []passed{{distance: []byte{0}}, {distance: []byte{0x10}}}, false},
		{"one is not there", []passed{{distance: []byte{0}}, {distance: []byte{1}, state: peerFailed}, {distance: []byte{0x10}}}, false},
		{"there are too few", []passed{{distance: []byte{0}}}, false},
	} {
		if c := (course{k: 2, peers: tt.peers}); c.grown() != tt.want {
			t.Errorf("%s: the network is large: %t", tt.name, !tt.want)
		}
	}
}

// TestSearchEndsWithTheNearest: when as many of the nearest have answered as must, but for those who have failed or
// are passed over; while somebody nearer may still answer it goes on.
func TestSearchEndsWithTheNearest(t *testing.T) {
	now := time.Now()
	for states, want := range map[string]bool{ // nearest first
		"": false, "aaa": false, "saaa": true, "saa": true, "asaa": true, "aaas": false, "saaw": false, "saaaw": true,
		"fsaaa": true, "sfaaw": false, "sffaah": false, "ffs": true, "sah": false, "was": false, "fff": false,
	} {
		var c course
		for _, s := range states {
			p := passed{state: map[rune]progress{'a': peerAnswered, 'f': peerFailed, 's': peerAsked, 'w': peerAsked, 'h': peerHeard}[s], asked: now}
			if s == 's' {
				p.asked = now.Add(-patient)
			}
			c.peers = append(c.peers, p)
		}
		if got := c.settled(now); got != want {
			t.Errorf("%q: it has ended: %v", states, got)
		}
	}
}
