package p2p

import (
	"context"
	"errors"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/peer"
)

// nearestTo returns the k peers nearest to a key that a look-up has heard of when those of them
// that are nearest have answered. kad-dht would go on, and ask all others: that changes nothing
// in what it returns, but costs two messages for each, and connections.
func nearestTo(ctx context.Context, router *dht.IpfsDHT, key string) ([]peer.ID, error) {
	searching, cancel := context.WithCancel(ctx)
	defer cancel()
	searching, events := dht.RegisterForLookupEvents(searching)
	s := &search{Context: searching, told: make(chan chan struct{})}
	go s.watch(events, cancel)
	peers, err := router.GetClosestPeers(s, key)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return peers, err
}

// search is the context of a look-up, which ends when its search has. kad-dht tells of that by an
// event, and before it goes on it asks its context whether that has ended.
type search struct {
	context.Context
	told chan chan struct{} // takes what is to be closed once all events so far are seen
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

// watch ends the search by the event that says that it has ended.
func (s *search) watch(events <-chan *dht.LookupEvent, cancel context.CancelFunc) {
	see := func(e *dht.LookupEvent) {
		if e != nil && e.Terminate != nil { // nil: the events have ended, with the context
			cancel()
		}
	}
	for s.Context.Err() == nil {
		select {
		case e := <-events:
			see(e)
		case seen := <-s.told:
			for len(events) > 0 {
				see(<-events)
			}
			close(seen)
		case <-s.Done():
		}
	}
}
