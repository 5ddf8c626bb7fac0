package e2e

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// screen is a terminal at which a command of gridnode runs.
type screen struct {
	testing.TB
	keys io.ReadWriteCloser
	cmd  *exec.Cmd

	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // holds a token when more is shown
	done chan struct{}
}

// sit runs a command at a terminal.
func (s *site) sit(args ...string) *screen {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.Cleanup(cancel)
	v := &screen{TB: s.TB, cmd: s.command(ctx, args...), more: make(chan struct{}, 1), done: make(chan struct{})}
	v.cmd.Stdin, v.cmd.Stdout, v.cmd.Stderr = nil, nil, nil
	master, err := pty.StartWithSize(v.cmd, &pty.Winsize{Rows: 33, Cols: 99})
	if err != nil {
		s.Fatal(err)
	}
	v.keys = master
	s.Cleanup(func() { master.Close() })
	go func() {
		defer close(v.done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			v.mu.Lock()
			v.text.Write(buffer[:n])
			v.mu.Unlock()
			select {
			case v.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return v
}

func (v *screen) types(text string) {
	v.Helper()
	if _, err := io.WriteString(v.keys, text); err != nil {
		v.Fatal(err)
	}
}

func (v *screen) seen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text.String()
}

func (v *screen) shows(text string) {
	v.Helper()
	late := time.After(patience)
	for !strings.Contains(v.seen(), text) {
		select {
		case <-v.more:
		case <-v.done:
			if !strings.Contains(v.seen(), text) {
				v.Fatalf("no %q: %s", text, v.seen())
			}
		case <-late:
			v.Fatalf("no %q after %v: %s", text, patience, v.seen())
		}
	}
}

// ends waits for the command and checks its exit code.
func (v *screen) ends(code int) {
	v.Helper()
	<-v.done
	if _ = v.cmd.Wait(); v.cmd.ProcessState.ExitCode() != code {
		v.Fatalf("exit code %d, want %d: %s", v.cmd.ProcessState.ExitCode(), code, v.seen())
	}
}

// TestNotify: the command at the end of a job that ran elsewhere runs at home, and again if the
// daemon ended meanwhile.
func TestNotify(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"alpha", "beta"}, map[string][]string{"beta": {"--foreign", "allow"}})
	alpha, dir := sites[0], t.TempDir()
	said := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "said")) // none yet: nothing
		return string(text)
	}
	command := `echo "$GRIDNODE_JOB_STATE $GRIDNODE_JOB_EXIT_CODE with $(cat left) at $GRIDNODE_JOB_SITE" >>said; until [ -e go ]; do sleep 0.1; done`
	alpha.code(3, "submit", "-q", "-W", "--site", "beta", "-D", dir, "--notify", command, "--", "sh", "-c", "echo files >left; exit 3")
	const line = "failed 3 with files at "
	alpha.eventually("the command has begun", func() bool { return said() == line+"beta\n" })
	alpha.kill()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	alpha.start()
	alpha.eventually("the command has begun again", func() bool { return strings.Count(said(), line) == 2 }) // beta's name may not be known again
	alpha.code(2, "submit", "--notify", strings.Repeat("x", 5000), "--", "true")
}

// TestLookingIntoJobs: a job with a terminal here and one at another site are sat at, left and
// come back to; commands run beside them; and who is not the owner's site gets nothing.
func TestLookingIntoJobs(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"alpha", "beta"}, map[string][]string{"alpha": {"--processors", "2"}, "beta": {"--processors", "2", "--foreign", "allow"}})
	alpha, beta := sites[0], sites[1]
	for _, at := range sites {
		v := alpha.sit("submit", "--pty", "--site", at.name(), "--", "sh", "-c", "echo begun at $GRIDNODE_SITE; while read -r x; do echo \"<$x> $(stty size)\"; [ \"$x\" = end ] && exit 3; done")
		v.shows("begun at " + at.name())
		id := strings.Fields(v.seen())[0]
		v.types("hello\r")
		v.shows("<hello> 33 99")
		if r := alpha.runIn("over there", "exec", id, "--", "sh", "-c", "cat; echo $GRIDNODE_SITE; echo err >&2; exit 6"); r.code != 6 || r.stdout != "over there"+at.name()+"\n" || r.stderr != "err\n" {
			t.Errorf("exec: %v", r)
		}
		if at == beta {
			if r := beta.run("exec", id, "--", "true"); r.code == 0 {
				t.Errorf("the site where it runs looks into a job of another: %v", r)
			}
		}
		v.types("\x1dd")
		v.ends(0)
		v = alpha.sit("attach", id)
		v.shows("<hello>") // it was shown before
		v.types("end\r")
		v.ends(3)
		if out := alpha.ok("logs", id); !strings.Contains(out, "<hello>") {
			t.Errorf("logs: %q", out)
		}
		alpha.code(5, "attach", id)
		alpha.code(5, "exec", id, "--", "true")
	}
	plain := strings.TrimSpace(alpha.ok("submit", "-q", "--", "sleep", "1000"))
	alpha.code(5, "attach", plain)
	v := alpha.sit("top", "-d", "1s")
	v.shows(plain[:8])
	v.types("q")
	v.ends(0)
	if out := alpha.ok("top"); !strings.Contains(out, plain[:8]) || !strings.Contains(out, "beta") {
		t.Errorf("top where there is no terminal: %q", out)
	}
	alpha.ok("cancel", plain)
}
