package p2p

import (
	"context"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/node/p2p/allowance"
)

// meteredHost is a host for protocols of libp2p's: what peers send on their streams is of
// their allowance.
type meteredHost struct {
	host.Host
	n     *Network
	class allowance.Class
}

// SetStreamHandler implements host.Host.
func (h *meteredHost) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s network.Stream) { serve(&meteredStream{Stream: s, n: h.n, class: h.class}) })
}

// SetStreamHandlerMatch implements host.Host.
func (h *meteredHost) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	h.Host.SetStreamHandlerMatch(id, match, func(s network.Stream) { serve(&meteredStream{Stream: s, n: h.n, class: h.class}) })
}

// NewStream implements host.Host.
func (h *meteredHost) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, p, ids...)
	if err != nil || h.class != allowance.Lookups || h.n.used == nil {
		return s, err
	}
	h.n.used.touch(p)
	return &usedStream{s, h.n}, nil
}

// meteredStream carries messages with their length before them. A read returns when the
// peer's allowance has what the messages cost that begin in it.
type meteredStream struct {
	network.Stream
	n     *Network
	class allowance.Class

	left   uint64 // of the message that is being read
	length uint64 // of the next one, as far as it is read
	shift  uint
	over   int // bytes that nothing was drawn for yet
}

// Read implements network.Stream.
func (s *meteredStream) Read(b []byte) (int, error) {
	k, err := s.Stream.Read(b)
	if k == 0 {
		return k, err
	}
	tokens := s.begun(b[:k])
	s.over += k
	tokens += s.over / allowance.TokenBytes
	s.over %= allowance.TokenBytes
	if tokens == 0 {
		return k, err
	}
	if s.class == allowance.Lookups {
		s.n.used.touch(s.Conn().RemotePeer())
	}
	wait, banned := s.n.Warden.draw(s.Stream.Conn(), s.class, float64(tokens), k)
	if banned != nil {
		return 0, banned
	}
	if wait > 0 && !s.n.sleep(min(wait, holdMax)) {
		return 0, s.n.ctx.Err()
	}
	return k, err
}

// begun counts the messages that begin in what was read.
func (s *meteredStream) begun(b []byte) (messages int) {
	for len(b) > 0 {
		if s.left > 0 {
			skip := min(s.left, uint64(len(b)))
			s.left -= skip
			b = b[skip:]
			continue
		}
		s.length |= uint64(b[0]&0x7f) << min(s.shift, 63)
		if b[0] < 0x80 {
			messages++
			s.left, s.length, s.shift = s.length, 0, 0
		} else {
			s.shift += 7
		}
		b = b[1:]
	}
	return messages
}
