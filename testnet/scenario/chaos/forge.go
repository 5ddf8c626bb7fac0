package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// forger sends sites what an honest one would not: words about another epoch, about what is
// somebody else's, and orders for more than a lease has. That changes nothing where it arrives
// (J-4, R-1), and whoever gets an answer to what it never asked goes on.
type forger struct {
	n      *testnet.Network
	checks *testnet.Checker
	used   func(at int, key uint64) int64 // processors in use on a lease
	count  int64                          // of those that there was something for
	kinds  [8]int64                       // of them, by kind
	lies   [6]int64                       // of the others, by kind
	heard  [4]int64                       // of the rumours, by kind

	quotes  *quoteWatch
	greeted *greetings
	renewed map[int][]holding // what each site has asked a home about last
	wish    func(w Wish)      // has one be said
	pcg     *rand.PCG
	chance  int32     // of a million guarantees, how many are spoken of by others: they last for a moment
	end     grid.Time // of faults
}

// forgedMark begins the IDs of jobs that there are not.
const forgedMark = 0x666f7267

// watchForgeries starts to look for what forged orders have started.
func watchForgeries(n *testnet.Network, c *testnet.Checker, lent *leaseWatch) *forger {
	f := &forger{n: n, checks: c, quotes: watchQuotes(n, c), greeted: watchGreetings(n), renewed: make(map[int][]holding), used: func(at int, key uint64) int64 { return lent.used[at][key] }}
	n.Observe(testnet.Observer{Send: f.renews, Start: func(_ grid.Time, x *testnet.Execution) {
		if x.Job.ID.Hi == forgedMark {
			c.Violated("%s has started a task on %d processors that nobody may start: it exceeds a lease, or was ended, or has run before", n.ID(x.Site), x.Job.Processors)
		}
	}})
	return f
}

// aim has others speak of guarantees, by chance, as soon as there are any: to a share of them
// that is times, a hundredth of what sites get an hour.
func (f *forger) aim(seed uint64, times float64, end grid.Time, wish func(w Wish)) {
	f.pcg, f.chance, f.end, f.wish = draw.PCG(seed, "forged guarantees", draw.ForFaults), int32(min(times/100, 1)*million), end, wish
	f.n.Observe(testnet.Observer{Turn: f.turn})
}

func (f *forger) turn(now grid.Time, at int) {
	s, up := scenario.SiteAt(f.n, at)
	if !up || now < federation.Warmup || now >= f.end {
		return
	}
	for range site.CoresOf(s).Market.Guarantees {
		if draw.Chance(f.pcg, f.chance) {
			w := Wish{Kind: WishForge, At: now + 1, Site: at, Lender: int(draw.Uniform(f.pcg, uint64(f.n.Len()))), Which: f.pcg.Uint64()}
			w.Which -= w.Which % uint64(len(forgeries)) // the first kind
			f.wish(w)
		}
		return
	}
}

// drawForgeries draws when sites get what is forged.
func drawForgeries(seed uint64, sites int, times float64, span grid.Time) (drawn []Wish) {
	pcg := draw.PCG(seed, "forgeries", draw.ForFaults)
	for range int(times*float64(sites)*span.Seconds()/3600 + 0.5) {
		w := Wish{Kind: WishForge, Site: int(draw.Uniform(pcg, uint64(sites))), Lender: int(draw.Uniform(pcg, uint64(sites))), Which: pcg.Uint64()}
		w.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
		drawn = append(drawn, w)
	}
	return drawn
}

// forgery is one kind. It returns false if there is nothing for it at a site, and else what has
// changed that must not; nil: nothing has.
type forgery func(f *forger, at int, s *site.Site, other grid.SiteID, which uint64) (could bool, changed error)

// forgeries are all kinds.
var forgeries = [...]forgery{
	(*forger).guarantee, // first, see aim
	(*forger).lenderEpoch, (*forger).borrowerEpoch, (*forger).completion, (*forger).revocation, (*forger).order, (*forger).lateQuote, (*forger).withdrawal,
}

// say forges the kind that the wish says, or the next one for which there is something.
func (f *forger) say(w *Wish) {
	if _, up := scenario.SiteAt(f.n, w.Site); !up {
		return
	}
	f.n.Step(w.Site, grid.Tick{}) // what is due anyway is no effect of it
	other := f.n.ID(w.Lender)
	kinds, counts := forgeries[:], f.kinds[:]
	switch w.Kind {
	case WishLie:
		kinds, counts = lies[:], f.lies[:]
	case WishRumour:
		kinds, counts = rumours[:], f.heard[:]
	}
	for i := range len(kinds) {
		s, up := scenario.SiteAt(f.n, w.Site)
		if !up {
			return
		}
		kind := (int(w.Which%uint64(len(kinds))) + i) % len(kinds)
		could, changed := kinds[kind](f, w.Site, s, other, w.Which>>8)
		if changed != nil {
			f.checks.Violated("%s believes what is forged: %w", f.n.ID(w.Site), changed)
		}
		if could {
			f.count++
			counts[kind]++
			return
		}
	}
}

// chosen returns one of a list.
func chosen[T any](list []T, which uint64) (one T, there bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[which%uint64(len(list))], true
}

