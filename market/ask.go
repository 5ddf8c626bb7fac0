package market

import (
	"gridnode/grid"
	"gridnode/market/keepalive"
)

// ask is home's side of one negotiation.
type ask struct {
	site       grid.SiteID
	quote      int // place among Search.Quotes
	standing   Standing
	request    uint64
	sent       grid.Time
	deadline   grid.Time // of the reply
	processors int64     // as noted with Memory.Asking
	span       grid.Time
	expected   grid.Time // finish that the ranking estimated which led to it, 0 if none did
	costMax    grid.Credits
	repriced   bool // was asked a second time because its price had changed

	// Once granted, with instants on home's clock:
	hold    uint64
	price   grid.Price
	cost    grid.Credits
	start   grid.Time
	finish  grid.Time
	until   grid.Time
	lease   grid.Time
	expires grid.Time
}

// negotiate asks the site of a quote for a guarantee. If too much is under way to
// it, p waits for its turn and is advanced then.
func (b *broker) negotiate(now grid.Time, p *placement, quote int, out *grid.Outbox) {
	q := &p.quotes[quote]
	e := b.memory.at(q.Site)
	if e.underWay >= b.cfg.AsksPerPeer {
		p.waiting = e
		e.waiting.push(p)
		return
	}
	b.requests = number(b.requests, now)
	k := ask{
		site: q.Site, quote: quote, standing: StandingAsked, request: b.requests, sent: now, deadline: now.Add(b.cfg.ReplyTimeout),
		processors: p.job.Processors, span: p.job.Away().EstimateAt(q.Rating),
	}
	k.costMax = b.costMax(now, p, quote)
	if p.ranked {
		k.expected = b.ranking.verdicts[quote].Finish
	}
	i := p.find(q.Site)
	if i < 0 {
		i = len(p.asks)
		p.asks = append(p.asks, k)
		p.negotiations = append(p.negotiations, Negotiation{})
	}
	k.repriced = p.asks[i].repriced
	p.asks[i], p.negotiations[i] = k, Negotiation{Site: q.Site, Outcome: OutcomeCandidate}
	e.underWay++
	b.memory.Asking(q.Site, k.processors, k.span)
	p.sent++
	p.messages++
	out.Send(q.Site, b.request(now, p, k.request, k.costMax))
	b.watch(p)
}

// request returns what a site is asked about the job of p.
func (b *broker) request(now grid.Time, p *placement, number uint64, costMax grid.Credits) *Negotiate {
	m := b.slabs.negotiate.New()
	*m = Negotiate{
		Task: p.task(), Request: number, Validity: b.cfg.ReplyTimeout, Processors: p.job.Processors, Memory: p.job.Memory,
		Work: p.job.Away().Work, Deadline: b.remaining(now, p.job), CostMax: costMax,
		Module: p.job.IsModule(), Lease: keepalive.Of(p.job, b.cfg.Lease), GPUs: p.job.GPUs,
	}
	if b.desk != nil {
		m.Bank = b.desk.Bank()
	}
	return m
}

// costMax returns the most that the site of a quote may charge: what its quote
// says, or the whole budget if the goal does not care or nothing is known.
func (b *broker) costMax(now grid.Time, p *placement, quote int) grid.Credits {
	switch {
	case p.job.Budget >= 0 && (p.job.Goal == grid.GoalTime || p.blind):
		return p.job.Budget
	case p.blind:
		return grid.CreditsMax // whoever names a site and no budget takes its price
	}
	q := &p.quotes[quote]
	price := b.memory.adjust(q, nil, p.job.Processors, now).Price
	return p.job.Away().CostAt(q.Rating, p.job.GPUs.Price(price, p.job.Processors, q.GPUWeight), q.Cost)
}

func (p *placement) task() grid.TaskID { return grid.TaskID{Job: p.job.ID, Epoch: p.epoch} }

// remaining returns the span that another site has for the job: what is left
// until the deadline without what the messages may take.
func (b *broker) remaining(now grid.Time, job *grid.Job) grid.Time {
	if job.Deadline == grid.Never {
		return grid.Never
	}
	return min(max(job.Deadline-now-b.cfg.Allowance, 0), grid.SpanMax)
}

