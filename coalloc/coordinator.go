package coalloc

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// Leases is how a Coordinator gets processors: the lease book of its site
// (lease.Book), or in front of it something that serves components at home from the
// site's own cluster, as a book does not lend to itself.
type Leases interface {
	Request(now grid.Time, lender grid.SiteID, w lease.Want, out *grid.Outbox) (lease.ID, error)
	Claim(now grid.Time, id lease.ID, out *grid.Outbox) error
	Release(now grid.Time, id lease.ID, out *grid.Outbox) error

	// Gone returns from when on nothing runs on a lease, even if it is never heard of again.
	Gone(id lease.ID) grid.Time
}

// CoordinatorConfig is how a Coordinator behaves. A zero field takes the default
// beside it.
type CoordinatorConfig struct {
	Queue QueueConfig

	// Hold is how long a site keeps a component's processors for the claim; 30 s, at
	// most lease.HoldLimit. All sites must have answered by then. Where they are asked
	// one after the other it is longer by a second for each that is still to be asked.
	Hold grid.Time

	// Slack is added to the span of every lease: for starting and ending tasks; 1 min.
	Slack grid.Time

	// Doubt is by how much longer than expected the tasks of a job may take that is split,
	// in thousandths of its estimate: what is known of its slowdown may be wrong. 0 to
	// slowdownMax.
	Doubt int64
}

// Inputs of a Coordinator besides those of lease.Book's owner (lease.Granted,
// Refused, Claimed, Recalled, Ended) and grid.Tick.
type (
	// Submit hands a job over. The owner has saved it.
	Submit struct {
		Task     grid.TaskID
		Request  *Request  // is kept; nobody changes it any more
		Estimate grid.Time // bound on its run time within one site
	}
	// Withdraw takes a job back, wherever it stands. Nothing more is heard of it.
	Withdraw struct{ Job grid.JobID }
	// Finish says that all components of a started job are over.
	Finish struct{ Job grid.JobID }
)

// Locals for the owner of a Coordinator.
type (
	// Rejected answers a Submit that cannot be met; Err says why (ErrRequest,
	// ErrQueueFull, ErrKnown).
	Rejected struct {
		Task grid.TaskID
		Err  error
	}
	// Start is the barrier: every component's processors are claimed, all may start.
	// After a restart it comes Again, as the first may have been lost in the crash:
	// starting is idempotent by Task.
	Start struct {
		Task  grid.TaskID
		Parts []Claimed // in the order of Component
		Limit grid.Time // how long its tasks may take, slowed down as they are; 0 if Again: not known any more
		Bring grid.Time // how long bringing its inputs may take before; 0 if Again
		Again bool
		Tries int32 // placements tried until then; 0 if it comes Again

		Failures int32 // of them, whose claim failed
	}
	// Aborted says that a job goes back to the placement queue whose claim was decided and
	// then failed, before it started: nothing of it runs anywhere (Home.Vacated).
	Aborted struct{ Task grid.TaskID }
	// Broken says that a job whose claim was decided has lost one of its parts, before
	// it started or after. Its other parts are released: end what runs there. It may be
	// submitted again with the next epoch from Gone on: nothing runs on any part then, even
	// if their sites do not learn of the release.
	Broken struct {
		Task    grid.TaskID
		Site    grid.SiteID
		Cause   lease.Cause
		Started bool
		Gone    grid.Time
	}
)

// Claimed is a part of a job with the lease that it runs on.
type Claimed struct {
	Component  int32
	Site       grid.SiteID
	Processors int64
	Lease      lease.ID
}

