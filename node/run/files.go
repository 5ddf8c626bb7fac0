package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/shim"
)

// What tasks write, by file. There is no directory per task: making and removing
// one costs more than running a short job.
//
//	HOME/tasks/JOB.EPOCH.stdout           of a job of this site, and .stderr
//	HOME/tasks/JOB.SQUAD-NUMBER.stdout    of one of the tasks of a component of a gang
//	HOME/foreign/SITE/JOB.EPOCH.stdout    of a job of another site: who asks for output
//	                                      is shown nothing but what lies under its own ID
//	HOME/pilots/KEY/JOB.EPOCH.stdout      of a job of a site that has the processors on lease
//	HOME/pilots/KEY/inputs                copies of data sets that it reads; HOME/tasks/JOB.EPOCH.inputs
//	                                      for a job of this site
//	SHARED/JOB.EPOCH.scratch              of a job of this site that runs as another account,
//	                                      and .inputs: the home is closed to it
//	SHARED/foreign/SITE/JOB.EPOCH.scratch of a job of another site that does
//	…/JOB.EPOCH.results                   beside that: what it has left, for its home; and .staged,
//	                                      which is to be its scratch directory
//	HOME/output/JOB.files                 what it has left, as a tree in the store of content,
//	                                      and .brought once that is where its owner wants it
//	HOME/output/JOB.stdout                of a job of this site that ran elsewhere, fetched
//	                                      whole; .stderr is missing if it was empty
//
// The file stdout is made before stderr is looked for and removed before it: as
// long as it is there, the output is. A task of this site that writes nothing may have
// no files: its result says that it was silent. JOB.EPOCH.scratch is the directory of a task
// that runs, JOB.gone says why an output will never come.
const (
	tasksDir      = "tasks"
	foreignDir    = "foreign"
	outputDir     = "output"
	pilotsDir     = "pilots"
	ScratchSuffix = shim.ScratchSuffix
	goneSuffix    = ".gone"
	InputsSuffix  = ".inputs" // directory of copies of what a job reads
	PartSuffix    = ".part"   // of a file that is being fetched
)

// Stream is one of the two outputs of a task.
type Stream uint8

// The outputs of a task.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Suffix is how names of its files end.
func (s Stream) Suffix() string { return "." + s.String() }

// String returns the name users have for it.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Files is where the tasks of one node keep what they read and write.
type Files struct {
	Home   string      // directory of the node
	Site   grid.SiteID // of the node
	Work   string      // in place of HOME above for all but output; empty: Home
	Shared string      // directory of what jobs have that run as other accounts; empty: there are none
	Log    int64       // bytes kept of each output of a task; 0: kept.Default
}

// work returns the directory under which tasks have their files.
func (f Files) work() string { return cmp.Or(f.Work, f.Home) }

