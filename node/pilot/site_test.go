package pilot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gridnode/grid"
)

// site is a daemon and its machine.
type site struct {
	w    *world
	id   grid.SiteID
	core *Core     // nil while its daemon is down
	skew grid.Time // of its clock
	dies int       // it will, when it has started so many processes; 0: it will not
	out  Outbox

	// What outlives the daemon.
	pilots  map[uint64]*machine
	own     map[member]*process
	begun   map[grid.TaskID]bool
	entered map[grid.TaskID]bool // gangs of others that have connections here
	jobs    map[grid.TaskID]*job

	// What does not.
	dialled   []uint64
	preparing []*Prepare
	gathering []*Gather
	finishing []grid.TaskID
	acks      []grid.TaskID
}

// job is a task that the site's records have as started.
type job struct {
	task  grid.Task
	kill  bool
	given bool // up: its lease is over
	ended int
	last  *grid.TaskEnded
}

func (s *site) clock() grid.Time { return s.w.now + s.skew }

// due returns when a core needs a tick, in true time.
func (s *site) due() grid.Time {
	if s.core == nil || s.core.NextTimer() == grid.Never {
		return grid.Never
	}
	return s.core.NextTimer() - s.skew
}

// step feeds a core, and notes and begins what it orders.
func (s *site) step(in grid.Input) {
	if s.core == nil {
		return
	}
	s.core.Step(s.clock(), in, &s.out)
	if err := s.core.Audit(s.clock()); err != nil {
		s.w.violated("%s, after %T: %v", s.id, in, err)
	}
	effects := slices.Clone(s.out.Effects)
	s.out.Reset()
	for _, e := range effects {
		if s.core == nil { // it has died meanwhile
			return
		}
		s.carry(e)
	}
}

func (s *site) carry(e Effect) {
	if text := describe(e); text != "" {
		s.w.note("%s: %s", s.id, text)
	}
	switch e := e.(type) {
	case Collect, Clear, Follow:
	case Begin:
		s.begun[e.ID] = true
	case Ended:
		s.ended(e.Ended)
	case Tell, Hangup, Connect, Disconnect, Send:
		s.w.carry(s, e)
	case Gather, StartOwn, KillOwn, AcknowledgeOwn, Finish:
		s.carryGang(e)
	default:
		s.carryPilot(e)
	}
}

// carryPilot does what the lender's part orders.
func (s *site) carryPilot(e Effect) {
	switch e := e.(type) {
	case Dial:
		s.dialled = append(s.dialled, e.Key)
	case Launch:
		s.launch(e)
	case Stop:
		if m := s.pilots[e.Key]; m != nil {
			stop(m.tasks, e.ID, e.Reason)
		}
	case Forget:
		if m := s.pilots[e.Key]; m != nil {
			maps.DeleteFunc(m.tasks, func(x member, _ *process) bool { return x.id == e.ID })
		}
	case Prepare:
		s.entered[e.Task.Squad.Gang.Task] = true
		s.preparing = append(s.preparing, &e)
	case Disband:
		delete(s.entered, e.Gang)
	default:
		panic(fmt.Sprintf("unknown effect %T", e))
	}
}

// carryGang does what the home's part orders.
func (s *site) carryGang(e Effect) {
	switch e := e.(type) {
	case Gather:
		s.entered[e.Task.ID] = true
		s.gathering = append(s.gathering, &e)
	case StartOwn:
		s.spawn(s.own, &e.Task)
	case KillOwn:
		if !stop(s.own, e.Task.ID, e.Task.Cause) {
			s.step(&SquadEnded{e.Task.ID, Whole, End{Lost: true}})
		}
	case AcknowledgeOwn:
		maps.DeleteFunc(s.own, func(x member, _ *process) bool { return slices.Contains(e.IDs, x.id) })
	case Finish:
		s.finishing = append(s.finishing, e.Gang)
	}
}

// stop tells those processes of a task to end that run, and reports whether there are any.
func stop(of map[member]*process, id grid.TaskID, why string) (any bool) {
	for x, p := range of {
		if x.id == id && p.running {
			p.stop = cmp.Or(why, "killed")
			any = true
		}
	}
	return any
}

// begin counts an execution that begins.
func (w *world) begin(x member) {
	if w.started[x]++; w.started[x] > 1 {
		w.violated("task %v has begun %d times", x, w.started[x])
	}
	if gang, _, squad := grid.SquadOf(x.id); squad {
		for _, other := range w.squads[gang] {
			if !w.ready[other] {
				w.violated("task %v has begun, and %s was never ready", x, name(other))
			}
		}
	}
}

// ended is the site: it makes the end durable, and says so later.
func (s *site) ended(e grid.TaskEnded) {
	j := s.jobs[e.ID]
	if j == nil {
		s.w.violated("%s was told the end of %s, which it does not run", s.id, name(e.ID))
		return
	}
	if j.ended++; j.ended > 1 {
		s.w.violated("%s was told the end of %s %d times", s.id, name(e.ID), j.ended)
	}
	j.last = &e
	s.acks = append(s.acks, e.ID)
}