// Coordinator claims what a Queue places: all components of a job or none (section
// III-A, "an atomic-transaction approach"). An attempt goes
//
//	holding → claiming → started
//
// It asks every site to hold its part. If one refuses, or a hold runs out, it releases
// the others and returns the job to the queue. When all hold, it saves the decision,
// then claims; no claim leaves before the decision is durable, and what a crash finds
// without a decision is given up (presumed abort; the holds expire by themselves).
// When all claims are confirmed, and so durable at their sites, the job starts. A
// claim that is not confirmed, or a part that is lost, breaks the attempt, and every
// part is released.
//
// Two co-allocators that want the same sites make progress: sites refuse at once
// instead of waiting, so nobody waits for anybody (no deadlock). The first attempt of
// a job asks all sites at the same time; after a failure they are asked one after the
// other in the order of their names, so that of several jobs whichever holds the last
// contested site is kept back by nobody who waits (no livelock), and the back-off is
// drawn at random.
//
// It reads no clock and does no I/O. Not safe for concurrent use.
type Coordinator struct {
	cfg     CoordinatorConfig
	leases  Leases
	rng     *rand.Rand
	queue   *Queue
	view    *View
	jobs    map[grid.JobID]*attempt // being claimed or started
	byLease map[lease.ID]*attempt

	reckoning reckoning
}

// clockMargin is the part of a span by which a lease is asked for longer: its borrower
// counts it as shorter, by less than that, as clocks need not agree (lease.Config.Drift).
const clockMargin = 200

// slowdownMax bounds, in thousandths, by how much longer a job may have its leases than
// within one site: of ways that nobody has measured the worst is assumed.
const slowdownMax = 10_000

// turn is how long each site is given to answer when they are asked one after the other:
// what the first holds must last until the last has been asked.
const turn = grid.Second

// transferSlack is by how much longer bringing the inputs may take than estimated: ways
// are shared, and what sites say of their bandwidth is that of their own.
const transferSlack = 4

type phase uint8

const (
	phaseHolding phase = iota
	phaseClaiming
	phaseStarted
)

// attempt is one job on its way.
type attempt struct {
	task    grid.TaskID
	phase   phase
	parts   []partState
	waiting *Waiting  // nil after a restart
	ordered bool      // one site after the other
	limit   grid.Time // of its tasks; 0 after a restart
	bring   grid.Time // of their inputs; 0 after a restart
	span    grid.Time // of its leases
}

type partState struct {
	Claimed
	confirmed bool // held, in phaseHolding; claimed, in phaseClaiming
	over      bool // the lease is gone
}

// NewCoordinator returns a coordinator without jobs. The view is the coordinator's
// from now on; its owner tells it what changes. The error says which field of cfg is out of range.
func NewCoordinator(cfg CoordinatorConfig, view *View, leases Leases, rng *rand.Rand) (*Coordinator, error) {
	if cfg.Hold == 0 {
		cfg.Hold = 30 * grid.Second
	}
	if cfg.Slack == 0 {
		cfg.Slack = grid.Minute
	}
	if cfg.Doubt < 0 || cfg.Doubt > slowdownMax {
		return nil, fmt.Errorf("coalloc: doubt of %d thousandths, want 0 to %d", cfg.Doubt, slowdownMax)
	}
	if cfg.Hold < grid.Second || cfg.Hold > lease.HoldLimit || cfg.Slack < 0 || cfg.Slack > grid.Day {
		return nil, fmt.Errorf("coalloc: holds of %v, want 1s to %v, and slack of %v, want 0 to 24h", cfg.Hold, lease.HoldLimit, cfg.Slack)
	}
	queue, err := NewQueue(cfg.Queue)
	if err != nil {
		return nil, err
	}
	return &Coordinator{
		cfg: cfg, leases: leases, rng: rng, queue: queue, view: view,
		jobs: make(map[grid.JobID]*attempt), byLease: make(map[lease.ID]*attempt),
		reckoning: reckoning{sites: make(map[grid.SiteID]*reckoned)},
	}, nil
}

// View returns what placements are made on, to be kept up to date.
func (c *Coordinator) View() *View { return c.view }

// Queue returns the jobs that wait to be placed.
func (c *Coordinator) Queue() *Queue { return c.queue }

// Claiming returns how many jobs are being claimed or have started.
func (c *Coordinator) Claiming() int { return len(c.jobs) }

// Knows reports whether a job waits, is being claimed, or has started.
func (c *Coordinator) Knows(job grid.JobID) bool {
	return c.jobs[job] != nil || c.queue.Waiting(job) != nil
}

// Has reports whether a lease is of a job that is being claimed or has started.
func (c *Coordinator) Has(id lease.ID) bool { return c.byLease[id] != nil }

