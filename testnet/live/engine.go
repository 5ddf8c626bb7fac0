package live

import (
	"cmp"
	"context"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/testnet"
)

// timers runs the tasks of one site, and keeps its pilots, as timers: a task takes its
// job's run time and does nothing. It is a run.Engine.
type timers struct {
	tally  *liveTally
	site   int
	rating grid.Rating
	ended  func(*run.Ended)
	pilots func(grid.Input) // what is told of pilots

	mu     sync.Mutex
	own    map[grid.TaskID]*timedTask // on own processors; ended ones until they are acknowledged
	lent   map[uint64]*timedPilot
	closed bool
}

// timedTask is a task and what ends it.
type timedTask struct {
	grid.Task
	start  time.Time
	timer  *time.Timer
	ended  bool
	reason string // why it was ended; empty if it was not

	lapse  *time.Timer // the end of its lease; nil if it has none
	lapsed bool
}

// timedPilot keeps what one lease lends.
type timedPilot struct {
	task  grid.TaskID
	limit *time.Timer
	up    bool
	runs  map[grid.TaskID]*timedTask
}

// engine returns what makes the engine of a site.
func (t *liveTally) engine(site int, rating grid.Rating) run.Opener {
	return func(_ context.Context, setup run.Setup) (run.Engine, error) {
		return &timers{
			tally: t, site: site, rating: rating, ended: setup.Ended, pilots: setup.Pilots,
			own: make(map[grid.TaskID]*timedTask), lent: make(map[uint64]*timedPilot),
		}, nil
	}
}

// Traits implements run.Engine.
func (*timers) Traits() run.Traits { return run.Traits{Scheduler: run.Ours} }

// Recover implements run.Engine: nothing outlives the process.
func (x *timers) Recover() ([]run.Found, []run.Ended, error) { return nil, nil, nil }

// Start implements run.Engine.
func (x *timers) Start(task grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if task.Job == nil {
		x.keep(&task)
		return
	}
	if x.own[task.ID] != nil {
		return
	}
	r := x.begin(task, func(r *timedTask) { x.over(r) })
	x.own[task.ID] = r
	if task.Lease > 0 {
		r.lapse = time.AfterFunc(task.Lease.Duration(), func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			if !x.closed && !r.ended {
				r.lapsed, r.reason = true, testnet.LeaseEnded
				x.over(r)
			}
		})
	}
}

// begin starts a task, whose end is then told with the lock held.
func (x *timers) begin(task grid.Task, over func(*timedTask)) *timedTask {
	span, reason := testnet.RunTime(task.Job, x.rating), ""
	if task.Limit > 0 && span > task.Limit {
		span, reason = task.Limit, testnet.TimeLimit
	}
	r := &timedTask{Task: task, start: time.Now()}
	r.timer = time.AfterFunc(span.Duration(), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.closed && !r.ended {
			r.reason = cmp.Or(r.reason, reason)
			over(r)
		}
	})
	return r
}

// finish notes the end of a task.
func (x *timers) finish(r *timedTask) time.Time {
	now := time.Now()
	r.ended = true
	r.timer.Stop()
	if r.lapse != nil {
		r.lapse.Stop()
	}
	x.tally.execution(x.site, &r.Task, r.start, now)
	return now
}

// tell says that a task is gone: of a squad all tasks end as one.
func (x *timers) tell(ended grid.TaskEnded) {
	e := &run.Ended{TaskEnded: ended}
	if _, _, squad := grid.SquadOf(ended.ID); squad {
		e.Number = pilot.Whole
	}
	x.ended(e)
}

// over tells the end of a task on own processors.
func (x *timers) over(r *timedTask) {
	now := x.finish(r)
	x.tell(grid.TaskEnded{ID: r.ID, Lapsed: r.lapsed, Result: grid.Result{
		Start: grid.Time(r.start.UnixMicro()), End: grid.Time(now.UnixMicro()), Reason: r.reason, ExitCode: testnet.ExitCode(r.reason),
	}})
}

