package cgroup

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFindReadsWhatTheKernelSays(t *testing.T) {
	for _, tt := range []struct {
		name, mounts, own string
		one, two          map[string]string
	}{
		{
			name:   "version 2",
			mounts: "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			own:    "0::/system.slice/gridnode.service\n",
			two:    map[string]string{"": "/sys/fs/cgroup/system.slice/gridnode.service"},
		},
		{
			name: "version 1 with version 2 beside it",
			mounts: "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			own: "4:memory:/a/b\n2:cpu,cpuacct:/\n6:freezer:/\n0::/\n",
			one: map[string]string{"memory": "/sys/fs/cgroup/memory/a/b", "cpu": "/sys/fs/cgroup/cpu,cpuacct"},
			two: map[string]string{"": "/sys/fs/cgroup/unified"},
		},
		{
			name:   "in a container that sees a part",
			mounts: "35 31 0:32 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
			own:    "8:pids:/docker/x/y\n",
			one:    map[string]string{"pids": "/sys/fs/cgroup/pids/y"},
		},
		{
			name:   "outside its namespace",
			mounts: "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n35 31 0:32 / /c/pids rw - cgroup cgroup rw,pids\n",
			own:    "0::/../..\n8:pids:/\n",
			one:    map[string]string{"pids": "/c/pids"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two, err := find(strings.NewReader(tt.mounts), strings.NewReader(tt.own))
			if err != nil || !maps.Equal(one, tt.one) || !maps.Equal(two, tt.two) {
				t.Errorf("got %v, %v, %v; want %v, %v", one, two, err, tt.one, tt.two)
			}
		})
	}
	if _, _, err := find(strings.NewReader("1 1 0:1 / / rw - ext4 /dev/x rw\n"), strings.NewReader("0::/\n")); err == nil {
		t.Error("found groups where none are mounted")
	}
}

// TestGroupThatWeMadeIsNotOurPlace: a shim that was moved aside finds the group that was
// given to it.
func TestGroupThatWeMadeIsNotOurPlace(t *testing.T) {
	if got := outer("/sys/a/gridnode-1f.daemon"); got != "/sys/a" {
		t.Errorf("got %s", got)
	}
	if got := outer("/sys/a/gridnode.service"); got != "/sys/a/gridnode.service" {
		t.Errorf("got %s", got)
	}
}

// TestLimitsAreWritten: what goes into which file, of either version.
func TestLimitsAreWritten(t *testing.T) {
	limits := Limits{Memory: 1 << 20, Processes: 7, Processors: 1500}
	for version, want := range map[int]map[string]string{
		1: {"memory.limit_in_bytes": "1048576", "memory.memsw.limit_in_bytes": "1048576", "pids.max": "7", "cpu.cfs_quota_us": "150000"},
		2: {"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7", "cpu.max": "150000 100000"},
	} {
		dir := t.TempDir()
		for name := range want {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g := &Group{version: version, dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir}}
		if err := g.Set(limits); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != text {
				t.Errorf("version %d: %s holds %q, want %q", version, name, got, text)
			}
		}
		events := map[int]string{1: "memory.oom_control", 2: "memory.events"}[version]
		if g.Killed() || g.Refused() {
			t.Error("killed or refused although nobody said so")
		}
		for name, text := range map[string]string{events: "low 0\noom_kill 1\n", "pids.events": "max 3\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !g.Killed() || !g.Refused() {
			t.Error("not killed or not refused although the kernel says so")
		}
	}
}

// TestLeftoversAreKilled: what is in the groups of a home dies when the home is opened again.
func TestLeftoversAreKilled(t *testing.T) {
	place, err := Find()
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	name := "test" + strings.ToLower(filepath.Base(t.TempDir()))
	home, err := place.Open(name)
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	g, err := home.Make()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.unique() {
		if err := write(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid))); err != nil {
			t.Fatal(err)
		}
	}
	if got := g.Processes(); !slices.Equal(got, []int{cmd.Process.Pid}) {
		t.Errorf("the group holds %v", got)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	again, err := place.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("it lives on")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range home.unique() {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}
