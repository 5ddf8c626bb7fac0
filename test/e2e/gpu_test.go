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

	for _, flags := range [][]string{{"--gpus", "a100:3"}, {"--gpus", "h100"}, {"--gpus", "0"}, {"--gpus", "1", "--policy", "cheapest"}, {"--gpus", "1", "--deadline", "1h"}} {
		if r := s.run(append(append([]string{"submit"}, flags...), "--", "true")...); r.code == 0 {
			t.Errorf("%q is taken: %v", flags, r)
		}
	}
}
