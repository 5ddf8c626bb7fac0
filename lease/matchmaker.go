package lease

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/internal/grid"
	"gridnode/internal/lrms"
)

// MatchConfig is what a Matchmaker is told. A zero field takes the default named
// beside it, unless zero is said to be legal.
type MatchConfig struct {
	Links []Link

	// Members are sites outside the neighbourhood that OrderGossip may ask, too.
	Members []grid.SiteID

	Lend bool // other sites may borrow this one's processors, or what it can borrow

	// Threshold is the load, in thousandths of the processors, beyond which requests
	// are delegated: processors in use, or waited for, over processors. 1000 in the
	// paper. 0: nothing is delegated
	Threshold int64

	DelegationCycle grid.Time // between two looks at the load; 60 s

	// MatchCycle is the time between two rounds of dispatching requests to processors
	// (Condor's NEGOTIATOR_INTERVAL, 300 s in the paper). 0: they are dispatched as
	// soon as they can be.
	MatchCycle grid.Time
	Phase      grid.Time // of both cycles, within MatchCycle

	TTL      int32     // how often a request of this site may be delegated (DTTL); 6
	Patience grid.Time // how long a target may think; 2·MatchCycle + DelegationCycle
	Retry    grid.Time // until a request that nobody had room for is delegated anew, and how long a refusal is believed; MatchCycle, at least DelegationCycle
	Rounds   int32     // rounds of delegation after which a request keeps its place in the queue until it starts; 0: it gives way until it fits
	Slack    grid.Time // asked for beyond a job's estimate; 1 min

	Ordering  Ordering
	Selection Selection
}

// SeenSpan is how long a request is remembered: "SMs retain a list of resource
// requests they have seen during the past hour" (§4.3). seenMax bounds the list.
const (
	SeenSpan = grid.Hour
	seenMax  = 1 << 17
)

func (cfg MatchConfig) withDefaults(self grid.SiteID) (MatchConfig, error) {
	if cfg.DelegationCycle == 0 {
		cfg.DelegationCycle = grid.Minute
	}
	if cfg.TTL == 0 {
		cfg.TTL = 6
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2*cfg.MatchCycle + cfg.DelegationCycle
	}
	if cfg.Retry == 0 {
		cfg.Retry = max(cfg.MatchCycle, cfg.DelegationCycle)
	}
	if cfg.Slack == 0 {
		cfg.Slack = grid.Minute
	}
	switch {
	case cfg.Threshold < 0 || cfg.Threshold > 1_000_000:
		return cfg, fmt.Errorf("lease: delegation threshold of %d thousandths, want 0 to 1000000: %w", cfg.Threshold, ErrBounds)
	case cfg.DelegationCycle < grid.Second || cfg.DelegationCycle > grid.Day:
		return cfg, fmt.Errorf("lease: delegation cycle of %v, want 1s to 24h: %w", cfg.DelegationCycle, ErrBounds)
	case cfg.MatchCycle != 0 && cfg.MatchCycle < grid.Second || cfg.MatchCycle > grid.Day:
		return cfg, fmt.Errorf("lease: matchmaking cycle of %v, want 0, or 1s to 24h: %w", cfg.MatchCycle, ErrBounds)
	case cfg.TTL < 0 || cfg.TTL > TTLMax:
		return cfg, fmt.Errorf("lease: requests that may be delegated %d times, want 1 to %d: %w", cfg.TTL, TTLMax, ErrBounds)
	case cfg.Phase < 0 || cfg.Phase > grid.Day || cfg.Patience < 0 || cfg.Patience > PatienceLimit || cfg.Retry < 0 || cfg.Slack < 0 || cfg.Slack > grid.Day || cfg.Rounds < 0:
		return cfg, fmt.Errorf("lease: phase %v, patience %v, retry %v, slack %v, %d rounds: %w", cfg.Phase, cfg.Patience, cfg.Retry, cfg.Slack, cfg.Rounds, ErrBounds)
	case cfg.Ordering > OrderGossip || cfg.Selection > SelectWidest:
		return cfg, fmt.Errorf("lease: ordering %d, delegation policy %d: %w", cfg.Ordering, cfg.Selection, ErrBounds)
	}
	return cfg, CheckLinks(self, cfg.Links)
}

