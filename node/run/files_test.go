package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridnode/grid"
)

// TestPruneLeavesWhereTasksWriteNext: the directory of a home whose tasks have their scratch
// directories elsewhere is empty until they write.
func TestPruneLeavesWhereTasksWriteNext(t *testing.T) {
	f := Files{Home: t.TempDir(), Site: "here", Shared: t.TempDir()}
	if err := f.Make(); err != nil {
		t.Fatal(err)
	}
	account := &Account{}
	account.User, account.Group = uint32(os.Getuid()), uint32(os.Getgid())
	x := Process{Task: grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}}
	base := f.Process("there", x)
	dir := filepath.Dir(base)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * ForeignKept)
	if err := os.Chtimes(dir, long, long); err != nil { // of a job of long ago
		t.Fatal(err)
	}
	job := &grid.Job{ID: x.Task.Job, Home: "there", Tasks: 1, Resources: grid.Resources{Processors: 1}, Command: &grid.Command{Args: []string{"true"}}}
	r := Recipe{files: f}
	if err := r.makeScratch(&grid.Task{ID: x.Task, Job: job}, 0, f.outside("there", x)+ScratchSuffix, base, account); err != nil {
		t.Fatal(err)
	}
	prune := func(now time.Time) {
		t.Helper()
		if err := f.Prune(now, time.Hour, func(grid.JobID) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	if prune(time.Now()); !there(dir) {
		t.Error("where the task is about to write is gone")
	}
	if prune(time.Now().Add(2 * ForeignKept)); there(dir) {
		t.Error("an empty directory is left of a home that nobody has heard of for days")
	}
}
