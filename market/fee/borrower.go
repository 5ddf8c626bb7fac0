package fee

import (
	"gridnode/grid"
	"gridnode/market/bank"
)

// Pay has the bank write a cheque for a lease that this site asked for at an instant, and
// hands it to the lender: Paid or Unpaid follows.
func (t *Tab) Pay(now grid.Time, terms Terms, asked grid.Time, out *grid.Outbox) {
	switch {
	case t.owes[terms.Number] != nil:
		return
	case len(t.owes) >= feesMax:
		out.Local(&Unpaid{terms.Number, "this site has as many leases that are not paid yet as it keeps"})
		return
	}
	f := newFee(terms, drawing)
	f.asked, f.over = asked, grid.Never
	t.enter(f, out)
	t.desk.Draw(now, TaskOf(f.Number), f.Peer, f.ceiling(), f.Longest, out)
}

// Over says that a lease costs no more from an instant on. What it has cost until then is
// owed, whether it was claimed or not.
func (t *Tab) Over(number uint64, gone grid.Time, out *grid.Outbox) {
	if f := t.owes[number]; f != nil && gone < f.over {
		f.over = gone
		out.Save(f)
		if o := t.desk.Outcasts(); f.state == advanced && (o.Has(f.Peer) || o.Has(f.Bank)) {
			t.alarms.Set(&f.alarm, gone)
		}
	}
}

// Written takes what the desk says of a cheque, and reports whether that is for a lease.
func (t *Tab) Written(now grid.Time, task grid.TaskID, out *grid.Outbox) bool {
	number, yes := IsFee(task)
	if !yes {
		return false
	}
	f := t.owes[number]
	if f == nil || f.state != drawing {
		t.desk.Unwanted(now, task, out)
		return true
	}
	f.state = advancing
	out.Save(f)
	t.hand(now, f, out)
	return true
}

// Declined takes what the desk says of a cheque that it will not write, and reports
// whether that was to be for a lease.
func (t *Tab) Declined(in *bank.Declined, out *grid.Outbox) bool {
	number, yes := IsFee(in.Task)
	if f := t.owes[number]; yes && f != nil && f.state == drawing {
		t.drop(f, out)
		out.Local(&Unpaid{number, in.Reason})
	}
	return yes
}

// hand gives the lender the cheque, once more if need be.
func (t *Tab) hand(now grid.Time, f *fee, out *grid.Outbox) {
	if t.settle(now, f, out) {
		return
	}
	out.Send(f.Peer, &Advance{Number: f.Number, Epoch: f.Epoch, Cheque: t.desk.Cheque(TaskOf(f.Number))})
	t.again(now, f)
}

// answered is the lender's word about the cheque.
func (t *Tab) answered(now grid.Time, from grid.SiteID, m *Advances, out *grid.Outbox) {
	f := t.owes[m.Number]
	if f == nil || f.Peer != from || f.Epoch != m.Epoch || f.state != advancing {
		return
	}
	if m.Refusal != Kept {
		t.desk.Unwanted(now, TaskOf(f.Number), out)
		t.drop(f, out)
		out.Local(&Unpaid{f.Number, m.Refusal.String()})
		return
	}
	f.state = advanced
	out.Save(f)
	t.alarms.Set(&f.alarm, now+checkIn)
	out.Local(&Paid{f.Number})
}

// sign answers a bill: with what this site has measured, if that is less. A lease that it
// knows nothing of (any more) it agrees to pay for as it did before, or nothing.
func (t *Tab) sign(now grid.Time, from grid.SiteID, m *Bill, out *grid.Outbox) {
	task := TaskOf(m.Number)
	var cost grid.Credits
	f := t.owes[m.Number]
	if f != nil && (f.Peer != from || f.Epoch != m.Epoch || f.state == drawing) {
		return
	}
	if f != nil {
		held := max(min(now, f.over)-f.asked, 0)
		cost = t.desk.Due(task, from, m.Claim, f.Cost(held.Add(held/1000*allowance)))
		t.drop(f, out)
	}
	out.Send(from, &Agreed{Number: m.Number, Epoch: m.Epoch, Agreement: t.desk.Agree(task, from, cost, out)})
}
