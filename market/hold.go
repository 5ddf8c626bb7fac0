package market

import (
	"errors"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// hold is a guarantee that this site gave and that was not taken up yet:
// processors reserved in lrms until the job arrives or the hold ends.
type hold struct {
	timer      grid.Alarm[alarmed]
	task       grid.TaskID
	home       grid.SiteID
	token      uint64 // our name for it, never used twice
	request    uint64 // of home
	processors int64
	work       grid.Work
	price      grid.Price
	cost       grid.Credits
	bank       grid.SiteID // whose cheque is to come with the job; empty if none
	start      grid.Time   // promised, on our clock
	finish     grid.Time
	expires    grid.Time
}

// copyLife is how long a copy of a message may be under way; streams break sooner.
const copyLife = 10 * grid.Minute

// holdsMax bounds the guarantees of one site that are not taken up.
const holdsMax = 4096

// negotiated is another site's request for a guarantee. "The remote GFA makes a
// decision immediately upon receiving a request as to whether it can accept the
// job or not."
func (a *Agent) negotiated(now grid.Time, from grid.SiteID, m *Negotiate, out *grid.Outbox) {
	e := a.memory.at(from)
	if age := numberSpan(e.request, m.Request); age > copyLife {
		e.request = m.Request // not a late copy: the asker's clock went back
	} else if age > m.Validity {
		return // a copy so late that its sender has stopped waiting
	}
	e.request = max(e.request, m.Request)
	if r := a.remote[m.Task.Job]; r != nil && (r.home != from || r.task.Epoch >= m.Task.Epoch) {
		if r.home != from || r.task.Epoch > m.Task.Epoch {
			a.sendRefusal(now, from, m, Superseded, out)
		}
		return // we have that very job: a late copy
	}
	if h := a.holds[m.Task.Job]; h != nil {
		switch {
		case h.home != from:
			a.sendRefusal(now, from, m, Busy, out)
			return
		case h.task.Epoch > m.Task.Epoch, h.request > m.Request:
			return // a late copy
		case h.request == m.Request:
			a.sendGrant(now, h, out) // the same request gets the same answer
			return
		}
		a.release(now, h)
	}
	h, refusal, finish := a.admit(now, e, m)
	if refusal != Granted {
		reply := a.sendRefusal(now, from, m, refusal, out)
		if finish != grid.Never {
			reply.Finish = finish - now
			reply.Start = max(reply.Finish-m.estimateAt(a.cfg.Rating), 0)
		}
		return
	}
	a.sendGrant(now, h, out)
}

// estimateAt is the bound on the job's run time at a site (eq. 2).
func (m *Negotiate) estimateAt(r grid.Rating) grid.Time { return max(m.Work.At(r), 1) }

// admit reserves processors for a request, or says why not; finish is then the
// best that could have been promised, or Never.
func (a *Agent) admit(now grid.Time, e *memory, m *Negotiate) (h *hold, refusal Refusal, finish grid.Time) {
	estimate := m.estimateAt(a.cfg.Rating)
	job := grid.Job{Resources: grid.Resources{Processors: m.Processors}, Work: m.Work}
	cost := job.CostAt(a.cfg.Rating, a.cfg.Price, a.cfg.Cost)
	head := a.cfg.Head != "" && e.site == a.cfg.Head
	switch {
	case !a.cfg.Foreign && !head:
		return nil, NoForeign, grid.Never
	case m.Processors > a.cfg.Processors, m.Memory > a.cfg.Memory && a.cfg.Memory > 0:
		return nil, TooWide, grid.Never
	case cost > m.CostMax:
		return nil, PriceChanged, grid.Never
	case a.desk != nil && cost > 0 && !a.desk.Accepts(m.Bank):
		return nil, Unpaid, grid.Never
	case !head && e.holds >= a.cfg.HoldsPerPeer, len(a.holds) >= holdsMax,
		!head && e.holds > 0 && (e.held+m.Processors)*1000 > a.cfg.Processors*a.cfg.HoldShare:
		return nil, Busy, grid.Never
	}
	by := now.Add(m.Deadline)
	start, err := a.cluster.Reserve(now, lrms.Request{ID: m.Task, Processors: m.Processors, Estimate: estimate}, by)
	if err != nil {
		if late, ok := err.(lrms.TooLate); ok {
			return nil, TooLate, late.Finish
		}
		return nil, refusalOf(err), grid.Never
	}
	h = a.newHold()
	a.grants = number(a.grants, now)
	h.task, h.home, h.token, h.request = m.Task, e.site, a.grants, m.Request
	h.processors, h.work = m.Processors, m.Work
	h.price, h.cost, h.bank = a.cfg.Price, cost, ""
	if a.desk != nil && cost > 0 {
		h.bank = m.Bank
	}
	h.start, h.finish, h.expires = start, start.Add(estimate), now.Add(a.cfg.HoldSpan)
	a.holds[m.Task.Job] = h
	e.holds++
	e.held += h.processors
	a.timers.Set(&h.timer, h.expires)
	return h, Granted, h.finish
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

// reserveHome takes processors of this site for a job of its own.
func (a *Agent) reserveHome(now grid.Time, p *placement) (Award, Refusal) {
	estimate := p.job.EstimateAt(a.cfg.Rating)
	start, err := a.cluster.Admit(now, lrms.Request{ID: p.task(), Processors: p.job.Processors, Estimate: estimate}, p.job.Deadline)
	if err != nil {
		return Award{}, refusalOf(err)
	}
	return Award{
		Site: a.cfg.Site, Epoch: p.epoch, Price: a.cfg.Price, Cost: p.job.CostAt(a.cfg.Rating, a.cfg.Price, a.cfg.Cost),
		Start: start, Finish: start.Add(estimate), Until: untilHome(now, start-now, Limit(p.job, a.cfg.Rating)),
	}, Granted
}

// due implements alarmed: nobody took the guarantee up.
func (h *hold) due(a *Agent, now grid.Time, _ *grid.Outbox) { a.release(now, h) }

// release gives the processors of a hold back.
func (a *Agent) release(now grid.Time, h *hold) {
	a.cluster.Cancel(now, h.task)
	a.forgetHold(h)
}

// forgetHold forgets a hold whose processors are somebody else's business now.
func (a *Agent) forgetHold(h *hold) {
	e := a.memory.at(h.home)
	e.holds--
	e.held -= h.processors
	a.timers.Stop(&h.timer)
	delete(a.holds, h.task.Job)
	if len(a.unused) < spareMax {
		a.unused = append(a.unused, h)
	}
}

func (a *Agent) newHold() *hold {
	if n := len(a.unused); n > 0 {
		h := a.unused[n-1]
		a.unused = a.unused[:n-1]
		return h
	}
	h := new(hold)
	h.timer.Owner = h
	return h
}

func (a *Agent) sendGrant(now grid.Time, h *hold, out *grid.Outbox) {
	m := a.slabs.reply.New()
	*m = Reply{
		Task: h.task, Request: h.request, Hold: h.token, HoldSpan: h.expires - now,
		Price: h.price, Cost: h.cost, Start: max(h.start-now, 0), Finish: h.finish - now, Load: a.load(now),
	}
	m.Finish = max(m.Finish, m.Start)
	out.Send(h.home, m)
}

func (a *Agent) sendRefusal(now grid.Time, to grid.SiteID, m *Negotiate, refusal Refusal, out *grid.Outbox) *Reply {
	r := a.slabs.reply.New()
	*r = Reply{
		Task: m.Task, Request: m.Request, Refusal: refusal, Price: a.cfg.Price,
		Start: grid.Never, Finish: grid.Never, Load: a.load(now),
	}
	out.Send(to, r)
	return r
}

// load returns what this site tells with every reply.
func (a *Agent) load(now grid.Time) Load {
	state := a.cluster.State(now)
	l := Load{Free: max(state.Free, 0), Widest: max(state.Widest, 0), Wait: min(state.Wait, grid.SpanMax), Price: a.cfg.Price}
	if q, ok := a.dir.Known(a.cfg.Site); ok {
		l.Sequence = q.Sequence
	}
	return l
}
