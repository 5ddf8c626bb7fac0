package e2e

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/node/api/apitest"
)

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
	w := apitest.NewRelay(t, "unix", filepath.Join(s.home, "api.sock"))
	list := []*follower{{want: "one\ntwo\n"}, {args: []string{"--tail", "1"}, want: "two\n"}}
	s.eventually("the job has written", func() bool { return s.run("logs", job).stdout == "one\ntwo\n" })
	for _, f := range list {
		f.cmd = exec.CommandContext(t.Context(), program, append([]string{"--socket", w.Address, "logs", "-f", job}, f.args...)...)
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
	before := w.Cut()
	gate.open(t)
	for _, f := range list {
		rest, err := io.ReadAll(f.out)
		if ended := f.cmd.Wait(); string(rest) != "three\n" || err != nil || ended != nil {
			t.Errorf("%q: then %q, %v, %v", f.args, rest, err, ended)
		}
	}
	if w.Cut() == before {
		t.Error("nobody has come back")
	}
}
