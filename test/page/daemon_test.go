package page

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridnode/test/realsite"
)

// program is the binary under test: the one that GRIDNODE_E2E_PROGRAM names, or one built
// from this tree.
var program = os.Getenv("GRIDNODE_E2E_PROGRAM")

func TestMain(m *testing.M) {
	code := func() int {
		if program != "" || browserPath() == "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "gridnode-page")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "gridnode")
		if out, err := exec.Command("go", "build", "-o", program, "gridnode/cmd/gridnode").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v: %s", err, out)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

// site is a home and its daemon.
type site struct {
	testing.TB
	home   string
	daemon *exec.Cmd
}

func newSite(tb testing.TB, name string, flags ...string) *site {
	tb.Helper()
	s := &site{TB: tb, home: filepath.Join(tb.TempDir(), name)}
	s.ok(append([]string{"init", "--site", name, "--listen", "127.0.0.1:" + freePort(tb), "--speed", "1000", "--foreign", "allow"}, flags...)...)
	tb.Cleanup(func() {
		s.kill()
		if tb.Failed() {
			text, _ := os.ReadFile(filepath.Join(s.home, "daemon.log"))
			tb.Logf("the log of %s:\n%s", name, text)
		}
	})
	return s
}

func freePort(tb testing.TB) string {
	tb.Helper()
	port, err := realsite.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return strconv.Itoa(port)
}

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(s.home), "GRIDNODE_HOME=" + s.home, "GRIDNODE_USERS_ROOT=allow", "GRIDNODE_SANDBOX_WALLS=none"}
	if os.Geteuid() == 0 {
		cmd.Env = append(cmd.Env, "GRIDNODE_GUESTS_ACCOUNT=nobody")
	}
	return cmd
}

func (s *site) ok(args ...string) string {
	s.Helper()
	cmd := s.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("gridnode %q: %v: %s", args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// start starts the daemon and returns once it is ready.
func (s *site) start() *site {
	s.Helper()
	log, err := os.OpenFile(filepath.Join(s.home, "daemon.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	s.daemon = s.command("start")
	s.daemon.Stderr = log
	out, err := s.daemon.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.daemon.Start(); err != nil {
		s.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.Fatalf("the daemon is not ready: %v", err)
	}
	return s
}

// kill ends the daemon as a power cut does.
func (s *site) kill() {
	if s.daemon != nil {
		_ = s.daemon.Process.Kill()
		_ = s.daemon.Wait()
		s.daemon = nil
	}
}

// federation starts two sites that are members of one, the second cheaper.
func federation(tb testing.TB) (alpha, beta *site) {
	tb.Helper()
	alpha = newSite(tb, "alpha", "--create", "campus", "--price", "0.5", "--processors", "4")
	alpha.ok("config", "set", "web.listen", "127.0.0.1:"+freePort(tb))
	alpha.start()
	token := alpha.ok("invite", "--site", "beta")
	beta = newSite(tb, "beta", "--join", token, "--price", "0.2", "--processors", "2").start()
	alpha.sees("beta")
	return alpha, beta
}

// sees waits until a site has heard of another.
func (s *site) sees(name string) {
	s.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(s.ok("sites", "-o", "name"), name); <-time.After(look) {
		if time.Now().After(deadline) {
			s.Fatalf("it has not heard of %s", name)
		}
	}
}
