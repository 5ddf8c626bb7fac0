package lease

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Matchmaker is the site manager of Delegated MatchMaking (§4): it dispatches the
// requests of a site to its processors, delegates them to neighbours when the site
// is full, and serves or passes on what neighbours delegate to it. By SSTRD or XSTRD it is
// the layer of delegation above the local queue ("The gain of resource delegation",
// section 4.2). It works on the site's cluster and book. It is deterministic, reads no clock and is not safe for
// concurrent use.
//
// What its owner does, besides what the Book wants:
//
//  1. Submit every job; Cancel those whose user wants that;
//  2. feed Step every local input of the book, and a grid.Tick at the end of a turn;
//  3. then call Dispatch and start what it returns, on the site's own processors;
//  4. start what is Brought on the lease that it names, or on own processors and the
//     leases together; report the end by Ended; end what is Lost;
//  5. when the book says Vacate, end what runs on that lease, report it by Ended and
//     Submit it anew: another site is asked.
type Matchmaker struct {
	cfg     MatchConfig
	cluster *lrms.Cluster
	book    *Book
	hearsay *hearsay
	rng     *rand.Rand

	demands  map[grid.TaskID]*demand // of this site's jobs and of other sites', not begun on own processors
	asking   map[uint64]*demand      // by number of the lease that is asked for, or had
	aside    []*demand               // own that gave way and that nobody has room for, and those wider than the site; in order of submission
	asideSum int64                   // processors of those of them that fit the site
	sequence uint64                  // of submissions
	seen     recent[grid.JobID]

	now                     grid.Time // of the last Step
	nextMatch, nextDelegate grid.Time

	delegateBy DelegateFunc // nil: DMM

	started    []lrms.Request // reused
	list       []*demand      // reused
	targets    []Target       // reused
	candidates []Candidate    // reused

	Delegations Delegations
}

// Delegations counts what a matchmaker has done.
type Delegations struct {
	Asked    int64 // requests sent to others, for own jobs or passed on
	Refused  int64 // of them
	Brought  int64 // own jobs for which processors came
	Hops     int64 // leases in their chains together
	Passed   int64 // of others, served with processors that were borrowed
	Served   int64 // of others, served with own processors
	Rejected int64 // of others
	// CancelledTime is processor-time for which processors had been delegated to this
	// site for jobs that were cancelled: their users are accountable for it (§4.3).
	CancelledTime grid.Time
}

// Work is a job of this site as it is submitted.
type Work struct {
	lrms.Request
	Born grid.Time // when its user submitted it
	Unit int64     // a site has a multiple of so many of its processors, or none; 0: one site has all of them
	By   grid.Time // its deadline; 0 or grid.Never: it has none
	TTL  int32     // how often its request may be delegated; 0: MatchConfig.TTL; grid.NoTTL: never
}

// Brought says that processors for a job of this site have come: the owner starts
// it on them. If Own is 0 and there is one lease the cluster counts it as a guest; else
// it counts the job's own processors, and the job runs on all of them together.
type Brought struct {
	Task   grid.TaskID
	Lease  Lease   // the first
	Own    int64   // processors of this site
	Leases []Lease // all, in the order in which they were granted; nil if the job cannot be spread
}

// Lost says that a job has lost processors it ran on. Unless Rest is set it is out of
// the cluster, and the owner may Submit it with a new epoch from Gone on. With Rest it has
// others still, which are free of it by Gone as well: the owner ends what runs there,
// reports it by Ended, and Submits then.
type Lost struct {
	Task  grid.TaskID
	Cause Cause
	Gone  grid.Time
	Rest  bool
}

