package p2p

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"gridnode/node/reach"
)

// Memory connects the nodes of one process without sockets: the same libp2p with
// the same handshakes, over pipes instead of TCP. It needs no file descriptors,
// which a large fleet runs out of, and works in virtual time (testing/synctest),
// which sockets do not. Addresses look like loopback TCP and mean nothing outside.
// The zero value is ready.
type Memory struct {
	// Latency returns how long bytes take that are written at once; nil: no time.
	// Dialling takes two of them. It is called concurrently.
	Latency func() time.Duration

	mu        sync.Mutex
	listeners map[string]*memoryListener // by address
	ports     int
}

const (
	memoryFirstPort = 20000
	memoryPorts     = 1<<16 - 1 - memoryFirstPort
	memoryBacklog   = 128 // connections made and not accepted yet
)

// transport returns the constructor that libp2p.Transport wants.
func (m *Memory) transport(u transport.Upgrader, r network.ResourceManager) (*memoryTransport, error) {
	return &memoryTransport{memory: m, upgrader: u, resources: r}, nil
}

// port returns the next port, and begins anew behind the last one: connections share them
// in time. The lock is held.
func (m *Memory) port() string {
	m.ports = m.ports%memoryPorts + 1
	return strconv.Itoa(memoryFirstPort + m.ports)
}

func (m *Memory) listen(addr multiaddr.Multiaddr) (*memoryListener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if port, _ := addr.ValueForProtocol(multiaddr.P_TCP); port == "0" {
		ip, _ := multiaddr.SplitFirst(addr)
		for free := false; !free && len(m.listeners) < memoryPorts; free = m.listeners[addr.String()] == nil {
			addr = ip.Encapsulate(multiaddr.StringCast("/tcp/" + m.port()))
		}
	}
	if m.listeners[addr.String()] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memory", Err: syscall.EADDRINUSE}
	}
	if m.listeners == nil {
		m.listeners = make(map[string]*memoryListener)
	}
	l := &memoryListener{memory: m, addr: addr, backlog: make(chan *memoryConn, memoryBacklog), closed: make(chan struct{})}
	m.listeners[addr.String()] = l
	return l, nil
}

func (m *Memory) dial(ctx context.Context, to multiaddr.Multiaddr) (*memoryConn, error) {
	m.mu.Lock()
	l := m.listeners[to.String()]
	from := multiaddr.StringCast("/ip4/127.0.0.1/tcp/" + m.port())
	m.mu.Unlock()
	if m.Latency != nil {
		select {
		case <-time.After(m.Latency() + m.Latency()):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	refused := &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	there, back := newPipe(m.Latency), newPipe(m.Latency)
	near := &memoryConn{read: back, write: there, local: from, remote: to}
	far := &memoryConn{read: there, write: back, local: to, remote: from}
	select {
	case l.backlog <- far:
		return near, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryTransport struct {
	memory    *Memory
	upgrader  transport.Upgrader
	resources network.ResourceManager
}

func (t *memoryTransport) Dial(ctx context.Context, to multiaddr.Multiaddr, p peer.ID) (transport.CapableConn, error) {
	scope, err := t.resources.OpenConnection(network.DirOutbound, false, to)
	if err != nil {
		return nil, err
	}
	conn, err := t.upgrade(ctx, to, p, scope)
	if err != nil {
		scope.Done()
	}
	return conn, err
}

func (t *memoryTransport) upgrade(ctx context.Context, to multiaddr.Multiaddr, p peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	if err := scope.SetPeer(p); err != nil {
		return nil, err
	}
	conn, err := t.memory.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return t.upgrader.Upgrade(ctx, t, conn, network.DirOutbound, p, scope)
}

func (t *memoryTransport) Listen(addr multiaddr.Multiaddr) (transport.Listener, error) {
	l, err := t.memory.listen(addr)
	if err != nil {
		return nil, err
	}
	return t.upgrader.UpgradeGatedMaListener(t, t.upgrader.GateMaListener(l)), nil
}

func (t *memoryTransport) CanDial(addr multiaddr.Multiaddr) bool {
	return reach.TCP(addr)
}

func (t *memoryTransport) Protocols() []int { return []int{multiaddr.P_TCP} }
func (t *memoryTransport) Proxy() bool      { return false }

type memoryListener struct {
	memory  *Memory
	addr    multiaddr.Multiaddr
	backlog chan *memoryConn
	once    sync.Once
	closed  chan struct{}
}

func (l *memoryListener) Accept() (manet.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.memory.mu.Lock()
		delete(l.memory.listeners, l.addr.String())
		l.memory.mu.Unlock()
		close(l.closed)
		for { // whoever dialled and was not accepted sees the connection end
			select {
			case c := <-l.backlog:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *memoryListener) Multiaddr() multiaddr.Multiaddr { return l.addr }
func (l *memoryListener) Addr() net.Addr                 { return netAddr(l.addr) }

// memoryConn is one end of a connection.
type memoryConn struct {
	read, write   *pipe
	local, remote multiaddr.Multiaddr
}

func (c *memoryConn) Read(b []byte) (int, error)  { return c.read.Read(b) }
func (c *memoryConn) Write(b []byte) (int, error) { return c.write.Write(b) }

func (c *memoryConn) Close() error {
	c.read.fail(io.ErrClosedPipe)
	c.write.end()
	return nil
}

func (c *memoryConn) LocalAddr() net.Addr                  { return netAddr(c.local) }
func (c *memoryConn) RemoteAddr() net.Addr                 { return netAddr(c.remote) }
func (c *memoryConn) LocalMultiaddr() multiaddr.Multiaddr  { return c.local }
func (c *memoryConn) RemoteMultiaddr() multiaddr.Multiaddr { return c.remote }

func netAddr(addr multiaddr.Multiaddr) net.Addr {
	a, err := manet.ToNetAddr(addr)
	if err != nil {
		panic(fmt.Sprintf("p2p: address %s was checked when it was listened on", addr))
	}
	return a
}
