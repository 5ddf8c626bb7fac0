package bank

import (
	"iter"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// bill is a cheque that this site was given: the payee's side of it.
type bill struct {
	Cheque
	state     billState
	claim     *Receipt // once it is presented
	agreement *Receipt // nil if it is given back
	pause     grid.Time
	due       grid.Alarm[any]
	record    string // key
}

// billState numbers are stored: append only.
type billState uint8

const (
	billOpen      billState = iota + 1 // its job has not ended, or home has not agreed to what it costs
	billRedeeming                      // presented to the bank until that answers
)

// billPrefix is where bills are stored.
const billPrefix = "bank/bill/"

func newBill(c Cheque) *bill {
	b := &bill{Cheque: c, state: billOpen, record: billPrefix + chequeKey(&c)}
	b.due.Owner = b
	return b
}

// RecordKey implements grid.Record.
func (b *bill) RecordKey() string { return b.record }

// AppendRecord implements grid.Record.
func (b *bill) AppendRecord(dst []byte) []byte {
	p := &wirepb.BankBillRecord{Cheque: b.proto(), Sealed: b.Sealed, State: uint32(b.state)}
	if b.claim != nil {
		p.Claim, p.ClaimSealed = b.claim.proto(), b.claim.Sealed
	}
	if b.agreement != nil {
		p.Agreement, p.AgreementSealed = b.agreement.proto(), b.agreement.Sealed
	}
	return appendProto(dst, p)
}

// Accepts reports whether a job that is paid by a cheque of bank may come here; bank
// is empty for a job that nobody pays for. Cheques of an outcast are worth nothing.
func (d *Desk) Accepts(bank grid.SiteID) bool {
	return !d.outcasts.Has(bank) && (len(d.cfg.Accept) == 0 || slices.Contains(d.cfg.Accept, bank))
}

// Charge is what a cheque has to pay for.
type Charge struct {
	Bank  grid.SiteID // that the cheque is to be of
	Payer grid.SiteID
	Task  grid.TaskID
	Cost  grid.Credits // at most
	Until grid.Time    // by when the task has ended, on this site's clock
}

// Holds reports whether this site has a cheque for a task that is not redeemed yet, as far
// as it knows.
func (d *Desk) Holds(payer grid.SiteID, task grid.TaskID) bool {
	return d.bills[key{payer, task}] != nil
}

// Unpresented yields whose cheques for which tasks a site keeps and has not presented, in no
// particular order.
func Unpresented(d *Desk) iter.Seq2[grid.SiteID, grid.TaskID] {
	return func(yield func(payer grid.SiteID, task grid.TaskID) bool) {
		for k, b := range d.bills {
			if b.state == billOpen && !yield(k.payer, k.task) {
				return
			}
		}
	}
}

// Good reports whether a cheque pays for a charge of this site's. That the bank has
// signed it the decoder has seen to.
func (d *Desk) Good(now grid.Time, c *Cheque, charge *Charge) bool {
	if c == nil || c.Bank != charge.Bank || c.Payer != charge.Payer || c.Payee != d.cfg.Self || c.Task != charge.Task ||
		c.Ceiling < charge.Cost || c.Expires < max(charge.Until, now).Add(graceMin) {
		return false
	}
	return d.bills[c.key()] == nil && len(d.bills) < billsMax && !d.outcasts.Has(c.Bank)
}

// Take keeps a cheque that is good.
func (d *Desk) Take(c *Cheque, out *grid.Outbox) {
	b := newBill(*c)
	d.bills[b.key()] = b
	d.alarms.Set(&b.due, b.Expires)
	out.Save(b)
}

// Claim returns this site's receipt for the end of a task of payer that costs amount,
// nil if no cheque pays for it.
func (d *Desk) Claim(payer grid.SiteID, task grid.TaskID, amount grid.Credits) *Receipt {
	if b := d.bills[key{payer, task}]; b != nil {
		return d.claim(b, amount)
	}
	return nil
}

func (d *Desk) claim(b *bill, amount grid.Credits) *Receipt {
	r := &Receipt{Bank: b.Bank, Payer: b.Payer, Payee: b.Payee, Task: b.Task, Amount: min(max(amount, 0), b.Ceiling), Signer: d.cfg.Self}
	r.seal(d.cfg.Seal)
	return r
}

// Agreed takes the payer's receipt for a task that costs amount, and presents the
// cheque. Without a receipt the payer knows of no cheque, and nothing can be had.
func (d *Desk) Agreed(now grid.Time, payer grid.SiteID, task grid.TaskID, amount grid.Credits, agreement *Receipt, out *grid.Outbox) {
	b := d.bills[key{payer, task}]
	switch {
	case b == nil || b.state != billOpen:
	case !agreement.about(&b.Cheque, payer):
		if amount > 0 {
			d.debtors.owes(now, payer)
		}
		d.stats.Unpaid += min(max(amount, 0), b.Ceiling)
		amount, agreement = 0, nil // the payer's money need not wait for the expiry
		fallthrough
	default:
		if agreement != nil && agreement.Amount < amount/2 {
			d.debtors.owes(now, payer)
		}
		d.present(now, b, amount, agreement, out)
	}
}

// Release gives the cheque of a task back that costs nothing: it never ran, or a
// later epoch of its job has replaced it.
func (d *Desk) Release(now grid.Time, payer grid.SiteID, task grid.TaskID, out *grid.Outbox) {
	if b := d.bills[key{payer, task}]; b != nil && b.state == billOpen {
		d.present(now, b, 0, nil, out)
	}
}

func (d *Desk) present(now grid.Time, b *bill, amount grid.Credits, agreement *Receipt, out *grid.Outbox) {
	b.state, b.claim, b.agreement, b.pause = billRedeeming, d.claim(b, amount), agreement, 0
	out.Save(b)
	d.redeem(now, b, out)
}

// redeem presents the cheque to its bank, once more if need be.
func (d *Desk) redeem(now grid.Time, b *bill, out *grid.Outbox) {
	c := b.Cheque
	d.send(b.Bank, &Redeem{Cheque: &c, Claim: b.claim, Agreement: b.agreement}, out)
	d.alarms.Set(&b.due, min(d.later(now, &b.pause, drawPause, redeemMax), max(b.Expires.Add(grid.Day), now+drawPause)))
}

// billDue presents the cheque again, or gives up once it is void: the bank's clock
// is not ours, so that is a day later.
func (d *Desk) billDue(now grid.Time, b *bill, out *grid.Outbox) {
	switch {
	case now >= b.Expires.Add(grid.Day):
		d.unpaid(b, out)
	case b.state == billRedeeming:
		d.redeem(now, b, out)
	default:
		d.alarms.Set(&b.due, b.Expires.Add(grid.Day))
	}
}

// unpaid forgets a bill that is not paid.
func (d *Desk) unpaid(b *bill, out *grid.Outbox) {
	if b.claim != nil {
		d.stats.Unpaid += b.claim.Amount
	} else {
		d.stats.Unpaid += b.Ceiling
	}
	d.dropBill(b, out)
}

func (d *Desk) dropBill(b *bill, out *grid.Outbox) {
	d.alarms.Stop(&b.due)
	delete(d.bills, b.key())
	out.Delete(b)
}

// redeemed is the bank's answer.
func (d *Desk) redeemed(now grid.Time, from grid.SiteID, m *Redeemed, out *grid.Outbox) {
	if m.Payer == d.cfg.Self {
		d.outcasts.redeemed(from, m, out)
		return
	}
	b := d.bills[key{m.Payer, m.Task}]
	if b == nil || b.Bank != from || b.state != billRedeeming {
		return
	}
	d.refusedBy(m.Refusal)
	switch {
	case m.Refusal.passing(): // a timer presents it again
	case m.Refusal == NotSigned && b.agreement == nil && d.outcasts.Has(b.Payer): // the bank may hear of it later than this site
	case m.Refusal != Done:
		d.unpaid(b, out)
	default:
		d.stats.Earned += min(m.Paid, b.Ceiling)
		d.dropBill(b, out)
	}
}

// returned: the payer does not need a cheque any more. If its job is here, home will
// hear how that ended and then agree to nothing.
func (d *Desk) returned(now grid.Time, from grid.SiteID, m *Return, out *grid.Outbox) {
	c := m.Cheque
	if d.outcasts.Has(c.Bank) || c.Payer != from || c.Payee != d.cfg.Self || d.bills[c.key()] != nil || len(d.bills) >= billsMax {
		return
	}
	b := newBill(*c)
	d.bills[b.key()] = b
	d.present(now, b, 0, nil, out)
}
