package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// helloMax is how long a new connection may take to say who it is.
const helloMax = 5 * time.Second

// acceptPause is how long to wait after a connection could not be taken.
const acceptPause = 100 * time.Millisecond

// accept takes connections until the listener is closed.
func (s *shim) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		switch {
		case err == nil && !peerAllowed(c):
			s.log("connection closed: it is another user's")
			c.Close()
		case err == nil:
			go s.converse(c)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors or memory: it passes
			s.log("accept a connection: %v", err)
			<-time.After(acceptPause)
		}
	}
}

// converse reads what a daemon says. Whatever is malformed ends the connection and
// changes nothing. The connection is closed when the loop has carried out all that
// came before its end.
func (s *shim) converse(c stream) {
	d := newConn(c)
	if err := s.read(d); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log("connection closed: %v", err)
	}
	s.post(func() {
		if s.daemon == d {
			s.daemon = nil
		}
		d.close()
	})
}

func (s *shim) read(d *conn) error {
	r := bufio.NewReaderSize(d.c, 64<<10)
	var buf []byte
	d.c.SetReadDeadline(time.Now().Add(helloMax))
	k, body, err := readFrame(r, &buf)
	if err != nil {
		return err
	}
	hello := decoder{rest: body}
	if k == kindConsole {
		return s.console(d, r, &hello)
	}
	if k != kindHello {
		return fmt.Errorf("%w: frame of kind %d before hello", errEncoding, k)
	}
	if err := checkVersion(&hello); err != nil {
		return err
	}
	d.c.SetReadDeadline(time.Time{})
	s.post(func() { s.attach(d) })
	for {
		orders, err := s.orders(r, &buf)
		if len(orders) > 0 {
			s.post(func() {
				for _, do := range orders {
					do()
				}
			})
		}
		if err != nil {
			return err
		}
	}
}

// ordersMax bounds the orders that the loop carries out at once: it has signals to hear.
const ordersMax = 16

// orders reads a frame, and those that have come with it: the loop is woken once for all, which
// costs more than most of them.
func (s *shim) orders(r *bufio.Reader, buf *[]byte) (orders []func(), err error) {
	for more := true; more && len(orders) < ordersMax; more = frameWaits(r) {
		k, body, err := readFrame(r, buf)
		if err != nil {
			return orders, err
		}
		do, err := s.order(k, body)
		if err != nil {
			return orders, err
		}
		orders = append(orders, do)
	}
	return orders, nil
}

// order decodes a frame and returns what the loop is to do.
func (s *shim) order(k kind, body []byte) (func(), error) {
	switch k {
	case kindStart:
		spec := new(Spec)
		if err := spec.decode(body); err != nil {
			return nil, err
		}
		return func() { s.startTask(spec) }, nil
	case kindKill:
		id, reason, err := decodeKill(body)
		return func() {
			if t := s.tasks[id]; t != nil {
				s.endTask(t, CauseKill, reason)
			}
		}, err
	case kindExtend:
		id, span, err := decodeExtend(body)
		return func() { s.extendTask(id, span) }, err
	case kindRenew:
		id, span, err := decodeExtend(body)
		return func() { s.renewTask(id, span) }, err
	case kindReach:
		number, id, err := decodeReach(body)
		return func() { s.ways.reach(number, id) }, err
	case kindAck:
		d := decoder{rest: body}
		id := d.string()
		return func() { s.acknowledge(id) }, d.end()
	case kindRetire:
		return func() { s.retire = true }, nil
	case kindExpire:
		span, err := decodeExpire(body)
		return func() { s.expire(span) }, err
	}
	return nil, fmt.Errorf("%w: frame of kind %d", errEncoding, k)
}

// attach makes d the daemon's connection, in place of the one before, and tells it
// everything that is known.
func (s *shim) attach(d *conn) {
	s.dismiss()
	s.daemon, s.retire = d, false
	d.send(kindWelcome, welcomeBody)
	for _, t := range s.tasks {
		d.send(kindTask, (&Task{ID: t.id, Running: true, Start: t.start}).append)
	}
	ends := make([]*Ended, 0, len(s.results))
	for _, e := range s.results {
		d.send(kindTask, (&Task{ID: e.ID, Start: e.Start}).append)
		ends = append(ends, e)
	}
	d.send(kindReady, nil)
	slices.SortFunc(ends, func(a, b *Ended) int { return int(a.End - b.End) })
	for _, e := range ends {
		s.tell(e)
	}
}

// dismiss closes the daemon's connection.
func (s *shim) dismiss() {
	if s.daemon != nil {
		s.daemon.close()
		s.daemon = nil
	}
}

// tell sends an end to the daemon, if one is connected.
func (s *shim) tell(e *Ended) {
	if s.daemon != nil {
		s.daemon.send(kindEnded, e.append)
	}
}

// acknowledge forgets an end that the daemon has saved.
func (s *shim) acknowledge(id string) {
	if s.results[id] == nil {
		return
	}
	delete(s.results, id)
	if err := s.keep(func() error { return s.records.acked(id) }); err != nil {
		s.log("task %s: %v: its end may be told again", id, err)
	}
}

// conn writes frames to a socket from a goroutine of its own, many at a time if
// they come faster than the other side reads. Both ends of the socket use it.
type conn struct {
	c    stream
	mu   sync.Mutex
	out  []byte // frames to be written
	last bool   // nothing follows them
	wake chan struct{}
	done chan struct{} // closed by close
	once sync.Once
}

// stream is what frames travel on: a socket of this machine, or a connection of package link.
type stream interface {
	net.Conn
	CloseWrite() error
}

func newConn(c stream) *conn {
	d := &conn{c: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go d.write()
	return d
}

// send appends a frame to what is to be written; flush has it written.
func (d *conn) send(k kind, body func([]byte) []byte) {
	d.mu.Lock()
	d.out = appendFrame(d.out, k, body)
	d.mu.Unlock()
}

// flush may be called on a nil conn.
func (d *conn) flush() {
	if d == nil {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// finish has what was sent written, and then tells the other side that this was all.
func (d *conn) finish() {
	d.mu.Lock()
	d.last = true
	d.mu.Unlock()
	d.flush()
}

func (d *conn) write() {
	var free []byte
	for {
		select {
		case <-d.wake:
		case <-d.done:
			return
		}
		d.mu.Lock()
		full, last := d.out, d.last
		d.out = free[:0]
		d.mu.Unlock()
		var err error
		if len(full) > 0 {
			_, err = d.c.Write(full)
		}
		if err == nil && last {
			if err = d.c.CloseWrite(); err == nil {
				return
			}
		}
		if err != nil {
			d.close() // the reader notices
			return
		}
		free = full
		if cap(free) > 1<<20 {
			free = nil
		}
	}
}

func (d *conn) close() {
	d.once.Do(func() {
		close(d.done)
		d.c.Close()
	})
}
