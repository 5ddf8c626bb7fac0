package pilot

import (
	"maps"
	"slices"

	"gridnode/grid"
)

// machine is a pilot: a shim with its journal.
type machine struct {
	key        uint64
	borrower   grid.SiteID
	processors int64
	tasks      map[grid.TaskID]*process
	up         bool // the daemon is connected
	cut        bool // it is not any more, and does not know
	dead       bool
}

// process is an execution.
type process struct {
	processors int64
	running    bool
	end        End
	stop       string // why it was told to end; empty: it was not
}

func (s *site) launch(e Launch) {
	m := s.pilots[e.Key]
	if m == nil || !m.up {
		return // the connection is gone: Down comes, or has come
	}
	if m.tasks[e.Task.ID] != nil {
		s.w.violated("task %s is launched twice under one pilot", name(e.Task.ID))
	}
	s.w.begin(e.Task.ID)
	m.tasks[e.Task.ID] = &process{processors: e.Task.Job.Processors, running: true}
	used := int64(0)
	for _, p := range m.tasks {
		if p.running {
			used += p.processors
		}
	}
	if used > m.processors {
		s.w.violated("%d processors are used of a lease of %d", used, m.processors)
	}
}

// dial answers the oldest Dial.
func (s *site) dial(reached bool) {
	if len(s.dialled) == 0 {
		return
	}
	key := s.dialled[0]
	s.dialled = s.dialled[1:]
	m := s.pilots[key]
	if m == nil || m.dead || !reached {
		s.step(&Down{key, "the pilot does not answer"})
		return
	}
	m.up = true
	var tasks []Adopted
	var over []*Over
	for _, id := range slices.SortedFunc(maps.Keys(m.tasks), grid.TaskID.Compare) {
		p := m.tasks[id]
		tasks = append(tasks, Adopted{id, p.running})
		if !p.running {
			over = append(over, &Over{key, id, p.end})
		}
	}
	s.step(&Up{key, tasks})
	for _, o := range over {
		s.step(o)
	}
}

// drop breaks the connection to a pilot; with die it is gone, with what it ran.
func (s *site) drop(key uint64, die bool) {
	m := s.pilots[key]
	if m == nil {
		return
	}
	if die {
		m.dead, m.tasks = true, make(map[grid.TaskID]*process)
	}
	if m.up || m.cut {
		m.up, m.cut = false, false
		s.step(&Down{key, "the pilot is gone"})
	}
}

// cut breaks the connection to a pilot, which the daemon learns of by drop.
func (s *site) cut(key uint64) {
	if m := s.pilots[key]; m != nil && m.up {
		m.up, m.cut = false, true
	}
}

// end ends a process.
func (s *site) end(key uint64, id grid.TaskID, code int32) {
	if m := s.pilots[key]; m != nil && m.tasks[id] != nil && m.tasks[id].running {
		p := m.tasks[id]
		p.running, p.end = false, End{Ran: grid.Second, ExitCode: code}
		if p.stop != "" {
			p.end = End{Ran: grid.Second, ExitCode: 137, Reason: p.stop}
		}
		if m.up {
			s.step(&Over{key, id, p.end})
		}
	}
}

// endOwn ends a process of a gang on the site's own processors.
func (s *site) endOwn(id grid.TaskID, code int32) {
	p := s.own[id]
	if p == nil || !p.running {
		return
	}
	p.running, p.end = false, End{Ran: grid.Second, ExitCode: code}
	if p.stop != "" {
		p.end = End{Ran: grid.Second, ExitCode: 137, Reason: p.stop}
	}
	s.step(&RankEnded{grid.TaskEnded{ID: id, Result: p.end.result(s.clock())}})
}

// prepared answers the oldest Prepare.
func (s *site) prepared(refused, failed string) {
	if len(s.preparing) == 0 {
		return
	}
	e := s.preparing[0]
	s.preparing = s.preparing[1:]
	if refused+failed == "" {
		s.w.ready[e.Task.ID] = true
	}
	s.step(&Prepared{Key: e.Key, ID: e.Task.ID, Refused: refused, Failed: failed, Addresses: []string{"x"}})
}

// gathered answers the oldest Gather.
func (s *site) gathered(why string) {
	if len(s.gathering) == 0 {
		return
	}
	e := s.gathering[0]
	s.gathering = s.gathering[1:]
	if why == "" {
		for n, at := range e.Task.Gang.Sites() {
			if at == s.id {
				s.w.ready[grid.RankTask(e.Task.ID, n)] = true
			}
		}
	}
	s.step(&Gathered{Gang: e.Task.ID, Why: why})
}

// finished answers the oldest Finish.
func (s *site) finished() {
	if len(s.finishing) == 0 {
		return
	}
	gang := s.finishing[0]
	s.finishing = s.finishing[1:]
	s.step(&Collected{gang})
}
