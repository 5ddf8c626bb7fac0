package e2e

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrong is a command line that must fail with code and say text.
type wrong struct {
	args string // split at blanks
	code int
	text string
}

func (w wrong) check(t *testing.T, s *site) {
	t.Helper()
	r := s.run(strings.Fields(w.args)...)
	if r.code != w.code || !strings.Contains(r.stderr, w.text) {
		t.Errorf("gridnode %s: want exit code %d with %q, got %v", w.args, w.code, w.text, r)
	}
	if r.stdout != "" && w.code == 2 {
		t.Errorf("gridnode %s: %q on stdout, want what is wrong on stderr only", w.args, r.stdout)
	}
}

// What is wrong with a command line shows without a daemon.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	s := newSite(t, "wrong")
	for _, w := range []wrong{
		{"sbumit", 2, "did you mean submit?"},
		{"config shwo", 2, "did you mean show?"},
		{"testnet run federatoin", 2, "did you mean federation?"},
		{"submit", 2, "wants a command"},
		{"submit --dedline 1h -- true", 2, "did you mean --deadline?"},
		{"submit -x -- true", 2, "-x"},
		{"submit -n 0 -- true", 2, "--ntasks"},
		{"submit -n -4 -- true", 2, "--ntasks"},
		{"submit -n four -- true", 2, "want a number"},
		{"submit -t -5 -- true", 2, "--time"},
		{"submit -t 0 -- true", 2, "more than zero"},
		{"submit -t soon -- true", 2, "not a span"},
		{"submit --deadline -1h -- true", 2, "--deadline"},
		{"submit --deadline 2020-01-01T00:00:00Z -- true", 2, "is over"},
		{"submit --budget -1 -- true", 2, "--budget"},
		{"submit --budget 1e9 -- true", 2, "--budget"},
		{"submit --mem -1 -- true", 2, "--mem"},
		{"submit --mem 1X -- true", 2, "suffix"},
		{"submit --mem 1G --mem-per-cpu 1G -- true", 2, "exclude"},
		{"submit --policy best -- true", 2, "cheapest"},
		{"submit -a 5-1 -- true", 2, "empty"},
		{"submit -a 0-99999 -- true", 2, "more than"},
		{"submit -e novalue -- true", 2, "NAME=VALUE"},
		{"status -t dead", 2, "no state"},
		{"status --sort size", 2, "no order"},
		{"status -o yaml", 2, "table"},
		{"wait", 2, "IDs"},
		{"wait --timeout -1s x", 2, "--timeout"},
		{"logs", 2, "wants"},
		{"quotes --max-price cheap", 2, "--max-price"},
		{"quotes --min-speed -1", 2, "--min-speed"},
		{"config get site.prise", 2, "did you mean site.price?"},
		{"config set site.price -1", 2, "site.price"},
		{"config set site.price", 2, "wants"},
		{"start --price none", 2, "--price"},
		{"start --listen 127.0.0.1:99999", 2, "99999"},
		{"start --join /ip4/127.0.0.1/tcp/1", 2, "which node"},
		{"init", 1, "already"},
		{"testnet run leasing --policy none", 2, "--policy"},
		{"testnet run leasing --trace /nonexistent.swf", 1, "/nonexistent.swf"},
		{"completion csh", 2, "bash"},
		{"status", 3, "gridnode start"},
		{"submit -- true", 3, "no daemon"},
		{"stop", 3, "no daemon"},
		{"sites --home /nonexistent", 3, "gridnode start"},
		{"start --home /nonexistent", 1, "gridnode init"},
	} {
		w.check(t, s)
	}
}

func TestWrongScripts(t *testing.T) {
	t.Parallel()
	s := newSite(t, "scripts")
	for _, tt := range []struct{ text, want string }{
		{"#!/bin/sh\n#GRID --dedline 1h\ntrue\n", ":2: unknown option --dedline; did you mean --deadline?"},
		{"#!/bin/sh\n\n#SBATCH --burst-buffer=x\ntrue\n", ":3: unrecognized option '--burst-buffer'"},
		{"#!/bin/sh\n#GRID --time never\ntrue\n", "--time"},
		{"true\n", "does not begin with #!"},
	} {
		if r := s.runIn(tt.text, "submit", "-"); r.code != 2 || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("script %q: want exit code 2 with %q, got %v", tt.text, tt.want, r)
		}
	}
}

