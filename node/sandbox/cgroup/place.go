package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// controllers are those that hold limits, in the order in which they are tried.
var controllers = []string{"memory", "pids", "cpu"}

// Place says below which directories this process may make groups.
type Place struct {
	Version int               // 1 or 2
	dirs    map[string]string // by controller; those of version 2 are one directory
}

// Has reports whether a limit of this kind is held: memory, pids or cpu.
func (p *Place) Has(controller string) bool { return p != nil && p.dirs[controller] != "" }

// String names the version and the controllers.
func (p *Place) String() string {
	if p == nil {
		return "none"
	}
	var names []string
	for _, c := range controllers {
		if p.Has(c) {
			names = append(names, c)
		}
	}
	return fmt.Sprintf("version %d: %s", p.Version, strings.Join(names, ", "))
}

// Find returns where this process may make groups. Nothing is changed.
func Find() (*Place, error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer mounts.Close()
	own, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	one, two, err := find(mounts, own)
	if err != nil {
		return nil, err
	}
	if p, err := usable(2, two); err == nil {
		return p, nil
	}
	p, err := usable(1, one)
	if err != nil {
		return nil, fmt.Errorf("no control groups: %w", err)
	}
	return p, nil
}

// find returns the directories of this process's own groups, of version 1 by controller,
// of version 2 under the name "".
func find(mounts, own io.Reader) (one, two map[string]string, err error) {
	paths := make(map[string]string) // of this process, by controller
	for s := bufio.NewScanner(own); s.Scan(); {
		// hierarchy:controllers:path
		_, rest, _ := strings.Cut(s.Text(), ":")
		names, path, ok := strings.Cut(rest, ":")
		if !ok || strings.Contains(path, "..") {
			continue // or outside the namespace
		}
		for name := range strings.SplitSeq(names, ",") {
			paths[name] = path
		}
	}
	one, two = make(map[string]string), make(map[string]string)
	for s := bufio.NewScanner(mounts); s.Scan(); {
		// id parent major:minor root mountpoint options … - type source options
		before, after, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		join := func(path string) string {
			return filepath.Join(left[4], strings.TrimPrefix(path, strings.TrimSuffix(left[3], "/")))
		}
		switch right[0] {
		case "cgroup2":
			if path, ok := paths[""]; ok {
				two[""] = join(path)
			}
		case "cgroup":
			for name := range strings.SplitSeq(right[2], ",") {
				if path, ok := paths[name]; ok && slices.Contains(controllers, name) {
					one[name] = join(path)
				}
			}
		}
	}
	if len(one)+len(two) == 0 {
		return nil, nil, errors.New("no control groups are mounted")
	}
	return one, two, nil
}

// usable returns the place made of those directories that may be written to.
func usable(version int, found map[string]string) (*Place, error) {
	p := &Place{Version: version, dirs: make(map[string]string)}
	reason := fmt.Errorf("version %d is not mounted, or has no controllers of memory and processes", version)
	offer := func(name, dir string) {
		if err := unix.Access(dir, unix.W_OK); err != nil {
			reason = fmt.Errorf("%s is not this account's to write: have systemd delegate it (Delegate=yes) or run as root", dir)
			return
		}
		p.dirs[name] = dir
	}
	if version == 1 {
		for name, dir := range found {
			offer(name, dir)
		}
	} else if dir := found[""]; dir != "" {
		dir = outer(dir)
		list, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		for _, name := range strings.Fields(string(list)) {
			if slices.Contains(controllers, name) {
				offer(name, dir)
			}
		}
	}
	if p.dirs["memory"] == "" && p.dirs["pids"] == "" {
		return nil, reason
	}
	return p, nil
}

// aside ends the name of the group into which version 2 has this process move: one with
// groups below it holds no processes itself.
const aside = ".daemon"

// prefix begins the name of every group that is made beside this process.
const prefix = "gridnode-"

// outer returns the group that was given to us, if dir is one that we made in it.
func outer(dir string) string {
	if name := filepath.Base(dir); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, aside) {
		return filepath.Dir(dir)
	}
	return dir
}
