package kademlia

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/p2p/refresh"
)

var liveNodes = flag.Int("live-nodes", 24, "nodes of the largest network of TestModelLooksUpAsLiveNodesDo: 10, 24, 50 or 100")

// question is a key that a node looks up.
type question struct {
	node int
	key  grid.Key
}

// experiment is a network and what it is asked: all of it as it has come up and later, then
// what is left when every fifth node has died.
type experiment struct {
	profile   p2p.Profile
	keys      []crypto.PrivKey
	selves    []*Peer
	through   [][]int // earlier nodes that each joins through
	questions []question
}

func newExperiment(t *testing.T, profile p2p.Profile, count int) *experiment {
	rng := rand.New(rand.NewPCG(1, uint64(count)))
	x := &experiment{profile: profile}
	for i := range count {
		key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8([32]byte{byte(i)}))
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		x.keys = append(x.keys, key)
		x.selves = append(x.selves, &Peer{ID: grid.SiteID(id.String()), Key: sha256.Sum256([]byte(id))})
		var earlier []int
		for range min(i, 3) {
			earlier = append(earlier, rng.IntN(i))
		}
		x.through = append(x.through, earlier)
	}
	for range 5 * count {
		q := question{node: rng.IntN(count)}
		for i := range q.key {
			q.key[i] = byte(rng.Uint32())
		}
		x.questions = append(x.questions, q)
	}
	return x
}

// dies reports whether a node does.
func dies(node int) bool { return node%5 == 0 }

// pause is from the start of one node to that of the next: the first is still young when the last has answered
// its question.
func (x *experiment) pause() grid.Time { return refresh.Young / 3 / grid.Time(len(x.keys)) }

// round is what the look-ups of a part of an experiment gave.
type round struct {
	recall   float64 // share of the k nearest living sites that they named
	requests float64 // per look-up
}

// ask asks those questions that are for living nodes. sent returns the requests so far, and the look-ups that they were
// of: also those of nodes that look themselves up.
func (x *experiment) ask(questions []question, deaths bool, lookUp func(question) []grid.SiteID, sent func() (requests, lookups int64)) (r round) {
	k, _ := x.profile.Kademlia()
	all := newWorld(0, Config{}, 1)
	for i, self := range x.selves {
		all.order = append(all.order, New(Config{}, self))
		all.dead[self.ID] = deaths && dies(i)
	}
	hit, want := 0, 0
	before, made := sent()
	for _, q := range questions {
		if deaths && dies(q.node) {
			continue
		}
		got := lookUp(q)
		for _, id := range all.truth(sha256.Sum256(q.key[:]), k) {
			want++
			if slices.Contains(got, id) {
				hit++
			}
		}
	}
	requests, lookups := sent()
	return round{float64(hit) / float64(want), float64(requests-before) / float64(lookups-made)}
}

// live asks real nodes. It is called in a bubble.
func (x *experiment) live(t *testing.T) (rounds [3]round) {
	memory := &p2p.Memory{Latency: func() time.Duration { return 10*time.Millisecond + rand.N(20*time.Millisecond) }} // as in a world
	found := make(chan *grid.Closest, 1)
	var nodes []*p2p.Network
	for i, key := range x.keys {
		cfg := p2p.Config{
			Key: key, Federation: "test", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Memory: memory, Profile: x.profile,
			Deliver: func(*grid.Delivery) bool { return true },
			Report: func(in grid.Input) {
				if c, ok := in.(*grid.Closest); ok {
					found <- c
				}
			},
		}
		for _, earlier := range x.through[i] {
			cfg.Join = append(cfg.Join, nodes[earlier].Addrs()...)
		}
		n, err := p2p.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		nodes = append(nodes, n)
		time.Sleep(x.pause().Duration())
	}
	lookUp := func(q question) []grid.SiteID {
		nodes[q.node].Closest(q.key)
		return (<-found).Peers
	}
	sent := func() (requests, lookups int64) {
		synctest.Wait()
		for _, n := range nodes {
			requests += n.Stats().Requests
			lookups += n.Stats().Lookups
		}
		return requests, lookups
	}
	rounds[0] = x.ask(x.questions[:len(x.keys)], false, lookUp, sent)
	time.Sleep(refresh.Young.Duration())
	rounds[1] = x.ask(x.questions, false, lookUp, sent)
	for i, n := range nodes {
		if dies(i) {
			n.Close()
		}
	}
	time.Sleep(time.Second)
	rounds[2] = x.ask(x.questions, true, lookUp, sent)
	return rounds
}

// model asks the model.
func (x *experiment) model() (rounds [3]round) {
	k, alpha := x.profile.Kademlia()
	w := newWorld(0, Config{}, 1)
	w.loud = true
	lookUp := func(q question) []grid.SiteID {
		n := w.order[q.node]
		clear(w.found)
		n.Closest(w.now, q.key, &w.out)
		w.carryOut(n.Self().ID)
		w.run()
		return w.found[n.Self().ID][0].Peers
	}
	for i, self := range x.selves {
		n := New(Config{K: k, Alpha: alpha, Hash: true}, self)
		w.nodes[self.ID], w.order = n, append(w.order, n)
		for _, earlier := range x.through[i] {
			n.Join(x.selves[earlier])
		}
		lookUp(question{i, self.Key})
		w.now += x.pause()
	}
	sent := func() (requests, lookups int64) {
		for _, n := range w.order {
			requests += n.Stats().Requests
			lookups += n.Stats().Lookups
		}
		return requests, lookups
	}
	rounds[0] = x.ask(x.questions[:len(x.keys)], false, lookUp, sent)
	w.now += refresh.Young
	rounds[1] = x.ask(x.questions, false, lookUp, sent)
	for i, self := range x.selves {
		w.dead[self.ID] = dies(i)
	}
	rounds[2] = x.ask(x.questions, true, lookUp, sent)
	return rounds
}

// TestModelLooksUpAsLiveNodesDo: kad-dht and the model, with the same nodes that joined
// through the same peers and messages that take as long, answer the same questions as
// well, by a number of requests that differs by less than a tenth or by less than one, when they
// have just come up, when all nodes live, and when a fifth has died.
func TestModelLooksUpAsLiveNodesDo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes five seconds of processor time, and minutes under the race detector")
	}
	for _, profile := range []p2p.Profile{p2p.ProfileFleet, p2p.ProfileNode} {
		for _, count := range []int{10, 24, 50, 100} {
			if count > *liveNodes {
				continue
			}
			k, alpha := profile.Kademlia()
			t.Run(fmt.Sprintf("k=%d/α=%d/%d", k, alpha, count), func(t *testing.T) {
				x := newExperiment(t, profile, count)
				var live [3]round
				synctest.Test(t, func(t *testing.T) { live = x.live(t) })
				for i, model := range x.model() {
					what := []string{"just come up", "all live", "a fifth is dead"}[i]
					t.Logf("%3d nodes, k=%d, α=%2d, %-15s: requests %5.2f live, %5.2f in the model; of the nearest %.4f and %.4f", count, k, alpha, what, live[i].requests, model.requests, live[i].recall, model.recall)
					if r := model.requests / live[i].requests; (r < 0.9 || r > 1.1) && math.Abs(model.requests-live[i].requests) >= 1 {
						t.Errorf("%s: %.2f requests live, %.2f in the model", what, live[i].requests, model.requests)
					}
					if d := model.recall - live[i].recall; d < -0.03 || d > 0.03 {
						t.Errorf("%s: %.4f of the nearest named live, %.4f in the model", what, live[i].recall, model.recall)
					}
				}
			})
		}
	}
}
