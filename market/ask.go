package market

import "gridnode/grid"

// ask is home's side of one negotiation.
type ask struct {
	site       grid.SiteID
	state      askState
	request    uint64
	sent       grid.Time
	deadline   grid.Time // of the reply
	processors int64     // as noted with Memory.Asking
	span       grid.Time
	expected   grid.Time // finish that the ranking estimated
	costMax    grid.Credits
	repriced   bool // was asked a second time because its price had changed

	// Once granted, with instants on home's clock:
	hold    uint64
	price   grid.Price
	cost    grid.Credits
	start   grid.Time
	finish  grid.Time
	until   grid.Time
	expires grid.Time
}

type askState uint8

const (
	asking  askState = iota + 1 // no reply yet
	granted                     // the site holds processors for the job
	over                        // neither: refused, unanswered, or taken up
)

// find returns the negotiation with a site, or -1.
func (p *placement) find(site grid.SiteID) int {
	for i := range p.asks {
		if p.asks[i].site == site {
			return i
		}
	}
	return -1
}

// outstanding counts the sites whose answer p waits for.
func (p *placement) outstanding() int {
	n := 0
	if p.waiting != nil {
		n++
	}
	for i := range p.asks {
		if p.asks[i].state == asking {
			n++
		}
	}
	return n
}

// negotiate asks the site of a quote for a guarantee. If too much is under way to
// it, p waits for its turn and is advanced then.
func (a *Agent) negotiate(now grid.Time, p *placement, quote int, out *grid.Outbox) {
	q := &p.quotes[quote]
	e := a.memory.at(q.Site)
	if e.underWay >= a.cfg.AsksPerPeer {
		p.waiting = e
		e.waiting.push(p)
		return
	}
	a.requests = number(a.requests, now)
	k := ask{
		site: q.Site, state: asking, request: a.requests, sent: now, deadline: now.Add(a.cfg.ReplyTimeout),
		processors: p.job.Processors, span: p.job.EstimateAt(q.Rating),
	}
	k.costMax = a.costMax(now, p, quote)
	if a.cfg.Placement == PlacementCoordinated {
		k.expected = a.ranking.verdicts[quote].Finish // of the ranking that led here
	}
	i := p.find(q.Site)
	if i < 0 {
		i = len(p.asks)
		p.asks = append(p.asks, k)
		p.asked = append(p.asked, Asked{})
	}
	k.repriced = p.asks[i].repriced
	p.asks[i], p.asked[i] = k, Asked{Site: q.Site, Outcome: OutcomeCandidate}
	e.underWay++
	a.memory.Asking(q.Site, k.processors, k.span)
	p.number++
	p.messages++
	m := a.slabs.negotiate.New()
	*m = Negotiate{
		Task: p.task(), Request: k.request, Validity: a.cfg.ReplyTimeout, Processors: p.job.Processors, Memory: p.job.Memory,
		Work: p.job.Work, Deadline: a.remaining(now, p.job), CostMax: k.costMax,
	}
	if a.desk != nil {
		m.Bank = a.desk.Bank()
	}
	out.Send(q.Site, m)
	a.watch(p)
}

// costMax returns the most that the site of a quote may charge: what its quote
// says, or the whole budget if the goal does not care or nothing is known.
func (a *Agent) costMax(now grid.Time, p *placement, quote int) grid.Credits {
	switch {
	case p.job.Budget >= 0 && (p.job.Goal == grid.GoalTime || p.blind):
		return p.job.Budget
	case p.blind:
		return grid.CreditsMax // whoever names a site and no budget takes its price
	}
	q := &p.quotes[quote]
	return p.job.CostAt(q.Rating, a.memory.adjust(q, nil, p.job.Processors, now).Price, q.Cost)
}

func (p *placement) task() grid.TaskID { return grid.TaskID{Job: p.job.ID, Epoch: p.epoch} }

// remaining returns the span that another site has for the job: what is left
// until the deadline without what the messages may take.
func (a *Agent) remaining(now grid.Time, job *grid.Job) grid.Time {
	if job.Deadline == grid.Never {
		return grid.Never
	}
	return min(max(job.Deadline-now-a.cfg.Allowance, 0), grid.SpanMax)
}

// watch sets p's timer to the earliest thing it waits for.
func (a *Agent) watch(p *placement) {
	at := grid.Never
	if p.finding || p.pausing {
		at = p.wakeAt
	}
	for i := range p.asks {
		if p.asks[i].state == asking {
			at = min(at, p.asks[i].deadline)
		}
	}
	a.timers.Set(&p.timer, at)
}

