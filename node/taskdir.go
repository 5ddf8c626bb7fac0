package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gridnode/internal/grid"
)

// A task has a directory, which holds the files stdout and stderr and the
// directory scratch:
//
//	HOME/tasks/JOB.EPOCH           of a job of this site
//	HOME/foreign/SITE/JOB.EPOCH    of a job of another site: who asks for its output
//	                               is shown nothing but what lies under its own ID
//	HOME/output/JOB                output of a job of this site that ran elsewhere,
//	                               fetched whole; a file that is missing was empty
const (
	tasksDir   = "tasks"
	foreignDir = "foreign"
	outputDir  = "output"
	scratchDir = "scratch"
	goneFile   = "gone" // in an output directory: why there is no output
)

// Stream is one of the two outputs of a task.
type Stream uint8

// The outputs of a task.
const (
	Stdout Stream = iota + 1
	Stderr
)

// String returns the name users and files have for it.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// taskDir returns the directory of a task of a job whose home is given.
func (h *Host) taskDir(home grid.SiteID, id grid.TaskID) string {
	if home == h.id {
		return filepath.Join(h.cfg.Home, tasksDir, taskName(id))
	}
	return filepath.Join(h.cfg.Home, foreignDir, string(home), taskName(id))
}

// taskName names a task to the shim and in the file system.
func taskName(id grid.TaskID) string {
	return id.Job.String() + "." + strconv.FormatUint(uint64(id.Epoch), 10)
}

// outputDirOf returns where the fetched output of a job is kept.
func (h *Host) outputDirOf(id grid.JobID) string {
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

// prunePeriod is how often old directories are looked for.
const prunePeriod = 10 * time.Minute

// prune removes the directories of tasks that are over and whose time has passed,
// until the host stops.
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
	kept := h.loop.site.cfg.Limits.Retention.Duration()
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

// pruneIn removes the directories in dir that have not changed since before and
// belong to no live job.
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
	_ = h.Do(h.ctx, func(s *Site) {
		v, known := s.Job(id)
		alive = known && !v.State.Terminal()
	})
	return alive
}
