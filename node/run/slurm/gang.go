package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// ofGang is what a pilot has that keeps processors for the tasks of a job of this site which
// start together with others elsewhere. It is there before any of them starts, takes
// nothing else, and ends with them.
type ofGang struct {
	id     grid.TaskID
	ready  func(error) // to be called once it is known whether it is there; nil: it was
	wanted bool        // by the site, since this daemon runs
}

// wantedMax is how long a pilot of an earlier daemon waits for its job to be taken up again.
const wantedMax = grid.Minute

// Hold implements run.Holder.
func (e *Engine) Hold(task *grid.Task, ready func(error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tasks, started := 0, false
	for part := range task.Gang.Parts {
		if task.Gang.Parts[part].Site == e.files.Site {
			tasks += task.Gang.TasksOf(part)
			started = started || len(e.of(grid.SquadTask(task.ID, part))) > 0
		}
	}
	if started || tasks == 0 { // an earlier daemon has started them: they run where they run
		ready(nil)
		return
	}
	g := e.ofGang(task.ID)
	if g == nil {
		g = e.askGang(task, int64(tasks))
	}
	g.gang.wanted, g.gang.ready = true, ready
	g.answerHold()
	e.soon()
}

// LetGo implements run.Holder.
func (e *Engine) LetGo(gang grid.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.ofGang(gang); g != nil {
		g.gang.ready = nil
		e.leave(g, "its job is over")
		e.soon()
	}
}

// ofGang returns the pilot of a gang, or nil. The caller holds e.mu.
func (e *Engine) ofGang(id grid.TaskID) *glidein {
	for _, g := range e.glideins {
		if g.gang != nil && g.gang.id == id && !g.gone && !g.leaves {
			return g
		}
	}
	return nil
}

// askGang asks Slurm for the pilot of a gang: with room for each task on one node, for as long as
// they may run. The caller holds e.mu.
func (e *Engine) askGang(task *grid.Task, tasks int64) *glidein {
	e.newest = max(e.newest+1, int64(e.now()))
	x := ownPilot(e.newest)
	processors := tasks * task.Gang.Each
	j := &job{process: x, name: x.Name() + "." + strconv.FormatInt(e.newest, 36), fresh: true, offered: time.Now(), note: note{
		Ordered: e.now(), Limit: task.Limit + task.Bring + pilot.ReadyMax + spare, Tasks: tasks, Each: task.Gang.Each, Processor: processors,
		Pilot: &keeps{Gang: task.ID, Processors: processors},
	}}
	e.own.enter(j)
	e.wg.Add(1)
	go e.submit(j)
	return j.glide
}

// answerHold says that a pilot is there, once it is. The caller holds Engine.mu.
func (g *glidein) answerHold() {
	if g.gang.ready != nil && g.up() && !g.until.IsZero() {
		g.gang.ready(nil)
		g.gang.ready = nil
	}
}

// failHold says that it will not be. The caller holds Engine.mu.
func (g *glidein) failHold(why string) {
	if g.gang.ready != nil {
		g.gang.ready(fmt.Errorf("its processors cannot be had of Slurm: %s", why))
		g.gang.ready = nil
	}
}

// keepGangs ends the pilots of gangs that nobody has taken up. The caller holds e.mu.
func (e *Engine) keepGangs(now time.Time) {
	for _, g := range e.glideins {
		if g.gang == nil || g.gone {
			continue
		}
		g.answerHold()
		if !g.gang.wanted && len(g.open) == 0 && now.Sub(g.last) > cmp.Or(e.cfg.silence, wantedMax).Duration() {
			e.leave(g, "nobody has taken up its job")
		}
	}
}

// peers makes the way of a task of a squad that is seated on a node which is another machine than the
// daemon's; nil: it needs none.
func (e *pilots) peers(j *job) (*shim.Peers, error) {
	if j.task.Squad == nil {
		return nil, nil
	}
	e.mu.Lock()
	node, far := j.chair[0].node, false
	if node < len(j.via.nodes) && j.via.nodes[node] != nil {
		far = j.via.nodes[node].far
	}
	e.mu.Unlock()
	if !far || len(j.task.Squad.Addresses) == 0 {
		return nil, nil
	}
	return e.ways.begin(e.ctx, &e.wg, j.name, j.via, node, j.task.Squad, j.process.Number)
}

// seatSquad has a process of a squad run in the pilot of its gang. The caller holds e.mu.
func (e *pilots) seatSquad(g *glidein, j *job) {
	if g == nil || !g.up() {
		e.unseated(j)
		return
	}
	if j.chair = g.take(j.note.Processor, true); j.chair == nil { // the gang has as many as it asked for
		j.chair = []share{{0, 0}}
	}
	j.inside, j.via, g.last = true, g, time.Now()
	e.own.placed = append(e.own.placed, j)
	select {
	case e.own.wake <- struct{}{}:
	default:
	}
}

// unseated ends a process that is not started: it was lost. The caller holds e.mu.
func (e *pilots) unseated(j *job) {
	if j.inside = true; j.chair != nil {
		j.vacated = true
		j.via.give(j.chair)
	}
	o := outcome{Result: failed(j.process, e.now(), errors.New("its pilot is gone")).Result, Lost: true}
	e.wg.Go(func() { e.finish(j, o) })
}

var _ run.Holder = (*Engine)(nil)
