package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/site"
)

// Lender asks a site for processors, and wants to use them without having paid for them, or in
// the name of another, or under another epoch (P-2, C-8); and wants them twice.
func (t *Twin) Lender() error {
	borrower := t.Then[0]
	book := site.CoresOf(t.Site).Book
	if book == nil {
		return nil
	}
	ask := t.request(borrower)
	id := lease.ID{Borrower: borrower, Number: ask.Number}
	g, there := answer[*lease.Grant](t.hear(borrower, ask))
	held, _ := book.Get(id)
	if !there || held.State != lease.Held {
		return nil
	}
	wrongs := []lie{
		{"claims a lease of another epoch", borrower, &lease.Claim{Number: g.Number, Epoch: g.Epoch + 1, Sequence: 1, Stamp: g.Stamp}},
		{"claims the lease of another", t.Then[1], &lease.Claim{Number: g.Number, Epoch: g.Epoch, Sequence: 1, Stamp: g.Stamp}},
		{"gives a lease of another epoch back", borrower, &lease.Release{Number: g.Number, Epoch: g.Epoch + 1}},
		{"gives the lease of another back", t.Then[1], &lease.Release{Number: g.Number, Epoch: g.Epoch}},
	}
	if g.Price > 0 {
		wrongs = append(wrongs, lie{"claims a lease that it has not paid for", borrower, &lease.Claim{Number: g.Number, Epoch: g.Epoch, Sequence: 1, Stamp: g.Stamp}})
	}
	for _, lie := range wrongs {
		t.hear(lie.from, lie.m)
		if now, there := book.Get(id); !there || now != held {
			return lie.fallen("%+v was %+v", now, held)
		}
	}
	if again, there := answer[*lease.Grant](t.hear(borrower, ask)); there && (again.Epoch != g.Epoch || again.Price != g.Price) {
		return fmt.Errorf("%s asks for a lease twice, and gets epoch %d, and then %d", borrower, g.Epoch, again.Epoch)
	}
	t.hear(borrower, &lease.Release{Number: g.Number, Epoch: g.Epoch})
	if again, there := answer[*lease.Grant](t.hear(borrower, ask)); there {
		return fmt.Errorf("%s has given a lease back, a copy of its request comes, and it has one again, of epoch %d", borrower, again.Epoch)
	}
	return nil
}

// enough is how long a cheque has to be good after what it pays for has ended, for a payee to take it, and more.
const enough = grid.Day

// Renewals borrows a processor, pays for it if it costs something, and renews that. It is no longer than was paid
// for (C-8), and once it is wanted back that is said each time (P-4).
func (t *Twin) Renewals() error {
	borrower, book := t.Then[0], site.CoresOf(t.Site).Book
	if book == nil {
		return nil
	}
	ask := t.request(borrower)
	g, there := answer[*lease.Grant](t.hear(borrower, ask))
	if !there {
		return nil
	}
	if g.Price > 0 {
		if taken, err := t.paid(borrower, ask, g); !taken {
			return err
		}
	}
	r, there := answer[*lease.Renewed](t.hear(borrower, &lease.Claim{Number: g.Number, Epoch: g.Epoch, Sequence: 1, Stamp: g.Stamp}))
	if !there {
		return nil
	}
	id := lease.ID{Borrower: borrower, Number: ask.Number}
	if g.Price > 0 {
		if err := t.unprolonged(book, id, r, t.Now+g.Span); err != nil {
			return err
		}
	}
	return t.reminded(id, r)
}

