package site

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/others"
	"gridnode/lease"
	"gridnode/market"
)

// pools is the processors that a site has borrowed, by lease. They run jobs of its
// queue as its own do; a job is either on own processors or on those of one lease.
type pools struct {
	list    []*pool               // in order of their leases
	lodgers map[grid.TaskID]*pool // jobs that run there
}

// pool is the processors of one borrowed lease.
type pool struct {
	id    lease.ID
	used  int64
	tasks []lodger // in order of their IDs
	over  bool     // no job is started there any more

	matched bool // the matchmaker borrowed it for one job, and releases it
}

// lodger is a job of this site that runs on borrowed processors.
type lodger struct {
	id         grid.TaskID
	processors int64
}

func newPools() pools { return pools{lodgers: make(map[grid.TaskID]*pool)} }

// comparePools orders pools by their leases: roughly by age.
func comparePools(a, b *pool) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.id.Borrower, b.id.Borrower))
}

// compareLodgers orders the tasks of a pool.
func compareLodgers(a, b lodger) int { return a.id.Compare(b.id) }

// of returns the borrowed processors of a lease, or nil.
func (ps *pools) of(id lease.ID) *pool {
	at, found := slices.BinarySearchFunc(ps.list, &pool{id: id}, comparePools)
	if !found {
		return nil
	}
	return ps.list[at]
}

// open enters the processors of a lease.
func (ps *pools) open(id lease.ID) *pool {
	p := &pool{id: id}
	at, _ := slices.BinarySearchFunc(ps.list, p, comparePools)
	ps.list = slices.Insert(ps.list, at, p)
	return p
}

// close forgets a pool, but not what runs there.
func (ps *pools) close(p *pool) {
	ps.list = slices.DeleteFunc(ps.list, func(q *pool) bool { return q == p })
}

// enter notes that a task runs in a pool.
func (ps *pools) enter(p *pool, g lodger) {
	p.used += g.processors
	at, _ := slices.BinarySearchFunc(p.tasks, g, compareLodgers)
	p.tasks = slices.Insert(p.tasks, at, g)
	ps.lodgers[g.id] = p
}

// leave frees the borrowed processors of a task that has ended, and returns the pool
// that they are in; nil if it had none.
func (ps *pools) leave(id grid.TaskID) *pool {
	p := ps.lodgers[id]
	if p == nil {
		return nil
	}
	delete(ps.lodgers, id)
	at, found := slices.BinarySearchFunc(p.tasks, lodger{id: id}, compareLodgers)
	if !found {
		panic(fmt.Sprintf("site: task %v is not on lease %v", id, p.id))
	}
	p.used -= p.tasks[at].processors
	p.tasks = slices.Delete(p.tasks, at, at+1)
	return p
}

// queue is where jobs wait for processors of this site, own and borrowed.
type queue interface {
	enqueue(now grid.Time, r lrms.Request, e *entry, out *grid.Outbox) error
	// dequeue takes a job that waits out of the queue, or withdraws what is promised to it.
	// It returns the processor-time for which others had delegated processors for it.
	dequeue(now grid.Time, e *entry, out *grid.Outbox) (held grid.Time)
	// schedule appends what starts on this site's own processors.
	schedule(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request
	// ended gives back the processors of an execution, whoever it was.
	ended(now grid.Time, id grid.TaskID, out *grid.Outbox)
	// pilotOf names the borrowed processors a job runs on; the zero value if it runs on
	// this site's own.
	pilotOf(e *entry) grid.Pilot
	// barred returns what keeps sites from being asked for processors for a job that waits.
	barred(e *entry) []market.Verdict
	// ttl returns how often a request of a job may be delegated, -1 if none is here.
	ttl(e *entry) int32
}

// ownQueue is the queue of a site that borrows nothing.
type ownQueue struct{ *base }

func (q ownQueue) enqueue(now grid.Time, r lrms.Request, e *entry, _ *grid.Outbox) error {
	return q.cluster.SubmitBy(now, r, e.job.Deadline)
}

func (q ownQueue) dequeue(now grid.Time, e *entry, _ *grid.Outbox) grid.Time {
	q.cluster.Cancel(now, e.task())
	return 0
}

func (q ownQueue) schedule(now grid.Time, started []lrms.Request, _ *grid.Outbox) []lrms.Request {
	return q.cluster.Schedule(now, started)
}

func (q ownQueue) ended(now grid.Time, id grid.TaskID, _ *grid.Outbox) { q.cluster.Ended(now, id) }

func (ownQueue) pilotOf(*entry) grid.Pilot { return grid.Pilot{} }

func (ownQueue) barred(*entry) []market.Verdict { return nil }

func (ownQueue) ttl(*entry) int32 { return -1 }

// here is the way of a job that asks for nothing but processors: the local queue.
type here struct{ *jobs }

func (here) wants(*grid.Job) bool { return true }

func (here) admit(grid.Time, *grid.Job) error { return nil }

// place puts a home job into the local queue.
func (h here) place(now grid.Time, e *entry, out *grid.Outbox) {
	request := h.requestOf(e)
	if err := h.queue.enqueue(now, request, e, out); err != nil {
		e.reason = err.Error()
		h.end(now, e, Refused, out)
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
		return
	}
	e.state = Queued
	e.award = market.Award{Site: h.cfg.ID, Epoch: e.epoch, Price: h.price(), Until: grid.Never,
		Cost: h.cfg.Cost.Cost(h.price(), e.job.Processors, request.Estimate)}
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: h.cfg.ID, Cost: e.award.Cost})
}

func (here) withdraw(grid.Time, *entry, *grid.Outbox) {} // the queue is asked in any case

