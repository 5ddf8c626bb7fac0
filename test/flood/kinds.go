package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	dhtpb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
	"gridnode/market"
)

// kind is a flood: what one flooder does while it is connected, until ctx ends or its
// connection does. sent counts messages, streams or connections.
type kind struct {
	name  string
	what  string
	flood func(ctx context.Context, t *talker, sent *atomic.Int64) error
}

const batch = 256 // messages that are written at once

var kinds = []kind{
	{"negotiate", "requests for a guarantee", floodNegotiations},
	{"lease", "requests for processors", func(ctx context.Context, t *talker, sent *atomic.Int64) error {
		return t.pour(ctx, lease.Protocol.ID, sent, func(i int) wire.Message {
			return &lease.Request{Number: rand.Uint64() >> 1, Processors: 1, Span: grid.Hour, TTL: 1, Sink: t.site(), Subject: grid.JobID{Hi: rand.Uint64(), Lo: uint64(i + 1)}}
		})
	}},
	{"directory", "signed quotes and scans", floodDirectory},
	{"gossip", "load reports", func(ctx context.Context, t *talker, sent *atomic.Int64) error {
		return t.pour(ctx, directory.Gossip.ID, sent, func(i int) wire.Message {
			return &directory.LoadReport{Load: directory.Load{Site: t.site(), Free: 1, Widest: 1, Sequence: uint64(i + 1), Issued: grid.Time(time.Now().UnixMicro())}}
		})
	}},
	{"provider", "provider records of the DHT", floodProviders},
	{"stream", "streams, each with one message", floodStreams},
	{"connection", "connections, with and without a handshake", floodConnections},
	{"slow-reader", "half messages, and answers that are not read", floodSlowly},
	{local, "jobs of other users of the site, through its socket", floodSubmissions}, // the last, as its jobs stay there
}

func (t *talker) site() grid.SiteID { return grid.SiteID(t.host.ID().String()) }

// negotiation asks for what is let go of again at once.
func negotiation(job, request uint64) *market.Negotiate {
	return &market.Negotiate{
		Task: grid.TaskID{Job: grid.JobID{Hi: job, Lo: request}, Epoch: 1}, Request: request, Validity: grid.Second,
		Processors: 1, Work: grid.Work{Instructions: 1000}, Deadline: grid.Never, CostMax: grid.CreditsMax,
	}
}

func floodNegotiations(ctx context.Context, t *talker, sent *atomic.Int64) error {
	return t.pour(ctx, market.Protocol.ID, sent, func(i int) wire.Message { return negotiation(rand.Uint64(), uint64(i+1)) })
}

// pour writes messages to one stream as fast as they are taken.
func (t *talker) pour(ctx context.Context, id string, sent *atomic.Int64, message func(i int) wire.Message) error {
	s, err := t.open(ctx, id)
	if err != nil {
		return err
	}
	defer s.Reset()
	for n := 0; ctx.Err() == nil; n += batch {
		all, err := frames(batch, func(i int) wire.Message { return message(n + i) })
		if err != nil {
			return err
		}
		if err := t.write(s, all); err != nil {
			return err
		}
		sent.Add(batch)
	}
	return nil
}

func (t *talker) write(s network.Stream, b []byte) error {
	_ = s.SetWriteDeadline(time.Now().Add(20 * time.Second))
	_, err := s.Write(b)
	return err
}

// floodDirectory sends quotes, each another one with a good signature, and asks for pages.
func floodDirectory(ctx context.Context, t *talker, sent *atomic.Int64) error {
	const distinct = 1000
	quotes := make([]*directory.Quote, distinct)
	for i := range quotes {
		payload, err := proto.Marshal(&wirepb.Quote{
			Site: string(t.site()), Name: []byte("flood"), Processors: 1, Speed: 1000, Bandwidth: 1000, Sequence: uint64(i + 1),
			Issued: time.Now().UnixMicro(), Lifetime: int64(grid.Minute),
		})
		if err != nil {
			return err
		}
		sealed, err := wire.Seal(t.key, directory.Domain, payload)
		if err != nil {
			return err
		}
		if quotes[i], err = directory.OpenQuote(sealed); err != nil {
			return err
		}
	}
	return t.pour(ctx, directory.NewProtocol(directory.OpenQuote).ID, sent, func(i int) wire.Message {
		if i%2 == 0 {
			return &directory.Scan{Token: uint64(i + 1), Limit: directory.PageMax}
		}
		return &directory.Publish{Quote: quotes[i/2%distinct], Copies: make([]directory.Copy, 1)}
	})
}

