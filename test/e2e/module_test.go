package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildModule builds the module of tests that behaves as its first argument says.
func buildModule(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-o", path, "../../node/wasm/testdata/guest/main.go")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestModuleAtAnotherSite: a module goes where its job goes, is run there inside walls, and
// what it says and how it ends come back; what misbehaves is ended, and said to be.
func TestModuleAtAnotherSite(t *testing.T) {
	t.Parallel()
	module := buildModule(t)
	sites := walled(t, "home", "host")
	home, host := sites[0], sites[1]
	submit := func(flags []string, args ...string) (id string, code int) {
		t.Helper()
		line := append([]string{"submit", "--site", "host", "-q", "-W", "--wasm", module}, flags...)
		r := home.run(append(append(line, "--"), args...)...)
		if r.stdout == "" {
			t.Fatalf("submit of %q gives %v%s", args, r, host.logTail())
		}
		return strings.TrimSpace(r.stdout), r.code
	}
	id, code := submit([]string{"-e", "MODE=fast"}, "say", "hello there")
	out := home.ok("logs", id)
	if code != 0 || !strings.HasPrefix(out, "guest.wasm say hello there\nMODE=fast GRIDNODE_SITE=host ") || strings.Contains(out, "PATH=") {
		t.Fatalf("exit code %d, it prints %q, %+v%s", code, out, home.status(id), host.logTail())
	}
	if id, code := submit(nil, "exit", "7"); code != 7 {
		t.Errorf("exit code %d, want 7: %+v", code, home.status(id))
	}
	id, code = submit([]string{"--mem", "64M"}, "memory")
	if reason := home.status(id).Reason; code != 137 || !strings.Contains(reason, "out of memory: the module wanted more than its 64") {
		t.Errorf("without memory it ends with %d, because %q", code, reason)
	}
	if id, code := submit(nil, "escape", filepath.Join(host.home, "key")); code != 0 || home.ok("logs", id) != "held\n" {
		t.Errorf("it got out: %d, %s", code, home.ok("logs", id))
	}
	id, code = submit([]string{"-t", "2s"}, "loop")
	if reason := home.status(id).Reason; code == 0 || !strings.Contains(reason, "limit") {
		t.Errorf("without end it ends with %d, because %q", code, reason)
	}

	looping := strings.TrimSpace(home.ok("submit", "--site", "host", "--wasm", module, "--", "loop"))
	home.eventually("it runs", func() bool { return strings.HasPrefix(home.run("logs", looping).stdout, "looping") })
	home.ok("cancel", looping)
	home.run("wait", looping)
	if s := home.status(looping); s.State != "cancelled" {
		t.Errorf("a cancelled module is %+v", s)
	}
	if stored, _ := filepath.Glob(filepath.Join(host.home, "modules", "*", "code", "*", "*")); len(stored) != 1 {
		t.Errorf("the site keeps the code of %d modules, want 1: %q", len(stored), stored)
	}

	if r := home.run("submit", "--wasm", filepath.Join(host.home, "config.yaml"), "--", "x"); r.code != 2 || !strings.Contains(r.stderr, "no module of WebAssembly") {
		t.Errorf("what is no module: %v", r)
	}
	if r := home.run("submit", "--wasm", module, "-n", "2", "--", "x"); r.code == 0 || !strings.Contains(r.stderr, "a module of 2 tasks") {
		t.Errorf("a module of two tasks: %v", r)
	}
}

// TestModuleGoesWhereModulesRun: only sites that run modules are asked.
func TestModuleGoesWhereModulesRun(t *testing.T) {
	t.Parallel()
	module := buildModule(t)
	sites := walled(t, "home", "cheap", "dear")
	home := sites[0]
	sites[1].kill()
	sites[1].set("site.price", "0.001", "wasm.guests", "none").start()
	sites[1].sees(3)
	home.eventually("the quotes are known", func() bool { return strings.Contains(home.ok("quotes"), "0.001") })
	home.eventually("the cheap one is left out", func() bool {
		r := home.run("submit", "--dry-run", "--policy", "cheapest", "--wasm", module, "--", "say")
		return strings.Contains(r.stdout, "modules-refused")
	})
	id := strings.TrimSpace(home.ok("submit", "-q", "-W", "-t", "1m", "--deadline", "1h", "--policy", "cheapest", "--wasm", module, "--", "say"))
	if at := home.status(id).SiteName; at == "cheap" {
		t.Errorf("it ran at %s", at)
	}
	if id := strings.TrimSpace(home.ok("submit", "-q", "-W", "-t", "1m", "--deadline", "1h", "--policy", "cheapest", "--", "true")); home.status(id).SiteName != "cheap" {
		t.Errorf("another job ran at %s", home.status(id).SiteName)
	}
}

// TestOwnModule: at home it needs no sandbox, and outlives the daemon as other jobs do.
func TestOwnModule(t *testing.T) {
	module := buildModule(t)
	s := newSite(t, "alone", "--processors", "2").start()
	if id := strings.TrimSpace(s.ok("submit", "-q", "-W", "--wasm", module, "--", "work")); s.ok("logs", id) != "done\n" {
		t.Errorf("it prints %q", s.ok("logs", id))
	}
	id := strings.TrimSpace(s.ok("submit", "--wasm", module, "--", "sleep"))
	s.eventually("it sleeps", func() bool { return s.run("logs", id).stdout == "sleeping\n" })
	s.kill()
	s.start()
	if state := s.status(id).State; state != "running" {
		t.Errorf("after a restart it is %s", state)
	}
	s.ok("cancel", id)
	s.run("wait", id)
	if state := s.status(id).State; state != "cancelled" {
		t.Errorf("a module that sleeps for an hour is %s", state)
	}
}
