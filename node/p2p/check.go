package p2p

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/reach"
)

// checking is how a node asks a member for its clock, and whether large packets pass: a
// frame each way, the answer as long as the question, and the time in front.
const checking = "/gridnode/check/1"

// checkLarge is the bytes of a question that fills several packets.
const checkLarge = 16 << 10

// serveCheck answers one question, by a clock.
func serveCheck(s network.Stream, now func() time.Time) error {
	_ = s.SetDeadline(time.Now().Add(checkTimeMax))
	question, err := wire.ReadFrame(bufio.NewReader(s))
	if err != nil {
		return err
	}
	if len(question) > checkLarge {
		return wire.Malformed("question of %d bytes, at most %d", len(question), checkLarge)
	}
	return wire.WriteFrame(s, append(binary.BigEndian.AppendUint64(nil, uint64(now().UnixMicro())), question...))
}

// Diagnose returns how this node is reached, and how it fares with every connected peer.
func (n *Network) Diagnose(ctx context.Context) *reach.Diagnosis {
	n.reach.TryAnnounced(ctx)
	d := &reach.Diagnosis{Status: n.reach.Status(), Listen: n.host.Network().ListenAddresses(), Told: len(n.join)}
	peers := n.Peers(ctx)
	d.Peers = make([]reach.Contact, len(peers))
	var wg sync.WaitGroup
	waiting := make(chan struct{}, checksMax)
	for i, p := range peers {
		d.Peers[i] = reach.Contact{Site: p.Site, Addr: p.Addr, Kind: p.Kind, Relay: p.Relay, Punched: p.Punched, Latency: p.Latency, Member: p.Member}
		if !p.Member {
			continue
		}
		wg.Go(func() {
			waiting <- struct{}{}
			n.check(ctx, &d.Peers[i])
			<-waiting
		})
	}
	wg.Wait()
	return d
}

// check asks a peer twice: with a packet that passes anywhere, and with several full ones.
func (n *Network) check(ctx context.Context, p *reach.Contact) {
	if p.Offset, p.Err = n.ask(ctx, p.Site, 1); p.Err != nil {
		return
	}
	p.Clock = true
	_, err := n.ask(ctx, p.Site, checkLarge)
	p.Stuck = err != nil
}

var errShortAnswer = errors.New("the answer does not fit the question")

// ask returns by how much a peer's clock is ahead, give or take half a round trip.
func (n *Network) ask(ctx context.Context, site grid.SiteID, bytes int) (time.Duration, error) {
	id, err := peer.Decode(string(site))
	if err != nil {
		return 0, fmt.Errorf("site %q: %w", site, err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeMax)
	defer cancel()
	s, err := n.host.NewStream(network.WithNoDial(ctx, "it is about this connection"), id, protocol.ID(checking))
	if err != nil {
		return 0, err
	}
	defer s.Reset()
	_ = s.SetDeadline(time.Now().Add(checkTimeMax))
	asked := n.cfg.Now()
	if err := wire.WriteFrame(s, make([]byte, bytes)); err != nil {
		return 0, err
	}
	answer, err := wire.ReadFrame(bufio.NewReaderSize(s, checkLarge))
	if err != nil {
		return 0, err
	}
	if len(answer) != 8+bytes {
		return 0, errShortAnswer
	}
	there := time.UnixMicro(int64(binary.BigEndian.Uint64(answer)))
	return there.Sub(asked.Add(n.cfg.Now().Sub(asked) / 2)), nil
}