// Started returns the task of a job that has started, ok is false if it has not.
func (c *Coordinator) Started(job grid.JobID) (task grid.TaskID, ok bool) {
	a := c.jobs[job]
	if a == nil || a.phase != phaseStarted {
		return grid.TaskID{}, false
	}
	return a.task, true
}

// Decisions yields the executions for which it is decided to claim, in no particular order,
// and whether they have started. Of a nil Coordinator it yields nothing.
func (c *Coordinator) Decisions(yield func(task grid.TaskID, started bool) bool) {
	if c == nil {
		return
	}
	for _, a := range c.jobs {
		if a.phase != phaseHolding && !yield(a.task, a.phase == phaseStarted) {
			return
		}
	}
}

// Claims returns the leases of a job's parts since it is decided to claim them; none before.
func (c *Coordinator) Claims(job grid.JobID) (list []Claimed) {
	if a := c.jobs[job]; a != nil && a.phase != phaseHolding {
		for i := range a.parts {
			list = append(list, a.parts[i].Claimed)
		}
	}
	return list
}

// Records yields the decisions of which nothing is over as they are to be saved, in no particular order.
func (c *Coordinator) Records(yield func(grid.Record) bool) {
	for _, a := range c.jobs {
		if a.phase != phaseHolding && !yield((*decision)(a)) {
			return
		}
	}
}

// Decision returns the record of the decision about a job, as it is to be saved; nil if there
// is none.
func (c *Coordinator) Decision(job grid.JobID) grid.Record {
	if a := c.jobs[job]; a != nil && a.phase != phaseHolding {
		return (*decision)(a)
	}
	return nil
}

// NextTimer returns when Step next needs a Tick.
func (c *Coordinator) NextTimer() grid.Time { return c.queue.NextTimer() }

// Step applies one input at time now and appends to out what the driver must carry
// out in order. now never decreases.
func (c *Coordinator) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *Submit:
		c.submit(now, in, out)
	case *Withdraw:
		c.queue.Remove(in.Job)
		c.drop(now, c.jobs[in.Job], out)
	case *Finish:
		c.drop(now, c.jobs[in.Job], out)
	case *lease.Granted:
		c.confirmed(now, in.ID, phaseHolding, out)
	case *lease.Claimed:
		c.confirmed(now, in.ID, phaseClaiming, out)
	case *lease.Refused:
		why := lost{refused: true, refusal: in.Reason, gone: now}
		if in.Reason == lease.Busy { // else it may have them, but not for this
			why.free, why.busy = in.Free, true
		}
		c.lost(now, in.ID, why, out)
	case *lease.Recalled:
		c.lost(now, in.ID, lost{cause: lease.Revoked, gone: in.End, recalled: true}, out)
	case *lease.Ended:
		c.lost(now, in.ID, lost{cause: in.Cause, gone: in.Gone}, out)
	case grid.Tick:
		if c.queue.NextTimer() <= now {
			c.queue.Scan(now, c.view, func(w *Waiting, parts []Part) { c.begin(now, w, parts, out) })
		}
	default:
		panic(fmt.Sprintf("coalloc: unknown input %T", in))
	}
}

func (c *Coordinator) submit(now grid.Time, in *Submit, out *grid.Outbox) {
	err := in.Request.Validate()
	if err == nil {
		err = in.Request.Placeable(c.view)
	}
	if policy, known := c.queue.policy(in.Request); err == nil && known {
		err = in.Request.PlaceableBy(policy, c.view, in.Estimate)
	}
	if err == nil && (in.Estimate < 1 || in.Estimate > lease.SpanLimit/2) {
		err = badRequest("an estimate of %v, want more than 0 and at most %v", in.Estimate, lease.SpanLimit/2)
	}
	if err == nil && c.jobs[in.Task.Job] != nil {
		err = fmt.Errorf("%s is being claimed: %w", in.Task.Job, ErrKnown)
	}
	if err == nil && c.queue.Len()+len(c.jobs) >= c.queue.cfg.Max {
		err = fmt.Errorf("%d jobs wait or run: %w", c.queue.Len()+len(c.jobs), ErrQueueFull)
	}
	if err == nil {
		err = c.queue.Add(now, in.Task.Job, in.Request, in.Estimate)
	}
	if err != nil {
		out.Local(&Rejected{in.Task, err})
		return
	}
	c.queue.Waiting(in.Task.Job).Epoch = in.Task.Epoch
	c.queue.Try(now, in.Task.Job, c.view, func(w *Waiting, parts []Part) { c.begin(now, w, parts, out) })
}

