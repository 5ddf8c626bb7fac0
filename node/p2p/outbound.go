package p2p

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
)

// outbounds are the peers we have something to say to.
type outbounds struct {
	mu    sync.Mutex
	peers map[grid.SiteID]*outbound
}

// outbound is the queue of one peer and the streams that carry it. Its goroutine
// ends when nothing was sent for sendIdleMax.
type outbound struct {
	n       *Network
	site    grid.SiteID
	peer    peer.ID
	wake    chan struct{} // holds a token when the queue got its first message
	waiting []outgoing    // under outbounds.mu
	writing bool          // under outbounds.mu: the goroutine has a batch

	// The goroutine's own.
	streams map[*wire.Protocol]network.Stream
	paces   map[allowance.Class]*allowance.Bucket // what the peer will read of us
	pause   time.Duration                         // after the latest failed dial; 0 if none failed
	until   time.Time                             // no dial before this
}

// outgoing is a message on its way, with the span that it names.
type outgoing struct {
	message grid.Message
	span    uint64
}

// Send queues a message for a site. A message to this node itself is delivered
// without the network and is not counted. span is the sender's of the trace of the job that
// the message is about, 0 if it is not traced.
func (n *Network) Send(to grid.SiteID, message grid.Message, span uint64) {
	if to == n.self {
		n.cfg.Report(&grid.Delivery{From: to, Message: message, Span: span})
		return
	}
	if n.protocol[message.MessageKind()] == nil {
		n.log.Error("a message is of no protocol", "kind", message.MessageKind())
		n.undelivered(to, message)
		return
	}
	if !n.enqueue(to, outgoing{message, span}) {
		n.undelivered(to, message)
	}
}

func (n *Network) enqueue(to grid.SiteID, message outgoing) bool {
	n.out.mu.Lock()
	defer n.out.mu.Unlock()
	o := n.out.peers[to]
	if o == nil {
		id, err := peer.Decode(string(to))
		if err != nil || len(n.out.peers) >= peersMax || n.ctx.Err() != nil {
			return false
		}
		o = &outbound{n: n, site: to, peer: id, wake: make(chan struct{}, 1), streams: make(map[*wire.Protocol]network.Stream), paces: make(map[allowance.Class]*allowance.Bucket)}
		n.out.peers[to] = o
		n.wg.Go(o.run)
	}
	if len(o.waiting) >= outboundMax {
		return false
	}
	o.waiting = append(o.waiting, message)
	if len(o.waiting) == 1 {
		o.wake <- struct{}{} // empty: the goroutine took the previous token with the queue
	}
	return true
}

func (n *Network) undelivered(to grid.SiteID, message grid.Message) {
	n.stats.undelivered.Add(1)
	n.cfg.Report(&grid.Undelivered{To: to, Message: message})
}

// take returns what waits, waiting for it up to sendIdleMax, or nil when the
// outbound has left the table: because it was idle or the network is closing.
func (o *outbound) take(spare []outgoing) []outgoing {
	idle := time.NewTimer(sendIdleMax)
	defer idle.Stop()
	o.n.out.mu.Lock()
	o.writing = false
	o.n.out.mu.Unlock()
	for {
		select {
		case <-o.wake:
			o.n.out.mu.Lock()
			defer o.n.out.mu.Unlock()
			o.writing = true
			batch := o.waiting
			o.waiting = spare[:0]
			return batch
		case <-idle.C:
			o.n.out.mu.Lock()
			if len(o.waiting) == 0 {
				delete(o.n.out.peers, o.site)
				o.n.out.mu.Unlock()
				return nil
			}
			o.n.out.mu.Unlock()
		case <-o.n.ctx.Done():
			return nil
		}
	}
}

func (o *outbound) run() {
	defer func() {
		for _, s := range o.streams {
			s.Close()
		}
		o.n.host.ConnManager().UntagPeer(o.peer, tagSend)
	}()
	var batch []outgoing
	for {
		batch = o.take(batch)
		if batch == nil {
			return
		}
		for rest := batch; len(rest) > 0; {
			k := min(len(rest), batchMax)
			o.send(rest[:k])
			rest = rest[k:]
		}
		clear(batch)
		if o.n.ctx.Err() != nil {
			return
		}
	}
}

// send writes a batch, the messages of each protocol on its stream.
func (o *outbound) send(batch []outgoing) {
	o.leaveRelay()
	for _, p := range o.n.cfg.Protocols {
		var frames []byte
		var carried []grid.Message
		var sizes []int
		for i := range batch {
			m := batch[i].message
			if o.n.protocol[m.MessageKind()] != p {
				continue
			}
			frame, err := encode(m, batch[i].span)
			if err != nil {
				o.n.log.Error("a message cannot be encoded", "kind", wire.KindName(m.MessageKind()), "error", err)
				o.n.undelivered(o.site, m)
				continue
			}
			frames = append(frames, frame...)
			carried = append(carried, m)
			sizes = append(sizes, len(frame))
			if len(frames) > writeMax {
				o.carry(p, frames, carried, sizes)
				frames, carried, sizes = frames[:0], carried[:0], sizes[:0]
			}
		}
		if len(carried) > 0 {
			o.carry(p, frames, carried, sizes)
		}
	}
}

