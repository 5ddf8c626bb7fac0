package chaos

import (
	"fmt"
	"maps"
	"slices"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/point"
	"gridnode/testnet/scenario/federation"
)

// boundWatch looks for what lasts longer than it may, and for what is left:
//
//   - a hold or a lease that its site has not let go of when it ends (A-2, P-3);
//   - processors that a site has borrowed for another to which it does not lend them (P-3);
//   - a lease that is over and whose processes are not ended (P-5);
//   - more jobs than its owner allows that wait for several sites;
//   - a site that heads others and has a job to be shared out that does not wait for a place;
//   - a site that is drained and lends what it has not lent before, or lends more than its owner
//     allows;
//   - a count that a site keeps and a recount of its records does not give, processors or cheques
//     that are kept for what is over, a job that waits in no queue, and what is agreed with another site
//     and waits without a timer that asks again in time (site.Audit);
//   - a site that knows of a job what it has not saved, and would forget (J-1, R-5; site.JobsAudit);
//   - once all have healed and every job has ended: processors, holds, cheques, leases and
//     results that have not come back within a bound (settled), and records of them (atRest).
type boundWatch struct {
	n       *testnet.Network
	checks  *testnet.Checker
	roster  *roster
	open    int       // jobs that are not over
	last    grid.Time // when the last one ended
	healed  grid.Time // from then on nothing goes wrong
	turns   int
	jobs    []site.JobsAudit       // of sites
	most    map[int]int64          // processors that a site's owner lets it lend
	queue   map[int]int            // jobs that may wait at a site for several, or be claimed there
	drained map[int]grid.Time      // since when a site has been drained
	lending map[int]lendingKeys    // what it lent then
	ending  map[draining]grid.Time // since when a lease has been over
	came    map[int]grid.Time      // when a site last came up
}

// lendingKeys are leases by their lender's numbers.
type lendingKeys map[uint64]bool

// overdue is how long after its end something may still be there: turns come with inputs.
const overdue = grid.Second

// settleMost is how long after the end of the last job, and of all faults, everything has to be
// back: the longest lease that anybody asks for, and what it takes to be paid for it.
const settleMost = 4 * grid.Hour

func watchBounds(n *testnet.Network, c *testnet.Checker, r *roster, span grid.Time) *boundWatch {
	w := &boundWatch{n: n, checks: c, roster: r, healed: federation.Warmup + span + grid.Minute, jobs: make([]site.JobsAudit, n.Len()), most: make(map[int]int64), queue: make(map[int]int), drained: make(map[int]grid.Time), lending: make(map[int]lendingKeys), ending: make(map[draining]grid.Time), came: comings(n)}
	n.Observe(testnet.Observer{Turn: w.turn, Event: w.event, Send: w.send})
	return w
}

func (w *boundWatch) event(now grid.Time, _ int, e *grid.Event) {
	switch e.Kind {
	case grid.JobSubmitted:
		w.open++
	case grid.JobFinished, grid.JobRefused, grid.JobCancelled:
		w.open--
		w.last = now
	}
}

// boundTurns is after how many turns of all sites one is looked at: what lasts too long lasts
// for many. What counts as over is looked at more seldom still, as that is much.
const (
	boundTurns = 16
	endedTurns = 16 * boundTurns
)

