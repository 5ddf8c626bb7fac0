package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
	"gridnode/node/wasm"
	real "gridnode/test/slurm"
)

// These have the test binary be the shim of one order, a pilot, and that of one of its nodes.
const (
	orderEnv = "GRIDNODE_SLURM_TEST_ORDER"
	pilotEnv = "GRIDNODE_SLURM_TEST_PILOT"
	nodeEnv  = "GRIDNODE_SLURM_TEST_NODE"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == wasm.Verb {
		os.Exit(wasm.Main(os.Args[2:]))
	}
	if order := os.Getenv(orderEnv); order != "" {
		os.Exit(shim.Once(order))
	}
	if order := os.Getenv(nodeEnv); order != "" {
		os.Exit(shim.Pilot(order, nil, true))
	}
	if order := os.Getenv(pilotEnv); order != "" {
		os.Exit(shim.Pilot(order, []string{"/usr/bin/env", nodeEnv + "=" + order, os.Args[0]}, false))
	}
	os.Exit(m.Run())
}

// exits7 is a module: (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))),
// (memory (export "memory") 1), (func (export "_start") i32.const 7 call 0).
const exits7 = "\x00asm\x01\x00\x00\x00" + "\x01\x08\x02\x60\x01\x7f\x00\x60\x00\x00" +
	"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x00" + "\x03\x02\x01\x01" + "\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" + "\x0a\x08\x01\x06\x00\x41\x07\x10\x00\x0b"

// bench is an engine at a real cluster.
type bench struct {
	*testing.T
	cluster *real.Cluster
	cfg     Config
	modules *wasm.Store
	*Engine
	jobs uint64

	mu     sync.Mutex
	ends   map[grid.TaskID]*run.Ended
	squads map[run.Process]*run.Ended // ends of processes of squads
	rooms  []*site.Room
	told   []grid.Input // of leases
}

// newBench starts a cluster and an engine.
func newBench(t *testing.T, cluster real.Config, change ...func(*Config)) *bench {
	t.Helper()
	c := real.Start(t, cluster)
	t.Setenv("SLURM_CONF", c.Conf)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, cluster: c, ends: make(map[grid.TaskID]*run.Ended), squads: make(map[run.Process]*run.Ended)}
	b.cfg = Config{Work: t.TempDir(), linger: time.Nanosecond, Shim: []string{"/usr/bin/env", orderEnv + "=" + OrderWord, self}, Pilot: []string{"/usr/bin/env", pilotEnv + "=" + OrderWord, self}}
	for _, c := range change {
		c(&b.cfg)
	}
	b.open()
	t.Cleanup(func() { b.Close() })
	return b
}

// open starts an engine and returns what it adopts.
func (b *bench) open() (running []run.Found, ended []run.Ended) {
	b.Helper()
	setup := run.Setup{
		Files: run.Files{Home: b.TempDir(), Site: "here", Work: b.cfg.Work}, Name: "here", Logger: slog.New(slog.NewTextHandler(b.Output(), nil)),
		Ended: func(e *run.Ended) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if _, _, squad := grid.SquadOf(e.ID); squad {
				b.squads[run.Process{Task: e.ID, Number: e.Number}] = e
				return
			}
			if b.ends[e.ID] != nil {
				b.Errorf("the end of %v is reported twice", e.ID)
			}
			b.ends[e.ID] = e
		},
		Room: func(r *site.Room) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.rooms = append(b.rooms, r)
		},
		Pilots: func(in grid.Input) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.told = append(b.told, in)
		},
	}
	if err := setup.Files.Make(); err != nil {
		b.Fatal(err)
	}
	dir, err := setup.Files.MakeModules(false)
	if err != nil {
		b.Fatal(err)
	}
	if b.modules, err = wasm.OpenStore(dir, 1<<30); err != nil {
		b.Fatal(err)
	}
	setup.Modules.Store = b.modules
	e, err := start(b.cfg, int64(b.cluster.Nodes*b.cluster.Processors), setup)
	if err != nil {
		b.Fatal(err)
	}
	if running, ended, err = e.Recover(); err != nil {
		b.Fatal(err)
	}
	b.Engine = e
	return running, ended
}

