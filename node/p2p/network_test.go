package p2p

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// note is a message of the test protocol.
type note struct {
	kind grid.Kind
	text string
}

func (m *note) MessageKind() grid.Kind { return m.kind }
func (m *note) Proto() proto.Message   { return &wirepb.Command{Dir: []byte(m.text)} }

const noteMax = 60000

func decodeNote(kind grid.Kind) wire.Decoder {
	return func(_ grid.SiteID, body []byte) (grid.Message, error) {
		var p wirepb.Command
		if err := proto.Unmarshal(body, &p); err != nil {
			return nil, wire.Malformed("note: %v", err)
		}
		if len(p.Args) > 0 || len(p.Dir) > noteMax {
			return nil, wire.Malformed("note with arguments")
		}
		return &note{kind, string(p.Dir)}, nil
	}
}

// Two protocols and a topic, as the cores have them.
var (
	chat   = &wire.Protocol{ID: "/gridnode/test-chat/1.0.0", Decoders: map[grid.Kind]wire.Decoder{1: decodeNote(1), 2: decodeNote(2), wire.DirectoryPublish: decodeNote(wire.DirectoryPublish)}}
	post   = &wire.Protocol{ID: "/gridnode/test-post/1.0.0", Decoders: map[grid.Kind]wire.Decoder{3: decodeNote(3)}}
	shouts = Topic{Name: "shout", Protocol: &wire.Protocol{ID: "shout", Decoders: map[grid.Kind]wire.Decoder{4: decodeNote(4)}}, SizeMax: 512}
)

// node is a Network whose inputs are kept.
type node struct {
	*Network
	t    testing.TB
	mu   sync.Mutex
	got  []grid.Input
	full bool // deliver refuses
	more chan struct{}
}

func (n *node) put(in grid.Input) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, delivery := in.(*grid.Delivery); delivery && n.full {
		return false
	}
	n.got = append(n.got, in)
	select {
	case n.more <- struct{}{}:
	default:
	}
	return true
}

// await waits until the inputs satisfy ok and returns them, or fails the test.
func (n *node) await(ok func([]grid.Input) bool) []grid.Input {
	n.t.Helper()
	deadline := time.After(time.Minute)
	for {
		n.mu.Lock()
		got := slices.Clone(n.got)
		n.mu.Unlock()
		if ok(got) {
			return got
		}
		select {
		case <-n.more:
		case <-deadline:
			n.t.Fatalf("still waiting with inputs %v", describe(got))
		}
	}
}

func (n *node) inputs() []grid.Input { return n.await(func([]grid.Input) bool { return true }) }

func describe(inputs []grid.Input) []string {
	var out []string
	for _, in := range inputs {
		switch in := in.(type) {
		case *grid.Delivery:
			text := in.Message.(*note).text
			out = append(out, fmt.Sprintf("%d %.20s", in.Message.MessageKind(), text))
		case *grid.Undelivered:
			out = append(out, fmt.Sprintf("undelivered %.20s", in.Message.(*note).text))
		case *grid.Closest:
			out = append(out, fmt.Sprintf("closest %d", len(in.Peers)))
		}
	}
	return out
}

func key(seed uint64) crypto.PrivKey {
	k, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8(sha256.Sum256([]byte{byte(seed), byte(seed >> 8)})))
	if err != nil {
		panic(err)
	}
	return k
}

func config(t testing.TB, seed uint64, memory *Memory) (*node, Config) {
	n := &node{t: t, more: make(chan struct{}, 1)}
	return n, Config{
		Key: key(seed), Federation: "test", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Memory: memory, Profile: ProfileFleet, Agent: "gridnode/test",
		Protocols: []*wire.Protocol{chat, post}, Topics: []Topic{shouts},
		Deliver: func(d *grid.Delivery) bool { return n.put(d) }, Report: func(in grid.Input) { n.put(in) },
	}
}

