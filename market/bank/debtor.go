package bank

import "gridnode/grid"

// Limits of what a desk remembers of those who do not pay.
const (
	debtSpan   = grid.Day // after so long without another unsigned bill, a payer is forgiven
	debtsMax   = 3        // unsigned bills from which on a payer is a debtor
	debtorsMax = 1024
)

// debtors are payers that did not sign for what was done for them. A receipt over less
// than half of what this site has counted is none: two honest meters differ by the drift
// of clocks and the time of messages. An honest home may owe for a job that it had to take
// for lost, so one such bill is no reason to refuse it. They are forgotten with the program.
type debtors map[grid.SiteID]debt

type debt struct {
	bills int
	until grid.Time
}

// owes notes that a payer has not signed for a bill. If there are too many debtors, the
// one that would be forgiven first is.
func (d *debtors) owes(now grid.Time, payer grid.SiteID) {
	if *d == nil {
		*d = make(debtors)
	}
	old, known := (*d)[payer]
	if now >= old.until {
		old.bills = 0
	}
	if !known && len(*d) >= debtorsMax {
		first, until := grid.SiteID(""), grid.Never
		for site, debt := range *d {
			if debt.until < until || debt.until == until && site < first {
				first, until = site, debt.until
			}
		}
		delete(*d, first)
	}
	(*d)[payer] = debt{bills: old.bills + 1, until: now.Add(debtSpan)}
}

// Trusts reports whether a payer is no debtor.
func (d *Desk) Trusts(now grid.Time, payer grid.SiteID) bool {
	debt := d.debtors[payer]
	return debt.bills < debtsMax || now >= debt.until
}
