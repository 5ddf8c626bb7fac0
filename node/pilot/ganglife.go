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
		g.begin(now, out)
	case g.state == gangWaiting && now >= g.due:
		why := fmt.Sprintf("%s was not ready to start within %v", x.describe(g, waiting), (ReadyMax + g.task.Bring).Duration())
		if waiting.refused != "" {
			why += ": " + waiting.refused
		}
		x.fail(now, g, why)
		ending = true
	}
	if ending {
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

// count returns how many tasks have not ended, and the last that is not ready. The first
// that has failed makes the gang fail.
func (g *gang) count() (left int, waiting *rank) {
	for _, r := range g.ranks {
		switch {
		case r == nil:
		case r.ended == nil:
			left++
			if !r.ready {
				waiting = r
			}
		case g.failure == nil && (r.ended.Lost || r.ended.Result.ExitCode != 0 || r.ended.Result.Reason != ""):
			g.failure = r.ended
		}
	}
	return left, waiting
}

// begin starts all tasks: those elsewhere, which have the longer way, first.
func (g *gang) begin(now grid.Time, out *Outbox) {
	g.state, g.began = gangRunning, now
	var there []grid.TaskID
	for _, r := range g.ranks {
		if r.away && !r.begun {
			there = append(there, r.id)
		}
	}
	if len(there) > 0 {
		out.local(&Go{there})
	}
	for _, r := range g.ranks {
		if !r.away && !r.begun {
			out.order(Begin{r.id})
		}
	}
	for number, r := range g.ranks {
		if !r.away && !r.begun {
			out.order(StartOwn{g.taskOf(number)})
		}
		r.begun = true
	}
}

// abandonAway gives up what runs elsewhere: its leases are over.
func (g *gang) abandonAway(out *Outbox) {
	var there []grid.TaskID
	for _, r := range g.ranks {
		if r != nil && r.away && r.ended == nil {
			r.ended = &grid.TaskEnded{ID: r.id, Lost: true}
			there = append(there, r.id)
		}
	}
	if len(there) > 0 {
		out.local(&Abandon{there})
	}
}

// killAll ends the tasks that have not ended, and returns how many still have to.
func (g *gang) killAll(out *Outbox) (left int) {
	g.state = gangEnding
	cause := g.cause
	if !g.kill {
		cause = "the job ends, as another of its tasks did"
	}
	for _, r := range g.ranks {
		if r == nil || r.ended != nil {
			continue
		}
		if !r.away && !r.begun { // it never was started
			r.ended = &grid.TaskEnded{ID: r.id, Result: grid.Result{ExitCode: ExitCancelled, Reason: cause}}
			if g.failure == nil {
				g.failure = r.ended
			}
			continue
		}
		left++
		if r.killed {
			continue
		}
		r.killed = true
		task := grid.Task{ID: r.id, Cause: cause}
		if r.away {
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
		g.failure = &grid.TaskEnded{ID: g.id, Result: grid.Result{Start: now, End: now, ExitCode: ExitNoStart, Reason: short(why)}}
	}
}

// report tells the site how a gang has ended: by the first task that failed, or well.
func (x *Gangs) report(now grid.Time, g *gang, out *Outbox) {
	g.state = gangReported
	out.order(Disband{x.cfg.Self, g.id})
	end := grid.TaskEnded{ID: g.id, Result: grid.Result{Start: g.began, End: now}}
	if g.began == 0 {
		end.Result.Start = now
	}
	switch first := g.failure; {
	case first == nil && g.task != nil:
	case first == nil || first.Lost:
		end = grid.TaskEnded{ID: g.id, Lost: true}
	default:
		end.Result.ExitCode, end.Result.Reason = first.Result.ExitCode, first.Result.Reason
		if _, _, ranked := grid.GangOf(first.ID); g.kill {
			end.Result.Reason = g.cause
		} else if ranked {
			end.Result.Reason = x.whatFailed(g, first)
		}
	}
	out.order(Ended{end})
}

// whatFailed describes the task with which the end of a gang began.
func (x *Gangs) whatFailed(g *gang, first *grid.TaskEnded) string {
	_, number, _ := grid.GangOf(first.ID)
	who := x.describe(g, g.ranks[number])
	if first.Result.Reason != "" {
		return short(fmt.Sprintf("%s was ended: %s", who, first.Result.Reason))
	}
	return short(fmt.Sprintf("%s ended with exit code %d", who, first.Result.ExitCode))
}

// describe names a task for people.
func (x *Gangs) describe(g *gang, r *rank) string {
	_, number, _ := grid.GangOf(r.id)
	if g.task == nil {
		return fmt.Sprintf("task %d", number)
	}
	return fmt.Sprintf("task %d, of component %d at %s,", number, r.part, x.cfg.name(g.task.Gang.Parts[r.part].Site))
}