func start(t testing.TB, n *node, cfg Config) *node {
	t.Helper()
	var err error
	if n.Network, err = Start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// fleet starts n nodes that know each other, for use inside a bubble.
func fleet(t testing.TB, memory *Memory, size int) []*node {
	t.Helper()
	var nodes []*node
	for i := range size {
		n, cfg := config(t, uint64(i), memory)
		for _, other := range nodes[:min(i, 3)] {
			cfg.Join = append(cfg.Join, other.Addrs()...)
		}
		nodes = append(nodes, start(t, n, cfg))
	}
	for _, n := range nodes {
		<-n.joined
	}
	return nodes
}

func closeAll(nodes []*node) {
	for _, n := range nodes {
		n.Close()
	}
}

func texts(inputs []grid.Input) []string {
	var out []string
	for _, in := range inputs {
		if d, ok := in.(*grid.Delivery); ok {
			out = append(out, d.Message.(*note).text)
		}
	}
	return out
}

func TestMessagesArriveOnceInOrderWithTheirSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		var want []string
		for i := range 1000 {
			text := fmt.Sprint("note ", i)
			want = append(want, text)
			a.Send(b.Self(), &note{1, text}, 0)
		}
		got := b.await(func(in []grid.Input) bool { return len(in) >= 1000 })
		if !slices.Equal(texts(got), want) {
			t.Errorf("got %v", describe(got))
		}
		for _, in := range got {
			if from := in.(*grid.Delivery).From; from != a.Self() {
				t.Fatalf("message from %s, want %s", from, a.Self())
			}
		}
		b.Send(a.Self(), &note{3, "back"}, 0)
		b.Send(b.Self(), &note{2, "to myself"}, 0)
		a.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"back"}) })
		b.await(func(in []grid.Input) bool { return len(in) == 1001 && texts(in)[1000] == "to myself" })

		synctest.Wait()
		sent, received := a.Counter(), b.Counter()
		if s, r := sent.SentOf(1), received.ReceivedOf(1); s.Messages != 1000 || r.Messages != 1000 || s.Bytes == 0 {
			t.Errorf("counted %+v sent, %+v received, want 1000 messages", s, r)
		}
		if c := received.SentOf(2); c.Messages != 0 {
			t.Errorf("a message to itself was counted: %+v", c)
		}
		if s := received.SentOf(3); s.Messages != 1 {
			t.Errorf("counted %+v sent, want 1 message", s)
		}
	})
}

func TestIdleStreamsCloseAndOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		a.Send(b.Self(), &note{1, "one"}, 0)
		b.await(func(in []grid.Input) bool { return len(in) == 1 })
		time.Sleep(sendIdleMax + time.Second)
		a.out.mu.Lock()
		left := len(a.out.peers)
		a.out.mu.Unlock()
		b.inbound.mu.Lock()
		streams := b.inbound.peers[a.host.ID()].streams[forMessages]
		b.inbound.mu.Unlock()
		if left != 0 || streams != 0 {
			t.Errorf("after the idle time %d queues and %d streams are left", left, streams)
		}
		a.Send(b.Self(), &note{1, "two"}, 0)
		b.await(func(in []grid.Input) bool { return len(in) == 2 })
		if c := b.Counter(); c.Malformed != 0 {
			t.Errorf("%d malformed messages", c.Malformed)
		}
	})
}

func TestUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		a, gone := nodes[0], nodes[2]
		gone.Close()
		for _, to := range []grid.SiteID{gone.Self(), "no peer ID"} {
			before := len(a.inputs())
			began := time.Now()
			m := &note{1, "lost"}
			a.Send(to, m, 0)
			got := a.await(func(in []grid.Input) bool { return len(in) > before })
			u, ok := got[before].(*grid.Undelivered)
			if !ok || u.To != to || u.Message != grid.Message(m) {
				t.Errorf("to %s: got %v, want it undelivered", to, describe(got[before:]))
			}
			if took := time.Since(began); took > 2*dialTimeMax {
				t.Errorf("to %s: known only after %v", to, took)
			}
		}
		before := len(a.inputs())
		a.Send(nodes[1].Self(), &note{55, "of no protocol"}, 0)
		a.Send(nodes[1].Self(), &note{1, strings.Repeat("longer than a frame", 4000)}, 0)
		got := a.await(func(in []grid.Input) bool { return len(in) == before+2 })
		if list := describe(got[before:]); list[0] != "undelivered of no protocol" || list[1] != "undelivered longer than a framel" {
			t.Errorf("got %v, want both undelivered", list)
		}
		// The peer is back: what stands in the way is the pause after the failed dial.
		again, cfg := config(t, 2, a.cfg.Memory)
		cfg.Join = a.Addrs()
		start(t, again, cfg)
		defer again.Close()
		<-again.joined
		a.Send(again.Self(), &note{1, "found"}, 0)
		again.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"found"}) })
	})
}

func TestQueueOfASilentPeerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a := nodes[0]
		to := grid.SiteID("12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp")
		for range outboundMax + 10 {
			a.Send(to, &note{1, "x"}, 0)
		}
		a.out.mu.Lock()
		waiting := len(a.out.peers[to].waiting)
		a.out.mu.Unlock()
		if waiting > outboundMax {
			t.Errorf("%d messages wait, at most %d may", waiting, outboundMax)
		}
		a.await(func(in []grid.Input) bool { return len(in) == outboundMax+10 }) // all undelivered in the end
		if n := a.Stats().Undelivered; n != outboundMax+10 {
			t.Errorf("%d undelivered, want %d", n, outboundMax+10)
		}
	})
}

func TestPeerThatRestartsGetsTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		a.Send(b.Self(), &note{1, "before"}, 0)
		b.await(func(in []grid.Input) bool { return len(in) == 1 })
		listen := b.host.Network().ListenAddresses()[0].String()
		b.Close()
		again, cfg := config(t, 1, a.cfg.Memory)
		cfg.Listen = []string{listen}
		start(t, again, cfg)
		defer again.Close()
		a.Send(again.Self(), &note{1, "after"}, 0)
		again.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"after"}) })
	})
}

// closing is a host whose connection to a peer ends as a stream is opened on it.
type closing struct {
	host.Host
	left int // times
}

func (h *closing) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if h.left > 0 {
		h.left--
		_ = h.Network().ClosePeer(p)
	}
	return h.Host.NewStream(ctx, p, ids...)
}

// TestConnectionThatEndsIsMadeAgain: a peer that closes a connection, as it has too many, is no
// peer that cannot be reached.
func TestConnectionThatEndsIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		a.host = &closing{a.host, 1}
		a.Send(b.Self(), &note{1, "first"}, 0)
		b.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"first"}) })
		if got := a.inputs(); len(got) > 0 {
			t.Errorf("got %v", describe(got))
		}
	})
}

func TestCloseTwiceAndAfterFailedStart(t *testing.T) {
	n, cfg := config(t, 1, nil)
	start(t, n, cfg)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error("second Close:", err)
	}
	n.Send(n.Self(), &note{1, "late"}, 0) // must not panic
	n.Send("12D3KooWEkiMu4jpwh9n1wvUtsbcdnQjhvEYUQM3o6xy85S8d4kp", &note{1, "late"}, 0)
	n.Closest(grid.Key{})
}

func TestDriversOwnProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		b.Handle("/gridnode/echo/1.0.0", func(from grid.SiteID, s network.Stream) error {
			if from != a.Self() {
				t.Errorf("stream from %s", from)
			}
			text, err := io.ReadAll(s)
			if string(text) == "bad" {
				return wire.Malformed("bad")
			}
			if err == nil {
				_, err = s.Write(text)
			}
			return err
		})
		echo := func(text string) (string, error) {
			s, err := a.Open(t.Context(), b.Self(), "/gridnode/echo/1.0.0")
			if err != nil {
				return "", err
			}
			defer s.Close()
			s.Write([]byte(text))
			s.CloseWrite()
			back, err := io.ReadAll(s)
			return string(back), err
		}
		if back, err := echo("hello"); back != "hello" || err != nil {
			t.Errorf("got %q, %v", back, err)
		}
		if back, err := echo("bad"); err == nil {
			t.Errorf("a malformed request was answered with %q", back)
		}
		synctest.Wait()
		if c := b.Counter(); c.Malformed != 1 {
			t.Errorf("%d malformed counted, want 1", c.Malformed)
		}
		if _, err := a.Open(t.Context(), "nobody", "/gridnode/echo/1.0.0"); err == nil {
			t.Error("a stream to nobody was opened")
		}
		b.Close()
		if _, err := echo("late"); err == nil {
			t.Error("a stream to a closed node was opened")
		}
	})
}

func TestFlushWaitsUntilEverythingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		for range 100 {
			a.Send(b.Self(), &note{1, "last words"}, 0)
		}
		a.Flush(t.Context())
		if s := a.Counter(); s.SentOf(1).Messages != 100 {
			t.Errorf("%d messages written, want 100", s.SentOf(1).Messages)
		}
		b.await(func(in []grid.Input) bool { return len(in) == 100 })
	})
}

// TestOtherAddressesAreTold: who publishes where a node listens hears when that changes.
func TestOtherAddressesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan []string, 16)
		n, cfg := config(t, 1, new(Memory))
		cfg.Moved = func(addrs []string) { told <- addrs }
		start(t, n, cfg)
		defer n.Close()
		before := n.Addrs()
		if err := n.host.Network().Listen(multiaddr.StringCast("/ip4/127.0.0.2/tcp/0")); err != nil {
			t.Fatal(err)
		}
		select {
		case addrs := <-told:
			if len(addrs) != len(before)+1 {
				t.Errorf("told of %v, had %v before", addrs, before)
			}
		case <-time.After(time.Minute):
			t.Errorf("nobody was told of another address than %v", before)
		}
	})
}
