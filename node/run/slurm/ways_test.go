package slurm

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/node/shim"
	"gridnode/node/shim/link"
)

// connected returns the ends of a connection.
func connected(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), other.(*net.TCPConn)
}

// TestOnlyTasksOfAGangHaveWays: a shim gets a way for a task of its own node only, to others of that
// one's gang, and nobody is given a connection that another shim was asked for.
func TestOnlyTasksOfAGangHaveWays(t *testing.T) {
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	go func() {
		for {
			c, err := peer.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	squad := &grid.Squad{
		Gang:      &grid.Gang{Each: 1, Parts: []grid.GangPart{{Site: "here", Processors: 1}, {Site: "there", Processors: 1}}},
		Addresses: []string{free.Addr().String(), peer.Addr().String()},
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel() }()
	g := &glidein{batch: &job{name: "pilot"}}
	kept := orders{t.TempDir()}
	w := newWays(kept, func(*glidein, int) *shim.Client { return nil })
	peers, err := w.begin(ctx, &wg, "task", g, 1, squad, 0)
	if err != nil || peers.Rank != 0 || len(peers.Addresses) != 2 {
		t.Fatalf("%+v, %v", peers, err)
	}
	restart := func() { // of the daemon: the shim calls the next one
		cancel()
		wg.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		w = newWays(kept, w.shim)
		for _, name := range []string{"task", "near"} {
			if err := w.again(ctx, &wg, name, g, 1); err != nil {
				t.Error(err)
			}
		}
	}
	restart()
	if len(w.open) != 1 {
		t.Fatalf("after a restart there are the ways of %d tasks, want that of 1", len(w.open))
	}
	w.asked[5] = &asked{w.open["task"], make(chan link.End, 1)}
	answer := func(h link.Hello) string {
		here, there := connected(t)
		defer here.Close()
		wg.Go(func() { w.serve(there, &h) })
		text, _ := io.ReadAll(here)
		return string(text)
	}
	for _, tt := range []struct {
		name, pilot string
		node        int
		way         link.Way
		want        string
	}{
		{"another of its gang", "pilot", 1, link.Way{Task: "task", Rank: 1}, "hello"},
		{"itself", "pilot", 1, link.Way{Task: "task", Rank: 0}, ""},
		{"nobody of its gang", "pilot", 1, link.Way{Task: "task", Rank: 2}, ""},
		{"for a task of another pilot", "other", 1, link.Way{Task: "task", Rank: 1}, ""},
		{"for a task of another node", "pilot", 0, link.Way{Task: "task", Rank: 1}, ""},
		{"for a task that is not there", "pilot", 1, link.Way{Task: "none", Rank: 1}, ""},
		{"what nobody asked for", "pilot", 1, link.Way{Task: "task", Number: 6}, ""},
		{"what another was asked for", "other", 1, link.Way{Task: "task", Number: 5}, ""},
	} {
		if got := answer(link.Hello{Name: tt.pilot, Node: tt.node, Way: &tt.way}); got != tt.want {
			t.Errorf("%s: read %q, want %q", tt.name, got, tt.want)
		}
	}
	asked := w.asked[5]
	here, there := connected(t)
	defer here.Close()
	w.serve(there, &link.Hello{Name: "pilot", Node: 1, Way: &link.Way{Task: "task", Number: 5}})
	if c := <-asked.comes; c != link.End(there) {
		t.Error("who was asked for a connection is not heard")
	}
	there.Close()
	w.over("task")
	sent := link.Hello{Name: "pilot", Node: 1, Way: &link.Way{Task: "task", Rank: 1}} // before, and under way since
	if got := answer(sent); got != "hello" {
		t.Errorf("of a task that has just ended: %q", got)
	}
	w.end(w.open["task"])
	if got := answer(sent); got != "" {
		t.Errorf("of a task that is over: %q", got)
	}
	restart()
	if len(w.open) != 0 {
		t.Error("a task that is over has a way after a restart")
	}
	again, err := net.Listen("tcp", squad.Addresses[0])
	for ; err != nil; again, err = net.Listen("tcp", squad.Addresses[0]) { // it is closed beside this
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	again.Close()
}

// TestWayWaitsForItsNode: a connection to a task whose node is not connected waits until it is, for as long
// as the task may take to listen.
func TestWayWaitsForItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		w := newWays(orders{t.TempDir()}, func(*glidein, int) *shim.Client { looks++; return nil })
		began := time.Now()
		begun := make(chan struct{})
		close(begun)
		_, err := w.ask(&way{ctx: t.Context(), begun: begun})
		if took := time.Since(began); err == nil || took < link.ListenMax || looks < 100 {
			t.Errorf("%v after %v, in which its node was looked for %d times", err, took, looks)
		}
		ended, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		if _, err := w.ask(&way{ctx: ended, begun: begun}); !errors.Is(err, context.Canceled) {
			t.Errorf("of a task that ended meanwhile: %v", err)
		}
		looks = 0
		if _, err := w.ask(&way{ctx: t.Context(), begun: make(chan struct{})}); err == nil || looks > 0 {
			t.Errorf("of a task that its shim has not been told of: %v, its shim was looked for %d times", err, looks)
		}
		if len(w.asked) != 0 {
			t.Errorf("%d requests are left", len(w.asked))
		}
	})
}
