package market

import (
	"iter"

	"gridnode/grid"
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
