package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
)

// mostPaid is what the site of Borrower pays for a processor-hour at most.
const mostPaid = 5

// Borrower has a user borrow from another site, which sends more than was asked for, and a third one
// answer in its place: a lease for more than the user pays is given back unclaimed (C-8), words of
// another site, of another epoch, and those that come late change nothing (P-2), and a grant for
// which nobody has asked is given back (P-3), as is one that is wanted back while it is claimed.
func (t *Twin) Borrower() error {
	lender, other, book := t.Then[0], t.Then[1], site.CoresOf(t.Site).Book
	if book == nil {
		return nil
	}
	ask, id := t.borrow(lender)
	if ask == nil {
		return nil
	}
	dear := grant(lender, ask)
	dear.Price = ask.Most + 1
	t.hear(lender, dear)
	if l, there := book.Get(id); there && l.State != lease.Requested && l.State != lease.Ending {
		return fmt.Errorf("%s lends for %v what is wanted for %v at most (bank: %q), and it is %v", lender, dear.Price, ask.Most, ask.Bank, l.State)
	}
	if ask, id = t.borrow(lender); ask == nil {
		return nil
	}
	g := grant(lender, ask)
	if err := t.unheard(book, id, []lie{
		{"grants what another site was asked for", other, g},
		{"refuses what another site was asked for", other, &lease.Refuse{Number: ask.Number, Reason: lease.Full}},
	}); err != nil {
		return err
	}
	late := *g
	late.Epoch++
	if l, _ := book.Get(id); l.State != lease.Requested {
		return nil
	}
	claim, there := answer[*lease.Claim](t.hear(lender, g))
	if !there {
		return nil
	}
	lies := []lie{
		{"grants once more what is claimed, with another epoch", lender, &late},
		{"refuses what it has granted", lender, &lease.Refuse{Number: ask.Number, Reason: lease.Full}},
		{"confirms the claim of another", other, confirm(claim, claim.Sequence, 9*grid.Minute)},
		{"confirms what was not said yet", lender, confirm(claim, claim.Sequence+1, 9*grid.Minute)},
		{"confirms what was said long ago", lender, confirm(claim, claim.Sequence-64, 9*grid.Minute)},
		{"wants the lease of another back", other, &lease.Revoke{Number: g.Number, Epoch: g.Epoch}},
		{"wants a lease of another epoch back", lender, &lease.Revoke{Number: g.Number, Epoch: g.Epoch + 1}},
		{"says that the lease of another is over", other, &lease.Released{Number: g.Number, Epoch: g.Epoch, Cause: lease.Freed}},
		{"says that a lease of another epoch is over", lender, &lease.Released{Number: g.Number, Epoch: g.Epoch + 1}},
	}
	if err := t.unheard(book, id, lies); err != nil {
		return err
	}
	t.hear(lender, confirm(claim, claim.Sequence, 4*grid.Minute))
	if err := t.unheard(book, id, lies); err != nil {
		return err
	}
	if latest := t.renew(id, kept); latest != nil {
		of := []lie{{"confirms what it was asked four times since", lender, confirm(claim, latest.Sequence-kept, 9*grid.Minute)}}
		if err := t.unheard(book, id, of); err != nil {
			return err
		}
	}
	if err := t.recalled(book, lender); err != nil {
		return err
	}
	stray := *g
	t.made++
	stray.Number = uint64(t.Now) + 1<<20 + t.made
	if r, there := answer[*lease.Release](t.hear(lender, &stray)); !there || r.Number != stray.Number {
		return fmt.Errorf("%s grants lease %d, for which nobody has asked, and is not told so", lender, stray.Number)
	}
	return nil
}

// kept is of how many renewals a borrower knows when it sent them.
const kept = 4

// renew has a user want a lease for longer, so many times, and returns the last word to its lender.
func (t *Twin) renew(id lease.ID, times int) (last *lease.Renew) {
	for range times {
		for _, s := range t.step(&site.ChangeLease{Token: mark, Change: site.RenewLease, Number: id.Number, Span: longer}).Sends {
			if m, yes := s.Message.(*lease.Renew); yes && m.Number == id.Number {
				last = m
			}
		}
	}
	return last
}

// longer is for how long that is.
const longer = 2 * grid.Hour

// recalled has a lender want a lease back that is being claimed: it is given back.
func (t *Twin) recalled(book *lease.Book, lender grid.SiteID) error {
	claim, id := t.claim(lender)
	if claim == nil {
		return nil
	}
	t.hear(lender, &lease.Revoke{Number: claim.Number, Epoch: claim.Epoch})
	if l, there := book.Get(id); there && l.State != lease.Ending {
		return fmt.Errorf("%s wants a lease back while it is claimed, and it is %v", lender, l.State)
	}
	return nil
}

// borrow has a user borrow a processor; nil: the site does not ask.
func (t *Twin) borrow(lender grid.SiteID) (*lease.Request, lease.ID) {
	out := t.step(&site.RequestLease{Token: mark, Lender: lender, Processors: 1, Span: grid.Hour, Most: mostPaid})
	for _, s := range out.Sends {
		if m, yes := s.Message.(*lease.Request); yes && s.To == lender && m.Processors == 1 && m.Span == grid.Hour {
			return m, lease.ID{Borrower: t.ID, Number: m.Number}
		}
	}
	return nil, lease.ID{}
}

// claim has a user borrow a processor that is granted, and returns how the site claims it; nil: it does not.
func (t *Twin) claim(lender grid.SiteID) (*lease.Claim, lease.ID) {
	ask, id := t.borrow(lender)
	if ask == nil {
		return nil, id
	}
	claim, _ := answer[*lease.Claim](t.hear(lender, grant(lender, ask)))
	return claim, id
}

// grant is what an honest lender says that wants nothing for it.
func grant(lender grid.SiteID, ask *lease.Request) *lease.Grant {
	return &lease.Grant{
		Number: ask.Number, Epoch: 7, Stamp: grid.Hour, Hold: grid.Minute, Span: ask.Span, Source: lender, Key: 7, Hops: 1, Gone: 4 * grid.Minute,
	}
}

// confirm is what a lender says to a claim.
func confirm(c *lease.Claim, sequence uint64, term grid.Time) *lease.Renewed {
	return &lease.Renewed{Number: c.Number, Epoch: c.Epoch, Sequence: sequence, Stamp: c.Stamp + 1, Term: term, Limit: grid.Hour, Gone: 2 * term}
}

// unheard tells lies about a lease, and returns what one has changed of it.
func (t *Twin) unheard(book *lease.Book, id lease.ID, lies []lie) error {
	was, had := book.Get(id)
	for _, lie := range lies {
		t.hear(lie.from, lie.m)
		if now, there := book.Get(id); there != had || now != was {
			return lie.fallen("%+v was %+v", now, was)
		}
	}
	return nil
}
