package testnet

import (
	"cmp"
	"maps"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// borrower is a site that lends and borrows: what pilots, and those who use them, ask it
// as the live ones do.
type borrower interface {
	PilotOf(from grid.SiteID, key uint64) (lease.Lease, bool)
	Uses(id grid.TaskID) bool
}

// pilots are the processors that sites keep for others, and what runs there. They are
// part of the machines: a pilot outlives its daemon, and ends at its limit without it.
type pilots struct {
	kept  map[pilotID]*pilot
	ended map[int32][]grid.TaskID // while the daemon was down
	away  map[awayID]*awayTask
	begun map[awayID]bool // the borrower has a file of its output
}

// pilotID names a pilot: the site that keeps it, and the epoch of the lease.
type pilotID struct {
	site int32
	key  uint64
}

// pilot is what keeps processors of a site for another one.
type pilot struct {
	id    pilotID
	task  grid.TaskID
	start grid.Time // true time
	turn  int       // of its limit: one that was moved is void
	runs  map[grid.TaskID]*awayRun
}

// awayRun is an execution that a pilot has, or whose end it keeps for its borrower.
type awayRun struct {
	Execution
	exitCode int32
}

// awayID names a task that a site runs on borrowed processors.
type awayID struct {
	site int32
	id   grid.TaskID
}

// awayTask is what a borrower's daemon knows of it.
type awayTask struct {
	awayID
	task        grid.Task
	lender      int32
	incarnation uint32 // of the daemon: the next one begins anew
	kill        bool
	cause       string
}

// Pauses of a borrower that cannot reach a pilot, or that is refused.
const (
	pilotRetry   = 5 * grid.Second
	pilotRefused = grid.Second
)

// newPilots returns a network's without any.
func newPilots() pilots {
	return pilots{make(map[pilotID]*pilot), make(map[int32][]grid.TaskID), make(map[awayID]*awayTask), make(map[awayID]bool)}
}

// after has something happen at an instant.
func (n *Network) after(at grid.Time, class uint64, site int32, do func()) {
	n.queue.push(max(at, n.now), class, event{kind: eventCall, to: site, from: site, index: n.calls.put(do)})
}

// keepPilot starts a pilot, or has it last until the limit from now.
func (n *Network) keepPilot(s int32, t grid.Task) {
	id := pilotID{s, t.Pilot.Key}
	p := n.pilots.kept[id]
	if p == nil {
		p = &pilot{id: id, task: t.ID, start: n.now, runs: map[grid.TaskID]*awayRun{}}
		n.pilots.kept[id] = p
	}
	p.turn++
	turn, clock := p.turn, n.members[s].Clock
	n.after(clock.True(clock.Local(n.now).Add(t.Limit)), classEnd, s, func() {
		if n.pilots.kept[id] == p && p.turn == turn {
			n.endPilot(p)
		}
	})
}

// killPilot ends a pilot; one that is not there is reported as gone.
func (n *Network) killPilot(s int32, t grid.Task) {
	if p := n.pilots.kept[pilotID{s, t.Pilot.Key}]; p != nil {
		n.endPilot(p)
		return
	}
	n.inject(n.now, s, n.members[s].incarnation, &grid.TaskEnded{ID: t.ID, Lost: true})
}

// endPilot ends a pilot with everything that it runs, and tells its site.
func (n *Network) endPilot(p *pilot) {
	delete(n.pilots.kept, p.id)
	for _, id := range slices.SortedFunc(maps.Keys(p.runs), grid.TaskID.Compare) {
		if r := p.runs[id]; r.state == executionAlive {
			r.Lost = true
			n.over(&r.Execution)
		}
	}
	m := &n.members[p.id.site]
	if m.core == nil {
		n.pilots.ended[p.id.site] = append(n.pilots.ended[p.id.site], p.task)
		return
	}
	n.inject(n.now, p.id.site, m.incarnation, &grid.TaskEnded{ID: p.task})
}

// pilotsOf returns the pilots that a site keeps, by key.
func (n *Network) pilotsOf(s int32) (list []*pilot) {
	for id, p := range n.pilots.kept {
		if id.site == s {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *pilot) int { return cmp.Compare(a.id.key, b.id.key) })
	return list
}

// reportPilots tells a site that is up again what has become of its pilots.
func (n *Network) reportPilots(s int32) {
	ended := n.pilots.ended[s]
	delete(n.pilots.ended, s)
	for _, id := range ended {
		n.step(s, &grid.TaskEnded{ID: id, Lost: true})
	}
	for _, p := range n.pilotsOf(s) {
		if n.cfg.Inputs.Adopted != nil {
			n.step(s, n.cfg.Inputs.Adopted(p.task, n.members[s].Clock.Local(p.start)))
		}
	}
}

// startAway has a pilot of another site run a task, as soon as it can be reached.
func (n *Network) startAway(s int32, t grid.Task) {
	lender, known := n.index[t.Pilot.Site]
	id := awayID{s, t.ID}
	if a := n.pilots.away[id]; !known || a != nil && a.incarnation == n.members[s].incarnation {
		return
	}
	a := &awayTask{awayID: id, task: t, lender: lender, incarnation: n.members[s].incarnation}
	n.pilots.away[id] = a
	n.contact(a, n.latency(s, lender))
}

// killAway ends a task on borrowed processors; of one that the borrower does not have
// nothing is known.
func (n *Network) killAway(s int32, t grid.Task) {
	a := n.pilots.away[awayID{s, t.ID}]
	if a == nil || a.incarnation != n.members[s].incarnation {
		n.inject(n.now, s, n.members[s].incarnation, &grid.TaskEnded{ID: t.ID, Lost: true})
		return
	}
	a.kill, a.cause = true, t.Cause
	n.contact(a, n.latency(s, a.lender))
}

// contact has a borrower speak to a pilot after a while.
func (n *Network) contact(a *awayTask, pause grid.Time) {
	n.after(n.now+pause, classOther, a.site, func() {
		m := &n.members[a.site]
		if n.pilots.away[a.awayID] != a || m.core == nil || m.incarnation != a.incarnation {
			return // it has ended, or the daemon that wanted it has
		}
		if !m.core.(borrower).Uses(a.id) {
			delete(n.pilots.away, a.awayID) // its lease is over
			return
		}
		if n.members[a.lender].core == nil || n.severed(a.site, a.lender) {
			n.contact(a, pilotRetry)
			return
		}
		n.order(a)
	})
}

// order is a borrower's word at the pilot: run this task unless it was begun, or end it.
func (n *Network) order(a *awayTask) {
	p := n.pilots.kept[pilotID{a.lender, a.task.Pilot.Key}]
	held, ok := n.members[a.lender].core.(borrower).PilotOf(n.members[a.site].ID, a.task.Pilot.Key)
	if p == nil || !ok {
		n.contact(a, pilotRefused)
		return
	}
	r := p.runs[a.id]
	used := a.task.Job.Processors
	for _, other := range p.runs {
		if other.state == executionAlive {
			used += other.Job.Processors
		}
	}
	switch {
	case r == nil && a.kill: // it will not be started any more
		r = &awayRun{Execution: Execution{ID: a.id, Job: a.task.Job, Start: n.now, End: n.now, Reason: a.cause, state: executionOver}, exitCode: exitKilled}
		p.runs[a.id] = r
	case r == nil && n.pilots.begun[a.awayID]:
		n.tellAway(a, p, &awayRun{Execution: Execution{Lost: true}})
		return
	case r == nil && used > held.Processors:
		n.contact(a, pilotRefused)
		return
	case r == nil:
		n.begin(a, p)
		return
	case r.state == executionAlive && a.kill:
		r.Reason, r.exitCode = a.cause, exitKilled
		n.over(&r.Execution)
	}
	if r.state == executionOver {
		n.tellAway(a, p, r)
	}
}

// begin starts an execution under a pilot.
func (n *Network) begin(a *awayTask, p *pilot) {
	span, reason, code := runTime(a.task.Job, n.members[a.lender].Rating), "", int32(0)
	if a.task.Limit > 0 && span > a.task.Limit {
		span, reason, code = a.task.Limit, TimeLimit, exitTimeLimit
	}
	r := &awayRun{Execution: Execution{
		ID: a.id, Job: a.task.Job, Site: int(a.lender), Start: n.now, End: n.now.Add(span), state: executionAlive,
	}}
	p.runs[a.id] = r
	n.tasks.alive++
	for j := range n.observers {
		if f := n.observers[j].Start; f != nil {
			f(n.now, &r.Execution)
		}
	}
	n.after(r.End, classEnd, a.lender, func() {
		if r.state != executionAlive {
			return
		}
		r.Reason, r.exitCode = reason, code
		n.over(&r.Execution)
		if now := n.pilots.away[a.awayID]; now != nil {
			n.contact(now, n.latency(a.lender, a.site))
		}
	})
	incarnation := a.incarnation
	n.after(n.now+n.latency(a.lender, a.site), classOther, a.site, func() {
		if m := &n.members[a.site]; m.core != nil && m.incarnation == incarnation && !n.severed(a.site, a.lender) {
			n.pilots.begun[a.awayID] = true
		}
	})
}

// tellAway brings the end of an execution to its borrower.
func (n *Network) tellAway(a *awayTask, p *pilot, r *awayRun) {
	n.after(n.now+n.latency(a.lender, a.site), classOther, a.site, func() {
		m := &n.members[a.site]
		if n.pilots.away[a.awayID] != a || m.core == nil || m.incarnation != a.incarnation {
			return
		}
		if n.severed(a.site, a.lender) {
			n.contact(a, pilotRetry)
			return
		}
		delete(n.pilots.away, a.awayID)
		delete(n.pilots.begun, a.awayID)
		delete(p.runs, a.id)
		ended := &grid.TaskEnded{ID: a.id, Lost: r.Lost}
		if !r.Lost {
			end := m.Clock.Local(n.now)
			ended.Result = grid.Result{Start: max(end-(r.End-r.Start), 0), End: end, ExitCode: r.exitCode, Reason: r.Reason}
		}
		n.step(a.site, ended)
	})
}
