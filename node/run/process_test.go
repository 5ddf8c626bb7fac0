package run

import (
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/shim"
)

func TestTaskThatTheNewShimDoesNotKnowIsLost(t *testing.T) {
	lost := make(chan *grid.TaskEnded, 1)
	p, err := StartProcesses(t.Context(), ProcessConfig{
		Files: Files{Home: t.TempDir(), Site: "here"}, Name: "here",
		Shim:   shim.Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_RUN_TEST_SHIM=" + shim.HomeWord}},
		Logger: slog.New(slog.DiscardHandler),
	}, func(e *grid.TaskEnded) { lost <- e })
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Recover(); err != nil {
		t.Fatal(err)
	}
	id := grid.TaskID{Job: grid.JobID{Hi: 5, Lo: 5}, Epoch: 1}
	p.mu.Lock()
	p.running[id] = "here" // ordered, but the order never arrived
	p.mu.Unlock()
	if err := syscall.Kill(p.ShimPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-lost:
		if e.ID != id || !e.Lost {
			t.Errorf("got %+v", e)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it was never reported")
	}
	pid := p.ShimPID()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// The test binary is the shim, too.
func TestMain(m *testing.M) {
	if home := os.Getenv("GRIDNODE_RUN_TEST_SHIM"); home != "" {
		if err := shim.Run(shim.Config{Home: home, Idle: time.Second}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
