package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// What a task has printed, and left in a directory of its own, is on disk before its end is noted: after a
// power cut of its machine it is done with all of that here, or lost. One flush serves all tasks that ended
// during the one before.

// ScratchSuffix ends the name of a directory that a task has for itself. What it leaves in another one is
// its user's.
const ScratchSuffix = ".scratch"

// settling is tasks of which nothing runs any more and whose output is not known to be on disk.
type settling struct {
	due   []*task
	busy  bool                        // a flush is under way
	flush func(files ...string) error // atomicfile.Sync; tests have another
	tree  func(dir string) error      // atomicfile.SyncTree; the same
}

// settle notes the end of t once its output is durable. One that printed and left nothing costs nothing.
func (s *shim) settle(t *task, silent bool) {
	if t.leaves = leaves(t.spec.Dir); silent && !t.leaves {
		s.conclude(t)
		return
	}
	s.settling.due = append(s.settling.due, t)
	s.flush()
}

// leaves reports whether there is something in a directory that a task has for itself.
func leaves(dir string) bool {
	if !strings.HasSuffix(dir, ScratchSuffix) {
		return false
	}
	d, err := os.Open(dir)
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer d.Close()
	names, _ := d.Readdirnames(1) // an error: none, or the flush has it, too
	return len(names) > 0
}

// flush has the output of what ended become durable, beside the loop, unless that is being done
// for others.
func (s *shim) flush() {
	if s.settling.busy || len(s.settling.due) == 0 {
		return
	}
	due := s.settling.due
	s.settling.due, s.settling.busy = nil, true
	var files []string
	trees := make(map[string]string) // one of each folder: the flush of a tree is that of its file system
	for _, t := range due {
		files = append(files, t.spec.Stdout, t.spec.Stderr)
		if t.leaves {
			trees[filepath.Dir(t.spec.Dir)] = t.spec.Dir
		}
	}
	go func() {
		var err error
		for _, dir := range trees {
			err = errors.Join(err, s.settling.tree(dir))
		}
		err = errors.Join(err, s.settling.flush(files...))
		s.post(func() {
			if err != nil {
				s.log("the output of %d tasks may not be on disk: %v", len(due), err)
			}
			for _, t := range due {
				s.conclude(t)
			}
			s.settling.busy = false
			s.flush()
		})
	}()
}
