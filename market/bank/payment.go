package bank

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// payment is a cheque that this site wants, has, or had: home's side of it.
type payment struct {
	Cheque // terms from the start; Expires and Sealed once it is written
	state  payState
	wrote  bool // the cheque is here
	agreed grid.Credits
	ends   grid.Time // nothing can come of it any more, on our clock
	began  grid.Time
	pause  grid.Time
	due    grid.Alarm[any]
	record string // key
}

// payState numbers are stored: append only.
type payState uint8

const (
	payDrawing   payState = iota + 1 // a job waits for the cheque
	payHeld                          // it goes with the job
	payAgreed                        // the job has ended; agreed is what home has signed
	payWithdrawn                     // it may have been written, and nobody needs it
	payReturning                     // it is written, nobody needs it, and the payee is asked to give it back
)

// paymentPrefix is where payments are stored.
const paymentPrefix = "bank/payment/"

func newPayment(c Cheque) *payment {
	p := &payment{Cheque: c, record: fmt.Sprintf("%s%s/%d", paymentPrefix, c.Task.Job, c.Task.Epoch)}
	p.due.Owner = p
	return p
}

// RecordKey implements grid.Record.
func (p *payment) RecordKey() string { return p.record }

// AppendRecord implements grid.Record.
func (p *payment) AppendRecord(dst []byte) []byte {
	c := p.Cheque
	c.Expires = max(c.Expires, 1) // not known before it is written
	return appendProto(dst, &wirepb.BankPaymentRecord{
		Cheque: c.proto(), Sealed: p.Sealed, State: uint32(p.state), Agreed: int64(p.agreed), Ends: int64(p.ends), Written: p.wrote,
	})
}

// Draw asks the bank for a cheque that a job waits for. Written or Declined follows.
// lifetime is the span after which nothing of the job can be left at the payee; the
// cheque lives on for Grace. The same task must not be drawn for twice.
func (d *Desk) Draw(now grid.Time, task grid.TaskID, payee grid.SiteID, ceiling grid.Credits, lifetime grid.Time, out *grid.Outbox) {
	switch {
	case d.outcasts.Has(d.cfg.Bank):
		out.Local(&Declined{Task: task, Reason: d.cfg.bankless()})
		return
	case d.silent:
		out.Local(&Declined{Task: task, Silent: true, Reason: d.cfg.silence()})
		return
	case len(d.payments) >= paymentsMax:
		out.Local(&Declined{Task: task, Reason: fmt.Sprintf("this site has %d cheques that are not settled, its limit", len(d.payments))})
		return
	}
	p := newPayment(Cheque{Bank: d.cfg.Bank, Payer: d.cfg.Self, Payee: payee, Task: task, Ceiling: ceiling})
	p.state, p.began = payDrawing, now
	p.ends = now.Add(min(lifetime.Add(Grace), lifetimeMax)).Add(grid.Day)
	d.payments[task] = p
	out.Save(p) // a cheque that is written is known here, whatever happens
	d.draw(now, p, out)
}

func (c *Config) silence() string {
	return fmt.Sprintf("waiting for bank %s, which does not answer", c.Bank)
}

// draw asks for the cheque, once more if need be.
func (d *Desk) draw(now grid.Time, p *payment, out *grid.Outbox) {
	lifetime := max(min(p.ends-grid.Day-now, lifetimeMax), 1)
	longest, at := drawMax, grid.Never
	if p.state == payWithdrawn {
		longest = probeMax
	} else {
		at = p.began.Add(drawMax)
	}
	d.send(p.Bank, &Draw{Task: p.Task, Payee: p.Payee, Ceiling: p.Ceiling, Lifetime: lifetime, Withdrawn: p.state == payWithdrawn}, out)
	d.alarms.Set(&p.due, min(d.later(now, &p.pause, drawPause, longest), at))
}

// drawn is the bank's answer.
func (d *Desk) drawn(now grid.Time, from grid.SiteID, m *Drawn, out *grid.Outbox) {
	p := d.payments[m.Task]
	if p == nil || p.Bank != from || p.state != payDrawing && p.state != payWithdrawn {
		return
	}
	wanted := p.state == payDrawing
	c := m.Cheque
	if m.Refusal == Done && (c.Bank != p.Bank || c.Payer != p.Payer || c.Payee != p.Payee || c.Task != p.Task || c.Ceiling != p.Ceiling) {
		return // not what was asked for: a bank that does not answer
	}
	d.refusedBy(m.Refusal)
	d.heard(out)
	switch {
	case m.Refusal == Done:
		d.probing(p, false, out)
		p.Cheque, p.wrote, p.pause = *c, true, 0
		if wanted {
			p.state = payHeld
			d.alarms.Set(&p.due, p.ends)
			out.Local(&Written{Task: p.Task})
		} else {
			p.state = payReturning
			d.giveBack(now, p, out)
		}
		out.Save(p)
	case wanted:
		reason := fmt.Sprintf("bank %s refuses a cheque: %v", p.Bank, m.Refusal)
		if m.Refusal == NoFunds {
			reason = fmt.Sprintf("insufficient funds at bank %s: balance %v credits, of which %v are held; %v needed",
				p.Bank, m.Settled+m.Committed, m.Committed, p.Ceiling)
		}
		d.withdraw(now, p, out) // another copy of the draw may come when there are funds
		out.Local(&Declined{Task: p.Task, Reason: reason})
	case m.Refusal.passing() || m.Refusal == NoFunds: // whether it is written is not known yet: another copy of the first draw may find funds
	default:
		d.dropPayment(p, out)
	}
}

