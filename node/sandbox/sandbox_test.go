package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridnode/grid"
)

// TestPlanHasTheWallsOfItsRule: whatever a machine lacks, a rule with walls yields a plan
// with walls or an error.
func TestPlanHasTheWallsOfItsRule(t *testing.T) {
	no := errors.New("not here")
	all := Means{Program: "/usr/bin/bwrap", ABI: 7}
	for _, tt := range []struct {
		name  string
		means Means
		want  Kind
		rule  Rule
		kind  Kind
		err   string
	}{
		{name: "both", means: all, want: Auto, kind: Bubblewrap},
		{name: "no bubblewrap", means: Means{NoBubblewrap: no, ABI: 7}, want: Auto, kind: Landlock},
		{name: "nothing", means: Means{NoBubblewrap: no, NoLandlock: no}, want: Auto, err: "no sandbox"},
		{name: "bubblewrap is wanted", means: Means{NoBubblewrap: no, ABI: 7}, want: Bubblewrap, err: "no sandbox"},
		{name: "landlock is wanted", means: Means{Program: "/bwrap", NoLandlock: no}, want: Landlock, err: "no sandbox"},
		{name: "no walls are wanted", means: all, want: None, err: "no sandbox"},
		{name: "ports", means: all, want: Auto, rule: Rule{Ports: []uint16{80}}, kind: Bubblewrap},
		{name: "ports that cannot be watched", means: Means{Program: "/bwrap", ABI: 3}, want: Auto, rule: Rule{Ports: []uint16{80}}, err: ErrPorts.Error()},
		{name: "ports, but the network is open", means: Means{Program: "/bwrap", ABI: 3}, want: Auto, rule: Rule{Ports: []uint16{80}, Network: true}, kind: Bubblewrap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Walls = true
			p, err := tt.means.Plan(tt.want, &tt.rule)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %+v, %v; want %s", p, err, tt.err)
				}
				return
			}
			if err != nil || p.Kind != tt.kind || !p.Walled() {
				t.Errorf("got %+v, %v; want %s", p, err, tt.kind)
			}
		})
	}
}

func TestRuleByWhoseJobItIs(t *testing.T) {
	need := grid.Resources{Processors: 4, Memory: 1 << 30}
	c := Default
	if r := c.Rule(false, need, 0); r.Walls || r.Limits != (Limits{}) {
		t.Errorf("own job: %+v", r)
	}
	r := c.Rule(true, need, 1)
	if want := (Limits{Memory: 4 << 30, Processors: 4000, Processes: ProcessesDefault, Disk: DiskDefault, Files: FilesDefault}); !r.Walls || r.Network || r.Limits != want {
		t.Errorf("guest: %+v", r)
	}
	if r := c.Rule(true, grid.Resources{Processors: 2}, 1<<20); r.Limits.Memory != 2<<20 {
		t.Errorf("guest that says nothing has %d bytes", r.Limits.Memory)
	}
	c.Own = true
	if r := c.Rule(false, need, 0); r.Walls || r.Limits.Memory != 4<<30 || r.Limits.Disk != 0 {
		t.Errorf("own job with limits: %+v", r)
	}
	c.Walls = None
	if r := c.Rule(true, need, 0); r.Walls {
		t.Errorf("without walls: %+v", r)
	}
	var zero Config
	if r := zero.Rule(true, need, 0); !r.Walls {
		t.Error("a configuration that says nothing has no walls")
	}
}