// task returns a task of a shell command.
func (b *bench) task(processors int64, command string) grid.Task {
	b.jobs++
	id := grid.JobID{Hi: 7, Lo: b.jobs}
	return grid.Task{ID: grid.TaskID{Job: id, Epoch: 1}, Limit: grid.Minute, Job: &grid.Job{
		ID: id, Home: "here", Tasks: processors, Resources: grid.Resources{Processors: processors}, Command: &grid.Command{Args: []string{"sh", "-c", command}},
	}}
}

// end waits until a task has ended.
func (b *bench) end(task grid.Task) *run.Ended {
	b.Helper()
	var e *run.Ended
	b.until("a job ends", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		e = b.ends[task.ID]
		return e != nil
	})
	return e
}

// last returns what the site was told last.
func (b *bench) last() *site.Room {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rooms) == 0 {
		return &site.Room{}
	}
	return b.rooms[len(b.rooms)-1]
}

func (b *bench) output(task grid.Task) string { return b.outputOf(run.Process{Task: task.ID}) }

func (b *bench) outputOf(x run.Process) string {
	text, _ := os.ReadFile(b.files.Process("here", x) + run.Stdout.Suffix())
	return string(text)
}

// until waits for a condition that must come true soon: what only a poll shows takes up to pollMax
// where Slurm answers slowly.
func (b *bench) until(what string, condition func() bool) {
	b.Helper()
	deadline := time.After(pollMax + 3*time.Minute)
	for !condition() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			b.Fatalf("waited in vain until %s\n%s", what, b.cluster.Run(b.T, "squeue", "-t", "all"))
		}
	}
}