// leaveRelay closes the streams that lead through a relay once there is a direct
// connection: a stream that is not used would keep the relayed one.
func (o *outbound) leaveRelay() {
	for p, s := range o.streams {
		if o.n.reach.Outdated(s) {
			_ = s.Close()
			delete(o.streams, p)
		}
	}
}

// carry writes frames on the stream of p. A stream that has died since its last
// use is replaced once; the frames may then arrive twice or in part, and are no
// longer undelivered for certain.
func (o *outbound) carry(p *wire.Protocol, frames []byte, messages []grid.Message, sizes []int) {
	attempted := false
	for range 2 {
		s, kept := o.streams[p]
		if !kept {
			var err error
			if s, err = o.open(p); err != nil {
				if attempted {
					o.n.stats.lost.Add(int64(len(messages)))
					return
				}
				o.n.log.Debug("messages undelivered", "to", o.site, "messages", len(messages), "error", err)
				for _, m := range messages {
					o.n.undelivered(o.site, m)
				}
				return
			}
			o.streams[p] = s
		}
		o.keepPace(allowance.Of(p.ID), messages, sizes)
		s.SetWriteDeadline(time.Now().Add(writeTimeMax))
		attempted = true
		o.n.used.touch(o.peer)
		_, err := s.Write(frames)
		if err == nil {
			o.n.stats.sent(messages, sizes)
			return
		}
		if timedOut(err) {
			o.n.Warden.slow(s.Conn())
		}
		s.Reset()
		delete(o.streams, p)
		if !kept {
			break // a fresh stream failed: once is enough
		}
	}
	o.n.stats.lost.Add(int64(len(messages)))
}

// keepPace waits until the peer's allowances have what messages cost.
func (o *outbound) keepPace(c allowance.Class, messages []grid.Message, sizes []int) {
	now := time.Now()
	tokens, signed := 0.0, 0.0
	for i, size := range sizes {
		tokens += allowance.Cost(size)
		if allowance.Carries(messages[i].MessageKind()) {
			signed++
		}
	}
	wait := o.pace(now, c).Draw(now, tokens)
	if signed > 0 {
		wait = max(wait, o.pace(now, allowance.Signed).Draw(now, signed))
	}
	if wait > 0 {
		o.n.sleep(wait)
	}
}

// pace returns what the peer will read of us of a class.
func (o *outbound) pace(now time.Time, c allowance.Class) *allowance.Bucket {
	b := o.paces[c]
	if b == nil {
		fresh := o.n.Warden.lines[c].Pace(now)
		b = &fresh
		o.paces[c] = b
	}
	return b
}

// errPause is why nothing is dialled for a while after a failed dial.
var errPause = errors.New("the peer did not answer a moment ago")

// open opens a stream, dialling the peer unless a dial failed a moment ago. A connection that is
// there may have been closed by the peer, which had too many: then another one is made.
func (o *outbound) open(p *wire.Protocol) (network.Stream, error) {
	kept := o.n.host.Network().Connectedness(o.peer) == network.Connected
	s, err := o.tryOpen(p)
	if err != nil && kept && o.n.host.Network().Connectedness(o.peer) != network.Connected {
		return o.tryOpen(p)
	}
	return s, err
}

func (o *outbound) tryOpen(p *wire.Protocol) (network.Stream, error) {
	n := o.n
	if n.host.Network().Connectedness(o.peer) != network.Connected {
		if time.Now().Before(o.until) {
			return nil, errPause
		}
		n.forgetFailures(o.peer)
		ctx, cancel := context.WithTimeout(n.ctx, dialTimeMax)
		err := n.routed.Connect(ctx, peer.AddrInfo{ID: o.peer})
		cancel()
		if err != nil {
			o.pause = min(max(2*o.pause, redialMin), redialMax)
			o.until = time.Now().Add(o.pause)
			return nil, err
		}
	}
	o.pause = 0
	n.host.ConnManager().TagPeer(o.peer, tagSend, tagWeight)
	ctx, cancel := context.WithTimeout(n.ctx, dialTimeMax)
	defer cancel()
	return n.host.NewStream(network.WithNoDial(ctx, "just connected"), o.peer, protocol.ID(p.ID))
}

// Connections with traffic of the cores are trimmed last.
const (
	tagSend    = "gridnode-send"
	tagReceive = "gridnode-receive"
	tagWeight  = 50
)

func encode(m grid.Message, span uint64) ([]byte, error) {
	w, ok := m.(wire.Message)
	if !ok {
		return nil, errors.New("it has no wire form")
	}
	return wire.EncodeTraced(w, span)
}

// Flush waits until no message waits to be written, or ctx ends.
func (n *Network) Flush(ctx context.Context) {
	tick := time.NewTicker(busyPoll)
	defer tick.Stop()
	for n.out.busy() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// busy reports whether a message waits or is being written.
func (all *outbounds) busy() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.peers {
		if len(o.waiting) > 0 || o.writing {
			return true
		}
	}
	return false
}
