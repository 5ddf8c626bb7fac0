package p2p

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// guests is a membership that is a password.
type guests struct {
	mu       sync.Mutex
	admitted []grid.SiteID
	asked    int
	shown    []string
}

var errPassword = errors.New("wrong password")

func (g *guests) membership(password string) *Membership {
	return &Membership{
		Proof: func() []byte { return []byte(password) },
		Admit: func(from grid.SiteID, proof []byte) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.asked++
			g.shown = append(g.shown, string(proof))
			switch string(proof) {
			case "sesame":
			case "barred":
				return &Barred{errPassword, []byte("why")}
			default:
				return errPassword
			}
			g.admitted = append(g.admitted, from)
			return nil
		},
		Strangers: []string{"/gridnode/test-open/1"},
	}
}

// all returns what peers have shown.
func (g *guests) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shown)
}

func (g *guests) was(text string) bool { return slices.Contains(g.all(), text) }

// count says how many proofs were verified.
func (g *guests) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

func (g *guests) has(id grid.SiteID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.admitted, id)
}

// member starts a node whose membership is a password, or open if that is empty.
func member(t *testing.T, memory *Memory, seed uint64, password string, join ...*node) (*node, *guests) {
	n, cfg := config(t, seed, memory)
	g := &guests{}
	if password != "" {
		cfg.Membership = g.membership(password)
	}
	for _, other := range join {
		cfg.Join = append(cfg.Join, other.Addrs()...)
	}
	n = start(t, n, cfg)
	<-n.joined
	return n, g
}

func TestMembersSpeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, atA := member(t, memory, 0, "sesame")
		b, atB := member(t, memory, 1, "sesame", a)
		c, _ := member(t, memory, 2, "sesame", a)
		defer closeAll([]*node{a, b, c})
		a.Send(b.Self(), &note{1, "from a"}, 0)
		b.Send(a.Self(), &note{1, "from b"}, 0)
		c.Send(b.Self(), &note{3, "from c"}, 0) // found by the DHT
		a.await(func(in []grid.Input) bool { return slices.Contains(texts(in), "from b") })
		b.await(func(in []grid.Input) bool { return len(texts(in)) == 2 })
		if !atA.has(b.Self()) || !atB.has(a.Self()) || !atB.has(c.Self()) {
			t.Error("a peer spoke that was not admitted")
		}
		b.Closest(grid.Key{1})
		b.await(func(in []grid.Input) bool {
			return slices.ContainsFunc(in, func(in grid.Input) bool {
				found, ok := in.(*grid.Closest)
				return ok && len(found.Peers) == 3
			})
		})
	})
}

func TestStrangersAreNotHeard(t *testing.T) {
	for _, tt := range []struct{ name, password string }{{"a wrong proof", "open up"}, {"no proof", ""}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := &Memory{}
				a, atA := member(t, memory, 0, "sesame")
				b, _ := member(t, memory, 1, tt.password, a)
				defer closeAll([]*node{a, b})
				a.Handle("/gridnode/test-task/1", func(grid.SiteID, network.Stream) error { panic("a stranger is served") })
				b.Send(a.Self(), &note{1, "hello"}, 0)
				raw := rawHost(b)
				for _, id := range []string{chat.ID, "/gridnode/test-task/1", string(a.kademlia())} {
					if s, err := raw.NewStream(t.Context(), a.host.ID(), protocol.ID(id)); err == nil {
						_, _ = s.Write(frame(1, "hello"))
						if _, err := io.ReadAll(s); err == nil {
							t.Errorf("%s: a stranger's stream came to a clean end", id)
						}
					}
				}
				synctest.Wait()
				if got := texts(a.inputs()); len(got) > 0 || atA.has(b.Self()) {
					t.Errorf("a stranger was heard: %q", got)
				}
				if a.router.RoutingTable().Find(b.host.ID()) != "" {
					t.Error("a stranger is in the routing table")
				}
				time.Sleep(10 * time.Minute)
				for _, c := range a.host.Network().ConnsToPeer(b.host.ID()) { // it tries again and again
					if age := time.Since(c.Stat().Opened); age > greetTimeMax+time.Second {
						t.Errorf("a stranger stays connected for %v", age)
					}
				}
				a.Send(b.Self(), &note{1, "to a stranger"}, 0)
				a.await(func(in []grid.Input) bool { return slices.Contains(describe(in), "undelivered to a stranger") })
			})
		})
	}
}