// An unknown key is named, with its file and line and the nearest known key.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t, "settings")
	path := filepath.Join(s.home, "config.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(good), "  price:")
	price := fmt.Sprintf("%s:%d", path, strings.Count(before, "\n")+1)
	for _, tt := range []struct{ old, new, want string }{
		{"  price:", "  pirce:", price + ": unknown key site.pirce; did you mean site.price?"},
		{"price: 1\n", "price: -1\n", "site.price (" + price + "): "},
		{"foreign: deny", "foreign: maybe", "want allow or deny"},
		{"speed: 1000", "speed: 0", "site.speed"},
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(string(good), tt.old, tt.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"start", "config validate"} {
			wrong{verb, 2, tt.want}.check(t, s)
		}
	}
	// Only a start knows what the site itself is called.
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	// Of two keys that go together one is set before the other, and says what is missing.
	s.ok("config", "set", "web.listen", "127.0.0.1:0")
	if said := s.code(0, "config", "set", "web.members", "allow").stderr; !strings.Contains(said, "no daemon starts") || !strings.Contains(said, "web.members") {
		t.Errorf("a page on loopback for other members: %q", said)
	}
	if said := s.code(0, "config", "set", "web.members", "deny").stderr; said != "" {
		t.Errorf("settings that go together: %q", said)
	}
	s.ok("config", "set", "delegation.links", "sibling:"+s.id)
	wrong{"start", 2, "delegation.links: "}.check(t, s)
}

// What can be wrong with a daemon's start, and what a daemon refuses.
func TestWrongDaemons(t *testing.T) {
	t.Parallel()
	s := newSite(t, "one").start()
	id := strings.TrimSpace(s.ok("submit", "-q", "-W", "--", "true"))

	wrong{"start", 1, fmt.Sprintf("a daemon runs on this home already (process %d)", s.daemon.Process.Pid)}.check(t, s)
	wrong{"start --detach", 1, fmt.Sprintf("process %d", s.daemon.Process.Pid)}.check(t, s)
	other := newSite(t, "two")
	wrong{fmt.Sprintf("start --listen /ip4/127.0.0.1/tcp/%d", s.port), 1, fmt.Sprintf("%d", s.port)}.check(t, other)
	wrong{fmt.Sprintf("start --listen /ip4/127.0.0.1/tcp/%d", s.port), 1, "in use"}.check(t, other)

	for _, w := range []wrong{
		{"submit -n 100000 -- true", 5, "refused"},
		{"submit -n 100000 --deadline 1h -- true", 5, "refused"},
		{"submit -n 99999999 -- true", 2, "want 1 to 16777216"},
		{"submit --site nowhere -- true", 4, "nowhere"},
		{"submit --id nonsense -- true", 2, "id"},
		{"submit --id " + id + " -- false", 5, "another job"},
		{"submit -J " + strings.Repeat("n", 200) + " -- true", 2, "name"},
		{"submit -- " + strings.Repeat("x", 50<<10), 2, "command of"},
		{"why zzzzzzzz", 4, "zzzzzzzz"},
		{"logs zzzzzzzz", 4, "zzzzzzzz"},
		{"status zzzzzzzz", 4, "zzzzzzzz"},
		{"wait zzzzzzzz", 4, "zzzzzzzz"},
		{"wait --name nobody", 4, "nobody"},
	} {
		w.check(t, s)
	}
	if j := s.status(id); j.State != "done" {
		t.Errorf("after all that: %+v, want the job done still", j)
	}
	if r := s.run("submit", "-W", "--", "/nonexistent/program"); r.code == 0 || r.code == 1 && r.stderr == "" {
		t.Errorf("a program that does not exist: %v, want a failure that says so", r)
	}
}

// Bytes of strangers on the port change nothing.
func TestGarbageOnThePort(t *testing.T) {
	t.Parallel()
	s := newSite(t, "port").start()
	for _, bytes := range []string{"", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 1<<16), "\x13/multistream/1.0.0\n\x00\x00\x00"} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(bytes)) // it may be cut off before it has written all
		conn.Close()
	}
	s.ok("submit", "-W", "--", "true")
}

