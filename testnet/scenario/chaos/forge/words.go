package forge

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// leases returns those that a site lends, or borrows, in order.
func leases(s *site.Site, lent bool, states ...lease.State) (list []lease.Lease) {
	for _, v := range s.Leases() {
		if v.Lent == lent && slices.Contains(states, v.State) {
			list = append(list, v.Lease)
		}
	}
	return list
}

// lenderEpoch has a lender hear of a lease with another epoch.
func (f *Forger) lenderEpoch(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Held, lease.Active), which)
	if !there {
		return false, nil
	}
	const late = 1 << 40 // sequences do not come that far
	words := []grid.Message{
		&lease.Release{Number: l.Number, Epoch: l.Epoch + 1},
		&lease.Renew{Number: l.Number, Epoch: l.Epoch + 1, Sequence: late, Span: 3 * grid.Hour},
		&lease.Claim{Number: l.Number, Epoch: l.Epoch + 1, Sequence: late},
	}
	return true, f.unmoved(at, l, l.Borrower, words[which>>16%3])
}

// borrowerEpoch has a borrower hear of a lease with another epoch, or of somebody else than
// its lender.
func (f *Forger) borrowerEpoch(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, false, lease.Held, lease.Claiming, lease.Active), which)
	if !there {
		return false, nil
	}
	from, epoch := l.Lender, l.Epoch+1
	if which>>24%2 == 0 && other != l.Lender {
		from, epoch = other, l.Epoch
	}
	words := []grid.Message{
		&lease.Released{Number: l.Number, Epoch: epoch, Cause: lease.Unknown},
		&lease.Revoke{Number: l.Number, Epoch: epoch},
		&lease.Renewed{Number: l.Number, Epoch: epoch, Sequence: 1, Term: grid.Day, Limit: grid.Day},
	}
	if from != l.Lender { // the others would be answered with a release, which the other site may be waiting for
		words = words[:1]
	}
	return true, f.unmoved(at, l, from, words[which>>16%uint64(len(words))])
}

// unmoved has a site hear of a lease, and returns what has changed about it.
func (f *Forger) unmoved(at int, l lease.Lease, from grid.SiteID, m grid.Message) error {
	if !f.hear(at, from, m) {
		return nil
	}
	s, _ := scenario.SiteAt(f.N, at)
	if now, there := site.CoresOf(s).Book.Get(l.ID); !there || now != l {
		return fmt.Errorf("lease %+v is %+v (%t) after %T %+v of %s", l, now, there, m, m, from)
	}
	return nil
}

// Jobs returns those of a site that are in a state, in order.
func Jobs(s *site.Site, wanted func(v *site.View) bool) (list []site.View) {
	s.Jobs(func(v site.View) bool {
		if wanted(&v) {
			list = append(list, v)
		}
		return true
	})
	slices.SortFunc(list, func(a, b site.View) int { return a.Job.ID.Compare(b.Job.ID) })
	return list
}

// completion has a home hear that a job has ended elsewhere: with another epoch, or of a site
// where it is not.
func (f *Forger) completion(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	v, there := Chosen(Jobs(s, func(v *site.View) bool { return v.State == site.Awarded && v.Award.Site != f.N.ID(at) }), which)
	if !there {
		return false, nil
	}
	from, task := v.Award.Site, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch + 1}
	if v.Epoch > 1 {
		task.Epoch = v.Epoch - 1
	}
	if which>>16%2 == 0 && other != from && other != f.N.ID(at) {
		from, task.Epoch = other, v.Epoch
	}
	m := &market.JobCompletion{Task: task, Run: grid.Second, Cost: 1}
	if !f.hear(at, from, m) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.N, at)
	if now, known := s.Glance(v.Job.ID); !known || now.State != v.State || now.Epoch != v.Epoch {
		return true, fmt.Errorf("job %s, %s with epoch %d, is %s with epoch %d after a completion of epoch %d by %s", v.Job.ID, v.State, v.Epoch, now.State, now.Epoch, task.Epoch, from)
	}
	return true, nil
}

