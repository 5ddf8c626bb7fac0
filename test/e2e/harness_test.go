package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/test/realsite"
)

// program is the binary under test: the one that GRIDNODE_E2E_PROGRAM names, or one
// built from this tree.
var program = os.Getenv("GRIDNODE_E2E_PROGRAM")

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// together is how many of the tests run at a time at least that may: they wait for daemons
// more than they compute.
const together = 4

func testMain(m *testing.M) int {
	flag.Parse()
	if n := flag.Lookup("test.parallel"); runtime.GOMAXPROCS(0) < together && n.Value.String() == n.DefValue {
		if err := n.Value.Set(strconv.Itoa(together)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "gridnode-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	_ = os.Chmod(dir, 0o755) // other accounts run it, too
	program = filepath.Join(dir, "gridnode")
	for _, b := range []struct {
		env  []string
		args []string
	}{{[]string{"CGO_ENABLED=0"}, []string{"-o", program, "-tags", "client"}}, {nil, []string{"-o", program + "d"}}} { // as `make build` does
		build := exec.Command("go", slices.Concat([]string{"build"}, b.args, []string{"gridnode/cmd/gridnode"})...)
		build.Env = append(os.Environ(), b.env...)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			return 1
		}
	}
	return m.Run()
}

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// waitMost bounds a 'gridnode wait' of something that must happen, so that it says itself what is
// not over.
const waitMost = "110s"

// look is the pause before a test looks again at what it waits for. Each look is a process: many
// in a row keep from the daemons what they need to get there.
const look = 50 * time.Millisecond

// site is a home, and its daemon while one runs.
type site struct {
	testing.TB
	home   string
	port   int
	daemon *exec.Cmd
	addr   string // to join
	id     string
	walls  string // around jobs of others; empty: none, as its jobs read and write beside the test
	netns  string // network namespace of the daemon; empty: that of the test
	ip     string // its address there; empty: 127.0.0.1

	program string // what it runs; empty: the binary under test

	account uint32   // of the daemon and of who asks it; 0: this process's
	env     []string // besides what every site has
}

// result is what a command line gave.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
}

