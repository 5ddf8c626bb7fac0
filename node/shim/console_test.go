package shim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridnode/node/console"
	"gridnode/node/sandbox"
)

// look opens a console of a task of the test's shim.
func (s *testShim) look(task string, request console.Request) *console.Conn {
	s.Helper()
	var c *console.Conn
	var why error
	defer func() {
		if s.Failed() {
			s.Log(why)
		}
	}()
	s.until("the task can be looked at", func() bool {
		raw, err := DialConsole(context.Background(), s.home, task, &request)
		if err != nil {
			s.Fatal(err)
		}
		c = console.New(raw)
		_ = raw.SetReadDeadline(time.Now().Add(patience)) // no test waits for ever
		err = c.Await()
		if err != nil && !errors.Is(err, console.ErrAbsent) {
			s.Fatal(err)
		}
		if err != nil {
			c.Close() // it has not been started yet
			why = err
		}
		return err == nil
	})
	s.Cleanup(func() { c.Close() })
	return c
}

// shows reads a console until it shows text, or ends.
func (s *testShim) shows(c *console.Conn, text string) {
	s.Helper()
	var seen []byte
	for !bytes.Contains(seen, []byte(text)) {
		k, body, err := c.Receive()
		if err != nil || k == console.Exit {
			s.Fatalf("no %q in %q: kind %d, %v", text, seen, k, err)
		}
		seen = append(seen, body...)
	}
}

// exits reads a console to its end.
func (s *testShim) exits(c *console.Conn) (seen [2]string, code int32, reason string) {
	s.Helper()
	for {
		k, body, err := c.Receive()
		switch {
		case err != nil:
			s.Fatalf("after %q: %v", seen, err)
		case k == console.Output:
			seen[0] += string(body)
		case k == console.Errors:
			seen[1] += string(body)
		case k == console.Exit:
			code, reason, _ := console.ParseEnd(append([]byte(nil), body...))
			return seen, code, reason
		}
	}
}

