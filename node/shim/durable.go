package shim

// What a task has printed is on disk before its end is noted: after a power cut of its machine it is
// done with its whole output here, or lost. One flush serves all tasks that ended during the one before.

// settling is tasks of which nothing runs any more and whose output is not known to be on disk.
type settling struct {
	due   []*task
	busy  bool                        // a flush is under way
	flush func(files ...string) error // atomicfile.Sync; tests have another
}

// settle notes the end of t once its output is durable. One that printed nothing costs nothing.
func (s *shim) settle(t *task, silent bool) {
	if silent {
		s.conclude(t)
		return
	}
	s.settling.due = append(s.settling.due, t)
	s.flush()
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
	for _, t := range due {
		files = append(files, t.spec.Stdout, t.spec.Stderr)
	}
	go func() {
		err := s.settling.flush(files...)
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
