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
)

// TestNothingOutlivesAKilledShim: nobody starts another one, and still no process of a task
// lives on, whatever it has done to be its own.
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
	err = client.Start(Spec{ID: "t.1", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: home, Stdout: filepath.Join(home, "out"), Stderr: filepath.Join(home, "out")})
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	wait := func(what string, done func() bool) {
		t.Helper()
		for late := time.After(20 * time.Second); !done(); {
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
}
