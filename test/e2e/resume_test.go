package e2e

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wire leads to the socket of a site until it is cut.
type wire struct {
	path string
	mu   sync.Mutex
	ends []net.Conn
	made int
}

func newWire(t *testing.T, to string) *wire {
	w := &wire{path: filepath.Join(t.TempDir(), "s")}
	listener, err := net.Listen("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); w.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", to)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.ends, w.made = append(w.ends, near, far), w.made+1
			w.mu.Unlock()
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
		}
	}()
	return w
}

// cut ends the connections that there are, and returns how many there were so far.
func (w *wire) cut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		end.Close()
	}
	w.ends = nil
	return w.made
}

// Output that is followed goes on where it was when the connection breaks: nothing is missing,
// nothing comes twice.
func TestOutputGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, "home")
	s.start()
	gate := newGate(t)
	job := strings.TrimSpace(s.ok("submit", "--", "sh", "-c", "echo one; echo two; read x <"+string(gate)+"; echo three"))
	type follower struct {
		args []string
		want string // before the connection is cut
		cmd  *exec.Cmd
		out  io.ReadCloser
	}
	w := newWire(t, filepath.Join(s.home, "api.sock"))
	list := []*follower{{want: "one\ntwo\n"}, {args: []string{"--tail", "1"}, want: "two\n"}}
	s.eventually("the job has written", func() bool { return s.run("logs", job).stdout == "one\ntwo\n" })
	for _, f := range list {
		f.cmd = exec.CommandContext(t.Context(), program, append([]string{"--socket", w.path, "logs", "-f", job}, f.args...)...)
		var err error
		if f.out, err = f.cmd.StdoutPipe(); err == nil {
			err = f.cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		begin := make([]byte, len(f.want))
		if _, err := io.ReadFull(f.out, begin); err != nil || string(begin) != f.want {
			t.Fatalf("%q: %q, %v", f.args, begin, err)
		}
	}
	before := w.cut()
	gate.open(t)
	for _, f := range list {
		rest, err := io.ReadAll(f.out)
		if ended := f.cmd.Wait(); string(rest) != "three\n" || err != nil || ended != nil {
			t.Errorf("%q: then %q, %v, %v", f.args, rest, err, ended)
		}
	}
	if w.cut() == before {
		t.Error("nobody has come back")
	}
}