// guarantee has a site hear of a guarantee that it has given to another home: a job for it,
// or that it is not wanted.
func (f *Forger) guarantee(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	var list []market.Guarantee
	for g := range site.CoresOf(s).Market.Guarantees {
		if g.Home != other {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b market.Guarantee) int { return cmp.Or(a.Task.Compare(b.Task), cmp.Compare(a.Hold, b.Hold)) })
	g, there := Chosen(list, which)
	if !there || other == f.N.ID(at) {
		return false, nil
	}
	words := []grid.Message{
		&market.Cancel{Task: g.Task, Hold: g.Hold, Cause: "forged"},
		&market.JobSubmission{
			Job: &grid.Job{ID: g.Task.Job, Home: other, Resources: grid.Resources{Processors: 1}, Estimate: grid.Minute, Goal: grid.GoalTime}, Epoch: g.Task.Epoch, Hold: g.Hold, Deadline: grid.Never,
		},
	}
	m := words[which>>16%2]
	if !f.hear(at, other, m) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.N, at)
	for now := range site.CoresOf(s).Market.Guarantees {
		if now == g {
			return true, nil
		}
	}
	return true, fmt.Errorf("the guarantee of job %s, epoch %d, for %s is gone after %T of %s", g.Task.Job, g.Task.Epoch, g.Home, m, other)
}

// revocation has a site hear that another than the home of a job wants its end.
func (f *Forger) revocation(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	self := f.N.ID(at)
	v, there := Chosen(Jobs(s, func(v *site.View) bool { return v.Job.Home != self && v.Job.Home != other && !v.State.Terminal() }), which)
	if !there || other == self {
		return false, nil
	}
	if !f.hear(at, other, &market.Cancel{Task: grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}, Hold: v.Award.Hold, Cause: "forged"}) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.N, at)
	if now, known := s.Glance(v.Job.ID); !known || now.State != v.State {
		return true, fmt.Errorf("job %s of %s is %s after %s has wanted its end, and was %s", v.Job.ID, v.Job.Home, now.State, other, v.State)
	}
	return true, nil
}

// order has a lender get an order for one processor more than is left of a lease.
func (f *Forger) order(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	_, could := testnet.ForgeOrders(f.N, at, l.Sink, 0, f.newOrder(l, l.Processors-f.Used(at, l.Epoch)+1))
	return could, nil
}

// lateQuote has a holder get a publication once more, perhaps after newer ones, perhaps after
// the quote has run out.
func (f *Forger) lateQuote(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	p, there := Chosen(f.Publications.copies[at], which)
	if !there {
		return false, nil
	}
	before := kept(s, p.Publish.Quote.Site)
	m := &directory.Publish{Quote: p.Publish.Quote, Copies: slices.Clone(p.Publish.Copies)}
	if !f.hear(at, f.N.ID(p.From), m) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.N, at)
	number := m.Quote.Sequence
	if slices.Contains(before, number) || !slices.Contains(kept(s, m.Quote.Site), number) {
		return true, nil
	}
	if gone := f.Publications.gone[withdrawal{at, m.Quote.Site}]; gone > number {
		return true, fmt.Errorf("quote %d of %s is kept, and quote %d was withdrawn there", number, m.Quote.Site, gone)
	}
	if len(before) > 0 && slices.Min(before) > number {
		return true, fmt.Errorf("quote %d of %s is kept, and quotes %v were there", number, m.Quote.Site, before)
	}
	if local := f.N.Clock(at).Local(f.N.Now()); m.Quote.Expires() <= local {
		return true, fmt.Errorf("quote %d of %s is kept, which has run out at %v", number, m.Quote.Site, m.Quote.Expires())
	}
	return true, nil
}

// withdrawal has a holder hear that another site takes a quote back.
func (f *Forger) withdrawal(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	p, there := Chosen(f.Publications.copies[at], which)
	if !there || p.Publish.Quote.Site == other {
		return false, nil
	}
	before := kept(s, p.Publish.Quote.Site)
	if len(before) == 0 {
		return false, nil
	}
	q := *p.Publish.Quote
	if q.Sequence = slices.Max(before) + 1; !f.hear(at, other, &directory.Withdraw{Cell: p.Publish.Copies[0].Cell, Quote: &q}) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.N, at)
	if after := kept(s, q.Site); len(after) < len(before) {
		return true, fmt.Errorf("%s has withdrawn the quote of %s: %d copies are kept, and were %d", other, q.Site, len(after), len(before))
	}
	return true, nil
}

// kept returns the numbers of a site's quotes that a holder keeps.
func kept(holder *site.Site, of grid.SiteID) (numbers []uint64) {
	for q := range site.CoresOf(holder).Directory.Kept {
		if q.Site == of {
			numbers = append(numbers, q.Sequence)
		}
	}
	return numbers
}