// rawHost returns what a node has below its gate, as a stranger would use it.
func rawHost(n *node) host.Host {
	if n.gate != nil {
		return n.gate.Host
	}
	return n.host
}

func TestStrangersMaySpeakWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "", a)
		defer closeAll([]*node{a, b})
		a.Handle("/gridnode/test-open/1", func(_ grid.SiteID, s network.Stream) error {
			_, err := s.Write([]byte("welcome"))
			return err
		})
		s := stream(t, b, a, "/gridnode/test-open/1")
		if text, err := io.ReadAll(s); string(text) != "welcome" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestExpelled(t *testing.T) {
	const span = 5 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "sesame", a)
		defer closeAll([]*node{a, b})
		b.Send(a.Self(), &note{1, "before"}, 0)
		a.await(func(in []grid.Input) bool { return slices.Contains(texts(in), "before") })
		a.Expel(b.Self(), span, nil)
		time.Sleep(time.Second)
		b.Send(a.Self(), &note{1, "after"}, 0)
		time.Sleep(time.Minute)
		if slices.Contains(texts(a.inputs()), "after") || a.host.Network().Connectedness(b.host.ID()) == network.Connected {
			t.Error("an expelled peer is heard")
		}
		time.Sleep(span)
		b.Send(a.Self(), &note{1, "later"}, 0)
		a.await(func(in []grid.Input) bool { return slices.Contains(texts(in), "later") })
	})
}

// TestExpelledAreTold: who is expelled hears why before its connections end, and who was not
// connected then when it greets. Both show it to Admit in place of a proof.
func TestExpelledAreTold(t *testing.T) {
	const span = 5 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, atB := member(t, memory, 1, "sesame", a)
		defer closeAll([]*node{a, b})
		b.Send(a.Self(), &note{1, "before"}, 0)
		a.await(func(in []grid.Input) bool { return slices.Contains(texts(in), "before") })
		a.Expel(b.Self(), span, []byte("the list"))
		time.Sleep(time.Second)
		if !atB.was("the list") || a.host.Network().Connectedness(b.host.ID()) == network.Connected {
			t.Errorf("b was shown %q and is connected: %v", atB.all(), a.host.Network().Connectedness(b.host.ID()))
		}

		c, atC := member(t, memory, 2, "barred", a)
		defer closeAll([]*node{c})
		c.Send(a.Self(), &note{1, "hello"}, 0)
		time.Sleep(time.Minute)
		if !atC.was("why") || slices.Contains(texts(a.inputs()), "hello") {
			t.Errorf("c was shown %q, and heard: %q", atC.all(), texts(a.inputs()))
		}
	})
}

// TestNothingIsTakenOfWhoIsToldToGo: not while it is told, either.
func TestNothingIsTakenOfWhoIsToldToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, cfg := config(t, 0, &Memory{})
		var out atomic.Bool
		cfg.Membership = (&guests{}).membership("sesame")
		cfg.Membership.Admit = func(grid.SiteID, []byte) error {
			if out.Load() {
				return errPassword
			}
			return nil
		}
		a = start(t, a, cfg)
		b, _ := member(t, cfg.Memory, 1, "sesame", a)
		defer closeAll([]*node{a, b})
		for _, text := range []string{"before", "after"} {
			s := stream(t, b, a, chat.ID)
			_, _ = s.Write(frame(1, text))
			time.Sleep(time.Second)
			out.Store(true)
			a.gate.shut(b.host.ID())
		}
		if got := texts(a.inputs()); !slices.Equal(got, []string{"before"}) || a.host.Network().Connectedness(b.host.ID()) != network.Connected {
			t.Errorf("heard: %q", got)
		}
	})
}

// TestStrangerIsNoMember: whatever it says that it speaks.
func TestStrangerIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "sesame", a)
		n, cfg := config(t, 2, memory)
		cfg.Membership = (&guests{}).membership("open up")
		cfg.Join = a.Addrs()
		c := start(t, n, cfg)
		defer closeAll([]*node{a, b, c})
		time.Sleep(greetTimeMax / 2)
		if spoken, err := a.host.Peerstore().SupportsProtocols(c.host.ID(), a.kademlia()); err != nil || len(spoken) != 1 || a.host.Network().Connectedness(c.host.ID()) != network.Connected {
			t.Fatalf("the stranger is connected and speaks %v, %v", spoken, err)
		}
		if !a.isMember(b.host.ID()) || a.isMember(c.host.ID()) {
			t.Errorf("a member is one: %v, a stranger: %v", a.isMember(b.host.ID()), a.isMember(c.host.ID()))
		}
	})
}

