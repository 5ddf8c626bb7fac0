package fee

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// CastOut says that a site is a member of the federation no longer, which the desk has been
// told before. What it owes for leases is claimed without its receipts; what is owed to it is
// paid by this site's own meter as each lease ends. If it is the bank, nobody pays.
func (t *Tab) CastOut(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	var with []*fee
	for _, f := range t.owed {
		if f.Peer == site || f.Bank == site {
			with = append(with, f)
		}
	}
	for _, f := range t.owes {
		if f.Peer == site || f.Bank == site {
			with = append(with, f)
		}
	}
	slices.SortFunc(with, func(a, b *fee) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.Number, b.Number))
	})
	for _, f := range with {
		switch f.state {
		case late, billed, advancing:
			t.due(now, f, out)
		case advanced:
			t.alarms.Set(&f.alarm, max(now, min(f.over, now+checkIn)))
		}
	}
}

// settle ends a fee whose other side or whose bank is an outcast, if it can be ended, and
// reports whether it has.
func (t *Tab) settle(now grid.Time, f *fee, out *grid.Outbox) bool {
	outcasts, task := t.desk.Outcasts(), TaskOf(f.Number)
	bankless := outcasts.Has(f.Bank)
	switch {
	case !bankless && !outcasts.Has(f.Peer):
		return false
	case bankless && f.state == billed: // its cheque is worth nothing
	case f.state == billed:
		outcasts.Claim(now, f.Peer, task, f.amount, out)
	case f.state == advancing:
		t.desk.Unwanted(now, task, out)
		out.Local(&Unpaid{f.Number, "its lender or its bank is a member of the federation no longer"})
	case f.state == advanced && now >= f.over:
		outcasts.Settle(now, task, f.Cost(max(f.over-f.asked, 0)), out)
	default:
		return false
	}
	t.drop(f, out)
	return true
}
