package bank

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/grid"
)

// What is settled between two sites needs the word of both. An outcast is a site that is a
// member of the federation no longer, so nobody hears its word. From then on that of the
// other side is enough: a payee is paid what it claims, a payer pays what it agrees to,
// each up to the cheque's ceiling. The cheques of a bank that is one are worth nothing.

// Outcasts is what a desk knows of outcasts, and does without their word.
type Outcasts struct {
	desk  *Desk
	sites map[grid.SiteID]bool
}

// Outcasts returns what the desk knows of outcasts.
func (d *Desk) Outcasts() *Outcasts { return d.outcasts }

// Add says that a site is an outcast, until Remove.
func (o *Outcasts) Add(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	d := o.desk
	if o.sites[site] || site == d.cfg.Self {
		return
	}
	o.sites[site] = true
	for _, b := range o.bills() {
		if b.Bank == site {
			d.unpaid(b, out)
		}
	}
	for _, p := range o.payments() {
		switch {
		case p.Bank == site && p.state == payDrawing:
			d.dropPayment(p, out)
			out.Local(&Declined{Task: p.Task, Reason: d.cfg.bankless()})
		case p.Bank == site && (p.state == payWithdrawn || p.state == payReturning):
			d.dropPayment(p, out)
		case p.Payee == site && (p.state == payAgreed || p.state == payReturning):
			p.pause = 0
			o.present(now, p, out)
		}
	}
	if site == d.cfg.Bank {
		d.heard(out) // so that nobody waits for it any more
	}
}

// Remove says that a site is a member again.
func (o *Outcasts) Remove(site grid.SiteID) { delete(o.sites, site) }

// Has reports whether a site is one.
func (o *Outcasts) Has(site grid.SiteID) bool { return o.sites[site] }

// Len returns how many sites are.
func (o *Outcasts) Len() int { return len(o.sites) }

func (c *Config) bankless() string {
	return fmt.Sprintf("this site's bank %s is a member of the federation no longer: its owner has to name another (bank.site)", c.Bank)
}

// bills returns the bills in an order that does not depend on the map.
func (o *Outcasts) bills() []*bill {
	list := make([]*bill, 0, len(o.desk.bills))
	for _, b := range o.desk.bills {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *bill) int { return strings.Compare(a.record, b.record) })
	return list
}

// payments returns the payments in the order of their tasks.
func (o *Outcasts) payments() []*payment {
	list := make([]*payment, 0, len(o.desk.payments))
	for _, p := range o.desk.payments {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *payment) int { return a.Task.Compare(b.Task) })
	return list
}

// Claim presents the cheque of a task that has cost amount, whose payer is an outcast: its
// receipt will never come.
func (o *Outcasts) Claim(now grid.Time, payer grid.SiteID, task grid.TaskID, amount grid.Credits, out *grid.Outbox) {
	d := o.desk
	if b := d.bills[key{payer, task}]; b != nil && b.state == billOpen {
		d.present(now, b, amount, nil, out)
	}
}

// Settle agrees to what a task has cost whose payee is an outcast, and has the bank pay
// that and return the rest.
func (o *Outcasts) Settle(now grid.Time, task grid.TaskID, amount grid.Credits, out *grid.Outbox) {
	p := o.desk.payments[task]
	if p == nil || p.state != payHeld {
		return
	}
	p.state, p.agreed, p.pause = payAgreed, min(max(amount, 0), p.Ceiling), 0
	out.Save(p)
	o.present(now, p, out)
}

// present presents a cheque of this site's to its bank in place of the payee, once more
// if need be. One that is not needed is worth nothing. Where the bank is the outcast there is
// nothing to be had.
func (o *Outcasts) present(now grid.Time, p *payment, out *grid.Outbox) {
	d := o.desk
	if o.sites[p.Bank] {
		d.dropPayment(p, out)
		return
	}
	c := p.Cheque
	r := &Receipt{Bank: p.Bank, Payer: p.Payer, Payee: p.Payee, Task: p.Task, Signer: d.cfg.Self}
	if p.state == payAgreed {
		r.Amount = p.agreed
	}
	r.seal(d.cfg.Seal)
	d.send(p.Bank, &Redeem{Cheque: &c, Claim: r}, out)
	d.alarms.Set(&p.due, min(d.later(now, &p.pause, drawPause, redeemMax), p.ends))
}

// redeemed is the bank's answer to present.
func (o *Outcasts) redeemed(from grid.SiteID, m *Redeemed, out *grid.Outbox) {
	d := o.desk
	p := d.payments[m.Task]
	if p == nil || p.Bank != from || p.state != payAgreed && p.state != payReturning {
		return
	}
	d.refusedBy(m.Refusal)
	switch {
	case m.Refusal == Done:
		d.stats.Paid += min(m.Paid, p.Ceiling)
		d.dropPayment(p, out)
	case m.Refusal.passing() || m.Refusal == NotPayee: // the bank may hear later than this site that the payee is an outcast
	default:
		d.dropPayment(p, out)
	}
}

// may says whose claim a cheque is paid on: that of its payee, or of its payer if the payee
// is an outcast.
func (l *Ledger) may(h *hold, by grid.SiteID) bool {
	return by == h.Payee || by == h.Payer && l.outcasts.Has(h.Payee)
}

// worth returns what a redemption is worth that one of the two sides has presented: the
// lesser of both sides' receipts, or that of who has presented it if the other is an outcast.
func (l *Ledger) worth(h *hold, by grid.SiteID, r *Redeem) (grid.Credits, Refusal) {
	switch {
	case r.Claim.Amount == 0, by == h.Payer, r.Agreement == nil && l.outcasts.Has(h.Payer):
		return r.Claim.Amount, Done
	case !r.Agreement.about(&h.Cheque, h.Payer) || r.Agreement.Amount < 0:
		return 0, NotSigned
	}
	return min(r.Claim.Amount, r.Agreement.Amount), Done
}
