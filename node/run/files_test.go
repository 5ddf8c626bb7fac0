package run

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
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

// TestSweep: of what processes have had goes, after a restart, all that no process has any more, and
// what pilots had that are gone, inside of the home and outside.
func TestSweep(t *testing.T) {
	f := Files{Home: t.TempDir(), Site: "here", Shared: t.TempDir()}
	id := func(n uint64) Process { return Process{Task: grid.TaskID{Job: grid.JobID{Hi: 1, Lo: n}, Epoch: 1}} }
	scratch := func(home grid.SiteID, n uint64) []string {
		return []string{f.Process(home, id(n)) + ScratchSuffix, f.outside(home, id(n)) + ScratchSuffix}
	}
	var stay, gone []string
	stay = append(stay, append(scratch("here", 1), scratch("there", 1)...)...) // runs
	gone = append(gone, append(scratch("here", 2), scratch("there", 2)...)...)
	stay = append(stay, scratch("there", 3)[1], filepath.Join(f.Pilot(7), id(3).Name()+ScratchSuffix)) // under a pilot
	gone = append(gone, scratch("there", 4)[1], f.Pilot(8))
	stay = append(stay, f.Process("here", id(5))+stagedSuffix, f.Process("here", id(5))+ResultsSuffix, filepath.Join(f.Home, tasksDir, "0"+emptySuffix))
	for _, path := range append(slices.Clone(stay), gone...) {
		if err := os.MkdirAll(filepath.Join(path, "something"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(f.Pilot(7), id(3).Name()+Stdout.Suffix()), filepath.Join(f.Pilot(8), id(4).Name()+homeSuffix)} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(stay, gone []string) {
		t.Helper()
		for _, path := range stay {
			if !there(path) {
				t.Errorf("%s is gone", path)
			}
		}
		for _, path := range gone {
			if there(path) {
				t.Errorf("%s is there", path)
			}
		}
	}
	if err := f.sweep(func(x Process) bool { return x == id(1) }, map[uint64]bool{7: true}); err != nil {
		t.Fatal(err)
	}
	check(stay, gone)
	if err := f.clearLeased(7); err != nil { // its lease is over
		t.Fatal(err)
	}
	check(scratch("here", 1), append(gone, scratch("there", 3)[1], f.Pilot(7)))
}

// TestStagedInPlaceOfWhatIsLeft: a process begins with the files that it brings along, and with nothing
// of an execution that was lost.
func TestStagedInPlaceOfWhatIsLeft(t *testing.T) {
	r := Recipe{files: Files{Home: t.TempDir(), Site: "here"}}
	if err := r.files.Make(); err != nil {
		t.Fatal(err)
	}
	task := &grid.Task{ID: grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}, Job: &grid.Job{Home: "here"}}
	staged, _, err := r.files.Staged(task, 0, r.accounts)
	if err != nil {
		t.Fatal(err)
	}
	scratch := r.files.Process("here", Process{Task: task.ID}) + ScratchSuffix
	for _, path := range []string{filepath.Join(staged, "input"), filepath.Join(scratch, "of before")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.adopt(task, 0, scratch); err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadDir(scratch); err != nil || len(there) != 1 || there[0].Name() != "input" {
		t.Errorf("it begins with %v (%v), want what was staged", there, err)
	}
	if err := r.adopt(task, 0, scratch); err == nil {
		t.Error("it begins without the files that it brings along")
	}
}

// TestResultsAreOnDisk: results that cannot be made durable are told with an error, as is where those of an
// execution that was lost are not to be had.
func TestResultsAreOnDisk(t *testing.T) {
	dir := t.TempDir()
	scratch := filepath.Join(dir, "task"+ScratchSuffix)
	if err := os.Symlink(filepath.Join(dir, "nowhere"), scratch); err != nil { // what no flush can open
		t.Fatal(err)
	}
	if left, err := Settle(scratch, true); !left || err == nil {
		t.Errorf("results that are not on disk: %t, %v", left, err)
	}
}

// TestScratchOfAccount: a process that runs as another account has its directory for itself, which lies in
// one of the daemon's own.
func TestScratchOfAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives directories away")
	}
	f := Files{Home: t.TempDir(), Site: "here", Shared: filepath.Join(t.TempDir(), "shared")}
	account := new(Account)
	account.User, account.Group = 12345, 23456
	dir := f.outside("here", Process{Task: grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 1}}) + ScratchSuffix
	if err := f.makeScratch("here", dir, account); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != account.User || s.Gid != account.Group || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is of %d:%d, mode %v", s.Uid, s.Gid, info.Mode())
	}
	if err := os.Chown(f.Shared, 12345, 23456); err != nil {
		t.Fatal(err)
	}
	if err := f.makeScratch("here", dir, account); err == nil {
		t.Error("a directory is made in one that another user has put there")
	}
}

// TestForget: of a job's executions those before one go with it, and neither later ones nor what is no execution's.
func TestForget(t *testing.T) {
	f := Files{Home: t.TempDir(), Site: "here"}
	id := func(epoch uint32) grid.TaskID { return grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: epoch} }
	for _, home := range []grid.SiteID{"here", "there"} {
		output := func(epoch uint32) string { return f.Task(home, id(epoch)) + Stdout.Suffix() }
		notes := filepath.Join(filepath.Dir(output(1)), id(1).Job.String()+".notes")
		if err := os.MkdirAll(filepath.Dir(notes), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{output(1), output(2), output(3), notes} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Forget(home, id(2)); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]bool{output(1): false, output(2): false, output(3): true, notes: true} {
			if there(path) != want {
				t.Errorf("of a job of %s: %s is there: %v", home, filepath.Base(path), !want)
			}
		}
	}
}
