package market

import (
	"errors"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// admission decides which jobs of other sites may come here, and holds processors for
// those that may until they do.
type admission struct {
	*office
	holds   map[grid.JobID]*hold
	tenants tenants // of these holds, and of the jobs that came for others
	answers Answers
	grants  uint64 // newest name of a guarantee
	unused  []*hold

	unproven int64 // processors held for sites that are not proven
}

func newAdmission(o *office) admission {
	return admission{office: o, holds: make(map[grid.JobID]*hold), tenants: make(tenants)}
}

// hold is a guarantee that this site gave and that was not taken up yet:
// processors reserved in lrms until the job arrives or the hold ends.
type hold struct {
	timer      grid.Alarm[alarmed]
	task       grid.TaskID
	home       grid.SiteID
	token      uint64 // our name for it, never used twice
	request    uint64 // of home
	answers    int    // that say so, but for those that did not arrive
	processors int64
	work       grid.Work
	gpus       grid.GPUs
	price      grid.Price
	cost       grid.Credits
	bank       grid.SiteID // whose cheque is to come with the job; empty if none
	start      grid.Time   // promised, on our clock
	finish     grid.Time
	expires    grid.Time
	lease      grid.Time // of the execution; 0: none
	leased     grid.Time // end of its first lease: it counts from the guarantee
}

// copyLife is how long a copy of a message may be under way; streams break sooner.
const copyLife = 10 * grid.Minute

// holdsMax bounds the guarantees of one site that are not taken up.
const holdsMax = 4096

// consider answers a request for a guarantee that is not about a job that is here.
func (d *admission) consider(now grid.Time, e *acquaintance, m *Negotiate, out *grid.Outbox) {
	if h := d.holds[m.Task.Job]; h != nil {
		switch {
		case h.home != e.site:
			d.sendRefusal(now, e.site, m, Busy, out)
			return
		case h.task.Epoch > m.Task.Epoch, h.request > m.Request:
			return // a late copy
		case h.request == m.Request:
			d.sendGrant(now, h, out) // the same request gets the same answer
			return
		}
		d.release(now, h)
	}
	h, refusal, finish := d.admit(now, e, m)
	if refusal != Granted {
		d.sendRefusal(now, e.site, m, refusal, out).could(now, finish, m.estimateAt(d.cfg.Rating))
		return
	}
	d.sendGrant(now, h, out)
}

// could says in a refusal when the job could have been done at best, unless that is Never.
func (r *Reply) could(now, finish, estimate grid.Time) {
	if finish != grid.Never {
		r.Finish = finish - now
		r.Start = max(r.Finish-estimate, 0)
	}
}

// weigh answers who only wants to know what admit would say. It changes nothing.
func (d *admission) weigh(now grid.Time, e *acquaintance, m *Negotiate, out *grid.Outbox) {
	price, cost, refusal := d.terms(now, e, m)
	finish, start := grid.Never, grid.Never
	if refusal == Granted {
		if start, refusal, finish = d.reserve(now, e, m); refusal == Granted {
			d.cluster.Cancel(now, m.Task)
		}
	}
	r := d.sendRefusal(now, e.site, m, refusal, out)
	r.could(now, finish, m.estimateAt(d.cfg.Rating))
	if r.Price = price; refusal == Granted {
		r.Cost, r.GPUs, r.Start = cost, m.GPUs.Count, max(start-now, 0)
		r.Finish = max(r.Finish, r.Start)
	}
}

// inTime reports whether a request is not a copy so late that its sender has stopped
// waiting.
func (e *acquaintance) inTime(m *Negotiate) bool {
	age := numberSpan(e.request, m.Request)
	switch {
	case age > copyLife: // not a late copy: the asker's clock went back
		e.request = m.Request
	case age > m.Validity:
		return false
	}
	e.request = max(e.request, m.Request)
	return true
}

// estimateAt is the bound on the job's run time at a site (eq. 2).
func (m *Negotiate) estimateAt(r grid.Rating) grid.Time { return max(m.Work.At(r), 1) }

// terms says what a request would cost, and what is against it whatever runs here.
func (d *admission) terms(now grid.Time, e *acquaintance, m *Negotiate) (price grid.Price, cost grid.Credits, refusal Refusal) {
	job := grid.Job{Resources: grid.Resources{Processors: m.Processors}, Work: m.Work}
	price = m.GPUs.Price(d.priceFor(e.site), m.Processors, d.cfg.GPUWeight)
	cost = job.CostAt(d.cfg.Rating, price, d.cfg.Cost)
	head := d.heads(e)
	switch {
	case m.Module && !d.cfg.Modules && !head:
		refusal = NoModules
	case !m.Module && !d.cfg.Foreign && !head:
		refusal = NoForeign
	case d.guests != nil && !d.guests.Admit(now, e.site, m.asWork(d.cfg.Rating)):
		refusal = ByRule
	case m.Processors > d.cfg.Processors, m.Memory > d.cfg.Memory && d.cfg.Memory > 0:
		refusal = TooWide
	case m.GPUs.Count > 0 && d.cluster.FitsGPUs(m.GPUs) != nil:
		refusal = NoGPUs
	case cost > m.CostMax:
		refusal = PriceChanged
	case d.desk != nil && cost > 0 && !d.desk.Accepts(m.Bank):
		refusal = Unpaid
	case d.desk != nil && cost > 0 && !d.desk.Trusts(now, e.site):
		refusal = Debtor
	}
	return price, cost, refusal
}

// heads reports whether it is the site that heads this one who asks.
func (d *admission) heads(e *acquaintance) bool { return d.cfg.Head != "" && e.site == d.cfg.Head }

// asWork is what the owner's rules are asked about.
func (m *Negotiate) asWork(at grid.Rating) *Work {
	return &Work{Processors: m.Processors, Memory: m.Memory, Span: m.estimateAt(at), Module: m.Module, GPUs: m.GPUs.Count, Probe: m.Probe}
}

// reserve promises processors, and GPUs, to a request, or says why not; finish is what is
// promised, or the best that could have been, or Never.
func (d *admission) reserve(now grid.Time, e *acquaintance, m *Negotiate) (start grid.Time, refusal Refusal, finish grid.Time) {
	estimate := m.estimateAt(d.cfg.Rating)
	start, err := d.cluster.Reserve(now, lrms.Request{ID: m.Task, Processors: m.Processors, Estimate: estimate, GPUs: m.GPUs}, now.Add(m.Deadline))
	if err != nil {
		if late, ok := errors.AsType[lrms.TooLate](err); ok {
			return 0, TooLate, late.Finish
		}
		return 0, refusalOf(err), grid.Never
	}
	finish = start.Add(estimate)
	if d.guests != nil && !d.guests.Promise(now, e.site, m.asWork(d.cfg.Rating), start, finish) {
		d.cluster.Cancel(now, m.Task)
		return 0, ByRule, grid.Never
	}
	return start, Granted, finish
}

// admit reserves processors for a request, or says why not; finish is then the
// best that could have been promised, or Never.
func (d *admission) admit(now grid.Time, e *acquaintance, m *Negotiate) (h *hold, refusal Refusal, finish grid.Time) {
	price, cost, refusal := d.terms(now, e, m)
	head := d.heads(e)
	switch {
	case refusal != Granted:
		return nil, refusal, grid.Never
	case !head && e.holds >= d.cfg.HoldsPerPeer, len(d.holds) >= holdsMax,
		!head && e.holds > 0 && d.beyondShare(e.held+m.Processors):
		return nil, Busy, grid.Never
	}
	start, refusal, finish := d.reserve(now, e, m)
	if refusal == Granted && !head && d.crowded(now, e, m.Processors) {
		d.cluster.Cancel(now, m.Task)
		return nil, Busy, grid.Never
	}
	if refusal != Granted {
		return nil, refusal, finish
	}
	h = d.newHold()
	d.grants = number(d.grants, now)
	h.task, h.home, h.token, h.request, h.answers = m.Task, e.site, d.grants, m.Request, 0
	h.processors, h.work, h.gpus = m.Processors, m.Work, m.GPUs
	h.price, h.cost, h.bank = price, cost, ""
	if d.desk != nil && cost > 0 {
		h.bank = m.Bank
	}
	h.start, h.finish, h.expires = start, finish, now.Add(d.cfg.HoldSpan)
	if h.lease = 0; !d.cfg.Unleased {
		h.lease = m.Lease
	}
	h.leased = now.Add(h.lease)
	d.holds[m.Task.Job] = h
	d.holding(e, 1, h.processors)
	d.tenants.enter(h.home, 1, h.processors, h.gpus.Count)
	d.timers.Set(&h.timer, h.expires)
	return h, Granted, h.finish
}

// beyondShare reports whether so many processors are more than some may hold.
func (d *admission) beyondShare(processors int64) bool {
	return processors*1000 > d.cfg.Processors*d.cfg.HoldShare
}

// crowded reports whether sites that are not proven hold so much that this one gets no
// more: its guarantee would have others wait, who may come for theirs.
func (d *admission) crowded(now grid.Time, e *acquaintance, processors int64) bool {
	return !e.proven && (d.unproven > 0 || now < e.distrusted) && d.beyondShare(d.unproven+processors)
}

// distrustSpans is for how many times the span of a guarantee a site that let one stand is
// held to the share that all who are not proven have together, also if it is the only one:
// such sites together hold all processors for a small part of the time.
const distrustSpans = 10

// stood notes that a guarantee was not taken up. Who lets one stand for most of its span,
// longer than it takes to ask again after a reply was lost, has it kept from others.
func (d *admission) stood(now grid.Time, h *hold) {
	if h.expires-now > d.cfg.HoldSpan/4 {
		return
	}
	e := d.memory.at(h.home)
	d.rate(e, false)
	e.distrusted = now.Add(distrustSpans * d.cfg.HoldSpan)
}

// rate says of a site whether it is proven.
func (d *admission) rate(e *acquaintance, proven bool) {
	switch {
	case proven && !e.proven:
		d.unproven -= e.held
	case !proven && e.proven:
		d.unproven += e.held
	}
	e.proven = proven
}

// refusalOf translates what the local scheduler objects to.
func refusalOf(err error) Refusal {
	switch {
	case errors.Is(err, lrms.ErrTooWide):
		return TooWide
	case errors.Is(err, lrms.ErrTooLate):
		return TooLate
	}
	return Busy // its queue is full, or it has the task already
}

// due implements alarmed: nobody took the guarantee up.
func (h *hold) due(a *Agent, now grid.Time, _ *grid.Outbox) { a.provider.admission.release(now, h) }

// find returns the guarantee that was given to a home for an execution under a name.
func (d *admission) find(home grid.SiteID, task grid.TaskID, token uint64) *hold {
	if h := d.holds[task.Job]; h != nil && h.home == home && h.task == task && h.token == token {
		return h
	}
	return nil
}

// undelivered: a guarantee whose asker never heard of it is not taken up. Of several answers to
// copies of one question another may have arrived.
func (d *admission) undelivered(now grid.Time, m *Reply) {
	h := d.holds[m.Task.Job]
	if h == nil || m.Hold == 0 || h.token != m.Hold {
		return
	}
	if h.answers--; h.answers <= 0 {
		d.release(now, h)
	}
}

// release gives the processors of a hold back.
func (d *admission) release(now grid.Time, h *hold) {
	d.cluster.Cancel(now, h.task)
	d.stood(now, h)
	d.forget(h)
}

// holding counts a guarantee of a site, with sign 1 as it is given and -1 as it ends.
func (d *admission) holding(e *acquaintance, sign int, processors int64) {
	e.holds += sign
	processors *= int64(sign)
	if e.held += processors; !e.proven {
		d.unproven += processors
	}
}

// forget forgets a hold whose processors are somebody else's business now.
func (d *admission) forget(h *hold) {
	d.holding(d.memory.at(h.home), -1, h.processors)
	d.tenants.enter(h.home, -1, h.processors, h.gpus.Count)
	d.timers.Stop(&h.timer)
	delete(d.holds, h.task.Job)
	if len(d.unused) < spareMax {
		d.unused = append(d.unused, h)
	}
}

func (d *admission) newHold() *hold {
	if n := len(d.unused); n > 0 {
		h := d.unused[n-1]
		d.unused = d.unused[:n-1]
		return h
	}
	h := new(hold)
	h.timer.Owner = h
	return h
}

func (d *admission) sendGrant(now grid.Time, h *hold, out *grid.Outbox) {
	m := d.slabs.reply.New()
	*m = Reply{
		Task: h.task, Request: h.request, Hold: h.token, HoldSpan: h.expires - now,
		Price: h.price, Cost: h.cost, Start: max(h.start-now, 0), Finish: h.finish - now, Load: d.loadFor(now, h.home), Lease: h.lease,
		GPUs: h.gpus.Count,
	}
	m.Finish = max(m.Finish, m.Start)
	d.answers.add(Granted)
	h.answers++
	out.Send(h.home, m)
}

func (d *admission) sendRefusal(now grid.Time, to grid.SiteID, m *Negotiate, refusal Refusal, out *grid.Outbox) *Reply {
	r := d.slabs.reply.New()
	*r = Reply{
		Task: m.Task, Request: m.Request, Refusal: refusal, Price: d.priceFor(to),
		Start: grid.Never, Finish: grid.Never, Load: d.loadFor(now, to), Probe: m.Probe,
	}
	if !m.Probe {
		d.answers.add(refusal)
	}
	out.Send(to, r)
	return r
}
