package p2p

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
)

type peerID = peer.ID

// nearest is the brute-force answer: every node ordered by XOR distance.
func nearest(key grid.Key, ids []peer.ID, k int) []grid.SiteID {
	target := sha256.Sum256(key[:])
	far := func(id peer.ID) []byte {
		d := sha256.Sum256([]byte(id))
		for i := range d {
			d[i] ^= target[i]
		}
		return d[:]
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b peer.ID) int { return bytes.Compare(far(a), far(b)) })
	var sites []grid.SiteID
	for _, id := range ids[:min(k, len(ids))] {
		sites = append(sites, grid.SiteID(id.String()))
	}
	return sites
}

func randomKey(rng *rand.Rand) grid.Key {
	var k grid.Key
	for i := range k {
		k[i] = byte(rng.Uint32())
	}
	return k
}

func TestClosestNamesTheSameSitesEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 20)
		defer closeAll(nodes)
		var ids []peer.ID
		for _, n := range nodes {
			ids = append(ids, n.host.ID())
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 5 {
			key := randomKey(rng)
			want := nearest(key, ids, bucketMin)
			for i, n := range nodes {
				before := len(n.inputs())
				n.Closest(key)
				got := n.await(func(in []grid.Input) bool { return len(in) > before })[before].(*grid.Closest)
				if got.Key != key || !slices.Equal(got.Peers, want) {
					t.Errorf("node %d: got %v, want %v", i, got.Peers, want)
				}
			}
		}
	})
}

func TestMergePutsSelfInItsPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		key := randomKey(rng)
		n := 1 + rng.IntN(12)
		var ids, others []peer.ID
		for i := range n {
			ids = append(ids, peer.ID(fmt.Sprint("peer", i, rng.Uint64())))
		}
		others = append(others, ids[1:]...)
		target := kbucket.ConvertKey(string(key[:]))
		others = kbucket.SortClosestPeers(others, target)
		if got, want := merge(key, ids[0], others, 8), nearest(key, ids, 8); !slices.Equal(got, want) {
			t.Fatalf("%d peers: got %v, want %v", n, got, want)
		}
	}
}

func TestANodeAloneIsTheClosest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 1)
		defer closeAll(nodes)
		nodes[0].Closest(grid.Key{1})
		got := nodes[0].await(func(in []grid.Input) bool { return len(in) == 1 })[0].(*grid.Closest)
		if !slices.Equal(got.Peers, []grid.SiteID{nodes[0].Self()}) {
			t.Errorf("got %v, want this node", got.Peers)
		}
	})
}

func TestLookUpsWaitForTheFirstJoinButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		n, cfg := config(t, 1, memory)
		cfg.Join = []string{"/ip4/127.0.0.1/tcp/9/p2p/12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp"}
		silent, err := memory.listen(cfg.addr("/ip4/127.0.0.1/tcp/9")) // accepts nobody
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		start(t, n, cfg)
		defer n.Close()
		began := time.Now()
		for range lookupsMax + lookupsWaitingMax + 5 {
			n.Closest(grid.Key{2})
		}
		got := n.await(func(in []grid.Input) bool { return len(in) == lookupsMax+lookupsWaitingMax+5 })
		failed := 0
		for _, in := range got {
			if len(in.(*grid.Closest).Peers) == 0 {
				failed++
			}
		}
		if failed != 5 {
			t.Errorf("%d look-ups failed, want the 5 above the bound", failed)
		}
		if took := time.Since(began); took != joinTimeMax {
			t.Errorf("the first look-up took %v, want %v", took, joinTimeMax)
		}
	})
}

func TestGossipReachesEverybodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 10)
		defer closeAll(nodes)
		time.Sleep(3 * time.Second)
		nodes[4].Publish("shout", &note{4, "news"})
		nodes[4].Publish("unknown topic", &note{4, "news"})
		nodes[4].Publish("shout", &note{4, string(make([]byte, shouts.SizeMax))})
		for i, n := range nodes {
			if i == 4 {
				continue
			}
			got := n.await(func(in []grid.Input) bool { return len(in) > 0 })
			if d := got[0].(*grid.Delivery); d.From != nodes[4].Self() || !slices.Equal(texts(got), []string{"news"}) {
				t.Errorf("node %d: got %v from %s", i, describe(got), d.From)
			}
		}
		time.Sleep(time.Minute)
		if got := nodes[4].inputs(); len(got) != 0 {
			t.Errorf("its own gossip came back: %v", describe(got))
		}
		sent, received := nodes[4].Counter(), nodes[5].Counter()
		if s, r := sent.SentOf(4).Messages, received.ReceivedOf(4).Messages; s != 1 || r != 1 {
			t.Errorf("counted %d sent and %d received, want 1 and 1", s, r)
		}
	})
}

func TestDroppedNodeJoinsAgainByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		nodes := fleet(t, memory, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1] // b joins through a
		listen := a.host.Network().ListenAddresses()[0].String()
		a.Close()
		time.Sleep(refreshMin / 3) // long enough for pauses to grow
		again, cfg := config(t, 0, memory)
		cfg.Listen = []string{listen}
		start(t, again, cfg)
		defer again.Close()
		time.Sleep(2 * rejoinMax)
		if n := again.router.RoutingTable().Size(); n != 1 {
			t.Errorf("the first node knows %d others after its restart, want 1", n)
		}
		if n := b.router.RoutingTable().Size(); n != 1 {
			t.Errorf("the other knows %d, want 1", n)
		}
	})
}
