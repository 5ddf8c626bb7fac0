package p2p

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
)

// inbound is what peers use of this node.
type inbound struct {
	mu     sync.Mutex
	closed bool
	peers  map[peer.ID]*source
}

// source is one peer as the sender of messages.
type source struct {
	id      peer.ID
	streams [3]int // by use, under inbound.mu
	decode  sync.Mutex
}

// use is what a stream is for. Each use has its own bound, so that somebody who
// follows much output does not shut out the messages of the cores.
type use uint8

const (
	forMessages use = iota
	forDriver       // Handle
	forTasks        // HandleTasks
)

var streamsMax = [...]int{forMessages: messageStreamsMax, forDriver: driverStreamsMax, forTasks: taskStreamsMax}

func (s *source) idle() bool { return s.streams == [len(s.streams)]int{} }

// enter admits a stream, or resets it because its peer has too many.
func (n *Network) enter(s network.Stream, u use) (*source, bool) {
	id := s.Conn().RemotePeer()
	n.inbound.mu.Lock()
	defer n.inbound.mu.Unlock()
	src := n.inbound.peers[id]
	if src == nil && len(n.inbound.peers) >= peersMax {
		n.forgetSources()
	}
	if n.inbound.closed || src == nil && len(n.inbound.peers) >= peersMax || src != nil && src.streams[u] >= streamsMax[u] {
		n.stats.refused.Add(1)
		s.Reset() // no fault: much to do at a time is none, and streams have an allowance of their own
		return nil, false
	}
	if src == nil {
		src = &source{id: id}
		n.inbound.peers[id] = src
	}
	n.wg.Add(1)
	if src.idle() {
		n.host.ConnManager().TagPeer(id, tagReceive, tagWeight)
	}
	src.streams[u]++
	return src, true
}

func (n *Network) leave(src *source, u use) {
	defer n.wg.Done()
	n.inbound.mu.Lock()
	defer n.inbound.mu.Unlock()
	src.streams[u]--
	if src.idle() {
		n.host.ConnManager().UntagPeer(src.id, tagReceive)
	}
}

// forgetSources drops the peers without streams.
func (n *Network) forgetSources() {
	for id, src := range n.inbound.peers {
		if src.idle() {
			delete(n.inbound.peers, id)
		}
	}
}

// receive returns the handler of a core's protocol.
func (n *Network) receive(p *wire.Protocol) network.StreamHandler {
	return func(s network.Stream) {
		src, ok := n.enter(s, forMessages)
		if !ok {
			return
		}
		defer n.leave(src, forMessages)
		err := n.readFrames(p, src, s)
		switch {
		case errors.Is(err, wire.ErrMalformed):
			n.stats.malformed()
			if timedOut(err) {
				n.Warden.slow(s.Conn())
			} else {
				n.Warden.fault(s.Conn())
			}
			n.log.Debug("malformed message", "from", src.id, "protocol", p.ID, "error", err)
		case errors.Is(err, errBusy):
			n.stats.busy.Add(1)
			n.log.Warn("the node is busy: a stream was reset", "from", src.id, "protocol", p.ID)
		}
		end(s, err)
	}
}

// errBusy says that there was no room for a message within busyTimeMax.
var errBusy = errors.New("no room for a message")

// readFrames delivers the messages of a stream until it ends, and returns why it
// did not end cleanly.
func (n *Network) readFrames(p *wire.Protocol, src *source, s network.Stream) error {
	from := grid.SiteID(src.id.String())
	class := allowance.Of(p.ID)
	r := bufio.NewReader(s)
	var deadline time.Time
	for {
		if r.Buffered() == 0 {
			deadline = time.Now().Add(streamIdleMax)
			s.SetReadDeadline(deadline)
			if _, err := r.Peek(1); err != nil {
				if err == io.EOF {
					return nil
				}
				return err // the peer went away, or was silent for long
			}
		}
		// Setting a deadline costs more than decoding a small frame, so that frames
		// which arrived together share one.
		if now := time.Now(); deadline.Sub(now) > frameTimeMax || deadline.Sub(now) < frameTimeMax/2 {
			deadline = now.Add(frameTimeMax)
			s.SetReadDeadline(deadline)
		}
		frame, err := wire.ReadFrame(r)
		if err != nil {
			return err
		}
		n.used.touch(src.id)
		if err := n.Warden.spend(s.Conn(), class, allowance.Cost(len(frame)), len(frame)); err != nil {
			return err
		}
		if allowance.Carries(wire.KindOf(frame)) {
			if err := n.Warden.spend(s.Conn(), allowance.Signed, 1, 0); err != nil {
				return err
			}
		}
		message, span, err := n.Warden.decode(p, src, from, frame)
		if err != nil {
			return err
		}
		n.stats.received(message.MessageKind(), len(frame))
		if err := n.deliver(&grid.Delivery{From: from, Message: message, Span: span}); err != nil {
			return err
		}
	}
}

// deliver hands a message to the node, waiting up to busyTimeMax for room.
func (n *Network) deliver(d *grid.Delivery) error {
	for waited := time.Duration(0); !n.cfg.Deliver(d); waited += busyPoll {
		if waited >= busyTimeMax {
			return errBusy
		}
		if !n.sleep(busyPoll) {
			return n.ctx.Err()
		}
	}
	return nil
}

// sleep returns false when the network is closing.
func (n *Network) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}
