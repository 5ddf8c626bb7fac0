package shim

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"gridnode/node/sandbox"
	"gridnode/node/shim/link"
)

// member returns a task of a gang of three, and what it is told of it.
func member(rank int, addresses []string) *Spec {
	return &Spec{
		ID: "t" + addresses[rank], Peers: &Peers{Gang: "gang", Rank: rank, Addresses: addresses},
		Env:  []string{"A=b", PeersEnv + "=" + strings.Join(addresses, ","), RendezvousEnv + "=" + addresses[0]},
		Plan: &sandbox.Plan{Ports: []uint16{1, 2, 3}},
	}
}

// echoes listens, and answers each connection with what it sends and a suffix.
func echoes(t *testing.T, suffix string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				text, _ := io.ReadAll(c)
				io.WriteString(c, string(text)+suffix)
			}()
		}
	}()
	return l.Addr().String()
}

func asks(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	io.WriteString(c, text)
	c.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(c)
	return string(got)
}

func TestWaysToTheOthersOfAGang(t *testing.T) {
	addresses := []string{echoes(t, " of 0"), echoes(t, " of 1"), echoes(t, "")}
	daemon := echoes(t, " of the daemon")
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan link.Way, 10)
	w := newWays(ctx, func(ctx context.Context, way link.Way) (link.End, error) {
		called <- way
		return dialTask(ctx, daemon)
	})
	w.drain = 0
	defer w.wg.Wait()
	defer cancel()
	first, err := w.open(member(0, addresses))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.open(member(1, addresses))
	if err != nil {
		t.Fatal(err)
	}
	peers := func(s *Spec) []string { return strings.Split(strings.TrimPrefix(s.Env[1], PeersEnv+"="), ",") }
	at := peers(first)
	if at[0] != addresses[0] || at[1] == addresses[1] || at[2] == addresses[2] || peers(second)[2] != at[2] {
		t.Errorf("the tasks are told %v and %v, those of the daemon being %v", at, peers(second), addresses)
	}
	if first.Env[0] != "A=b" || first.Env[2] != RendezvousEnv+"="+addresses[0] || second.Env[2] != RendezvousEnv+"="+peers(second)[0] {
		t.Errorf("the variables are %q and %q", first.Env, second.Env)
	}
	for i, a := range at {
		if port, _ := portOf(a); first.Plan.Ports[i] != port {
			t.Errorf("walls are open for the ports %v, the tasks are at %v", first.Plan.Ports, at)
		}
	}
	if got := asks(t, at[1], "hello"); got != "hello of 1" || len(called) != 0 {
		t.Errorf("a task on the same node answers %q; the daemon was called %d times", got, len(called))
	}
	if got := asks(t, at[2], "hello"); got != "hello of the daemon" {
		t.Errorf("for a task elsewhere there is the answer %q", got)
	}
	if way := <-called; way.Rank != 2 || way.Number != 0 || !slices.Contains([]string{first.ID, second.ID}, way.Task) {
		t.Errorf("the daemon was called for %+v", way)
	}
	w.reach(7, "nobody")
	w.reach(8, second.ID)
	if way := <-called; way != (link.Way{Task: second.ID, Number: 8}) {
		t.Errorf("asked for a way to a task, the shim calls with %+v", way)
	}
	w.leave(first.ID)
	if got := asks(t, at[2], "still"); got != "still of the daemon" {
		t.Errorf("while a task of the gang runs there is the answer %q", got)
	}
	w.leave(second.ID)
	w.wg.Wait() // all are closed
	if got := asks(t, at[2], "late"); !strings.Contains(got, "refused") {
		t.Errorf("after the last task there is %q", got)
	}
}

// TestWhatWasSentArrives: a task that has sent something and ends at once is heard nevertheless,
// also if it was not connected yet.
func TestWhatWasSentArrives(t *testing.T) {
	heard := make(chan int64)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, c)
			c.Close()
			heard <- n
		}
	}()
	ended := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w := newWays(ctx, func(ctx context.Context, _ link.Way) (link.End, error) {
		<-ended
		return dialTask(ctx, l.Addr().String())
	})
	defer w.wg.Wait()
	defer cancel()
	const sent = 160_000
	addresses := []string{"127.0.0.1:1", "127.0.0.1:2"}
	for round := range 20 {
		task, err := w.open(member(0, addresses))
		if err != nil {
			t.Fatal(err)
		}
		peer := strings.Split(strings.TrimPrefix(task.Env[1], PeersEnv+"="), ",")[1]
		c, err := net.Dial("tcp", peer)
		if err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			ended <- struct{}{} // connected at once
		}
		if _, err := c.Write(make([]byte, sent)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		w.leave(task.ID)
		if round%2 != 0 {
			ended <- struct{}{}
		}
		select {
		case got := <-heard:
			if got != sent {
				t.Fatalf("in round %d %d bytes of %d arrive", round, got, sent)
			}
		case <-time.After(patience): // the test has failed then
			t.Fatalf("in round %d nothing arrives", round)
		}
	}
}

func TestPeersOutOfBounds(t *testing.T) {
	good := []string{"127.0.0.1:1", "127.0.0.1:2"}
	for _, p := range []*Peers{
		{Rank: 0, Addresses: good}, {Gang: "g", Rank: 2, Addresses: good}, {Gang: "g", Rank: -1, Addresses: good}, {Gang: "g"},
		{Gang: "g", Addresses: []string{"10.0.0.1:1"}}, {Gang: "g", Addresses: []string{"127.0.0.1:0"}}, {Gang: "g", Addresses: []string{"x"}},
	} {
		if p.check() == nil {
			t.Errorf("%+v was taken", *p)
		}
	}
	if _, err := (*ways)(nil).open(member(0, good)); err == nil {
		t.Error("a shim without a daemon elsewhere makes ways")
	}
}
