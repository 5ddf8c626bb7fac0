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
	tasks      map[member]*process
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

// spawn starts the processes of a task. The daemon may die when it has started some.
func (s *site) spawn(into map[member]*process, t *grid.Task) {
	n := tasksOf(t)
	for number := range n {
		x := member{t.ID, number}
		if into[x] != nil {
			s.w.violated("task %v is started twice", x)
		}
		s.w.begin(x)
		into[x] = &process{processors: t.Job.Processors / int64(n), running: true}
		if s.dies > 0 {
			if s.dies--; s.dies == 0 {
				s.w.note("%s: dies", s.id)
				s.crash()
				return
			}
		}
	}
}

func (s *site) launch(e Launch) {
	m := s.pilots[e.Key]
	if m == nil || !m.up {
		return // the connection is gone: Down comes, or has come
	}
	s.spawn(m.tasks, &e.Task)
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
	for _, x := range sorted(m.tasks) {
		p := m.tasks[x]
		if last := len(tasks) - 1; last >= 0 && tasks[last].ID == x.id {
			tasks[last].Tasks++
			tasks[last].Running = tasks[last].Running || p.running
		} else {
			tasks = append(tasks, Adopted{x.id, 1, p.running})
		}
		if !p.running {
			over = append(over, &Over{key, x.id, x.number, p.end})
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
		m.dead, m.tasks = true, make(map[member]*process)
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
func (s *site) end(key uint64, x member, code int32) {
	if m := s.pilots[key]; m != nil && m.tasks[x] != nil && m.tasks[x].running {
		p := m.tasks[x]
		p.running, p.end = false, End{Ran: grid.Second, ExitCode: code}
		if p.stop != "" {
			p.end = End{Ran: grid.Second, ExitCode: 137, Reason: p.stop}
		}
		if m.up {
			s.step(&Over{key, x.id, x.number, p.end})
		}
	}
}

// endOwn ends a process of a gang on the site's own processors.
func (s *site) endOwn(x member, code int32) {
	p := s.own[x]
	if p == nil || !p.running {
		return
	}
	p.running, p.end = false, End{Ran: grid.Second, ExitCode: code}
	if p.stop != "" {
		p.end = End{Ran: grid.Second, ExitCode: 137, Reason: p.stop}
	}
	s.step(&SquadEnded{x.id, x.number, p.end})
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
func (s *site) gathered(why string, again bool) {
	if len(s.gathering) == 0 {
		return
	}
	e := s.gathering[0]
	s.gathering = s.gathering[1:]
	if why == "" {
		for part := range e.Task.Gang.Parts {
			if e.Task.Gang.Parts[part].Site == s.id {
				s.w.ready[grid.SquadTask(e.Task.ID, part)] = true
			}
		}
	}
	s.step(&Gathered{Gang: e.Task.ID, Why: why, Again: again})
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

// sorted returns processes in order.
func sorted(of map[member]*process) []member {
	return slices.SortedFunc(maps.Keys(of), member.compare)
}
