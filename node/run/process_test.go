package run

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/shim"
)

func TestTaskThatTheNewShimDoesNotKnowIsLost(t *testing.T) {
	lost := make(chan *Ended, 1)
	p := testProcesses(t, func(e *Ended) { lost <- e })
	id := grid.TaskID{Job: grid.JobID{Hi: 5, Lo: 5}, Epoch: 1}
	scratch := p.files.Task(p.files.Site, id) + ScratchSuffix
	if err := os.MkdirAll(filepath.Join(scratch, "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.running[Process{Task: id}] = execution{name: "never", scratch: scratch, keeps: true} // ordered, but the order never arrived
	p.mu.Unlock()
	if err := syscall.Kill(p.ShimPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-lost:
		if e.ID != id || !e.Lost {
			t.Errorf("got %+v", e)
		}
		if left := p.files.Left(p.files.Site, id); there(scratch) || len(left) > 0 {
			t.Errorf("its scratch directory is there still: %v; or what it has left: %v", there(scratch), left)
		}
	case <-time.After(patience):
		t.Fatal("it was never reported")
	}
}

// TestEndThatIsSettled: what has ended is there until what it has left is settled: it is not told twice,
// and who ends it meanwhile does not hear that it was lost.
func TestEndThatIsSettled(t *testing.T) {
	reports := make(chan *Ended, 10)
	p := testProcesses(t, func(e *Ended) { reports <- e })
	id := grid.TaskID{Job: grid.JobID{Hi: 5, Lo: 5}, Epoch: 1}
	x := Process{Task: id}
	name := p.newName(x)
	p.mu.Lock()
	p.running[x] = execution{name: name, keeps: true}
	p.mu.Unlock()
	e := &shim.Ended{ID: name, ExitCode: 3}
	_, run, fresh := p.report(e)
	_, _, again := p.report(e)
	if p.Kill(grid.Task{ID: id}); !fresh || again || len(reports) > 0 {
		t.Fatalf("it is reported %v, again %v, and %d other ends", fresh, again, len(reports))
	}
	e.Start, e.End = 20, 20 // its clock was set back
	if ended := p.conclude(x, run, e); ended.Lost || ended.Result.ExitCode != 3 || ended.Result.Start != 20 || ended.Result.End <= 20 {
		t.Errorf("it ended as %+v", ended)
	}
	if p.Kill(grid.Task{ID: id}); !(<-reports).Lost {
		t.Error("what has ended is ended")
	}
}

// TestTooFewDescriptors: a task that cannot be started as no file can be opened any more has not failed:
// it is there, for a while, and lost then. One that cannot be started otherwise has failed at once.
func TestTooFewDescriptors(t *testing.T) {
	reports := make(chan *Ended, 10)
	p := testProcesses(t, func(e *Ended) { reports <- e })
	x := Process{Task: grid.TaskID{Job: grid.JobID{Hi: 5, Lo: 5}, Epoch: 1}}
	p.mu.Lock()
	p.failed(x, &os.PathError{Op: "open", Path: "scratch", Err: syscall.EMFILE})
	p.mu.Unlock()
	if p.Kill(grid.Task{ID: x.Task}); len(reports) > 0 {
		t.Fatalf("%+v is reported", <-reports)
	}
	p.mu.Lock()
	p.failed(x, &os.PathError{Op: "open", Path: "scratch", Err: syscall.ENOTDIR})
	p.mu.Unlock()
	if e := <-reports; e.Lost || e.Result.ExitCode != pilot.ExitNoStart {
		t.Errorf("%+v is reported, want code %d", e, pilot.ExitNoStart)
	}
}

// TestEndIsReportedOnce: a shim that dies before it knows that an end is safe has the next
// one tell it again, perhaps when the task runs once more. (That was taken for the end of
// the new process, which nobody ended any more.)
func TestEndIsReportedOnce(t *testing.T) {
	reports := make(chan *Ended, 10)
	p := testProcesses(t, func(e *Ended) { reports <- e })
	next := func() *Ended {
		t.Helper()
		select {
		case e := <-reports:
			return e
		case <-time.After(patience):
			t.Fatal("no end is reported")
		}
		return nil
	}
	killShim := func() {
		t.Helper()
		before := p.ShimPID()
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "another shim is there", func() bool { return p.ShimPID() != before })
	}
	task := grid.Task{ID: grid.TaskID{Job: grid.JobID{Hi: 5, Lo: 5}, Epoch: 1}, Job: &grid.Job{
		ID: grid.JobID{Hi: 5, Lo: 5}, Home: "there", Tasks: 1, Resources: grid.Resources{Processors: 1},
		Command: &grid.Command{Args: []string{"sleep", "1000"}},
	}}
	ids := []grid.TaskID{task.ID}
	p.Start(task)
	until(t, "it runs", func() bool { return HasOutput(p.files.Task("there", task.ID)) })
	killShim()
	if e := next(); !e.Lost {
		t.Fatalf("%+v, want it lost", e)
	}
	killShim() // it did not know that the end is safe
	p.Acknowledge(ids)
	p.Start(task)
	p.Kill(grid.Task{ID: task.ID, Cause: "enough"})
	if e := next(); e.Lost || e.Result.Reason != "enough" {
		t.Errorf("%+v, want the end of the second run", e)
	}
	p.Acknowledge(ids)
}

// testProcesses returns an engine with a shim of its own, which ends with the test.
func testProcesses(t *testing.T, ended func(*Ended)) *Processes {
	t.Helper()
	p, err := StartProcesses(t.Context(), ProcessConfig{
		Setup: Setup{Files: Files{Home: t.TempDir(), Site: "here"}, Name: "here", Ended: ended, Logger: slog.New(slog.DiscardHandler)},
		Shim:  shim.Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_RUN_TEST_SHIM=" + shim.HomeWord}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pid := p.ShimPID()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		until(t, "the shim ends", func() bool { return syscall.Kill(pid, 0) != nil })
	})
	if _, _, err := p.Recover(); err != nil {
		t.Fatal(err)
	}
	return p
}

// patience is how long a test waits for what must come: that a busy machine needs long is no defect.
const patience = 2 * time.Minute

// until waits for a condition that must come true soon.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
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
