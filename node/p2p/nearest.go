package p2p

import (
	"context"
	"errors"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	kbucket "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/node/p2p/refresh"
)

// seeker looks up who is near to a key.
type seeker struct {
	n      *Network
	began  time.Time
	doubts backlog[peer.ID] // whether they are there
}

func newSeeker(n *Network) *seeker {
	s := &seeker{n: n, began: time.Now()}
	s.doubts = backlog[peer.ID]{n: n, alive: doubtsAlive, most: doubtsMax, carry: s.doubt}
	return s
}

// nearestTo returns the k peers nearest to a key that a look-up has heard of when those of them
// that are nearest have answered. kad-dht would go on, and ask all others: that changes nothing
// in what it returns, but costs two messages for each, and connections.
func (s *seeker) nearestTo(ctx context.Context, key string) (peers []peer.ID, err error) {
	s.seek(ctx, key, func(ctx context.Context) { peers, err = s.n.router.GetClosestPeers(ctx, key) })
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return peers, err
}

// seek has kad-dht look up a key, with a context that ends when the search has, but for a young node in a
// network that may still grow, for which the look-up goes on. Those who were passed over are asked
// afterwards whether they are there.
func (s *seeker) seek(ctx context.Context, key string, lookUp func(ctx context.Context)) {
	searching, cancel := context.WithCancel(ctx)
	defer cancel()
	searching, events := dht.RegisterForLookupEvents(searching)
	look := &search{Context: searching, told: make(chan chan struct{}), young: time.Since(s.began) < young, course: course{key: kbucket.ConvertKey(key), k: s.n.cfg.bucketSize()}}
	over := make(chan struct{})
	go func() {
		look.watch(events, cancel)
		close(over)
	}()
	lookUp(look)
	now := time.Now()
	cancel()
	<-over
	for _, p := range look.course.passedOver(now) {
		s.doubts.add(p) // if there are too many, a later look-up comes upon it again
	}
}

// doubt takes a peer out of the routing table if it is not there.
func (s *seeker) doubt(p peer.ID) {
	ctx, cancel := context.WithTimeout(s.n.ctx, dialTimeMax)
	defer cancel()
	if err := s.n.router.Ping(ctx, p); err != nil && s.n.ctx.Err() == nil {
		s.n.log.Debug("a peer that look-ups wait for is not there", "peer", p, "error", err)
		s.n.router.RoutingTable().RemovePeer(p)
	}
}

// young is for how long a node's look-ups go on when their searches have ended.
const young = time.Duration(refresh.Young) * time.Microsecond

// search is the context of a look-up, which ends when its search has. kad-dht tells of that by an
// event, and before it goes on it asks its context whether that has ended.
type search struct {
	context.Context
	told   chan chan struct{} // takes what is to be closed once all events so far are seen
	young  bool               // it goes on when its search has ended, unless the network has grown
	over   bool               // its search has ended
	course course             // of use to watch until that has returned
}

// Err implements context.Context. It sees the events first that were told of before.
func (s *search) Err() error {
	seen := make(chan struct{})
	select {
	case s.told <- seen:
		<-seen
	case <-s.Done():
	}
	return s.Context.Err()
}

// watch ends the search by the event that says that it has ended, or when it waits only for those
// who are passed over.
func (s *search) watch(events <-chan *dht.LookupEvent, cancel context.CancelFunc) {
	see := func(e *dht.LookupEvent) {
		if e == nil { // the events have ended, with the context
			return
		}
		s.course.see(e)
		s.over = s.over || e.Terminate != nil
		s.conclude(time.Now(), cancel)
	}
	for s.Context.Err() == nil {
		late := time.NewTimer(s.course.wait(time.Now()))
		select {
		case e := <-events:
			see(e)
		case now := <-late.C:
			s.conclude(now, cancel)
		case seen := <-s.told:
			for len(events) > 0 {
				see(<-events)
			}
			close(seen)
		case <-s.Done():
		}
		late.Stop()
	}
}

// conclude ends the look-up if it is to end by now.
func (s *search) conclude(now time.Time, cancel context.CancelFunc) {
	if s.over && (!s.young || s.course.grown()) || !s.over && s.course.settled(now) {
		cancel()
	}
}
