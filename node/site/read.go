package site

import (
	"cmp"
	"iter"
	"slices"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/after"
	"gridnode/node/member"
)

// Job returns what is known of a job, its own or another site's.
func (s *Site) Job(id grid.JobID) (View, bool) {
	e := s.jobs.byID[id]
	if e == nil {
		return View{}, false
	}
	v := s.jobs.view(e, true)
	if slices.ContainsFunc(v.Verdicts, func(v market.Verdict) bool { return v.Name == "" }) {
		v.Verdicts = slices.Clone(v.Verdicts) // they may be the entry's
		for i := range v.Verdicts {
			v.Verdicts[i].Name = cmp.Or(v.Verdicts[i].Name, s.SiteName(v.Verdicts[i].Site))
		}
	}
	return v, true
}

// Glance returns what Jobs yields of one job, and whether there is that job.
func (s *Site) Glance(id grid.JobID) (View, bool) {
	e := s.jobs.byID[id]
	if e == nil {
		return View{}, false
	}
	return s.jobs.view(e, false), true
}

// Jobs calls yield for every job, in no particular order, until it returns false.
func (s *Site) Jobs(yield func(View) bool) {
	for _, e := range s.jobs.byID {
		if !yield(s.jobs.view(e, false)) {
			return
		}
	}
}

// Census returns how many jobs there are in each state, and of those of this site that wait
// how many wait for what.
func (s *Site) Census() ([]Count, map[after.Reason]int64) {
	return s.jobs.census(), s.jobs.gate.Reasons()
}

// Answers returns what sites that were asked to guarantee a job have answered, and what this
// one has.
func (s *Site) Answers() (received, given market.Answers) { return s.placing.agent.Answers() }

// Limits returns the bounds of the table of jobs, defaults filled in.
func (s *Site) Limits() Limits { return s.cfg.Limits }

// Wait returns how long a job of so many processors would have to wait here, by the
// estimates of those before it; grid.Never if for ever.
func (s *Site) Wait(now grid.Time, processors int64, span grid.Time) grid.Time {
	start := s.cluster.EarliestStart(now, processors, span)
	if start == grid.Never {
		return grid.Never
	}
	return start - now
}

// Draining reports whether the site takes no new work.
func (s *Site) Draining() bool { return s.jobs.draining }

// Total returns how many processors the site has of its own.
func (s *Site) Total() int64 { return s.cfg.Processors }

// Idle returns how many processors nobody uses and nobody waits for.
func (s *Site) Idle(now grid.Time) int64 { return s.cluster.Idle(now) }

// Scheduler is how it stands with another scheduler, to whom this site's processors belong.
type Scheduler struct {
	Others  int64     // processors that its other users hold
	Trouble string    // why it does not answer; empty: it does
	Margin  grid.Time // how much later than foretold processors are expected, as learned
	Broken  int64     // promises that could not be kept, as it began jobs late
}

// Scheduler returns how it stands with the scheduler of this site's processors, if they are
// another one's.
func (s *Site) Scheduler() Scheduler {
	r := s.room
	return Scheduler{Others: r.ledger.Held(), Trouble: r.trouble, Margin: r.ledger.Margin(), Broken: r.ledger.Broken()}
}

// Price returns what the site charges at the moment, a processor-hour.
func (s *Site) Price() grid.Price { return s.price() }

// Pricing returns how the price comes about.
func (s *Site) Pricing() market.Pricing { return s.cfg.Market.Pricing }

// Offer returns the site's own quote as it was last published.
func (s *Site) Offer() directory.Quote {
	if s.quotes == nil {
		return directory.Quote{}
	}
	return s.quotes.quoted
}

// Known returns the newest quote of another site that came by.
func (s *Site) Known(id grid.SiteID) (directory.Quote, bool) {
	if s.quotes == nil {
		return directory.Quote{}, false
	}
	return s.quotes.dir.Known(id)
}

// Load returns the newest load report of another site that came by.
func (s *Site) Load(id grid.SiteID) (directory.Load, bool) {
	if s.quotes == nil {
		return directory.Load{}, false
	}
	return s.quotes.dir.Load(id)
}

// SiteName returns what people call a site.
func (s *Site) SiteName(id grid.SiteID) string {
	if id == s.cfg.ID {
		return s.cfg.Name
	}
	if s.membership != nil {
		if m := s.membership.roll.Member(id); m != nil {
			return m.Name
		}
	}
	if s.gangs != nil {
		if name := s.gangs.scout.nameOf(id); name != "" {
			return name
		}
	}
	if q, known := s.Known(id); known && q.Name != "" {
		return q.Name
	}
	return string(id)
}

// Siblings returns the sites that this one gossips with, by ID; nil if it was told a
// topic instead.
func (s *Site) Siblings() []grid.SiteID {
	if s.siblings == nil {
		return nil
	}
	return s.siblings.circle.Members()
}

// Network returns what this site knows of the latencies between sites, by their
// indices: for co-allocation (coalloc.NewView) and for users. Bandwidths are those of
// the quotes. It takes O(sites) time.
func (s *Site) Network(now grid.Time, sites []grid.SiteID) *coalloc.Estimates {
	if s.latencies == nil {
		return coalloc.Alone(sites)
	}
	bandwidth := make([]int64, len(sites))
	for i, id := range sites {
		bandwidth[i] = s.cfg.Bandwidth * bytesPerMegabit // also of those that have no quote, as far as anybody knows
		if id == s.cfg.ID {
			continue
		}
		if q, known := s.Known(id); known {
			bandwidth[i] = q.Bandwidth * bytesPerMegabit
		}
	}
	return s.latencies.survey.Network(now, sites, bandwidth)
}