// hear has a site hear a message, and reports whether it is up still.
func (f *forger) hear(at int, from grid.SiteID, m grid.Message) bool {
	f.n.Step(at, &grid.Delivery{From: from, Message: m})
	_, up := scenario.SiteAt(f.n, at)
	return up
}

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
func (f *forger) lenderEpoch(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := chosen(leases(s, true, lease.Held, lease.Active), which)
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
func (f *forger) borrowerEpoch(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	l, there := chosen(leases(s, false, lease.Held, lease.Claiming, lease.Active), which)
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
func (f *forger) unmoved(at int, l lease.Lease, from grid.SiteID, m grid.Message) error {
	if !f.hear(at, from, m) {
		return nil
	}
	s, _ := scenario.SiteAt(f.n, at)
	if now, there := site.CoresOf(s).Book.Get(l.ID); !there || now != l {
		return fmt.Errorf("lease %+v is %+v (%t) after %T %+v of %s", l, now, there, m, m, from)
	}
	return nil
}

// jobs returns those of a site that are in a state, in order.
func jobsOf(s *site.Site, wanted func(v *site.View) bool) (list []site.View) {
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
func (f *forger) completion(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	v, there := chosen(jobsOf(s, func(v *site.View) bool { return v.State == site.Awarded && v.Award.Site != f.n.ID(at) }), which)
	if !there {
		return false, nil
	}
	from, task := v.Award.Site, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch + 1}
	if v.Epoch > 1 {
		task.Epoch = v.Epoch - 1
	}
	if which>>16%2 == 0 && other != from && other != f.n.ID(at) {
		from, task.Epoch = other, v.Epoch
	}
	m := &market.JobCompletion{Task: task, Run: grid.Second, Cost: 1}
	if !f.hear(at, from, m) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.n, at)
	if now, known := s.Glance(v.Job.ID); !known || now.State != v.State || now.Epoch != v.Epoch {
		return true, fmt.Errorf("job %s, %s with epoch %d, is %s with epoch %d after a completion of epoch %d by %s", v.Job.ID, v.State, v.Epoch, now.State, now.Epoch, task.Epoch, from)
	}
	return true, nil
}

// guarantee has a site hear of a guarantee that it has given to another home: a job for it,
// or that it is not wanted.
func (f *forger) guarantee(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	var list []market.Guarantee
	for g := range site.CoresOf(s).Market.Guarantees {
		if g.Home != other {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b market.Guarantee) int { return cmp.Or(a.Task.Compare(b.Task), cmp.Compare(a.Hold, b.Hold)) })
	g, there := chosen(list, which)
	if !there || other == f.n.ID(at) {
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
	s, _ = scenario.SiteAt(f.n, at)
	for now := range site.CoresOf(s).Market.Guarantees {
		if now == g {
			return true, nil
		}
	}
	return true, fmt.Errorf("the guarantee of job %s, epoch %d, for %s is gone after %T of %s", g.Task.Job, g.Task.Epoch, g.Home, m, other)
}

// revocation has a site hear that another than the home of a job wants its end.
func (f *forger) revocation(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	self := f.n.ID(at)
	v, there := chosen(jobsOf(s, func(v *site.View) bool { return v.Job.Home != self && v.Job.Home != other && !v.State.Terminal() }), which)
	if !there || other == self {
		return false, nil
	}
	if !f.hear(at, other, &market.Cancel{Task: grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}, Hold: v.Award.Hold, Cause: "forged"}) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.n, at)
	if now, known := s.Glance(v.Job.ID); !known || now.State != v.State {
		return true, fmt.Errorf("job %s of %s is %s after %s has wanted its end, and was %s", v.Job.ID, v.Job.Home, now.State, other, v.State)
	}
	return true, nil
}

// order has a lender get an order for one processor more than is left of a lease.
func (f *forger) order(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	_, could := testnet.ForgeOrders(f.n, at, l.Sink, 0, f.newOrder(l, l.Processors-f.used(at, l.Epoch)+1))
	return could, nil
}

// lateQuote has a holder get a publication once more, perhaps after newer ones, perhaps after
// the quote has run out.
func (f *forger) lateQuote(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	p, there := chosen(f.quotes.copies[at], which)
	if !there {
		return false, nil
	}
	before := kept(s, p.m.Quote.Site)
	m := &directory.Publish{Quote: p.m.Quote, Copies: slices.Clone(p.m.Copies)}
	if !f.hear(at, f.n.ID(p.from), m) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.n, at)
	number := m.Quote.Sequence
	if slices.Contains(before, number) || !slices.Contains(kept(s, m.Quote.Site), number) {
		return true, nil
	}
	if gone := f.quotes.gone[withdrawal{at, m.Quote.Site}]; gone > number {
		return true, fmt.Errorf("quote %d of %s is kept, and quote %d was withdrawn there", number, m.Quote.Site, gone)
	}
	if len(before) > 0 && slices.Min(before) > number {
		return true, fmt.Errorf("quote %d of %s is kept, and quotes %v were there", number, m.Quote.Site, before)
	}
	if local := f.n.Clock(at).Local(f.n.Now()); m.Quote.Expires() <= local {
		return true, fmt.Errorf("quote %d of %s is kept, which has run out at %v", number, m.Quote.Site, m.Quote.Expires())
	}
	return true, nil
}

// withdrawal has a holder hear that another site takes a quote back.
func (f *forger) withdrawal(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	p, there := chosen(f.quotes.copies[at], which)
	if !there || p.m.Quote.Site == other {
		return false, nil
	}
	before := kept(s, p.m.Quote.Site)
	if len(before) == 0 {
		return false, nil
	}
	q := *p.m.Quote
	if q.Sequence = slices.Max(before) + 1; !f.hear(at, other, &directory.Withdraw{Cell: p.m.Copies[0].Cell, Quote: &q}) {
		return true, nil
	}
	s, _ = scenario.SiteAt(f.n, at)
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