func (s *testShim) types(c *console.Conn, text string) {
	s.Helper()
	if err := c.Send(console.Input, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

// TestTerminal: whoever looks at a task with a terminal sees what it shows, also what was shown
// before; what he types is read; the size is his; a second one takes his place; and the file of
// output has it all.
func TestTerminal(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("test -t 0 && test -t 2 && echo ready; while read -r line; do echo \"<$line> $(stty size)\"; [ \"$line\" = end ] && exit 7; done")
	spec.Terminal = true
	spec.Stderr = spec.Stdout
	s.start(spec)
	first := s.look(spec.ID, console.Request{Rows: 50, Cols: 132})
	s.shows(first, "ready")
	s.types(first, "one\n")
	s.shows(first, "<one> 50 132")
	if err := first.Send(console.Resize, console.Size(20, 70)); err != nil {
		t.Fatal(err)
	}
	s.types(first, "two\n")
	s.shows(first, "<two> 20 70")

	second := s.look(spec.ID, console.Request{})
	s.shows(second, "<one> 50 132") // it was shown before
	if _, code, reason := s.exits(first); code != exitElsewhere || reason == "" {
		t.Errorf("the first is told %d, %q", code, reason)
	}
	second.Close() // the task goes on
	third := s.look(spec.ID, console.Request{})
	s.types(third, "end\n")
	if _, code, _ := s.exits(third); code != 7 {
		t.Errorf("the end has code %d", code)
	}
	if e := s.event(); e.ExitCode != 7 || e.Cause != CauseExit {
		t.Errorf("%+v", e)
	}
	if log := s.read(spec.Stdout); !strings.Contains(log, "<one> 50 132") || !strings.Contains(log, "<end>") {
		t.Errorf("the file of output has %q", log)
	}
}

// TestTerminalInterrupts: what is typed at a terminal interrupts what runs in it.
func TestTerminalInterrupts(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.1; done")
	spec.Terminal = true
	s.start(spec)
	c := s.look(spec.ID, console.Request{})
	s.shows(c, "ready")
	s.types(c, "\x03")
	if seen, code, _ := s.exits(c); code != 3 || !strings.Contains(seen[0], "caught") {
		t.Errorf("code %d, %q", code, seen)
	}
}

// TestBeside: a command beside a task has its directory and environment, gets what is typed,
// and its streams and exit code come back. It ends when the asker goes, and with the task.
func TestBeside(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("sleep 1000")
	spec.Env = append(spec.Env, "MARKED=yes")
	s.start(spec)
	c := s.look(spec.ID, console.Request{Args: []string{"/bin/sh", "-c", "cat; pwd >&2; echo $MARKED; exit 5"}})
	s.types(c, "hello\n")
	if err := c.Send(console.EOF, nil); err != nil {
		t.Fatal(err)
	}
	if seen, code, _ := s.exits(c); code != 5 || seen != [2]string{"hello\nyes\n", spec.Dir + "\n"} {
		t.Errorf("code %d, %q", code, seen)
	}
	c = s.look(spec.ID, console.Request{Args: []string{"/bin/sh", "-c", "tty >/dev/null && echo $TERM"}, TTY: true, Term: "xterm-test"})
	if seen, code, _ := s.exits(c); code != 0 || !strings.Contains(seen[0], "xterm-test") {
		t.Errorf("code %d, %q", code, seen)
	}

	raw, err := DialConsole(context.Background(), s.home, spec.ID, &console.Request{Args: []string{"/nowhere/x"}})
	if err != nil {
		t.Fatal(err)
	}
	var refusal *console.Refusal
	if err := console.New(raw).Await(); !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "not found") {
		t.Errorf("a command that is not there: %v", err)
	}

	mark := spec.Dir + "/pid"
	sleeper := []string{"/bin/sh", "-c", "echo $$ >pid.part; mv pid.part pid; exec sleep 1000"}
	pid := func() int {
		s.until("the command has begun", func() bool { _, err := os.Stat(mark); return err == nil })
		n, err := strconv.Atoi(strings.TrimSpace(s.read(mark)))
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(mark)
		return n
	}
	c = s.look(spec.ID, console.Request{Args: sleeper})
	gone := pid()
	c.Close()
	s.until("the command has ended with its asker", func() bool { return !alive(gone) })
	c = s.look(spec.ID, console.Request{Args: sleeper})
	with := pid()
	if err := s.client.Kill(spec.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	s.event()
	if alive(with) {
		t.Error("the task is over, and a command beside it is not")
	}
	if _, code, _ := s.exits(c); code == 0 {
		t.Error("it ended well")
	}
}

// TestBesideIsInsideWalls: a command beside a task that is behind walls sees what that sees and
// nothing else, with a terminal and without.
func TestBesideIsInsideWalls(t *testing.T) {
	means := sandbox.Find()
	for _, kind := range []sandbox.Kind{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			plan, err := means.Plan(kind, &sandbox.Rule{Walls: true, Limits: sandbox.Limits{Disk: 1 << 20, Files: 100, Memory: 1 << 30, Processes: 50}})
			if err != nil {
				t.Skip(err)
			}
			s := newTestShim(t)
			secret := s.home + "/secret"
			if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			spec := s.spec("echo here >mine; echo ready; read x; sleep 1000")
			spec.Plan, spec.Terminal = plan, true
			spec.Env = append(spec.Env, "PATH=/usr/bin:/bin")
			if !plan.HasFolder() {
				if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s.start(spec)
			own := s.look(spec.ID, console.Request{})
			s.shows(own, "ready")
			script := "cat mine; cat " + secret + " || echo hidden; id -u; unshare -U true && echo free; kill -9 1; ulimit -n; test -t 0 && echo terminal; exit 4"
			for _, tty := range []bool{false, true} {
				c := s.look(spec.ID, console.Request{Args: []string{"/bin/sh", "-c", script}, TTY: tty})
				seen, code, reason := s.exits(c)
				text := seen[0] + seen[1]
				if code != 4 || !strings.Contains(text, "here") || !strings.Contains(text, "hidden") || strings.Contains(text, "free") || !strings.Contains(text, "100") {
					t.Errorf("code %d %s, shows %q", code, reason, text)
				}
				if strings.Contains(text, "terminal") != tty {
					t.Errorf("terminal %v: %q", tty, text)
				}
			}
			if err := s.client.Kill(spec.ID, "enough"); err != nil {
				t.Fatal(err)
			}
			s.event()
			if _, _, err := own.Receive(); err != nil && !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		})
	}
}

// Who looks at a terminal whose task has ended meanwhile sees what it showed, and its end.
func TestTerminalThatIsLookedAtTooLate(t *testing.T) {
	here, there := net.Pipe()
	master, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	term := &terminal{master: master, done: make(chan struct{})}
	term.show([]byte("said"))
	term.end(&Ended{ExitCode: 7})
	term.watch(console.New(here))
	c := console.New(there)
	_ = there.SetReadDeadline(time.Now().Add(patience))
	if k, body, err := c.Receive(); k != console.Output || string(body) != "said" {
		t.Fatalf("first: kind %d, %q, %v", k, body, err)
	}
	k, body, err := c.Receive()
	if code, _, _ := console.ParseEnd(body); k != console.Exit || code != 7 {
		t.Errorf("last: kind %d, %q, %v", k, body, err)
	}
}
