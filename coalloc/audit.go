package coalloc

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
)

// Audit returns what of a coordinator or of its components at home is not what it has to be: an attempt
// whose leases are not as far as it is, or that nothing will go on with; processors that count as taken
// and no attempt has; a claim at home that none has, or that the cluster plans to be over before it is;
// a placement queue or a view of sites that is not what a recount gives. nil: there is nothing of that
// kind. It is asked of a coordinator at rest; book is that of its site.
func Audit(now grid.Time, c *Coordinator, h *Home, book *lease.Book) error {
	get := func(id lease.ID) (lease.Lease, bool) {
		if e := h.entries[id]; e != nil {
			return e.Lease, true
		}
		return book.Get(id)
	}
	parts, open := 0, make(map[grid.SiteID]int64)
	for job, a := range c.jobs {
		asked, err := a.audit(c, get)
		if err == nil && (a.task.Job != job || c.queue.Waiting(job) != nil) {
			err = errors.New("it is known by another name, or waits to be placed as well")
		}
		if err != nil {
			return fmt.Errorf("components of job %s, epoch %d: %w", a.task.Job, a.task.Epoch, err)
		}
		parts += asked
		for i := range a.parts {
			open[a.parts[i].Site] += a.parts[i].Processors
		}
	}
	if parts != len(c.byLease) {
		return fmt.Errorf("%d leases are of components, and count as %d", parts, len(c.byLease))
	}
	if waiting := c.queue.Len() + len(c.jobs); waiting > c.queue.cfg.Max {
		return fmt.Errorf("%d jobs wait to be placed or are claimed, and at most %d may", waiting, c.queue.cfg.Max)
	}
	for site, k := range c.reckoning.sites {
		if taken := k.taken(); taken > open[site] {
			return fmt.Errorf("%d processors of %s count as taken, and components have %d", taken, site, open[site])
		}
	}
	for id, e := range h.entries {
		if err := e.audit(h.cluster, c.byLease[id] != nil); err != nil {
			return fmt.Errorf("%d processors at home for job %s, %v: %w", e.Processors, e.Subject, e.State, err)
		}
	}
	if err := c.view.audit(); err != nil {
		return err
	}
	return c.queue.audit(now)
}

// audit returns how many sites have been asked for the parts of an attempt, and what is wrong with it.
func (a *attempt) audit(c *Coordinator, get func(lease.ID) (lease.Lease, bool)) (asked int, err error) {
	var processors int64
	confirmed := 0
	for i := range a.parts {
		p := &a.parts[i]
		processors += p.Processors
		if p.Lease == (lease.ID{}) {
			continue
		}
		if asked++; asked != i+1 {
			return asked, fmt.Errorf("%s is asked before those whose turn it is", p.Site)
		}
		if p.confirmed {
			confirmed++
		}
		l, there := get(p.Lease)
		switch {
		case c.byLease[p.Lease] != a:
			return asked, fmt.Errorf("what is said of lease %d is not for it", p.Lease.Number)
		case !there || l.Lent || l.Lender != p.Site || l.Processors != p.Processors || l.Subject != a.task.Job:
			return asked, fmt.Errorf("%s has a lease of %d processors for it, which is %+v", p.Site, p.Processors, l)
		case !a.fits(p, l.State):
			return asked, fmt.Errorf("in phase %d, with its part at %s confirmed: %t, the lease is %v", a.phase, p.Site, p.confirmed, l.State)
		}
	}
	switch all := len(a.parts); {
	case all == 0 || a.waiting != nil && a.waiting.Request.Processors != processors:
		return asked, fmt.Errorf("its %d parts have %d processors", all, processors)
	case a.phase == phaseHolding && (a.waiting == nil || asked < all && !a.ordered):
		return asked, fmt.Errorf("%d of %d sites are asked", asked, all)
	case a.phase != phaseHolding && asked < all:
		return asked, fmt.Errorf("%d of %d sites were asked, and it is decided", asked, all)
	case a.phase != phaseStarted && confirmed == asked:
		return asked, errors.New("it waits for nobody")
	case a.phase == phaseHolding && a.ordered && confirmed != asked-1:
		return asked, fmt.Errorf("%d sites are asked at a time", asked-confirmed)
	}
	return asked, nil
}

// fits reports whether a lease is as far as the part of an attempt is that it is of.
func (a *attempt) fits(p *partState, s lease.State) bool {
	switch {
	case a.phase == phaseStarted || a.phase == phaseClaiming && p.confirmed:
		return s == lease.Active
	case a.phase == phaseClaiming:
		return s == lease.Claiming || s == lease.Held // until it is paid for
	case p.confirmed:
		return s == lease.Held
	}
	return s == lease.Requested
}

// taken returns how many processors of a site count as taken at least. What was given back counts for
// no shorter than what was taken before.
func (k *reckoned) taken() (taken int64) {
	for i := range k.events {
		if e := &k.events[i]; !e.refused {
			taken -= e.number
		}
	}
	return taken
}

// audit returns what is wrong with a component at home; wanted: an attempt has it.
func (e *homeLease) audit(cluster *lrms.Cluster, wanted bool) error {
	if wanted == (e.State == lease.Ending) {
		return fmt.Errorf("an attempt has them: %t", wanted)
	}
	end, runs := lrms.Ends(cluster, HomeTask(e.ID))
	if !runs {
		return errors.New("its cluster does not know of it")
	}
	last := e.Limit
	if e.State == lease.Held {
		last = e.End + e.Span
		if err := e.alarm.Check(e.End); err != nil {
			return err
		}
	}
	if end < last {
		return fmt.Errorf("it may last until %v, and its cluster plans with it until %v", last, end)
	}
	return nil
}

// audit returns what is wrong with a placement queue.
func (q *Queue) audit(now grid.Time) error {
	if len(q.index) != len(q.waiting) || len(q.aside) > 0 {
		return fmt.Errorf("%d jobs wait to be placed, %d are known, and %d sites are kept from them", len(q.waiting), len(q.index), len(q.aside))
	}
	if len(q.waiting) > 0 && q.next > now+q.cfg.Interval {
		return fmt.Errorf("%d jobs wait to be placed, and are looked at next at %v", len(q.waiting), q.next)
	}
	for i, w := range q.waiting {
		if q.index[w.Job] != w || w.placed || i > 0 && q.waiting[i-1].sequence >= w.sequence || w.After > now+BackoffMax+BackoffMax/2 {
			return fmt.Errorf("job %s is not in its place among those that wait to be placed, or waits until %v", w.Job, w.After)
		}
	}
	return nil
}

// audit returns which sum of a view is not that of its sites, or what a placement has left of its own.
func (v *View) audit() error {
	var total, most int64
	for i := range v.Sites {
		s := &v.Sites[i]
		total, most = total+s.Free, max(most, s.Processors)
		switch at, known := v.index[s.ID]; {
		case !known || int(at) != i:
			return fmt.Errorf("%s is site %d, and known as %d", s.ID, i, at)
		case s.Free < 0 || s.Free > s.Processors || v.left[i] != s.Free:
			return fmt.Errorf("%s has %d processors, %d of them idle, and %d for what is placed next", s.ID, s.Processors, s.Free, v.left[i])
		}
	}
	if total != v.total || most != v.most || len(v.index) != len(v.Sites) {
		return fmt.Errorf("%d sites have %d idle processors, the widest %d, and count as %d with %d, the widest %d", len(v.Sites), total, most, len(v.index), v.total, v.most)
	}
	return nil
}
