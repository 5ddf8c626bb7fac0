package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
)

// testOrder writes an order for a command and returns it with the path of its file.
func testOrder(t *testing.T, args ...string) (*Order, string) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	o := &Order{
		Spec: Spec{ID: "job.1", Args: args, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir, Stdout: at("stdout"), Stderr: at("stderr"), Limit: grid.Minute},
		Go:   at("go"), Gone: at("gone." + RunWord), End: at("end"),
	}
	if err := os.WriteFile(o.Go, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return o, at("order")
}

// carry begins to carry out an order in a process of its own.
func carry(t *testing.T, o *Order, path string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), orderTestEnv+"="+path, ClusterEnv+"=4711", "SLURM_NTASKS=3", "SLURM_JOB_NAME=gridnode-x", "SLURM_SUBMIT_DIR=/")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// outcome returns the exit code of a process and what the order's file says.
func outcome(t *testing.T, cmd *exec.Cmd, o *Order) (int, *Ended) {
	t.Helper()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(exit, err)
	}
	text, err := os.ReadFile(o.End)
	if errors.Is(err, fs.ErrNotExist) {
		return cmd.ProcessState.ExitCode(), nil
	}
	e := new(Ended)
	if err := json.Unmarshal(text, e); err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), e
}

func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	o, path := testOrder(t, "sh", "-c", "echo $SLURM_NTASKS >>ran; exit 7")
	first, second := carry(t, o, path), carry(t, o, path)
	a, _ := outcome(t, first, o)
	b, e := outcome(t, second, o) // once both are over
	if a != 7 || b != 7 || e == nil || e.ExitCode != 7 || e.Cause != CauseExit {
		t.Errorf("exit codes %d and %d, end %+v; want 7 of whichever the cluster counts", a, b, e)
	}
	if ran, _ := os.ReadFile(filepath.Join(o.Spec.Dir, "ran")); string(ran) != "3\n" {
		t.Errorf("ran %q, want one run that sees what the cluster says", ran)
	}
	if _, err := os.Stat(strings.ReplaceAll(o.Gone, RunWord, "4711")); err != nil {
		t.Error(err)
	}
}

// A program without a shell around it takes the first of two variables of one name.
func TestAnOrderSeesTheClustersVariables(t *testing.T) {
	o, path := testOrder(t, "env")
	o.Spec.Env = append(o.Spec.Env, ClusterEnv+"=1", "SLURM_ARRAY_TASK_ID=5", "SLURM_JOB_NAME=train", "SLURM_SUBMIT_DIR=/home")
	if code, e := outcome(t, carry(t, o, path), o); code != 0 {
		t.Fatalf("exit code %d, end %+v", code, e)
	}
	text, err := os.ReadFile(o.Spec.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]int{ClusterEnv + "=": 1, ClusterEnv + "=4711": 1, "SLURM_NTASKS=3": 1, "SLURM_ARRAY_TASK_ID=5": 1, "SLURM_JOB_NAME=train": 1, "SLURM_SUBMIT_DIR=/home": 1, "SLURM_JOB_NAME=gridnode-x": 0} {
		if n := strings.Count("\n"+string(text), "\n"+setting); n != want {
			t.Errorf("%d times %s in\n%s", n, setting, text)
		}
	}
}

