package testnet

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/pilot"
)

// lender is a site that lends: what it says of an active lease.
type lender interface {
	PilotOf(from grid.SiteID, key uint64) (lease.Lease, bool)
	Permits(now grid.Time, from grid.SiteID, job *grid.Job) string
}

// away drives a site's pilot.Core: what the site runs on borrowed processors, what others
// run on those it lends, and its gangs.
type away struct {
	l     *lane
	site  int32
	core  *pilot.Core // nil while the daemon is down
	out   pilot.Outbox
	armed grid.Time // earliest timer event in the queue; grid.Never if none

	answers []grid.Input // to what the core has ordered in this step, in order

	sessions []*session // of which this end is open, in the order of their beginnings
	opening  []*session // those that the daemon wants

	// What outlives the daemon.
	pilots map[uint64]*lent     // what keeps processors for others
	ended  []grid.TaskID        // pilots that are gone, until the site has taken that in
	begun  map[grid.TaskID]bool // on borrowed processors, and squads

	joined map[gangID]bool // gangs whose tasks here have connections to others
}

// gangID names a gang: another site may call one of its own alike.
type gangID struct {
	home grid.SiteID
	task grid.TaskID
}

// away returns the driver of a site's pilot.Core, and makes it if need be: many sites
// neither lend nor borrow. What it does with others is theirs as well, so that from then on
// nothing happens in strides.
func (l *lane) away(s int32) *away {
	m := &l.members[s]
	if m.away == nil {
		l.joint.Store(true)
		m.away = &away{
			l: l, site: s, armed: grid.Never,
			pilots: make(map[uint64]*lent), begun: make(map[grid.TaskID]bool), joined: make(map[gangID]bool),
		}
		if m.core != nil {
			m.away.boot()
		}
	}
	return m.away
}

// takes reports whether a task that a site starts or kills is for its pilot.Core.
func (l *lane) takes(s int32, t *grid.Task) bool {
	if l.members[s].away == nil && t.Gang == nil && !t.Abandon && t.Pilot.Key == 0 {
		return false
	}
	return l.away(s).core.Takes(t)
}

// boot gives a daemon that comes up its core.
func (a *away) boot() {
	m := &a.l.members[a.site]
	a.core = pilot.New(pilot.Config{Self: m.ID, Permits: func(now grid.Time, from grid.SiteID, job *grid.Job) string {
		return m.core.(lender).Permits(now, from, job)
	}})
}

// crash takes the daemon down.
func (a *away) crash(machine bool) {
	a.core = nil
	a.armed = grid.Never
	clear(a.joined)
	a.abort(machine)
	for _, p := range a.kept() {
		p.up = false
		if machine {
			a.endPilot(p)
		}
	}
}

// step feeds the core and carries out what it orders; then what can be answered at once
// is, and so on. Nothing else feeds it meanwhile.
func (a *away) step(in grid.Input) {
	if a.core == nil {
		return
	}
	a.core.Step(a.l.members[a.site].Clock.Local(a.l.now), in, &a.out)
	a.carryAll()
}

// carryAll carries out what the core has ordered, and what it orders when it has its answers.
func (a *away) carryAll() {
	a.carryOut()
	for i := 0; i < len(a.answers); i++ {
		a.core.Step(a.l.members[a.site].Clock.Local(a.l.now), a.answers[i], &a.out)
		a.carryOut()
	}
	clear(a.answers)
	a.answers = a.answers[:0]
	a.arm()
}

func (a *away) carryOut() {
	for _, e := range a.out.Effects {
		a.carry(e)
	}
	a.out.Reset()
}

// arm makes sure that the core gets a Tick when it wants one.
func (a *away) arm() {
	next := a.core.NextTimer()
	if next == grid.Never {
		return
	}
	at := max(a.l.members[a.site].Clock.True(next), a.l.now)
	if at >= a.armed {
		return
	}
	a.armed = at
	a.l.after(at, classOther, a.site, func() {
		if a.armed != at {
			return
		}
		a.armed = grid.Never
		if a.core == nil {
			return
		}
		if a.core.NextTimer() <= a.l.members[a.site].Clock.Local(a.l.now) {
			a.step(grid.Tick{})
		} else {
			a.arm()
		}
	})
}

// later has something done after a while, unless the daemon is gone by then.
func (a *away) later(pause grid.Time, do func()) {
	core := a.core
	a.l.after(a.l.now+pause, classOther, a.site, func() {
		if a.core == core {
			do()
		}
	})
}

// answer feeds the core what answers one of its orders, once all of them are carried out.
func (a *away) answer(in grid.Input) { a.answers = append(a.answers, in) }

// start has the core run a task.
func (a *away) start(t *grid.Task) {
	in := &pilot.Start{Task: *t}
	for _, id := range pilot.Tasks(t) {
		if a.begun[id] {
			in.Begun = append(in.Begun, id)
		}
	}
	a.step(in)
}

// kill has the core end a task.
func (a *away) kill(t *grid.Task) {
	a.step(&pilot.Kill{Task: *t})
	if t.Abandon {
		delete(a.begun, t.ID)
	}
}

// acknowledge says that the end of a task is durable.
func (a *away) acknowledge(id grid.TaskID) {
	a.step(&pilot.Acknowledge{IDs: []grid.TaskID{id}})
	delete(a.begun, id)
	if i := slices.Index(a.ended, id); i >= 0 {
		a.ended = slices.Delete(a.ended, i, i+1)
	}
}

