package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
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
