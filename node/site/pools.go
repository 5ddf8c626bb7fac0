package site

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
)

// pools is the processors that a site has borrowed, by lease. They run jobs of its
// queue as its own do; a job is either on own processors or on those of one lease.
type pools struct {
	list   []*pool               // in order of their leases
	guests map[grid.TaskID]*pool // jobs that run there
}

// pool is the processors of one borrowed lease.
type pool struct {
	id    lease.ID
	used  int64
	tasks []guest // in order of their IDs
	over  bool    // no job is started there any more

	matched bool // the matchmaker borrowed it for one job, and releases it
}

// guest is a job of this site that runs on borrowed processors.
type guest struct {
	id         grid.TaskID
	processors int64
}

func newPools() pools { return pools{guests: make(map[grid.TaskID]*pool)} }

// comparePools orders pools by their leases: roughly by age.
func comparePools(a, b *pool) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.id.Borrower, b.id.Borrower))
}

// compareGuests orders the tasks of a pool.
func compareGuests(a, b guest) int { return a.id.Compare(b.id) }

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
func (ps *pools) enter(p *pool, g guest) {
	p.used += g.processors
	at, _ := slices.BinarySearchFunc(p.tasks, g, compareGuests)
	p.tasks = slices.Insert(p.tasks, at, g)
	ps.guests[g.id] = p
}

// leave frees the borrowed processors of a task that has ended, and returns the pool
// that they are in; nil if it had none.
func (ps *pools) leave(id grid.TaskID) *pool {
	p := ps.guests[id]
	if p == nil {
		return nil
	}
	delete(ps.guests, id)
	at, found := slices.BinarySearchFunc(p.tasks, guest{id: id}, compareGuests)
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
	dequeue(now grid.Time, e *entry, out *grid.Outbox)
	// schedule appends what starts on this site's own processors.
	schedule(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request
	// ended gives back the processors of an execution, whoever it was.
	ended(now grid.Time, id grid.TaskID, out *grid.Outbox)
	// pilotOf names the borrowed processors a job runs on; the zero value if it runs on
	// this site's own.
	pilotOf(e *entry) grid.Pilot
}

// ownQueue is the queue of a site that borrows nothing.
type ownQueue struct{ *base }

func (q ownQueue) enqueue(now grid.Time, r lrms.Request, e *entry, _ *grid.Outbox) error {
	return q.cluster.SubmitBy(now, r, e.job.Deadline)
}

func (q ownQueue) dequeue(now grid.Time, e *entry, _ *grid.Outbox) { q.cluster.Cancel(now, e.task()) }

func (q ownQueue) schedule(now grid.Time, started []lrms.Request, _ *grid.Outbox) []lrms.Request {
	return q.cluster.Schedule(now, started)
}

func (q ownQueue) ended(now grid.Time, id grid.TaskID, _ *grid.Outbox) { q.cluster.Ended(now, id) }

func (ownQueue) pilotOf(*entry) grid.Pilot { return grid.Pilot{} }

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
