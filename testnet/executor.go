package testnet

import (
	"fmt"
	"math/bits"

	"gridnode/grid"
	"gridnode/market/keepalive"
	"gridnode/node/pilot"
)

// Execution is a run of a job on the processors of a site.
type Execution struct {
	ID         grid.TaskID
	Job        *grid.Job
	Site       int
	Start, End grid.Time // true time; End is planned while it lives
	Lost       bool      // its machine died under it
	Lapsed     bool      // its lease ended
	Reason     string    // why it was ended; empty if it ended by itself
	Failed     bool      // it ended by itself, or will, with an exit code that says it has failed

	Pilot grid.Pilot  // under which it runs, at the lender: whose the lease is; zero: none
	Squad *grid.Squad // whose tasks it is all of, of a gang; else nil

	stamps     [2]grid.Time // of its start and its end, by the machine's clock
	natural    grid.Time    // when it ends if its lease is renewed for long enough
	killed     bool         // it is being ended
	state      executionState
	generation uint32 // of the slot: events of what it held before are void
	next, prev int32  // in the site's list
}

type executionState uint8

const (
	executionFree  executionState = iota // the slot is unused
	executionAlive                       // it occupies processors
	executionOver                        // ended, its site does not know yet
)

// LeaseEnded is the Reason of an execution that was not renewed.
const LeaseEnded = "its lease ended"

// TimeLimit is the Reason of an execution that ran into its limit.
const TimeLimit = "time limit"

// Exit codes of executions that did not end by themselves, as a shell would see them.
const (
	exitKilled    = 128 + 9
	exitTimeLimit = 128 + 14
	exitFailed    = 1
)

// executor runs the jobs of the sites of a lane: it is the only reader of Job.RunTime.
type executor struct {
	l     *lane
	slots []Execution
	free  []int32
	alive int64
}

// runTime returns how long the job really runs at a site: its true run time at
// home, scaled as eq. 2 scales its estimate.
func runTime(job *grid.Job, at grid.Rating) grid.Time {
	if job.Estimate <= 0 || at.Speed <= 0 || at.Bandwidth <= 0 || job.Work == (grid.Work{}) {
		return max(job.RunTime, 1)
	}
	there := job.Work.At(at)
	if there == job.Estimate {
		return max(job.RunTime, 1)
	}
	hi, lo := bits.Mul64(uint64(job.RunTime), uint64(there))
	lo, carry := bits.Add64(lo, uint64(job.Estimate-1), 0)
	hi += carry
	if hi >= uint64(job.Estimate) {
		return grid.SpanMax
	}
	q, _ := bits.Div64(hi, lo, uint64(job.Estimate))
	return max(min(grid.Time(min(q, uint64(grid.SpanMax))), grid.SpanMax), 1)
}

// Executions calls f for every execution that occupies processors of a site.
func (n *Network) Executions(site int, f func(x *Execution)) {
	slots := n.laneOf(int32(site)).tasks.slots
	for i := n.members[site].executions; i != none; i = slots[i].next {
		if x := &slots[i]; x.state == executionAlive {
			f(x)
		}
	}
}

// Alive returns how many executions occupy processors anywhere.
func (n *Network) Alive() (count int64) {
	for _, l := range n.lanes {
		count += l.tasks.alive
	}
	return count
}

// start carries out a Start.
func (tasks *executor) start(s int32, t *grid.Task) {
	l := tasks.l
	switch {
	case t.Job == nil:
		l.away(s).keep(t)
	case l.takes(s, t):
		l.away(s).start(t)
	default:
		tasks.run(s, t)
	}
}

// run starts a task on a site's own processors. Starting what is known already changes
// nothing: a site that restarts may order again what it had ordered before.
func (tasks *executor) run(s int32, t *grid.Task) {
	l := tasks.l
	m := &l.members[s]
	if m.incarnation > 0 && tasks.find(s, t.ID) != none {
		return
	}
	span, reason := runTime(t.Job, m.Rating), ""
	if t.Limit > 0 && span > t.Limit {
		span, reason = t.Limit, TimeLimit
	}
	span, code, reason := tasks.broken(t, span, 0, reason)
	var i int32
	if last := len(tasks.free) - 1; last >= 0 {
		i = tasks.free[last]
		tasks.free = tasks.free[:last]
	} else {
		i = int32(len(tasks.slots))
		tasks.slots = append(tasks.slots, Execution{})
	}
	x := &tasks.slots[i]
	*x = Execution{
		ID: t.ID, Job: t.Job, Site: int(s), Squad: t.Squad, Start: l.now, End: l.now.Add(span), Reason: reason,
		state: executionAlive, generation: x.generation + 1, next: m.executions, prev: none, natural: l.now.Add(span),
		Failed: code == exitFailed,
	}
	if t.Lease > 0 {
		x.End = min(x.natural, tasks.lapse(s, t.Lease))
	}
	if m.executions != none {
		tasks.slots[m.executions].prev = i
	}
	m.executions = i
	l.push(x.End, classEnd, event{kind: eventTaskEnd, to: s, from: s, index: i, generation: x.generation})
	tasks.begin(x)
}

// broken returns how a task ends of which Config.Squad says that it fails, if it does before it
// ends anyway.
func (tasks *executor) broken(t *grid.Task, span grid.Time, code int32, reason string) (grid.Time, int32, string) {
	if l := tasks.l; l.cfg.Squad != nil && t.Squad != nil {
		if _, fails := l.cfg.Squad(t.ID); fails > 0 && fails < span {
			return fails, exitFailed, ""
		}
	}
	return span, code, reason
}

