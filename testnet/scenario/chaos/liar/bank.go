package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/market/bank"
)

// Books tries to get at money that is held for cheques, and at that of accounts (C-2, C-3, C-4):
// cheques that are open, and whether a site is no member any more. Then it has what is right be
// done, twice.
func (t *Twin) Books(open []bank.Cheque, outcast func(grid.SiteID) bool) error {
	l := t.Site.Desk().Ledger()
	for i := range open {
		c := &open[i]
		last := l.Last()
		for _, lie := range t.money(c, outcast) {
			if t.hear(lie.from, lie.m); l.Last() != last {
				if outcast(c.Payer) || outcast(c.Payee) { // it has learned so just now, and then one word is enough
					return nil
				}
				return lie.fallen("the bank has moved something")
			}
		}
		if err := t.once(c); err != nil {
			return err
		}
	}
	return nil
}

// receipt is one for a cheque.
func receipt(c *bank.Cheque, signer grid.SiteID, amount grid.Credits) *bank.Receipt {
	return &bank.Receipt{Bank: c.Bank, Payer: c.Payer, Payee: c.Payee, Task: c.Task, Amount: amount, Signer: signer}
}

// money returns lies about a cheque, and about the accounts of its two sites.
func (t *Twin) money(c *bank.Cheque, outcast func(grid.SiteID) bool) []lie {
	all, half := c.Ceiling, c.Ceiling/2+1
	higher, other, theirs := *c, *c, *c
	higher.Ceiling *= 2
	other.Task = t.task()
	stranger := t.Then[0]
	for _, id := range t.Then {
		if id != c.Payer && id != c.Payee {
			stranger = id
		}
	}
	theirs.Payee = stranger
	elsewhere := receipt(c, c.Payer, all)
	elsewhere.Task = other.Task
	payer, _ := t.Site.Desk().Ledger().Balance(c.Payer)
	lies := []lie{
		{"presents a cheque that is signed by itself only", c.Payee, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, half), Agreement: receipt(c, c.Payee, half)}},
		{"presents a cheque with a receipt for another task", c.Payee, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, half), Agreement: elsewhere}},
		{"presents a cheque for more than it is over", c.Payee, &bank.Redeem{Cheque: &higher, Claim: receipt(&higher, c.Payee, 2*all), Agreement: receipt(&higher, c.Payer, 2*all)}},
		{"claims more than a cheque is over", c.Payee, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, all+1), Agreement: receipt(c, c.Payer, all+1)}},
		{"presents a cheque that was never written", c.Payee, &bank.Redeem{Cheque: &other, Claim: receipt(&other, c.Payee, half), Agreement: receipt(&other, c.Payer, half)}},
		{"has signed less than nothing", c.Payee, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, half), Agreement: receipt(c, c.Payer, -1)}},
		{"draws more than it has", c.Payer, &bank.Draw{Task: t.task(), Payee: c.Payee, Ceiling: payer.Settled + 1, Lifetime: grid.Hour}},
		{"transfers more than it has", c.Payer, &bank.TransferRequest{ID: t.task().Job, To: c.Payee, Amount: payer.Settled + 1}},
		{"transfers less than nothing", c.Payer, &bank.TransferRequest{ID: t.task().Job, To: c.Payee, Amount: -1}},
		{"draws for another task what it has drawn for this one", c.Payer, &bank.Draw{Task: c.Task, Payee: c.Payee, Ceiling: all + 1, Lifetime: grid.Hour}},
	}
	if stranger != c.Payer && stranger != c.Payee {
		lies = append(lies,
			lie{"presents the cheque of another", stranger, &bank.Redeem{Cheque: c, Claim: receipt(c, stranger, half), Agreement: receipt(c, c.Payer, half)}},
			lie{"has made the cheque of another its own", stranger, &bank.Redeem{Cheque: &theirs, Claim: receipt(&theirs, stranger, half), Agreement: receipt(&theirs, c.Payer, half)}},
		)
	}
	if !outcast(c.Payer) {
		lies = append(lies, lie{"presents a cheque without the payer's receipt", c.Payee, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, half)}})
	}
	if !outcast(c.Payee) {
		lies = append(lies, lie{"takes its own cheque back", c.Payer, &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payer, 0)}})
	}
	return lies
}

// once has a cheque be paid, and credits be transferred, twice each, and then all that is left be drawn.
func (t *Twin) once(c *bank.Cheque) error {
	l := t.Site.Desk().Ledger()
	agreed := c.Ceiling / 2
	right := &bank.Redeem{Cheque: c, Claim: receipt(c, c.Payee, c.Ceiling), Agreement: receipt(c, c.Payer, agreed)}
	last := l.Last()
	for range 2 {
		a, there := answer[*bank.Redeemed](t.hear(c.Payee, right))
		switch {
		case !there || a.Refusal != bank.Done: // it may be full, or not know one of the two any more
			return nil
		case a.Paid != agreed:
			return fmt.Errorf("a cheque over %v, of which its payer has signed for %v, is paid with %v", c.Ceiling, agreed, a.Paid)
		case l.Last() != last+1:
			return fmt.Errorf("a cheque was presented, perhaps twice, and the bank has written down %d payments", l.Last()-last)
		}
	}
	transfer := &bank.TransferRequest{ID: t.task().Job, To: c.Payee, Amount: 1}
	last = l.Last()
	for range 2 {
		a, there := answer[*bank.TransferReply](t.hear(c.Payer, transfer))
		switch {
		case !there || a.Refusal != bank.Done:
			return nil
		case l.Last() != last+1:
			return fmt.Errorf("a transfer was asked for, perhaps twice, and the bank has written down %d", l.Last()-last)
		}
	}
	return t.drawAll(c.Payer, c.Payee)
}

// drawAll has a site draw a cheque over all that it has.
func (t *Twin) drawAll(payer, payee grid.SiteID) error {
	b, _ := t.Site.Desk().Ledger().Balance(payer)
	a, there := answer[*bank.Drawn](t.hear(payer, &bank.Draw{Task: t.task(), Payee: payee, Ceiling: b.Settled, Lifetime: grid.Hour}))
	if there && a.Refusal == bank.NoFunds {
		return fmt.Errorf("%s draws all of the %v that it has, and the bank says: %v", payer, b.Settled, a.Refusal)
	}
	return nil
}
