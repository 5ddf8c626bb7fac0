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

	"gridnode/grid"
	"gridnode/node/kept"
)

func TestHowTasksEnd(t *testing.T) {
	s := newTestShim(t)
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(s.home, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("bin-plain", "not executable", 0o644)
	script := write("bin-script", "#!/bin/sh\nexit 3\n", 0o755)
	for _, tt := range []struct {
		name   string
		args   []string
		env    []string
		code   int32
		cause  Cause
		reason string // part of it
	}{
		{"success", []string{"true"}, nil, 0, CauseExit, ""},
		{"exit code", []string{"sh", "-c", "exit 7"}, nil, 7, CauseExit, ""},
		{"largest exit code", []string{"sh", "-c", "exit 255"}, nil, 255, CauseExit, ""},
		{"segmentation fault", []string{"sh", "-c", "kill -SEGV $$"}, nil, 139, CauseSignal, "signal 11"},
		{"killed by somebody", []string{"sh", "-c", "kill -KILL $$"}, nil, 137, CauseSignal, "signal 9"},
		{"absolute path", []string{script}, nil, 3, CauseExit, ""},
		{"path relative to the directory", []string{"../../../bin-script"}, nil, 3, CauseExit, ""},
		{"PATH of its own", []string{"bin-script"}, []string{"PATH=/nonexistent:" + s.home}, 3, CauseExit, ""},
		{"no PATH", []string{"sh", "-c", "exit 4"}, []string{}, 4, CauseExit, ""},
		{"unknown command", []string{"no-such-command"}, nil, 127, CauseStart, "no-such-command: command not found"},
		{"missing file", []string{"./no/such/file"}, nil, 127, CauseStart, "./no/such/file: command not found"},
		{"not executable", []string{s.home + "/bin-plain"}, nil, 126, CauseStart, "not executable"},
		{"not executable in PATH", []string{"bin-plain"}, []string{"PATH=" + s.home}, 126, CauseStart, "not executable"},
		{"directory", []string{"/etc"}, nil, 126, CauseStart, "is a directory"},
		{"no interpreter", []string{write("bin-noint", "#!/no/such/interpreter\n", 0o755)}, nil, 127, CauseStart, "interpreter was not found"},
		{"no format", []string{write("bin-noformat", "hello\n", 0o755)}, nil, 126, CauseStart, "begins with #!"},
		{"one argument too long", []string{"true", strings.Repeat("x", 140<<10)}, nil, 126, CauseStart, "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := s.command(tt.args...)
			if tt.env != nil {
				spec.Env = tt.env
			}
			before := time.Now()
			e := s.run(spec)
			if e.ExitCode != tt.code || e.Cause != tt.cause || !strings.Contains(e.Reason, tt.reason) || (tt.reason == "") != (e.Reason == "") {
				t.Errorf("%d, %v, %q; want %d, %v, %q", e.ExitCode, e.Cause, e.Reason, tt.code, tt.cause, tt.reason)
			}
			if e.Start < wall(before) || e.End < e.Start || e.End > wall(time.Now()) {
				t.Errorf("ran from %d to %d, but it is %d", e.Start, e.End, wall(time.Now()))
			}
		})
	}
}