func TestPlanSees(t *testing.T) {
	p := &Plan{Kind: Bubblewrap, Read: []string{"/data/set"}}
	for path, want := range map[string]bool{
		"/usr/bin/env": true, "/bin/sh": true, "/data/set": true, "/data/set/x": true, "/tmp/x": true,
		"/data/sets": false, "/root/bin/x": false, "/etc/shadow": false,
	} {
		if got := p.Sees(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !(&Plan{Kind: None}).Sees("/root/x") {
		t.Error("without walls something is hidden")
	}
}

// TestFiltersAssemble: every filter is a program that the kernel would take (at most 4096
// instructions), and each network has its own.
func TestFiltersAssemble(t *testing.T) {
	var programs [][]byte
	for _, sharing := range []bool{false, true} {
		for _, network := range []netFilter{netOwn, netTCP, netAll, netNone} {
			policy, err := filter(sharing, network)
			if err != nil {
				t.Fatal(err)
			}
			b, err := program(policy)
			if err != nil || len(b) == 0 || len(b)%8 != 0 || len(b)/8 > 4096 {
				t.Errorf("sharing %v, network %d: %d bytes, %v", sharing, network, len(b), err)
			}
			programs = append(programs, b)
		}
	}
	if slices.Equal(programs[0], programs[1]) || slices.Equal(programs[0], programs[3]) {
		t.Error("different networks have one filter")
	}
}

func TestClosedAbove(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []struct {
		path string
		mode os.FileMode
	}{{dir + "/open", 0o755}, {dir + "/open/closed", 0o700}, {dir + "/open/closed/in", 0o755}} {
		if err := os.Mkdir(p.path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.path, p.mode); err != nil {
			t.Fatal(err)
		}
	}
	got, err := closedAbove(dir + "/open/closed/in/file")
	if err != nil || got == "" || !strings.HasPrefix(dir+"/open/closed", got) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := closedAbove("/usr/bin/env"); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// benchmarkStart measures a job that does nothing, from its start until it is released. What
// the sandbox costs is the difference to a bare one.
func benchmarkStart(b *testing.B, kind Kind) {
	limits := Limits{Memory: 1 << 30, Processes: 100, Processors: 1000, Disk: 1 << 20, Files: 100}
	m := Find()
	l := Open(b.TempDir())
	defer l.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	fd, dir := int(null.Fd()), b.TempDir()
	p, err := m.Plan(kind, &Rule{Walls: kind != None, Limits: limits})
	if err != nil {
		b.Skip(err)
	}
	const program = "/bin/true"
	once := func() {
		var r *Running
		var pid int
		if kind == None {
			pid, err = syscall.ForkExec(program, []string{program}, &syscall.ProcAttr{Dir: dir, Files: []uintptr{uintptr(fd), uintptr(fd), uintptr(fd)}, Sys: &syscall.SysProcAttr{Setsid: true}})
		} else if r, err = l.Start(p, &Process{Path: program, Args: []string{program}, Dir: dir, Files: [3]int{fd, fd, fd}}); err == nil {
			pid = r.PID
		}
		if err != nil {
			b.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status != 0 {
			b.Fatal(err, status)
		}
		if r != nil {
			r.Release()
		}
	}
	once() // the first one makes what the others find
	b.ResetTimer()
	var spans []time.Duration
	for b.Loop() {
		began := time.Now()
		once()
		spans = append(spans, time.Since(began))
	}
	slices.Sort(spans)
	b.ReportMetric(float64(spans[len(spans)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(spans[0].Microseconds())/1000, "ms-least") // on a machine that has other things to do
}

func BenchmarkBare(b *testing.B)       { benchmarkStart(b, None) }
func BenchmarkBubblewrap(b *testing.B) { benchmarkStart(b, Bubblewrap) }
func BenchmarkLandlock(b *testing.B)   { benchmarkStart(b, Landlock) }

// A program that a job brings along lies elsewhere within the walls than outside.
func TestProgramInOwnFolder(t *testing.T) {
	for _, tt := range []struct {
		kept       bool
		path, want string
	}{
		{true, "/home/x/solver", Folder + "/solver"},
		{true, "/home/x/bin/solver", Folder + "/bin/solver"},
		{true, "/home/xy/solver", "/home/xy/solver"},
		{true, "/usr/bin/env", "/usr/bin/env"},
		{false, "/home/x/solver", "/home/x/solver"},
	} {
		p := Plan{Kept: tt.kept}
		if got := p.inside(&Process{Path: tt.path, Dir: "/home/x"}); got != tt.want {
			t.Errorf("kept %v, %s: the task looks at %s, want %s", tt.kept, tt.path, got, tt.want)
		}
	}
}
