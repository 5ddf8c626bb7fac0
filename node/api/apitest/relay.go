// Package apitest helps to test clients of the local API.
package apitest

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// Relay is a socket or a port that leads to a daemon's. Its methods may be called concurrently.
type Relay struct {
	Address string // path of the socket, or host and port

	mu   sync.Mutex
	ends []net.Conn
	made int
}

// NewRelay opens a relay to an address of a network, "unix" or "tcp", in that network. It is
// there until the test ends.
func NewRelay(tb testing.TB, network, to string) *Relay {
	tb.Helper()
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(tb.TempDir(), "s") // short: the path of a socket has to be
	}
	door, err := net.Listen(network, at)
	if err != nil {
		tb.Fatal(err)
	}
	r := &Relay{Address: door.Addr().String()}
	tb.Cleanup(func() { door.Close(); r.Cut() })
	go r.serve(door, network, to)
	return r
}

func (r *Relay) serve(door net.Listener, network, to string) {
	for {
		near, err := door.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(network, to)
		if err != nil {
			near.Close()
			continue
		}
		r.mu.Lock()
		r.ends, r.made = append(r.ends, near, far), r.made+1
		r.mu.Unlock()
		go join(far, near)
		go join(near, far)
	}
}

// join copies in one direction until that ends.
func join(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
}

// Cut ends the connections that there are, and returns how many were made so far.
func (r *Relay) Cut() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range r.ends {
		end.Close()
	}
	r.ends = nil
	return r.made
}
