package pilot

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Config is what a site's Core is told.
type Config struct {
	Self grid.SiteID

	// Name returns what people call a site; nil: its ID.
	Name func(grid.SiteID) string

	// Permits says why the owner of this site does not want a job of another one run here at
	// the moment; empty: it may. Nil: all may.
	Permits func(now grid.Time, from grid.SiteID, job *grid.Job) string
}

func (c *Config) name(id grid.SiteID) string {
	if c.Name == nil {
		return string(id)
	}
	return c.Name(id)
}

// Gangs are the co-allocated executions of a home. The tasks of each run at several sites;
// they start when all are ready, and when one fails they all end ("gang scheduling"). Those
// of one part are a squad: what is said of a squad is said of all of them. It reads no
// clock and does no I/O. Not safe for concurrent use.
type Gangs struct {
	cfg     Config
	all     map[grid.TaskID]*gang
	waiting grid.Alarms[*gang] // that all of their tasks are ready, by when they have to be
}

// gang is one execution.
type gang struct {
	id     grid.TaskID
	state  gangState
	alarm  grid.Alarm[*gang]
	task   *grid.Task // nil: only something of it was found after a restart
	squads []*squad   // by part; before the start with nil where nothing was found

	kill    bool
	cause   string
	abandon bool

	addresses, inputs []string
	due               grid.Time // by when all have to be ready
	began             grid.Time // when all were told to start; 0 before
	failure           *failure  // the first; nil: none yet
	again             bool      // it had begun before a restart
}

// failure is why a gang has not ended well.
type failure struct {
	squad *squad // whose; nil: a reason of ours
	end   End
}

type gangState uint8

const (
	gangFound      gangState = iota // after a restart; the site is about to start or to kill it
	gangWaiting                     // for all tasks to be ready
	gangRunning                     // all were told to start
	gangEnding                      // those that are left were told to end
	gangCollecting                  // all have ended, its outputs are being made
	gangReported                    // the site knows
)

// squad is the tasks of one part of a gang.
type squad struct {
	id      grid.TaskID
	part    int // index in grid.Gang.Parts
	tasks   int // how many; before the start, as the highest number tells that was found
	found   int // of them, after a restart
	away    bool
	ready   bool   // it can be started at once, or has begun
	begun   bool   // it was told to start
	killed  bool   // it was told to end
	refused string // why it was last not ready
	roll    roll
}

// NewGangs returns the gangs of a site without any.
func NewGangs(cfg Config) *Gangs { return &Gangs{cfg: cfg, all: make(map[grid.TaskID]*gang)} }

// Has reports whether a task is a gang of which something is here.
func (x *Gangs) Has(id grid.TaskID) bool { return x.all[id] != nil }

