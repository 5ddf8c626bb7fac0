// Package apitest helps to test clients of the local API.
package apitest

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// Relay is a socket that leads to a daemon's. Its methods may be called concurrently.
type Relay struct {
	Path string // of the socket

	mu   sync.Mutex
	ends []net.Conn
	made int
}

// NewRelay opens a relay to the socket at to. It is there until the test ends.
func NewRelay(tb testing.TB, to string) *Relay {
	tb.Helper()
	r := &Relay{Path: filepath.Join(tb.TempDir(), "s")} // short: the path of a socket has to be
	door, err := net.Listen("unix", r.Path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { door.Close(); r.Cut() })
	go r.serve(door, to)
	return r
}

func (r *Relay) serve(door net.Listener, to string) {
	for {
		near, err := door.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", to)
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