// A run that follows one that was killed has failed, too: nobody knows what that would have come to.
func TestAnOrderWhoseRunWasKilled(t *testing.T) {
	o, path := testOrder(t, "touch", "ran")
	gone := strings.ReplaceAll(o.Gone, RunWord, "4711")
	if err := os.Rename(o.Go, gone); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-silentMax - Beat)
	if err := os.Chtimes(gone, past, past); err != nil {
		t.Fatal(err)
	}
	if code, e := outcome(t, carry(t, o, path), o); code != exitNoStart || e != nil {
		t.Errorf("exit code %d and end %+v, want %d and none", code, e, exitNoStart)
	}
	if _, err := os.Stat(filepath.Join(o.Spec.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// A run that has ended as another one looks whether it is alive has ended, and was not killed.
func TestAnOrderWhoseRunEndsMeanwhile(t *testing.T) {
	o, _ := testOrder(t)
	o.gone = o.Gone
	gone := strings.ReplaceAll(o.Gone, RunWord, "7")
	fifo(t, gone) // who looks waits until somebody opens it for writing
	past := time.Now().Add(-silentMax - Beat)
	if err := os.Chtimes(gone, past, past); err != nil {
		t.Fatal(err)
	}
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		code, err := o.follow()
		done <- result{code, err}
	}()
	for stacks := make([]byte, 1<<20); len(done) == 0 && !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("shim.Alive(")); {
		runtime.Gosched()
	}
	if err := os.WriteFile(o.End, []byte(`{"ID":"job.1","ExitCode":3,"Start":1,"End":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(gone, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := <-done; got.err != nil || got.code != 3 {
		t.Errorf("exit code %d (%v), want 3", got.code, got.err)
	}
}

// What a shim touches counts as alive, by the clock of its file system.
func TestAliveIsWhatIsTouched(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.7")
	if Alive(gone) {
		t.Error("what has not begun is alive")
	}
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !Alive(gone) {
		t.Error("what was touched a moment ago is dead")
	}
	past := time.Now().Add(-silentMax - Beat)
	if err := os.Chtimes(gone, past, past); err != nil {
		t.Fatal(err)
	}
	if Alive(gone) {
		t.Error("what was not touched for long is alive")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(gone), ".clock*")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

func TestAnOrderTakenBackIsNotCarriedOut(t *testing.T) {
	o, path := testOrder(t, "touch", "ran")
	if err := os.Rename(o.Go, strings.ReplaceAll(o.Gone, RunWord, takenBack)); err != nil {
		t.Fatal(err)
	}
	if code, e := outcome(t, carry(t, o, path), o); code != 0 || e != nil {
		t.Errorf("exit code %d and end %+v, want 0 and none", code, e)
	}
	if _, err := os.Stat(filepath.Join(o.Spec.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestAnOrderComesTooLate(t *testing.T) {
	o, path := testOrder(t, "touch", "ran")
	o.Until = wall(time.Now()) - 1
	if code, e := outcome(t, carry(t, o, path), o); code != exitNoStart || e == nil || e.Cause != CauseStart {
		t.Errorf("exit code %d and end %+v, want %d", code, e, exitNoStart)
	}
	for left := 500 * grid.Millisecond; ; left *= 2 { // a busy machine may need that long until it begins
		o, path = testOrder(t, "sleep", "1000")
		o.Until = wall(time.Now()) + left
		code, e := outcome(t, carry(t, o, path), o)
		if e != nil && e.Cause == CauseStart && left < grid.Minute {
			continue
		}
		if code != 128+15 || e == nil || e.Cause != CauseLimit {
			t.Errorf("exit code %d and end %+v, want it ended at its limit", code, e)
		} else if e.End-e.Start >= o.Spec.Limit && left < o.Spec.Limit/2 {
			t.Errorf("it ran for %v, and was to be dead in %v", e.End-e.Start, left)
		}
		break
	}
}

func TestWhatTheClusterEndsIsRecorded(t *testing.T) {
	o, path := testOrder(t, "sh", "-c", "echo $$ >pid; sleep 1000")
	cmd := carry(t, o, path)
	pid := filepath.Join(o.Spec.Dir, "pid")
	for deadline := time.After(patience); ; {
		if text, _ := os.ReadFile(pid); len(text) > 0 {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("it does not begin")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, e := outcome(t, cmd, o); code != 128+15 || e == nil || e.Cause != CauseKill {
		t.Errorf("exit code %d and end %+v, want SIGTERM's", code, e)
	}
}