// Step applies one input at time now and appends to out what the driver must carry out in
// order. now never decreases. An unknown input is a defect: panic.
func (x *Gangs) Step(now grid.Time, in grid.Input, out *Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		for a := x.waiting.Pop(now); a != nil; a = x.waiting.Pop(now) {
			x.advance(now, a.Owner, out)
		}
	case *Found:
		x.found(in)
	case *Start:
		x.start(now, in, out)
	case *Kill:
		x.kill(now, &in.Task, out)
	case *Acknowledge:
		for _, id := range in.IDs {
			x.acknowledge(id, out)
		}
	case *Gathered:
		x.gathered(now, in, out)
	case *Collected:
		if g := x.all[in.Gang]; g != nil && g.state == gangCollecting {
			x.report(now, g, out)
		}
	case *SquadReady:
		if g, q := x.squad(in.ID); q != nil {
			q.ready = true
			x.advance(now, g, out)
		}
	case *SquadRefused:
		if g, q := x.squad(in.ID); q != nil && g.state == gangWaiting {
			q.ready, q.refused = false, in.Why
		}
	case *SquadEnded:
		if g, q := x.squad(in.ID); q != nil && !q.roll.isOver() {
			q.roll.ended(in.Number, in.End)
			x.advance(now, g, out)
		}
	default:
		panic(fmt.Sprintf("pilot: unknown input %T of gangs", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (x *Gangs) NextTimer() grid.Time { return x.waiting.Next() }

// enroll enters a gang of which nothing is here yet.
func (x *Gangs) enroll(id grid.TaskID) *gang {
	g := &gang{id: id}
	g.alarm.Owner = g
	x.all[id] = g
	return g
}

// squad returns a squad and its gang; nil where there is none.
func (x *Gangs) squad(id grid.TaskID) (*gang, *squad) {
	gang, part, yes := grid.SquadOf(id)
	g := x.all[gang]
	if !yes || g == nil || part >= len(g.squads) {
		return nil, nil
	}
	return g, g.squads[part]
}

// found enters tasks of an earlier run of the daemon.
func (x *Gangs) found(in *Found) {
	id, part, yes := grid.SquadOf(in.ID)
	if !yes {
		return
	}
	g := x.all[id]
	if g == nil {
		g = x.enroll(id)
	}
	for len(g.squads) <= part {
		g.squads = append(g.squads, nil)
	}
	q := g.squads[part]
	if q == nil {
		q = &squad{id: in.ID, part: part, ready: true, begun: true}
		g.squads[part] = q
	}
	q.tasks = max(q.tasks, in.Number+in.Tasks)
	q.found += in.Tasks
	q.roll.left += in.Tasks
	for number := range in.Tasks {
		if in.Ended != nil {
			q.roll.ended(in.Number+number, *in.Ended)
		}
	}
}

// start has all squads of a gang prepared.
func (x *Gangs) start(now grid.Time, in *Start, out *Outbox) {
	g := x.all[in.Task.ID]
	if g == nil {
		g = x.enroll(in.Task.ID)
	}
	if g.state != gangFound {
		return
	}
	task := in.Task
	g.task, g.state, g.due, g.again = &task, gangWaiting, now+ReadyMax+task.Bring, task.Again || len(in.Begun) > 0
	x.waiting.Set(&g.alarm, g.due)
	here, bring := x.enter(g)
	out.order(Collect{task.Gang})
	if here {
		out.order(Gather{Task: &task, Bring: bring, Due: g.due})
	}
	for _, q := range g.squads {
		switch {
		case !q.away:
			if q.found < q.tasks && slices.Contains(in.Begun, q.id) { // the machine has failed under it
				q.lost()
			}
		case task.Gang.Parts[q.part].Pilot.Key == 0:
			x.fail(now, g, fmt.Sprintf("the lease of component %d is not there any more", q.part))
			q.roll.ended(Whole, g.failure.end)
		default:
			out.local(&Hold{g.taskOf(q), slices.Contains(in.Begun, q.id)})
		}
	}
	x.advance(now, g, out)
}

// lost takes in that some of a squad's tasks are not there any more, or were not started
// when the daemon died.
func (q *squad) lost() {
	q.begun = true
	if q.roll.missing(); q.found == 0 {
		q.roll.left = 0
	}
}

// enter makes the squads of a gang. It reports whether some are of this site, and whether
// any of those needs inputs.
func (x *Gangs) enter(g *gang) (here, bring bool) {
	found, fresh := g.squads, make([]squad, len(g.task.Gang.Parts))
	g.squads = make([]*squad, len(fresh))
	for i := range fresh {
		q := &fresh[i]
		q.id, q.part = grid.SquadTask(g.id, i), i
		if i < len(found) && found[i] != nil {
			q = found[i]
		}
		q.tasks, q.away = g.task.Gang.TasksOf(i), g.task.Gang.Parts[i].Site != x.cfg.Self
		if q.found == 0 {
			q.roll.left = q.tasks
		}
		here = here || !q.away
		bring = bring || !q.away && !q.ready && len(g.task.Job.Inputs) > 0
		g.squads[i] = q
	}
	return here, bring
}

// taskOf returns a squad as whoever runs it gets it.
func (g *gang) taskOf(q *squad) grid.Task {
	part, job := &g.task.Gang.Parts[q.part], g.task.Job
	if len(g.squads) > 1 || job.Coallocate != nil { // else it is all of the job
		its := *job
		its.Coallocate, its.Tasks, its.Processors = nil, int64(q.tasks), part.Processors
		job = &its
	}
	return grid.Task{
		ID: q.id, Job: job, Limit: g.task.Limit, Pilot: part.Pilot,
		Squad: &grid.Squad{Gang: g.task.Gang, Part: q.part, Addresses: g.addresses, Inputs: g.inputs},
	}
}

// gathered makes the tasks at this site ready.
func (x *Gangs) gathered(now grid.Time, in *Gathered, out *Outbox) {
	g := x.all[in.Gang]
	if g == nil || g.state != gangWaiting {
		return
	}
	switch {
	case in.Why == "":
	case !in.Again:
		x.fail(now, g, in.Why)
	case g.failure == nil:
		g.failure = &failure{end: End{Lost: true}}
	}
	g.addresses, g.inputs = in.Addresses, in.Inputs
	for _, q := range g.squads {
		q.ready = q.ready || !q.away && in.Why == ""
	}
	x.advance(now, g, out)
}

// kill has a gang ended.
func (x *Gangs) kill(now grid.Time, task *grid.Task, out *Outbox) {
	g := x.all[task.ID]
	if g == nil {
		out.order(Ended{grid.TaskEnded{ID: task.ID, Lost: true}})
		return
	}
	if !g.kill {
		g.kill, g.cause = true, short(task.Cause)
	}
	if task.Abandon && !g.abandon {
		g.abandon = true
		if g.failure == nil { // whatever comes now is no outcome of the job
			g.failure = &failure{end: End{Lost: true}}
		}
	}
	x.advance(now, g, out)
}

// acknowledge drops a gang whose end is durable, and what its tasks have left.
func (x *Gangs) acknowledge(id grid.TaskID, out *Outbox) {
	g := x.all[id]
	if g == nil || g.state != gangReported {
		return
	}
	var own, away []grid.TaskID
	all := make([]Left, 0, len(g.squads))
	for _, q := range g.squads {
		switch {
		case q == nil:
			continue
		case q.away:
			away = append(away, q.id)
		default:
			own = append(own, q.id)
		}
		all = append(all, Left{q.id, q.tasks})
	}
	delete(x.all, id)
	if len(own) > 0 {
		out.order(AcknowledgeOwn{own})
	}
	if len(away) > 0 {
		out.local(&Acknowledge{away})
	}
	out.order(Clear{id, all})
}
