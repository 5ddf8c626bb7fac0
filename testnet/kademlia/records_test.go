package kademlia_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
	"gridnode/testnet/kademlia"
)

// announcer is a site that puts provider records, looks for them, and keeps the answers.
type announcer struct{ answers []grid.Input }

type (
	announce struct{ key grid.Key }
	seek     struct{ key grid.Key }
)

func (*announcer) NextTimer() grid.Time { return grid.Never }

func (s *announcer) Step(_ grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case announce:
		out.Provide(in.key)
	case seek:
		out.FindProviders(in.key)
		out.Closest(grid.Key{1}) // beside it, and the answers are told apart
	case *grid.Closest:
		s.answers = append(s.answers, &grid.Closest{Key: in.Key, Peers: slices.Clone(in.Peers)})
	case *grid.Provided, *grid.Providers:
		s.answers = append(s.answers, in)
	}
}

// TestProviderRecordsTakeLookups: who puts a record into the DHT, or looks for records,
// looks up who keeps them, by messages, as live nodes do.
func TestProviderRecordsTakeLookups(t *testing.T) {
	const sites = 40
	n, err := testnet.New(testnet.Config{Seed: 1, Link: testnet.Link{LatencyMin: 10 * grid.Millisecond, LatencyMax: 20 * grid.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	nodes, cores := make([]*kademlia.Node, sites), make([]announcer, sites)
	for i := range nodes {
		nodes[i] = kademlia.New(kademlia.Config{}, kademlia.NewPeer(grid.SiteID(fmt.Sprint("site-", i))))
	}
	kademlia.Fill(nodes, rand.New(rand.NewPCG(1, 2)))
	for i, node := range nodes {
		if _, err := n.Add(testnet.Member{
			ID:     node.Self().ID,
			New:    func(int) (testnet.Site, error) { return &cores[i], nil },
			Router: func(int) testnet.Router { return node },
		}); err != nil {
			t.Fatal(err)
		}
	}
	key := grid.Key{7, 7}
	n.Inject(grid.Second, 3, announce{key})
	n.Inject(2*grid.Second, 3, seek{key})
	n.Inject(2*grid.Second, 5, seek{key})
	if err := n.Run(context.Background(), grid.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if a := cores[3].answers; len(a) != 3 || !a[0].(*grid.Provided).Stored {
		t.Errorf("who announced got %v", a)
	}
	for i, want := range map[int][]grid.SiteID{3: nil, 5: {"site-3"}} {
		found, near := false, false
		for _, a := range cores[i].answers {
			switch a := a.(type) {
			case *grid.Providers:
				found = a.Key == key && slices.Equal(a.Peers, want)
			case *grid.Closest:
				near = a.Key == grid.Key{1} && len(a.Peers) > 0
			}
		}
		if !found || !near {
			t.Errorf("site %d: got %+v, want providers %v and who is near", i, cores[i].answers, want)
		}
	}
	if s := nodes[5].Stats(); s.Lookups != 2 || s.Requests < 10 {
		t.Errorf("site 5 made %d look-ups of %d requests, want one for the records and one besides", s.Lookups, s.Requests)
	}
	if sent := n.Counter(5).SentOf(wire.KademliaFind).Messages; sent != nodes[5].Stats().Requests {
		t.Errorf("%d requests are on the wire, %d were counted", sent, nodes[5].Stats().Requests)
	}
}