// lapse returns when nothing is left of an execution whose lease is not renewed: its shim
// asks it to stop at that instant of the site's clock, and this one does not listen.
func (tasks *executor) lapse(s int32, lease grid.Time) grid.Time {
	return max(tasks.l.members[s].Clock.True(lease.Add(keepalive.Kill)), tasks.l.now)
}

// renew carries out a Renew. It changes nothing for what is being ended.
func (tasks *executor) renew(s int32, t *grid.Task) {
	l := tasks.l
	i := tasks.find(s, t.ID)
	if i == none {
		return
	}
	x := &tasks.slots[i]
	if end := min(x.natural, tasks.lapse(s, t.Lease)); x.state == executionAlive && x.End > l.now && end > x.End {
		x.End = end
		l.push(end, classEnd, event{kind: eventTaskEnd, to: s, from: s, index: i, generation: x.generation})
	}
}

// begin counts an execution that occupies processors from now on.
func (tasks *executor) begin(x *Execution) {
	l := tasks.l
	tasks.alive++
	x.stamps[0] = wall(l, int32(x.Site))
	l.tellStart(x)
}

// find returns the slot of a site's execution. It walks the site's list: only kills
// and restarts ask.
func (tasks *executor) find(s int32, id grid.TaskID) int32 {
	l := tasks.l
	i := l.members[s].executions
	for i != none && tasks.slots[i].ID != id {
		i = tasks.slots[i].next
	}
	return i
}

// kill carries out a Kill. Killing what is not there changes nothing.
func (tasks *executor) kill(s int32, t *grid.Task) {
	l := tasks.l
	switch {
	case l.takes(s, t):
		l.away(s).kill(t)
	case t.Job == nil && t.Pilot.Key != 0:
		l.away(s).release(t)
	default:
		tasks.end(s, t)
	}
}

// end ends a task on a site's own processors, and reports whether there is one.
func (tasks *executor) end(s int32, t *grid.Task) bool {
	l := tasks.l
	i := tasks.find(s, t.ID)
	if i == none || tasks.slots[i].state != executionAlive {
		return i != none
	}
	x := &tasks.slots[i]
	if x.killed {
		return true
	}
	x.killed, x.Reason = true, t.Cause
	if x.Reason == "" {
		x.Reason = "killed"
	}
	x.End = min(x.End, l.now.Add(tasks.linger(t.ID)))
	x.natural = x.End
	// The planned end finds the slot free, or of another generation.
	l.push(x.End, classEnd, event{kind: eventTaskEnd, to: s, from: s, index: i, generation: x.generation})
	return true
}

// linger returns how long a task goes on that is killed.
func (tasks *executor) linger(id grid.TaskID) grid.Time {
	if f := tasks.l.cfg.Linger; f != nil {
		return f(id)
	}
	return 0
}

// taskEnd is the end of an execution. Its site learns of it now, or when it is up again.
func (tasks *executor) taskEnd(e *event) {
	l := tasks.l
	x := &tasks.slots[e.index]
	if x.generation != e.generation || x.state != executionAlive || l.now < x.End {
		return
	}
	if l.now < x.natural {
		x.Lapsed, x.Reason = true, LeaseEnded
	}
	l.members[x.Site].trace.job(x.ID.Job)
	tasks.gone(x)
	if l.members[e.to].core != nil {
		tasks.report(e.to, e.index)
	}
}

// gone frees the processors of an execution.
func (tasks *executor) gone(x *Execution) {
	l := tasks.l
	x.End = l.now
	x.stamps[1] = max(wall(l, int32(x.Site)), x.stamps[0])
	x.state = executionOver
	tasks.alive--
	l.tellEnd(x)
}

// report tells a site how an execution ended and forgets the execution, unless the daemon dies
// of it: then it is told again. That of a squad is kept until the gang has ended.
func (tasks *executor) report(s, i int32) {
	l := tasks.l
	x := &tasks.slots[i]
	if x.state != executionOver {
		panic(fmt.Sprintf("testnet: report of execution %v in state %d", x.ID, x.state))
	}
	l.ended = tasks.outcome(x)
	if x.Squad != nil {
		l.away(s).step(&pilot.SquadEnded{ID: x.ID, Number: pilot.Whole, End: pilot.EndOf(&l.ended)})
		return
	}
	if l.step(s, &l.ended); l.members[s].core != nil {
		tasks.release(s, i)
	}
}

// outcome says how an execution ended, on its site's clock.
func (tasks *executor) outcome(x *Execution) grid.TaskEnded {
	ended := grid.TaskEnded{ID: x.ID, Lost: x.Lost, Lapsed: x.Lapsed}
	if !x.Lost {
		ended.Result = grid.Result{Start: x.stamps[0], End: x.stamps[1], ExitCode: ExitCode(x.Reason), Reason: x.Reason}
		if x.Failed && x.Reason == "" {
			ended.Result.ExitCode = exitFailed
		}
	}
	return ended
}

// forget drops the end of a squad on a site's own processors.
func (tasks *executor) forget(s int32, id grid.TaskID) {
	if i := tasks.find(s, id); i != none && tasks.slots[i].state == executionOver {
		tasks.release(s, i)
	}
}

// release gives the slot of an execution back.
func (tasks *executor) release(s, i int32) {
	l := tasks.l
	m := &l.members[s]
	x := &tasks.slots[i]
	if x.prev == none {
		m.executions = x.next
	} else {
		tasks.slots[x.prev].next = x.next
	}
	if x.next != none {
		tasks.slots[x.next].prev = x.prev
	}
	generation := x.generation
	*x = Execution{generation: generation}
	tasks.free = append(tasks.free, i)
}
