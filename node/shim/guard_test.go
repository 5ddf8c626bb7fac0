package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/node/sandbox"
	"gridnode/node/sandbox/cgroup"
)

// TestNothingOutlivesAKilledShim: nobody starts another one, and still no process of a task
// lives on, whatever it has done to be its own, and no control group is left.
func TestNothingOutlivesAKilledShim(t *testing.T) {
	home := t.TempDir()
	client, err := Connect(t.Context(), home, Options{Command: []string{"/proc/self/exe"}, Env: []string{guardTestEnv + "=" + HomeWord}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pids := filepath.Join(home, "pids")
	script := fmt.Sprintf(`
		echo $$ >> %[1]s
		sleep 1000 & echo $! >> %[1]s
		setsid sh -c 'trap "" TERM HUP INT; echo $$ >> %[1]s; sleep 1000' &
		(setsid env -i sh -c 'echo $$ >> %[1]s; exec sleep 1000' &)
		wait`, pids)
	limited := Spec{ID: "t.2", Args: []string{"sleep", "1000"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: home, Stdout: filepath.Join(home, "out.2"), Stderr: filepath.Join(home, "out.2")}
	limited.Plan = &sandbox.Plan{Kind: sandbox.None, Limits: sandbox.Limits{Processes: 9}}
	if err := client.Start(limited); err != nil {
		t.Fatal(err)
	}
	err = client.Start(Spec{ID: "t.1", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: home, Stdout: filepath.Join(home, "out"), Stderr: filepath.Join(home, "out")})
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	wait := func(what string, done func() bool) {
		t.Helper()
		for late := time.After(patience); !done(); {
			select {
			case <-time.After(time.Millisecond):
			case <-late:
				t.Fatalf("waited in vain until %s", what)
			}
		}
	}
	wait("all have begun", func() bool {
		text, _ := os.ReadFile(pids)
		list = nil
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, pid)
		}
		return len(list) == 4
	})
	shim, ok := readProcess(client.PID())
	if !ok || shim.parent == os.Getpid() {
		t.Fatalf("the shim %+v has no guard", shim)
	}
	var groups []string
	if _, err := cgroup.Find(); err == nil {
		wait("the task with limits has a control group", func() bool {
			groups = groupsBelow(client.PID())
			return len(groups) > 0
		})
	}
	if err := syscall.Kill(client.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait("all are gone", func() bool {
		for _, pid := range append(list, shim.parent) {
			if p, ok := readProcess(pid); ok && !p.gone() {
				return false
			}
		}
		return true
	})
	for _, dir := range groups {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("the control group %s is still there", dir)
		}
	}
}

// groupsBelow returns the directories of the control groups that the children of a process
// are in, if it made them.
func groupsBelow(parent int) (dirs []string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // it may have ended
		for _, pid := range strings.Fields(string(children)) {
			text, _ := os.ReadFile("/proc/" + pid + "/cgroup")
			for line := range strings.Lines(string(text)) {
				_, path, _ := strings.Cut(strings.TrimSpace(line), ":/")
				if !strings.Contains(path, "gridnode-") {
					continue
				}
				for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
					found, _ := filepath.Glob(filepath.Join(mount, path))
					dirs = append(dirs, found...)
				}
			}
		}
	}
	return dirs
}
