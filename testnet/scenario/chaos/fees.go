package chaos

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// chaosPrice is what a site charges for leases: some nothing, some little, some what jobs
// cost, which few can pay for long.
func chaosPrice(i int) grid.Price {
	switch i % 4 {
	case 0:
		return lentPrice
	case 1:
		return site.OwnPrice
	}
	return 0
}

// lentPrice is what some sites charge for leases.
const lentPrice = grid.Credit / 10

// feeWatch has a meter of its own for every lease with a price, in true time, and compares
// what banks have paid: each lease is paid once, to its lender, for the time that it was
// held and not more; and each that was used is paid.
type feeWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	meters map[feeID]*meter
	held   map[int][]*meter // by lender: those of leases that are there
	turns  int64
	paid   int64
	clocks *clockWatch // nil: none jumps

	without func(m *meter) bool // of this lease it is not known what has to be paid; nil: of all it is
}

// feeID names a lease.
type feeID struct {
	borrower grid.SiteID
	number   uint64
}

// meter is how long a lease was held.
type meter struct {
	lease.Lease
	since       grid.Time // when it was granted: a lender that dies in that turn has saved it
	first, last grid.Time // turns of the lender in which it was there
	end         grid.Time // the first one in which it was not any more; Never: it is there
	turn        int64     // number of the last look in which it was there
	used        bool
	paid        grid.Credits
	times       int
}

func watchFees(n *testnet.Network, c *testnet.Checker) *feeWatch {
	w := &feeWatch{n: n, checks: c, meters: make(map[feeID]*meter), held: make(map[int][]*meter)}
	n.Observe(testnet.Observer{Turn: w.look})
	return w
}

// look reads the meters of a lender after each of its turns.
func (w *feeWatch) look(now grid.Time, at int) {
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	w.turns++
	held := w.held[at]
	for l := range lease.All(site.CoresOf(s).Book) {
		if !l.Lent || l.Price == 0 || l.State != lease.Held && l.State != lease.Active {
			continue
		}
		id := feeID{l.Borrower, l.Number}
		m := w.meters[id]
		if m != nil && (m.Price != l.Price || m.Epoch != l.Epoch) && w.unasked(l) {
			continue // nobody knows of it, and it ends as it was not claimed
		}
		if m == nil {
			m = &meter{Lease: *l, since: min(w.n.Clock(at).True(l.Since), now), first: now, end: grid.Never}
			w.meters[id] = m
			held = append(held, m)
		}
		if l.State == lease.Active && !l.Paid || m.Price != l.Price || m.Epoch != l.Epoch {
			w.checks.Violated("%s lends %+v, which it was not paid for", w.n.ID(at), *l)
		}
		m.turn, m.last, m.used = w.turns, now, m.used || l.State == lease.Active
	}
	w.held[at] = slices.DeleteFunc(held, func(m *meter) bool {
		if m.turn != w.turns {
			m.end = min(m.end, now)
		}
		return m.turn != w.turns
	})
}

// unasked reports whether processors are held for a request that came late, to a lender that has
// been restarted and has forgotten that it was answered: its borrower has given it back, or knows
// nothing of it any more.
func (w *feeWatch) unasked(l *lease.Lease) bool {
	at, _ := w.n.Index(l.Borrower)
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return false
	}
	its, asked := site.CoresOf(s).Book.Get(l.ID)
	return l.State == lease.Held && (!asked || its.State == lease.Ending)
}

// cost returns what a lease has cost that was held for a span of true time; permille is
// by how much clocks may differ.
func (m *meter) cost(held, permille grid.Time) grid.Credits {
	return grid.CostProcessorTime.Cost(m.Price, m.Processors, held+held/1000*permille)
}

// unpaidMost is how long after its end a lease may be paid for.
const unpaidMost = grid.Hour

// redeemed takes what a bank has paid for a lease.
func (w *feeWatch) redeemed(now grid.Time, t *bank.Transaction) error {
	number, yes := fee.IsFee(t.Task)
	if !yes {
		return nil
	}
	m := w.meters[feeID{t.Payer, number}]
	switch {
	case m == nil && t.Amount > 0:
		return fmt.Errorf("%s has paid %v for lease %d, which nobody has lent", t.Payer, t.Amount, number)
	case m == nil:
		return nil
	}
	m.times++
	m.paid += t.Amount
	if t.Amount > 0 {
		w.paid++
	}
	most := m.cost(min(m.end, now)-m.since+w.set(m, 0), 2) + 1
	if w.without != nil && w.without(m) {
		most = max(most, t.Amount)
	}
	if t.Payee != m.Lender || m.times > 1 || m.paid > most {
		return fmt.Errorf("%s has paid %v to %s for lease %d of %s, in %d payments: it has cost %v at most", t.Payer, m.paid, t.Payee, number, m.Lender, m.times, most)
	}
	return nil
}

// atRest looks for leases that were used and not paid for.
func (w *feeWatch) atRest() error {
	for id, m := range w.meters {
		if w.set(m, unpaidMost) > 0 || w.without != nil && w.without(m) {
			continue
		}
		if least := m.cost(m.last-m.first, -2) - 1; m.used && m.paid < least {
			return fmt.Errorf("%s has paid %v for lease %d of %s, which has cost %v at least", id.borrower, m.paid, id.number, m.Lender, least)
		}
	}
	return nil
}

// set returns by how much the clocks of a lease's lender, borrower and bank have jumped during it
// or a while after it: so much less they know for how long it was held.
func (w *feeWatch) set(m *meter, after grid.Time) grid.Time {
	return w.clocks.within(m.since, min(m.end, w.n.Now())+after, m.Lender, m.Borrower, m.Bank)
}
