package p2p

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/p2p/allowance"
)

// frame returns the frame of a valid note.
func frame(kind grid.Kind, text string) []byte {
	b, err := wire.Encode(&note{kind, text})
	if err != nil {
		panic(err)
	}
	return b
}

// stream opens a stream as a hostile peer would, and fails the test if it cannot.
func stream(t testing.TB, from, to *node, id string) network.Stream {
	t.Helper()
	s, err := from.host.NewStream(t.Context(), to.host.ID(), protocol.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMalformedBytesChangeNothing(t *testing.T) {
	random := make([]byte, 3000)
	rand.NewChaCha8(sha256.Sum256([]byte("random"))).Read(random)
	long := binary.AppendUvarint(nil, wire.FrameMax+1)
	valid := frame(1, "hello")
	cases := []struct {
		name  string
		bytes []byte
	}{
		{"random", append([]byte{200}, random...)},
		{"endless length", bytes.Repeat([]byte{0xff}, 20)},
		{"empty frame", []byte{0}},
		{"oversize", append(long, make([]byte, wire.FrameMax+1)...)},
		{"truncated", valid[:len(valid)-2]},
		{"length only", []byte{100}},
		{"no envelope", []byte{3, 0xff, 0xff, 0xff}},
		{"unknown kind", frame(77, "hello")},
		{"kind of another protocol", frame(3, "hello")},
		{"body that its decoder refuses", frame(1, strings.Repeat("x", noteMax+1))},
	}
	for _, protocol := range []*wire.Protocol{chat, post} {
		for _, tt := range cases {
			if protocol == post && strings.HasPrefix(tt.name, "kind") {
				continue // that one is valid there
			}
			t.Run(protocol.ID[10:19]+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					nodes := fleet(t, &Memory{}, 2)
					defer closeAll(nodes)
					good, bad := nodes[0], nodes[1]
					s := stream(t, bad, good, protocol.ID)
					s.Write(tt.bytes)
					s.CloseWrite()
					s.SetReadDeadline(time.Now().Add(time.Minute))
					if _, err := s.Read(make([]byte, 1)); !strings.Contains(fmt.Sprint(err), "reset") {
						t.Errorf("the stream ended with %v, want a reset", err)
					}
					synctest.Wait()
					if c := good.Counter(); c.Malformed != 1 {
						t.Errorf("%d malformed counted, want 1", c.Malformed)
					}
					if got := good.inputs(); len(got) != 0 {
						t.Errorf("inputs %v", describe(got))
					}
					// And the peer may go on with what is well-formed.
					bad.Send(good.Self(), &note{1, "fine"}, 0)
					good.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"fine"}) })
				})
			})
		}
	}
}

func TestSlowFrameIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		s := stream(t, nodes[1], nodes[0], chat.ID)
		whole := frame(1, "slow")
		s.Write(append(whole, whole[:4]...))
		began := time.Now()
		s.Read(make([]byte, 1))
		if took := time.Since(began); took > 2*frameTimeMax {
			t.Errorf("half a frame held a stream for %v", took)
		}
		nodes[0].await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"slow"}) })
	})
}

func TestStreamsPerPeerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		good, bad := nodes[0], nodes[1]
		var open []network.Stream
		for range messageStreamsMax {
			s := stream(t, bad, good, chat.ID)
			s.Write(frame(1, "x"))
			open = append(open, s)
		}
		good.await(func(in []grid.Input) bool { return len(in) == messageStreamsMax })
		one := stream(t, bad, good, chat.ID)
		one.Write(frame(1, "one too many"))
		if _, err := one.Read(make([]byte, 1)); err == nil {
			t.Error("a stream too many was not reset")
		}
		if n := good.Stats().Refused; n != 1 {
			t.Errorf("%d streams refused, want 1", n)
		}
		open[0].Reset()
		synctest.Wait()
		again := stream(t, bad, good, chat.ID)
		again.Write(frame(1, "again"))
		good.await(func(in []grid.Input) bool { return len(in) == messageStreamsMax+1 })
	})
}

func TestBusyNodeResetsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		b.mu.Lock()
		b.full = true
		b.mu.Unlock()
		a.Send(b.Self(), &note{1, "no room"}, 0)
		time.Sleep(busyTimeMax / 2)
		if n := b.Stats().Busy; n != 0 {
			t.Error("given up before its time")
		}
		time.Sleep(busyTimeMax)
		if n := b.Stats().Busy; n != 1 {
			t.Errorf("%d streams reset as busy, want 1", n)
		}
		b.mu.Lock()
		b.full = false
		b.mu.Unlock()
		a.Send(b.Self(), &note{1, "room"}, 0)
		b.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"room"}) })
	})
}

func TestMalformedGossip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		time.Sleep(3 * time.Second) // meshes form at the heartbeat
		bad := nodes[1].topics["shout"].joined
		strip := func(b []byte) []byte { _, n := binary.Uvarint(b); return b[n:] }
		for _, data := range [][]byte{
			{0xff, 0xff}, {}, strip(frame(1, "kind of a stream")), strip(frame(4, strings.Repeat("x", shouts.SizeMax))),
		} {
			// pubsub runs our own validator on what we publish, so this stays here.
			if err := bad.Publish(t.Context(), data); err == nil {
				t.Errorf("gossip %q was accepted", data)
			}
		}
		if s := nodes[1].Stats(); s.Gossip != 4 {
			t.Errorf("%d messages refused, want 4", s.Gossip)
		}
		// A flood is cut down to the author's rate.
		for i := range 5 * gossipBurst {
			bad.Publish(t.Context(), strip(frame(4, fmt.Sprint("flood ", i))))
		}
		time.Sleep(time.Second)
		if got := nodes[0].inputs(); len(got) < gossipBurst || len(got) > gossipBurst+gossipRate {
			t.Errorf("%d messages of a flood arrived, want %d to %d", len(got), gossipBurst, gossipBurst+gossipRate)
		}
	})
}

func TestBucketTableForgetsOnlyWhoIsFull(t *testing.T) {
	now := time.Now()
	topic := &topic{Topic: shouts, authors: map[peerID]*allowance.Bucket{}}
	for i := range peersMax {
		if !topic.within(peerID(fmt.Sprint(i)), now) {
			t.Fatalf("author %d refused", i)
		}
	}
	if topic.within("one more", now) {
		t.Error("the table of authors grew above its bound")
	}
	if !topic.within("one more", now.Add(time.Second)) {
		t.Error("refused although every other author may be forgotten")
	}
	if len(topic.authors) > 1 {
		t.Errorf("%d authors are remembered, want 1", len(topic.authors))
	}
}