// replied is a guarantee or a refusal.
func (a *Agent) replied(now grid.Time, from grid.SiteID, m *Reply, out *grid.Outbox) {
	p := a.placing[m.Task.Job]
	if p == nil || p.epoch != m.Task.Epoch {
		a.unwanted(from, m, nil, out)
		return
	}
	p.messages++
	i := p.find(from)
	if i < 0 || p.asks[i].request != m.Request || p.asks[i].state != asking {
		var k *ask
		if i >= 0 {
			k = &p.asks[i]
		}
		a.unwanted(from, m, k, out)
		return
	}
	k := &p.asks[i]
	a.memory.Answered(from, k.processors, k.span)
	heard, _ := a.gossip(from)
	a.memory.Report(from, m.Load, heard.Sequence, now)
	if m.Refusal == Granted {
		a.grant(now, p, i, m, out)
	} else {
		a.refusal(now, p, i, m)
	}
	a.watch(p)
	if a.cfg.Placement == PlacementCoordinated && a.asExpected(now, p, k) {
		a.award(now, p, k, out)
		return
	}
	a.advance(now, p, out)
}

// unwanted gives back a guarantee that came too late, unless the message is only
// another copy of one that is being used. k is the negotiation it may belong to.
func (a *Agent) unwanted(from grid.SiteID, m *Reply, k *ask, out *grid.Outbox) {
	if g := a.migrated[m.Task.Job]; g != nil && g.award.Epoch == m.Task.Epoch {
		g.messages++
		if g.award.Site == from && g.award.Hold == m.Hold {
			return
		}
	}
	if m.Refusal != Granted || k != nil && k.state == granted && k.hold == m.Hold {
		return
	}
	a.sendCancel(from, Cancel{Task: m.Task, Hold: m.Hold}, out)
}

func (a *Agent) sendCancel(to grid.SiteID, c Cancel, out *grid.Outbox) {
	m := a.slabs.cancel.New()
	*m = c
	out.Send(to, m)
}

// grant checks a guarantee against what was asked for. Nothing is left to the
// other site's honesty.
func (a *Agent) grant(now grid.Time, p *placement, i int, m *Reply, out *grid.Outbox) {
	k := &p.asks[i]
	// The holder of a promise counts from when it asked, so it lets go first; the
	// finish it counts from when it heard of it, so it does not hope for too much.
	k.state, k.hold, k.expires = granted, m.Hold, k.sent.Add(m.HoldSpan)
	k.price, k.cost = m.Price, m.Cost
	k.start, k.finish = now.Add(m.Start), now.Add(m.Finish)
	k.until = untilHome(now, m.Start, max(p.job.Estimate, m.Finish-m.Start))
	p.asked[i] = Asked{Site: k.site, Outcome: OutcomeCandidate, Finish: k.finish, Cost: k.cost}
	outcome, refusal := OutcomeCandidate, Granted
	switch {
	case k.cost > k.costMax:
		outcome, refusal = OutcomeRefused, PriceChanged
	case k.finish > p.job.Deadline:
		outcome, refusal = OutcomeRefused, TooLate
	case k.expires <= now:
		outcome = OutcomeExpired
	}
	if outcome != OutcomeCandidate {
		p.asked[i].Outcome, p.asked[i].Refusal = outcome, refusal
		a.giveUp(p, k, out)
	}
}

// refusal notes why a site said no.
func (a *Agent) refusal(now grid.Time, p *placement, i int, m *Reply) {
	k := &p.asks[i]
	k.state = over
	a.free(a.memory.at(k.site))
	p.asked[i].Outcome, p.asked[i].Refusal = OutcomeRefused, m.Refusal
	if m.Refusal == TooLate && m.Finish != grid.Never {
		p.asked[i].Finish = now.Add(m.Finish)
		a.memory.Refused(k.site, k.processors, now.Add(m.Start))
	}
	if a.cfg.Placement == PlacementPaper {
		return
	}
	switch {
	case m.Refusal == PriceChanged && !k.repriced:
		// The reply has the new price: the site competes once more with it.
		k.repriced = true
		p.asked[i] = Asked{}
	case m.Refusal == Busy && p.rounds < a.rounds():
		// Its holds are taken up within the time of a message: better a moment
		// later at the best site than at once at another.
		p.asked[i] = Asked{}
		p.pausing, p.wakeAt = true, now.Add(roundPause<<p.rounds)
		p.rounds++
	}
}

