package market

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// AuditTimers returns what an agent waits for, as home or as executing site, without a timer that ends
// the wait or asks again in time; nil: there is nothing of that kind. It is asked of an agent at rest.
func AuditTimers(now grid.Time, a *Agent) error {
	for _, h := range a.provider.admission.holds {
		if !h.timer.IsSet() || h.timer.At() != h.expires {
			return fmt.Errorf("guarantee %d for job %s of %s ends at %v, and no timer does it", h.token, h.task.Job, h.home, h.expires)
		}
	}
	for _, r := range a.provider.jobs {
		if r.over && !r.timer.SetBy(now+spreadOf(backoffResult)) {
			return fmt.Errorf("job %s of %s, epoch %d, is over, and its home will not be told", r.task.Job, r.home, r.task.Epoch)
		}
	}
	if err := a.provider.held.Audit(now); err != nil {
		return err
	}
	for _, m := range a.away.jobs {
		if err := m.audit(now); err != nil {
			return fmt.Errorf("job %s at %s, epoch %d, in phase %d: %w", m.job.ID, m.award.Site, m.award.Epoch, m.phase, err)
		}
	}
	for _, p := range a.broker.placing {
		if err := p.audit(now); err != nil {
			return fmt.Errorf("job %s, epoch %d, is being placed: %w", p.job.ID, p.epoch, err)
		}
	}
	return nil
}

// spreadOf is a pause with what backoff.next adds to it.
func spreadOf(pause grid.Time) grid.Time { return pause + pause/4 }

// audit returns whether the site of a job will be asked, and the job be taken for lost, in time.
func (m *migrated) audit(now grid.Time) error {
	latest := m.until()
	switch {
	case m.lastCall:
		latest = now + lastCallSpan
	case m.phase == paying:
		latest = grid.Never
	case m.phase != running:
		latest = min(latest, now+spreadOf(backoffMax))
	}
	switch {
	case !m.timer.SetBy(latest):
		return fmt.Errorf("no timer is set to %v or before", latest)
	case m.award.Lease > 0 && m.dead == grid.Never:
		return fmt.Errorf("it has a lease, and would be waited for for ever")
	}
	return nil
}

// audit returns whether something will go on with a placement.
func (p *placement) audit(now grid.Time) error {
	if e := p.waiting; e != nil {
		if e.underWay == 0 && !e.freed || !slices.Contains(e.waiting.list, p) {
			return fmt.Errorf("it waits for its turn at %s, where %d are under way, and nobody will tell it", e.site, e.underWay)
		}
		return nil
	}
	latest := grid.Time(-1)
	if p.paging.finding || p.pausing {
		latest = p.wakeAt
	}
	for i := range p.asks {
		if k := &p.asks[i]; k.standing == StandingAsked {
			latest = max(latest, k.deadline)
		}
	}
	switch {
	case latest < 0:
		return fmt.Errorf("it waits for nothing")
	case !p.timer.SetBy(latest):
		return fmt.Errorf("no timer is set to %v or before", latest)
	}
	return nil
}
