package shim

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestLeftoverThatIsExecuting: a process that executes another program as its shim dies
// shows no environment for a moment, and was started after the shim's last sign of life.
func TestLeftoverThatIsExecuting(t *testing.T) {
	start := func(env string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{env}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	ours, stranger := start(MarkEnv+"=token/task"), start("A=b")
	p := &past{tasks: map[string]*known{"task": {pid: ours.Process.Pid}, "before": {pid: stranger.Process.Pid}}, alive: time.Now().Add(-time.Minute)}
	l := newLeftovers(p, "token")
	looks := 0
	l.mark = func(pid int) string {
		if pid == ours.Process.Pid {
			if looks++; looks <= 2 {
				return ""
			}
		}
		return mark(pid)
	}
	gone := false // who was killed may take a moment to die
	for deadline := time.Now().Add(patience); !gone && time.Now().Before(deadline); {
		gone = l.kill()
	}
	if alive(ours.Process.Pid) {
		t.Error("the task's process is still there")
	}
	if !alive(stranger.Process.Pid) {
		t.Error("a process that has the number of a task's session by now was killed")
	}
	if !gone {
		t.Error("it looks for ever at a process without a mark")
	}
}

// TestEndedLeavesNothing: the session of a task that had ended is nobody's to kill any more.
func TestEndedLeavesNothing(t *testing.T) {
	p := &past{tasks: map[string]*known{"over": {pid: 7, ended: &Ended{ID: "over"}}, "ran": {pid: 8}, "noted": {}}, alive: time.Now()}
	if l := newLeftovers(p, "token"); len(l.sessions) != 1 || !l.sessions[8] {
		t.Errorf("sessions %v, want that of the task that ran", l.sessions)
	}
}