func (here) explain(*entry, *View, bool) {}

// preview of a job that would wait here: the market says what it would get elsewhere.
func (h here) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	h.agent.Step(now, &market.Preview{Token: in.Token, Job: in.Job}, out)
}

// nobody stands in for parts that a site does not have.
type nobody struct{}

// Step implements core. There is no market: it knows of no other site.
func (nobody) Step(_ grid.Time, in grid.Input, out *grid.Outbox) {
	if p, ok := in.(*market.Preview); ok {
		out.Answer(p.Token, &market.PreviewResult{Certain: true})
	}
}

// room is the part that hears of a scheduler to whom this site's processors belong, if they
// are another one's: what its other users hold, and when it begins what this site starts.
type room struct {
	*base
	jobs    *jobs
	ledger  *others.Ledger
	trouble string
}

func (*room) takes(b *board) { take(b, func(s *Site) *room { return s.room }, (*room).told) }

// told takes what the scheduler says in the place of what it said before.
func (r *room) told(now grid.Time, in *Room, out *grid.Outbox) {
	if in.Trouble != r.trouble {
		r.trouble = in.Trouble
		n := Notice{Text: "the scheduler of this site's processors answers again"}
		if in.Trouble != "" {
			n = Notice{Text: "the scheduler of this site's processors does not answer: jobs wait until it does", About: []any{"error", in.Trouble}}
		}
		r.notices = append(r.notices, n)
	}
	if in.Trouble != "" {
		return // what was true last counts on
	}
	for _, b := range in.Begun {
		r.begun(now, b, out)
	}
	for _, id := range in.Waiting {
		if e := r.jobs.current(id); e != nil {
			r.cluster.Extend(now, id, now.Add(r.limitOf(e.job)))
		}
	}
	r.ledger.Take(now, in.Taken)
}

// begun notes when a task began that was started before.
func (r *room) begun(now grid.Time, b Begun, out *grid.Outbox) {
	e := r.jobs.current(b.ID)
	if e == nil || e.state != Running || b.Start < e.start {
		return
	}
	r.cluster.Extend(now, b.ID, b.Start.Add(r.limitOf(e.job)))
	late := e.award.Finish > 0 && b.Start.Add(r.requestOf(e).Estimate) > e.award.Finish
	r.ledger.Began(b.Start-e.start, late)
	if late {
		r.notices = append(r.notices, Notice{
			Text:  "a promise cannot be kept: the scheduler began a job later than it had foretold",
			About: []any{"job", e.job.ID, "late", b.Start - e.start, "margin", r.ledger.Margin()},
		})
	}
	out.Save(r.ledger.Record())
}

func (*room) keeps() []string { return []string{others.RecordKey} }

func (r *room) recover(_ grid.Time, kept records, _ *grid.Outbox) error {
	for key, value := range kept.each {
		if err := r.ledger.Recover(value); err != nil {
			return recordError(key, err)
		}
	}
	return nil
}

// accelerated is the way of a job that needs GPUs: the market's, if that is to place it; else
// it waits for those of this site. Queues know nothing of GPUs, and neither do leases: here it
// is promised both, processors and GPUs.
type accelerated struct {
	*jobs
	market *placing // nil: no other site is asked
}

func (accelerated) wants(j *grid.Job) bool { return j.GPUs.Count > 0 }

// traded reports whether the market places a job.
func (a accelerated) traded(j *grid.Job) bool { return a.market != nil && a.marketed(j) }

func (a accelerated) admit(_ grid.Time, j *grid.Job) error {
	switch {
	case a.traded(j):
		return nil
	case a.marketed(j):
		return fmt.Errorf("%w: this site is alone: a job that needs GPUs runs here, without deadline and budget", ErrInvalid)
	case j.Processors > a.cluster.Processors():
		return fmt.Errorf("%w: it wants %d processors of %d", ErrTooWide, j.Processors, a.cluster.Processors())
	}
	if err := a.gpus.Fits(j.GPUs); err != nil {
		return fmt.Errorf("%w: %w (site.gpus): let the market place it (--policy cheapest)", ErrTooWide, err)
	}
	return nil
}

func (a accelerated) place(now grid.Time, e *entry, out *grid.Outbox) {
	if a.traded(e.job) {
		a.market.place(now, e, out)
		return
	}
	r := a.requestOf(e)
	if err := a.cluster.Submit(now, r); err != nil {
		e.reason = err.Error()
		a.refuse(now, e, out)
		return
	}
	e.state, e.reason = Queued, ""
	price := e.job.GPUs.Price(a.price(), e.job.Processors, a.cfg.GPUWeight)
	e.award = market.Award{Site: a.cfg.ID, Epoch: e.epoch, Price: price, Until: grid.Never,
		Cost: a.cfg.Cost.Cost(price, e.job.Processors, r.Estimate)}
	out.Tell(grid.Event{Kind: grid.JobPlaced, Job: e.job, Epoch: e.epoch, Site: a.cfg.ID, Cost: e.award.Cost})
}

func (accelerated) withdraw(grid.Time, *entry, *grid.Outbox) {} // the queue and the agent are told in any case

func (a accelerated) explain(e *entry, v *View, whole bool) {
	if a.traded(e.job) {
		a.market.explain(e, v, whole)
	}
	if e.state == Queued && v.Reason == "" {
		v.Reason = fmt.Sprintf("waits for GPUs (%v) and processors", e.job.GPUs)
	}
}

func (a accelerated) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	if a.market == nil {
		out.Answer(in.Token, &market.PreviewResult{Certain: true, Waits: true})
		return
	}
	a.market.preview(now, in, out)
}