// kademlia returns the protocol of the DHT of the site that is flooded.
func (t *talker) kademlia() protocol.ID {
	ids, _ := t.host.Peerstore().GetProtocols(t.to.ID)
	for _, id := range ids {
		if strings.HasSuffix(string(id), "/kad/1.0.0") {
			return id
		}
	}
	return "" // it has not said yet what it speaks
}

func floodProviders(ctx context.Context, t *talker, sent *atomic.Int64) error {
	s, err := t.open(ctx, string(t.kademlia()))
	if err != nil {
		return err
	}
	defer s.Reset()
	me := dhtpb.Message_Peer{Id: []byte(t.host.ID()), Addrs: [][]byte{multiaddr.StringCast("/ip4/127.0.0.1/tcp/1").Bytes()}}
	key := make([]byte, 34)
	for ctx.Err() == nil {
		var all []byte
		for range batch {
			key[0], key[1] = 0x12, 32
			for i := 2; i < len(key); i += 8 {
				copy(key[i:], protowire.AppendFixed64(nil, rand.Uint64()))
			}
			m := dhtpb.NewMessage(dhtpb.Message_ADD_PROVIDER, key, 0)
			m.ProviderPeers = []*dhtpb.Message_Peer{&me}
			body, err := proto.Marshal(m)
			if err != nil {
				return err
			}
			all = append(protowire.AppendVarint(all, uint64(len(body))), body...)
		}
		if err := t.write(s, all); err != nil {
			return err
		}
		sent.Add(batch)
	}
	return nil
}

func floodStreams(ctx context.Context, t *talker, sent *atomic.Int64) error {
	for i := uint64(1); ctx.Err() == nil; i++ {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		s, err := t.open(once, market.Protocol.ID)
		cancel()
		if err != nil {
			return err
		}
		all, err := frames(1, func(int) wire.Message { return negotiation(rand.Uint64(), i) })
		if err != nil {
			return err
		}
		_ = t.write(s, all)
		_ = s.Reset()
		sent.Add(1)
	}
	return nil
}

// floodConnections connects and leaves again and again, and keeps bare connections open.
func floodConnections(ctx context.Context, t *talker, sent *atomic.Int64) error {
	target, err := tcpAddress(t.to.Addrs[0])
	if err != nil {
		return err
	}
	from := t.from()
	go func() {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		for ctx.Err() == nil {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: time.Second}
			c, err := d.DialContext(ctx, "tcp", target)
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			sent.Add(1)
			if open = append(open, c); len(open) > 100 {
				open[0].Close()
				open = open[1:]
			}
		}
	}()
	for ctx.Err() == nil {
		_ = t.host.Network().ClosePeer(t.to.ID)
		once, cancel := context.WithTimeout(ctx, time.Second)
		err := t.host.Connect(once, t.to)
		cancel()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // and again
			continue
		}
		sent.Add(1)
	}
	return nil
}

// floodSlowly sends half messages on many streams, and requests whose answers it does not
// read.
func floodSlowly(ctx context.Context, t *talker, sent *atomic.Int64) error {
	t.host.SetStreamHandler(protocol.ID(market.Protocol.ID), func(s network.Stream) {
		<-ctx.Done()
		_ = s.Reset()
	})
	for range 12 {
		go func() {
			for ctx.Err() == nil {
				s, err := t.open(ctx, lease.Protocol.ID)
				if err != nil {
					return
				}
				_, _ = s.Write([]byte{100, 1, 2})
				sent.Add(1)
				_, _ = io.Copy(io.Discard, s)
				_ = s.Reset()
			}
		}()
		time.Sleep(200 * time.Millisecond)
	}
	s, err := t.open(ctx, market.Protocol.ID)
	if err != nil {
		return err
	}
	defer s.Reset()
	for i := uint64(1); ctx.Err() == nil; i++ { // well within what it may ask for
		all, err := frames(20, func(int) wire.Message { return negotiation(rand.Uint64(), i) })
		if err != nil {
			return err
		}
		if err := t.write(s, all); err != nil {
			return err
		}
		sent.Add(20)
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}
