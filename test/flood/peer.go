package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"

	"gridnode/internal/wire"
)

// talker is a member of the federation that speaks its protocols without a daemon, and
// without a daemon's restraint.
type talker struct {
	user   int    // of the site that is flooded; 0: it is a peer
	socket string // the same: by which it gets there

	host  host.Host
	key   crypto.PrivKey
	proof []byte
	to    peer.AddrInfo
}

const greeting = protocol.ID("/gridnode/greeting/1")

// newTalker returns one whose connections come from an address of this machine. certify
// makes it a member.
func newTalker(from string, to peer.AddrInfo, certify func(public []byte) ([]byte, error)) (*talker, error) {
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := public.Raw()
	if err != nil {
		return nil, err
	}
	proof, err := certify(raw)
	if err != nil {
		return nil, err
	}
	dialer := func(multiaddr.Multiaddr) (tcp.ContextDialer, error) {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}, nil
	}
	h, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.Security(noise.ID, noise.New), libp2p.DisableMetrics(),
		libp2p.DisableRelay(), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport(), tcp.WithDialerForAddr(dialer)))
	if err != nil {
		return nil, err
	}
	t := &talker{host: h, key: key, proof: proof, to: to}
	h.SetStreamHandler(greeting, func(s network.Stream) { _ = t.greetOn(s); _ = s.Close() })
	return t, nil
}

// connect connects and shows that this is a member.
func (t *talker) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := t.host.Connect(ctx, t.to); err != nil {
		return err
	}
	s, err := t.host.NewStream(ctx, t.to.ID, greeting)
	if err != nil {
		return err
	}
	defer s.Close()
	return t.greetOn(s)
}

func (t *talker) greetOn(s network.Stream) error {
	_ = s.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := s.Write(append(binary.AppendUvarint(nil, uint64(len(t.proof))), t.proof...)); err != nil {
		return err
	}
	_, err := wire.ReadFrame(bufio.NewReader(s))
	return err
}

func (t *talker) connected() bool {
	return t.host.Network().Connectedness(t.to.ID) == network.Connected
}

// open opens a stream of a protocol on the connection that there is.
func (t *talker) open(ctx context.Context, id string) (network.Stream, error) {
	return t.host.NewStream(network.WithNoDial(ctx, "flood"), t.to.ID, protocol.ID(id))
}

// frames returns messages as they travel.
func frames(n int, message func(i int) wire.Message) ([]byte, error) {
	var all []byte
	for i := range n {
		frame, err := wire.Encode(message(i))
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		all = append(all, frame...)
	}
	return all, nil
}
