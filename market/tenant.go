package market

import (
	"fmt"
	"iter"
	"maps"

	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/market/fee"
)

// Guests is what the owner's rules say of the sites that ask for something here.
type Guests interface {
	// Price returns what another site is charged where the price is so much.
	Price(of grid.SiteID, price grid.Price) grid.Price
	// Admit reports whether another site may have that run here.
	Admit(now grid.Time, from grid.SiteID, w *Work) bool
	// Promise reports whether it may run from start to end.
	Promise(now grid.Time, from grid.SiteID, w *Work, start, end grid.Time) bool
}

// Work is what a site asks to have run, or, with Job, what it has sent then.
type Work struct {
	Processors int64
	Memory     int64     // bytes for each; 0: not said
	Span       grid.Time // that it may take here
	Module     bool
	GPUs       int64
	Probe      bool      // it only wants to know
	Job        *grid.Job // nil: not shown yet
}

// priceFor returns what a site is charged at the moment.
func (o *office) priceFor(site grid.SiteID) grid.Price {
	if o.guests == nil {
		return o.tariff.price
	}
	return o.guests.Price(site, o.tariff.price)
}

// loadFor returns what a site is told with every reply.
func (o *office) loadFor(now grid.Time, site grid.SiteID) Load {
	l := o.load(now)
	l.Price = o.priceFor(site)
	return l
}

// Tenant is what one site has here: guarantees that it may take up, and jobs that are not
// over.
type Tenant struct {
	Jobs       int64
	Processors int64
	GPUs       int64
}

// tenants is what sites have here, those that have nothing left out.
type tenants map[grid.SiteID]Tenant

// enter counts a job of a site, with sign 1 as it comes and -1 as it goes.
func (t tenants) enter(site grid.SiteID, sign, processors, gpus int64) {
	u := t[site]
	u.Jobs += sign
	u.Processors += sign * processors
	u.GPUs += sign * gpus
	if u == (Tenant{}) {
		delete(t, site)
		return
	}
	t[site] = u
}

// UseGuests makes the agent ask for the owner's rules. It is called before any Step.
func (a *Agent) UseGuests(g Guests) { a.office.guests = g }

// Tenants yields what other sites have here, in no particular order.
func (a *Agent) Tenants() iter.Seq2[grid.SiteID, Tenant] {
	return func(yield func(grid.SiteID, Tenant) bool) {
		for site, u := range a.provider.admission.tenants {
			if !yield(site, u) {
				return
			}
		}
	}
}

// Guarantee is one that this site has given, and for which no job has come yet.
type Guarantee struct {
	Task grid.TaskID
	Home grid.SiteID
	Hold uint64 // its name

	Processors int64
}

// Guarantees yields those of this site, in no particular order.
func (a *Agent) Guarantees(yield func(Guarantee) bool) {
	for _, h := range a.provider.admission.holds {
		if !yield(Guarantee{h.task, h.home, h.token, h.processors}) {
			return
		}
	}
}

// DeadFrom returns which execution of a job of this site's another site has, or is about to get, and from
// when on none can be alive there unless that is heard of before; Never if its own end alone says so.
// ok is false if there is none.
func DeadFrom(a *Agent, job grid.JobID) (task grid.TaskID, site grid.SiteID, dead grid.Time, ok bool) {
	m := a.away.jobs[job]
	if m == nil {
		return grid.TaskID{}, "", 0, false
	}
	return m.task(), m.award.Site, m.dead, true
}

// stake is what an acquaintance counts of one site, on both sides of the trade.
type stake struct {
	holds    int // guarantees given to it
	held     int64
	underWay int // negotiations and submissions
	asked    int64
	area     int64
}

// Audit returns which count of what other sites have here, or are asked for, is not what the
// guarantees, jobs and negotiations come to, or what is kept for a job that is not here or is
// over; nil: there is nothing of that kind.
func (a *Agent) Audit() error {
	if err := a.auditStakes(); err != nil {
		return err
	}
	s := &a.provider
	have := make(tenants)
	for _, h := range s.admission.holds {
		have.enter(h.home, 1, h.processors, h.gpus.Count)
	}
	for _, r := range s.jobs {
		if !r.over {
			have.enter(r.home, 1, r.width, r.gpus)
		}
	}
	if counted := s.admission.tenants; !maps.Equal(have, counted) {
		return fmt.Errorf("other sites have %v here, and count as %v", have, counted)
	}
	for home, task := range s.held.Each {
		if r := s.jobs[task.Job]; r == nil || r.task != task || r.home != home || r.over {
			return fmt.Errorf("job %s of %s is held under a lease with epoch %d, and does not run here", task.Job, home, task.Epoch)
		}
	}
	if s.desk == nil {
		return nil
	}
	for payer, task := range bank.Unpresented(s.desk) {
		if _, yes := fee.IsFee(task); yes {
			continue // it pays for a lease
		}
		if r := s.jobs[task.Job]; r == nil || r.task != task || r.home != payer {
			return fmt.Errorf("a cheque of %s is kept for job %s, epoch %d, which is not here", payer, task.Job, task.Epoch)
		}
	}
	return nil
}

// auditStakes compares what each acquaintance counts with a recount.
func (a *Agent) auditStakes() error {
	stakes := make(map[grid.SiteID]stake)
	for _, h := range a.provider.admission.holds {
		k := stakes[h.home]
		k.holds, k.held = k.holds+1, k.held+h.processors
		stakes[h.home] = k
	}
	for _, p := range a.broker.placing {
		for i := range p.asks {
			q := &p.asks[i]
			k := stakes[q.site]
			switch q.standing {
			case StandingAsked:
				k.underWay, k.asked, k.area = k.underWay+1, k.asked+q.processors, k.area+areaOf(q.processors, q.span)
			case StandingGranted:
				k.underWay++
			}
			stakes[q.site] = k
		}
	}
	for _, m := range a.away.jobs {
		if m.slot != nil {
			k := stakes[m.slot.site]
			k.underWay++
			stakes[m.slot.site] = k
		}
	}
	unproven := int64(0)
	for site, e := range a.office.memory.sites {
		if counted := (stake{e.holds, e.held, e.underWay, e.processors, e.area}); counted != stakes[site] {
			return fmt.Errorf("%s has and is asked for %+v, and counts as %+v", site, stakes[site], counted)
		}
		if !e.proven {
			unproven += e.held
		}
	}
	if counted := a.provider.admission.unproven; counted != unproven {
		return fmt.Errorf("%d processors are held for sites that are not proven, and count as %d", unproven, counted)
	}
	return nil
}