func TestJobsOfACluster(t *testing.T) {
	b := newBench(t, real.Config{Name: "jobs", Processors: 4})

	t.Run("exit code, output and variables", func(t *testing.T) {
		task := b.task(3, "echo $SLURM_JOB_PARTITION/$SLURM_JOB_NAME $SLURM_NTASKS $GRIDNODE_NTASKS; exit 5")
		before := time.Now().Add(-time.Second)
		b.Start(task)
		e := b.end(task)
		if e.Lost || e.Result.ExitCode != 5 || e.Result.Reason != "" || e.Result.Start < grid.Time(before.UnixMicro()) || e.Result.End > grid.Time(time.Now().UnixMicro()) {
			t.Errorf("got %+v", e)
		}
		if out := b.output(task); out != "main/ 3 3\n" { // the cluster's name for it is not told
			t.Errorf("it wrote %q", out)
		}
		b.Acknowledge([]grid.TaskID{task.ID})
		b.until("nothing is left in the work directory", func() bool {
			left, _ := filepath.Glob(b.orders.path("*", ""))
			return len(left) == 0
		})
	})

	t.Run("a module, of which compute nodes see all in the work directory", func(t *testing.T) {
		digest, size, err := b.modules.Put(strings.NewReader(exits7), func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		task := b.task(1, "")
		task.Job.Command = &grid.Command{Args: []string{"seven"}, Module: &grid.Module{Digest: digest, Size: size}}
		spec, err := b.Spec(&task, 0, b.files.Process("here", run.Process{Task: task.ID}))
		if err != nil {
			t.Fatal(err)
		}
		var config wasm.Config
		if err := json.Unmarshal([]byte(spec.Args[2]), &config); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{spec.Args[0], config.Module, config.Code, config.Folder} {
			if !strings.HasPrefix(path, b.cfg.Work+"/") {
				t.Errorf("%s is not in the work directory", path)
			}
		}
		b.Start(task)
		if e := b.end(task); e.Lost || e.Result.ExitCode != 7 {
			t.Errorf("got %+v", e)
		}
		b.Acknowledge([]grid.TaskID{task.ID})
	})

	t.Run("cancelled while it runs and while it waits", func(t *testing.T) {
		runs, waits := b.task(4, "echo begun; sleep 1000"), b.task(4, "echo begun")
		b.Start(runs)
		b.until("the first runs", func() bool { return b.output(runs) != "" })
		waits.Job.Terms = &grid.Terms{Nice: 70}
		b.Start(waits)
		b.until("the second waits, and is as nice as it says", func() bool {
			return strings.Contains(b.cluster.Run(t, "squeue", "-h", "-o", "%T %y"), "PENDING 70")
		})
		b.Kill(grid.Task{ID: waits.ID, Cause: "not any more"})
		if e := b.end(waits); e.Result.Reason != "not any more" || b.output(waits) != "" {
			t.Errorf("the one that waited: %+v and %q", e, b.output(waits))
		}
		b.Kill(grid.Task{ID: runs.ID, Cause: "enough"})
		if e := b.end(runs); e.Lost || e.Result.Reason != "enough" || e.Result.ExitCode != exitTerm {
			t.Errorf("the one that ran: %+v", e)
		}
		b.until("Slurm has neither", func() bool { return b.cluster.Run(t, "squeue", "-h") == "" })
	})

	t.Run("at its limit", func(t *testing.T) {
		task := b.task(1, "sleep 1000")
		task.Limit = grid.Second
		b.Start(task)
		if e := b.end(task); e.Lost || !strings.Contains(e.Result.Reason, "limit") || e.Result.ExitCode != exitTerm {
			t.Errorf("got %+v", e)
		}
	})

	t.Run("cancelled by somebody else", func(t *testing.T) {
		task := b.task(1, "echo begun; sleep 1000")
		b.Start(task)
		b.until("it runs", func() bool { return b.output(task) != "" })
		b.cluster.Run(t, "scancel", "--state=RUNNING", "-u", os.Getenv("USER"), "--me")
		if e := b.end(task); e.Lost || !strings.Contains(e.Result.Reason, "cancelled in Slurm") {
			t.Errorf("got %+v", e)
		}
	})

	t.Run("requeued by an administrator", func(t *testing.T) {
		task := b.task(1, "echo begun; sleep 1000")
		b.Start(task)
		b.until("it runs", func() bool { return b.output(task) != "" })
		id := b.cluster.Run(t, "squeue", "-h", "-t", "RUNNING", "-o", "%i")
		b.cluster.Run(t, "scontrol", "update", "job", id, "Requeue=1")
		b.cluster.Run(t, "scontrol", "requeue", id)
		if e := b.end(task); !e.Lost || !strings.Contains(e.Result.Reason, "REQUEUED") {
			t.Errorf("got %+v", e)
		}
		b.until("Slurm does not have it any more", func() bool { return b.cluster.Run(t, "squeue", "-h") == "" })
	})

	t.Run("refused", func(t *testing.T) {
		task := b.task(99, "true")
		b.Start(task)
		if e := b.end(task); e.Lost || e.Result.ExitCode != 125 || !strings.Contains(e.Result.Reason, "slurm.partition") {
			t.Errorf("got %+v", e)
		}
	})

	t.Run("others are seen", func(t *testing.T) {
		b.until("nothing is taken", func() bool { return b.last().Taken == nil })
		id := b.cluster.Run(t, "sbatch", "--parsable", "-n", "3", "-t", "10", "-o", "/dev/null", "--wrap", "sleep 1000")
		b.until("they hold three", func() bool {
			r := b.last()
			return len(r.Taken) > 0 && r.Taken[0].Processors == 3 && r.Taken[0].Until > b.now()+5*grid.Minute && r.Taken[0].Until < grid.Never
		})
		b.cluster.Run(t, "scancel", id)
		b.until("they hold nothing", func() bool { return b.last().Taken == nil })
	})
}

// TestNothingIsLostOrRunTwice: when the daemon is gone, when an answer is, and while the
// controller is down.
func TestNothingIsLostOrRunTwice(t *testing.T) {
	b := newBench(t, real.Config{Name: "crash", Processors: 2})
	once := filepath.Join(t.TempDir(), "ran")
	count := func() int {
		text, _ := os.ReadFile(once)
		return strings.Count(string(text), "ran")
	}

	runs, waits := b.task(2, "echo ran >>"+once+"; sleep 3; exit 4"), b.task(2, "echo ran >>"+once+"; exit 6")
	b.Start(runs)
	b.until("the first runs", func() bool { return count() == 1 })
	b.Start(waits)
	b.until("the second is submitted", func() bool { return len(b.numbers()) == 2 })
	b.Close()
	for _, id := range b.numbers() {
		if err := os.Remove(id); err != nil { // as if the answer of sbatch had never come
			t.Fatal(err)
		}
	}
	if running, ended := b.open(); len(running) != 2 || len(ended) != 0 {
		t.Fatalf("after a restart %d run and %d have ended, want 2 and 0", len(running), len(ended))
	}
	if e := b.end(runs); e.Lost || e.Result.ExitCode != 4 {
		t.Errorf("the first: %+v", e)
	}
	if e := b.end(waits); e.Lost || e.Result.ExitCode != 6 {
		t.Errorf("the second: %+v", e)
	}
	b.Close()
	if running, ended := b.open(); len(running) != 0 || len(ended) != 2 {
		t.Errorf("before they are acknowledged %d run and %d have ended, want 0 and 2", len(running), len(ended))
	}
	b.Acknowledge([]grid.TaskID{runs.ID, waits.ID})
	if n := count(); n != 2 {
		t.Errorf("%d runs of two jobs", n)
	}

	begun := once + ".begun"
	before := b.task(1, "touch "+begun+"; sleep 2; echo ran >>"+once)
	b.Start(before)
	b.until("it runs", func() bool { // by its own word: what the controller calls running, its node may not have heard of
		_, err := os.Stat(begun)
		return err == nil && b.cluster.Run(t, "squeue", "-h", "-o", "%T") == "RUNNING"
	})
	b.cluster.StopController(false)
	during := b.task(1, "echo ran >>"+once)
	b.Start(during)
	b.until("the trouble is told", func() bool { return b.last().Trouble != "" })
	b.until("the first has ended", func() bool { return count() == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.cluster.StartController(ctx); err != nil {
		t.Fatal(err)
	}
	for _, task := range []grid.Task{before, during} {
		if e := b.end(task); e.Lost || e.Result.ExitCode != 0 || e.Result.Reason != "" {
			t.Errorf("around an outage: %+v", e)
		}
	}
	b.until("the trouble is over", func() bool { return b.last().Trouble == "" })
	if n := count(); n != 4 {
		t.Errorf("%d runs of four jobs", n)
	}
}

// numbers returns the files that hold the numbers of jobs.
func (b *bench) numbers() []string {
	found, _ := filepath.Glob(b.orders.path("*", ".id"))
	return found
}

func TestProbeNamesTheKey(t *testing.T) {
	c := real.Start(t, real.Config{Name: "probe", Processors: 4, Accounting: true, Extra: "AccountingStorageEnforce=associations,limits,qos"})
	t.Setenv("SLURM_CONF", c.Conf)
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Account: "work"}, ""},
		{Config{Account: "work", Partition: "brief"}, ""},
		{Config{Account: "work", Partition: "none"}, "slurm.partition"},
		{Config{Account: "nobody"}, "slurm.account"},
		{Config{Account: "work", QOS: "best"}, "slurm.qos"},
		{Config{Account: "work", Options: []string{"--constraint=gpu"}}, "slurm.options"},
		{Config{Account: "work", Options: []string{"--no-such"}}, "slurm.options"},
		{Config{Options: []string{"--wrap=true"}}, "slurm.options"},
		{Config{Account: "work", Partners: map[string]Partner{"them": {Account: "nobody"}}}, "slurm.partners.them.account"},
		{Config{Account: "work", Partners: map[string]Partner{"them": {Partition: "brief"}}}, ""},
		{Config{Account: "work", Pilots: 2, PilotTime: grid.Hour}, ""},
		{Config{Account: "work", Pilots: 5, PilotTime: grid.Hour}, "slurm.pilots"},
		{Config{Account: "work", Partition: "brief", Pilots: 2, PilotTime: grid.Hour}, "slurm.pilot-time"},
		{Config{Account: "work", Listen: "127.0.0.1"}, ""},
		{Config{Account: "work", Listen: "192.0.2.1"}, "slurm.listen"},
	} {
		tt.cfg.Work = t.TempDir()
		n, err := Probe(t.Context(), tt.cfg)
		switch {
		case tt.want == "" && (err != nil || n != 4):
			t.Errorf("%+v: %d processors, %v; want 4", tt.cfg, n, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%+v: %v, want it to name %s", tt.cfg, err, tt.want)
		}
	}
	c.StopController(false)
	if _, err := Probe(t.Context(), Config{Work: t.TempDir()}); !errors.Is(err, ErrDown) {
		t.Errorf("without a controller: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Probe(t.Context(), Config{Work: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "PATH") {
		t.Errorf("without Slurm's commands: %v", err)
	}
}
