package fee

import (
	"gridnode/grid"
	"gridnode/market/bank"
)

// advance is a cheque's arrival.
func (t *Tab) advance(now grid.Time, from grid.SiteID, m *Advance, out *grid.Outbox) {
	r := Ref{from, m.Number, m.Epoch}
	answer := &Advances{Number: m.Number, Epoch: m.Epoch, Refusal: Gone}
	f := t.owed[key{from, m.Number}]
	if f != nil && f.Epoch != m.Epoch {
		f = nil
	}
	terms, lent := t.lent(r)
	switch {
	case f != nil && f.state == billed:
		answer.Refusal = Kept
	case f != nil:
		answer.Refusal = t.take(now, &f.Terms, m.Cheque, out)
	case lent:
		answer.Refusal = t.take(now, &terms, m.Cheque, out)
	}
	out.Send(from, answer)
	switch {
	case answer.Refusal != Kept:
	case f == nil:
		out.Local(&Advanced{r})
	case f.state == late: // it was over before it was paid for
		f.state = billed
		out.Save(f)
		t.bill(now, f, out)
	}
}

// take keeps a cheque that pays for a lease.
func (t *Tab) take(now grid.Time, terms *Terms, cheque *bank.Cheque, out *grid.Outbox) Refusal {
	task := TaskOf(terms.Number)
	if t.desk.Holds(terms.Peer, task) {
		return Kept
	}
	if !t.desk.Good(now, cheque, &bank.Charge{Bank: terms.Bank, Payer: terms.Peer, Task: task, Cost: terms.ceiling(), Until: now.Add(terms.Longest)}) {
		return NotGood
	}
	t.desk.Take(cheque, out)
	return Kept
}

// Ended says that a lease with a price which this site lent is over, and how long it was
// held: from the grant to the end. The borrower is billed, once.
func (t *Tab) Ended(now grid.Time, terms Terms, held grid.Time, out *grid.Outbox) {
	task, amount := TaskOf(terms.Number), min(terms.Cost(held), terms.ceiling())
	paid := t.desk.Holds(terms.Peer, task)
	switch {
	case t.owed[key{terms.Peer, terms.Number}] != nil:
		return
	case amount == 0 || held <= 0:
		t.desk.Release(now, terms.Peer, task, out)
		return
	case len(t.owed) >= feesMax:
		return // the cheque lapses
	}
	f := newFee(terms, late)
	f.amount = amount
	if paid {
		f.state = billed
	}
	t.enter(f, out)
	if paid {
		t.bill(now, f, out)
	} else {
		t.alarms.Set(&f.alarm, now+lateKeep)
	}
}

// bill asks the borrower to sign, once more if need be.
func (t *Tab) bill(now grid.Time, f *fee, out *grid.Outbox) {
	if t.settle(now, f, out) {
		return
	}
	out.Send(f.Peer, &Bill{Number: f.Number, Epoch: f.Epoch, Claim: t.desk.Claim(f.Peer, TaskOf(f.Number), f.amount)})
	t.again(now, f)
}

// agreed is the borrower's answer to a bill: the cheque is presented.
func (t *Tab) agreed(now grid.Time, from grid.SiteID, m *Agreed, out *grid.Outbox) {
	f := t.owed[key{from, m.Number}]
	if f == nil || f.Epoch != m.Epoch || f.state != billed {
		return
	}
	t.desk.Agreed(now, from, TaskOf(f.Number), f.amount, m.Agreement, out)
	t.drop(f, out)
}
