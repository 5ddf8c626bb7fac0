package link

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"

	"gridnode/grid"
)

// Way is what a connection is for that carries what tasks of one job say to each other, instead of
// orders of the daemon.
type Way struct {
	Task   string // a task at the caller's node, of the job
	Rank   int    // of the task that it wants to reach, from 0; counts if Number is 0
	Number uint64 // of what the daemon has asked for, which this connection is; 0: it was not asked
}

func (w *Way) check() error {
	if w != nil && (w.Task == "" || len(w.Task) > nameMax || w.Rank < 0 || w.Rank >= grid.PeersMax) {
		return errors.New("a pilot asks for a way of no task")
	}
	return nil
}

// End is one end of what Join joins: TCP, or TLS over it.
type End interface {
	net.Conn
	CloseWrite() error
}

// Join copies both ways until both directions have ended, each as its sender ends it, or until
// one fails. Then, or once Reset was called of one, the other is reset, too. Both are closed
// when it returns.
func Join(a, b End) {
	var wg sync.WaitGroup
	for _, way := range [][2]End{{a, b}, {b, a}} {
		wg.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil || way[1].CloseWrite() != nil {
				Reset(a)
				Reset(b)
			}
		})
	}
	wg.Wait()
	a.Close()
	b.Close()
}

// Reset ends a connection at once: whoever is at its other end does not take that for the end of
// what was sent.
func Reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // closed already
	}
	c.Close()
}