// NewMatchmaker returns the matchmaker of a site. loads may be nil. The error names
// the first field of cfg that is out of range, or the link that cannot be.
func NewMatchmaker(cfg MatchConfig, cluster *lrms.Cluster, book *Book, loads Loads, rng *rand.Rand) (*Matchmaker, error) {
	cfg, err := cfg.withDefaults(book.Site())
	if err != nil {
		return nil, err
	}
	m := &Matchmaker{
		cfg: cfg, cluster: cluster, book: book, hearsay: newHearsay(loads), rng: rng,
		demands: make(map[grid.TaskID]*demand), asking: make(map[uint64]*demand),
		seen:      newRecent[grid.JobID](SeenSpan, seenMax),
		nextMatch: cfg.Phase, nextDelegate: cfg.Phase,
	}
	if cfg.MatchCycle == 0 {
		m.nextMatch = grid.Never
	}
	switch {
	case cfg.Rules.Delegate != nil:
		m.delegateBy = cfg.Rules.Delegate
	case cfg.Policy == SSTRD:
		m.delegateBy = sstrd
	case cfg.Policy == XSTRD:
		m.delegateBy = xstrd
	}
	if cfg.Threshold == 0 && cfg.Rules.Delegate == nil && cfg.Rules.Select == nil {
		m.nextDelegate = grid.Never
	}
	return m, nil
}

// Submit takes a job of this site: it waits in the cluster's queue, or, if it is
// wider than the site, for processors from elsewhere. Errors are those of
// lrms.Cluster.Submit; ErrTooWide only if nothing is delegated here.
func (m *Matchmaker) Submit(now grid.Time, w Work, out *grid.Outbox) error {
	d := m.newDemand(w)
	by := grid.Never
	if d.latest != grid.Never {
		by = w.By
	}
	if err := m.cluster.SubmitBy(now, w.Request, by); err != nil {
		if w.Processors <= m.cluster.Processors() || m.cfg.Threshold == 0 || len(m.demands) >= LeasesMax {
			return err
		}
		d.wide, d.away = true, true
		m.setAside(d)
	}
	m.demands[d.ID] = d
	if !d.wide {
		m.consult(now, OnSubmit, d, out)
	}
	return nil
}

// newDemand returns the request of a job of this site.
func (m *Matchmaker) newDemand(w Work) *demand {
	m.sequence++
	apart := w.Unit > 0 && w.Processors%w.Unit == 0
	if !apart {
		w.Unit = w.Processors
	}
	latest := grid.Never
	if w.By != 0 && w.By != grid.Never {
		latest = w.By - w.Estimate
	}
	return &demand{
		latest: latest, outlook: outlook{ready: grid.Never},
		Request: w.Request, processors: w.Processors, unit: w.Unit, apart: apart, sequence: m.sequence,
		subject: w.ID.Job, ttl: m.TTL(w.TTL), born: w.Born, sink: m.book.Site(),
	}
}

// TTL returns how often a request may be delegated of a job that says ttl (grid.Job.TTL).
func (m *Matchmaker) TTL(ttl int32) int32 {
	if ttl == 0 {
		ttl = m.cfg.TTL
	}
	return max(ttl, 0)
}

// Resume says, after a restart, that an own job runs on a lease that the book has
// recovered; the cluster counts it as a guest again. It returns ErrUnknown if there
// is no such lease, or what lrms.Cluster.Borrow returns. A recovered lease that is
// not resumed is for the owner to Release.
func (m *Matchmaker) Resume(now grid.Time, r lrms.Request, id ID) error {
	l, ok := m.book.Get(id)
	if !ok || l.Lent || l.State != Active {
		return fmt.Errorf("resume on lease %d: %w", id.Number, ErrUnknown)
	}
	if err := m.cluster.Borrow(now, r); err != nil {
		return err
	}
	d := m.newDemand(Work{Request: r, Born: now})
	d.away, d.brought, d.since, d.out = true, true, now, id.Number
	m.demands[r.ID], m.asking[id.Number] = d, d
	return nil
}

