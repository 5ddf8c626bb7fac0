// Package mailbox keeps what waits for somebody else to see to it: whoever has something puts
// it in and goes on; the writer of a stream, or Work, takes all that is there when it is woken.
package mailbox

import (
	"context"
	"sync"
)

// Box is what waits. Safe for concurrent use.
type Box[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{} // holds a token when something has changed
}

// New returns an empty box.
func New[T any]() *Box[T] { return &Box[T]{wake: make(chan struct{}, 1)} }

// Put adds something, unless the box is closed.
func (m *Box[T]) Put(item T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.items = append(m.items, item)
		m.ring()
	}
}

// Close says that nothing follows.
func (m *Box[T]) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.ring()
}

// Wake returns what holds a token when something has changed since it was last received from.
func (m *Box[T]) Wake() <-chan struct{} { return m.wake }

func (m *Box[T]) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Take returns all that waits, and whether nothing follows.
func (m *Box[T]) Take() (items []T, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items, m.closed
}

// Work hands on what is put in, at most so many at the same time, until ctx ends. It returns
// when the last one is done.
func (m *Box[T]) Work(ctx context.Context, most int, do func(T)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, most)
	for {
		select {
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		items, _ := m.Take()
		for _, one := range items {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				do(one)
				<-room
			})
		}
	}
}

// Len returns how much waits.
func (m *Box[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items)
}