// begin asks the sites of a placement to hold their parts.
func (c *Coordinator) begin(now grid.Time, w *Waiting, parts []Part, out *grid.Outbox) {
	limit := w.Estimate
	if Clusters(parts) > 1 { // a split job runs longer
		limit += w.Estimate / 1000 * grid.Time(min(c.view.Slowdown(w.Request, parts)+c.cfg.Doubt, slowdownMax))
	}
	var transfer grid.Time // the inputs come first
	for _, p := range parts {
		transfer = max(transfer, Transfer(w.Request.Inputs, c.view, int(p.Site)))
	}
	if transfer == grid.Never { // placed by a policy that does not ask: it will fail there, and say so
		transfer = 0
	}
	bring := transferSlack * min(transfer, lease.SpanLimit/transferSlack)
	a := &attempt{
		task: grid.TaskID{Job: w.Job, Epoch: w.Epoch}, waiting: w, ordered: w.Failures > 0,
		limit: limit, bring: bring, span: min(bring+limit+(bring+limit)/clockMargin+c.cfg.Slack, lease.SpanLimit),
	}
	for _, p := range parts {
		id := c.view.Sites[p.Site].ID
		a.parts = append(a.parts, partState{Claimed: Claimed{Component: p.Component, Site: id, Processors: p.Processors}})
		c.reckoning.changed(now, id, -p.Processors)
	}
	slices.SortFunc(a.parts, func(x, y partState) int {
		return cmp.Or(cmp.Compare(x.Site, y.Site), cmp.Compare(x.Component, y.Component))
	})
	c.jobs[w.Job] = a
	for i := range a.parts {
		if !c.ask(now, a, i, out) || a.ordered {
			return
		}
	}
}

// ask asks one site, and reports whether it could.
func (c *Coordinator) ask(now grid.Time, a *attempt, i int, out *grid.Outbox) bool {
	p := &a.parts[i]
	hold := c.cfg.Hold
	if a.ordered { // until the last has been asked, too
		hold = min(hold+grid.Time(len(a.parts)-1-i)*turn, lease.HoldLimit)
	}
	id, err := c.leases.Request(now, p.Site, lease.Want{Processors: p.Processors, Span: a.span, Hold: hold, Subject: a.task.Job}, out)
	if err != nil {
		c.fail(now, a, out)
		return false
	}
	p.Lease = id
	c.byLease[id] = a
	return true
}

// find returns the part of a lease.
func (a *attempt) find(id lease.ID) int {
	return slices.IndexFunc(a.parts, func(p partState) bool { return p.Lease == id })
}

// confirmed notes that a site holds its part, or that its claim is confirmed.
func (c *Coordinator) confirmed(now grid.Time, id lease.ID, of phase, out *grid.Outbox) {
	a := c.byLease[id]
	if a == nil {
		// Of an attempt that was given up, or from before a crash: nobody wants it.
		if err := c.leases.Release(now, id, out); err != nil && !errors.Is(err, lease.ErrUnknown) {
			panic(fmt.Sprintf("coalloc: %v", err))
		}
		return
	}
	if a.phase != of {
		return
	}
	a.parts[a.find(id)].confirmed = true
	at := slices.IndexFunc(a.parts, func(p partState) bool { return !p.confirmed })
	switch {
	case at >= 0 && a.parts[at].Lease == (lease.ID{}):
		c.ask(now, a, at, out)
	case at >= 0:
	case of == phaseHolding:
		c.decide(now, a, out)
	default:
		a.phase = phaseStarted
		out.Save((*decision)(a))
		out.Local(a.start(false))
	}
}

