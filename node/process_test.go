package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// idleMax is how long a shim waits that has neither a task nor a daemon.
const idleMax = time.Second

// The test binary is the shim, too.
func TestMain(m *testing.M) {
	if home := os.Getenv("GRIDNODE_NODE_TEST_SHIM"); home != "" {
		if err := shim.Run(shim.Config{Home: home, Idle: idleMax}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(collectorVariable) != "" {
		if err := collect(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// realConfig is a host that runs processes.
func realConfig(t *testing.T, seed byte, memory *p2p.Memory) HostConfig {
	cfg := hostConfig(seed, t.TempDir(), memory, nil)
	cfg.Executor = nil
	cfg.Shim = shim.Options{Command: []string{"/proc/self/exe"}, Env: []string{"GRIDNODE_NODE_TEST_SHIM=" + shim.HomeWord}}
	cfg.Site.Price = grid.Price(seed) * grid.Credit
	return cfg
}

// realHost starts such a host; at the end of the test its shim goes, too.
func realHost(t *testing.T, cfg HostConfig) *Host {
	t.Helper()
	h := startHost(t, cfg)
	pid := shimOf(h)
	t.Cleanup(func() {
		h.Close()
		syscall.Kill(pid, syscall.SIGTERM)
		until(t, "the shim ends", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	})
	return h
}

// shimOf returns the process number of a host's shim.
func shimOf(h *Host) int {
	return h.pilots.own.(*staging).Engine.(*run.Processes).ShimPID()
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// patience is how long a test waits for what must come: that a busy machine needs long is no defect.
const patience = 2 * time.Minute

// until waits for a condition that must come true soon.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// pair starts a cheap site and a dear one that sees its quote.
func pair(t *testing.T) (cheap, dear *Host, cheapConfig, dearConfig HostConfig) {
	t.Helper()
	memory := &p2p.Memory{}
	cheapConfig, dearConfig = realConfig(t, 1, memory), realConfig(t, 2, memory)
	cheapConfig.Listen = []string{"/ip4/127.0.0.1/tcp/1"} // found there again after a restart
	cheap = realHost(t, cheapConfig)
	dearConfig.Join = cheap.Addrs()
	dear = realHost(t, dearConfig)
	awaitQuotes(t, cheap, 2)
	awaitQuotes(t, dear, 2)
	return cheap, dear, cheapConfig, dearConfig
}

// awaitQuotes waits until a host finds n sites in the directory.
func awaitQuotes(t testing.TB, h *Host, n int) {
	t.Helper()
	until(t, "the directory is complete", func() bool {
		answer, err := h.Ask(t.Context(), func(token uint64) grid.Input {
			return &site.FindQuotes{Token: token, Query: directory.Query{Attribute: directory.Price, Limit: 10}}
		})
		return err == nil && len(answer.(*directory.Found).Quotes) == n
	})
}

// shellJob is a job that runs a shell script, at the cheapest site.
func shellJob(h *Host, n uint64, script string) *grid.Job {
	job := testJob(h, n, grid.Minute)
	job.RunTime, job.Goal = 0, grid.GoalCost
	job.Command = &grid.Command{Args: []string{"/bin/sh", "-c", script}, Env: []string{"COLOUR=green", "GRIDNODE_SITE=forged"}}
	return job
}

func output(t *testing.T, h *Host, job grid.JobID, stream run.Stream) string {
	t.Helper()
	r, err := h.Output(t.Context(), job, stream, false)
	if err != nil {
		t.Fatalf("%s of %s: %v", stream, job, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s of %s: %v", stream, job, err)
	}
	return string(b)
}

func TestJobRunsElsewhereAndItsOutputComesHome(t *testing.T) {
	t.Parallel()
	cheap, dear, _, _ := pair(t)
	job := shellJob(dear, 1, `echo $COLOUR $GRIDNODE_SITE $GRIDNODE_SITE_ID $GRIDNODE_JOB_ID $GRIDNODE_HOME_SITE $GRIDNODE_NPROCS $GRIDNODE_NTASKS $GRIDNODE_CPUS_PER_TASK
		pwd; echo $TMPDIR; echo $HOME; echo trouble >&2; echo x > left-behind; exit 7`)
	job.Processors, job.Tasks = 4, 2
	job.Command.Dir = "/nowhere/at/home"
	if _, err := submitTo(dear, job); err != nil {
		t.Fatal(err)
	}
	v := awaitState(t, dear, job.ID, site.Failed)
	if v.Site != cheap.ID() || v.Result.ExitCode != 7 {
		t.Fatalf("ran at %s with exit code %d, want %s and 7", v.Site, v.Result.ExitCode, cheap.ID())
	}
	base := cheap.files.Task(dear.ID(), grid.TaskID{Job: job.ID, Epoch: v.Epoch})
	scratch := base + run.ScratchSuffix
	want := fmt.Sprintf("green site-1 %s %s %s 4 2 2\n%s\n%s\n%s\n", cheap.ID(), job.ID, dear.ID(), scratch, scratch, scratch)
	for _, when := range []string{"at once", "when it was fetched"} {
		if got := output(t, dear, job.ID, run.Stdout); got != want {
			t.Errorf("%s: stdout %q, want %q", when, got, want)
		}
		if got := output(t, dear, job.ID, run.Stderr); got != "trouble\n" {
			t.Errorf("%s: stderr %q", when, got)
		}
		until(t, "the executing site forgets the output", func() bool {
			left, _ := filepath.Glob(base + "*")
			return len(left) == 0
		})
	}
	if _, err := cheap.Output(t.Context(), job.ID, run.Stdout, false); !errors.Is(err, site.ErrUnknownJob) && !errors.Is(err, ErrNotHome) {
		t.Errorf("the executing site reads another site's output: %v", err)
	}
	closeHost(t, cheap)
	if got := output(t, dear, job.ID, run.Stdout); got != want {
		t.Errorf("with the executing site gone: stdout %q", got)
	}
}

func TestFollowOutput(t *testing.T) {
	t.Parallel()
	cheap, dear, _, _ := pair(t)
	for i, home := range []*Host{cheap, dear} { // runs here, runs elsewhere
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		job := shellJob(home, uint64(i+1), "echo one; read line < "+fifo+"; echo $line; exit 0")
		if _, err := submitTo(home, job); err != nil {
			t.Fatal(err)
		}
		r, err := home.Output(t.Context(), job.ID, run.Stdout, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b := make([]byte, 100)
		n, err := r.Read(b)
		if string(b[:n]) != "one\n" || err != nil {
			t.Fatalf("read %q, %v", b[:n], err)
		}
		if got := output(t, home, job.ID, run.Stdout); got != "one\n" {
			t.Errorf("without following: %q", got)
		}
		if err := os.WriteFile(fifo, []byte("two\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		if string(rest) != "two\n" || err != nil {
			t.Errorf("rest %q, %v", rest, err)
		}
	}
}

func TestFollowingEndsWithItsContextAndWithTheHost(t *testing.T) {
	t.Parallel()
	cheap, dear, _, _ := pair(t)
	job := shellJob(dear, 1, "echo one; sleep 1000")
	if _, err := submitTo(dear, job); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := dear.Output(ctx, job.ID, run.Stdout, true)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 10)); n != 4 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	cancel()
	if _, err := r.Read(make([]byte, 10)); err == nil {
		t.Error("reading went on")
	}
	r.Close()
	r, err = dear.Output(t.Context(), job.ID, run.Stdout, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Read(make([]byte, 10))
	closeHost(t, cheap) // must not wait for whoever follows
	if _, err := r.Read(make([]byte, 10)); err == nil {
		t.Error("reading went on without the executing site")
	}
}

func TestJobOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	cheap, dear, cheapConfig, dearConfig := pair(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	job := shellJob(dear, 1, "echo $$; read line < "+fifo+"; echo $line; exit 3")
	if _, err := submitTo(dear, job); err != nil {
		t.Fatal(err)
	}
	until(t, "the job runs", func() bool { return output(t, dear, job.ID, run.Stdout) != "" })
	pid := output(t, dear, job.ID, run.Stdout)
	closeHost(t, cheap)
	closeHost(t, dear)
	if err := os.WriteFile(fifo, []byte("both daemons are gone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dear = realHost(t, dearConfig)
	realHost(t, cheapConfig)
	v := awaitState(t, dear, job.ID, site.Failed)
	if v.Result.ExitCode != 3 || v.Epoch != 1 {
		t.Errorf("exit code %d in epoch %d, want 3 in epoch 1", v.Result.ExitCode, v.Epoch)
	}
	if got := output(t, dear, job.ID, run.Stdout); got != pid+"both daemons are gone\n" {
		t.Errorf("output %q", got)
	}
}

func TestRunningTaskIsAdopted(t *testing.T) {
	t.Parallel()
	cfg := realConfig(t, 1, &p2p.Memory{})
	h := realHost(t, cfg)
	job := shellJob(h, 1, "echo begun; touch left; exec sleep 1000")
	job.Goal = grid.GoalLocal
	if _, err := submitTo(h, job); err != nil {
		t.Fatal(err)
	}
	awaitState(t, h, job.ID, site.Running)
	task := grid.TaskID{Job: job.ID, Epoch: 1}
	until(t, "the process runs", func() bool { return exists(h.files.Task(h.ID(), task) + run.Stdout.Suffix()) })
	closeHost(t, h)
	restarted := grid.Time(time.Now().UnixMicro())

	h = realHost(t, cfg)
	v, err := h.view(t.Context(), job.ID)
	if err != nil || v.State != site.Running {
		t.Fatalf("after a restart the job is %v (%v), want it running", v.State, err)
	}
	if v.Start >= restarted {
		t.Errorf("it counts as started %v after the restart", v.Start-restarted)
	}
	until(t, "it offers three of its four processors", func() bool {
		var free int64
		if err := h.Do(t.Context(), func(s *site.Site) { free = s.Offer().Free }); err != nil {
			t.Fatal(err)
		}
		return free == 3
	})
	if _, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.Cancel{Token: token, Job: job.ID} }); err != nil {
		t.Fatal(err)
	}
	awaitState(t, h, job.ID, site.CancelledByUser)
	if left := leftovers(t, h); len(left) > 0 { // a job of this site keeps what it writes elsewhere
		t.Errorf("it has left %q", left)
	}
}

func TestJobRunsAgainWhenItsShimIsKilled(t *testing.T) {
	cfg := realConfig(t, 1, &p2p.Memory{})
	h := realHost(t, cfg)
	mark := filepath.Join(t.TempDir(), "mark")
	job := shellJob(h, 1, "if test -e "+mark+"; then echo second; else touch "+mark+"; sleep 1000; fi")
	if _, err := submitTo(h, job); err != nil {
		t.Fatal(err)
	}
	until(t, "the job runs", func() bool { _, err := os.Stat(mark); return err == nil })
	if err := syscall.Kill(shimOf(h), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitState(t, h, job.ID, site.Done)
	if got := output(t, h, job.ID, run.Stdout); got != "second\n" {
		t.Errorf("output %q", got)
	}
	pid := shimOf(h)
	t.Cleanup(func() { h.Close(); syscall.Kill(pid, syscall.SIGTERM) })
}

func TestTasksThatCannotStart(t *testing.T) {
	h := realHost(t, realConfig(t, 1, &p2p.Memory{}))
	for i, tt := range []struct {
		name   string
		change func(*grid.Command)
		code   int32
		reason string
	}{
		{"no such directory", func(c *grid.Command) { c.Dir = "/no/such/directory" }, 125, "/no/such/directory"},
		{"no such command", func(c *grid.Command) { c.Args = []string{"no-such-command"} }, 127, "no-such-command"},
	} {
		job := shellJob(h, uint64(i+1), "true")
		tt.change(job.Command)
		if _, err := submitTo(h, job); err != nil {
			t.Fatal(err)
		}
		v := awaitState(t, h, job.ID, site.Failed)
		if v.Result.ExitCode != tt.code || !strings.Contains(v.Reason, tt.reason) {
			t.Errorf("%s: exit code %d, %q; want %d about %s", tt.name, v.Result.ExitCode, v.Reason, tt.code, tt.reason)
		}
	}
}

func TestCancelEndsTheProcess(t *testing.T) {
	t.Parallel()
	cheap, dear, _, _ := pair(t)
	for i, home := range []*Host{cheap, dear} {
		job := shellJob(home, uint64(i+1), "echo $$; exec sleep 1000")
		if _, err := submitTo(home, job); err != nil {
			t.Fatal(err)
		}
		until(t, "the job runs", func() bool { return output(t, home, job.ID, run.Stdout) != "" })
		var pid int
		fmt.Sscan(output(t, home, job.ID, run.Stdout), &pid)
		_, err := home.Ask(t.Context(), func(token uint64) grid.Input { return &site.Cancel{Token: token, Job: job.ID, Cause: "not needed"} })
		if err != nil {
			t.Fatal(err)
		}
		awaitState(t, home, job.ID, site.CancelledByUser)
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
}
