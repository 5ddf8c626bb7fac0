package shim

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
)

func TestResultsWaitForTheDaemon(t *testing.T) {
	s := newTestShim(t)
	begun, done := s.spec("exit 3"), s.spec(tell+"while ! [ -e go ]; do sleep 0.01; done; exit 4")
	running := s.spec("sleep 1000")
	for _, spec := range []Spec{begun, done, running} {
		s.start(spec)
	}
	if e := s.event(); e.ID != begun.ID { // told, but not acknowledged
		t.Fatalf("%+v", e)
	}
	s.pids(done, 1)
	pid := s.client.PID()
	s.client.Close()
	if err := os.WriteFile(filepath.Join(done.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]int32{begun.ID: 3, done.ID: 4}
	for range 2 { // again, as long as they are not acknowledged
		s.connect()
		if s.client.PID() != pid {
			t.Fatalf("shim %d, was %d", s.client.PID(), pid)
		}
		known := make(map[string]bool)
		for _, task := range s.client.Adopt() {
			known[task.ID] = task.Running
			if task.Start == 0 {
				t.Errorf("%+v has no start", task)
			}
		}
		if len(known) != 3 || !known[running.ID] {
			t.Errorf("adopted %v, want three tasks, %s running", known, running.ID)
		}
		got := map[string]int32{}
		for range want {
			e := s.event()
			got[e.ID] = e.ExitCode
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("ends %v, want %v", got, want)
		}
		s.client.Close()
	}
	s.connect()
	s.event()
	s.event()
	for id := range want {
		if err := s.client.Ack(id); err != nil {
			t.Fatal(err)
		}
	}
	s.client.Close()
	s.connect()
	if tasks := s.client.Adopt(); len(tasks) != 1 || tasks[0].ID != running.ID {
		t.Errorf("after the acknowledgement: %+v", tasks)
	}
}

// kill -9 of the daemon: the job goes on under its shim, and the next daemon learns
// its exit code.
func TestDaemonKilled(t *testing.T) {
	home := t.TempDir()
	fifo := filepath.Join(home, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GRIDNODE_SHIM_TEST_DAEMON="+home)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &testShim{TB: t, home: home, env: []string{"GRIDNODE_SHIM_TEST=" + home}}
	s.until("the task has begun", func() bool {
		b, _ := os.ReadFile(filepath.Join(home, "out"))
		return string(b) == "begun\n"
	})
	cmd.Process.Kill()
	cmd.Wait()
	s.connect()
	t.Cleanup(s.stop)
	if tasks := s.client.Adopt(); len(tasks) != 1 || !tasks[0].Running {
		t.Fatalf("adopted %+v", tasks)
	}
	if err := os.WriteFile(fifo, []byte("still here\n"), 0); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.ID != "orphaned" || e.ExitCode != 7 || e.Cause != CauseExit {
		t.Errorf("%+v", e)
	}
	if out := s.read(filepath.Join(home, "out")); out != "begun\nstill here\n" {
		t.Errorf("output %q", out)
	}
}

// kill -9 of the shim: what it ran is dead when the next one has said so, and what it
// knew is not forgotten.
func TestShimKilled(t *testing.T) {
	s := newTestShim(t)
	ended := s.spec("exit 3")
	s.start(ended)
	if e := s.event(); e.ID != ended.ID {
		t.Fatalf("%+v", e)
	}
	acknowledged := s.spec("exit 4")
	s.run(acknowledged)
	var pids, first []int
	var running []string
	for _, d := range descendants {
		spec := s.spec(tell + d.line + " sleep 1000")
		s.start(spec)
		running = append(running, spec.ID)
		first = append(first, s.pids(spec, 1)[0])
		pids = append(pids, s.pids(spec, 2)...)
	}
	// The processes with a cleared environment are known by their session, up to
	// the last sign of life.
	journal := filepath.Join(s.home, journalName)
	info, err := os.Stat(journal)
	if err != nil {
		t.Fatal(err)
	}
	s.until("the shim gives a sign of life", func() bool {
		now, err := os.Stat(journal)
		return err == nil && now.ModTime().After(info.ModTime().Add(touchEvery))
	})
	stranger := exec.Command("setsid", "sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	old := s.client.PID()
	syscall.Kill(old, syscall.SIGKILL)
	if _, open := <-s.client.Events(); open {
		t.Error("an end was told by a dead shim")
	}
	if err := s.client.Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v, want ErrClosed", err)
	}
	s.until("orders are refused", func() bool { return errors.Is(s.client.Start(ended), ErrClosed) })
	s.client.Close()
	s.until("the kernel has killed the first processes", func() bool { return !slices.ContainsFunc(first, alive) })
	s.connect()
	if s.client.PID() == old {
		t.Fatal("the dead shim answers")
	}
	s.allGone(pids)
	if !alive(stranger.Process.Pid) {
		t.Error("somebody else's process was killed")
	}
	stranger.Process.Kill()
	stranger.Wait()
	got := make(map[string]Ended)
	for range len(running) + 1 {
		e := s.event()
		got[e.ID] = e
	}
	if e := got[ended.ID]; e.ExitCode != 3 || e.Cause != CauseExit {
		t.Errorf("ended before: %+v", e)
	}
	for _, id := range running {
		if e := got[id]; e.Cause != CauseLost || e.ExitCode != 137 || e.Reason == "" || e.Start == 0 || e.End < e.Start {
			t.Errorf("%s: %+v, want it lost", id, e)
		}
	}
	// It goes on as any other, with the same mark.
	if e := s.run(s.spec("exit 6")); e.ExitCode != 6 {
		t.Errorf("%+v", e)
	}
}

// A shim killed between its intent and the start of a process.
func TestIntentWithoutAStart(t *testing.T) {
	home := t.TempDir()
	r := &records{home: home, boot: bootID(), token: "token"}
	if _, err := r.renew(func(func(string, known)) {}); err != nil {
		t.Fatal(err)
	}
	if err := r.intent("begun", 5); err != nil {
		t.Fatal(err)
	}
	r.journal.Close()
	left := exec.Command("sleep", "1000") // it had been started after all
	left.Env = []string{MarkEnv + "=token/begun"}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "1000")
	other.Env = []string{MarkEnv + "=other-token/begun"}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	s := newTestShimIn(t, home)
	if e := s.event(); e.ID != "begun" || e.Cause != CauseLost || e.Start != 5 {
		t.Errorf("%+v", e)
	}
	s.allGone([]int{left.Process.Pid})
	if !alive(other.Process.Pid) {
		t.Error("a process of another home was killed")
	}
	other.Process.Kill()
	other.Wait()
	left.Wait()
}

// After a restart of the machine process numbers mean nothing.
func TestMachineRestarted(t *testing.T) {
	home := t.TempDir()
	stranger := exec.Command("setsid", "sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	r := &records{home: home, boot: "another-boot", token: "token"}
	if _, err := r.renew(func(func(string, known)) {}); err != nil {
		t.Fatal(err)
	}
	if err := r.started("running", stranger.Process.Pid, 5); err != nil {
		t.Fatal(err)
	}
	r.journal.Close()
	s := newTestShimIn(t, home)
	if e := s.event(); e.ID != "running" || e.Cause != CauseLost || !strings.Contains(e.Reason, "machine") {
		t.Errorf("%+v", e)
	}
	if !alive(stranger.Process.Pid) {
		t.Error("somebody else's process was killed")
	}
	stranger.Process.Kill()
	stranger.Wait()
}

func TestOneShimPerHome(t *testing.T) {
	s := newTestShim(t)
	if err := Run(Config{Home: s.home}); !errors.Is(err, errRuns) {
		t.Errorf("second shim: %v", err)
	}
	s.client.Close()
	syscall.Kill(s.client.PID(), syscall.SIGKILL)
	var wg sync.WaitGroup
	clients := make([]*Client, 8)
	for i := range clients { // all of them find none and start one
		wg.Go(func() {
			c, err := Connect(context.Background(), s.home, s.options())
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, c := range clients[1:] {
		if c.PID() != clients[0].PID() {
			t.Errorf("shims %d and %d", c.PID(), clients[0].PID())
		}
	}
	for _, c := range clients {
		c.Close()
	}
	s.connect() // for the clean-up
}

func TestNewConnectionReplacesTheOld(t *testing.T) {
	s := newTestShim(t)
	first := s.client
	s.connect()
	if _, open := <-first.Events(); open {
		t.Error("the replaced connection was told something")
	}
	first.Close()
	if e := s.run(s.spec("exit 2")); e.ExitCode != 2 {
		t.Errorf("%+v", e)
	}
}

func TestStartTwiceIsOnce(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("echo x >> count; while ! [ -e go ]; do sleep 0.01; done; exit 3")
	s.start(spec)
	s.start(spec)
	s.until("it runs", func() bool { _, err := os.Stat(filepath.Join(spec.Dir, "count")); return err == nil })
	if err := os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.ExitCode != 3 {
		t.Errorf("%+v", e)
	}
	s.start(spec) // ended, not acknowledged: the same end again
	if e := s.event(); e.ID != spec.ID || e.ExitCode != 3 {
		t.Errorf("%+v", e)
	}
	if got := s.read(filepath.Join(spec.Dir, "count")); got != "x\n" {
		t.Errorf("it ran %d times", len(got)/2)
	}
}

// Whatever comes through the socket: the connection ends, the shim and its tasks do not.
func TestGarbageOnTheSocket(t *testing.T) {
	s := newTestShim(t)
	running := s.spec("while ! [ -e go ]; do sleep 0.01; done; exit 9")
	s.start(running)
	s.until("it runs", func() bool { _, err := os.Stat(running.Dir); return err == nil })
	hello := appendFrame(nil, kindHello, helloBody)
	random := make([]byte, 4096)
	for i := range random {
		random[i] = byte(rand.Int())
	}
	for _, tt := range []struct {
		name string
		send []byte
	}{
		{"nothing", nil},
		{"random bytes", random},
		{"order before hello", appendFrame(nil, kindRetire, nil)},
		{"other version", appendFrame(nil, kindHello, func(b []byte) []byte { return binary.AppendUvarint(b, version+1) })},
		{"empty hello", appendFrame(nil, kindHello, nil)},
		{"empty frame", append(slices.Clone(hello), 0, 0, 0, 0, 0)},
		{"oversize frame", append(slices.Clone(hello), 0xff, 0xff, 0xff, 0xff, byte(kindStart))},
		{"truncated frame", append(slices.Clone(hello), 0, 0, 1, 0, byte(kindStart), 'x')},
		{"unknown kind", appendFrame(slices.Clone(hello), 77, nil)},
		{"malformed spec", appendFrame(slices.Clone(hello), kindStart, func(b []byte) []byte { return append(b, random[:100]...) })},
		{"spec out of bounds", appendFrame(slices.Clone(hello), kindStart, (&Spec{ID: "x", Args: []string{"touch", s.home + "/harm"}, Dir: "relative", Stdout: "/dev/null", Stderr: "/dev/null"}).append)},
		{"malformed kill", appendFrame(slices.Clone(hello), kindKill, func(b []byte) []byte { return append(b, 200) })},
		{"malformed acknowledgement", appendFrame(slices.Clone(hello), kindAck, func(b []byte) []byte { return append(b, 3, 'a') })},
		{"random bytes behind hello", append(slices.Clone(hello), random...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := dial(context.Background(), s.home)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(tt.send); err != nil {
				t.Logf("write: %v", err) // it may have had enough already
			}
			c.CloseWrite()
			c.SetReadDeadline(time.Now().Add(patience))
			r := bufio.NewReader(c)
			var buf []byte
			for {
				if _, _, err = readFrame(r, &buf); err != nil {
					break
				}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection was kept open")
			}
		})
	}
	pid := s.client.PID()
	s.client.Close()
	s.connect()
	if s.client.PID() != pid {
		t.Error("the shim did not survive")
	}
	if _, err := os.Stat(filepath.Join(s.home, "harm")); err == nil {
		t.Error("a malformed order was carried out")
	}
	if err := os.WriteFile(filepath.Join(running.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); e.ID != running.ID || e.ExitCode != 9 {
		t.Errorf("%+v", e)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	s := newTestShim(t)
	info, err := os.Stat(filepath.Join(s.home, socketName))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("socket has mode %v, %v", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		return // cannot be somebody else
	}
	if err := os.Chmod(filepath.Join(s.home, socketName), 0o666); err != nil {
		t.Fatal(err)
	}
	for dir := s.home; dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=TestDialAsAnother$")
	cmd.Env = append(os.Environ(), "GRIDNODE_SHIM_TEST_OTHER="+s.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDialAsAnother is the child of TestSocketIsPrivate.
func TestDialAsAnother(t *testing.T) {
	home := os.Getenv("GRIDNODE_SHIM_TEST_OTHER")
	if home == "" {
		return
	}
	if c, err := Dial(context.Background(), home); err == nil {
		c.Close()
		t.Error("another user was let in")
	} else if !errors.Is(err, errNoShim) {
		t.Errorf("dial: %v, want the connection closed by the shim", err)
	}
}

func TestLongHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long/", 30)+"home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	s := newTestShimIn(t, home)
	if e := s.run(s.spec("exit 5")); e.ExitCode != 5 {
		t.Errorf("%+v", e)
	}
}

func TestConnectErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Connect(context.Background(), missing, Options{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing home: %v", err)
	}
	home := t.TempDir()
	if _, err := Connect(context.Background(), home, Options{Command: []string{"/bin/false"}}); err == nil || !strings.Contains(err.Error(), logPath(home)) {
		t.Errorf("command that does nothing: %v, want an error that names the log", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Connect(ctx, home, Options{Command: []string{"/bin/sleep", "5"}}); err == nil {
		t.Error("a cancelled Connect succeeded")
	}
	if _, err := Dial(context.Background(), home); !errors.Is(err, errNoShim) {
		t.Errorf("dial without a shim: %v", err)
	}
	if err := os.Mkdir(filepath.Join(home, "shim.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	options := Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_SHIM_TEST=" + home}}
	if _, err := Connect(context.Background(), home, options); err == nil || !strings.Contains(err.Error(), "shim.lock") {
		t.Errorf("shim that cannot begin: %v, want its reason", err)
	}
}

func TestSpecBounds(t *testing.T) {
	s := newTestShim(t)
	good := s.spec("exit 0")
	for name, change := range map[string]func(*Spec){
		"no id":             func(p *Spec) { p.ID = "" },
		"long id":           func(p *Spec) { p.ID = strings.Repeat("x", idMax+1) },
		"zero byte":         func(p *Spec) { p.ID = "a\x00b" },
		"no command":        func(p *Spec) { p.Args = nil },
		"empty command":     func(p *Spec) { p.Args = []string{""} },
		"relative path":     func(p *Spec) { p.Stdout = "out" },
		"negative limit":    func(p *Spec) { p.Limit = -1 },
		"limit for ever":    func(p *Spec) { p.Limit = grid.Never },
		"large environment": func(p *Spec) { p.Env = []string{strings.Repeat("x", specMax)} },
	} {
		bad := good
		change(&bad)
		if err := s.client.Start(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	large := s.spec("exit 0")
	for range 2000 { // a legal environment near the bound
		large.Env = append(large.Env, "X="+strings.Repeat("x", 110))
	}
	if e := s.run(large); e.ExitCode != 0 {
		t.Errorf("large environment: %+v", e)
	}
}

func TestIdleShimEnds(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_IDLE=50ms")
	pid := s.client.PID()
	running := s.spec(tell + "while ! [ -e go ]; do sleep 0.01; done; exit 8")
	s.start(running)
	s.pids(running, 1)
	s.client.Close()
	<-time.After(300 * time.Millisecond) // six times what it would wait without a task
	if !alive(pid) {
		t.Fatal("the shim left a running task")
	}
	if err := os.WriteFile(filepath.Join(running.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("the shim ends", func() bool { return !alive(pid) })
	s.connect()
	if s.client.PID() == pid {
		t.Error("a dead shim answers")
	}
	if e := s.event(); e.ID != running.ID || e.ExitCode != 8 || e.Cause != CauseExit {
		t.Errorf("%+v", e)
	}
}

// TestKeptShimWaits for its daemon, though it has nothing to do: who has started it ends it.
func TestKeptShimWaits(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_IDLE=50ms", KeptEnv+"=1")
	pid := s.client.PID()
	spec := s.spec("exit 3")
	s.start(spec)
	s.event()
	s.client.Close()
	<-time.After(300 * time.Millisecond) // six times what another one would wait
	if s.connect(); s.client.PID() != pid {
		t.Fatal("the shim has ended")
	}
	if e := s.event(); e.ID != spec.ID || e.ExitCode != 3 {
		t.Errorf("%+v", e)
	}
}

func TestRetire(t *testing.T) {
	s := newTestShim(t)
	pid := s.client.PID()
	spec := s.spec("while ! [ -e go ]; do sleep 0.01; done; exit 1")
	s.start(spec)
	if err := s.client.Retire(); err != nil {
		t.Fatal(err)
	}
	s.until("the task runs", func() bool { _, err := os.Stat(spec.Dir); return err == nil })
	if err := os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := s.event()
	if !alive(pid) {
		t.Error("it did not wait for the acknowledgement")
	}
	s.client.Close() // and ends even so: the end is in its journal
	s.until("the shim ends", func() bool { return !alive(pid) })
	s.connect()
	pid = s.client.PID()
	if again := s.event(); again != e {
		t.Errorf("then %+v, was %+v", again, e)
	}
	if err := s.client.Retire(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Ack(e.ID); err != nil {
		t.Fatal(err)
	}
	s.until("the shim ends", func() bool { return !alive(pid) })
}

// A daemon that comes back takes its predecessor's order to retire back.
func TestRetireIsTakenBack(t *testing.T) {
	s := newTestShim(t)
	pid := s.client.PID()
	spec := s.spec("while ! [ -e go ]; do sleep 0.01; done; exit 1")
	s.start(spec)
	if err := s.client.Retire(); err != nil {
		t.Fatal(err)
	}
	s.client.Close()
	s.connect()
	if err := os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Ack(s.event().ID); err != nil {
		t.Fatal(err)
	}
	if e := s.run(s.spec("exit 2")); e.ExitCode != 2 || !alive(pid) {
		t.Errorf("%+v", e)
	}
}

// The shim's own end in order takes its tasks along, and their ends are not lost.
func TestShimTerminated(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec(tell + "sleep 1000 & sleep 1000")
	s.start(spec)
	pids := s.pids(spec, 1)
	pid := s.client.PID()
	syscall.Kill(pid, syscall.SIGTERM)
	s.until("the shim ends", func() bool { return !alive(pid) })
	s.allGone(pids)
	s.client.Close()
	s.connect()
	if e := s.event(); e.ID != spec.ID || e.Cause != CauseKill || e.ExitCode != 143 {
		t.Errorf("%+v", e)
	}
}

// resources returns the descriptors and threads of a process.
func resources(t testing.TB, pid int) (descriptors, threads int) {
	t.Helper()
	for dir, n := range map[string]*int{"fd": &descriptors, "task": &threads} {
		entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), dir))
		if err != nil {
			t.Fatal(err)
		}
		*n = len(entries)
	}
	return descriptors, threads
}

func TestNoLeaks(t *testing.T) {
	s := newTestShim(t)
	several := func(n int) {
		for i := range n {
			script := "exit 0"
			if i%10 == 0 {
				script = "(setsid sleep 1000 &)" // an orphan
			}
			s.start(s.spec(script))
		}
		for range n {
			if err := s.client.Ack(s.event().ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	several(50)
	descriptors, threads := resources(t, s.client.PID())
	several(200)
	moreDescriptors, moreThreads := resources(t, s.client.PID())
	if moreDescriptors > descriptors || moreThreads > threads+4 {
		t.Errorf("%d descriptors and %d threads after 50 tasks, %d and %d after 250", descriptors, threads, moreDescriptors, moreThreads)
	}
	self := s.client.PID()
	s.until("no child is left", func() bool { // the last orphan may be dying still
		left := 0
		processes(func(p process) {
			if p.parent == self {
				left++
			}
		})
		return left == 0
	})
}

func TestThousandSleepers(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_GRACE=20s")
	const n = 1000
	for range n {
		s.start(s.command("sleep", "1000"))
	}
	children := func() (n int) {
		processes(func(p process) {
			if p.parent == s.client.PID() && !p.gone() {
				n++
			}
		})
		return n
	}
	s.until("all of them run", func() bool { return children() == n })
	descriptors, threads := resources(t, s.client.PID())
	if descriptors > 30 || threads > 30 {
		t.Errorf("%d descriptors and %d threads for %d tasks", descriptors, threads, n)
	}
	rss := residentKiB(t, s.client.PID())
	t.Logf("%d tasks: %d KiB resident, %d descriptors, %d threads", n, rss, descriptors, threads)
	if rss > 64<<10 {
		t.Errorf("%d KiB resident with %d tasks", rss, n)
	}
	for i := range n {
		if err := s.client.Kill(fmt.Sprintf("task%d", i+1), "all"); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if e := s.event(); e.Cause != CauseKill || e.ExitCode != 143 {
			t.Fatalf("%+v", e)
		}
	}
	if left := children(); left != 0 {
		t.Errorf("%d processes left", left)
	}
}

// residentKiB returns the VmRSS of a process.
func residentKiB(t testing.TB, pid int) (kib int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	fmt.Sscan(rest, &kib)
	return kib
}