// ResumeSpread is Resume for a job that runs on so many own processors and on the leases,
// at least one; the cluster counts the own ones again.
func (m *Matchmaker) ResumeSpread(now grid.Time, w Work, own int64, leases []ID) error {
	for _, id := range leases {
		if l, ok := m.book.Get(id); !ok || l.Lent || l.State != Active {
			return fmt.Errorf("resume on lease %d: %w", id.Number, ErrUnknown)
		}
	}
	r := w.Request
	var err error
	if r.Processors = own; own > 0 {
		err = m.cluster.Adopt(now, r, now)
	} else {
		err = m.cluster.Borrow(now, w.Request)
	}
	if err != nil {
		return err
	}
	d := m.newDemand(w)
	d.away, d.brought, d.since, d.round = true, true, now, &round{own: own}
	m.demands[d.ID] = d
	for _, id := range leases {
		d.round.parts = append(d.round.parts, id.Number)
		m.asking[id.Number] = d
	}
	return nil
}

// Step takes a local input of the book, or a grid.Tick.
func (m *Matchmaker) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	m.now = now
	switch in := in.(type) {
	case grid.Tick:
		if now >= m.nextDelegate {
			m.nextDelegate = after(m.nextDelegate, m.cfg.DelegationCycle, now)
			if m.delegateBy != nil {
				m.consult(now, OnCycle, nil, out)
			} else {
				m.delegateLoad(now, out)
			}
		}
	case *Asked:
		m.asked(now, in, out)
	case *Granted:
		m.granted(now, in, out)
	case *Claimed:
		m.claimed(now, in, out)
	case *Refused:
		m.refused(now, in, out)
	case *Ended:
		m.ended(now, in, out)
	case *Vacate:
		m.recalled(now, in.Lease, Accepted)
	case *Activated, *Recalled:
		// The owner's: it starts a pilot, or lets what runs there end by itself.
	default:
		panic(fmt.Sprintf("lease: unknown input %T", in))
	}
}

// Has reports whether a lease was asked for by this matchmaker and is not over. What
// comes of others is their asker's.
func (m *Matchmaker) Has(number uint64) bool { return m.asking[number] != nil }

// For returns the own job for which a lease is asked for, or was brought.
func (m *Matchmaker) For(number uint64) (grid.TaskID, bool) {
	d := m.asking[number]
	if d == nil || d.from != (ID{}) {
		return grid.TaskID{}, false
	}
	return d.ID, true
}

// RunsOn returns which own job runs on a lease that was brought for it.
func (m *Matchmaker) RunsOn(number uint64) (grid.TaskID, bool) {
	d := m.asking[number]
	if d == nil || !d.brought {
		return grid.TaskID{}, false
	}
	return d.ID, true
}

// Runs reports whether a job runs on all that was brought for it.
func (m *Matchmaker) Runs(id grid.TaskID) bool {
	d := m.demands[id]
	return d != nil && d.brought && (d.round == nil || !d.round.broken)
}

// SetLinks replaces the neighbours that requests may be delegated to; links are as
// CheckLinks wants them, Kinship.Links returns such. What is under way goes on.
func (m *Matchmaker) SetLinks(links []Link) { m.cfg.Links = links }

// Delegates reports whether jobs of this site may be given processors of others: it has
// a threshold and somebody to ask.
func (m *Matchmaker) Delegates() bool {
	return m.cfg.Threshold > 0 && (len(m.cfg.Links) > 0 || m.cfg.Ordering == OrderGossip && len(m.cfg.Members) > 0)
}

// NextTimer returns when Step and Dispatch next have something to do without another
// input.
func (m *Matchmaker) NextTimer() grid.Time { return min(m.nextMatch, m.nextDelegate) }

// after returns the first instant of a cycle after now.
func after(at, cycle, now grid.Time) grid.Time { return at + ((now-at)/cycle+1)*cycle }

