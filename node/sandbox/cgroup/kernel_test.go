package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGroupsOfTheKernel: with a hierarchy of version 2 as it is mounted here. What has no
// controllers for limits still holds processes together, and ends them.
func TestGroupsOfTheKernel(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			root = fields[1]
		}
	}
	if root == "" || os.Geteuid() != 0 {
		t.Skip("left out: no control groups of version 2 that are ours to write")
	}
	top := filepath.Join(root, "gridnode-test")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Skipf("left out: %v", err)
	}
	defer os.Remove(top)
	p := &Place{Version: 2, dirs: map[string]string{"": top}}
	h := p.home("home")
	if err := os.Mkdir(h.unique()[0], 0o755); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	g, err := h.Make()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: g.FD()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if list := g.Processes(); len(list) == 0 || list[0] != cmd.Process.Pid {
		t.Errorf("in the group are %d, want %d among them", list, cmd.Process.Pid)
	}
	if err := g.Remove(); err == nil {
		t.Error("a group with processes was removed")
	}
	if err := g.Close(); err != nil { // kills them, whatever their session
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %v", err)
	}
	if left, _ := os.ReadDir(h.unique()[0]); len(dirs(left)) > 0 {
		t.Errorf("groups are left: %v", dirs(left))
	}
}

func dirs(list []os.DirEntry) (names []string) {
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
