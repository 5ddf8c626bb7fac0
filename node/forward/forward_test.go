package forward

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"go.uber.org/goleak"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/node/p2p"
)

// site is a node's network with a forwarder, and what its Serve returned.
type site struct {
	*Forwarder
	now    atomic.Pointer[Forwarder] // the same, for streams that come
	net    *p2p.Network
	served chan error
}

// sites starts networks that know each other, over memory.
func sites(t *testing.T, n int) []*site {
	t.Helper()
	var memory p2p.Memory
	var all []*site
	var join []string
	for i := range n {
		seed := sha256.Sum256([]byte{byte(i)})
		key, _, err := crypto.GenerateEd25519Key(bytes.NewReader(seed[:]))
		if err != nil {
			t.Fatal(err)
		}
		network_, err := p2p.Start(p2p.Config{
			Key: key, Federation: "test", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Join: join, Memory: &memory,
			Deliver: func(*grid.Delivery) bool { return true }, Report: func(grid.Input) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := &site{Forwarder: New(network_.Self(), network_, t.TempDir(), slog.New(slog.DiscardHandler)), net: network_, served: make(chan error, 100)}
		s.now.Store(s.Forwarder)
		network_.HandleTasks(Protocol, func(from grid.SiteID, stream network.Stream) error {
			err := s.now.Load().Serve(from, stream)
			s.served <- err
			return err
		})
		join = append(join, network_.Addrs()...)
		all = append(all, s)
	}
	for _, s := range all {
		for deadline := time.After(2 * time.Minute); len(s.net.Peers(t.Context())) < n-1; {
			select {
			case <-deadline:
				t.Fatal("the sites have not found each other")
			default:
				runtime.Gosched()
			}
		}
	}
	t.Cleanup(func() {
		for _, s := range all {
			s.Close()
			if err := s.net.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return all
}

var job = grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}

// spread returns a group with n tasks, dealt out to all sites in turn.
func spread(all []*site, n int) Group {
	g := Group{ID: ID{all[0].self, job}}
	for i := range n {
		g.Sites = append(g.Sites, all[i%len(all)].self)
	}
	return g
}

// add adds a group at every site.
func add(t *testing.T, all []*site, g Group) (addresses [][]string) {
	t.Helper()
	for _, s := range all {
		a, err := s.Add(g)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, a)
	}
	return addresses
}

// echo listens as a task, and answers a whole message with the message backwards.
func echo(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	for end := time.Now().Add(time.Minute); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); l, err = net.Listen("tcp", address) {
		<-time.After(time.Millisecond) // another process looks whether the port is free
	}
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
				all, _ := io.ReadAll(c) // until the other end shuts its direction down
				c.Write([]byte(backwards(all)))
			}()
		}
	}()
}

func backwards(b []byte) string {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return string(out)
}