// TestProofsAreCounted: a peer cannot have this node verify proofs without end.
func TestProofsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, atA := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "open up", a)
		defer closeAll([]*node{a, b})
		time.Sleep(2 * greetTimeMax)
		if err := b.gate.Host.Connect(t.Context(), peer.AddrInfo{ID: a.host.ID(), Addrs: a.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		before := atA.count()
		for range 3 * greetingsMax {
			s, err := b.gate.Host.NewStream(t.Context(), a.host.ID(), greeting)
			if err != nil {
				break
			}
			_ = wire.WriteFrame(s, []byte(strings.Repeat("x", 1000)))
			_, _ = io.ReadAll(s)
		}
		if n := atA.count() - before; n == 0 || n > greetingsMax {
			t.Errorf("%d proofs were verified, want at most %d", n, greetingsMax)
		}
	})
}

// TestNobodyAwaitsWhoHasLeft: a stream of a connection that ended as it came is let go of at once,
// also if the peer is forgotten by then.
// TestGreetingOutlivesWhoBeganIt: a look-up that has found enough gives up its questions, and with
// them no greeting that others wait for.
func TestGreetingOutlivesWhoBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{Latency: func() time.Duration { return 100 * time.Millisecond }}
		a, _ := member(t, memory, 1, "sesame")
		b, _ := member(t, memory, 2, "sesame")
		defer closeAll([]*node{a, b})
		id := b.host.ID()
		a.host.Peerstore().AddAddrs(id, b.host.Addrs(), time.Hour)
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := a.gate.meet(short, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gives up is told %v", err)
		}
		if err := a.gate.meet(t.Context(), id); err != nil {
			t.Errorf("who does not: %v", err)
		}
	})
}

// TestWhoWasNotReachedIsGreetedNext: a probe that is to dial nobody finds the peer not connected,
// and keeps nobody from it who dials.
func TestWhoWasNotReachedIsGreetedNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := member(t, &Memory{}, 1, "sesame")
		defer closeAll([]*node{a})
		b, _ := member(t, a.cfg.Memory, 2, "sesame")
		defer closeAll([]*node{b})
		id := b.host.ID()
		a.host.Peerstore().AddAddrs(id, b.host.Addrs(), time.Hour)
		if err := a.gate.meet(network.WithNoDial(t.Context(), "a probe"), id); err == nil {
			t.Error("met whom nobody dialled")
		}
		if err := a.gate.meet(t.Context(), id); err != nil {
			t.Errorf("then: %v", err)
		}
	})
}

// A peer that has left and is back has all its time again: what ends a connection on which nothing
// was shown does not end the next.
func TestWhoComesBackHasItsTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "")
		defer closeAll([]*node{a, b})
		address := peer.AddrInfo{ID: a.host.ID(), Addrs: a.host.Addrs()}
		for range 3 {
			if err := b.host.Connect(t.Context(), address); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, c := range b.host.Network().ConnsToPeer(a.host.ID()) {
				c.Close()
			}
			time.Sleep(greetTimeMax - time.Second)
			if err := b.host.Connect(t.Context(), address); err != nil {
				t.Fatal(err)
			}
			c := b.host.Network().ConnsToPeer(a.host.ID())[0]
			for !c.IsClosed() {
				time.Sleep(10 * time.Millisecond)
			}
			if age := time.Since(c.Stat().Opened); age < greetTimeMax || age > greetTimeMax+time.Second {
				t.Errorf("a connection of a stranger was ended after %v", age)
			}
		}
	})
}

func TestNobodyAwaitsWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		a, _ := member(t, memory, 0, "sesame")
		b, _ := member(t, memory, 1, "", a)
		defer closeAll([]*node{a, b})
		if err := b.host.Connect(t.Context(), peer.AddrInfo{ID: a.host.ID(), Addrs: a.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		left := a.host.Network().ConnsToPeer(b.host.ID())[0]
		left.Close()
		synctest.Wait()
		began := time.Now()
		if a.gate.await(left) || time.Since(began) > 0 {
			t.Errorf("a stream of a connection that has ended was waited for, for %v", time.Since(began))
		}
	})
}