// bytesPerMegabit turns a rating's Mb/s into bytes a second.
const bytesPerMegabit = 125_000

// QueryMessages returns how many queries of this site the directory has answered
// with 0, 1, 2, … messages; the last number is of those that took more. The caller
// must not change it. It is nil for a site without a directory.
func (s *Site) QueryMessages() []int64 {
	if s.quotes == nil {
		return nil
	}
	return s.quotes.asked[:]
}

// QueryLookups returns how many times queries made the router look for the holders
// of a cell.
func (s *Site) QueryLookups() int64 {
	if s.quotes == nil {
		return 0
	}
	return s.quotes.dir.QueryLookups
}

// Roll returns what this site knows of the members, nil if its federation is open. It
// must not be changed.
func (s *Site) Roll() *member.Roll {
	if s.membership == nil {
		return nil
	}
	return s.membership.roll
}

// Desk returns what this site has to do with banks; nil if it has nothing to do with
// them. The caller may read it.
func (s *Site) Desk() *bank.Desk {
	if s.payment == nil {
		return nil
	}
	return s.payment.desk
}

// Fees returns how many leases this site has to pay for still, and for how many that are
// over it is to be paid.
func (s *Site) Fees() (owes, owed int) {
	if s.fees == nil {
		return 0, 0
	}
	return s.fees.tab.Open()
}

// Leases returns what the site lends and borrows, in order of their numbers.
func (s *Site) Leases() []LeaseView {
	if s.loans == nil {
		return nil
	}
	var views []LeaseView
	for _, l := range s.loans.book.Leases() {
		views = append(views, s.borrowing.view(l))
	}
	return views
}

// LeaseTotals returns how many processors the site lends and borrows.
func (s *Site) LeaseTotals() lease.Totals {
	if s.loans == nil {
		return lease.Totals{}
	}
	return s.loans.book.Totals()
}

// Delegations returns what the site's matchmaker has done so far.
func (s *Site) Delegations() lease.Delegations {
	if s.borrowing == nil {
		return lease.Delegations{}
	}
	return s.borrowing.matches.Delegations
}

// Pilot reports whether this site keeps a pilot for the lease of that epoch.
func (s *Site) Pilot(epoch uint64) bool {
	if s.pilots == nil {
		return false
	}
	_, kept := s.pilots.byEpoch[epoch]
	return kept
}

// PilotOf returns the active lease by which another site uses processors of this one.
func (s *Site) PilotOf(from grid.SiteID, key uint64) (lease.Lease, bool) {
	if s.pilots == nil {
		return lease.Lease{}, false
	}
	return s.pilots.of(from, key)
}

// Held returns how much is held here that somebody must let go of one day: leases given
// and taken, claims and holds of co-allocated jobs, their gangs, and pilots.
func (s *Site) Held() int {
	held := len(s.Leases())
	if s.pilots != nil {
		held += len(s.pilots.byEpoch)
	}
	if s.gangs != nil {
		held += len(s.gangs.home.Leases()) + s.gangs.coord.Claiming() + len(s.gangs.alive)
	}
	if s.spreads != nil {
		held += len(s.spreads.alive)
	}
	return held
}

// Tenants yields what other sites have here of guarantees and jobs that are not over.
func (s *Site) Tenants() iter.Seq2[grid.SiteID, market.Tenant] {
	if s.placing == nil {
		return func(func(grid.SiteID, market.Tenant) bool) {}
	}
	return s.placing.agent.Tenants()
}

// Cores are those cores of a site that watchers of a simulation look into. They change
// nothing. One that the site has no use for is nil.
type Cores struct {
	Book        *lease.Book
	Home        *coalloc.Home // what is held and claimed here for components of this site's jobs
	Coordinator *coalloc.Coordinator
	Market      *market.Agent
	Directory   *directory.Directory
	Head        *muscle.Head
}

// CoresOf returns the cores of a site.
func CoresOf(s *Site) (c Cores) {
	if s.loans != nil {
		c.Book = s.loans.book
	}
	if s.gangs != nil {
		c.Home, c.Coordinator = s.gangs.home, s.gangs.coord
	}
	if s.placing != nil {
		c.Market = s.placing.agent
	}
	if s.quotes != nil {
		c.Directory = s.quotes.dir
	}
	if s.packing != nil {
		c.Head = s.packing.Head
	}
	return c
}

// Links returns the links of this site, and why one is not used.
func (s *Site) Links() []lease.Kin {
	if s.links == nil {
		return nil
	}
	return s.links.kinship.Kin()
}

// Notices returns what people who run the site should know since the last time, for
// the log.
func (s *Site) Notices() []Notice {
	list := s.notices
	s.notices = nil
	return list
}

// DataSets yields the data sets that this site holds, by name.
func (s *Site) DataSets(yield func(*dataset.Set) bool) {
	if s.inputs != nil {
		s.inputs.catalog.Sets(yield)
	}
}

// DataSet returns a data set that this site holds.
func (s *Site) DataSet(name string) (dataset.Set, bool) {
	if s.inputs == nil {
		return dataset.Set{}, false
	}
	return s.inputs.catalog.Get(name)
}

// GPUs returns how many GPUs this site has, and how many nobody has at now, by type.
func (s *Site) GPUs(now grid.Time) grid.GPUStock { return s.cluster.Stock(now) }
