package node

import "sync"

// mailbox is what waits to be written to a stream. Safe for concurrent use.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{} // holds a token when something has changed
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

// put adds something, unless the mailbox is closed.
func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.items = append(m.items, item)
		m.ring()
	}
}

// close says that nothing follows.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.ring()
}

func (m *mailbox[T]) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns all that waits, and whether nothing follows.
func (m *mailbox[T]) take() (items []T, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items, m.closed
}

// len returns how much waits.
func (m *mailbox[T]) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items)
}