// Matchmaker is the site manager of Delegated MatchMaking (§4): it dispatches the
// requests of a site to its processors, delegates them to neighbours when the site
// is full, and serves or passes on what neighbours delegate to it. It works on the
// site's cluster and book. It is deterministic, reads no clock and is not safe for
// concurrent use.
//
// What its owner does, besides what the Book wants:
//
//  1. Submit every job; Cancel those whose user wants that;
//  2. feed Step every local input of the book, and a grid.Tick at the end of a turn;
//  3. then call Dispatch and start what it returns, on the site's own processors;
//  4. start what is Brought on the lease that it names; report the end by Ended; end
//     what is Lost.
type Matchmaker struct {
	cfg     MatchConfig
	cluster *lrms.Cluster
	book    *Book
	loads   Loads // nil: nobody gossips
	rng     *rand.Rand

	demands  map[grid.TaskID]*demand // of this site's jobs and of other sites', not begun on own processors
	asking   map[uint64]*demand      // by number of the lease that is asked for, or had
	aside    []*demand               // own that gave way and that nobody has room for, and those wider than the site; in order of submission
	asideSum int64                   // processors of those of them that fit the site
	sequence uint64                  // of submissions
	seen     recent[grid.JobID]
	heard    map[grid.SiteID]refusal
	placed   map[grid.SiteID]placed

	nextMatch, nextDelegate grid.Time

	started []lrms.Request // reused
	list    []*demand      // reused
	targets []Target       // reused

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

// refusal is what a neighbour had no room for, itself or beyond.
type refusal struct {
	processors int64
	ttl        int32
	free       int64
	at         grid.Time
}

// placed is what a site was asked for since its newest report.
type placed struct {
	report     uint64
	processors int64
}

// demand is a resource request: of a job of this site, or of another site.
type demand struct {
	lrms.Request
	processors int64
	sequence   uint64
	subject    grid.JobID // of this round
	from       ID         // the lease another site asks for; zero for an own job
	sink       grid.SiteID
	ttl        int32
	born       grid.Time     // on this site's clock: when its user asked
	patience   grid.Time     // of another site: when it gives up
	retry      grid.Time     // own: not to be delegated before
	rounds     int32         // own: rounds of delegation so far
	relation   Relation      // of another site: what it is to this one
	wide       bool          // wider than the site
	away       bool          // wide or parked: the cluster's queue does not have it
	aside      bool          // in Matchmaker.aside
	out        uint64        // number of the lease that is asked for; 0: none
	brought    bool          // own: it runs on the lease
	since      grid.Time     // own: when the lease was claimed
	tried      []grid.SiteID // in this round
}

// Brought says that processors for a job of this site have come: the owner starts
// it on them. The cluster counts it as a guest.
type Brought struct {
	Task  grid.TaskID
	Lease Lease
}

// Lost says that a job has lost the processors it ran on. It is out of the cluster;
// the owner may Submit it with a new epoch from Gone on.
type Lost struct {
	Task  grid.TaskID
	Cause Cause
	Gone  grid.Time
}

// NewMatchmaker returns the matchmaker of a site. loads may be nil. The error names
// the first field of cfg that is out of range, or the link that cannot be.
func NewMatchmaker(cfg MatchConfig, cluster *lrms.Cluster, book *Book, loads Loads, rng *rand.Rand) (*Matchmaker, error) {
	cfg, err := cfg.withDefaults(book.Site())
	if err != nil {
		return nil, err
	}
	m := &Matchmaker{
		cfg: cfg, cluster: cluster, book: book, loads: loads, rng: rng,
		demands: make(map[grid.TaskID]*demand), asking: make(map[uint64]*demand),
		seen: newRecent[grid.JobID](SeenSpan, seenMax), heard: make(map[grid.SiteID]refusal), placed: make(map[grid.SiteID]placed),
		nextMatch: cfg.Phase, nextDelegate: cfg.Phase,
	}
	if cfg.MatchCycle == 0 {
		m.nextMatch = grid.Never
	}
	if cfg.Threshold == 0 {
		m.nextDelegate = grid.Never
	}
	return m, nil
}

// Submit takes a job of this site: it waits in the cluster's queue, or, if it is
// wider than the site, for processors from elsewhere. Errors are those of
// lrms.Cluster.Submit; ErrTooWide only if nothing is delegated here.
func (m *Matchmaker) Submit(now grid.Time, r lrms.Request, born grid.Time) error {
	m.sequence++
	d := &demand{
		Request: r, processors: r.Processors, sequence: m.sequence, subject: r.ID.Job, ttl: m.cfg.TTL, born: born, sink: m.book.Site(),
	}
	if err := m.cluster.Submit(now, r); err != nil {
		if r.Processors <= m.cluster.Processors() || m.cfg.Threshold == 0 || len(m.demands) >= LeasesMax {
			return err
		}
		d.wide, d.away = true, true
		m.setAside(d)
	}
	m.demands[r.ID] = d
	return nil
}

// setAside files an own request that is in no queue.
func (m *Matchmaker) setAside(d *demand) {
	at, _ := slices.BinarySearchFunc(m.aside, d.sequence, func(d *demand, sequence uint64) int { return cmp.Compare(d.sequence, sequence) })
	m.aside = slices.Insert(m.aside, at, d)
	d.aside = true
	if !d.wide {
		m.asideSum += d.processors
	}
}

// kept returns how many processors are kept from other sites for the own request that
// has given way for longest: a wide one would never find room between narrow ones.
// Where most processors are busy, waiting for them to come free would cost more than
// it gains.
func (m *Matchmaker) kept(now grid.Time) int64 {
	capacity := m.cluster.Processors()
	if m.asideSum == 0 || 4*m.cluster.Idle(now) < capacity {
		return 0
	}
	for _, d := range m.aside {
		if !d.wide {
			return d.processors
		}
	}
	return 0
}

// takeUp undoes setAside.
func (m *Matchmaker) takeUp(d *demand) {
	if !d.aside {
		return
	}
	at, _ := slices.BinarySearchFunc(m.aside, d.sequence, func(d *demand, sequence uint64) int { return cmp.Compare(d.sequence, sequence) })
	m.aside = slices.Delete(m.aside, at, at+1)
	d.aside = false
	if !d.wide {
		m.asideSum -= d.processors
	}
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
	m.sequence++
	d := &demand{Request: r, processors: r.Processors, sequence: m.sequence, subject: r.ID.Job, sink: m.book.Site(), away: true}
	d.brought, d.since, d.out = true, now, id.Number
	m.demands[r.ID], m.asking[id.Number] = d, d
	return nil
}

// Step takes a local input of the book, or a grid.Tick.
func (m *Matchmaker) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		if now >= m.nextDelegate {
			m.nextDelegate = after(m.nextDelegate, m.cfg.DelegationCycle, now)
			m.delegateLoad(now, out)
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
	case *Activated, *Recalled:
		// The owner's: it starts a pilot, or looks for an end of what runs.
	default:
		panic(fmt.Sprintf("lease: unknown input %T", in))
	}
}

