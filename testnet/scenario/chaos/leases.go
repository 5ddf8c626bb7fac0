package chaos

import (
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// chaosLease links sites to a hierarchy, three below each, and lets three of four lend. Of
// three sites one borrows by load, one with S-STRD and one with X-STRD. Their terms are
// short enough to end within most of the faults.
func chaosLease(sites int, id func(int) grid.SiteID) func(site int) site.LeaseConfig {
	links := federation.Hierarchy(sites, 3, id)
	return func(i int) site.LeaseConfig {
		c := site.LeaseConfig{
			Lend: lends(i), Term: 2 * grid.Minute, Price: chaosPrice(i), Pay: 1000 * grid.Credit,
			Match: lease.MatchConfig{Links: links(i), Policy: policyOf(i), DelegationCycle: grid.Minute, Ordering: lease.OrderMostFree},
		}
		if c.Match.Policy == lease.DMM {
			c.Match.Threshold = 1000
		}
		return c
	}
}

// policyOf returns how a site decides to borrow.
func policyOf(site int) lease.Policy {
	return [...]lease.Policy{lease.DMM, lease.SSTRD, lease.XSTRD}[site%3]
}

// lends reports whether a site lends: three of four do.
func lends(site int) bool { return site%4 != 3 }

// recallSoon is within what time after it was lent on a lease of a chain is wanted back.
const recallSoon = 5 * grid.Minute

// recall has the lenders of half of the leases that are lent on want them back, until faults end.
func (f features) recall(t *trial) {
	seed, end, seen := t.script.Seed, federation.Warmup+t.span, make(map[uint64]bool)
	t.n.Observe(testnet.Observer{Send: func(now grid.Time, from int, to grid.SiteID, m grid.Message) {
		r, yes := m.(*lease.Renewed)
		s, up := scenario.SiteAt(t.n, from)
		if !yes || !up {
			return
		}
		book := site.CoresOf(s).Book
		l, _ := book.Get(lease.ID{Borrower: to, Number: r.Number})
		in, there := book.Get(lease.ID{Borrower: t.n.ID(from), Number: l.Via})
		lender, known := t.n.Index(in.Lender)
		if of := draw.Mix(uint64(from), l.Epoch); l.Via > 0 && there && known && !seen[of] {
			seen[of] = true
			at := now + grid.Time(roll(seed, "recalled", of, uint64(recallSoon)))
			if at < end && roll(seed, "recall", of, 2) == 0 {
				t.wish(Wish{Kind: WishRecall, At: at, Site: lender, Lender: from, Which: of})
			}
		}
	}})
}

// Of so many jobs that start on borrowed processors one is driven off them, so soon.
const (
	leaveEach = 8
	leaveSoon = 20 * grid.Second
)

// leave has users give processors back, by force, on which a job has just started, until faults end.
func (f features) leave(t *trial) {
	seed, end := t.script.Seed, federation.Warmup+t.span
	t.n.Observe(testnet.Observer{Start: func(now grid.Time, x *testnet.Execution) {
		at, known := t.n.Index(x.Pilot.Site)
		of := x.Job.ID.Lo + uint64(x.ID.Epoch)<<56
		if x.Pilot.Key == 0 || !known || roll(seed, "leave", of, leaveEach) > 0 {
			return
		}
		if when := now + grid.Time(roll(seed, "left at", of, uint64(leaveSoon))); when < end {
			t.wish(Wish{Kind: WishReturn, At: when, Site: at, Job: x.Job.ID.String(), Force: true})
		}
	}})
}

// leaseCounts is what a run has seen of leases.
type leaseCounts struct {
	Used int64 `json:"used"` // executions on borrowed processors
	Lost int64 `json:"lost"` // of them, ended with their pilots
	Paid int64 `json:"paid"` // leases
}

// leaseWatch watches what sites lend each other, besides what the checker does: a lender
// lends for longer in true time than its borrower believes (P-4), and may go on to for longer,
// be it that the borrower has not heard yet that it does (limit), and never until the borrower takes it for
// gone; one that its lender wants back is not prolonged (want); nobody lends on for longer than it borrows (lentOn), or
// says that it is free before that is (free); on a lease no
// more processors are used than it has (P-2), nothing runs on one that is over, and once
// everything has ended no lease, no pilot and no processor is missing (P-3).
type leaseWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	counts leaseCounts
	clocks *clockWatch // nil: none jumps
	older  older
	used   []map[uint64]int64     // processors in use at each site, by the lender's number of the grant
	wanted []map[uint64]grid.Time // by the same: when leases end that their lenders want back
	passed []map[uint64]uint64    // by the same: number of the lease by which the lender has the processors
}

