package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gridnode/grid"
)

// guardTestEnv has the test binary be a shim with its guard.
const guardTestEnv = "GRIDNODE_SHIM_TEST_GUARD"

// orderTestEnv has the test binary carry out an order.
const orderTestEnv = "GRIDNODE_SHIM_TEST_ORDER"

// patience is how long a test waits for what must come: that a busy machine needs long is no defect.
const patience = 5 * time.Minute

// The test binary is the shim, too, and a daemon to be killed.
func TestMain(m *testing.M) {
	if home := os.Getenv("GRIDNODE_SHIM_TEST"); home != "" {
		span := func(name string) time.Duration {
			d, _ := time.ParseDuration(os.Getenv("GRIDNODE_SHIM_TEST_" + name))
			return d
		}
		journalMax, _ := strconv.ParseInt(os.Getenv("GRIDNODE_SHIM_TEST_JOURNAL"), 10, 64)
		if err := Run(Config{Home: home, Idle: span("IDLE"), Grace: span("GRACE"), journalMax: journalMax}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if home := os.Getenv(guardTestEnv); home != "" {
		os.Exit(Main(home))
	}
	if order := os.Getenv(orderTestEnv); order != "" {
		os.Exit(Once(order))
	}
	if home := os.Getenv("GRIDNODE_SHIM_TEST_DAEMON"); home != "" {
		daemon(home)
	}
	goleak.VerifyTestMain(m)
}

// testShim is a home with its shim.
type testShim struct {
	testing.TB
	home   string
	env    []string
	client *Client
	next   int
}

// newTestShim connects to the shim of a new home, with a grace of 200 ms.
func newTestShim(t testing.TB, env ...string) *testShim {
	t.Helper()
	return newTestShimIn(t, t.TempDir(), env...)
}

func newTestShimIn(t testing.TB, home string, env ...string) *testShim {
	t.Helper()
	s := &testShim{TB: t, home: home}
	s.env = append([]string{"GRIDNODE_SHIM_TEST=" + home, "GRIDNODE_SHIM_TEST_GRACE=200ms"}, env...)
	s.connect()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *testShim) options() Options {
	return Options{Command: []string{"/proc/self/exe"}, Env: s.env}
}

func (s *testShim) connect() {
	s.Helper()
	c, err := Connect(context.Background(), s.home, s.options())
	if err != nil {
		s.Fatal(err)
	}
	s.client = c
}

// stop ends the shim and everything it runs.
func (s *testShim) stop() {
	s.client.Close()
	pid := s.client.PID()
	syscall.Kill(pid, syscall.SIGTERM)
	s.until("the shim ends", func() bool { return !alive(pid) })
	if log, err := os.ReadFile(logPath(s.home)); err == nil && s.Failed() {
		s.Logf("shim's log:\n%s", log)
	}
}

// until waits for a condition that must come true soon.
func (s *testShim) until(what string, condition func() bool) {
	s.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			s.Fatalf("waited in vain until %s", what)
		}
	}
}

func alive(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.gone()
}

// spec returns a task that runs a shell script in a directory of its own.
func (s *testShim) spec(script string) Spec {
	return s.command("/bin/sh", "-c", script)
}

func (s *testShim) command(args ...string) Spec {
	s.next++
	dir := filepath.Join(s.home, "jobs", strconv.Itoa(s.next))
	return Spec{
		ID: fmt.Sprintf("task%d", s.next), Args: args, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: filepath.Join(dir, "work"), Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
	}
}

func (s *testShim) start(spec Spec) {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(spec.Stdout), 0o700); err != nil {
		s.Fatal(err)
	}
	if err := s.client.Start(spec); err != nil {
		s.Fatal(err)
	}
}

// event returns the next end.
func (s *testShim) event() Ended {
	s.Helper()
	select {
	case e, ok := <-s.client.Events():
		if !ok {
			s.Fatalf("events ended: %v", s.client.Err())
		}
		return e
	case <-time.After(patience):
		s.Fatal("no end within", patience)
	}
	panic("unreachable")
}

// run starts a task, waits for its end and acknowledges it.
func (s *testShim) run(spec Spec) Ended {
	s.Helper()
	s.start(spec)
	e := s.event()
	if e.ID != spec.ID {
		s.Fatalf("end of %s, want %s", e.ID, spec.ID)
	}
	if err := s.client.Ack(e.ID); err != nil {
		s.Fatal(err)
	}
	return e
}

func (s *testShim) read(path string) string {
	s.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// pids waits until a task has written n process numbers to a file and returns them.
func (s *testShim) pids(spec Spec, n int) []int {
	s.Helper()
	var pids []int
	s.until(fmt.Sprintf("%s has told %d process numbers", spec.ID, n), func() bool {
		b, _ := os.ReadFile(filepath.Join(spec.Dir, "pids"))
		lines := strings.Split(string(b), "\n")
		pids = pids[:0]
		for _, line := range lines[:len(lines)-1] {
			pid, err := strconv.Atoi(line)
			if err != nil {
				s.Fatalf("process number %q", line)
			}
			pids = append(pids, pid)
		}
		return len(pids) >= n
	})
	return pids
}

func (s *testShim) allGone(pids []int) {
	s.Helper()
	for _, pid := range pids {
		// One without a command line has no memory any more: it is ending, and runs nothing.
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); alive(pid) && len(b) > 0 {
			s.Errorf("process %d (%q) is still there", pid, b)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// tell is a line of shell that leaves the number of the process that runs it.
const tell = "echo $$ >> pids; "

// daemon starts a task and says so, then waits to be killed.
func daemon(home string) {
	c, err := Connect(context.Background(), home, Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_SHIM_TEST_DAEMON=", "GRIDNODE_SHIM_TEST=" + home}})
	if err == nil {
		err = c.Start(Spec{
			ID: "orphaned", Args: []string{"sh", "-c", "echo begun; read line < fifo; echo $line; exit 7"}, Dir: home,
			Stdout: filepath.Join(home, "out"), Stderr: filepath.Join(home, "out"), Limit: grid.Hour,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}
