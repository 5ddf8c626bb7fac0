package testnet

import (
	"cmp"
	"maps"
	"slices"

	"gridnode/grid"
	"gridnode/node/pilot"
)

// lent is a pilot: it keeps processors that a site lends, and runs what the borrower
// orders. It is part of the machine: it outlives the daemon, and ends at its limit
// without it.
type lent struct {
	key   uint64
	task  grid.TaskID
	start grid.Time // true time
	until grid.Time // its limit, likewise
	turn  int       // of its limit: one that was moved is void
	up    bool      // the daemon is connected
	runs  map[grid.TaskID]*lentRun
}

// lentRun is an execution that a pilot has, or whose end it keeps.
type lentRun struct {
	Execution
	exitCode int32
}

// after has something happen at an instant.
func (l *lane) after(at grid.Time, class uint64, site int32, do func()) {
	l.push(max(at, l.now), class, event{kind: eventCall, to: site, from: site, index: l.own(site).calls.put(do)})
}

// keep starts a pilot, or has it last until the limit from now, or after a restart not much longer than it was told before.
func (a *away) keep(t *grid.Task) {
	l, m := a.l, &a.l.members[a.site]
	p := a.pilots[t.Pilot.Key]
	if p == nil {
		p = &lent{key: t.Pilot.Key, task: t.ID, start: l.now, runs: make(map[grid.TaskID]*lentRun)}
		a.pilots[p.key] = p
	}
	p.turn++
	turn := p.turn
	until := m.Clock.True(m.Clock.Local(l.now).Add(t.Limit))
	if t.More > 0 && p.until > 0 {
		until = min(until, p.until.Add(t.More))
	}
	p.until = until
	l.after(p.until, classEnd, a.site, func() {
		if a.pilots[p.key] != p || p.turn != turn {
			return
		}
		up := p.up
		if a.endPilot(p); up {
			a.step(&pilot.Down{Key: p.key, Why: "the pilot is gone"})
		}
		a.step(&pilot.Release{Key: p.key})
	})
	if held, active := m.core.(lender).PilotOf(t.Pilot.Site, p.key); active {
		a.step(&pilot.Keep{Key: p.key, Borrower: t.Pilot.Site, Processors: held.Processors, Until: held.Limit})
	}
}

// release ends a pilot; one that is not there is reported as gone.
func (a *away) release(t *grid.Task) {
	a.step(&pilot.Release{Key: t.Pilot.Key})
	if p := a.pilots[t.Pilot.Key]; p != nil {
		a.endPilot(p)
		return
	}
	a.l.inject(a.l.now, a.site, a.l.members[a.site].incarnation, &grid.TaskEnded{ID: t.ID, Lost: true})
}

// endPilot ends a pilot with everything that it runs, and tells its site: again when it is up
// again, if the daemon dies before it has taken that in.
func (a *away) endPilot(p *lent) {
	l := a.l
	delete(a.pilots, p.key)
	for _, id := range slices.SortedFunc(maps.Keys(p.runs), grid.TaskID.Compare) {
		if r := p.runs[id]; r.state == executionAlive {
			r.Lost = true
			l.tasks.gone(&r.Execution)
		}
	}
	a.ended = append(a.ended, p.task)
	if a.core != nil {
		l.inject(l.now, a.site, l.members[a.site].incarnation, &grid.TaskEnded{ID: p.task})
	}
}

// kept returns the pilots, by key.
func (a *away) kept() []*lent {
	return slices.SortedFunc(maps.Values(a.pilots), func(p, q *lent) int { return cmp.Compare(p.key, q.key) })
}

// report tells a site that is up again what has become of its pilots.
func (a *away) report() {
	l := a.l
	for _, id := range slices.Clone(a.ended) {
		l.step(a.site, &grid.TaskEnded{ID: id, Lost: true})
	}
	for _, p := range a.kept() {
		if l.cfg.Inputs.Adopted != nil {
			l.step(a.site, l.cfg.Inputs.Adopted(p.task, l.members[a.site].Clock.Local(p.start)))
		}
	}
}

// carryPilot carries out what the pilots are for.
func (a *away) carryPilot(e pilot.Effect) {
	switch e := e.(type) {
	case pilot.Dial:
		a.dial(e.Key)
	case pilot.Launch:
		if p := a.pilots[e.Key]; p != nil && p.up && p.runs[e.Task.ID] == nil {
			a.launch(p, &e.Task)
		}
	case pilot.Stop:
		if p := a.pilots[e.Key]; p != nil && p.up {
			if r := p.runs[e.ID]; r != nil && r.state == executionAlive {
				r.Reason, r.exitCode = cmp.Or(e.Reason, "killed"), exitKilled
				a.l.after(a.l.now, classEnd, a.site, func() { a.finish(p, r) })
			}
		}
	case pilot.Forget:
		if p := a.pilots[e.Key]; p != nil && p.up && p.runs[e.ID] != nil && p.runs[e.ID].state == executionOver {
			delete(p.runs, e.ID)
		}
	}
}

// dial connects the daemon to a pilot.
func (a *away) dial(key uint64) {
	p := a.pilots[key]
	if p == nil {
		a.answer(&pilot.Down{Key: key, Why: "the pilot does not answer"})
		return
	}
	p.up = true
	up := &pilot.Up{Key: key}
	ids := slices.SortedFunc(maps.Keys(p.runs), grid.TaskID.Compare)
	for _, id := range ids {
		up.Tasks = append(up.Tasks, pilot.Adopted{ID: id, Tasks: p.runs[id].tasks(), Running: p.runs[id].state == executionAlive})
	}
	a.answer(up)
	for _, id := range ids {
		if r := p.runs[id]; r.state == executionOver {
			a.answer(r.over(key))
		}
	}
}

// number says of which tasks it is an execution: all of a squad end as one.
func (r *lentRun) number() int {
	if r.Squad != nil {
		return pilot.Whole
	}
	return 0
}

// tasks returns how many there are.
func (r *lentRun) tasks() int {
	if r.Squad != nil {
		return r.Squad.Tasks()
	}
	return 1
}

// over says how an execution has ended.
func (r *lentRun) over(key uint64) *pilot.Over {
	return &pilot.Over{Key: key, ID: r.ID, Number: r.number(), End: pilot.End{Ran: r.End - r.Start, ExitCode: r.exitCode, Reason: r.Reason, Lost: r.Lost}}
}

// launch starts an execution under a pilot.
func (a *away) launch(p *lent, t *grid.Task) {
	l := a.l
	span, reason, code := runTime(t.Job, l.members[a.site].Rating), "", int32(0)
	if t.Limit > 0 && span > t.Limit {
		span, reason, code = t.Limit, TimeLimit, exitTimeLimit
	}
	span, code, reason = l.tasks.broken(t, span, code, reason)
	r := &lentRun{Execution: Execution{
		ID: t.ID, Job: t.Job, Site: int(a.site), Pilot: t.Pilot, Squad: t.Squad, Start: l.now, End: l.now.Add(span), state: executionAlive,
	}}
	p.runs[t.ID] = r
	l.tasks.begin(&r.Execution)
	l.after(r.End, classEnd, a.site, func() {
		if r.state == executionAlive && r.Reason == "" {
			r.Reason, r.exitCode, r.Failed = reason, code, code == exitFailed
		}
		a.finish(p, r)
	})
}

// finish is the end of an execution under a pilot.
func (a *away) finish(p *lent, r *lentRun) {
	if r.state != executionAlive {
		return
	}
	a.l.tasks.gone(&r.Execution)
	if p.up {
		a.step(r.over(p.key))
	}
}
