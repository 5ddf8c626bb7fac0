package link

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// bridgesMax is how many connections are joined, or about to be, at once.
const bridgesMax = 4096

// ListenMax is how long a connection between tasks waits until the one it is for listens: nodes of a
// busy cluster start at different times, and who was accepted does not try twice.
const ListenMax = 2 * time.Minute

// DrainMax is how long connections of a task that has ended may take to carry what it has sent.
const DrainMax = 10 * time.Second

// Bridges joins connections of tasks with ones that are made for them. Safe for concurrent use.
type Bridges struct {
	most int64
	open atomic.Int64
}

// NewBridges returns one that has joined none.
func NewBridges() *Bridges { return &Bridges{most: bridgesMax} }

// Join joins near with what dial makes, and returns once both are closed. It resets them when ctx
// ends; and near if dial fails, or too many are joined already.
func (b *Bridges) Join(ctx context.Context, near net.Conn, dial func() (End, error)) {
	full := b.open.Add(1) > b.most
	defer b.open.Add(-1)
	here, ok := near.(End)
	if full || !ok {
		Reset(near)
		return
	}
	defer context.AfterFunc(ctx, func() { Reset(here) })()
	there, err := dial()
	if err != nil {
		Reset(here)
		return
	}
	defer context.AfterFunc(ctx, func() { Reset(there) })()
	Join(here, there)
}

// acceptPause is how long to wait after a connection could not be taken.
const acceptPause = 100 * time.Millisecond

// AcceptEach hands on each connection that comes, until l is closed or ctx ends.
func AcceptEach(ctx context.Context, l net.Listener, take func(net.Conn)) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			take(c)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, say: they come back
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
				return
			}
		}
	}
}