// ack says that ends are durable.
func (s *site) ack() {
	if s.core == nil || len(s.acks) == 0 {
		return
	}
	acks := s.acks
	s.acks = nil
	for _, id := range acks {
		delete(s.jobs, id)
	}
	s.step(&Acknowledge{acks})
}

// start is the site's order to start a task.
func (s *site) start(task grid.Task) {
	if s.jobs[task.ID] == nil {
		s.jobs[task.ID] = &job{task: task}
		if task.Gang != nil {
			for part := range task.Gang.Parts {
				s.w.squads[task.ID] = append(s.w.squads[task.ID], grid.SquadTask(task.ID, part))
			}
		}
	}
	var begun []grid.TaskID
	for _, id := range Tasks(&task) {
		if s.begun[id] {
			begun = append(begun, id)
		}
	}
	s.step(&Start{Task: task, Begun: begun})
}

func (s *site) kill(id grid.TaskID, cause string) {
	j := s.jobs[id]
	if j == nil || j.ended > 0 || s.core == nil {
		return
	}
	j.kill = true
	task := grid.Task{ID: id, Job: j.task.Job, Cause: cause, Pilot: j.task.Pilot}
	s.step(&Kill{task})
}

// abandon gives up what runs on a lease that is over.
func (s *site) abandon(lender grid.SiteID, key uint64) {
	at := grid.Pilot{Site: lender, Key: key}
	for _, id := range slices.SortedFunc(maps.Keys(s.jobs), grid.TaskID.Compare) {
		j := s.jobs[id]
		gang := j.task.Gang != nil && slices.ContainsFunc(j.task.Gang.Parts, func(p grid.GangPart) bool { return p.Pilot == at })
		if j.given = j.given || gang || j.task.Pilot == at; !j.given || j.ended > 0 {
			continue
		}
		switch {
		case gang:
			s.step(&Kill{grid.Task{ID: id, Cause: "a lease is over", Abandon: true}})
		case j.task.Pilot == at:
			s.step(&Kill{grid.Task{ID: id, Job: j.task.Job, Cause: "its lease is over", Pilot: at, Abandon: true}})
			delete(s.jobs, id)
		}
	}
}

// keep lends processors.
func (s *site) keep(key uint64, to grid.SiteID, processors int64) {
	if s.pilots[key] == nil {
		s.pilots[key] = &machine{key: key, borrower: to, processors: processors, tasks: make(map[member]*process)}
	}
	s.step(&Keep{Key: key, Borrower: to, Processors: processors, Until: grid.Never})
}

// release takes processors back: the pilot dies with what it runs.
func (s *site) release(key uint64) {
	if s.pilots[key] == nil {
		return
	}
	s.step(&Release{key})
	delete(s.pilots, key)
}

// crash kills a daemon. What it had not sent is lost; its connections end.
func (s *site) crash() {
	s.core, s.dies = nil, 0
	s.out.Reset()
	s.dialled, s.preparing, s.gathering, s.finishing, s.acks = nil, nil, nil, nil, nil
	clear(s.entered)
	for _, m := range s.pilots {
		m.up, m.cut = false, false
	}
	for _, x := range s.w.sessions {
		if x.from == s.id {
			x.opening, x.open, x.reports = false, false, nil
		}
		if x.to == s.id {
			x.closed, x.orders = true, nil
		}
	}
}

// powerCut ends what has outlived a daemon, but for its notes.
func (s *site) powerCut() {
	clear(s.own)
	for _, m := range s.pilots {
		m.dead, m.tasks = true, make(map[member]*process)
	}
}

// restart brings a daemon up again from what outlived it.
func (s *site) restart() {
	if s.core != nil {
		return
	}
	s.w.now += grid.Millisecond
	s.core = New(Config{Self: s.id})
	found := make(map[grid.TaskID]bool)
	for _, x := range sorted(s.own) {
		in := &Found{ID: x.id, Number: x.number, Tasks: 1}
		if p := s.own[x]; !p.running {
			in.Ended = &p.end
		}
		s.step(in)
		gang, _, _ := grid.SquadOf(x.id)
		found[gang] = true
	}
	for _, key := range slices.Sorted(maps.Keys(s.pilots)) {
		if m := s.pilots[key]; !m.dead {
			s.keep(key, m.borrower, m.processors)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.jobs), grid.TaskID.Compare) {
		j := s.jobs[id]
		j.ended = 0 // it was not made durable
		switch {
		case j.given && !found[id]: // nothing is left of it
			delete(s.jobs, id)
		case j.given:
			s.step(&Kill{grid.Task{ID: id, Cause: "nobody waits for it any more", Abandon: true}})
		default:
			s.start(j.task)
			if j.kill {
				s.kill(id, "cancelled")
			}
		}
		delete(found, id)
	}
	for _, id := range slices.SortedFunc(maps.Keys(found), grid.TaskID.Compare) {
		s.jobs[id] = &job{task: grid.Task{ID: id}, given: true}
		s.step(&Kill{grid.Task{ID: id, Cause: "nobody waits for it any more", Abandon: true}})
	}
}