// paid pays for a lease by cheques that do not pay for it, and by one that does, and reports whether that is taken.
func (t *Twin) paid(borrower grid.SiteID, ask *lease.Request, g *lease.Grant) (taken bool, err error) {
	ends := t.Now + g.Hold + g.Span
	right := bank.Cheque{
		Bank: ask.Bank, Payer: borrower, Payee: t.ID, Task: fee.TaskOf(g.Number), Expires: ends + enough,
		Ceiling: max(grid.CostProcessorTime.Cost(g.Price, ask.Processors, g.Hold+g.Span), 1),
	}
	little, soon := right, right
	little.Ceiling--
	soon.Expires = ends + grid.Minute
	for _, lie := range []lie{
		{"pays by a cheque over too little", borrower, &fee.Advance{Number: g.Number, Epoch: g.Epoch, Cheque: &little}},
		{"pays by a cheque that is void soon after the lease has ended", borrower, &fee.Advance{Number: g.Number, Epoch: g.Epoch, Cheque: &soon}},
		{"pays for a lease of another epoch", borrower, &fee.Advance{Number: g.Number, Epoch: g.Epoch + 1, Cheque: &right}},
	} {
		if a, there := answer[*fee.Advances](t.hear(lie.from, lie.m)); there && a.Refusal == fee.Kept {
			return false, lie.fallen("that is taken")
		}
	}
	a, there := answer[*fee.Advances](t.hear(borrower, &fee.Advance{Number: g.Number, Epoch: g.Epoch, Cheque: &right}))
	return there && a.Refusal == fee.Kept, nil
}

// unprolonged renews a lease for longer than it may last.
func (t *Twin) unprolonged(book *lease.Book, id lease.ID, r *lease.Renewed, most grid.Time) error {
	t.hear(id.Borrower, &lease.Renew{Number: id.Number, Epoch: r.Epoch, Sequence: 2, Stamp: r.Stamp, Span: longer})
	if l, there := book.Get(id); there && l.Limit > most {
		return fmt.Errorf("%s has paid for a lease until %v, renews it for longer, and has it until %v", id.Borrower, most, l.Limit)
	}
	return nil
}

// reminded has the owner want a lease back, and the borrower renew it, which has not heard so: it is told so
// again, and not given longer (P-4).
func (t *Twin) reminded(id lease.ID, r *lease.Renewed) error {
	for _, s := range t.step(&site.ChangeLease{Token: mark, Change: site.RevokeLease, Number: id.Number, Borrower: id.Borrower}).Sends {
		m, yes := s.Message.(*lease.Revoke)
		if !yes || m.Number != id.Number || s.To != id.Borrower {
			continue
		}
		again := t.hear(id.Borrower, &lease.Renew{Number: id.Number, Epoch: r.Epoch, Sequence: 3, Stamp: r.Stamp})
		if _, answered := answer[*lease.Renewed](again); !answered {
			return nil
		}
		if _, told := answer[*lease.Revoke](again); !told {
			return fmt.Errorf("%s renews a lease that is wanted back, and is not told so again", id.Borrower)
		}
	}
	return nil
}

// request asks for a processor.
func (t *Twin) request(borrower grid.SiteID) *lease.Request {
	t.made++
	return &lease.Request{
		Number: uint64(t.Now) + t.made, Processors: 1, Span: grid.Hour, Hold: grid.Minute, Subject: t.task().Job, Sink: borrower, Bank: t.Bank,
	}
}

// Prolong borrows processors, and renews the lease again and again by words that answer one and the
// same word of the lender, as if they had been under way for long. The processors have gone back
// when the lender has said that they would have, whatever gets lost (P-4). Time passes meanwhile.
func (t *Twin) Prolong() error {
	borrower, book := t.Then[0], site.CoresOf(t.Site).Book
	if book == nil {
		return nil
	}
	ask := t.request(borrower)
	id := lease.ID{Borrower: borrower, Number: ask.Number}
	g, there := answer[*lease.Grant](t.hear(borrower, ask))
	if !there || g.Price > 0 {
		return nil
	}
	r, there := answer[*lease.Renewed](t.hear(borrower, &lease.Claim{Number: g.Number, Epoch: g.Epoch, Sequence: 1, Stamp: g.Stamp}))
	if !there {
		return nil
	}
	gone := t.Now + r.Gone
	for sequence := uint64(2); sequence < 8; sequence++ {
		l, lent := book.Get(id)
		switch {
		case !lent || l.State != lease.Active:
			return nil
		case l.End > gone:
			return fmt.Errorf("%s was told that a lease is over by %v, whatever gets lost, and by renewals that answer that word it has it until %v", borrower, gone, l.End)
		}
		t.Now += (l.End - t.Now) / 2
		t.hear(borrower, &lease.Renew{Number: g.Number, Epoch: g.Epoch, Sequence: sequence, Stamp: r.Stamp, Span: grid.Hour})
	}
	return nil
}