// rounds returns how often a job waits for a site that is busy.
func (a *Agent) rounds() int {
	if a.desk != nil && a.desk.Bank() != "" {
		return roundsPaid
	}
	return roundsMax
}

// unanswered: the negotiation never arrived.
func (a *Agent) unanswered(now grid.Time, to grid.SiteID, task grid.TaskID, request uint64, out *grid.Outbox) {
	p := a.placing[task.Job]
	if p == nil || p.epoch != task.Epoch {
		return
	}
	if i := p.find(to); i >= 0 && p.asks[i].request == request && p.asks[i].state == asking {
		a.memory.Unreachable(to, now)
		a.missed(now, p, i)
		a.advance(now, p, out)
	}
}

// missed: no answer from a site.
func (a *Agent) missed(now grid.Time, p *placement, i int) {
	k := &p.asks[i]
	k.state = over
	p.asked[i].Outcome = OutcomeUnreachable
	a.memory.Answered(k.site, k.processors, k.span)
	a.memory.Missed(k.site, now)
	a.free(a.memory.at(k.site))
	a.watch(p)
}

// giveUp ends a negotiation on home's side. A guarantee is given back; should one
// still be on its way, it will be given back when it arrives.
func (a *Agent) giveUp(p *placement, k *ask, out *grid.Outbox) {
	switch k.state {
	case asking:
		a.memory.Answered(k.site, k.processors, k.span)
	case granted:
		a.sendCancel(k.site, Cancel{Task: p.task(), Hold: k.hold}, out)
	default:
		return
	}
	k.state = over
	a.free(a.memory.at(k.site))
}

// award takes a guarantee up: the job goes to its site, with its cheque if there is
// to be one.
func (a *Agent) award(now grid.Time, p *placement, k *ask, out *grid.Outbox) {
	k.state = over // the guarantee belongs to the migrated job from now on
	m := a.slabs.moved.New()
	*m = migrated{job: p.job, messages: p.messages, losses: p.losses, slot: a.memory.at(k.site), phase: submitting, since: now}
	m.timer.Owner = m
	m.award = Award{
		Site: k.site, Epoch: p.epoch, Hold: k.hold, Price: k.price, Cost: k.cost,
		Start: k.start, Finish: k.finish, Until: k.until, Bank: a.pays(k.cost),
	}
	a.migrated[p.job.ID] = m
	if m.award.Bank != "" {
		m.phase = paying
		a.timers.Set(&m.timer, k.expires)
		a.placedAt(now, p, m.award, out) // p and k are void from here on
		a.desk.Draw(now, m.task(), m.award.Site, m.award.Cost, m.award.Until-now, out)
		return
	}
	a.submit(now, m, out)
	p.messages = m.messages
	a.placedAt(now, p, m.award, out)
}

// queue is a first-in first-out list of placements.
type queue struct {
	list []*placement
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(p *placement) { q.list = append(q.list, p) }

// pop returns nil for one that was taken out meanwhile.
func (q *queue) pop() *placement {
	p := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > len(q.list)/2 && q.head > 64 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return p
}

// remove takes p out wherever it stands.
func (q *queue) remove(p *placement) {
	for i := q.head; i < len(q.list); i++ {
		if q.list[i] == p {
			q.list[i] = nil
		}
	}
}

// stopWaiting takes p out of the queue it stands in, if it does.
func (a *Agent) stopWaiting(p *placement) {
	if p.waiting != nil {
		p.waiting.waiting.remove(p)
		p.waiting = nil
	}
}

// free notes that one thing less is under way to a site.
func (a *Agent) free(e *memory) {
	e.underWay--
	if e.waiting.len() > 0 && !e.freed {
		e.freed = true
		a.freed = append(a.freed, e)
	}
}

// wake lets jobs ask whose turn has come. They are judged anew: much may have
// changed meanwhile.
func (a *Agent) wake(now grid.Time, out *grid.Outbox) {
	for i := 0; i < len(a.freed); i++ {
		e := a.freed[i]
		e.freed = false
		for e.underWay < a.cfg.AsksPerPeer && e.waiting.len() > 0 {
			if p := e.waiting.pop(); p != nil {
				p.waiting = nil
				a.advance(now, p, out)
			}
		}
	}
	a.freed = a.freed[:0]
}