// carry carries out one effect.
func (a *away) carry(e pilot.Effect) {
	l := a.l
	switch e := e.(type) {
	case pilot.Begin:
		a.begun[e.ID] = true
	case pilot.Ended:
		l.inject(l.now, a.site, l.members[a.site].incarnation, &e.Ended)
	case pilot.Connect:
		l.between(func(grid.Time) { a.connect(e) })
	case pilot.Disconnect:
		a.leave(atBorrower, e.Site, e.Session)
	case pilot.Send:
		if x := a.session(atBorrower, e.Site, e.Session); x != nil {
			l.members[a.site].trace.away(a.site, uint64(e.Order.Kind), e.Order.ID)
			l.wires.post(x, atBorrower, parcel{order: &e.Order})
		}
	case pilot.Tell:
		if x := a.session(atLender, e.To, e.Session); x != nil {
			l.members[a.site].trace.away(a.site, 1<<8|uint64(e.Report.Kind), e.Report.ID)
			l.wires.post(x, atLender, parcel{report: &e.Report})
		}
	case pilot.Hangup:
		a.leave(atLender, e.To, e.Session)
	case pilot.Dial, pilot.Launch, pilot.Stop, pilot.Forget:
		a.carryPilot(e)
	case pilot.Follow, pilot.Collect: // nothing writes
	default:
		a.carryGang(e)
	}
}

// carryGang carries out what a gang needs. What its tasks read is there at once: its
// home has counted with the time that takes.
func (a *away) carryGang(e pilot.Effect) {
	l := a.l
	switch e := e.(type) {
	case pilot.Prepare:
		a.joined[gangID{e.Home, e.Task.Squad.Gang.Task}] = true
		a.prepare([]grid.TaskID{e.Task.ID}, &pilot.Prepared{Key: e.Key, ID: e.Task.ID})
	case pilot.Gather:
		a.joined[gangID{l.members[a.site].ID, e.Task.ID}] = true
		var own []grid.TaskID
		for part := range e.Task.Gang.Parts {
			if e.Task.Gang.Parts[part].Site == l.members[a.site].ID {
				own = append(own, grid.SquadTask(e.Task.ID, part))
			}
		}
		a.prepare(own, &pilot.Gathered{Gang: e.Task.ID})
	case pilot.StartOwn:
		l.tasks.run(a.site, &e.Task)
	case pilot.KillOwn:
		if !l.tasks.end(a.site, &e.Task) {
			a.answer(&pilot.SquadEnded{ID: e.Task.ID, Number: pilot.Whole, End: pilot.End{Lost: true}})
		}
	case pilot.AcknowledgeOwn:
		for _, id := range e.IDs {
			l.tasks.forget(a.site, id)
		}
	case pilot.Finish:
		a.answer(&pilot.Collected{Gang: e.Gang})
	case pilot.Clear:
		for _, q := range e.Squads {
			delete(a.begun, q.ID)
		}
	case pilot.Disband:
		delete(a.joined, gangID{e.Home, e.Gang})
	default:
		panic(fmt.Sprintf("testnet: unknown effect %T of a pilot's core", e))
	}
}

// prepare makes squads ready and says so, at once unless Config.Squad has them take longer.
func (a *away) prepare(squads []grid.TaskID, done grid.Input) {
	pause := grid.Time(0)
	for _, id := range squads {
		if a.l.cfg.Squad != nil {
			ready, _ := a.l.cfg.Squad(id)
			pause = max(pause, ready)
		}
	}
	tell := func() {
		for _, id := range squads {
			a.ready(id)
		}
	}
	switch pause {
	case grid.Never:
	case 0:
		tell()
		a.answer(done)
	default:
		a.later(pause, func() {
			tell()
			a.step(done)
		})
	}
}

// ready tells the observers that a squad can be started here.
func (a *away) ready(id grid.TaskID) {
	a.l.tellReady(a.site, id)
}

// AuditPilots returns what is wrong with the processors that a site keeps for borrowers, and
// with its gangs (pilot.Core.Audit), and which it keeps for another span than it has granted.
func AuditPilots(n *Network, site int) error {
	a := n.members[site].away
	if a == nil || a.core == nil {
		return nil
	}
	if err := a.core.Audit(n.members[site].Clock.Local(n.now)); err != nil {
		return err
	}
	for key := range a.pilots {
		borrower, until, kept := a.core.Kept(key)
		if !kept {
			continue
		}
		if held, active := n.members[site].core.(lender).PilotOf(borrower, key); active && until != held.Limit {
			return fmt.Errorf("the pilot of lease %d of %s is kept until %v, and the lease lasts until %v", held.Number, held.Borrower, until, held.Limit)
		}
	}
	return nil
}

// Held says what a site has left of work on borrowed processors, its own or others':
// tasks, pilots, connections, and gangs; empty if nothing. It must be up.
func (n *Network) Held(site int) string {
	a := n.members[site].away
	if a == nil || a.core.Idle() && len(a.pilots)+len(a.sessions)+len(a.opening)+len(a.joined) == 0 {
		return ""
	}
	return fmt.Sprintf("tasks, gangs or pilots known: %t; pilots %d, sessions %d, gangs connected %d",
		!a.core.Idle(), len(a.pilots), len(a.sessions)+len(a.opening), len(a.joined))
}
