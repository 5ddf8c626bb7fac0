// Package peer is who is at the other end of a connection with the API, and how many
// connections he may have.
package peer

import (
	"net"
	"strconv"
	"sync"

	"gridnode/node/access"
)

// connsMax is how many connections one account, or one address, has at a time: as many as
// requests, as each may have its own.
const connsMax = 1024

// Of returns the account at the other end of a connection through a Unix socket, as it was
// when the connection was made; an error if it has none.
func Of(conn net.Conn) (access.Peer, error) {
	if c, ok := conn.(*countedConn); ok {
		conn = c.Conn
	}
	return at(conn)
}

// counted is a listener that closes what somebody opens beyond his share: each connection
// takes memory and a descriptor of the daemon's before anything is asked.
type counted struct {
	net.Listener

	mu   sync.Mutex
	open map[string]int // by account or address
}

// Count returns a listener that does so.
func Count(listener net.Listener) net.Listener {
	return &counted{Listener: listener, open: make(map[string]int)}
}

// whose names who is at the other end.
func whose(conn net.Conn) (string, error) {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String(), nil
	}
	peer, err := at(conn)
	return strconv.FormatUint(uint64(peer.UID), 10), err
}

// Accept implements net.Listener.
func (l *counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, err := whose(conn)
		if err != nil {
			conn.Close() // it went away
			continue
		}
		if c := l.admit(conn, who); c != nil {
			return c, nil
		}
		conn.Close()
	}
}

// admit returns nil if there are too many of theirs.
func (l *counted) admit(conn net.Conn, who string) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[who] >= connsMax {
		return nil
	}
	l.open[who]++
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[who]--; l.open[who] == 0 {
			delete(l.open, who)
		}
	})}
}

// countedConn is one of them.
type countedConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