// turn looks at what a site holds.
func (w *boundWatch) turn(now grid.Time, at int) {
	came, ever := w.came[at]
	if w.turns++; w.turns%boundTurns != 0 && !(ever && came == now) {
		return
	}
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	local := w.n.Clock(at).Local(now)
	err := site.Audit(local, s)
	if err == nil && w.turns%endedTurns == 0 {
		err = site.AuditEnded(s)
	}
	if err != nil {
		w.checks.Violated("%s: %w", w.n.ID(at), err)
	}
	if err := w.jobs[at].Look(s, func(key string) []byte { return testnet.SavedRecord(w.n, at, key) }); err != nil {
		w.checks.Violated("%s: %w", w.n.ID(at), err)
	}
	cores := site.CoresOf(s)
	for l := range cores.Home.Each {
		if l.State == lease.Held && l.End+overdue < local {
			w.checks.Violated("%s holds %d processors for job %s since %v, and was to until %v", w.n.ID(at), l.Processors, l.Subject, l.Since, l.End)
		}
	}
	book := cores.Book
	for l := range lease.All(book) {
		w.used(at, book, l)
		w.drains(now, at, l)
		if l.End+overdue < local {
			w.checks.Violated("%s has lease %d of %s by %s, %v, which was to end at %v", w.n.ID(at), l.Number, l.Borrower, l.Lender, l.State, l.End)
		}
	}
	w.lends(at, s)
	if c := cores.Coordinator; c != nil && c.Queue().Len()+c.Claiming() > w.queue[at] {
		w.checks.Violated("%s has %d jobs that wait for several sites, and %d at some, its owner allows %d", w.n.ID(at), c.Queue().Len(), c.Claiming(), w.queue[at])
	}
	w.collected(at, s, cores.Head)
	w.drain(now, at, s)
}

// send looks at a lender as it grants: what it holds may be gone by its next turn.
func (w *boundWatch) send(_ grid.Time, at int, _ grid.SiteID, m grid.Message) {
	if _, yes := m.(*lease.Grant); !yes {
		return
	}
	if s, up := scenario.SiteAt(w.n, at); up {
		w.lends(at, s)
	}
}

// lends checks that a site lends no more than its owner lets it.
func (w *boundWatch) lends(at int, s *site.Site) {
	most, bounded := w.most[at]
	if t := s.LeaseTotals(); bounded && t.Held+t.Lent > most {
		w.checks.Violated("%s lends %d processors and holds %d for leases, its owner allows %d", w.n.ID(at), t.Lent, t.Held, most)
	}
}

// used checks that processors which a site has borrowed for another are lent to it.
func (w *boundWatch) used(at int, book *lease.Book, in *lease.Lease) {
	if in.Lent || in.State != lease.Active || in.Sink == w.n.ID(at) {
		return
	}
	for l := range lease.All(book) {
		if l.Lent && l.Via == in.Number {
			return
		}
	}
	w.checks.Violated("%s has borrowed %d processors with lease %d for %s, and lends them to nobody", w.n.ID(at), in.Processors, in.Number, in.Sink)
}

// drains checks that what runs on lent processors ends soon after their lease.
func (w *boundWatch) drains(now grid.Time, at int, l *lease.Lease) {
	key := draining{at, l.Epoch}
	if !l.Lent || l.State != lease.Ending {
		return
	}
	since, known := w.ending[key]
	switch came, ever := w.came[at]; {
	case !known || ever && came > since:
		w.ending[key] = now
	case now-since > drainMost:
		w.checks.Violated("lease %d of %s by %s is over since %v, and what runs there is not ended", l.Number, l.Borrower, l.Lender, since)
	}
}

// draining names a lease that is over at its lender, by whose number it is known.
type draining struct {
	lender int
	epoch  uint64
}

// drainMost is how long processes may take to end: they are asked, and then killed.
const drainMost = 10 * grid.Second

// collected checks that a head keeps no more jobs than wait for a place.
func (w *boundWatch) collected(at int, s *site.Site, head *muscle.Head) {
	if head == nil {
		return
	}
	kept, _ := head.Waiting()
	placing := 0
	if kept > 0 {
		s.Jobs(func(v site.View) bool {
			if v.State == site.Placing {
				placing++
			}
			return placing < kept
		})
	}
	if placing < kept {
		w.checks.Violated("%s has %d jobs to be shared out, and %d that wait for a place", w.n.ID(at), kept, placing)
	}
}

