package p2p

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"go.uber.org/goleak"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/reach"
)

// TestOwnProtocolsAreGuarded: what libp2p serves by itself, behind the gate's back, is for
// members only, too.
func TestOwnProtocolsAreGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		rawHost(a).SetStreamHandler("/libp2p/test/1", func(s network.Stream) {
			_, _ = s.Write([]byte("served"))
			s.Close()
		})
		b, _ := member(t, memory, 1, "sesame", a)
		c, _ := member(t, memory, 2, "", a)
		defer closeAll([]*node{a, b, c})
		for _, tt := range []struct {
			of   *node
			want string
		}{{b, "served"}, {c, ""}} {
			got := ""
			if s, err := rawHost(tt.of).NewStream(t.Context(), a.host.ID(), "/libp2p/test/1"); err == nil {
				text, _ := io.ReadAll(s)
				got = string(text)
			}
			if got != tt.want {
				t.Errorf("%s got %q, want %q", tt.of.Self(), got, tt.want)
			}
		}
	})
}

// TestQUIC: with an address of QUIC peers prefer it, an announced address is told to them,
// and nothing is left when the nodes end.
func TestQUIC(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a, cfg := config(t, 1, nil)
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.Reach = reach.Config{Announce: []string{"grid.example.org:7531"}, Probe: true, Relay: reach.RelayOffer}
	start(t, a, cfg)
	defer a.Close()
	if got := strings.Join(a.Addrs(), " "); len(a.Addrs()) != 4 || !strings.HasPrefix(got, "/dns/grid.example.org/tcp/7531/p2p/") {
		t.Errorf("addresses %s, want the announced ones first, and two more", got)
	}
	b, cfg := config(t, 2, nil)
	cfg.Listen = []string{"127.0.0.1:0"}
	for _, addr := range a.Addrs() {
		if !strings.Contains(addr, "/dns/") { // nobody answers for that name
			cfg.Join = append(cfg.Join, addr)
		}
	}
	start(t, b, cfg)
	defer b.Close()
	<-b.joined
	b.Send(a.Self(), &note{1, "hello"}, 0)
	a.await(func(in []grid.Input) bool { return len(texts(in)) == 1 })
	if p := b.Peers(t.Context()); len(p) != 1 || p[0].Kind != reach.KindQUIC || p[0].Punched || p[0].Relay != "" {
		t.Errorf("peers %+v, want one by QUIC", p)
	}
	if st := a.reach.Status(); st.Active || st.Serving {
		t.Errorf("a node on loopback looks for ways to others: %+v", st)
	}
}

func TestDiagnose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 3)
		defer closeAll(nodes)
		d := nodes[2].Diagnose(t.Context())
		if len(d.Peers) != 2 || !d.Loopback() {
			t.Fatalf("%+v, want two peers, on loopback", d)
		}
		for _, p := range d.Peers {
			if !p.Clock || p.Offset.Abs() > pingTimeMax || p.Stuck || p.Err != nil || !p.Member {
				t.Errorf("peer %+v", p)
			}
		}
		if problems := d.Problems(); slices.ContainsFunc(problems, func(p reach.Problem) bool { return p.Severe }) {
			t.Errorf("problems %+v", problems)
		}
	})
}

// TestDiagnoseGoesByTheNodesClock: one that was wrong at the start is wrong still when the
// machine's was set right, and so it is told.
func TestDiagnoseGoesByTheNodesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		nodes := fleet(t, memory, 2)
		n, cfg := config(t, 9, memory)
		cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		cfg.Join = append(nodes[0].Addrs(), nodes[1].Addrs()...)
		nodes = append(nodes, start(t, n, cfg))
		defer closeAll(nodes)
		<-n.joined
		time.Sleep(time.Minute)
		problems := n.Diagnose(t.Context()).Problems()
		if !slices.ContainsFunc(problems, func(p reach.Problem) bool { return strings.Contains(p.What, "this site is off by 1h0m0s") }) {
			t.Errorf("a node that is an hour ahead: %+v", problems)
		}
		for _, p := range nodes[0].Diagnose(t.Context()).Peers {
			want := time.Duration(0)
			if p.Site == n.Self() {
				want = time.Hour
			}
			if !p.Clock || (p.Offset-want).Abs() > pingTimeMax {
				t.Errorf("%s is ahead by %v, want %v", p.Site, p.Offset, want)
			}
		}
	})
}

// TestQuestionsAreBounded: a peer cannot have this node send much.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		for _, tt := range []struct {
			size  int
			reply bool
		}{{checkLarge, true}, {checkLarge + 1, false}} {
			s, err := nodes[1].host.NewStream(t.Context(), nodes[0].host.ID(), protocol.ID(checking))
			if err != nil {
				t.Fatal(err)
			}
			go s.Write(append(binary.AppendUvarint(nil, uint64(tt.size)), make([]byte, tt.size)...))
			if _, err := wire.ReadFrame(bufio.NewReader(s)); (err == nil) != tt.reply {
				t.Errorf("%d bytes: error %v, want an answer: %v", tt.size, err, tt.reply)
			}
			s.Reset()
		}
	})
}

// TestClockOfAFarPeer: the way of the question is none of the clock's errors.
func TestClockOfAFarPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{Latency: func() time.Duration { return 200 * time.Millisecond }}, 2)
		defer closeAll(nodes)
		d := nodes[1].Diagnose(t.Context())
		if len(d.Peers) != 1 || !d.Peers[0].Clock || d.Peers[0].Offset.Abs() > 20*time.Millisecond {
			t.Errorf("%+v: its clock is the same, and is seen to be", d.Peers)
		}
	})
}