// watch sets p's timer to the earliest thing it waits for.
func (b *broker) watch(p *placement) {
	at := grid.Never
	if p.paging.finding || p.pausing {
		at = p.wakeAt
	}
	for i := range p.asks {
		if p.asks[i].standing == StandingAsked {
			at = min(at, p.asks[i].deadline)
		}
	}
	b.timers.Set(&p.timer, at)
}

// replied is a guarantee or a refusal.
func (b *broker) replied(now grid.Time, from grid.SiteID, m *Reply, out *grid.Outbox) {
	if q := b.probes[m.Request]; q != nil && q.site == from {
		b.probed(now, q, m, out)
		return
	}
	if m.Probe {
		return // nobody waits for it any more
	}
	p := b.placing[m.Task.Job]
	if p == nil || p.epoch != m.Task.Epoch {
		b.unwanted(from, m, nil, out)
		return
	}
	p.messages++
	i := p.find(from)
	if i < 0 || p.asks[i].request != m.Request || p.asks[i].standing != StandingAsked {
		var k *ask
		if i >= 0 {
			k = &p.asks[i]
		}
		b.unwanted(from, m, k, out)
		return
	}
	k := &p.asks[i]
	b.memory.Answered(from, k.processors, k.span)
	heard, _ := b.gossip(from)
	b.memory.Report(from, m.Load, heard.Sequence, now)
	b.answers.add(m.Refusal)
	if m.Refusal == Granted {
		b.grant(now, p, i, m, out)
	} else {
		b.refusal(now, p, i, m)
	}
	b.watch(p)
	b.advance(now, p, out)
}

// unwanted gives back a guarantee that came too late, unless the message is only
// another copy of one that is being used. k is the negotiation it may belong to.
func (b *broker) unwanted(from grid.SiteID, m *Reply, k *ask, out *grid.Outbox) {
	if b.away.replied(from, m) {
		return
	}
	if m.Refusal != Granted || k != nil && k.standing == StandingGranted && k.hold == m.Hold {
		return
	}
	b.sendCancel(from, Cancel{Task: m.Task, Hold: m.Hold}, out)
}

// grant checks a guarantee against what was asked for. Nothing is left to the
// other site's honesty.
func (b *broker) grant(now grid.Time, p *placement, i int, m *Reply, out *grid.Outbox) {
	k := &p.asks[i]
	// The holder of a promise counts from when it asked, so it lets go first; the
	// finish it counts from when it heard of it, so it does not hope for too much.
	k.standing, k.hold, k.expires = StandingGranted, m.Hold, k.sent.Add(m.HoldSpan)
	k.price, k.cost = m.Price, m.Cost
	k.start, k.finish = now.Add(m.Start), now.Add(m.Finish)
	k.lease = min(m.Lease, keepalive.Of(p.job, b.cfg.Lease))
	k.until = untilHome(now, m.Start, max(p.job.Estimate, m.Finish-m.Start))
	p.negotiations[i] = Negotiation{Site: k.site, Outcome: OutcomeCandidate, Finish: k.finish, Cost: k.cost}
	outcome, refusal := OutcomeCandidate, Granted
	switch {
	case k.cost > k.costMax:
		outcome, refusal = OutcomeRefused, PriceChanged
	case k.finish > p.job.Deadline:
		outcome, refusal = OutcomeRefused, TooLate
	case k.expires <= now:
		outcome = OutcomeExpired
	case m.GPUs != p.job.GPUs.Count: // it knows nothing of them
		outcome, refusal = OutcomeRefused, NoGPUs
	}
	if outcome != OutcomeCandidate {
		p.negotiations[i].Outcome, p.negotiations[i].Refusal = outcome, refusal
		b.giveUp(p, k, out)
	}
}

