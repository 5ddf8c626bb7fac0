package site

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// enqueueWide lets a job wait that is wider than the site, if there is hope: somebody is
// asked for processors, or a lease has them. A job that was taken before waits on,
// whatever has become of that hope.
func (s *Site) enqueueWide(now grid.Time, r lrms.Request, e *entry) error {
	taken := e.epoch > 1 || e.state == Queued
	if !taken && !s.matches.Delegates() && !s.holds(now, e) {
		return fmt.Errorf("%w: it wants %d processors of %d: borrow as many with 'gridnode lease request', "+
			"or set delegation.threshold and link sites, or let the market place it (--policy cheapest)", lrms.ErrTooWide, r.Processors, s.cluster.Processors())
	}
	if err := s.matches.SubmitWide(now, r, e.job.Submit); err != nil {
		return err
	}
	e.reason = fmt.Sprintf("wider than this site's %d processors: it waits for a lease of %d", s.cluster.Processors(), r.Processors)
	return nil
}

// holds reports whether a lease that was asked for by hand can run a job once its
// processors are free.
func (s *Site) holds(now grid.Time, e *entry) bool {
	for _, p := range s.pools {
		l, there := s.book.Get(p.id)
		if there && l.State == lease.Active && !p.over && l.Processors >= e.job.Processors && now.Add(s.limitOf(e)) <= l.Limit {
			return true
		}
	}
	return false
}
