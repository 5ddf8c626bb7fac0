package site

import (
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
)

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
