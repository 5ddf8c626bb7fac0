package pilot

import (
	"fmt"

	"gridnode/grid"
)

// auditLate is how long after it was due something may wait still: a timer may be late.
const auditLate = grid.Second

// Audit returns what is wrong with a core that is at rest, between two Steps; nil: nothing is.
//
//   - What the pilots that it keeps for others count is what their tasks have, and not more than
//     the lease; no order waits for a pilot that nobody dials; what is told to start and is ready
//     has started.
//   - Of each task of its own that runs elsewhere, what it needs is ordered in the present session,
//     or a timer has it asked for again.
//   - Each gang waits for something that comes: for tasks to be ready, with a timer; for their
//     ends, each of them on its way or ordered; for its outputs. What counts as ready is.
func (c *Core) Audit(now grid.Time) error {
	if err := c.keeper.audit(); err != nil {
		return err
	}
	if err := c.user.audit(now); err != nil {
		return err
	}
	for id, g := range c.gangs.all {
		err := g.audit(now)
		for _, q := range g.squads {
			if err == nil && q != nil && q.away && g.state != gangFound && !q.roll.isOver() {
				err = q.audit(c.user.tasks[q.id])
			}
		}
		if err != nil {
			return fmt.Errorf("job %s, epoch %d: %w", id.Job, id.Epoch, err)
		}
	}
	return nil
}

// audit looks at the pilots of a lender.
func (k *Keeper) audit() error {
	pilots := make(map[*borrower]int)
	for key, p := range k.pilots {
		if err := p.audit(); err != nil {
			return fmt.Errorf("pilot %d: %w", key, err)
		}
		pilots[p.borrower]++
	}
	for id, b := range k.borrowers {
		if b.pilots != pilots[b] || b.pilots == 0 {
			return fmt.Errorf("%s has %d pilots here, and counts as having %d", id, pilots[b], b.pilots)
		}
	}
	return nil
}

func (p *kept) audit() error {
	used, unknown := int64(0), 0
	for id, t := range p.tasks {
		if err := t.audit(p); err != nil {
			return fmt.Errorf("job %s, epoch %d, %w", id.Job, id.Epoch, err)
		}
		used += t.processors
		if t.unknown {
			unknown++
		}
	}
	switch {
	case used != p.used || used > p.processors:
		return fmt.Errorf("%d of %d processors count as used, its tasks have %d", p.used, p.processors, used)
	case unknown != p.unknown:
		return fmt.Errorf("of %d tasks it is not known how many processors they take, and %d count as such", unknown, p.unknown)
	case len(p.waiting) > 0 && p.state != keptDialled:
		return fmt.Errorf("%d orders wait for it, and nobody dials it", len(p.waiting))
	}
	return nil
}

func (t *held) audit(p *kept) error {
	switch {
	case t.isOver() && (t.processors != 0 || t.unknown):
		return fmt.Errorf("is over and has %d processors", t.processors)
	case !t.isOver() && p.state != keptUp:
		return fmt.Errorf("counts as there, and its pilot is not")
	case t.task != nil && t.processors != t.task.Job.Processors:
		return fmt.Errorf("needs %d processors and has %d", t.task.Job.Processors, t.processors)
	case t.state == heldReady && t.goes:
		return fmt.Errorf("was told to start, is ready, and has not started")
	}
	return nil
}

// audit looks at what runs elsewhere.
func (u *User) audit(now grid.Time) error {
	for id, t := range u.tasks {
		l := t.link
		if u.links[l.site] != l || l.tasks[id] != t {
			return fmt.Errorf("job %s, epoch %d, runs at %s, to which there is no link for it", id.Job, id.Epoch, l.site)
		}
		if err := t.audit(now); err != nil {
			return fmt.Errorf("job %s, epoch %d, runs at %s: %w", id.Job, id.Epoch, l.site, err)
		}
	}
	for site, l := range u.links {
		waits := l.state == linkPaused
		if set := l.alarm.IsSet(); len(l.tasks) == 0 || waits && (!set || l.alarm.At() > now+PauseMax || l.alarm.At()+auditLate < now) {
			return fmt.Errorf("%d tasks run at %s, to which it is to be connected again at %v (%t)", len(l.tasks), site, l.alarm.At(), set)
		}
	}
	return nil
}

func (t *away) audit(now grid.Time) error {
	l, want := t.link, t.wants()
	switch {
	case t.safe != 0 && !t.over:
		return fmt.Errorf("its end is acknowledged, and it is not over")
	case l.state != linkConnected && t.sent != 0:
		return fmt.Errorf("order %d counts as sent, and there is no session", t.sent)
	case l.state != linkConnected || want == 0 || want == t.sent:
		return nil
	case t.retry+auditLate < now || !l.alarm.SetBy(t.retry):
		return fmt.Errorf("it needs order %d, has last been sent %d, and nothing has that change", want, t.sent)
	}
	return nil
}

// audit looks at what a gang waits for.
func (g *gang) audit(now grid.Time) error {
	if g.state == gangFound && !g.kill || g.state >= gangCollecting {
		return nil
	}
	left, unready, unkilled := 0, 0, 0
	for _, q := range g.squads {
		if q == nil {
			continue
		}
		if q.roll.failed && g.failure == nil {
			return fmt.Errorf("a task of component %d has failed, and the others go on", q.part)
		}
		if q.roll.isOver() {
			continue
		}
		left++
		if !q.ready {
			unready++
		}
		if !q.killed {
			unkilled++
		}
	}
	switch {
	case left == 0:
		return fmt.Errorf("all of its tasks have ended, and it is not over")
	case g.state != gangEnding && (g.kill || g.failure != nil):
		return fmt.Errorf("it is to end, and goes on")
	case g.state == gangEnding && unkilled > 0:
		return fmt.Errorf("it is to end, and %d of its components were not told", unkilled)
	case g.state == gangWaiting && unready == 0:
		return fmt.Errorf("all of its tasks are ready, and it has not started")
	case g.state == gangWaiting && now > g.due.Add(auditLate):
		return fmt.Errorf("it waits for its tasks to be ready, and was to until %v", g.due)
	case g.alarm.IsSet() != (g.state == gangWaiting) || g.alarm.IsSet() && g.alarm.At() != g.due:
		return fmt.Errorf("it waits for its tasks to be ready until %v, and its timer is for %v (%t)", g.due, g.alarm.At(), g.alarm.IsSet())
	}
	return nil
}

// audit compares a squad elsewhere that is not over with the task that it is there.
func (q *squad) audit(t *away) error {
	switch {
	case t == nil:
		return fmt.Errorf("component %d is to end, and nothing of it runs anywhere", q.part)
	case t.over:
		return fmt.Errorf("component %d is over, and counts as running", q.part)
	case q.begun && t.held:
		return fmt.Errorf("component %d was to start, and is held", q.part)
	case q.killed && !t.kill:
		return fmt.Errorf("component %d was to end, and goes on", q.part)
	case q.ready && t.held && !t.kill && (t.link.state != linkConnected || t.sent != OrderPrepare):
		return fmt.Errorf("component %d counts as ready, and its site was not asked in this session, or has refused it", q.part)
	}
	return nil
}
