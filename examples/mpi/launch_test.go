package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const secret = "0123456789abcdef"

// environment is that of a task.
func environment(settings ...string) func(string) string {
	return func(name string) string {
		for _, s := range settings {
			if key, value, _ := strings.Cut(s, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestTaskOf(t *testing.T) {
	good := []string{"GRIDNODE_RANK=1", "GRIDNODE_PEERS=127.0.0.1:1,127.0.0.1:2", "GRIDNODE_PEER_SITES=a,b", "MPI_SECRET=" + secret}
	if got, err := taskOf(environment(good...)); err != nil || got.rank != 1 || len(got.peers) != 2 || got.sites[1] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	for i, tt := range []struct{ setting, word string }{
		{"GRIDNODE_RANK=2", "want 0 to 1"}, {"GRIDNODE_RANK=-1", "want 0 to 1"}, {"GRIDNODE_RANK=", "want 0 to 1"},
		{"GRIDNODE_PEERS=", "is not set"}, {"GRIDNODE_PEER_SITES=a", "has 1 sites"}, {"MPI_SECRET=short", "openssl"},
	} {
		if _, err := taskOf(environment(append([]string{tt.setting}, good...)...)); err == nil || !strings.Contains(err.Error(), tt.word) {
			t.Errorf("%d: %s: %v, want %q", i, tt.setting, err, tt.word)
		}
	}
}

// TestFreePort: the port says whose it is, and is free.
func TestFreePort(t *testing.T) {
	for _, ranks := range []int{1, 3, 1000} {
		for _, rank := range []int{0, ranks / 2, ranks - 1} {
			var taken []net.Listener
			for range 5 {
				port, err := freePort(rank, ranks)
				if err != nil || port < portFirst || port >= portLast || (port-portFirst)%ranks != rank {
					t.Fatalf("process %d of %d: port %d, %v", rank, ranks, port, err)
				}
				l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					t.Fatalf("process %d of %d: %v", rank, ranks, err)
				}
				taken = append(taken, l)
			}
			for _, l := range taken {
				l.Close()
			}
		}
	}
}

// patience is how long anything here may take on the slowest machine. What is broken
// must not hang for as long as all tests may take.
const patience = time.Minute

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial connects to an address of this machine.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// pair starts two tasks at different sites, whose processes echo in capitals.
func pair(t *testing.T) [2]*launcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	own := [2]net.Listener{listen(), listen()}
	var ls [2]*launcher
	for rank := range ls {
		process := listen()
		l := &launcher{
			task: &task{rank: rank, peers: []string{own[0].Addr().String(), own[1].Addr().String()}, sites: []string{"a", "b"}, secret: secret},
			port: process.Addr().(*net.TCPAddr).Port, daemons: make(chan launch),
		}
		go l.accept(ctx, own[rank], l.serve)
		go l.accept(ctx, process, func(_ context.Context, c *net.TCPConn) {
			defer c.Close()
			text, _ := io.ReadAll(c)
			fmt.Fprintf(c, "%d hears %s", rank, text)
		})
		ls[rank] = l
	}
	return ls
}

// TestRelay: what goes to the port that stands for a process arrives there, and its
// answer comes back after the end of what was said.
func TestRelay(t *testing.T) {
	ls := pair(t)
	port, err := ls[0].relay(soon(t), 1, greeting{Do: doProcess})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, "127.0.0.1:"+port)
	fmt.Fprint(c, "hello")
	c.CloseWrite()
	if text, err := io.ReadAll(c); err != nil || string(text) != "1 hears hello" {
		t.Errorf("%q, %v", text, err)
	}
	if n := ls[0].carried.Load(); n != 1 {
		t.Errorf("%d connections carried, want 1", n)
	}
}

// TestGreeting: who does not know the secret, or says nonsense, gets nothing.
func TestGreeting(t *testing.T) {
	ls := pair(t)
	for _, line := range []string{
		`{"secret":"0123456789abcdeF","do":"process"}`, `{"do":"process"}`, `{"secret":"` + secret + `","do":"dance"}`, "process", strings.Repeat("x", greetingMax+1),
	} {
		c := dial(t, ls[1].peers[1])
		fmt.Fprintln(c, line)
		if text, err := bufio.NewReader(c).ReadString('\n'); text != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40s: %q, %v", line, text, err)
		}
		c.Close()
	}
}

// TestDaemon: the agent's command runs in the task that it names, mpirun's address in
// it leads to mpirun, and its exit code comes back.
func TestDaemon(t *testing.T) {
	ls, ctx := pair(t), soon(t)
	mpirun, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mpirun.Close()
	ended := make(chan error, 1)
	go func() { ended <- ls[1].daemon(ctx) }()
	_, port, _ := net.SplitHostPort(mpirun.Addr().String())
	line := "uri='7.0;tcp://10.9.8.7,127.0.0.1:" + port + "'; case $uri in *:" + port + ") exit 4;; '7.0;tcp://127.0.0.1:'*) exit 3;; esac; exit 5"
	if err := ls[0].agent(ctx, []string{"task1", line}); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("agent: %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("daemon: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("the daemon does not end")
	}
	for _, tt := range []struct{ word, host, line string }{{"task0 to task1", "task2", line}, {"Open MPI 4", "task1", "orted"}} {
		if err := ls[0].agent(ctx, []string{tt.host, tt.line}); err == nil || !strings.Contains(err.Error(), tt.word) {
			t.Errorf("%s: %v, want %q", tt.host, err, tt.word)
		}
	}
}

// TestWithoutSlurm: Open MPI does not see that a job looks like one of Slurm.
func TestWithoutSlurm(t *testing.T) {
	of := []string{"PATH=/bin", "SLURM_JOB_ID=7", "SLURMD_NODENAME=x", "OMPI_MCA_btl=tcp"}
	if got := withoutSlurm(of); !slices.Equal(got, []string{"PATH=/bin", "OMPI_MCA_btl=tcp"}) || of[1] != "SLURM_JOB_ID=7" {
		t.Errorf("%q of %q", got, of)
	}
}
