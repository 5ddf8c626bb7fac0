package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestGPUsAreGrantedToOneJob: jobs have the GPUs that they ask for, nobody else sees them,
// others wait; after a crash of the daemon whoever runs still has them, and then they are
// given back.
func TestGPUsAreGrantedToOneJob(t *testing.T) {
	s := newSite(t, "alone", "--processors", "8").set("site.gpus", "a100=2,v100=1").start()
	say := `echo "$CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $GRIDNODE_GPUS"`
	run := func(want string, flags ...string) {
		t.Helper()
		id := strings.TrimSpace(s.ok(append(append([]string{"submit", "-q", "-W"}, flags...), "--", "sh", "-c", say)...))
		if out := s.ok("logs", id); out != want+"\n" {
			t.Errorf("%q sees %q, want %q", flags, out, want)
		}
	}
	run("0,1 0,1 0,1 a100-0,a100-1", "--gpus", "a100:2")
	run("2 2 2 v100-2", "--gpus", "v100")
	run("  void ")

	var ids []string
	wait := filepath.Join(s.home, "go")
	for range 2 {
		ids = append(ids, strings.TrimSpace(s.ok("submit", "--gpus", "a100", "--", "sh", "-c", say+fmt.Sprintf("; until [ -e %s ]; do sleep 0.05; done", wait))))
	}
	both := strings.TrimSpace(s.ok("submit", "--gpus", "a100:2", "--", "sh", "-c", say))
	s.eventually("both run", func() bool { return s.inState("running", ids) == 2 })
	run("2 2 2 v100-2", "--gpus", "v100:1") // it passes those that wait for another type
	if j := s.status(both); j.State != "queued" || !strings.Contains(j.Reason, "waits for GPUs") {
		t.Errorf("without GPUs it is %+v", j)
	}
	cancelled := strings.TrimSpace(s.ok("submit", "--gpus", "3", "--", "true"))
	s.ok("cancel", cancelled)
	if state := s.status(cancelled).State; state != "cancelled" {
		t.Errorf("one that waits for GPUs is cancelled, and %s", state)
	}

	s.kill()
	s.start()
	s.eventually("both still run", func() bool { return s.inState("running", ids) == 2 })
	if state := s.status(both).State; state != "queued" {
		t.Errorf("after a crash the one that waits is %s", state)
	}
	s.ok("submit", "-W", "--", "touch", wait)
	s.ok("wait", ids[0], ids[1], both)
	if out := s.ok("logs", both); out != "0,1 0,1 0,1 a100-0,a100-1\n" {
		t.Errorf("afterwards it sees %q", out)
	}
	seen := s.ok("logs", ids[0]) + s.ok("logs", ids[1])
	if !strings.Contains(seen, "a100-0") || !strings.Contains(seen, "a100-1") {
		t.Errorf("the two saw %q", seen)
	}

	run("0 0 0 a100-0", "--gpus", "a100", "--deadline", "1h", "--budget", "100")
	for _, flags := range [][]string{{"--gpus", "a100:3"}, {"--gpus", "h100"}, {"--gpus", "0"}, {"--gpus", "4", "--policy", "cheapest"}, {"--gpus", "1", "--budget", "0"}} {
		if r := s.run(append(append([]string{"submit"}, flags...), "--", "true")...); r.code == 0 {
			t.Errorf("%q is taken: %v", flags, r)
		}
	}
}

// TestGPUsOfOtherSites: quotes tell of them, and a job that needs some is placed where they
// are, by its budget, if the owner there lets it have them; a preview asks for that.
func TestGPUsOfOtherSites(t *testing.T) {
	t.Parallel()
	home := newSite(t, "home", "--processors", "2", "--price", "1").start()
	newSite(t, "dear", "--join", home.addr, "--foreign", "allow", "--price", "9", "--processors", "4").set("site.gpus", "a100=4", "site.gpu-weight", "3").start()
	cheap := newSite(t, "cheap", "--join", home.addr, "--foreign", "allow", "--price", "2", "--processors", "4").set("site.gpus", "a100=2,v100=1")
	cheap.rules("  sites:\n    home:\n      gpus: 1\n")
	cheap.start()
	home.sees(3)
	home.eventually("both quote GPUs", func() bool {
		list := home.ok("sites")
		return strings.Contains(list, "a100:4/4") && strings.Contains(list, "a100:2/2,v100:1/1")
	})
	if list := home.ok("quotes", "--gpus", "v100"); !strings.Contains(list, "cheap") || strings.Contains(list, "dear") {
		t.Errorf("with a V100 there are\n%s", list)
	}
	run := func(flags ...string) string {
		t.Helper()
		args := append(append([]string{"submit", "-q", "-W", "-t", "10m"}, flags...), "--", "sh", "-c", `echo "$GRIDNODE_SITE $GRIDNODE_GPUS $(ls /dev | grep -c nvidia)"`)
		return home.ok("logs", strings.TrimSpace(home.ok(args...)))
	}
	if got := run("--gpus", "a100", "--policy", "cheapest"); got != "cheap a100-0 0\n" {
		t.Errorf("it runs %q", got)
	}
	preview := home.ok("submit", "--gpus", "a100:2", "--policy", "cheapest", "--dry-run", "--", "true")                                                                                  // more than its owner lets home have
	if lines := strings.Split(preview, "\n"); !strings.Contains(preview, "its owner's rules for guests") || !strings.Contains(lines[1], "dear") || !strings.Contains(lines[1], " 63 ") { // 9 for 1 + 2 × 3
		t.Errorf("the preview says\n%s", preview)
	}
	if got := run("--gpus", "a100:2", "--policy", "cheapest"); got != "dear a100-0,a100-1 0\n" {
		t.Errorf("it runs %q", got)
	}
	r := home.code(5, "submit", "--gpus", "a100:2", "--budget", "1", "-t", "1h", "-W", "--", "true")
	if !strings.Contains(r.stderr, "no site") && !strings.Contains(r.stderr, "none of") {
		t.Errorf("beyond its budget: %v", r)
	}
	if r := home.code(5, "submit", "--gpus", "h100", "--policy", "fastest", "--dry-run", "--", "true"); strings.Count(r.stdout, "too-few-gpus") != 3 {
		t.Errorf("nobody has an H100: %v", r)
	}
}
