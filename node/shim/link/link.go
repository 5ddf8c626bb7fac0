package link

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Hello is what a shim says of itself first.
type Hello struct {
	Name       string // of its pilot
	Node       int    // its number in the pilot, from 0
	Nodes      int    // how many the pilot has
	Processors int64  // that it has there
	Host       string // for people
	Way        *Way   `json:",omitempty"` // nil: the daemon gives orders on this connection
}

// Bounds of a hello.
const (
	helloMax      = 4 << 10
	NodesMax      = 1 << 12
	processorsMax = 1 << 24
	nameMax       = 128
)

func (h *Hello) check() error {
	if h.Name == "" || len(h.Name) > nameMax || len(h.Host) > nameMax*2 || h.Nodes < 1 || h.Nodes > NodesMax || h.Node < 0 || h.Node >= h.Nodes ||
		h.Processors < 1 || h.Processors > processorsMax {
		return fmt.Errorf("a pilot says that it is %+v", *h)
	}
	return h.Way.check()
}

// Times of a connection.
const (
	greetMax = 10 * time.Second // until both ends know each other
	// An end that has vanished without a word is noticed within about lostMax.
	lostMax       = 30 * time.Second
	aliveIdle     = 15 * time.Second
	aliveInterval = 5 * time.Second
	aliveCount    = 3
)

var alive = net.KeepAliveConfig{Enable: true, Idle: aliveIdle, Interval: aliveInterval, Count: aliveCount}

// callersMax bounds the callers of whom it is not known yet who they are.
const callersMax = 64

// Listener is where shims call.
type Listener struct {
	net.Listener
	key *Key

	mu      sync.Mutex
	callers []net.Conn // that are being greeted, the oldest first
}

// Listen listens at HOST:PORT.
func Listen(address string, key *Key) (*Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: alive}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Listener{Listener: l, key: key}, nil
}

// Greet makes a connection of one that was accepted, and returns who calls. It closes the
// connection if that is nobody who may. Where too many are greeted the one that has taken
// longest makes room: who may call is known within moments, and callers that say nothing would
// keep it out. It may be called concurrently.
func (l *Listener) Greet(c net.Conn) (*tls.Conn, Hello, error) {
	l.enter(c)
	defer l.leave(c)
	secure := tls.Server(c, l.key.config())
	hello, err := greeted(c, secure)
	if err != nil {
		c.Close()
		return nil, hello, err
	}
	return secure, hello, nil
}

func (l *Listener) enter(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.callers) >= callersMax {
		l.callers[0].Close()
		l.callers = slices.Delete(l.callers, 0, 1)
	}
	l.callers = append(l.callers, c)
}

func (l *Listener) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.callers, c); i >= 0 {
		l.callers = slices.Delete(l.callers, i, i+1)
	}
}

func greeted(c net.Conn, secure *tls.Conn) (h Hello, err error) {
	if err := c.SetDeadline(time.Now().Add(greetMax)); err != nil {
		return h, err
	}
	var head [4]byte
	if _, err := io.ReadFull(secure, head[:]); err != nil {
		return h, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > helloMax {
		return h, fmt.Errorf("hello of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(secure, text); err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, err
	}
	return h, errors.Join(h.check(), bound(c, &h), c.SetDeadline(time.Time{}))
}

// bound has what is written be lost for the writer after a while, too; not what is for a task,
// which may read it when it likes.
func bound(c net.Conn, h *Hello) error {
	t, ok := c.(*net.TCPConn)
	if !ok || h.Way != nil {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostMax.Milliseconds()))
	})
	return errors.Join(err, failed)
}

// Dial calls a daemon.
func Dial(ctx context.Context, address string, key *Key, hello Hello) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetMax)
	defer cancel()
	if err := hello.check(); err != nil {
		return nil, err
	}
	d := net.Dialer{KeepAliveConfig: alive}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(c, key.config())
	text, err := json.Marshal(hello)
	if err == nil {
		err = secure.HandshakeContext(ctx)
	}
	if err == nil {
		_, err = secure.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	if err = errors.Join(err, bound(c, &hello)); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}
