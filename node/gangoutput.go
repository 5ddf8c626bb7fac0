package node

import (
	"bytes"
	"io"
	"os"
	"slices"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/kept"
	"gridnode/node/pilot"
	"gridnode/node/run"
)

// gangOutput makes one output of a job out of those of its tasks, as they grow: line by
// line, so that those of different tasks do not run into each other. The tasks' own
// files are in the same directory, named after their squad and their number in it.
type gangOutput struct {
	h       *Host
	streams [2]gangStream
}

// gangStream is one of the two.
type gangStream struct {
	path    string
	file    *os.File // nil before the first byte was written, and after the end
	ranks   []string // paths
	offsets []int64
	written int64
	bound   int64 // of package kept
	failed  bool

	open func(name string, how int, mode os.FileMode) (*os.File, error) // os.OpenFile; tests have another
}

// newGangOutput begins anew: after a restart of the daemon the tasks' own outputs are
// there from the beginning.
func newGangOutput(h *Host, g *grid.Gang) *gangOutput {
	o := &gangOutput{h: h}
	for i := range o.streams {
		s := &o.streams[i]
		s.path, s.bound = h.files.Task(h.id, g.Task)+run.Stream(i+1).Suffix(), kept.Bound(h.files.Log)
		s.offsets, s.open = make([]int64, g.Tasks()), os.OpenFile
		for part := range g.Parts {
			for n := range g.TasksOf(part) {
				x := run.Process{Task: grid.SquadTask(g.Task, part), Number: n}
				s.ranks = append(s.ranks, h.files.Process(h.id, x)+run.Stream(i+1).Suffix())
			}
		}
	}
	return o
}

// pollsOf returns how many turns of looking at outputs so many tasks are looked at once in.
func pollsOf(tasks int) time.Duration { return time.Duration(1 + tasks/32) }

// merge appends what the tasks have written since the last time; at the end also what
// is no whole line, and all of it is on disk then. It reports whether all was done that can be: no
// descriptor may be left for it.
func (o *gangOutput) merge(last bool) (done bool) {
	done = true
	for i := range o.streams {
		s := &o.streams[i]
		if s.failed {
			continue
		}
		switch err := s.merge(last); {
		case atomicfile.NoDescriptors(err):
			done = false
		case err != nil:
			s.failed = true
			o.h.log.Error("cannot write the output of a job", "error", err)
		}
	}
	if last && done {
		o.sync()
	}
	return done
}

// sync makes durable what was written.
func (o *gangOutput) sync() {
	var paths []string
	for i := range o.streams {
		if s := &o.streams[i]; s.written > 0 {
			paths = append(paths, s.path)
		}
	}
	if len(paths) == 0 {
		return
	}
	if err := o.h.pilots.flush(paths...); err != nil {
		o.h.log.Error("the output of a job may not be on disk", "error", err)
	}
}

// close lets go of the files.
func (o *gangOutput) close() {
	for i := range o.streams {
		if file := o.streams[i].file; file != nil {
			file.Close()
		}
	}
}

func (s *gangStream) merge(last bool) (err error) {
	if s.file == nil {
		if s.file, err = s.open(s.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	for n, path := range s.ranks {
		if err := s.take(n, path, last); err != nil {
			return err
		}
	}
	if last {
		err = s.file.Close()
		s.failed = true // nothing comes any more
	}
	return err
}

// take appends the new lines of one task.
func (s *gangStream) take(n int, path string, last bool) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= s.offsets[n] || !last && s.offsets[n] >= s.bound {
		return nil // it has not begun, or written nothing that stays
	}
	file, err := s.open(path, os.O_RDONLY, 0)
	if err != nil {
		if atomicfile.NoDescriptors(err) {
			return err
		}
		return nil
	}
	defer file.Close()
	if _, err := file.Seek(s.offsets[n], io.SeekStart); err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(file, kept.Most(s.bound)))
	if err != nil {
		return nil
	}
	if stays := s.bound - s.offsets[n]; !last && int64(len(text)) > stays {
		text = text[:stays]
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if last || whole == 0 && len(text) >= outputChunk {
		whole = len(text)
	}
	text = text[:whole]
	s.offsets[n] += int64(whole)
	if last && whole > 0 && text[whole-1] != '\n' && len(s.ranks) > 1 {
		text = append(slices.Clip(text), '\n')
	}
	if s.written > s.bound {
		return nil
	}
	s.written += int64(len(text))
	if _, err = s.file.Write(text); err == nil && s.written > s.bound {
		err = kept.Cut(s.path, s.bound)
	}
	return err
}

// removeOutputs removes the tasks' own files, which are in the job's, and what notes that
// squads have begun.
func removeOutputs(h *Host, squads []pilot.Left) {
	remove := func(base string) {
		_ = os.Remove(base + run.Stdout.Suffix()) // pruned later if not now
		_ = os.Remove(base + run.Stderr.Suffix())
	}
	for _, q := range squads {
		remove(h.files.Task(h.id, q.ID))
		for n := range q.Tasks {
			remove(h.files.Process(h.id, run.Process{Task: q.ID, Number: n}))
		}
	}
}
