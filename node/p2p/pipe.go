package p2p

import (
	"io"
	"os"
	"sync"
	"time"
)

// pipeMax bounds the bytes written and not yet read, as a socket buffer would.
const pipeMax = 256 << 10

// pipe is one direction of an in-process connection: a bounded buffer with
// deadlines. Reading and writing may go on concurrently.
type pipe struct {
	mu      sync.Mutex
	changed sync.Cond
	buf     []byte
	start   int   // what stands before it has been read
	err     error // of the reader; the writer gets io.ErrClosedPipe then
	ended   bool  // the writer is done

	latency func() time.Duration // of what is written at once; nil: none
	onWay   int                  // bytes at the end of buf that have not arrived
	arrive  []arrival            // of them, in order
	timer   *time.Timer          // of the first of these; nil before the first write

	readBy, writeBy deadline
}

// arrival is when so many bytes arrive.
type arrival struct {
	at    time.Time
	bytes int
}

func newPipe(latency func() time.Duration) *pipe {
	p := &pipe{latency: latency}
	p.changed.L = &p.mu
	return p
}

// Read waits for bytes. It returns io.EOF after the last byte of an ended pipe.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.err != nil:
			return 0, p.err
		case p.start < len(p.buf)-p.onWay:
			k := copy(b, p.buf[p.start:len(p.buf)-p.onWay])
			p.start += k
			if p.start == len(p.buf) {
				p.buf, p.start = p.buf[:0], 0
			}
			p.changed.Broadcast()
			return k, nil
		case p.ended && p.onWay == 0:
			return 0, io.EOF
		case p.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		}
		p.changed.Wait()
	}
}

// Write waits for room.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	written := 0
	for {
		switch {
		case p.err != nil || p.ended:
			return written, io.ErrClosedPipe
		case p.writeBy.passed:
			return written, os.ErrDeadlineExceeded
		}
		if room := pipeMax - (len(p.buf) - p.start); room > 0 {
			if p.start > 0 {
				p.buf = p.buf[:copy(p.buf, p.buf[p.start:])]
				p.start = 0
			}
			k := min(room, len(b)-written)
			p.buf = append(p.buf, b[written:written+k]...)
			written += k
			p.send(k)
			p.changed.Broadcast()
			if written == len(b) {
				return written, nil
			}
		}
		p.changed.Wait()
	}
}

// send lets the last k bytes arrive after the latency, and not before those before them.
func (p *pipe) send(k int) {
	if p.latency == nil {
		return
	}
	p.onWay += k
	now := time.Now()
	at := now.Add(p.latency())
	waiting := len(p.arrive)
	if waiting > 0 && at.Before(p.arrive[waiting-1].at) {
		at = p.arrive[waiting-1].at
	}
	p.arrive = append(p.arrive, arrival{at, k})
	switch {
	case p.timer == nil:
		p.timer = time.AfterFunc(at.Sub(now), p.arrived)
	case waiting == 0:
		p.timer.Reset(at.Sub(now))
	}
}

// arrived lets what has arrived be read.
func (p *pipe) arrived() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, k := time.Now(), 0
	for ; k < len(p.arrive) && !p.arrive[k].at.After(now); k++ {
		p.onWay -= p.arrive[k].bytes
	}
	p.arrive = append(p.arrive[:0], p.arrive[k:]...)
	if len(p.arrive) > 0 {
		p.timer.Reset(p.arrive[0].at.Sub(now))
	}
	p.changed.Broadcast()
}

// end is the writer's close: what was written can still be read.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.stop()
}

// fail is the reader's close: nothing is read or written any more.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.buf, p.start, p.onWay, p.arrive = nil, 0, 0, nil
	p.stop()
}

func (p *pipe) stop() {
	p.readBy.set(p, time.Time{})
	p.writeBy.set(p, time.Time{})
	p.changed.Broadcast()
}

// deadline is when waiting ends; the zero value never. Its fields are under pipe.mu.
type deadline struct {
	passed bool
	timer  *time.Timer
	serial int // of the latest set, so that an old timer does nothing
}

func (d *deadline) set(p *pipe, at time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.serial++
	d.passed = false
	if at.IsZero() {
		return
	}
	serial := d.serial
	d.timer = time.AfterFunc(time.Until(at), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if d.serial == serial {
			d.passed = true
			p.changed.Broadcast()
		}
	})
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are as in net.Conn.
func (c *memoryConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.read.mu.Lock()
	defer c.read.mu.Unlock()
	c.read.readBy.set(c.read, t)
	c.read.changed.Broadcast()
	return nil
}

func (c *memoryConn) SetWriteDeadline(t time.Time) error {
	c.write.mu.Lock()
	defer c.write.mu.Unlock()
	c.write.writeBy.set(c.write, t)
	c.write.changed.Broadcast()
	return nil
}