// drain checks that a site which is drained lends nothing more.
func (w *boundWatch) drain(now grid.Time, at int, s *site.Site) {
	if !s.Draining() {
		delete(w.drained, at)
		return
	}
	lent := make(lendingKeys)
	for l := range lease.All(site.CoresOf(s).Book) {
		if l.Lent && l.State != lease.Requested && l.Via == 0 {
			lent[l.Epoch] = true
		}
	}
	if _, since := w.drained[at]; !since {
		w.drained[at], w.lending[at] = now, lent
		return
	}
	for epoch := range lent {
		if !w.lending[at][epoch] {
			w.checks.Violated("%s is drained since %v, and lends processors that it did not lend then", w.n.ID(at), w.drained[at])
		}
	}
}

// late says what is not back in time.
func (w *boundWatch) late(now grid.Time, left error) {
	if left != nil && w.open == 0 && now > max(w.last, w.healed)+settleMost {
		w.checks.Violated("%v after the last job and the last fault %w", now-max(w.last, w.healed), left)
	}
}

// restWatch looks for what is left to be done once every job has ended. It is asked after each
// instant, so it asks first who had something left the last time.
type restWatch struct {
	n     *testnet.Network
	sites []func(at int) error // what a site has left
	all   []func() error       // what else is
	last  int                  // site
}

// left says what is left to be done; nil: nothing.
func (w *restWatch) left() error {
	for i := range w.n.Len() {
		at := (w.last + i) % w.n.Len()
		for _, left := range w.sites {
			if err := left(at); err != nil {
				w.last = at
				return err
			}
		}
	}
	for _, left := range w.all {
		if err := left(); err != nil {
			return err
		}
	}
	return nil
}

// left says what a site has of others, or others of it, and is to be back when nothing is to
// be done; nil: nothing.
func (w *boundWatch) left(i int) error {
	s, up := scenario.SiteAt(w.n, i)
	if !up {
		return fmt.Errorf("%s is down", w.n.ID(i))
	}
	for id, t := range s.Tenants() {
		return fmt.Errorf("%s counts %d jobs and guarantees of %s on %d processors", w.n.ID(i), t.Jobs, id, t.Processors)
	}
	for _, g := range s.GPUs(w.n.Now()) {
		if g.Free != g.Count {
			return fmt.Errorf("%s has %d of %d GPUs free", w.n.ID(i), g.Free, g.Count)
		}
	}
	if held := s.Held(); held > 0 {
		return fmt.Errorf("%s has %d claims, leases, gangs and pilots", w.n.ID(i), held)
	}
	return w.kept(i, s)
}

// kept says which job of another site is kept that has ended: its home has heard how, or is
// a member no longer.
func (w *boundWatch) kept(at int, s *site.Site) (err error) {
	s.Jobs(func(v site.View) bool {
		if v.Job.Home != w.n.ID(at) {
			err = fmt.Errorf("%s keeps job %s of %s, which is %v", w.n.ID(at), v.Job.ID, v.Job.Home, v.State)
		}
		return err == nil
	})
	return err
}

// atRest looks for records of what is over.
func (w *boundWatch) atRest() error {
	for i := range w.n.Len() {
		kinds := make(map[string]int)
		for key := range w.n.Saved(i) {
			kinds[point.Kind(key)]++
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			if !lasting[kind] && !(unheard[kind] && w.roster.out(i)) {
				return fmt.Errorf("invariant violated: %s has saved %d records %s, and nothing is to be done", w.n.ID(i), kinds[kind], kind)
			}
		}
	}
	return nil
}

// unheard are the records that a site keeps, too, whom nobody hears: others end them.
var unheard = map[string]bool{"fee/owes": true, "fee/owed": true}

// lasting are the records that are kept when everything is over.
var lasting = map[string]bool{
	"job": true, "number": true, "deaths": true, "bank/journal": true, "bank/account": true, "bank/hold": true,
	"bank/payment": true, // until its payer hears what became of it, or nothing can any more
	"link":         true,
	"met":          true, "revoked": true,
	"quota":      true,
	"dataset":    true, // until it is taken out, which package owner looks at
	"invitation": true, "acquaintances": true,
}
