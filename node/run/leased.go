package run

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
)

// homeSuffix ends the name of a file beside a pilot's task. It says for which site is kept what
// the task leaves: the pilot may be gone when that site asks for it.
const homeSuffix = ".home"

// NoteLeased notes before a task of a pilot begins that its home wants what it leaves.
func (f Files) NoteLeased(key uint64, x Process, job *grid.Job) error {
	if !job.Keeps(f.Site) {
		return nil
	}
	return os.WriteFile(filepath.Join(f.Pilot(key), x.Name())+homeSuffix, []byte(job.Home), 0o600)
}

// SettleLeased does away with the scratch directory of a task of a pilot that has ended, as
// [Settle] does with others. What its home wants is kept where that finds it (Left).
func (f Files) SettleLeased(key uint64, x Process) error {
	base := filepath.Join(f.Pilot(key), x.Name())
	text, err := os.ReadFile(base + homeSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody wants it: it goes when the task is forgotten
	}
	if err != nil {
		return err
	}
	home := grid.SiteID(text)
	if f.Shared != "" {
		if scratch := f.outside(home, x) + ScratchSuffix; there(scratch) {
			_, err := Settle(scratch, true)
			return err
		}
	}
	if os.Remove(base+ScratchSuffix) == nil { // it is empty
		return nil
	}
	results := f.Process(home, x) + ResultsSuffix
	err = errors.Join(os.RemoveAll(results), os.MkdirAll(filepath.Dir(results), 0o700))
	if err == nil {
		err = os.Rename(base+ScratchSuffix, results)
	}
	if err == nil {
		err = atomicfile.SyncTree(results)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // done before
	}
	return err
}

// ForgetLeased removes what is left of a process of a pilot, but for what its home wants.
func (f Files) ForgetLeased(key uint64, x Process) {
	base := filepath.Join(f.Pilot(key), x.Name())
	for _, end := range []string{Stdout.Suffix(), Stderr.Suffix(), homeSuffix} {
		_ = os.Remove(base + end) // it goes with the pilot at the latest
	}
	_ = os.RemoveAll(base + ScratchSuffix)
}

// leasedNames returns the names of the processes that a pilot has begun.
func (f Files) leasedNames(key uint64) (names []string) {
	entries, _ := os.ReadDir(f.Pilot(key)) // none: it has begun nothing
	for _, entry := range entries {
		name, noted := strings.CutSuffix(entry.Name(), homeSuffix)
		name, printed := strings.CutSuffix(name, Stdout.Suffix())
		if noted || printed {
			names = append(names, name)
		}
	}
	return names
}

// clearLeased removes what a pilot that is gone has left, and its tasks with it.
func (f Files) clearLeased(key uint64) (failed error) {
	if f.Shared != "" {
		for _, name := range f.leasedNames(key) {
			dirs, _ := filepath.Glob(filepath.Join(f.Shared, foreignDir, "*", name+ScratchSuffix)) // a bad pattern: none
			for _, dir := range dirs {
				failed = cmp.Or(failed, os.RemoveAll(dir))
			}
		}
	}
	return cmp.Or(failed, os.RemoveAll(f.Pilot(key)))
}

// sweep removes, before anything is started, the scratch directories of processes that are not alive
// and what pilots have left that are not: their ends were never told, as what watched over them or
// their machine has died.
func (f Files) sweep(alive func(Process) bool, pilots map[uint64]bool) (failed error) {
	leased := make(map[string]bool)
	dirs, _ := os.ReadDir(filepath.Join(f.work(), pilotsDir)) // none: there were no pilots
	for _, dir := range dirs {
		switch key, err := strconv.ParseUint(dir.Name(), 10, 64); {
		case err != nil:
		case pilots[key]:
			for _, name := range f.leasedNames(key) {
				leased[name] = true
			}
		default:
			failed = cmp.Or(failed, f.clearLeased(key))
		}
	}
	patterns := []string{filepath.Join(f.work(), tasksDir), filepath.Join(f.work(), foreignDir, "*")}
	if f.Shared != "" {
		patterns = append(patterns, f.Shared, filepath.Join(f.Shared, foreignDir, "*"))
	}
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(filepath.Join(pattern, "*"+ScratchSuffix)) // a bad pattern: none
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ScratchSuffix)
			if x, err := processOf(name); err == nil && !alive(x) && !leased[name] {
				failed = cmp.Or(failed, os.RemoveAll(path))
			}
		}
	}
	return failed
}

