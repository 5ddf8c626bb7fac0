package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node/site"
)

// What tasks write, by file. There is no directory per task: making and removing
// one costs more than running a short job.
//
//	HOME/tasks/JOB.EPOCH.stdout           of a job of this site, and .stderr
//	HOME/foreign/SITE/JOB.EPOCH.stdout    of a job of another site: who asks for output
//	                                      is shown nothing but what lies under its own ID
//	HOME/pilots/KEY/JOB.EPOCH.stdout      of a job of a site that has the processors on lease
//	HOME/pilots/KEY/inputs                copies of data sets that it reads; HOME/tasks/JOB.EPOCH.inputs
//	                                      for a job of this site
//	HOME/output/JOB.stdout                of a job of this site that ran elsewhere, fetched
//	                                      whole; .stderr is missing if it was empty
//
// The file stdout is made before stderr is looked for and removed before it: as
// long as it is there, the output is. JOB.EPOCH.scratch is the directory of a task
// that runs, JOB.gone says why an output will never come.
const (
	tasksDir   = "tasks"
	foreignDir = "foreign"
	outputDir  = "output"
	pilotsDir  = "pilots"
	scratchEnd = ".scratch"
	goneEnd    = ".gone"
	inputsEnd  = ".inputs" // directory of copies of what a job reads
	partEnd    = ".part"   // of a file that is being fetched
)

// Stream is one of the two outputs of a task.
type Stream uint8

// The outputs of a task.
const (
	Stdout Stream = iota + 1
	Stderr
)

// end is how names of its files end.
func (s Stream) end() string { return "." + s.String() }

// String returns the name users have for it.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// taskBase returns the path of a task's files, without their ends, of a job whose
// home is given.
func (h *Host) taskBase(home grid.SiteID, id grid.TaskID) string {
	if home == h.id {
		return filepath.Join(h.cfg.Home, tasksDir, taskName(id))
	}
	return filepath.Join(h.cfg.Home, foreignDir, string(home), taskName(id))
}

// taskName names a task to the shim and in the file system.
func taskName(id grid.TaskID) string {
	return id.Job.String() + "." + strconv.FormatUint(uint64(id.Epoch), 10)
}

// fetchedBase returns the path of a job's fetched output, without its end.
func (h *Host) fetchedBase(id grid.JobID) string {
	return filepath.Join(h.cfg.Home, outputDir, id.String())
}

// taskOf is the inverse of taskName.
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

// foreignKept is how long the output of another site's job is kept for it to fetch.
const foreignKept = 24 * time.Hour

// prunePeriod is how often old files are looked for.
const prunePeriod = 10 * time.Minute

// prune removes what tasks wrote that are over and whose time has passed, until the
// host stops.
func (h *Host) prune() {
	tick := time.NewTicker(prunePeriod)
	defer tick.Stop()
	for {
		h.pruneOnce(time.Now())
		select {
		case <-tick.C:
		case <-h.stopping:
			return
		}
	}
}

func (h *Host) pruneOnce(now time.Time) {
	kept := h.loop.site.Limits().Retention.Duration()
	h.pruneIn(filepath.Join(h.cfg.Home, tasksDir), now.Add(-kept))
	h.pruneIn(filepath.Join(h.cfg.Home, outputDir), now.Add(-kept))
	foreign := filepath.Join(h.cfg.Home, foreignDir)
	homes, _ := os.ReadDir(foreign) // none: nothing to prune
	for _, home := range homes {
		dir := filepath.Join(foreign, home.Name())
		h.pruneIn(dir, now.Add(-foreignKept))
		_ = os.Remove(dir) // succeeds when it is empty
	}
}

// pruneIn removes the files in dir that have not changed since before and belong to
// no live job.
func (h *Host) pruneIn(dir string, before time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.ModTime().After(before) {
			continue
		}
		job, _, _ := strings.Cut(entry.Name(), ".")
		if id, err := grid.ParseJobID(job); err == nil && h.alive(id) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			h.log.Warn("cannot remove an old output", "error", err)
		}
	}
}

// alive reports whether a job is known here and not over. When in doubt it is.
func (h *Host) alive(id grid.JobID) bool {
	alive := true
	_ = h.Do(h.ctx, func(s *site.Site) {
		v, known := s.Job(id)
		alive = known && !v.State.Terminal()
	})
	return alive
}