// A store that is damaged in one copy repairs itself; damaged in both, missing, or
// somebody else's, it is refused.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	s := newSite(t, "store").start()
	id := strings.TrimSpace(s.ok("submit", "-q", "-W", "--", "true"))
	s.kill()
	spoil(t, filepath.Join(s.home, "store"), func(path string) bool { return strings.Contains(path, "badger") })
	s.start()
	if j := s.status(id); j.State != "done" {
		t.Errorf("with one copy spoilt: %+v, want the job done", j)
	}
	s.kill()
	spoil(t, filepath.Join(s.home, "store"), func(string) bool { return true })
	r := s.code(1, "start")
	if !strings.Contains(r.stderr, "store") {
		t.Errorf("with both copies spoilt: %v, want it to name the store", r)
	}

	a, b := newSite(t, "a").start(), newSite(t, "b").start()
	a.ok("submit", "-W", "--", "true")
	a.kill()
	b.kill()
	if err := os.Rename(filepath.Join(a.home, "store"), filepath.Join(a.home, "gone")); err != nil {
		t.Fatal(err)
	}
	if r := a.code(1, "start"); !strings.Contains(r.stderr, "lacks records") || !strings.Contains(r.stderr, "restore --this-copy") {
		t.Errorf("without its store: %v, want it to say what is missing and what to do", r)
	}
	if err := os.RemoveAll(filepath.Join(a.home, "store")); err != nil { // the refused start has made an empty one
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.home, "store"), filepath.Join(a.home, "store")); err != nil {
		t.Fatal(err)
	}
	if r := a.code(1, "start"); !strings.Contains(r.stderr, "belongs to somebody else") {
		t.Errorf("with another site's store: %v", r)
	}
	if err := os.Remove(filepath.Join(b.home, "key")); err != nil {
		t.Fatal(err)
	}
	if r := b.code(1, "start"); !strings.Contains(r.stderr, "key") {
		t.Errorf("without a key: %v", r)
	}
}

// spoil overwrites the middle of the files in dir that are chosen.
func spoil(t *testing.T, dir string, chosen func(path string) bool) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !chosen(path) || entry.Name() == "LOCK" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 {
			return err
		}
		for i := len(text) / 4; i < len(text)-len(text)/4; i++ {
			text[i] ^= 0x5a
		}
		n++
		return os.WriteFile(path, text, 0o600)
	})
	if err != nil || n == 0 {
		t.Fatalf("spoil %s: %d files, %v", dir, n, err)
	}
}

// start --detach returns when the daemon is ready, and says what is wrong if not.
func TestStartDetached(t *testing.T) {
	t.Parallel()
	s := newSite(t, "detached")
	line := s.ok("start", "--detach")
	if words := strings.Fields(line); len(words) != 3 || words[1] != s.id {
		t.Errorf("it prints %q, want name, ID and address", line)
	}
	s.ok("submit", "-W", "--", "true")
	s.ok("stop")
	s.code(3, "status")
	if r := s.code(2, "start", "--detach", "--price", "x"); !strings.Contains(r.stderr, "--price") {
		t.Errorf("with a bad flag: %v", r)
	}
	if os.Geteuid() != 0 {
		return // then guests may run without walls
	}
	s.env = []string{"GRIDNODE_GUESTS_ACCOUNT="}
	s.ok("config", "set", "guests.account", "")
	if r := s.code(0, "start", "--detach", "--foreign", "allow"); !strings.Contains(r.stderr, "jobs of other sites are refused") {
		t.Errorf("where no guest may run: %v", r)
	}
	s.ok("stop")
}

// Who waits while the daemon stops is told so; the job goes on.
func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	s := newSite(t, "stopping").start()
	g := submitGated(t, s)
	waiting := make(chan result, 2)
	go func() { waiting <- s.run("wait", g.id) }()
	go func() { waiting <- s.run("logs", "-f", g.id) }()
	second := newGate(t)
	cmd := s.command(t.Context(), "submit", "-W", "--", "sh", "-c", "echo begun > "+string(second)+"; read x < "+string(g.release))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	second.await(t)
	s.ok("stop")
	_ = s.daemon.Wait()
	s.daemon = nil
	for range 2 {
		if r := <-waiting; r.code != 3 || !strings.Contains(r.stderr, "daemon") {
			t.Errorf("waiting while it stops: %v, want exit code 3 and the reason", r)
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(stderr.String(), "goes on") {
		t.Errorf("submit -W while it stops: exit code %d, %q, want 3 and that the job goes on", code, &stderr)
	}
	s.start()
	g.release.open(t)
	g.over.await(t)
	g.check(t, s, "stopping")
}