// job returns the ID that submit --wait has told.
func (r result) job() string {
	for line := range strings.Lines(r.stderr) {
		if id, ok := strings.CutPrefix(line, "job "); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// run runs the program on the site's home and returns what it gave.
func (s *site) run(args ...string) result {
	s.Helper()
	return s.runIn("", args...)
}

// runIn does so with text as standard input.
func (s *site) runIn(text string, args ...string) result {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		s.Fatalf("gridnode %q is not done after %v\nstdout: %s\nstderr: %s", args, patience, &stdout, &stderr)
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		s.Fatalf("gridnode %q: %v", args, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cmp.Or(s.program, program), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GRIDNODE_HOME=" + s.home, "GRIDNODE_USERS_ROOT=allow", "GRIDNODE_SANDBOX_WALLS=" + cmp.Or(s.walls, "none"), "GRIDNODE_GUESTS_ACCOUNT=nobody"}
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Dir = s.home
	if s.account != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.account, Gid: s.account}}
	}
	// A command that takes too long says where it stands.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// ok runs the program, which must exit with 0, and returns its standard output.
func (s *site) ok(args ...string) string {
	s.Helper()
	return s.code(0, args...).stdout
}

// code runs the program, which must exit with code.
func (s *site) code(code int, args ...string) result {
	s.Helper()
	r := s.run(args...)
	if r.code != code {
		s.Fatalf("gridnode %q: want exit code %d, got %v%s", args, code, r, s.logTail())
	}
	return r
}

// json runs the program with -o json behind the verb and decodes what it prints.
func (s *site) json(into any, verb string, args ...string) {
	s.Helper()
	args = append([]string{verb, "-o", "json"}, args...)
	text := s.ok(args...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.Fatalf("gridnode %q: %v in %s", args, err, text)
	}
}

// newSite makes the home of a site that is a member of the federation of all tests, with
// every right. Flags are those of init.
func newSite(tb testing.TB, name string, flags ...string) *site {
	tb.Helper()
	s := newLoner(tb, name, flags...)
	s.enrol(name)
	return s
}

// household is that federation: its root key is made anew for each run of the tests.
var household = sync.OnceValues(func() (*member.Household, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return member.NewHousehold(rand.Reader, key, "default", grid.Time(time.Now().UnixMicro()), grid.Day)
})

// enrol writes what makes a site a member, as 'gridnode federation install' does.
func (s *site) enrol(name string) {
	s.Helper()
	home, err := household()
	if err != nil {
		s.Fatal(err)
	}
	id, err := peer.Decode(s.id)
	if err != nil {
		s.Fatal(err)
	}
	public, err := id.ExtractPublicKey()
	if err != nil {
		s.Fatal(err)
	}
	key, err := public.Raw()
	if err != nil {
		s.Fatal(err)
	}
	proof, err := home.Admit(key, name, "", member.All)
	if err != nil {
		s.Fatal(err)
	}
	for file, text := range map[string][]byte{"federation.pem": home.Federation.PEM(), "member.pem": member.PEM(proof)} {
		if err := os.WriteFile(filepath.Join(s.home, file), text, 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// newLoner makes the home of a site that is no member of anything.
func newLoner(tb testing.TB, name string, flags ...string) *site {
	tb.Helper()
	return (&site{TB: tb, home: filepath.Join(tb.TempDir(), name), port: freePort(tb)}).init(name, flags...)
}

// init makes the home.
func (s *site) init(name string, flags ...string) *site {
	s.Helper()
	tb := s.TB
	if err := os.Mkdir(s.home, 0o700); err != nil {
		tb.Fatal(err)
	}
	if s.account != 0 {
		if err := os.Chown(s.home, int(s.account), int(s.account)); err != nil {
			tb.Fatal(err)
		}
	}
	args := []string{"init", "--site", name, "--listen", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", s.port), "--speed", "1000"}
	s.id = strings.TrimSpace(s.ok(append(args, flags...)...))
	tb.Cleanup(func() {
		s.leave()
		text, _ := os.ReadFile(filepath.Join(s.home, "daemon.log"))
		for _, word := range []string{"DATA RACE", "panic:", "a defect"} {
			if bytes.Contains(text, []byte(word)) {
				tb.Errorf("the log of site %s has %q:\n%s", name, word, text)
			}
		}
		if tb.Failed() {
			tb.Logf("site %s:%s", name, s.logTail())
		}
	})
	return s
}

// freePort returns a port that nobody listens on, and returns no other time: a site keeps its
// port when it is started again, so that the others find it.
func freePort(tb testing.TB) int {
	port, err := realsite.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// start starts the daemon and returns once it is ready.
func (s *site) start(flags ...string) *site {
	s.Helper()
	log, err := os.OpenFile(filepath.Join(s.home, "daemon.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	cmd := s.command(context.Background(), append([]string{"start"}, flags...)...)
	if s.netns != "" {
		cmd.Path, cmd.Args = ipProgram, append([]string{"ip", "netns", "exec", s.netns, program}, cmd.Args[1:]...)
	}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.daemon = cmd
	line := make([]byte, 0, 256)
	for b := make([]byte, 1); len(line) == 0 || line[len(line)-1] != '\n'; {
		if _, err := stdout.Read(b); err != nil {
			_ = cmd.Wait()
			s.Fatalf("daemon of %s ended before it was ready: %v, %v%s", s.home, err, cmd.ProcessState, s.logTail())
		}
		line = append(line, b[0])
	}
	words := strings.Fields(string(line))
	if len(words) < 3 || words[1] != s.id || !strings.HasSuffix(words[2], s.id) {
		s.Fatalf("the ready line is %q, want name, ID and addresses", line)
	}
	s.addr = words[2]
	return s
}

// name returns what the site is called: its home is.
func (s *site) name() string { return filepath.Base(s.home) }

// kill ends the daemon as a crash does.
func (s *site) kill() {
	if s.daemon != nil {
		_ = s.daemon.Process.Signal(syscall.SIGKILL)
		_ = s.daemon.Wait()
		s.daemon = nil
	}
}

// logTail returns the end of the daemon's log.
func (s *site) logTail() string {
	text, _ := os.ReadFile(filepath.Join(s.home, "daemon.log"))
	return "\nlog: …" + string(text[max(len(text)-4000, 0):])
}

// federation starts sites that know each other: the first, then the others, which
// join it. flags are those of init, by site.
func federation(tb testing.TB, names []string, flags map[string][]string) []*site {
	tb.Helper()
	var sites []*site
	for i, name := range names {
		more := flags[name]
		if i > 0 {
			more = append(more, "--join", sites[0].addr)
		}
		sites = append(sites, newSite(tb, name, more...).start())
	}
	for _, s := range sites {
		s.sees(len(sites))
	}
	return sites
}

// sees returns once the site's directory lists so many sites.
func (s *site) sees(n int) {
	s.Helper()
	var quotes []struct {
		Name string `json:"name"`
	}
	for deadline := time.Now().Add(patience); len(quotes) != n; <-time.After(look) {
		if time.Now().After(deadline) {
			s.Fatalf("%s sees %v, want %d sites%s", s.home, quotes, n, s.logTail())
		}
		quotes = nil
		s.json(&quotes, "quotes")
	}
}

// gate is a named pipe at which a job waits for the test, or the test for a job.
type gate string

func newGate(tb testing.TB) gate {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		tb.Fatal(err)
	}
	open(tb, path, 0o666)
	return gate(path)
}

// open lets accounts of guests get at a path, as none of them is root.
func open(tb testing.TB, path string, mode fs.FileMode) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		tb.Fatal(err)
	}
}

// open lets the job through that waits in "read x < GATE".
func (g gate) open(tb testing.TB) {
	tb.Helper()
	within(tb, "a job waits at the gate", func() error { return os.WriteFile(string(g), []byte("go\n"), 0) })
}

// await waits for a job to come to "echo WORD > GATE" and returns the word.
func (g gate) await(tb testing.TB) string {
	tb.Helper()
	var text []byte
	within(tb, "a job comes to the gate", func() (err error) {
		text, err = os.ReadFile(string(g))
		return err
	})
	return strings.TrimSpace(string(text))
}

// within fails the test unless what is done before long.
func within(tb testing.TB, what string, do func() error) {
	tb.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
	case <-time.After(patience):
		tb.Fatalf("%s: not within %v", what, patience)
	}
}

// job is what the tests look at in -o json of a job.
type job struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	State    string  `json:"state"`
	SiteName string  `json:"siteName"`
	ExitCode *int    `json:"exitCode"`
	Cost     float64 `json:"cost"`
	Epoch    int     `json:"epoch"`
	Reason   string  `json:"reason"`

	Deadline time.Time `json:"deadline"`
	End      time.Time `json:"end"`
	Late     float64   `json:"late"` // seconds
}

// status returns one job.
func (s *site) status(id string) job {
	s.Helper()
	var jobs []job
	s.json(&jobs, "status", id)
	if len(jobs) != 1 {
		s.Fatalf("status %s lists %d jobs", id, len(jobs))
	}
	return jobs[0]
}