// Make makes the directories.
func (f Files) Make() error {
	for _, dir := range []string{tasksDir, foreignDir, pilotsDir} {
		if err := os.MkdirAll(filepath.Join(f.work(), dir), 0o700); err != nil {
			return fmt.Errorf("directory of jobs: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(f.Home, outputDir), 0o700); err != nil {
		return fmt.Errorf("home directory: %w", err)
	}
	return nil
}

// Task returns the path of a task's files, without their ends, of a job whose home is
// given.
func (f Files) Task(home grid.SiteID, id grid.TaskID) string {
	if home == f.Site {
		return filepath.Join(f.work(), tasksDir, TaskName(id))
	}
	return filepath.Join(f.work(), foreignDir, string(home), TaskName(id))
}

// Process returns the path of a process's files, without their ends.
func (f Files) Process(home grid.SiteID, x Process) string {
	return filepath.Join(filepath.Dir(f.Task(home, x.Task)), x.Name())
}

// Fetched returns the path of a job's fetched output, without its end.
func (f Files) Fetched(id grid.JobID) string { return filepath.Join(f.Home, outputDir, id.String()) }

// HasFetched reports whether the output of a job is here, or known to be gone.
func (f Files) HasFetched(job grid.JobID) bool {
	base := f.Fetched(job)
	return there(base+Stdout.Suffix()) || there(base+goneSuffix)
}

// OpenFetched opens an output that was fetched from the executing site, from an
// offset on. It is nil if nothing was written.
func (f Files) OpenFetched(job grid.JobID, stream Stream, offset int64) (io.ReadCloser, error) {
	base := f.Fetched(job)
	if why, err := os.ReadFile(base + goneSuffix); err == nil {
		return nil, fmt.Errorf("%w: %s", ErrOutputGone, why)
	}
	file, err := os.Open(base + stream.Suffix())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// GiveUp notes why the output of a job will never come.
func (f Files) GiveUp(job grid.JobID, why string) error {
	return atomicfile.Write(f.Fetched(job)+goneSuffix, []byte(why), 0o600)
}

// lostSuffix ends the names of the notes of executions that were lost at other sites.
const lostSuffix = ".lost"

// NoteLost notes that an execution was lost at a site, which may have files of it.
func (f Files) NoteLost(task grid.TaskID, at grid.SiteID) error {
	return os.WriteFile(filepath.Join(f.Home, outputDir, TaskName(task)+lostSuffix), []byte(at), 0o600)
}

// Lost returns what was noted so.
func (f Files) Lost() map[grid.TaskID]grid.SiteID {
	lost := make(map[grid.TaskID]grid.SiteID)
	paths, _ := filepath.Glob(filepath.Join(f.Home, outputDir, "*"+lostSuffix)) // a bad pattern: none
	for _, path := range paths {
		task, err := taskOf(strings.TrimSuffix(filepath.Base(path), lostSuffix))
		if at, failed := os.ReadFile(path); err == nil && failed == nil {
			lost[task] = grid.SiteID(at)
		}
	}
	return lost
}

// ForgetLost removes the note: the site has no files of that execution any more.
func (f Files) ForgetLost(task grid.TaskID) {
	_ = os.Remove(filepath.Join(f.Home, outputDir, TaskName(task)+lostSuffix)) // pruned later if not now
}

// Pilot returns the home of the shim of a pilot, which holds the files of its tasks, too.
func (f Files) Pilot(key uint64) string {
	return filepath.Join(f.work(), pilotsDir, strconv.FormatUint(key, 10))
}

// TaskName names a task to the shim and in the file system.
func TaskName(id grid.TaskID) string {
	return id.Job.String() + "." + strconv.FormatUint(uint64(id.Epoch), 10)
}

// taskOf is the inverse of TaskName.
func taskOf(name string) (grid.TaskID, error) {
	job, epoch, _ := strings.Cut(name, ".")
	id, err := grid.ParseJobID(job)
	if err != nil {
		return grid.TaskID{}, err
	}
	n, err := strconv.ParseUint(epoch, 10, 32)
	if err != nil {
		return grid.TaskID{}, fmt.Errorf("epoch %q of a task: %w", epoch, err)
	}
	return grid.TaskID{Job: id, Epoch: uint32(n)}, nil
}

// ForeignKept is how long the output of another site's job is kept for it to fetch.
const ForeignKept = 24 * time.Hour

// Prune removes what is older than kept, or than ForeignKept of other sites' jobs, and
// belongs to no job that is alive. It returns the first error and goes on.
func (f Files) Prune(now time.Time, kept time.Duration, alive func(grid.JobID) bool) error {
	errs := []error{
		pruneIn(filepath.Join(f.work(), tasksDir), now.Add(-kept), alive),
		pruneIn(filepath.Join(f.Home, outputDir), now.Add(-kept), alive),
	}
	if f.Shared != "" {
		errs = append(errs, pruneIn(f.Shared, now.Add(-kept), alive))
	}
	for _, above := range []string{f.work(), f.Shared} {
		if above == "" {
			continue
		}
		foreign := filepath.Join(above, foreignDir)
		homes, _ := os.ReadDir(foreign) // none: nothing to prune
		for _, home := range homes {
			dir, before := filepath.Join(foreign, home.Name()), now.Add(-ForeignKept)
			info, err := home.Info()
			errs = append(errs, pruneIn(dir, before, alive))
			if err == nil && info.ModTime().Before(before) { // else a task is about to write there, perhaps
				_ = os.Remove(dir) // succeeds when it is empty
			}
		}
	}
	return cmp.Or(errs...)
}

// pruneIn removes the files in dir that have not changed since before and belong to
// no live job.
func pruneIn(dir string, before time.Time, alive func(grid.JobID) bool) (failed error) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.ModTime().After(before) {
			continue
		}
		if entry.Name() == ModulesDir || entry.Name() == foreignDir || entry.Name() == shim.SpareDir {
			continue // they are looked after elsewhere
		}
		job, _, _ := strings.Cut(entry.Name(), ".")
		if id, err := grid.ParseJobID(job); err == nil && alive(id) {
			continue
		}
		failed = cmp.Or(failed, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return failed
}