// heard notes that the bank answers.
func (d *Desk) heard(out *grid.Outbox) {
	if d.silent {
		d.silent = false
		out.Local(&Back{})
	}
}

// probing counts p among the draws that find out when the bank is back, or not any
// more. Without any the bank is given the benefit of the doubt.
func (d *Desk) probing(p *payment, yes bool, out *grid.Outbox) {
	if was := p.state == payWithdrawn; was == yes {
		return
	}
	if yes {
		d.probes++
		return
	}
	if d.probes--; d.probes == 0 {
		d.heard(out)
	}
}

// paymentDue repeats what was not answered, or ends it.
func (d *Desk) paymentDue(now grid.Time, p *payment, out *grid.Outbox) {
	switch {
	case now >= p.ends:
		d.dropPayment(p, out)
	case p.state == payDrawing && now >= p.began.Add(drawMax):
		d.unanswered(now, p, out)
	case p.state == payDrawing, p.state == payWithdrawn:
		d.draw(now, p, out)
	case p.state == payReturning:
		d.giveBack(now, p, out)
	case p.state == payAgreed && d.outcasts.Has(p.Payee):
		d.outcasts.present(now, p, out)
	default:
		d.alarms.Set(&p.due, p.ends)
	}
}

// unanswered: the bank does not answer, and the job waits for it no longer.
func (d *Desk) unanswered(now grid.Time, p *payment, out *grid.Outbox) {
	d.silent = true
	d.withdraw(now, p, out)
	out.Local(&Declined{Task: p.Task, Silent: true, Reason: d.cfg.silence()})
}

// undelivered: a bank that certainly cannot be reached is not waited for. Everything
// else is repeated by timers.
func (d *Desk) undelivered(now grid.Time, in *grid.Undelivered, out *grid.Outbox) {
	if m, ok := in.Message.(*Draw); ok {
		if p := d.payments[m.Task]; p != nil && p.Bank == in.To && p.state == payDrawing {
			d.unanswered(now, p, out)
		}
	}
}

// withdraw finds out whether a cheque that nobody needs was written.
func (d *Desk) withdraw(now grid.Time, p *payment, out *grid.Outbox) {
	d.probing(p, true, out)
	p.state, p.pause = payWithdrawn, 0
	out.Save(p)
	d.draw(now, p, out)
}

// giveBack asks the payee to give a cheque back; if that is an outcast, the bank.
func (d *Desk) giveBack(now grid.Time, p *payment, out *grid.Outbox) {
	if d.outcasts.Has(p.Payee) || d.outcasts.Has(p.Bank) {
		d.outcasts.present(now, p, out)
		return
	}
	c := p.Cheque
	d.send(p.Payee, &Return{&c}, out)
	d.alarms.Set(&p.due, min(d.later(now, &p.pause, drawPause, redeemMax), p.ends))
}

func (d *Desk) dropPayment(p *payment, out *grid.Outbox) {
	d.alarms.Stop(&p.due)
	delete(d.payments, p.Task)
	out.Delete(p)
	d.probing(p, false, out)
}

// Cheque returns the cheque that pays for a task, nil if there is none (yet). It
// must not be changed.
func (d *Desk) Cheque(task grid.TaskID) *Cheque {
	if p := d.payments[task]; p != nil && p.wrote {
		c := p.Cheque
		return &c
	}
	return nil
}

// Unwanted says that nothing will be paid for a task: its execution does not exist,
// or its result came too late. A task without a payment is none of our business.
func (d *Desk) Unwanted(now grid.Time, task grid.TaskID, out *grid.Outbox) {
	p := d.payments[task]
	switch {
	case p == nil:
	case p.state == payDrawing:
		d.withdraw(now, p, out)
	case p.state == payHeld:
		p.state, p.pause = payReturning, 0
		out.Save(p)
		d.giveBack(now, p, out)
	}
}

// Due returns what a task at payee costs that may cost up to cost: what payee has
// signed, if that is less, and nothing if it has not signed.
func (d *Desk) Due(task grid.TaskID, payee grid.SiteID, claim *Receipt, cost grid.Credits) grid.Credits {
	p := d.payments[task]
	if p == nil || !claim.about(&p.Cheque, payee) {
		return 0
	}
	return min(cost, claim.Amount)
}

// Agree returns this site's receipt for the end of a task at payee, nil if it has no
// cheque for it. The first time it agrees to amount, or to the ceiling if that is
// less; later calls return the same again. For a task that is unwanted it is nothing.
func (d *Desk) Agree(task grid.TaskID, payee grid.SiteID, amount grid.Credits, out *grid.Outbox) *Receipt {
	p := d.payments[task]
	if p == nil || p.Payee != payee || !p.wrote {
		return nil
	}
	if p.state == payHeld {
		p.state, p.agreed = payAgreed, min(max(amount, 0), p.Ceiling)
		out.Save(p)
	}
	r := &Receipt{Bank: p.Bank, Payer: p.Payer, Payee: p.Payee, Task: task, Amount: p.agreed, Signer: d.cfg.Self}
	r.seal(d.cfg.Seal)
	return r
}

// settled: a cheque of ours is spent.
func (d *Desk) settled(from grid.SiteID, m *Settled, out *grid.Outbox) {
	if p := d.payments[m.Task]; p != nil && p.Bank == from && p.wrote {
		d.stats.Paid += min(m.Paid, p.Ceiling)
		d.dropPayment(p, out)
	}
}