func TestTaskThatCannotBegin(t *testing.T) {
	s := newTestShim(t)
	file := filepath.Join(s.home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Spec){
		"working directory": func(spec *Spec) { spec.Dir = file + "/work" },
		"standard output":   func(spec *Spec) { spec.Stdout = s.home + "/none/stdout" },
		"standard error":    func(spec *Spec) { spec.Stderr = s.home },
	} {
		spec := s.command("true")
		s.start(s.command("true")) // makes the directories
		s.event()
		change(&spec)
		if err := s.client.Start(spec); err != nil {
			t.Fatal(err)
		}
		if e := s.event(); e.ExitCode != exitNoStart || e.Cause != CauseStart || !strings.Contains(e.Reason, what) {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

func TestWhatATaskFinds(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("env; echo here: $(pwd); cat; echo to stderr >&2; cut -d ' ' -f 1,5,6 /proc/$$/stat; umask")
	spec.Env = []string{"PATH=/usr/bin:/bin", "B=2", "A=with space"}
	e := s.run(spec)
	if e.ExitCode != 0 {
		t.Fatalf("%+v: %s", e, s.read(spec.Stderr))
	}
	out := s.read(spec.Stdout)
	environment, rest, ok := strings.Cut(out, "here: "+spec.Dir+"\n")
	if !ok {
		t.Fatalf("working directory is not %s:\n%s", spec.Dir, out)
	}
	variables := make(map[string]string)
	for line := range strings.Lines(environment) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[name] = value
	}
	delete(variables, "PWD") // the shell's
	delete(variables, "OLDPWD")
	delete(variables, "_")
	delete(variables, "SHLVL")
	if len(variables) != 4 || variables["A"] != "with space" || variables["B"] != "2" || !strings.HasSuffix(variables[MarkEnv], "/"+spec.ID) {
		t.Errorf("environment %v, want A, B, PATH and %s", variables, MarkEnv)
	}
	var pid, group, session int
	var umask string
	if _, err := fmt.Sscan(rest, &pid, &group, &session, &umask); err != nil || pid != session || pid != group {
		t.Errorf("process %d in session %d and group %d, %v: want its own", pid, session, group, err)
	}
	mine := syscall.Umask(0)
	syscall.Umask(mine)
	if umask != fmt.Sprintf("%04o", mine) {
		t.Errorf("umask %s, want the daemon's, %04o", umask, mine)
	}
	if got := s.read(spec.Stderr); got != "to stderr\n" {
		t.Errorf("stderr holds %q", got)
	}
	spec = s.spec("echo one; echo two >&2; echo three")
	spec.Stderr = spec.Stdout
	s.run(spec)
	if got := s.read(spec.Stdout); got != "one\ntwo\nthree\n" {
		t.Errorf("common file holds %q", got)
	}
}

func TestUsage(t *testing.T) {
	s := newTestShim(t)
	e := s.run(s.spec("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/dev/null bs=20M count=1 2>/dev/null; :"))
	if e.User <= 0 || e.User+e.System > 2*(e.End-e.Start)+grid.Second {
		t.Errorf("CPU time %v+%v in %v", e.User, e.System, e.End-e.Start)
	}
	if e.MaxRSS < 20<<20 || e.MaxRSS > 200<<20 {
		t.Errorf("at most %d bytes resident, its child had 20 MiB", e.MaxRSS)
	}
}

func TestLimit(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_GRACE=20s") // a busy machine may need long until it ends
	for _, script := range []string{"sleep 1000", "kill -STOP $$; sleep 1000"} {
		spec := s.spec(script)
		spec.Limit = 50 * grid.Millisecond
		e := s.run(spec)
		if e.ExitCode != 143 || e.Cause != CauseLimit || !strings.Contains(e.Reason, "50ms") {
			t.Errorf("%s: %+v, want exit code 143 for the limit of 50ms", script, e)
		}
		if span := e.End - e.Start; span < spec.Limit {
			t.Errorf("%s: ended after %v", script, span)
		}
	}
	spec := s.spec("exit 0")
	spec.Limit = grid.Hour
	if e := s.run(spec); e.Cause != CauseExit {
		t.Errorf("within its limit: %+v", e)
	}
}

func TestKill(t *testing.T) {
	for _, tt := range []struct {
		name, grace, script string
		code                int32
	}{
		{"gives in to SIGTERM", "1m", tell + "sleep 1000", 143},
		{"ends in order", "1m", "trap 'exit 9' TERM; " + tell + "while :; do sleep 0.01; done", 9},
		{"ignores SIGTERM", "200ms", "trap '' TERM; " + tell + "while :; do sleep 0.01; done", 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestShim(t, "GRIDNODE_SHIM_TEST_GRACE="+tt.grace)
			spec := s.spec(tt.script)
			s.start(spec)
			s.pids(spec, 1)
			for _, reason := range []string{"first", "second"} {
				if err := s.client.Kill(spec.ID, reason); err != nil {
					t.Fatal(err)
				}
			}
			if e := s.event(); e.ExitCode != tt.code || e.Cause != CauseKill || e.Reason != "first" {
				t.Errorf("%+v, want exit code %d for the first reason", e, tt.code)
			}
		})
	}
}

// What a task leaves behind in its group or outside of it: each line starts one
// process that tells its number and stays.
var descendants = []struct{ name, line string }{
	{"child", "sh -c '" + tell + "sleep 1000; :' &"},
	{"child that ignores SIGTERM", "sh -c '" + tell + "trap \"\" TERM; while :; do sleep 0.1; done' &"},
	{"grandchild", "(sh -c '" + tell + "sleep 1000; :' & wait) &"},
	{"session of its own", "setsid sh -c '" + tell + "sleep 1000; :' &"},
	{"daemon: twice removed, in a session of its own", "(setsid sh -c 'sh -c \"" + strings.ReplaceAll(tell, "$$", "\\$\\$") + "sleep 1000; :\" & exit' &);"},
	{"environment cleared", "env -i /bin/sh -c '" + tell + "/bin/sleep 1000; :' &"},
	{"stopped", "sh -c '" + tell + "kill -STOP $$; :' &"},
}

func TestKillTakesAllDescendants(t *testing.T) {
	s := newTestShim(t)
	for _, d := range descendants {
		t.Run(d.name, func(t *testing.T) {
			spec := s.spec(tell + d.line + " sleep 1000")
			s.start(spec)
			pids := s.pids(spec, 2)
			if err := s.client.Kill(spec.ID, "not wanted any more"); err != nil {
				t.Fatal(err)
			}
			e := s.event()
			s.allGone(pids) // at the moment its end is told
			if e.ID != spec.ID || e.Cause != CauseKill || e.Reason != "not wanted any more" || e.ExitCode != 143 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestEndTakesAllDescendants(t *testing.T) {
	s := newTestShim(t)
	keep := s.spec("sleep 1000") // so that no step relies on the last task's end
	s.start(keep)
	for _, d := range descendants {
		t.Run(d.name, func(t *testing.T) {
			spec := s.spec(tell + d.line + " while [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done; exit 5")
			s.start(spec)
			e := s.event()
			s.allGone(s.pids(spec, 2))
			if e.ID != spec.ID || e.Cause != CauseExit || e.ExitCode != 5 {
				t.Errorf("%+v", e)
			}
		})
	}
	if e := s.run(s.spec("exit 0")); e.ExitCode != 0 {
		t.Errorf("%+v", e)
	}
}

// Time to end in order is given to the whole task, not only to its first process.
func TestGraceIsForDescendantsToo(t *testing.T) {
	s := newTestShim(t, "GRIDNODE_SHIM_TEST_GRACE=20s")
	spec := s.spec(tell + "sh -c 'trap \"sleep 0.1; echo saved > result; exit\" TERM; " + tell + "while :; do sleep 0.01; done' & sleep 1000")
	s.start(spec)
	s.pids(spec, 2)
	if err := s.client.Kill(spec.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	s.event()
	if got := s.read(filepath.Join(spec.Dir, "result")); got != "saved\n" {
		t.Errorf("result is %q", got)
	}
}

// A process without session, parent and environment cannot be told whose it is: it
// is killed when no task is running any more.
func TestUnknownOrphanGoesLast(t *testing.T) {
	s := newTestShim(t)
	keep := s.spec(tell + "sleep 1000")
	s.start(keep)
	s.pids(keep, 1)
	spec := s.spec("(setsid env -i /bin/sh -c '" + tell + "/bin/sleep 1000 & echo $! >>pids; wait' &) ; while [ \"$(cat pids 2>/dev/null | wc -l)\" -lt 2 ]; do sleep 0.01; done")
	s.start(spec)
	if e := s.event(); e.ID != spec.ID || e.ExitCode != 0 {
		t.Fatalf("%+v", e)
	}
	pids := s.pids(spec, 2)
	if err := s.client.Kill(keep.ID, ""); err != nil {
		t.Fatal(err)
	}
	s.event()
	s.until("the orphan and its child are gone", func() bool { return !alive(pids[0]) && !alive(pids[1]) })
}

func TestOutputIsCut(t *testing.T) {
	s := newTestShim(t)
	spec := s.spec("head -c 20000000 /dev/zero; head -c 17000000 /dev/zero >&2; echo end")
	e := s.run(spec)
	for _, path := range []string{spec.Stdout, spec.Stderr} {
		if at := kept.At(path); at != kept.Default {
			t.Errorf("%s: cut at %d, want %d", path, at, kept.Default)
		}
	}
	if !e.OutputCut || e.ExitCode != 0 {
		t.Errorf("%+v, want a success with its output cut", e)
	}
	spec = s.spec(fmt.Sprintf("head -c %d /dev/zero", kept.Default))
	if e := s.run(spec); e.OutputCut {
		t.Errorf("output of exactly the largest size was cut: %+v", e)
	}
	// One that writes for ever: cut while it runs, at a bound of its own.
	const bound = 1 << 20
	spec = s.spec("while :; do head -c 900000 /dev/zero; sleep 0.1; done")
	spec.Log = bound
	s.start(spec)
	size := func() int64 {
		info, err := os.Stat(spec.Stdout)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	s.until("much is written", func() bool { return size() > kept.Most(bound) })
	s.until("it is cut", func() bool { return size() <= kept.Most(bound) && kept.At(spec.Stdout) == bound })
	if err := s.client.Kill(spec.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if e := s.event(); !e.OutputCut || kept.At(spec.Stdout) != bound {
		t.Errorf("%+v, %d bytes left", e, size())
	}
}

func TestKillOfUnknownAndEnded(t *testing.T) {
	s := newTestShim(t)
	if err := s.client.Kill("never-started", "x"); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("exit 0")
	s.run(spec)
	if err := s.client.Kill(spec.ID, "too late"); err != nil {
		t.Fatal(err)
	}
	if e := s.run(s.spec("exit 1")); e.ExitCode != 1 {
		t.Errorf("%+v", e)
	}
}

// TestLimitExtendedInTheLastMoment: a limit that is over before the loop hears of it, and that
// was extended by then, ends nothing; the extended one does.
func TestLimitExtendedInTheLastMoment(t *testing.T) {
	s := &shim{
		config: Config{Grace: time.Hour}, inbox: make(chan func(), 8), quit: make(chan struct{}), records: &records{},
		tasks: make(map[string]*task), sessions: make(map[int]*task), sides: make(map[int]*side), orphans: make(map[int]*orphan),
	}
	defer close(s.quit)
	x := &task{id: "x", empty: true} // there is no process that could be signalled
	s.tasks[x.id] = x
	s.limit(x, 1, 1)
	over := <-s.inbox
	s.limit(x, grid.Hour, grid.Hour)
	if over(); !x.killAt.IsZero() {
		t.Errorf("ended: %s", x.reason)
	}
	s.limit(x, 1, 2)
	if (<-s.inbox)(); x.killAt.IsZero() || x.cause != CauseLimit {
		t.Error("the extended limit does not end it")
	}
}

// TestExtensionCountsFromNow: what is extended has its span from then on, however long it has run.
func TestExtensionCountsFromNow(t *testing.T) {
	s := stillShim(t)
	x := &task{id: "x", empty: true, start: wall(time.Now().Add(-2 * time.Hour))}
	s.tasks[x.id] = x
	s.extendTask(x.id, grid.Hour)
	select {
	case over := <-s.inbox:
		over()
		t.Errorf("it ends at once: %s", x.reason)
	case <-time.After(20 * time.Millisecond):
	}
}

// TestTasksAreBounded: a shim that knows as many tasks as it may starts no other.
func TestTasksAreBounded(t *testing.T) {
	s := stillShim(t)
	for i := range TasksMax {
		s.results[strconv.Itoa(i)] = nil
	}
	dir := t.TempDir()
	// What it would start cannot begin, of which it would keep a record.
	s.startTask(&Spec{ID: "more", Args: []string{filepath.Join(dir, "none")}, Dir: dir, Stdout: filepath.Join(dir, "o"), Stderr: filepath.Join(dir, "e")})
	if len(s.tasks) > 0 || len(s.results) > TasksMax {
		t.Errorf("it knows %d tasks and %d ends, at most %d", len(s.tasks), len(s.results), TasksMax)
	}
}