// Ended says that an own job has ended that ran on processors that were Brought: they
// are released, backwards along the chain. It reports whether there was one.
func (m *Matchmaker) Ended(now grid.Time, id grid.TaskID, out *grid.Outbox) bool {
	d := m.demands[id]
	if d == nil || !d.brought {
		return false
	}
	m.forget(d)
	m.cluster.Ended(now, id)
	if d.round != nil {
		m.giveUp(now, d, out)
		return true
	}
	_ = m.book.Release(now, ID{m.book.Site(), d.out}, out) // ErrUnknown: it has ended by itself
	return true
}

// Cancel forgets an own job that waits, here or for processors from elsewhere, and
// reports whether there was one. One that runs is to be ended first, then Ended. held is
// the processor-time for which processors had been delegated to this site for it: "JM-1 is
// still accountable for the time during which the resource management was delegated from
// SM-2 to SM-1, and charges the user for this time" (§4.3).
func (m *Matchmaker) Cancel(now grid.Time, id grid.TaskID, out *grid.Outbox) (held grid.Time, there bool) {
	d := m.demands[id]
	if d == nil || d.brought || d.from != (ID{}) {
		return 0, false
	}
	before := m.Delegations.CancelledTime
	m.drop(now, d, out)
	return m.Delegations.CancelledTime - before, true
}

// ended is the end of a lease, lent or borrowed, or of a request of another site.
func (m *Matchmaker) ended(now grid.Time, in *Ended, out *grid.Outbox) {
	if in.Lent {
		if in.State == Requested {
			if d := m.demands[TaskOf(in.Epoch)]; d != nil {
				m.drop(now, d, out)
			}
		}
		return
	}
	d := m.asking[in.Number]
	if d == nil {
		return
	}
	if in.Cause == NotPaid {
		m.recalled(now, in.Lease, Unpaid)
	}
	if d.round != nil {
		m.partEnded(now, d, in, out)
		return
	}
	if !d.brought {
		delete(m.asking, in.Number)
		d.out = 0
		m.again(now, d, out)
		return
	}
	m.forget(d)
	m.cluster.Ended(now, d.ID)
	if in.Cause == Revoked {
		m.recalled(now, in.Lease, Accepted)
	}
	out.Local(&Lost{Task: d.ID, Cause: in.Cause, Gone: in.Gone})
}

// drop forgets a request and withdraws what was asked for it.
func (m *Matchmaker) drop(now grid.Time, d *demand, out *grid.Outbox) {
	if d.round != nil {
		for _, number := range d.round.parts {
			if l, ok := m.book.Get(ID{m.book.Site(), number}); ok {
				m.Delegations.account(now, &l)
			}
		}
		m.giveUp(now, d, out)
	}
	if l, ok := m.book.Get(ID{m.book.Site(), d.out}); ok && d.out != 0 {
		m.Delegations.account(now, &l)
		_ = m.book.Release(now, l.ID, out)
	}
	m.forget(d)
	m.cluster.Cancel(now, d.ID)
}

// account counts how long processors have been delegated to this site by a lease whose job
// is cancelled: from when they were claimed.
func (d *Delegations) account(now grid.Time, l *Lease) {
	if l.State == Claiming || l.State == Active {
		span := min(now-l.Since, grid.SpanMax/grid.Time(l.Processors))
		d.CancelledTime = d.CancelledTime.Add(grid.Time(l.Processors) * span)
	}
}

// forget takes a request out of the tables.
func (m *Matchmaker) forget(d *demand) {
	delete(m.demands, d.ID)
	if d.out != 0 {
		delete(m.asking, d.out)
	}
	m.takeUp(d)
}

// Waiting returns the own jobs that wait for processors of other sites, in order of
// their IDs, with who is asked for each.
func (m *Matchmaker) Waiting() []Waiting {
	var list []Waiting
	for _, d := range m.demands {
		asked := d.out
		if d.round != nil {
			asked = d.round.open
		}
		if d.from == (ID{}) && asked != 0 && !d.brought {
			l, _ := m.book.Get(ID{m.book.Site(), asked})
			list = append(list, Waiting{d.ID, l.Lender})
		}
	}
	slices.SortFunc(list, func(a, b Waiting) int { return cmp.Or(a.Task.Compare(b.Task), cmp.Compare(a.Asked, b.Asked)) })
	return list
}

