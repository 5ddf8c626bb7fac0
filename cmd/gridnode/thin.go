//go:build !client

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// thinProgram returns the path of the client that lies beside this program, or where packages
// put it, if it is of the same build; else it is empty. On compute nodes it starts in a part of the
// time.
func thinProgram(ctx context.Context) string {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return ""
	}
	dir, mine := filepath.Dir(self), thisBuild()
	for _, path := range []string{filepath.Join(dir, "gridnode"), filepath.Join(dir, "..", "..", "bin", "gridnode")} {
		if path != self && (mine.Revision != "" || madeTogether(path, self)) && sameBuild(ctx, path, mine) {
			return path
		}
	}
	return ""
}

// heldOpen returns a path by which this process, and nobody else, starts the program that lies at another one, which may
// be replaced meanwhile; empty: there is none. The daemon starts its shim so: by the client, which takes a part of the
// memory for as long as the site is up.
func heldOpen(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, heldFrom)
	if err != nil {
		return ""
	}
	return "/proc/self/fd/" + strconv.Itoa(fd)
}

// heldFrom is above the descriptors that a process is given at its start.
const heldFrom = 64

// madeTogether reports whether two files were written at about the same time: builds that do not
// say what they are of have nothing else in common.
func madeTogether(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && one.ModTime().Sub(other.ModTime()).Abs() < 10*time.Minute
}

// sameBuild reports whether a program says that it is of a build.
func sameBuild(ctx context.Context, path string, mine *build) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "version", "-o", "json").Output()
	other := new(build)
	return err == nil && json.Unmarshal(text, other) == nil && *other == *mine
}