// refusal notes why a site said no.
func (b *broker) refusal(now grid.Time, p *placement, i int, m *Reply) {
	k := &p.asks[i]
	k.standing = StandingOver
	b.memory.free(b.memory.at(k.site))
	p.negotiations[i].Outcome, p.negotiations[i].Refusal = OutcomeRefused, m.Refusal
	if m.Refusal == TooLate && m.Finish != grid.Never {
		p.negotiations[i].Finish = now.Add(m.Finish)
		if p.job.GPUs.Count == 0 { // else it may be those that were missing
			b.memory.Refused(k.site, k.processors, now.Add(m.Start))
		}
	}
	if b.traits.Final {
		return
	}
	switch {
	case m.Refusal == PriceChanged && !k.repriced:
		// The reply has the new price: the site competes once more with it.
		k.repriced = true
		b.reopen(p, i)
	case m.Refusal == Busy && p.rounds < b.rounds():
		// Its holds are taken up within the time of a message: better a moment
		// later at the best site than at once at another.
		b.reopen(p, i)
		p.pausing, p.wakeAt = true, now.Add(roundPause<<p.rounds)
		p.rounds++
	}
}

// reopen lets a site that refused compete once more.
func (b *broker) reopen(p *placement, i int) {
	p.asks[i].standing, p.negotiations[i] = StandingOpen, Negotiation{}
}

// rounds returns how often a job waits for a site that is busy.
func (b *broker) rounds() int {
	if b.desk != nil && b.desk.Bank() != "" {
		return roundsPaid
	}
	return roundsMax
}

// unanswered: the negotiation never arrived.
func (b *broker) unanswered(now grid.Time, to grid.SiteID, m *Negotiate, out *grid.Outbox) {
	if q := b.probes[m.Request]; q != nil && q.site == to {
		b.memory.Unreachable(to, q.p.quotes[q.quote].Sequence, now)
		b.heardOf(now, q, Negotiation{Site: to, Outcome: OutcomeUnreachable}, out)
		return
	}
	p := b.placing[m.Task.Job]
	if p == nil || p.epoch != m.Task.Epoch {
		return
	}
	if i := p.find(to); i >= 0 && p.asks[i].request == m.Request && p.asks[i].standing == StandingAsked {
		b.memory.Unreachable(to, p.quotes[p.asks[i].quote].Sequence, now)
		b.missed(now, p, i)
		b.advance(now, p, out)
	}
}

// missed: no answer from a site.
func (b *broker) missed(now grid.Time, p *placement, i int) {
	k := &p.asks[i]
	k.standing = StandingOver
	p.negotiations[i].Outcome = OutcomeUnreachable
	b.memory.Answered(k.site, k.processors, k.span)
	b.memory.Missed(k.site, p.quotes[k.quote].Sequence, now)
	b.memory.free(b.memory.at(k.site))
	b.watch(p)
}

// giveUp ends a negotiation on home's side. A guarantee is given back; should one
// still be on its way, it will be given back when it arrives.
func (b *broker) giveUp(p *placement, k *ask, out *grid.Outbox) {
	switch k.standing {
	case StandingAsked:
		b.memory.Answered(k.site, k.processors, k.span)
	case StandingGranted:
		b.sendCancel(k.site, Cancel{Task: p.task(), Hold: k.hold}, out)
	default:
		return
	}
	k.standing = StandingOver
	b.memory.free(b.memory.at(k.site))
}

// award takes a guarantee up: the job goes to its site, with its cheque if there is
// to be one.
func (b *broker) award(now grid.Time, p *placement, k *ask, out *grid.Outbox) {
	k.standing = StandingOver // the guarantee belongs to the migrated job from now on
	award := Award{
		Site: k.site, Epoch: p.epoch, Hold: k.hold, Price: k.price, Cost: k.cost,
		Start: k.start, Finish: k.finish, Until: k.until, Bank: b.payer(k.cost), Lease: k.lease,
	}
	m := b.away.take(now, p.job, award, p.messages, b.memory.at(k.site))
	m.losses = p.losses
	if award.Bank != "" {
		b.away.awaitCheque(m, k.expires)
		b.placedAt(now, p, award, out) // p and k are void from here on
		b.away.draw(now, m, out)
		return
	}
	b.away.submit(now, m, out)
	p.messages = m.messages
	b.placedAt(now, p, award, out)
}