func watchLeases(n *testnet.Network, c *testnet.Checker) *leaseWatch {
	w := &leaseWatch{n: n, checks: c, used: make([]map[uint64]int64, n.Len()), wanted: make([]map[uint64]grid.Time, n.Len()), passed: make([]map[uint64]uint64, n.Len())}
	for i := range w.used {
		w.used[i], w.wanted[i], w.passed[i] = make(map[uint64]int64), make(map[uint64]grid.Time), make(map[uint64]uint64)
	}
	n.Observe(testnet.Observer{
		Turn: func(now grid.Time, site int) { w.look(now, site) },
		Send: func(now grid.Time, from int, to grid.SiteID, m grid.Message) {
			switch m := m.(type) {
			case *lease.Renewed:
				w.limit(from, lease.ID{Borrower: to, Number: m.Number}, m.Epoch)
				w.pass(from, lease.ID{Borrower: to, Number: m.Number})
			case *lease.Released:
				w.free(now, from, to, m)
			case *lease.Revoke:
				w.want(from, m.Epoch)
			}
		},
		Start: func(_ grid.Time, x *testnet.Execution) {
			if x.Pilot.Key != 0 {
				w.counts.Used++
				w.use(x)
			}
		},
		End: func(_ grid.Time, x *testnet.Execution) {
			if x.Pilot.Key == 0 {
				return
			}
			if x.Lost {
				w.counts.Lost++
			}
			used := w.used[x.Site]
			if used[x.Pilot.Key] -= x.Job.Processors; used[x.Pilot.Key] == 0 {
				delete(used, x.Pilot.Key)
			}
		},
	})
	return w
}

// lent returns the lease of that number that a site has lent. The site is up.
func (w *leaseWatch) lent(at int, key uint64) (lease.Lease, bool) {
	s, _ := scenario.SiteAt(w.n, at)
	for l := range lease.All(site.CoresOf(s).Book) {
		if l.Lent && l.Epoch == key {
			return *l, true
		}
	}
	return lease.Lease{}, false
}

// want notes when a lease ends that its lender wants back, and checks that it is not later than
// it was to be when its lender said so for the first time.
func (w *leaseWatch) want(at int, key uint64) {
	if _, up := scenario.SiteAt(w.n, at); !up {
		return
	}
	l, there := w.lent(at, key)
	if !there || l.State != lease.Active {
		return
	}
	switch end, before := w.wanted[at][key]; {
	case !before:
		w.wanted[at][key] = l.End
	case l.End > end:
		w.checks.Violated("%s lends lease %d of %s until %v, and wants it back, which was to end at %v", w.n.ID(at), l.Number, l.Borrower, l.End, end)
	}
}

// use checks an execution that begins on a lease: only a daemon that is up lets one.
func (w *leaseWatch) use(x *testnet.Execution) {
	used := w.used[x.Site]
	used[x.Pilot.Key] += x.Job.Processors
	switch l, there := w.lent(x.Site, x.Pilot.Key); {
	case !there || l.Sink != x.Pilot.Site:
		w.checks.Violated("%s runs a task of %s on a lease that is not there", w.n.ID(x.Site), x.Pilot.Site)
	case used[x.Pilot.Key] > l.Processors:
		w.checks.Violated("%s runs tasks on %d processors of a lease of %d", w.n.ID(x.Site), used[x.Pilot.Key], l.Processors)
	}
}

// ends checks that a lease that is over has ended its tasks.
func (w *leaseWatch) ends(at int) {
	for key, used := range w.used[at] {
		if _, there := w.lent(at, key); !there {
			w.checks.Violated("%s runs tasks on %d processors of a lease that is over", w.n.ID(at), used)
		}
	}
}

// look checks what a site believes to have borrowed, after each of its turns.
func (w *leaseWatch) look(now grid.Time, at int) {
	mine := w.n.Clock(at)
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	w.ends(at)
	book := site.CoresOf(s).Book
	for l := range lease.All(book) {
		if l.Lent && l.Via > 0 {
			w.lentOn(at, book, l)
			if err := lease.Audit(mine.Local(now), book); err != nil { // of others a boundWatch asks, less often
				w.checks.Violated("%s: %w", w.n.ID(at), err)
			}
		}
		if l.Lent || l.State != lease.Active || mine.True(l.End) <= now {
			continue
		}
		lender, _ := w.n.Index(l.Lender)
		other, up := scenario.SiteAt(w.n, lender)
		if !up {
			continue // its books are durable, and its pilots are alive without it
		}
		held, there := site.CoresOf(other).Book.Get(l.ID) // who borrows lends, or could
		if !there || !held.Lent || held.Epoch != l.Epoch || held.State != lease.Active {
			continue // taken back by force: the borrower learns of it
		}
		if w.clocks.lease(l) || w.older.lease(l) {
			continue
		}
		if gone, most := mine.True(book.Gone(l.ID)), w.n.Clock(lender).True(held.End+lease.Spare(site.CoresOf(other).Book, l.ID)); gone < most {
			w.checks.Violated("%s takes lease %d for gone at %v, and %s may keep it until %v", w.n.ID(at), l.Number, gone, l.Lender, most)
		}
		if until, lent := mine.True(l.End), w.n.Clock(lender).True(held.End); until >= lent || l.Processors != held.Processors {
			w.checks.Violated("%s holds %d processors of lease %d until %v, %s lends %d until %v", w.n.ID(at), l.Processors, l.Number, until, l.Lender, held.Processors, lent)
		}
	}
}

