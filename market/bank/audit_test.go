package bank

import (
	"testing"

	"gridnode/grid"
)

// TestAudit: what is wrong with a cheque, on either side or at its bank, is told.
func TestAudit(t *testing.T) {
	const now = grid.Hour
	task := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}
	cheque := Cheque{Bank: "bank", Payer: "payer", Payee: "payee", Task: task, Ceiling: 10, Expires: now + grid.Day}
	pays := func(change func(p *payment), outcasts ...grid.SiteID) func(d *Desk) {
		return func(d *Desk) {
			for _, site := range outcasts {
				d.outcasts.sites[site] = true
			}
			p := newPayment(cheque)
			p.state, p.wrote, p.ends = payHeld, true, now+grid.Day
			d.payments[task] = p
			d.alarms.Set(&p.due, p.ends)
			if change(p); len(outcasts) > 0 {
				d.alarms.Set(&p.due, now)
			}
		}
	}
	owed := func(change func(d *Desk, b *bill)) func(d *Desk) {
		return func(d *Desk) {
			b := newBill(cheque)
			b.Payee = d.cfg.Self
			d.bills[b.key()] = b
			d.alarms.Set(&b.due, b.Expires)
			change(d, b)
		}
	}
	holds := func(change func(l *Ledger, h *hold)) func(d *Desk) {
		return func(d *Desk) {
			h := newHold(cheque)
			h.state = holdOpen
			d.ledger.accounts[h.Payer], d.ledger.accounts[h.Payee] = newAccount(h.Payer), newAccount(h.Payee)
			d.ledger.accounts[h.Payer].Committed, d.ledger.accounts[h.Payee].Incoming = h.Ceiling, h.Ceiling
			d.ledger.add(h)
			d.ledger.alarms.Set(&h.due, h.Expires)
			change(d.ledger, h)
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(d *Desk)
		wrong bool
	}{
		{"nothing", func(*Desk) {}, false},
		{"a cheque that is held", pays(func(*payment) {}), false},
		{"one that is held and not written", pays(func(p *payment) { p.wrote = false }), true},
		{"one that is agreed to for more", pays(func(p *payment) { p.state, p.agreed = payAgreed, 11 }), true},
		{"one that is agreed to and held", pays(func(p *payment) { p.agreed = 1 }), true},
		{"one that is to be given back, as late as it ends", pays(func(p *payment) { p.state = payReturning }), true},
		{"one that is drawn, as late as it ends", pays(func(p *payment) { p.state, p.wrote = payDrawing, false }), true},
		{"a draw that does not count", pays(func(p *payment) { p.state, p.wrote = payWithdrawn, false }), true},
		{"a cheque without a timer", func(d *Desk) {
			pays(func(p *payment) { d.alarms.Stop(&p.due) })(d)
		}, true},
		{"a bank that is silent and not asked", func(d *Desk) { d.silent = true }, true},
		{"a question without a timer", func(d *Desk) { d.questions[1] = &question{until: now} }, true},
		{"a bill", owed(func(*Desk, *bill) {}), false},
		{"a bill without a timer", owed(func(d *Desk, b *bill) { d.alarms.Stop(&b.due) }), true},
		{"a bill of another", owed(func(_ *Desk, b *bill) { b.Payee = "other" }), true},
		{"one that is presented without a claim", owed(func(_ *Desk, b *bill) { b.state = billRedeeming }), true},
		{"one that is presented, as late as it ends", owed(func(d *Desk, b *bill) { b.state, b.claim = billRedeeming, d.claim(b, 1) }), true},
		{"one that is claimed and not presented", owed(func(d *Desk, b *bill) { b.claim = d.claim(b, 1) }), true},
		{"one that is claimed for more", owed(func(d *Desk, b *bill) {
			b.state, b.claim = billRedeeming, d.claim(b, 1)
			b.claim.Amount = 11
			d.alarms.Set(&b.due, now)
		}), true},
		{"one that is presented", owed(func(d *Desk, b *bill) {
			b.state, b.claim = billRedeeming, d.claim(b, 1)
			d.alarms.Set(&b.due, now)
		}), false},
		{"one with the receipt for another", owed(func(d *Desk, b *bill) {
			b.state, b.claim, b.agreement = billRedeeming, d.claim(b, 1), &Receipt{Signer: b.Payer}
			d.alarms.Set(&b.due, now)
		}), true},
		{"an open cheque", holds(func(*Ledger, *hold) {}), false},
		{"an open cheque that does not expire", holds(func(l *Ledger, h *hold) { l.alarms.Stop(&h.due) }), true},
		{"an open cheque that expires late", holds(func(l *Ledger, h *hold) { l.alarms.Set(&h.due, h.Expires+1) }), true},
		{"a spent cheque that is never forgotten", holds(func(l *Ledger, h *hold) {
			h.state = holdRedeemed
			l.accounts[h.Payer].Committed, l.accounts[h.Payee].Incoming = 0, 0
		}), true},
		{"a bill whose bank is an outcast", owed(func(d *Desk, b *bill) { d.outcasts.sites[b.Bank] = true }), true},
		{"a cheque that an outcast is asked for", pays(func(p *payment) { p.state, p.wrote = payDrawing, false }, "bank"), true},
		{"an open cheque that nobody holds", holds(func(l *Ledger, h *hold) { l.accounts[h.Payer].Committed = 0 }), true},
		{"one that is not to come", holds(func(l *Ledger, h *hold) { l.accounts[h.Payee].Incoming = 0 }), true},
		{"a cheque that does not count", holds(func(l *Ledger, h *hold) { l.accounts[h.Payer].holds = 0 }), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDesk(Config{Self: "self", Offer: true, Bank: "bank"}, 1)
			tt.spoil(d)
			if err := Audit(now, d); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLesserAmounts: a payee has earned what was paid, not what the cheque is over, and a payer owes no
// more than its payee claims.
func TestLesserAmounts(t *testing.T) {
	const now = grid.Hour
	d, out := NewDesk(Config{Self: "self", Bank: "bank"}, 1), new(grid.Outbox)
	task := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}
	d.Take(&Cheque{Bank: "bank", Payer: "payer", Payee: "self", Task: task, Ceiling: 10, Expires: now + grid.Day}, out)
	d.Release(now, "payer", task, out)
	d.Step(now, &grid.Delivery{From: "bank", Message: &Redeemed{Payer: "payer", Task: task, Paid: 3}}, out)
	if earned := d.Stats().Earned; earned != 3 {
		t.Errorf("3 were paid, and %d count as earned", int64(earned))
	}
	d.Draw(now, task, "payee", 10, grid.Hour, out)
	claim := &Receipt{Bank: "bank", Payer: "self", Payee: "payee", Task: task, Amount: 2, Signer: "payee"}
	if due := d.Due(task, "payee", claim, 5); due != 2 {
		t.Errorf("2 are claimed of 5, and %d are due", int64(due))
	}
}
