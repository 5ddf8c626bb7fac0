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
}

func (c *Config) name(id grid.SiteID) string {
	if c.Name == nil {
		return string(id)
	}
	return c.Name(id)
}

// Gangs are the co-allocated executions of a home. The tasks of each run at several sites;
// they start when all are ready, and when one fails they all end ("gang scheduling"). It
// reads no clock and does no I/O. Not safe for concurrent use.
type Gangs struct {
	cfg Config
	all map[grid.TaskID]*gang
}

// gang is one execution.
type gang struct {
	id    grid.TaskID
	state gangState
	task  *grid.Task // nil: only something of it was found after a restart
	ranks []*rank    // in order; before the start with nil where nothing was found

	kill    bool
	cause   string
	abandon bool

	addresses, inputs []string
	due               grid.Time // by when all have to be ready
	began             grid.Time // when all were told to start; 0 before
	failure           *grid.TaskEnded
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

// rank is one task of a gang.
type rank struct {
	id      grid.TaskID
	part    int // index in grid.Gang.Parts
	away    bool
	ready   bool   // it can be started at once, or has begun
	begun   bool   // it was told to start
	killed  bool   // it was told to end
	refused string // why it was last not ready
	ended   *grid.TaskEnded
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
		for _, g := range x.due(now) {
			x.advance(now, g, out)
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
	case *RankReady:
		if g, r := x.rank(in.ID); r != nil {
			r.ready = true
			x.advance(now, g, out)
		}
	case *RankRefused:
		if g, r := x.rank(in.ID); r != nil && g.state == gangWaiting {
			r.ready, r.refused = false, in.Why
		}
	case *RankEnded:
		if g, r := x.rank(in.Ended.ID); r != nil && r.ended == nil {
			ended := in.Ended
			r.ended = &ended
			x.advance(now, g, out)
		}
	default:
		panic(fmt.Sprintf("pilot: unknown input %T of gangs", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (x *Gangs) NextTimer() grid.Time {
	next := grid.Never
	for _, g := range x.all {
		if g.state == gangWaiting {
			next = min(next, g.due)
		}
	}
	return next
}

// due returns the gangs that were not ready in time.
func (x *Gangs) due(now grid.Time) (list []*gang) {
	for _, g := range x.all {
		if g.state == gangWaiting && g.due <= now {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *gang) int { return a.id.Compare(b.id) })
	return list
}

// rank returns a task that has not ended for good, and its gang.
func (x *Gangs) rank(id grid.TaskID) (*gang, *rank) {
	gang, number, ranked := grid.GangOf(id)
	g := x.all[gang]
	if !ranked || g == nil || number >= len(g.ranks) {
		return nil, nil
	}
	return g, g.ranks[number]
}

// found enters a task of an earlier run of the daemon.
func (x *Gangs) found(in *Found) {
	id, number, ranked := grid.GangOf(in.ID)
	if !ranked || number >= grid.RanksMax {
		return
	}
	g := x.all[id]
	if g == nil {
		g = &gang{id: id}
		x.all[id] = g
	}
	for len(g.ranks) <= number {
		g.ranks = append(g.ranks, nil)
	}
	if g.ranks[number] == nil {
		g.ranks[number] = &rank{id: in.ID, ready: true, begun: true}
	}
	if in.Ended != nil {
		ended := *in.Ended
		g.ranks[number].ended = &ended
	}
}

// start has all tasks of a gang prepared.
func (x *Gangs) start(now grid.Time, in *Start, out *Outbox) {
	g := x.all[in.Task.ID]
	if g == nil {
		g = &gang{id: in.Task.ID}
		x.all[g.id] = g
	}
	if g.state != gangFound {
		return
	}
	task := in.Task
	g.task, g.state, g.due = &task, gangWaiting, now+ReadyMax+task.Bring
	here, bring := x.enter(g)
	out.order(Collect{g.id, len(g.ranks)})
	if here {
		out.order(Gather{Task: task, Bring: bring, Due: g.due})
	}
	for number, r := range g.ranks {
		switch {
		case !r.away:
			if !r.begun && slices.Contains(in.Begun, r.id) { // the machine has failed under it
				r.ended = &grid.TaskEnded{ID: r.id, Lost: true}
			}
		case task.Gang.Parts[r.part].Pilot.Key == 0:
			x.fail(now, g, fmt.Sprintf("the lease of component %d is not there any more", r.part))
			r.ended = g.failure
		default:
			out.local(&Hold{g.taskOf(number), slices.Contains(in.Begun, r.id)})
		}
	}
	x.advance(now, g, out)
}

// enter makes the ranks of a gang. It reports whether some run here, and whether any of
// those needs inputs.
func (x *Gangs) enter(g *gang) (here, bring bool) {
	found := g.ranks
	g.ranks = nil
	for i := range g.task.Gang.Parts {
		p := &g.task.Gang.Parts[i]
		for range p.Processors / g.task.Gang.Each {
			number := len(g.ranks)
			r := &rank{id: grid.RankTask(g.id, number)}
			if number < len(found) && found[number] != nil {
				r = found[number]
			}
			r.part, r.away = i, p.Site != x.cfg.Self
			here = here || !r.away
			bring = bring || !r.away && !r.ready && len(g.task.Job.Inputs) > 0
			g.ranks = append(g.ranks, r)
		}
	}
	return here, bring
}

// taskOf returns a task of a gang as whoever runs it gets it.
func (g *gang) taskOf(number int) grid.Task {
	job := *g.task.Job
	job.Coallocate, job.Tasks, job.Processors = nil, 1, g.task.Gang.Each
	r := g.ranks[number]
	return grid.Task{
		ID: r.id, Job: &job, Limit: g.task.Limit, Pilot: g.task.Gang.Parts[r.part].Pilot,
		Rank: &grid.Rank{Gang: g.task.Gang, Number: number, Addresses: g.addresses, Inputs: g.inputs},
	}
}

// gathered makes the tasks at this site ready.
func (x *Gangs) gathered(now grid.Time, in *Gathered, out *Outbox) {
	g := x.all[in.Gang]
	if g == nil || g.state != gangWaiting {
		return
	}
	if in.Why != "" {
		x.fail(now, g, in.Why)
	}
	g.addresses, g.inputs = in.Addresses, in.Inputs
	for _, r := range g.ranks {
		r.ready = r.ready || !r.away && in.Why == ""
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
			g.failure = &grid.TaskEnded{ID: g.id, Lost: true}
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
	var all, own, away []grid.TaskID
	for _, r := range g.ranks {
		switch {
		case r == nil:
			continue
		case r.away:
			away = append(away, r.id)
		default:
			own = append(own, r.id)
		}
		all = append(all, r.id)
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
