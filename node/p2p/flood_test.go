package p2p

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dhtpb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
)

// flooded starts a node and a peer that will flood it, and returns with them the bans of
// the node once it has one, or none after a minute.
func flooded(t *testing.T) (good, bad *node, bans func() []allowance.Ban) {
	nodes := fleet(t, &Memory{}, 2)
	t.Cleanup(func() { closeAll(nodes) })
	return nodes[0], nodes[1], func() []allowance.Ban {
		for range 60 {
			if list := nodes[0].Warden.Bans(); len(list) > 0 {
				time.Sleep(time.Second) // for the connection to end
				return list
			}
			time.Sleep(time.Second)
		}
		return nil
	}
}

func TestPeerAboveItsAllowanceIsReadSlowlyAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad, _ := flooded(t)
		line := allowance.Table[allowance.Other]
		n := int(line.Burst + line.Rate/20)
		n -= n % 100
		began := time.Now()
		go func() {
			s := stream(t, bad, good, chat.ID)
			for range n / 100 {
				s.Write(bytes.Repeat(frame(1, "flood"), 100))
			}
		}()
		good.await(func(in []grid.Input) bool { return len(in) == n })
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("%d messages took %v, want a second", n, took)
		}
		if good.Stats().Throttled == 0 {
			t.Error("nothing counted as throttled")
		}
		if len(good.Warden.Bans()) > 0 {
			t.Errorf("banned within the patience: %v", good.Warden.Bans())
		}
	})
}

// TestSenderKeepsToTheAllowance: whoever sends as this program does is never above it.
func TestSenderKeepsToTheAllowance(t *testing.T) {
	for kind, n := range map[grid.Kind]int{1: int(allowance.Table[allowance.Other].Rate), wire.DirectoryPublish: 2 * int(allowance.Table[allowance.Signed].Rate)} {
		synctest.Test(t, func(t *testing.T) {
			good, bad, _ := flooded(t)
			const rounds = 12
			for range rounds {
				for range n {
					bad.Send(good.Self(), &note{kind, "burst"}, 0)
				}
				time.Sleep(1500 * time.Millisecond)
			}
			good.await(func(in []grid.Input) bool { return len(in) == rounds*n })
			if s := good.Stats(); s.Throttled > 0 || s.Banned > 0 {
				t.Errorf("kind %d: %d messages were read late, %d bans", kind, s.Throttled, s.Banned)
			}
		})
	}
}

