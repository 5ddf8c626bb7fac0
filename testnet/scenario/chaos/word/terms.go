package word

import (
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/gpu"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet/scenario"
)

// offers checks a guarantee against what its site runs at all, and what it charges.
func (w *Watch) offers(o *word, m *market.Reply, a *market.Negotiate) {
	cfg := w.site(o.at)
	switch {
	case !runs(cfg, o.to, a.Module):
		w.Checks.Violated("%s promises job %s to %s, and runs none of it", o.from, m.Task.Job, o.to)
	case !wide(cfg, a):
		w.Checks.Violated("%s promises job %s to %s, which needs %d processors with %d bytes each, and has %d with %d", o.from, m.Task.Job, o.to, a.Processors, a.Memory, cfg.Processors, cfg.Memory)
	case m.Cost != cost(cfg, a, m.Price):
		w.Checks.Violated("%s promises job %s to %s for %v, at a price of %v that is %v", o.from, m.Task.Job, o.to, m.Cost, m.Price, cost(cfg, a, m.Price))
	case m.Cost > 0 && !accepts(cfg, a.Bank):
		w.Checks.Violated("%s promises job %s to %s for a cheque of %s, which it does not accept", o.from, m.Task.Job, o.to, a.Bank)
	}
}

// refuses checks that what a site says against a job is so.
func (w *Watch) refuses(o *word, m *market.Reply) {
	a, known := w.asks[request{o.to, o.from, m.Task, m.Request}]
	if !known {
		return
	}
	cfg, lie := w.site(o.at), false
	switch m.Refusal {
	case market.NoForeign:
		lie = a.Module || runs(cfg, o.to, false)
	case market.NoModules:
		lie = !a.Module || runs(cfg, o.to, true)
	case market.TooWide:
		lie = wide(cfg, &a)
	case market.NoGPUs:
		idle, err := gpu.New(cfg.GPUs)
		lie = err == nil && idle.Stock(o.local).Has(a.GPUs)
	case market.PriceChanged:
		lie = cost(cfg, &a, a.GPUs.Price(m.Price, a.Processors, cfg.GPUWeight)) <= a.CostMax
	case market.Unpaid:
		lie = accepts(cfg, a.Bank) && cfg.Members.Federation == nil // an outcast's cheques are worth nothing
	case market.ByRule:
		lie = w.welcomes(o.at)
	case market.TooLate:
		lie = m.Finish <= a.Deadline
	}
	if lie {
		w.Checks.Violated("%s refuses job %s of %s (%s), and asked for was %+v", o.from, m.Task.Job, o.to, m.Refusal, a)
	}
}

// idle checks what a site says of its processors as it answers.
func (w *Watch) idle(o *word, free int64) {
	if of := w.site(o.at).Processors; free+w.Checks.Used(o.at) > of {
		w.Checks.Violated("%s says to %s that %d of its %d processors are idle, and jobs run on %d", o.from, o.to, free, of, w.Checks.Used(o.at))
	}
}

// denies checks that what a lender says against a lease is so.
func (w *Watch) denies(o *word, m *lease.Refuse) {
	l := w.wants[loan{o.to, o.from, m.Number}]
	if l == nil {
		return
	}
	cfg, lie := w.site(o.at), false
	s, up := scenario.SiteAt(w.N, o.at)
	switch m.Reason {
	case lease.Dear:
		lie = l.Most == 0 || m.Price <= l.Most
	case lease.Unpaid:
		lie = l.Bank != "" && accepts(cfg, l.Bank) && cfg.Members.Federation == nil
	case lease.Loop:
		lie = l.Sink != o.from
	case lease.TooLate:
		lie = l.Within == 0
	case lease.Denied:
		lie = cfg.Lease.Lend && up && !s.Draining()
	case lease.ByRule:
		lie = w.welcomes(o.at)
	}
	few := m.Lends > 0 && m.Reason == lease.TooWide && l.Processors <= m.Lends
	many := m.Reason != lease.Busy && m.Lends > w.lends(o.at) // who is busy leaves the rules for guests out
	if lie || few || many {
		w.Checks.Violated("%s does not lend to %s (%s; at once at most %d), and asked for was %+v", o.from, o.to, m.Reason, m.Lends, l.Request)
	}
}

// lends returns how many processors the owner of a site lets any other one have at a time.
func (w *Watch) lends(at int) int64 {
	cfg := w.site(at)
	most, bounds := cfg.Processors, []int64{cfg.Lease.Most}
	for _, r := range cfg.Guests.Rules {
		bounds = append(bounds, r.Processors, r.Lent)
	}
	for _, bound := range bounds {
		if bound > 0 {
			most = min(most, bound)
		}
	}
	return most
}

// welcomes reports whether nothing that the owner of a site has said is against any other site.
func (w *Watch) welcomes(at int) bool {
	s, up := scenario.SiteAt(w.N, at)
	return up && !s.Draining() && len(s.GuestDesk().Config().Rules) == 0 && len(s.GuestDesk().Bans()) == 0
}

// runs reports whether a site runs what another one has, modules or anything else.
func runs(cfg *site.Config, of grid.SiteID, module bool) bool {
	return cfg.Head == of || module && cfg.Modules || !module && cfg.Foreign
}

// wide reports whether a site is as large as a job needs it.
func wide(cfg *site.Config, a *market.Negotiate) bool {
	return a.Processors <= cfg.Processors && (cfg.Memory == 0 || a.Memory <= cfg.Memory)
}

// accepts reports whether a site takes the cheques of a bank that is a member.
func accepts(cfg *site.Config, bank grid.SiteID) bool {
	return len(cfg.Bank.Accept) == 0 || slices.Contains(cfg.Bank.Accept, bank)
}

// cost is what a site charges for what was asked for, at a price.
func cost(cfg *site.Config, a *market.Negotiate, price grid.Price) grid.Credits {
	job := grid.Job{Resources: grid.Resources{Processors: a.Processors}, Work: a.Work}
	return job.CostAt(cfg.Rating, price, cfg.Cost)
}