// Left is what a process of a job has left.
type Left struct {
	Number int // of the process in its squad
	Dir    string
}

// Left returns where what a task of a job has left is kept for the job's home: of each of the
// processes of a squad that have left something, by number. There is nothing if it is empty.
func (f Files) Left(home grid.SiteID, task grid.TaskID) (left []Left) {
	_, _, squad := grid.SquadOf(task)
	for _, base := range f.bases(home, task) {
		if !squad {
			if dir := base + ResultsSuffix; there(dir) {
				left = append(left, Left{Dir: dir})
			}
			continue
		}
		base = strings.TrimSuffix(base, "-0")
		dirs, _ := filepath.Glob(base + "-*" + ResultsSuffix) // a bad pattern: none
		for _, dir := range dirs {
			number := strings.TrimSuffix(strings.TrimPrefix(dir, base+"-"), ResultsSuffix)
			if n, err := strconv.ParseUint(number, 10, 31); err == nil {
				left = append(left, Left{int(n), dir})
			}
		}
	}
	slices.SortFunc(left, func(x, y Left) int { return x.Number - y.Number })
	return left
}

// Works reports whether a task has a working directory: then it may leave something yet, also if no
// daemon knows of it any more.
func (f Files) Works(home grid.SiteID, task grid.TaskID) bool {
	return slices.ContainsFunc(f.bases(home, task), func(base string) bool { return there(base + ScratchSuffix) })
}

// bases returns how the paths of a task's files may begin.
func (f Files) bases(home grid.SiteID, task grid.TaskID) []string {
	bases := []string{f.Task(home, task)}
	if f.Shared != "" {
		bases = append(bases, f.outside(home, Process{Task: task}))
	}
	return bases
}

// RemoveLeft removes it, and what executions of the job before that one have left.
func (f Files) RemoveLeft(home grid.SiteID, task grid.TaskID) error {
	return errors.Join(f.removeLeft(home, task), f.removeBefore(home, task, ResultsSuffix))
}

func (f Files) removeLeft(home grid.SiteID, task grid.TaskID) (failed error) {
	for _, left := range f.Left(home, task) {
		failed = errors.Join(failed, os.RemoveAll(left.Dir))
	}
	return failed
}

// Forget removes the output of a task that is over and what it has left, and all files of executions of
// its job before that one.
func (f Files) Forget(home grid.SiteID, task grid.TaskID) (failed error) {
	for stream := Stdout; stream <= Stderr; stream++ {
		if err := os.Remove(f.Task(home, task) + stream.Suffix()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, f.removeBefore(home, task, ""), f.removeLeft(home, task))
}

// removeBefore removes files whose names end with suffix of the executions of a job before one. They were
// lost: the job was placed anew once they were certainly dead.
func (f Files) removeBefore(home grid.SiteID, task grid.TaskID, suffix string) (failed error) {
	prefix := task.Job.String() + "."
	for _, base := range f.bases(home, task) {
		paths, _ := filepath.Glob(filepath.Join(filepath.Dir(base), prefix+"*"+suffix)) // a bad pattern: none
		for _, path := range paths {
			epoch, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), ".")
			epoch, _, _ = strings.Cut(epoch, "-") // the number of a process
			if n, err := strconv.ParseUint(epoch, 10, 32); err == nil && uint32(n)&grid.EpochMax < task.Epoch&grid.EpochMax {
				failed = errors.Join(failed, os.RemoveAll(path))
			}
		}
	}
	return failed
}
