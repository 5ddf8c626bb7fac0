package p2p

import (
	"sync"
	"sync/atomic"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Stats is what went wrong or had to be held back since Start, in messages
// unless said otherwise.
type Stats struct {
	Undelivered int64 // reported as grid.Undelivered
	Lost        int64 // written to a stream that failed, so perhaps not received
	Busy        int64 // streams reset because the node's queue was full
	Refused     int64 // streams refused because their peer had too many
	Throttled   int64 // messages read, and streams accepted, late because their peer was above its allowance
	Banned      int64 // peers and addresses, once for each time
	Strangers   int64 // streams refused, and proofs that were none
	Gossip      int64 // gossiped messages not forwarded: bad, or above their author's rate

	Lookups  int64 // of the sites nearest to a key that have ended
	Requests int64 // sent to other sites for them
}

type stats struct {
	lookups, requests                                                      atomic.Int64
	undelivered, lost, busy, refused, throttled, banned, gossip, strangers atomic.Int64

	mu      sync.Mutex
	counter wire.Counter
}

func (s *stats) sent(messages []grid.Message, sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range messages {
		s.counter.Sent(m.MessageKind(), sizes[i])
	}
}

func (s *stats) received(k grid.Kind, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter.Received(k, size)
}

func (s *stats) malformed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter.Malformed++
}

// Stats returns what went wrong so far.
func (n *Network) Stats() Stats {
	return Stats{
		Undelivered: n.stats.undelivered.Load(), Lost: n.stats.lost.Load(), Busy: n.stats.busy.Load(),
		Refused: n.stats.refused.Load(), Throttled: n.stats.throttled.Load(), Banned: n.stats.banned.Load(), Gossip: n.stats.gossip.Load(), Strangers: n.stats.strangers.Load(),
		Lookups: n.stats.lookups.Load(), Requests: n.stats.requests.Load(),
	}
}

// Counter returns the messages counted so far, by kind and direction. Gossip
// counts as sent when this node published it and as received when it is new here.
// The DHT's own messages are not in it.
func (n *Network) Counter() wire.Counter {
	n.stats.mu.Lock()
	defer n.stats.mu.Unlock()
	return n.stats.counter
}
