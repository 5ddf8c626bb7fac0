package node

import (
	"context"
	"errors"
	"sync"

	"gridnode/grid"
)

// eventsMax bounds the events that wait for one subscriber: those of a burst of ten
// thousand jobs.
const eventsMax = 50_000

// ErrLagged is returned by Subscription.Next once eventsMax events waited: the
// subscriber has missed some and must read the state anew and subscribe again.
var ErrLagged = errors.New("events were missed: too many waited")

// Subscription hands out a host's events in order. One goroutine may call Next;
// Close may be called by any.
type Subscription struct {
	of      *subscriptions
	mu      sync.Mutex
	waiting []grid.Event
	err     error
	arrived chan struct{}
}

// subscriptions are those that want a host's events.
type subscriptions struct {
	mu     sync.Mutex
	all    map[*Subscription]struct{}
	closed bool
}

// Subscribe returns a subscription to all events told from now on. Close it.
func (h *Host) Subscribe() *Subscription {
	s := &Subscription{of: &h.subscribed, arrived: make(chan struct{}, 1)}
	h.subscribed.mu.Lock()
	defer h.subscribed.mu.Unlock()
	if h.subscribed.closed {
		s.err = ErrStopped
		s.arrived <- struct{}{}
		return s
	}
	if h.subscribed.all == nil {
		h.subscribed.all = make(map[*Subscription]struct{})
	}
	h.subscribed.all[s] = struct{}{}
	return s
}

// Next waits for events and returns all that came, at least one; they belong to
// the caller. Its errors are ErrLagged, ErrStopped once the host has stopped and
// every event was handed out, and ctx's.
func (s *Subscription) Next(ctx context.Context) ([]grid.Event, error) {
	for {
		select {
		case <-s.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s.mu.Lock()
		events, err := s.waiting, s.err
		s.waiting = nil
		s.mu.Unlock()
		if err != nil {
			s.ring() // the next call gets it, too
		}
		if len(events) > 0 {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	delete(s.of.all, s)
	s.of.mu.Unlock()
	s.end(ErrStopped)
}

// tell hands events to every subscriber.
func (all *subscriptions) tell(events []grid.Event) {
	if len(events) == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for s := range all.all {
		if !s.add(events) {
			delete(all.all, s)
		}
	}
}

// close ends every subscription.
func (all *subscriptions) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for s := range all.all {
		s.end(ErrStopped)
	}
	clear(all.all)
}

func (s *Subscription) add(events []grid.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting)+len(events) > eventsMax {
		s.waiting, s.err = nil, ErrLagged
		s.ring()
		return false
	}
	s.waiting = append(s.waiting, events...)
	s.ring()
	return true
}

func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.ring()
}

func (s *Subscription) ring() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}
