package pilot

import (
	"fmt"

	"gridnode/grid"
)

// advance does what is due for a gang: the barrier, and its end.
func (x *Gangs) advance(now grid.Time, g *gang, out *Outbox) {
	if g.state >= gangCollecting || g.state == gangFound && !g.kill {
		return
	}
	if g.abandon {
		g.abandonAway(out)
	}
	left, waiting := g.count()
	ending := g.kill || g.failure != nil
	switch {
	case ending:
	case waiting == nil && g.state == gangWaiting:
		x.waiting.Stop(&g.alarm)
		g.begin(now, out)
	case g.state == gangWaiting && now >= g.due && g.again: // who does not answer may run it still
		g.failure, ending = &failure{end: End{Lost: true}}, true
	case g.state == gangWaiting && now >= g.due:
		why := fmt.Sprintf("%s was not ready to start within %v", x.describe(g, waiting, 0), (ReadyMax + g.task.Bring).Duration())
		if waiting.refused != "" {
			why += ": " + waiting.refused
		}
		x.fail(now, g, why)
		ending = true
	}
	if ending {
		x.waiting.Stop(&g.alarm)
		left = g.killAll(out)
	}
	if left > 0 {
		return
	}
	if g.state = gangCollecting; g.task == nil { // it has no outputs
		x.report(now, g, out)
		return
	}
	out.order(Finish{g.id})
}

// count returns how many squads have not ended, and the last that is not ready. The first
// of which a task has failed makes the gang fail.
func (g *gang) count() (left int, waiting *squad) {
	for _, q := range g.squads {
		if q == nil {
			continue
		}
		if q.roll.failed && g.failure == nil {
			g.failure = &failure{q, q.roll.end}
		}
		if !q.roll.isOver() {
			left++
			if !q.ready {
				waiting = q
			}
		}
	}
	return left, waiting
}

// begin starts all squads: those elsewhere, which have the longer way, first.
func (g *gang) begin(now grid.Time, out *Outbox) {
	g.state, g.began = gangRunning, now
	var there []grid.TaskID
	for _, q := range g.squads {
		if q.away && !q.begun {
			there = append(there, q.id)
		}
	}
	if len(there) > 0 {
		out.local(&Go{there})
	}
	for _, q := range g.squads {
		if !q.away && !q.begun {
			out.order(Begin{q.id})
		}
	}
	for _, q := range g.squads {
		if !q.away && !q.begun {
			out.order(StartOwn{g.taskOf(q)})
		}
		q.begun = true
	}
}

// abandonAway gives up what runs elsewhere: its leases are over.
func (g *gang) abandonAway(out *Outbox) {
	var there []grid.TaskID
	for _, q := range g.squads {
		if q != nil && q.away && !q.roll.isOver() {
			q.roll.ended(Whole, End{Lost: true})
			there = append(there, q.id)
		}
	}
	if len(there) > 0 {
		out.local(&Abandon{there})
	}
}

// killAll ends the squads that have not ended, and returns how many still have to.
func (g *gang) killAll(out *Outbox) (left int) {
	g.state = gangEnding
	cause := g.cause
	if !g.kill {
		cause = becauseAnother
	}
	for _, q := range g.squads {
		if q == nil || q.roll.isOver() {
			continue
		}
		if !q.away && !q.begun { // it never was started
			q.roll.ended(Whole, End{ExitCode: ExitCancelled, Reason: cause})
			if g.failure == nil {
				g.failure = &failure{q, q.roll.end}
			}
			continue
		}
		left++
		if q.killed {
			continue
		}
		q.killed = true
		task := grid.Task{ID: q.id, Cause: cause}
		if q.away {
			out.local(&Kill{task})
		} else {
			out.order(KillOwn{task})
		}
	}
	return left
}

// fail gives a gang up for a reason of ours.
func (x *Gangs) fail(now grid.Time, g *gang, why string) {
	if g.failure == nil {
		g.failure = &failure{end: End{ExitCode: ExitNoStart, Reason: short(why)}}
	}
}

// report tells the site how a gang has ended: by the first task that failed, or well.
func (x *Gangs) report(now grid.Time, g *gang, out *Outbox) {
	g.state = gangReported
	out.order(Disband{x.cfg.Self, g.id})
	end := grid.TaskEnded{ID: g.id, Result: grid.Result{Start: g.began, End: max(now, g.began+1)}}
	if g.began == 0 {
		end.Result.Start = now
	}
	switch first := g.failure; {
	case first == nil && g.task != nil:
	case first == nil || first.end.Lost:
		end = grid.TaskEnded{ID: g.id, Lost: true}
	default:
		end.Result.ExitCode, end.Result.Reason = first.end.ExitCode, first.end.Reason
		if g.kill {
			end.Result.Reason = g.cause
		} else if first.squad != nil {
			end.Result.Reason = x.whatFailed(g, first)
		}
	}
	out.order(Ended{end})
}

// whatFailed describes the task with which the end of a gang began.
func (x *Gangs) whatFailed(g *gang, first *failure) string {
	who := x.describe(g, first.squad, first.end.Number)
	if first.end.Reason != "" {
		return short(fmt.Sprintf("%s was ended: %s", who, first.end.Reason))
	}
	return short(fmt.Sprintf("%s ended with exit code %d", who, first.end.ExitCode))
}

// describe names a task of a squad for people.
func (x *Gangs) describe(g *gang, q *squad, number int) string {
	if g.task == nil {
		return fmt.Sprintf("task %d of component %d", number, q.part)
	}
	return fmt.Sprintf("task %d, of component %d at %s,", g.task.Gang.FirstOf(q.part)+number, q.part, x.cfg.name(g.task.Gang.Parts[q.part].Site))
}