// Waiting is an own job that waits for processors of another site.
type Waiting struct {
	Task  grid.TaskID
	Asked grid.SiteID
}

// Demands yields as what processors of the cluster may be taken for requests, in no particular
// order: those of this site's jobs, other sites', and what is held for jobs that several sites
// are asked for.
func (m *Matchmaker) Demands(yield func(grid.TaskID) bool) {
	for id, d := range m.demands {
		if !yield(id) || d.round != nil && !yield(d.round.held) {
			return
		}
	}
}

// Demanded reports whether there is a request, of this site or another, for a task.
func Demanded(m *Matchmaker, id grid.TaskID) bool { return m.demands[id] != nil }

// AuditRequests returns which request of a matchmaker nothing will serve, or what it keeps of one
// that is over; nil: there is nothing of that kind. It is asked of a site at rest.
func AuditRequests(m *Matchmaker) error {
	for number, d := range m.asking {
		switch l, there := m.book.Get(ID{m.book.Site(), number}); {
		case !there || l.Lent:
			return fmt.Errorf("lease %d counts as asked for, and is not here", number)
		case m.demands[d.ID] != d:
			return fmt.Errorf("lease %d counts as asked for job %s, epoch %d, which does not want it", number, d.ID.Job, d.ID.Epoch)
		case d.out != number && (d.round == nil || !slices.Contains(d.round.parts, number)):
			return fmt.Errorf("lease %d counts as asked for job %s, which knows nothing of it", number, d.ID.Job)
		}
	}
	var sum int64
	for i, d := range m.aside {
		if m.demands[d.ID] != d || !d.aside || i > 0 && m.aside[i-1].sequence >= d.sequence {
			return fmt.Errorf("job %s, epoch %d, has given way, and is over or out of order", d.ID.Job, d.ID.Epoch)
		}
		if !d.wide {
			sum += d.processors
		}
	}
	if sum != m.asideSum {
		return fmt.Errorf("jobs that have given way want %d processors, and count as wanting %d", sum, m.asideSum)
	}
	for id, d := range m.demands {
		if err := d.audit(m, lrms.Knows(m.cluster, id)); err != nil {
			return fmt.Errorf("request %s, epoch %d: %w", id.Job, id.Epoch, err)
		}
	}
	return nil
}

// audit returns what is wrong with a request of a matchmaker; known: its cluster knows of it.
func (d *demand) audit(m *Matchmaker, known bool) error {
	asks := d.out != 0
	if asks && m.asking[d.out] != d {
		return fmt.Errorf("it asks for lease %d, whose answer is not its own", d.out)
	}
	if r := d.round; r != nil {
		asks = true
		for _, number := range r.parts {
			if m.asking[number] != d {
				return fmt.Errorf("it has lease %d of a round, whose end is not its own", number)
			}
		}
		if _, runs := lrms.Ends(m.cluster, r.held); r.held != (grid.TaskID{}) && !runs {
			return fmt.Errorf("%d processors are held for it that the cluster does not know of", r.own)
		}
	}
	switch {
	case d.aside && !slices.Contains(m.aside, d):
		return fmt.Errorf("it has given way, and nothing will bring it back")
	case !d.away && !d.brought && !known:
		return fmt.Errorf("it counts as in the cluster's queue, which has it not")
	case d.from != (ID{}):
		if l, there := m.book.Get(d.from); !there || l.State != Requested {
			return fmt.Errorf("it serves lease %d of %s, which is not asked for", d.from.Number, d.from.Borrower)
		}
		return nil
	case !asks && !d.aside && d.away:
		return fmt.Errorf("it is in no queue, and nobody is asked")
	}
	return nil
}