// ask sends a message and returns the answer to it.
func ask(address, message string) (string, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, message); err != nil {
		return "", err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

func TestEveryTaskReachesEveryOther(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("sites", func(t *testing.T) { // its clean-up comes before the check for leaks
		all := sites(t, 3)
		g := spread(all, 7)
		addresses := add(t, all, g)
		for rank := range g.Sites {
			echo(t, addresses[rank%3][rank])
		}
		big := strings.Repeat("0123456789", 10_000)
		var wg sync.WaitGroup
		for from := range g.Sites {
			for to := range g.Sites {
				wg.Go(func() {
					message := fmt.Sprint(from, " to ", to, " ", big)
					answer, err := ask(addresses[from%3][to], message)
					if err != nil || answer != backwards([]byte(message)) {
						t.Errorf("task %d asks task %d: %d bytes, %v", from, to, len(answer), err)
					}
				})
			}
		}
		wg.Wait()
		again, err := all[0].Add(g)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(addresses[0]) {
			t.Errorf("added again: %v, %v", again, err)
		}
	})
}

func TestTaskThatStartsLater(t *testing.T) {
	all := sites(t, 2)
	addresses := add(t, all, spread(all, 2))
	answered := make(chan error)
	go func() {
		answer, err := ask(addresses[0][1], "early")
		if err == nil && answer != "ylrae" {
			err = fmt.Errorf("answer %q", answer)
		}
		answered <- err
	}()
	for { // until the connection has reached the other site
		all[1].mu.Lock()
		n := all[1].conns
		all[1].mu.Unlock()
		if n > 0 {
			break
		}
		select {
		case err := <-answered:
			t.Fatal("the connection ended early:", err)
		case <-time.After(time.Millisecond):
		}
	}
	echo(t, addresses[1][1])
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestRemoveEndsConnections(t *testing.T) {
	all := sites(t, 2)
	addresses := add(t, all, spread(all, 2))
	l, err := net.Listen("tcp", addresses[1][1])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", addresses[0][1])
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	all[0].drain = time.Millisecond
	all[0].Remove(ID{all[0].self, job})
	all[0].Remove(ID{all[0].self, job}) // which is none by now
	for name, c := range map[string]net.Conn{"near": near, "far": far} {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("the %s task can still read (%d bytes)", name, n)
		}
	}
	if c, err := net.Dial("tcp", addresses[0][1]); err == nil {
		c.Close()
		t.Error("the address still takes connections")
	}
	if answer, err := ask(addresses[1][0], "x"); err == nil {
		t.Errorf("a task of a job that is gone here answers %q", answer)
	}
}

// TestWhatWasSentArrives: tasks that have sent something and end at once are heard nevertheless.
func TestWhatWasSentArrives(t *testing.T) {
	all := sites(t, 2)
	sent := strings.Repeat("0123456789abcdef", 10_000)
	for range 20 {
		g := spread(all, 2)
		addresses := add(t, all, g)
		l, err := net.Listen("tcp", addresses[1][1])
		if err != nil {
			t.Fatal(err)
		}
		near, err := net.Dial("tcp", addresses[0][1])
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(near, sent); err != nil {
			t.Fatal(err)
		}
		near.Close()
		all[0].Remove(g.ID)
		if got, err := io.ReadAll(far); err != nil || string(got) != sent {
			t.Fatalf("%d bytes of %d arrive: %v", len(got), len(sent), err)
		}
		far.Close()
		l.Close()
		all[1].Remove(g.ID)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	all := sites(t, 3)
	add(t, all[:2], spread(all[:2], 2))
	other := job
	other.Epoch++
	home := all[0].self
	for _, tt := range []struct {
		name string
		from *site
		job  ID
		rank int
	}{
		{"site of another job", all[2], ID{home, job}, 1},
		{"old epoch", all[0], ID{home, other}, 1},
		{"task of another site", all[0], ID{home, job}, 0},
		{"task that is none", all[0], ID{home, job}, 2},
		{"job of another home", all[0], ID{all[2].self, job}, 1},
		{"job of no home", all[0], ID{"", job}, 1},
	} {
		s, err := tt.from.net.Open(t.Context(), all[1].self, Protocol)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if err := writeOpen(s, tt.job, tt.rank); err != nil {
			t.Fatal(tt.name, err)
		}
		if err := <-all[1].served; err == nil || errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		s.Reset()
	}
}

// TestSameJobOfTwoHomes: a site that has heard of another's job, and adds a group under
// the same job before that one's home does, neither keeps it out nor gets at its tasks.
func TestSameJobOfTwoHomes(t *testing.T) {
	all := sites(t, 3)
	squatter := Group{ID{all[2].self, job}, []grid.SiteID{all[2].self, all[1].self}}
	squat := add(t, all[1:], squatter)
	g := spread(all[:2], 2)
	addresses := add(t, all[:2], g)
	echo(t, addresses[1][1])
	for _, tt := range []struct {
		name, address string
		want          string // empty: no answer
	}{
		{"its own site", addresses[0][1], "olleh"},
		{"the site that was first", squat[1][1], ""},
	} {
		if tt.want == "" { // nothing listens there, and it is not waited for
			all[1].Remove(squatter.ID)
		}
		if answer, err := ask(tt.address, "hello"); answer != tt.want {
			t.Errorf("asked from %s: %q, %v", tt.name, answer, err)
		}
	}
	if answer, err := ask(addresses[0][1], "again"); answer != "niaga" {
		t.Errorf("after the other group has gone: %q, %v", answer, err)
	}
}

func TestBadGroups(t *testing.T) {
	f := New("me", nil, "", slog.New(slog.DiscardHandler))
	defer f.Close()
	id := ID{"you", job}
	for name, sites := range map[string][]grid.SiteID{
		"no tasks": nil, "too many": make([]grid.SiteID, grid.RanksMax+1), "no site": {"me", ""}, "not here": {"you"},
	} {
		if _, err := f.Add(Group{id, sites}); !errors.Is(err, ErrGroup) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := f.Add(Group{id, []grid.SiteID{"me", "you"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(Group{id, []grid.SiteID{"you", "me"}}); !errors.Is(err, ErrGroup) {
		t.Errorf("other sites under the same name: got %v", err)
	}
	for i := uint64(1); i < groupsMax; i++ {
		if _, err := f.Add(Group{ID{"you", grid.TaskID{Job: grid.JobID{Lo: i}}}, []grid.SiteID{"me"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Add(Group{ID{"you", grid.TaskID{}}, []grid.SiteID{"me"}}); !errors.Is(err, ErrBusy) {
		t.Errorf("one job too many: got %v", err)
	}
}

func FuzzReadOpen(f *testing.F) {
	var b bytes.Buffer
	if err := writeOpen(&b, ID{"home", job}, 7); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{2, 8, 1})
	corpus.Fuzz(f, func(t *testing.T, frame []byte) {
		got, rank, err := readOpen(bufio.NewReader(bytes.NewReader(frame)))
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("got %v, want ErrMalformed", err)
			}
			return
		}
		var b bytes.Buffer
		if err := writeOpen(&b, got, rank); err != nil {
			t.Fatal(err)
		}
		again, rankAgain, err := readOpen(bufio.NewReader(&b))
		if err != nil || again != got || rankAgain != rank {
			t.Errorf("%v %d became %v %d, %v", got, rank, again, rankAgain, err)
		}
	})
}