// decide claims all parts, which are held. The decision is in the same step, so it is
// durable before any claim leaves.
func (c *Coordinator) decide(now grid.Time, a *attempt, out *grid.Outbox) {
	a.phase = phaseClaiming
	out.Save((*decision)(a))
	for i := range a.parts {
		a.parts[i].confirmed = false
	}
	for i := range a.parts {
		if err := c.leases.Claim(now, a.parts[i].Lease, out); err != nil {
			a.parts[i].over = true
			c.fail(now, a, out)
			return
		}
	}
}

// start returns the news that a job may start.
func (a *attempt) start(again bool) *Start {
	s := &Start{Task: a.task, Limit: a.limit, Bring: a.bring, Again: again}
	if a.waiting != nil {
		s.Tries, s.Failures = a.waiting.Tries, a.waiting.Failures
	}
	for i := range a.parts {
		s.Parts = append(s.Parts, a.parts[i].Claimed)
	}
	slices.SortFunc(s.Parts, func(x, y Claimed) int { return cmp.Compare(x.Component, y.Component) })
	return s
}

// lost is why a part cannot go on.
type lost struct {
	cause    lease.Cause
	free     int64 // processors idle there, if refused
	refused  bool
	refusal  lease.Reason
	busy     bool // so many are idle for anybody
	recalled bool // the lease goes on for a while
	gone     grid.Time
}

// lost gives an attempt up that has lost a part.
func (c *Coordinator) lost(now grid.Time, id lease.ID, why lost, out *grid.Outbox) {
	a := c.byLease[id]
	if a == nil {
		return
	}
	p := &a.parts[a.find(id)]
	p.over = !why.recalled
	site := p.Site
	decided, started := a.phase != phaseHolding, a.phase == phaseStarted
	gone := max(why.gone, now)
	for i := range a.parts {
		if part := &a.parts[i]; !part.over && part.Lease != (lease.ID{}) {
			gone = max(gone, c.leases.Gone(part.Lease))
		}
	}
	c.drop(now, a, out)
	if at := c.view.Index(site); why.refused && at >= 0 {
		c.view.SetFree(at, why.free) // fresher than what the placement was made on
		if why.busy {
			c.reckoning.refused(now, site, why.free)
		}
	}
	if decided && (started || a.waiting == nil) {
		out.Local(&Broken{Task: a.task, Site: site, Cause: why.cause, Started: started, Gone: gone})
		return
	}
	if !why.refused {
		site = ""
	}
	c.again(now, a, site, why.refusal, out)
}

// fail gives an attempt up that could not even ask or claim.
func (c *Coordinator) fail(now grid.Time, a *attempt, out *grid.Outbox) {
	c.drop(now, a, out)
	c.again(now, a, "", lease.Accepted, out)
}

// again returns the job of an attempt that was dropped to the queue. by is the site whose
// refusal is why; empty if there was none.
func (c *Coordinator) again(now grid.Time, a *attempt, by grid.SiteID, refusal lease.Reason, out *grid.Outbox) {
	a.waiting.RefusedBy, a.waiting.Refusal = by, refusal
	if a.phase != phaseHolding {
		out.Local(&Aborted{a.task})
	}
	c.queue.Return(now, a.waiting, c.rng.Int64N(1000))
}

// drop releases all parts of an attempt and forgets it; a may be nil.
func (c *Coordinator) drop(now grid.Time, a *attempt, out *grid.Outbox) {
	if a == nil {
		return
	}
	delete(c.jobs, a.task.Job)
	if a.phase != phaseHolding {
		out.Delete((*decision)(a))
	}
	for i := range a.parts {
		p := &a.parts[i]
		if at := c.view.Index(p.Site); at >= 0 { // it may have left meanwhile
			c.view.SetFree(at, c.view.Sites[at].Free+p.Processors)
			c.reckoning.changed(now, p.Site, p.Processors)
		}
		if p.Lease == (lease.ID{}) {
			continue
		}
		delete(c.byLease, p.Lease)
		if p.over {
			continue
		}
		if err := c.leases.Release(now, p.Lease, out); err != nil && !errors.Is(err, lease.ErrUnknown) {
			panic(fmt.Sprintf("coalloc: %v", err))
		}
	}
}