func TestPeerThatGoesOnIsBanned(t *testing.T) {
	for _, tt := range []struct {
		name  string
		why   string
		flood func(ctx context.Context, t *testing.T, bad, good *node)
	}{
		{"messages", "allowance of other", func(ctx context.Context, t *testing.T, bad, good *node) {
			s := stream(t, bad, good, chat.ID)
			for ctx.Err() == nil {
				if _, err := s.Write(bytes.Repeat(frame(1, "flood"), 100)); err != nil {
					return
				}
			}
		}},
		{"quotes", "allowance of quotes", func(ctx context.Context, t *testing.T, bad, good *node) {
			s := stream(t, bad, good, chat.ID)
			for ctx.Err() == nil {
				if _, err := s.Write(frame(wire.DirectoryPublish, "flood")); err != nil {
					return
				}
				time.Sleep(time.Millisecond) // below what is allowed of other messages
			}
		}},
		{"look-ups", "allowance of look-ups", func(ctx context.Context, t *testing.T, bad, good *node) {
			s, err := bad.host.NewStream(t.Context(), good.host.ID(), bad.kademlia())
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				for b := make([]byte, 1<<16); ; {
					if _, err := s.Read(b); err != nil {
						return
					}
				}
			}()
			body, _ := proto.Marshal(dhtpb.NewMessage(dhtpb.Message_FIND_NODE, []byte("key"), 0))
			for ctx.Err() == nil {
				if _, err := s.Write(append([]byte{byte(len(body))}, body...)); err != nil {
					return
				}
			}
		}},
		{"streams", "allowance of streams", func(ctx context.Context, t *testing.T, bad, good *node) {
			for ctx.Err() == nil {
				s, err := bad.host.NewStream(ctx, good.host.ID(), protocol.ID(chat.ID))
				if err != nil {
					return
				}
				s.Reset()
				time.Sleep(time.Millisecond) // the time of the test passes by nothing else
			}
		}},
		{"malformed", "allowance of faults", func(ctx context.Context, t *testing.T, bad, good *node) {
			for ctx.Err() == nil {
				s, err := bad.host.NewStream(ctx, good.host.ID(), protocol.ID(chat.ID))
				if err != nil {
					return
				}
				s.Write([]byte{0})
				s.Read(make([]byte, 1))
			}
		}},
		{"half messages", "half sent", func(ctx context.Context, t *testing.T, bad, good *node) {
			for ctx.Err() == nil {
				s, err := bad.host.NewStream(ctx, good.host.ID(), protocol.ID(chat.ID))
				if err != nil {
					return
				}
				s.Write(frame(1, "slow")[:3])
				s.Read(make([]byte, 1))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good, bad, bans := flooded(t)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { tt.flood(ctx, t, bad, good); close(ended) }()
				list := bans()
				cancel()
				if len(list) != 1 || list[0].Peer != string(bad.Self()) || !strings.Contains(list[0].Why, tt.why) {
					t.Fatalf("bans %+v, want one of %s for %q", list, bad.Self(), tt.why)
				}
				if c := good.host.Network().Connectedness(bad.host.ID()); c == network.Connected {
					t.Error("the banned peer is still connected")
				}
				<-ended
				if connects(bad, good) {
					t.Error("a banned peer connects again")
				}
				if !good.Warden.Unban(string(bad.Self())) || !connects(bad, good) {
					t.Error("it does not connect although its ban was lifted")
				}
			})
		})
	}
}

// connects reports whether one node can connect to another, and stays so.
func connects(from, to *node) bool {
	from.forgetFailures(to.host.ID())
	err := from.host.Connect(context.Background(), peer.AddrInfo{ID: to.host.ID(), Addrs: to.host.Addrs()})
	time.Sleep(time.Second)
	return err == nil && to.host.Network().Connectedness(from.host.ID()) == network.Connected
}

// TestFloodHurtsOnlyWhoFloods: nothing that an honest peer sends meanwhile is lost or
// read late.
func TestFloodHurtsOnlyWhoFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		good, bad, honest := nodes[0], nodes[1], nodes[2]
		go func() {
			s := stream(t, bad, good, chat.ID)
			for {
				if _, err := s.Write(bytes.Repeat(frame(1, "flood"), 100)); err != nil {
					return
				}
			}
		}()
		for i := range 100 {
			honest.Send(good.Self(), &note{2, fmt.Sprint("honest ", i)}, 0)
			time.Sleep(100 * time.Millisecond)
		}
		good.await(func(in []grid.Input) bool {
			got := 0
			for _, text := range texts(in) {
				if strings.HasPrefix(text, "honest") {
					got++
				}
			}
			return got == 100
		})
		if u := good.Warden.Usage(honest.Self()); u.Held != 0 || u.Messages < 100 {
			t.Errorf("of the honest peer %+v", u)
		}
		if list := good.Warden.Bans(); len(list) != 1 || list[0].Peer != string(bad.Self()) {
			t.Errorf("bans %+v", list)
		}
	})
}

func TestMeteredStreamCountsMessages(t *testing.T) {
	var all []byte
	for _, size := range []int{0, 1, 127, 128, 300, 5000} {
		prefix := []byte{byte(size)}
		if size > 127 {
			prefix = []byte{byte(size) | 0x80, byte(size >> 7)}
		}
		all = append(append(all, prefix...), bytes.Repeat([]byte{0xff}, size)...)
	}
	for _, chunk := range []int{1, 2, 3, 100, len(all)} {
		s, got := meteredStream{}, 0
		for rest := all; len(rest) > 0; {
			k := min(chunk, len(rest))
			got += s.begun(rest[:k])
			rest = rest[k:]
		}
		if got != 6 {
			t.Errorf("in reads of %d bytes %d messages, want 6", chunk, got)
		}
	}
}
