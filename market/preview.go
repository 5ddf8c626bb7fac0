package market

import "gridnode/grid"

// wavesMax is how often a Preview asks Config.Asks sites at once, if those before refuse.
const wavesMax = 4

// probe is a question of what a site would say to a job, which has it hold nothing.
type probe struct {
	p        *placement
	site     grid.SiteID
	quote    int // place among Search.Quotes
	request  uint64
	costMax  grid.Credits
	repriced bool // it was asked a second time because its price had changed
}

// preview ranks a job as a placement would, over all sites, and asks the best of them what
// they would say.
func (b *broker) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	p := b.newPlacement(in.Job)
	p.token, p.epoch = in.Token, 1
	b.find(now, p, out)
}

// previewed goes on once all quotes are here, and once those that were asked have answered.
func (b *broker) previewed(now grid.Time, p *placement, out *grid.Outbox) {
	if !p.end && len(p.quotes) < b.cfg.PreviewsMax {
		b.find(now, p, out)
		return
	}
	if p.own < 0 {
		b.addHome(now, p)
	}
	for _, q := range p.probes { // none but those that did not answer in time
		if b.probes[q.request] == q {
			b.memory.Missed(q.site, p.quotes[q.quote].Sequence, now)
			b.noted(q, Negotiation{Site: q.site, Outcome: OutcomeUnreachable})
		}
	}
	if b.inquire(now, p, out) {
		return
	}
	result := &PreviewResult{Verdicts: b.verdicts(now, p, ""), Err: p.paging.failed, Certain: p.paging.failed == nil && !p.paging.unsure}
	result.Earliest, result.Cheapest = Earliest(result.Verdicts), Cheapest(result.Verdicts)
	token := p.token
	b.drop(now, p, out)
	out.Answer(token, result)
}

// inquire asks the best sites that were not asked, and reports whether there are some: the
// first time, and as long as nobody who was asked would have the job.
func (b *broker) inquire(now grid.Time, p *placement, out *grid.Outbox) bool {
	if p.waves >= wavesMax {
		return false
	}
	at := b.circumstances(now, &p.Search)
	b.ranking.rank(p.job, p.quotes, &at)
	var ask []int
	for position := 0; len(ask) < b.cfg.Asks; position++ {
		o := b.ranking.at(position)
		if o == nil || !o.fits {
			break
		}
		sure := o.home || negotiationWith(p.quotes[o.index].Site, p.negotiations) != nil
		if sure && p.waves > 0 {
			break
		}
		if !sure {
			ask = append(ask, int(o.index))
		}
	}
	if len(ask) == 0 {
		return false
	}
	p.waves++
	p.probes = p.probes[:0]
	for _, quote := range ask {
		q := &probe{p: p, site: p.quotes[quote].Site, quote: quote, costMax: b.costMax(now, p, quote)}
		p.probes = append(p.probes, q)
		b.probe(now, q, out)
	}
	p.awaited = len(ask)
	p.pausing, p.wakeAt = true, now.Add(b.cfg.ReplyTimeout)
	b.watch(p)
	return true
}

// probe asks a site.
func (b *broker) probe(now grid.Time, q *probe, out *grid.Outbox) {
	b.requests = number(b.requests, now)
	q.request = b.requests
	b.probes[q.request] = q
	m := b.request(now, q.p, q.request, q.costMax)
	m.Probe = true
	out.Send(q.site, m)
}

// probed is the answer.
func (b *broker) probed(now grid.Time, q *probe, m *Reply, out *grid.Outbox) {
	p := q.p
	if m.Hold != 0 { // a site that cannot be asked without it
		b.sendCancel(q.site, Cancel{Task: m.Task, Hold: m.Hold}, out)
	}
	heard, _ := b.gossip(q.site)
	b.memory.Report(q.site, m.Load, heard.Sequence, now)
	n := Negotiation{Site: q.site, Outcome: OutcomeCandidate}
	refuse := func(why Refusal) { n.Outcome, n.Refusal = OutcomeRefused, why }
	switch {
	case m.Refusal == PriceChanged && !q.repriced && !b.traits.Final:
		q.repriced, q.costMax = true, b.costMax(now, p, q.quote)
		if p.job.Budget < 0 || q.costMax <= p.job.Budget {
			delete(b.probes, q.request)
			b.probe(now, q, out)
			return
		}
	case m.Refusal == Busy: // for a moment
	case m.Refusal != Granted:
		refuse(m.Refusal)
		if m.Refusal == TooLate && m.Finish != grid.Never {
			n.Finish = now.Add(m.Finish)
		}
	case m.Cost > q.costMax:
		refuse(PriceChanged)
	case now.Add(m.Finish) > p.job.Deadline:
		refuse(TooLate)
	case m.GPUs != p.job.GPUs.Count:
		refuse(NoGPUs)
	default:
		n.Finish, n.Cost = now.Add(m.Finish), m.Cost
	}
	b.heardOf(now, q, n, out)
}

// heardOf notes what a question has come to, and goes on if it was the last one.
func (b *broker) heardOf(now grid.Time, q *probe, n Negotiation, out *grid.Outbox) {
	p := q.p
	b.noted(q, n)
	if p.awaited == 0 {
		p.pausing = false
		b.watch(p)
		b.advance(now, p, out)
	}
}

func (b *broker) noted(q *probe, n Negotiation) {
	delete(b.probes, q.request)
	q.p.awaited--
	q.p.negotiations = append(q.p.negotiations, n)
}
