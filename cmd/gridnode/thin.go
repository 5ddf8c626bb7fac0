//go:build !client

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"
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