// limit checks that the borrower of a lease, of which its lender says that it is claimed or renewed,
// counts on it to end before the lender has to let it.
func (w *leaseWatch) limit(lender int, id lease.ID, epoch uint64) {
	at, known := w.n.Index(id.Borrower)
	if !known {
		return
	}
	mine, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	its, up := scenario.SiteAt(w.n, lender)
	if !up {
		return
	}
	l, there := site.CoresOf(mine).Book.Get(id)
	held, lent := site.CoresOf(its).Book.Get(id)
	switch {
	case !there || l.Lent || l.Epoch != epoch || l.State != lease.Claiming && l.State != lease.Active:
	case !lent || !held.Lent || held.Epoch != epoch || held.State != lease.Active:
	case held.Via > 0 && l.State == lease.Claiming || w.clocks.lease(&l) || w.older.lease(&l): // it may not know yet of what is lent on to it
	default:
		if until, most := w.n.Clock(at).True(l.Limit), w.n.Clock(lender).True(held.Limit); until >= most {
			w.checks.Violated("%s counts on lease %d, %v, until %v at most, and %s lends it until %v at most", id.Borrower, id.Number, l.State, until, w.n.ID(lender), most)
		}
	}
}

// pass notes by which lease a site has what it lends on with another.
func (w *leaseWatch) pass(at int, id lease.ID) {
	if s, up := scenario.SiteAt(w.n, at); up {
		if l, there := site.CoresOf(s).Book.Get(id); there && l.Lent && l.Via > 0 {
			w.passed[at][l.Epoch] = l.Via
		}
	}
}

// free checks that a site which has lent on says that the processors are free no sooner than it takes them
// for free itself.
func (w *leaseWatch) free(now grid.Time, at int, to grid.SiteID, m *lease.Released) {
	s, up := scenario.SiteAt(w.n, at)
	via, passed := w.passed[at][m.Epoch]
	if !up || !passed {
		return
	}
	book := site.CoresOf(s).Book
	l, there := book.Get(lease.ID{Borrower: w.n.ID(at), Number: via})
	if !there || w.clocks.lease(&l) || w.older.lease(&l) {
		return
	}
	if free, gone := w.n.Clock(at).Local(now)+m.Gone, book.Gone(l.ID); free < gone {
		w.checks.Violated("%s says that lease %d of %s is free at %v, and takes lease %d, which it lent on, for gone at %v", w.n.ID(at), m.Number, to, free, via, gone)
	}
}

// lentOn checks a lease by which a site lends what it borrows.
func (w *leaseWatch) lentOn(at int, book *lease.Book, l *lease.Lease) {
	in, there := book.Get(lease.ID{Borrower: w.n.ID(at), Number: l.Via})
	if there && in.State == lease.Active && l.State == lease.Active && (l.End > in.End || l.Limit > in.Limit) {
		w.checks.Violated("%s lends lease %d of %s on until %v, %v at most, and has it until %v, %v at most", w.n.ID(at), l.Number, l.Borrower, l.End, l.Limit, in.End, in.Limit)
	}
}

// left says what a site that is up lends or borrows still, or which work it has for or of
// others; nil: nothing. A session that has broken as the last end was acknowledged takes
// seconds to come again.
func (w *leaseWatch) left(i int) error {
	s, up := scenario.SiteAt(w.n, i)
	if !up {
		return nil
	}
	for range lease.All(site.CoresOf(s).Book) {
		return fmt.Errorf("%s lends or borrows still", w.n.ID(i))
	}
	if held := w.n.Held(i); held != "" {
		return fmt.Errorf("%s has work for or of others left: %s", w.n.ID(i), held)
	}
	return nil
}

// pilots says that there are some; nil: there is none.
func (w *leaseWatch) pilots() error {
	if pilots := w.n.Pilots(); pilots > 0 {
		return fmt.Errorf("there are %d pilots", pilots)
	}
	return nil
}

// atRest returns what is left that should not be.
func (w *leaseWatch) atRest() error {
	for i := range w.n.Len() {
		s, up := scenario.SiteAt(w.n, i)
		if !up {
			continue
		}
		if offer := s.Offer(); offer.Free != offer.Processors {
			return fmt.Errorf("%s has %d of its %d processors free, and nothing to do", w.n.ID(i), offer.Free, offer.Processors)
		}
		if left := w.n.Held(i); left != "" {
			return fmt.Errorf("%s has work for or of others left, and nothing to do: %s", w.n.ID(i), left)
		}
	}
	return nil
}
