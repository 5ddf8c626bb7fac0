package market

import (
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// broker is the side of a home that looks for sites: it owns the placements, their
// queries and their negotiations.
type broker struct {
	*office
	away   *away // takes over what is placed elsewhere
	policy Policy
	traits Traits // of policy

	placing  map[grid.JobID]*placement
	queries  map[directory.QueryID]*placement
	probes   map[uint64]*probe // of sites that are only asked what they would say, by request
	requests uint64            // of the newest negotiation
	spare    []*placement      // used placements, ready for the next job
	ranking  ranking           // scratch
	ties     ties              // at the fronts of the directory's orders
	answers  Answers           // of sites that were asked
	rejected int64             // quotes whose price is none: not positive, or too large
}

func newBroker(o *office, w *away) broker {
	policy := o.cfg.Placement
	if p, builtin := policy.(Placement); builtin {
		policy = p.policy()
	}
	return broker{
		policy: policy, traits: policy.Traits(), office: o, away: w, placing: make(map[grid.JobID]*placement), queries: make(map[directory.QueryID]*placement),
		probes: make(map[uint64]*probe),
		ties:   ties{rng: o.rng, dir: o.dir},
	}
}

// place starts a placement.
func (b *broker) place(now grid.Time, in *Place, out *grid.Outbox) {
	if p := b.placing[in.Job.ID]; p != nil {
		panic(fmt.Sprintf("market: place job %s epoch %d while epoch %d is being placed", in.Job.ID, in.Epoch, p.epoch))
	}
	if len(b.placing) >= b.cfg.PlacementsMax {
		out.Local(&Refused{Job: in.Job.ID, Why: ReasonFull, Reason: fmt.Sprintf("this site is placing %d jobs already", len(b.placing))})
		return
	}
	p := b.newPlacement(in.Job)
	p.epoch, p.messages, p.losses = in.Epoch, in.Messages, in.Losses
	b.placing[in.Job.ID] = p
	switch {
	case p.job.Goal == grid.GoalLocal, p.job.Site == b.cfg.Site:
		p.end = true
		b.addHome(now, p)
		b.advance(now, p, out)
	case p.job.Site != "":
		p.end = true
		b.named(p)
		if in.Headed {
			p.quotes[0].Foreign, p.quotes[0].Modules = true, true
		}
		b.advance(now, p, out)
	case p.job.Goal == grid.GoalSpill:
		// Experiment 2: "In case a local resource is not available then online
		// scheduling is performed that considers the resources in the federation".
		b.addHome(now, p)
		at := b.circumstances(now, &p.Search)
		if v := judge(p.job, &p.quotes[0], &at); v.Outcome == OutcomeCandidate && b.takeHome(now, p, out) {
			return
		}
		b.find(now, p, out)
	default:
		b.find(now, p, out)
	}
}

// advance does the next thing for a job: it asks, waits, places or refuses.
func (b *broker) advance(now grid.Time, p *placement, out *grid.Outbox) {
	switch {
	case p.paging.finding || p.pausing:
	case p.token != 0:
		b.previewed(now, p, out)
	default:
		for b.move(now, p, out) {
		}
	}
}

// move carries out one move of the policy, and reports whether another follows at once.
func (b *broker) move(now grid.Time, p *placement, out *grid.Outbox) (again bool) {
	p.begin(now)
	switch m := b.policy.Next(&p.Search); m.Act {
	case ActWait:
		p.must(p.outstanding() > 0, "waits for nobody")
	case ActAsk:
		return b.ask(now, p, m, out)
	case ActAward:
		p.must(m.Quote >= 0 && m.Quote < len(p.quotes), "awards a quote that is not there")
		i := p.find(p.quotes[m.Quote].Site)
		p.must(i >= 0 && p.asks[i].standing == StandingGranted, "awards what is not granted")
		b.award(now, p, &p.asks[i], out)
	case ActPage:
		if p.end {
			b.exhausted(now, p, out)
		} else {
			b.find(now, p, out)
		}
	case ActRefuse:
		b.exhausted(now, p, out)
	default:
		p.must(false, "makes no move")
	}
	return false
}

// ask carries out ActAsk.
func (b *broker) ask(now grid.Time, p *placement, m Move, out *grid.Outbox) (again bool) {
	p.must(m.Quote >= 0 && m.Quote < len(p.quotes), "asks a quote that is not there")
	standing := p.Standing(m.Quote)
	if m.Quote == p.own {
		p.must(standing == StandingOpen, "asks home twice")
		return !b.takeHome(now, p, out)
	}
	p.must(p.waiting == nil && (standing == StandingOpen || standing == StandingOver), "asks a site that is being asked")
	b.negotiate(now, p, m.Quote, out)
	return m.Again
}

// must panics if a policy has made a move that is none.
func (p *placement) must(ok bool, what string) {
	if !ok {
		panic(fmt.Sprintf("market: policy %v %s for job %s", p.broker.policy, what, p.job.ID))
	}
}

// exhausted ends a placement for which no site is left.
func (b *broker) exhausted(now grid.Time, p *placement, out *grid.Outbox) {
	if p.selects() && p.pages > 0 && len(p.quotes) <= 1 && p.paging.failed == nil && !b.cfg.Quiet {
		// Everybody is too narrow: name them, so that the user sees it.
		p.paging.all, p.stretch, p.end, p.paging.last, p.pages = true, front, false, directory.Quote{}, 0
		b.find(now, p, out)
		return
	}
	why := ReasonNoSite
	if p.paging.failed != nil {
		why = ReasonNoAnswer
	}
	b.refuse(now, p, why, out)
}

// circumstances returns what a ranking for s depends on.
func (b *broker) circumstances(now grid.Time, s *Search) Circumstances {
	at := Circumstances{
		Now: now, Home: b.cfg.Site, HomeStart: grid.Never, Policy: b.policy,
		Allowance: b.cfg.Allowance, Memory: &b.memory, Gossip: b.gossip, Negotiations: s.negotiations,
	}
	if s.own >= 0 {
		s.quotes[s.own].Price = b.tariff.price // it may have changed since
	}
	if s.job.Processors <= b.cfg.Processors {
		at.HomeStart = b.cluster.EarliestFor(now, lrms.Request{Processors: s.job.Processors, Estimate: s.job.EstimateAt(b.cfg.Rating), GPUs: s.job.GPUs})
	}
	if b.traits.Literal {
		at.Memory, at.Gossip = nil, nil
	}
	return at
}

// takeHome places the job here if the schedule allows it. If not, the refusal
// stands among what was asked.
func (b *broker) takeHome(now grid.Time, p *placement, out *grid.Outbox) bool {
	award, refusal := b.reserveHome(now, p)
	said := Negotiation{Site: b.cfg.Site, Outcome: OutcomeCandidate, Refusal: refusal, Finish: award.Finish, Cost: award.Cost}
	if refusal != Granted {
		said.Outcome = OutcomeRefused
	}
	p.negotiations = append(p.negotiations, said)
	p.asks = append(p.asks, ask{site: b.cfg.Site, quote: p.own, standing: StandingOver})
	if refusal != Granted {
		return false
	}
	b.placedAt(now, p, award, out)
	return true
}

// placedAt reports success and forgets the placement.
func (b *broker) placedAt(now grid.Time, p *placement, award Award, out *grid.Outbox) {
	placed := b.slabs.placed.New()
	*placed = Placed{Job: p.job.ID, Award: award, Verdicts: b.verdicts(now, p, award.Site), Messages: p.messages}
	out.Local(placed)
	b.drop(now, p, out)
}

// refuse reports that no site has the job.
func (b *broker) refuse(now grid.Time, p *placement, why Reason, out *grid.Outbox) {
	r := &Refused{Job: p.job.ID, Why: why, Later: why != ReasonStopped && b.later(now, p), Verdicts: b.verdicts(now, p, ""), Messages: p.messages}
	r.Earliest, r.Cheapest = Earliest(r.Verdicts), Cheapest(r.Verdicts)
	r.Reason = r.describe(now, p.paging.failed)
	out.Local(r)
	b.drop(now, p, out)
}

// later reports whether all that stands in the way of a job is that the site which it
// names does not answer, or is busy.
func (b *broker) later(now grid.Time, p *placement) bool {
	if p.job.Site == "" || p.job.Site == b.cfg.Site {
		return false
	}
	if said := negotiationWith(p.job.Site, p.negotiations); said != nil {
		return said.Outcome == OutcomeUnreachable || said.Outcome == OutcomeRefused && said.Refusal == Busy
	}
	sequence := uint64(0)
	if at := slices.IndexFunc(p.quotes, func(q directory.Quote) bool { return q.Site == p.job.Site }); at >= 0 {
		sequence = p.quotes[at].Sequence
	}
	e := b.memory.find(p.job.Site)
	return e != nil && e.shunnedUntil(sequence, now) > 0
}

// stop gives a job up, and reports whether it was being placed.
func (b *broker) stop(now grid.Time, job grid.JobID, out *grid.Outbox) bool {
	p := b.placing[job]
	if p == nil {
		return false
	}
	b.refuse(now, p, ReasonStopped, out)
	return true
}

// reserveHome takes processors of this site for a job of its own.
func (b *broker) reserveHome(now grid.Time, p *placement) (Award, Refusal) {
	estimate := p.job.EstimateAt(b.cfg.Rating)
	start, err := b.cluster.Admit(now, lrms.Request{ID: p.task(), Processors: p.job.Processors, Estimate: estimate, GPUs: p.job.GPUs}, p.job.Deadline)
	if err != nil {
		return Award{}, refusalOf(err)
	}
	return Award{
		Site: b.cfg.Site, Epoch: p.epoch, Price: b.priceOf(p.job), Cost: b.cost(p.job),
		Start: start, Finish: start.Add(estimate), Until: untilHome(now, start-now, Limit(p.job, b.cfg.Rating)),
	}, Granted
}