// Renew implements run.Engine.
func (x *timers) Renew(id grid.TaskID, span grid.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.own[id]; r != nil && !r.ended && r.lapse != nil {
		r.lapse.Reset(span.Duration())
	}
}

// Kill implements run.Engine.
func (x *timers) Kill(task grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if task.Job == nil && task.Pilot.Key != 0 {
		if p := x.lent[task.Pilot.Key]; p != nil {
			x.end(task.Pilot.Key, p)
		} else {
			x.tell(grid.TaskEnded{ID: task.ID, Lost: true})
		}
		return
	}
	switch r := x.own[task.ID]; {
	case r == nil:
		x.tell(grid.TaskEnded{ID: task.ID, Lost: true})
	case !r.ended:
		r.reason = cmp.Or(task.Cause, "killed")
		x.over(r)
	}
}

// Acknowledge implements run.Engine.
func (x *timers) Acknowledge(ended []grid.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ended {
		if r := x.own[id]; r != nil && r.ended {
			delete(x.own, id)
		}
	}
}

// Close implements run.Engine.
func (x *timers) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, r := range x.own {
		r.timer.Stop()
		if r.lapse != nil {
			r.lapse.Stop()
		}
	}
	for _, p := range x.lent {
		p.limit.Stop()
		for _, r := range p.runs {
			r.timer.Stop()
		}
	}
	clear(x.own)
	clear(x.lent)
	return nil
}

// keep starts a pilot, or has it last until its limit from now.
func (x *timers) keep(task *grid.Task) {
	key := task.Pilot.Key
	p := x.lent[key]
	if p == nil {
		p = &timedPilot{task: task.ID, runs: make(map[grid.TaskID]*timedTask)}
		x.lent[key] = p
	} else {
		p.limit.Stop()
	}
	var limit *time.Timer
	limit = time.AfterFunc(task.Limit.Duration(), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.closed && x.lent[key] == p && p.limit == limit {
			x.end(key, p)
		}
	})
	p.limit = limit
}

// end ends a pilot with everything that it runs.
func (x *timers) end(key uint64, p *timedPilot) {
	delete(x.lent, key)
	p.limit.Stop()
	for _, r := range p.runs {
		r.ended = true // lost: it counts for nobody
		r.timer.Stop()
	}
	x.tell(grid.TaskEnded{ID: p.task})
	if p.up {
		x.pilots(&pilot.Down{Key: key, Why: "the pilot is gone"})
	}
}

// DialPilot implements run.Engine.
func (x *timers) DialPilot(key uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.lent[key]
	if p == nil {
		x.pilots(&pilot.Down{Key: key, Why: "the pilot does not answer"})
		return
	}
	p.up = true
	x.pilots(&pilot.Up{Key: key}) // it runs nothing yet: nobody dials twice
}

// Launch implements run.Engine.
func (x *timers) Launch(key uint64, task *grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.lent[key]
	if p == nil || !p.up || p.runs[task.ID] != nil {
		return
	}
	p.runs[task.ID] = x.begin(*task, func(r *timedTask) { x.overThere(key, r) })
}

// overThere tells the end of a task under a pilot.
func (x *timers) overThere(key uint64, r *timedTask) {
	now, number := x.finish(r), 0
	if r.Squad != nil {
		number = pilot.Whole
	}
	x.pilots(&pilot.Over{Key: key, ID: r.ID, Number: number, End: pilot.End{
		Ran: grid.FromDuration(now.Sub(r.start)), ExitCode: testnet.ExitCode(r.reason), Reason: r.reason,
	}})
}

// Stop implements run.Engine.
func (x *timers) Stop(key uint64, id grid.TaskID, reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.lent[key]; p != nil && p.runs[id] != nil && !p.runs[id].ended {
		p.runs[id].reason = cmp.Or(reason, "killed")
		x.overThere(key, p.runs[id])
	}
}

// Forget implements run.Engine.
func (x *timers) Forget(key uint64, id grid.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.lent[key]; p != nil && p.runs[id] != nil && p.runs[id].ended {
		delete(p.runs, id)
	}
}

// PilotDir implements run.Engine: nothing writes.
func (*timers) PilotDir(uint64) string { return "" }
