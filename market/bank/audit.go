package bank

import (
	"fmt"

	"gridnode/grid"
)

// Audit returns which cheque of a desk is not what its state says, or waits for something that no
// timer will ask for again, or soon enough; nil: there is none. It is asked of a desk at rest.
func Audit(now grid.Time, d *Desk) error {
	if d == nil {
		return nil
	}
	probes := 0
	for _, p := range d.payments {
		if p.state == payWithdrawn {
			probes++
		}
		if err := p.audit(now, d); err != nil {
			return fmt.Errorf("cheque for job %s, epoch %d, to %s: %w", p.Task.Job, p.Task.Epoch, p.Payee, err)
		}
	}
	if probes != d.probes {
		return fmt.Errorf("%d draws find out when the bank is back, and count as %d", probes, d.probes)
	}
	if d.silent && probes == 0 {
		return fmt.Errorf("its bank counts as silent, and is not asked")
	}
	for _, b := range d.bills {
		if err := b.audit(now, d); err != nil {
			return fmt.Errorf("cheque of %s for job %s, epoch %d: %w", b.Payer, b.Task.Job, b.Task.Epoch, err)
		}
	}
	for _, q := range d.questions {
		if err := q.due.Check(q.until); err != nil {
			return fmt.Errorf("a question to %s: %w", q.bank, err)
		}
	}
	if d.ledger != nil {
		return d.ledger.auditHolds(now)
	}
	return nil
}

// spreadOf is a pause with what Desk.later adds to it.
func spreadOf(pause grid.Time) grid.Time { return pause + pause/4 }

func (p *payment) audit(now grid.Time, d *Desk) error {
	written := p.state == payHeld || p.state == payAgreed || p.state == payReturning
	switch {
	case d.outcasts.Has(p.Bank) && p.state != payHeld && p.state != payAgreed:
		return fmt.Errorf("its bank is a member of the federation no longer, and is asked, in state %d", p.state)
	case written != p.wrote:
		return fmt.Errorf("it is written: %t, in state %d", p.wrote, p.state)
	case p.agreed < 0 || p.agreed > p.Ceiling || p.agreed > 0 && p.state != payAgreed:
		return fmt.Errorf("%v are agreed of %v, in state %d", p.agreed, p.Ceiling, p.state)
	}
	latest := p.ends
	switch p.state {
	case payDrawing:
		latest = now + drawMax
	case payWithdrawn:
		latest = now + spreadOf(probeMax)
	case payReturning:
		latest = min(latest, now+spreadOf(redeemMax))
	}
	return p.due.Check(latest)
}

func (b *bill) audit(now grid.Time, d *Desk) error {
	latest := b.Expires.Add(grid.Day)
	if b.state == billRedeeming {
		latest = max(min(latest, now+spreadOf(redeemMax)), now+drawPause)
	}
	switch {
	case d.outcasts.Has(b.Bank):
		return fmt.Errorf("its bank is a member of the federation no longer")
	case b.Payee != d.cfg.Self:
		return fmt.Errorf("it is for %s", b.Payee)
	case (b.state == billRedeeming) != b.claim.about(&b.Cheque, d.cfg.Self):
		return fmt.Errorf("it is claimed: %+v, in state %d", b.claim, b.state)
	case b.claim != nil && (b.claim.Amount < 0 || b.claim.Amount > b.Ceiling):
		return fmt.Errorf("%v are claimed of %v", b.claim.Amount, b.Ceiling)
	case b.agreement != nil && !b.agreement.about(&b.Cheque, b.Payer):
		return fmt.Errorf("its payer's receipt is about something else: %+v", b.agreement)
	}
	return b.due.Check(latest)
}

// auditHolds returns which cheque of a bank will not be forgotten when it is to be, or whose cheques
// are miscounted.
func (l *Ledger) auditHolds(now grid.Time) error {
	count, sums := make(map[grid.SiteID]int), make(map[grid.SiteID]Balance)
	for _, h := range l.holds {
		count[h.Payer]++
		if h.state == holdOpen {
			payer, payee := sums[h.Payer], sums[h.Payee]
			payer.Committed, payee.Incoming = payer.Committed+h.Ceiling, payee.Incoming+h.Ceiling
			sums[h.Payer], sums[h.Payee] = payer, payee
		}
		latest := now + 2*closedKeep // its clock may have been set back since
		if h.state == holdOpen {
			latest = h.Expires
		}
		if err := h.due.Check(latest); err != nil {
			return fmt.Errorf("cheque of %s for job %s, epoch %d, in state %d: %w", h.Payer, h.Task.Job, h.Task.Epoch, h.state, err)
		}
	}
	for site, a := range l.accounts {
		if a.holds != count[site] {
			return fmt.Errorf("%s has %d cheques here, and counts as having %d", site, count[site], a.holds)
		}
		if is := sums[site]; a.Committed != is.Committed || a.Incoming != is.Incoming {
			return fmt.Errorf("open cheques of %s and to it come to %v and %v, and count as %v and %v", site, is.Committed, is.Incoming, a.Committed, a.Incoming)
		}
	}
	return nil
}
