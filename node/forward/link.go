package forward

import (
	"io"
	"net"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
)

// link is one connection: a task's end and the stream to the other site.
type link struct {
	mu      sync.Mutex
	aborted bool
	task    *net.TCPConn
	stream  network.Stream
	early   io.Reader   // reads stream, and before it what came with the first frame; nil: stream
	stays   func() bool // has it stay when the forwarder closes
}

// attach gives the link its stream, join its task, unless it has been aborted.
func (c *link) attach(s network.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		s.Reset()
		return net.ErrClosed
	}
	c.stream = s
	return nil
}

func (c *link) join(task *net.TCPConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		task.Close()
		return net.ErrClosed
	}
	c.task = task
	return nil
}

// abort ends both directions at once.
func (c *link) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	if c.task != nil {
		c.task.SetLinger(0) // the task sees a reset, not an end
		c.task.Close()
	}
	if c.stream != nil {
		c.stream.Reset()
	}
}

// run copies both ways until both directions have ended, or one has failed.
func (c *link) run() {
	in := io.Reader(c.stream)
	if c.early != nil {
		in = c.early
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := io.Copy(c.task, in); err != nil || c.task.CloseWrite() != nil {
			c.abort()
		}
	})
	if _, err := io.Copy(c.stream, c.task); err != nil || c.stream.CloseWrite() != nil {
		c.abort()
	}
	wg.Wait()
	c.task.Close()
	c.stream.Close()
}