// Has reports whether a lease was asked for by this matchmaker and is not over. What
// comes of others is their asker's.
func (m *Matchmaker) Has(number uint64) bool { return m.asking[number] != nil }

// NextTimer returns when Step and Dispatch next have something to do without another
// input.
func (m *Matchmaker) NextTimer() grid.Time { return min(m.nextMatch, m.nextDelegate) }

// after returns the first instant of a cycle after now.
func after(at, cycle, now grid.Time) grid.Time { return at + ((now-at)/cycle+1)*cycle }

// Dispatch gives processors to requests in the order of the queue, if a matchmaking
// cycle is due, and appends to started the own jobs that start now.
func (m *Matchmaker) Dispatch(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request {
	if m.cfg.MatchCycle > 0 {
		if now < m.nextMatch {
			return started
		}
		m.nextMatch = after(m.nextMatch, m.cfg.MatchCycle, now)
	}
	m.comeBack(now)
	m.started = m.cluster.Schedule(now, m.started[:0])
	for _, r := range m.started {
		d := m.demands[r.ID]
		delete(m.demands, r.ID)
		if d == nil || d.from == (ID{}) {
			started = append(started, r)
			continue
		}
		if err := m.book.Grant(now, d.from, Terms{Taken: true}, out); err != nil {
			panic(fmt.Sprintf("lease: %s: a request in the queue cannot be granted: %v", m.book.Site(), err))
		}
		m.Delegations.Served++
	}
	return started
}

// comeBack puts requests that gave way back to their places, as far as they fit.
func (m *Matchmaker) comeBack(now grid.Time) {
	idle := m.cluster.Idle(now)
	for i := 0; i < len(m.aside) && idle > 0; {
		d := m.aside[i]
		if d.wide || d.processors > idle {
			i++
			continue
		}
		idle -= d.processors
		m.takeUp(d)
		d.away = false
		m.cluster.Unpark(now, d.ID)
	}
}

// Ended says that an own job has ended that ran on processors that were Brought: they
// are released, backwards along the chain. It reports whether there was one.
func (m *Matchmaker) Ended(now grid.Time, id grid.TaskID, out *grid.Outbox) bool {
	d := m.demands[id]
	if d == nil || !d.brought {
		return false
	}
	m.forget(d)
	m.cluster.Ended(now, id)
	_ = m.book.Release(now, ID{m.book.Site(), d.out}, out) // ErrUnknown: it has ended by itself
	return true
}

// Cancel forgets an own job that waits, here or for processors from elsewhere, and
// reports whether there was one. One that runs is to be ended first, then Ended.
func (m *Matchmaker) Cancel(now grid.Time, id grid.TaskID, out *grid.Outbox) bool {
	d := m.demands[id]
	if d == nil || d.brought || d.from != (ID{}) {
		return false
	}
	m.drop(now, d, out)
	return true
}

// Load returns the load in thousandths of the processors; grid.Never for a site
// without processors.
func (m *Matchmaker) Load(now grid.Time) int64 {
	capacity := m.cluster.Processors()
	if capacity == 0 {
		return int64(grid.Never)
	}
	return (capacity - m.cluster.Idle(now) + m.cluster.Demand() + m.asideSum) * 1000 / capacity
}

// delegateLoad is the delegation algorithm (§4.4): requests are delegated in the
// order of the policy "until the local load gets below the threshold that triggered
// the delegation alarm". Those that are wider than the site always are.
func (m *Matchmaker) delegateLoad(now grid.Time, out *grid.Outbox) {
	capacity := m.cluster.Processors()
	// Processors in use and waited for, in thousandths.
	excess := (capacity-m.cluster.Idle(now)+m.cluster.Demand()+m.asideSum)*1000 - m.cfg.Threshold*capacity
	m.list = m.list[:0]
	for _, d := range m.aside {
		if d.out == 0 && d.retry <= now && (d.wide || excess > 0) {
			m.list = append(m.list, d)
		}
	}
	if excess > 0 && m.cluster.Demand() > 0 {
		for r := range m.cluster.Waiting {
			d := m.demands[r.ID]
			if d != nil && d.from == (ID{}) && d.retry <= now && (m.cfg.Rounds == 0 || d.rounds < m.cfg.Rounds) {
				m.list = append(m.list, d)
			}
		}
	}
	slices.SortFunc(m.list, func(a, b *demand) int { return cmp.Compare(a.sequence, b.sequence) })
	m.cfg.Selection.sort(m.list)
	for _, d := range m.list {
		if excess <= 0 && !d.wide {
			continue
		}
		if m.delegate(now, d, out) && !d.wide {
			excess -= 1000 * d.processors
		}
	}
	clear(m.list)
}

// delegate begins a round of delegation of an own request, and reports whether
// somebody is asked.
func (m *Matchmaker) delegate(now grid.Time, d *demand, out *grid.Outbox) bool {
	d.tried = d.tried[:0]
	d.subject = roundOf(d.ID, d.rounds)
	if !m.ask(now, d, out) { // nobody who is not known to be full
		d.retry = now + m.cfg.DelegationCycle
		m.giveWay(now, d)
		if !d.aside {
			m.setAside(d)
		}
		return false
	}
	d.rounds++
	m.seen.add(now, d.subject) // it must not come back to this site
	m.takeUp(d)
	m.giveWay(now, d)
	return true
}

// giveWay takes a request out of the queue, where it would keep others waiting.
func (m *Matchmaker) giveWay(now grid.Time, d *demand) {
	if !d.away {
		d.away = true
		m.cluster.Park(now, d.ID)
	}
}

// roundOf names a resource request: each round of delegation of a job is a new one,
// and so is each of its executions.
func roundOf(task grid.TaskID, round int32) grid.JobID {
	id := task.Job
	id.Lo += uint64(round)<<44 + uint64(max(task.Epoch, 1)-1)<<24
	return id
}

// ask asks the next target of a request, and reports whether there was one.
func (m *Matchmaker) ask(now grid.Time, d *demand, out *grid.Outbox) bool {
	if d.ttl < 1 {
		return false
	}
	targets := m.targetsOf(now, d)
	if len(targets) == 0 {
		return false
	}
	t := targets[0]
	w := Want{
		Processors: d.processors, Span: m.span(d), Patience: m.cfg.Patience,
		Subject: d.subject, Sink: d.sink, TTL: d.ttl - 1, Age: max(now-d.born, 0),
	}
	if d.from != (ID{}) {
		w.Patience = max(min(w.Patience, d.patience-now), 0)
	}
	id, err := m.book.Request(now, t.Site, w, out)
	if err != nil {
		return false // the book is full
	}
	m.place(t.Site, d.processors)
	d.tried = append(d.tried, t.Site)
	d.out = id.Number
	m.asking[id.Number] = d
	m.Delegations.Asked++
	return true
}

// span returns for how long to ask for processors. Each lease of a chain is shorter
// for its borrower than for its lender, so that clocks need not agree.
func (m *Matchmaker) span(d *demand) grid.Time {
	span := d.Estimate
	if d.from == (ID{}) {
		span = min(span, SpanLimit) + m.cfg.Slack
		span += grid.Time(d.ttl+1) * m.book.cfg.margin(span)
	}
	return min(span, SpanLimit)
}

// place remembers what a site is asked for until it gossips anew.
func (m *Matchmaker) place(site grid.SiteID, processors int64) {
	if m.loads == nil {
		return
	}
	if _, report, ok := m.loads(site); ok {
		p := m.placed[site]
		if p.report != report {
			p = placed{report: report}
		}
		p.processors += processors
		m.placed[site] = p
	}
}

// targetsOf returns who may be asked for a request, best first. The slice is reused.
func (m *Matchmaker) targetsOf(now grid.Time, d *demand) []Target {
	targets := m.targets[:0]
	add := func(l Link) {
		if l.Site == d.from.Borrower || l.Site == d.sink || slices.Contains(d.tried, l.Site) || !d.passes(l.Relation) {
			return
		}
		if r, ok := m.heard[l.Site]; ok && d.processors >= r.processors && d.ttl-1 <= r.ttl && now < r.at+m.cfg.Retry {
			return
		}
		t := Target{Link: l, Free: m.free(now, l.Site)}
		if m.cfg.Ordering == OrderGossip && t.Free < d.processors {
			return
		}
		targets = append(targets, t)
	}
	for _, l := range m.cfg.Links {
		add(l)
	}
	if m.cfg.Ordering == OrderGossip {
		for _, s := range m.cfg.Members {
			add(Link{s, Parent})
		}
	}
	m.cfg.Ordering.sort(targets, d.processors, m.rng)
	m.targets = targets
	return targets
}

// passes reports whether a request may be passed on to a neighbour: who asks from
// above or from beside can ask those above and beside by itself, so what it asks for
// is looked for below only. No site is reached by two ways then.
func (d *demand) passes(to Relation) bool {
	return d.from == (ID{}) || d.relation == Child || to == Child
}

// free returns the free processors of a site as far as is known, or -1.
func (m *Matchmaker) free(now grid.Time, site grid.SiteID) int64 {
	if m.loads != nil {
		if free, report, ok := m.loads(site); ok {
			if p := m.placed[site]; p.report == report {
				free -= p.processors
			}
			return free
		}
	}
	if r, ok := m.heard[site]; ok && now < r.at+m.cfg.Retry {
		return r.free
	}
	return -1
}

// asked is a request of another site.
func (m *Matchmaker) asked(now grid.Time, in *Asked, out *grid.Outbox) {
	d := &demand{
		Request:    lrms.Request{ID: TaskOf(in.Epoch), Processors: in.Processors, Estimate: in.Span},
		processors: in.Processors, subject: in.Subject, from: in.ID, sink: in.Sink, ttl: in.TTL,
		born: now - in.Age, patience: now + in.Patience, relation: m.relationOf(in.Borrower),
	}
	switch {
	case !m.cfg.Lend:
		m.reject(now, d, Denied, out)
	case in.Patience == 0:
		m.serveNow(now, d, out)
	case !m.seen.add(now, in.Subject):
		m.reject(now, d, Seen, out)
	case m.cluster.Idle(now)-m.cluster.Demand()-m.kept(now) >= d.processors && m.cluster.Submit(now, d.Request) == nil:
		m.demands[d.ID] = d // served at the next matchmaking cycle
	default:
		d.away = true
		if !m.ask(now, d, out) {
			m.reject(now, d, Exhausted, out)
			return
		}
		m.demands[d.ID] = d
	}
}

// relationOf returns what a site is to this one; Sibling if they are not linked.
func (m *Matchmaker) relationOf(site grid.SiteID) Relation {
	for _, l := range m.cfg.Links {
		if l.Site == site {
			return l.Relation
		}
	}
	return Sibling
}

// serveNow answers a request that cannot wait: it gets what is idle.
func (m *Matchmaker) serveNow(now grid.Time, d *demand, out *grid.Outbox) {
	why := Busy
	if d.processors > m.cluster.Processors() {
		why = TooWide
	} else if m.book.Grant(now, d.from, Terms{}, out) == nil {
		m.Delegations.Served++
		return
	}
	m.reject(now, d, why, out)
}

// reject is a DelegationReject.
func (m *Matchmaker) reject(now grid.Time, d *demand, why Reason, out *grid.Outbox) {
	m.Delegations.Rejected++
	_ = m.book.Refuse(now, d.from, why, out) // ErrUnknown: its borrower has withdrawn it
}

// granted is the answer to a request: it is claimed at once.
func (m *Matchmaker) granted(now grid.Time, in *Granted, out *grid.Outbox) {
	if m.asking[in.Number] != nil {
		_ = m.book.Claim(now, in.ID, out) // ErrUnknown: the hold has just run out, and Ended follows
	}
}

// claimed says that processors are here.
func (m *Matchmaker) claimed(now grid.Time, in *Claimed, out *grid.Outbox) {
	d := m.asking[in.Number]
	if d == nil {
		return // asked for by somebody else than this matchmaker
	}
	if d.from != (ID{}) {
		m.forget(d)
		m.Delegations.Passed++
		if err := m.book.Grant(now, d.from, Terms{Via: in.ID}, out); err != nil {
			_ = m.book.Release(now, in.ID, out) // who wanted them has gone
		}
		return
	}
	d.brought, d.since = true, now
	m.Delegations.Brought++
	m.Delegations.Hops += int64(in.Hops)
	m.takeUp(d)
	if err := m.cluster.Borrow(now, d.Request); err != nil {
		panic(fmt.Sprintf("lease: %s: processors for a job that cannot have them: %v", m.book.Site(), err))
	}
	out.Local(&Brought{Task: d.ID, Lease: in.Lease})
}

// refused says that a target has no processors for a request: the next one is asked.
func (m *Matchmaker) refused(now grid.Time, in *Refused, out *grid.Outbox) {
	d := m.asking[in.Number]
	if d == nil {
		return
	}
	delete(m.asking, in.Number)
	d.out = 0
	m.Delegations.Refused++
	if in.Reason == Busy || in.Reason == Exhausted || in.Reason == TooWide {
		if len(m.heard) >= LinksMax {
			clear(m.heard)
		}
		m.heard[in.Lender] = refusal{d.processors, d.ttl - 1, in.Free, now}
	}
	m.again(now, d, out)
}

// again asks the next target, or gives this round up.
func (m *Matchmaker) again(now grid.Time, d *demand, out *grid.Outbox) {
	if d.from != (ID{}) {
		if now < d.patience && m.ask(now, d, out) {
			return
		}
		m.forget(d)
		m.reject(now, d, Exhausted, out)
		return
	}
	if m.ask(now, d, out) {
		return
	}
	d.retry = now + m.cfg.Retry
	if m.cfg.Ordering == OrderGossip {
		d.retry = now + m.cfg.DelegationCycle
	}
	if d.wide || m.cfg.Rounds == 0 || d.rounds < m.cfg.Rounds {
		m.setAside(d)
		return
	}
	d.away = false
	m.cluster.Unpark(now, d.ID)
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
	if !d.brought {
		delete(m.asking, in.Number)
		d.out = 0
		m.again(now, d, out)
		return
	}
	m.forget(d)
	m.cluster.Ended(now, d.ID)
	out.Local(&Lost{Task: d.ID, Cause: in.Cause, Gone: in.Gone})
}

// drop forgets a request and withdraws what was asked for it.
func (m *Matchmaker) drop(now grid.Time, d *demand, out *grid.Outbox) {
	if l, ok := m.book.Get(ID{m.book.Site(), d.out}); ok && d.out != 0 {
		if l.State == Claiming || l.State == Active {
			m.Delegations.CancelledTime += grid.Time(d.processors) * (now - l.Since)
		}
		_ = m.book.Release(now, l.ID, out)
	}
	m.forget(d)
	m.cluster.Cancel(now, d.ID)
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
		if d.from == (ID{}) && d.out != 0 && !d.brought {
			l, _ := m.book.Get(ID{m.book.Site(), d.out})
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
