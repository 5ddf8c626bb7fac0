package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
)

// repeatMost is after what time a site has said once more what nobody has answered.
const repeatMost = 2 * grid.Minute

// Repeats has nobody answer what a site says that has to arrive: a job that goes to where it was
// promised, that it is to end, a request for processors, that a lease is to last for longer, and that it is
// given back. It says so again (J-7, J-8, P-3). Time passes meanwhile.
func (t *Twin) Repeats() error {
	at := t.Then[0]
	if ask := t.away(at, asIs); ask != nil {
		if sent, _ := t.takes(at, granted(ask, 51)); sent != nil {
			job := func(m grid.Message) bool {
				s, yes := m.(*market.JobSubmission)
				return yes && s.Job.ID == ask.Task.Job
			}
			if !t.again(at, job) {
				return fmt.Errorf("job %s goes to %s, which does not answer, and it is not sent again", ask.Task.Job, at)
			}
			end := func(m grid.Message) bool {
				c, yes := m.(*market.Cancel)
				return yes && c.Task == ask.Task
			}
			t.step(&site.Cancel{Token: mark, Job: ask.Task.Job, Cause: "its user does not want it"})
			if !t.again(at, end) {
				return fmt.Errorf("job %s is at %s, which is told that it is to end, and does not answer; it is not told again", ask.Task.Job, at)
			}
		}
	}
	book := site.CoresOf(t.Site).Book
	if book == nil {
		return nil
	}
	ask, id := t.borrow(at)
	if ask == nil {
		return nil
	}
	request := func(m grid.Message) bool {
		r, yes := m.(*lease.Request)
		return yes && r.Number == ask.Number
	}
	if !t.again(at, request) {
		return fmt.Errorf("%s is asked for processors, and does not answer, and is not asked again", at)
	}
	t.hear(at, grant(at, ask))
	if l, _ := book.Get(id); l.State != lease.Claiming {
		return nil
	}
	t.step(&site.ChangeLease{Token: mark, Change: site.ReleaseLease, Number: id.Number})
	release := func(m grid.Message) bool {
		r, yes := m.(*lease.Release)
		return yes && r.Number == ask.Number
	}
	if !t.again(at, release) {
		return fmt.Errorf("%s is given lease %d back, and does not answer, and is not told again", at, id.Number)
	}
	return t.renewed(at)
}

// renewed has a lender confirm a claim, a user want the lease for longer, and the lender confirm what was said
// before that: the wish is said again. The lease serves nothing else from then on: jobs may be on it.
func (t *Twin) renewed(lender grid.SiteID) error {
	claim, id := t.claim(lender)
	if claim == nil {
		return nil
	}
	t.hear(lender, confirm(claim, claim.Sequence, 4*grid.Minute))
	wish := t.renew(id, 1)
	if wish == nil {
		return nil
	}
	t.hear(lender, confirm(claim, wish.Sequence-1, 4*grid.Minute))
	renew := func(m grid.Message) bool {
		r, yes := m.(*lease.Renew)
		return yes && r.Number == id.Number && r.Span > 0
	}
	if !t.again(lender, renew) {
		return fmt.Errorf("%s is to lend for longer, and confirms only what it was asked before, and is not asked again", lender)
	}
	return nil
}

// again has time pass until the site says something to another one, and reports whether it does.
func (t *Twin) again(to grid.SiteID, said func(m grid.Message) bool) bool {
	for end := t.Now + repeatMost; ; {
		next := max(t.Site.NextTimer(), t.Now+1)
		if next > end {
			t.Now = end
			return false
		}
		t.Now = next
		for _, s := range t.step(grid.Tick{}).Sends {
			if s.To == to && said(s.Message) {
				return true
			}
		}
	}
}
