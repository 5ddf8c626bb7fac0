package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lose kills a site's daemon, its shim and the shim's guard, as the death of its machine
// would, and waits until nothing of them is left.
func (s *site) lose() {
	s.Helper()
	s.kill()
	for _, pid := range shimsOf(s.home) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	deadline := time.Now().Add(patience)
	for len(shimsOf(s.home)) > 0 && time.Now().Before(deadline) {
		<-time.After(10 * time.Millisecond)
	}
}

// shimsOf returns the processes that are shims of a home, or their guards.
func shimsOf(home string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err != nil || len(words) < 4 || words[1] != "shim" || words[3] != home {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		pids = append(pids, pid)
	}
	return pids
}

// leave kills what the test leaves of a site: first the shim, so that its guard ends the jobs. What
// ran on would write into the home while that is removed.
func (s *site) leave() {
	s.kill()
	for _, pid := range shimsOf(s.home) {
		if name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); strings.TrimSpace(string(name)) != "gridnode-guard" {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); len(shimsOf(s.home)) > 0 && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	s.lose()
}

// comes waits until something is so.
func (s *site) comes(what string, is func() bool) {
	s.Helper()
	if !soonTrue(2*patience, is) {
		s.Fatalf("waited in vain until %s%s", what, s.logTail())
	}
}

// TestDeadSite: a job whose site dies with daemon and shim runs again elsewhere within its
// lease and the grace; until then home says that it runs. A job that names the dead site
// waits for it.
func TestDeadSite(t *testing.T) {
	t.Parallel()
	sites := federation(t, []string{"home", "cheap", "other"}, map[string][]string{
		"home":  {"--price", "9"},
		"cheap": {"--price", "1", "--foreign", "allow"},
		"other": {"--price", "2", "--foreign", "allow"},
	})
	home, cheap := sites[0], sites[1]
	begun := filepath.Join(t.TempDir(), "begun")
	if err := os.WriteFile(begun, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, begun, 0o666) // to guests, too
	id := strings.TrimSpace(home.ok("submit", "--policy", "cheapest", "-t", "1d", "--lease", "10s", "--",
		"sh", "-c", `echo "$GRIDNODE_SITE" >>`+begun+`; test "$GRIDNODE_SITE" != cheap || exec sleep 1000`))
	home.comes("it runs at cheap", func() bool {
		j := home.status(id)
		text, _ := os.ReadFile(begun)
		return j.State == "running" && j.SiteName == "cheap" && len(text) > 0
	})
	shims := shimsOf(cheap.home)
	for _, pid := range shims { // they stay for as long as the site is up
		if program, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err != nil || filepath.Base(program) != "gridnode" {
			t.Errorf("a shim or its guard is program %s, %v, want the small one", program, err)
		}
	}
	if len(shims) != 2 {
		t.Errorf("processes %v are shim and guard of a site", shims)
	}
	cheap.lose()
	died := time.Now()
	named := strings.TrimSpace(home.ok("submit", "--site", "cheap", "--", "true"))
	home.comes("a job for the dead site waits for it", func() bool {
		j := home.status(named)
		return j.State == "placing" && strings.Contains(j.Reason, "does not answer")
	})
	home.comes("it is done at other", func() bool {
		j := home.status(id)
		return j.State == "done" && j.SiteName == "other"
	})
	took := time.Since(died)
	home.comes("it is marked as silent", func() bool { return strings.Contains(home.ok("sites"), "silent") })
	if after := time.Since(died); after > time.Minute {
		t.Errorf("it is marked as silent after %v, want a minute at most", after)
	}
	t.Logf("it has run elsewhere %v after its site had died", took.Round(time.Second/10))
	if took < 10*time.Second { // three quarters of the lease at least, the grace and a last call
		t.Errorf("it ran elsewhere after %v: nobody could know by then that its site was dead", took)
	}
	if text, _ := os.ReadFile(begun); string(text) != "cheap\nother\n" {
		t.Errorf("it began at %q", text)
	}
	cheap.start()
	home.comes("the job that waited is done", func() bool { return home.status(named).State == "done" })
}
