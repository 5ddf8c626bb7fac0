package market

import (
	"errors"
	"fmt"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// placement is a job on its way to a site, or one that only wants to know
// (Preview). It is used again for another job when it is done.
type placement struct {
	timer grid.Alarm[alarmed]
	job   *grid.Job
	epoch uint32
	token uint64 // of a Preview; 0 for a real placement

	query    directory.QueryID
	question directory.Query // of the query
	finding  bool            // query is under way
	failures int             // queries that failed since the last one that did not
	failed   error           // the last failure, if that was the end of it
	unsure   bool            // sites may be missing from a page
	view     view            // of the page under way, or of the next one
	pages    int             // fetched
	end      bool            // the directory has no more quotes
	amid     bool            // the pages began amid a tie
	turns    int             // times that a page was fetched from another place instead
	home     bool            // home's quote stands among quotes
	own      int             // there
	all      bool            // ask for quotes of sites too narrow, too: nobody else is there
	last     directory.Quote // of the newest page of front or behind: the next one begins behind it
	quotes   []directory.Quote

	asked   []Asked   // what came of asking, for Rank
	asks    []ask     // the same sites, for the protocol
	number  int       // of negotiations sent
	hopes   int       // of them, to sites that had no room for it at the moment
	loaded  int       // of them, to sites that seemed too loaded
	patient bool      // nobody else is left who has room: the others are asked, too
	rounds  int       // times that it waited for a busy site
	pausing bool      // waits for a busy site, or for the directory to come back
	wakeAt  grid.Time // when the query under way or the pause ends
	blind   bool      // no quote is known of the site that the job names
	waiting *memory   // site whose turn it waits for, if any

	next     int // PlacementPaper: quote to look at next, r − 1
	feasible int // PlacementPaper: quotes before this one may be asked

	messages int32
	losses   uint32 // of executions of the job, so far
}

// Bounds of one placement besides those of Config.
const (
	failuresMax = 3                     // directory queries repeated
	turnsMax    = 3                     // and begun at another place
	loadedMax   = 2                     // sites asked although they seem too loaded: a wrong guess must not cost the job
	roundsMax   = 4                     // times that a job waits for a site that is busy at the moment
	roundsPaid  = 8                     // the same if cheques are awaited while holds are held
	roundPause  = 50 * grid.Millisecond // the first time; then doubled: holds last as long as a submission takes
	previewPage = 64                    // quotes per query of a Preview
	spareMax    = 1024                  // placements kept for later use
)

// broker is the side of a home that looks for sites: it owns the placements, their
// queries and their negotiations.
type broker struct {
	*office
	away *away // takes over what is placed elsewhere

	placing  map[grid.JobID]*placement
	queries  map[directory.QueryID]*placement
	requests uint64       // of the newest negotiation
	spare    []*placement // used placements, ready for the next job
	ranking  ranking      // scratch
	ties     ties         // at the fronts of the directory's orders
	rejected int64        // quotes whose price is none: not positive, or too large
}

func newBroker(o *office, w *away) broker {
	return broker{
		office: o, away: w, placing: make(map[grid.JobID]*placement), queries: make(map[directory.QueryID]*placement),
		ties: ties{rng: o.rng, dir: o.dir},
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
			p.quotes[0].Foreign = true
		}
		b.advance(now, p, out)
	case p.job.Goal == grid.GoalSpill:
		// Experiment 2: "In case a local resource is not available then online
		// scheduling is performed that considers the resources in the federation".
		b.addHome(now, p)
		at := b.circumstances(now, p)
		if v := judge(p.job, &p.quotes[0], &at); v.Outcome == OutcomeCandidate && b.takeHome(now, p, out) {
			return
		}
		b.find(now, p, out)
	default:
		b.find(now, p, out)
	}
}

// named takes the newest quote of the site that a job names. If there is none the
// site is asked all the same: the reply has its terms.
func (b *broker) named(p *placement) {
	q, ok := b.dir.Known(p.job.Site)
	if ok && checkPrice(q.Price) != nil {
		b.rejected++
		ok = false
	}
	if !ok {
		q = directory.Quote{Site: p.job.Site, Resources: p.job.Resources, Rating: b.cfg.Rating, Widest: p.job.Processors, Foreign: true}
	}
	p.blind = !ok
	p.quotes = append(p.quotes, q)
}

func (b *broker) newPlacement(job *grid.Job) *placement {
	if n := len(b.spare); n > 0 {
		p := b.spare[n-1]
		b.spare = b.spare[:n-1]
		p.job = job
		return p
	}
	p := &placement{job: job}
	p.timer.Owner = p
	return p
}

// dropPlacement ends everything that p still has under way.
func (b *broker) dropPlacement(now grid.Time, p *placement, out *grid.Outbox) {
	for i := range p.asks {
		b.giveUp(p, &p.asks[i], out)
	}
	b.stopWaiting(p)
	b.timers.Stop(&p.timer)
	if p.finding {
		delete(b.queries, p.query)
	}
	if p.token == 0 {
		delete(b.placing, p.job.ID)
	}
	clear(p.asked)
	clear(p.asks)
	fresh := placement{quotes: p.quotes[:0], asked: p.asked[:0], asks: p.asks[:0]}
	*p = fresh
	p.timer.Owner = p
	if len(b.spare) < spareMax {
		b.spare = append(b.spare, p)
	}
}

// addQuotes appends a page. Home's own quote takes the place at which the directory
// lists it, or should: the published loop asks in this order.
func (b *broker) addQuotes(now grid.Time, p *placement, page []directory.Quote) {
	first := p.pages == 1 && !p.all // a page has each site once
	for i := range page {
		q := &page[i]
		if checkPrice(q.Price) != nil {
			b.rejected++
			continue
		}
		if !p.home && (q.Site == b.cfg.Site || b.precedes(p.job.Goal, q)) {
			b.addHome(now, p)
		}
		if q.Site != b.cfg.Site && (first || !quoted(p.quotes, q.Site)) {
			p.quotes = append(p.quotes, *q)
			p.quotes[len(p.quotes)-1].Sealed = nil // not needed, and large
		}
	}
	if !p.home && (p.end || b.cfg.Placement == PlacementCoordinated) {
		b.addHome(now, p)
	}
}

// precedes reports whether the directory lists this site before q whatever it
// does with ties.
func (b *broker) precedes(goal grid.Goal, q *directory.Quote) bool {
	if goal == grid.GoalCost {
		return b.tariff.price < q.Price
	}
	return b.cfg.Speed > q.Speed
}

// addHome appends this site's own quote.
func (b *broker) addHome(now grid.Time, p *placement) {
	p.home, p.own = true, len(p.quotes)
	p.quotes = append(p.quotes, b.quote(now))
}

// quoted reports whether a site stands among quotes: between two pages it may
// have changed its place, and a job that is explained begins again.
func quoted(quotes []directory.Quote, site grid.SiteID) bool {
	for i := range quotes {
		if quotes[i].Site == site {
			return true
		}
	}
	return false
}

// notFound repeats a failed query a few times, then goes on with what is known.
func (b *broker) notFound(now grid.Time, p *placement, err error, out *grid.Outbox) {
	p.failures++
	if p.failures <= failuresMax {
		p.pausing, p.wakeAt = true, now.Add(grid.Second<<(p.failures-1))
		b.watch(p)
		return
	}
	p.failed, p.end = err, true
	if !p.home {
		b.addHome(now, p)
	}
	b.advance(now, p, out)
}

// errFindTimeout is what a query without an answer comes to.
var errFindTimeout = errors.New("the directory did not answer")

// due implements alarmed: a query or a negotiation took too long, or a pause is over.
func (p *placement) due(a *Agent, now grid.Time, out *grid.Outbox) {
	b := &a.broker
	for i := range p.asks {
		if k := &p.asks[i]; k.state == asking && k.deadline <= now {
			b.missed(now, p, i)
		}
	}
	switch {
	case p.wakeAt > now:
	case p.finding:
		delete(b.queries, p.query)
		p.finding = false
		b.notFound(now, p, errFindTimeout, out)
		return
	case p.pausing:
		p.pausing = false
		if p.failures > 0 {
			b.find(now, p, out)
			return
		}
	}
	b.watch(p)
	b.advance(now, p, out)
}

// advance does the next thing for a job: it asks, waits, places or refuses.
func (b *broker) advance(now grid.Time, p *placement, out *grid.Outbox) {
	switch {
	case p.finding || p.pausing:
	case p.token != 0:
		b.previewed(now, p, out)
	case b.cfg.Placement == PlacementPaper:
		b.advancePaper(now, p, out)
	default:
		b.advanceCoordinated(now, p, out)
	}
}

// circumstances returns what a ranking for p depends on.
func (b *broker) circumstances(now grid.Time, p *placement) Circumstances {
	at := Circumstances{
		Now: now, Home: b.cfg.Site, HomeStart: grid.Never, Placement: b.cfg.Placement,
		Allowance: b.cfg.Allowance, Memory: &b.memory, Gossip: b.gossip, Asked: p.asked,
	}
	if p.home {
		p.quotes[p.own].Price = b.tariff.price // it may have changed since
	}
	if p.job.Processors <= b.cfg.Processors {
		at.HomeStart = b.cluster.EarliestStart(now, p.job.Processors, p.job.EstimateAt(b.cfg.Rating))
	}
	if b.cfg.Placement == PlacementPaper {
		at.Memory, at.Gossip = nil, nil // the published loop knows nothing but quotes
	}
	return at
}

// verdicts explains p for users. The site that has the job is marked as chosen
// even if another one was preferred.
func (b *broker) verdicts(now grid.Time, p *placement, chosen grid.SiteID) []Verdict {
	if b.cfg.Quiet && p.token == 0 {
		return nil
	}
	at := b.circumstances(now, p)
	b.ranking.rank(p.job, p.quotes, &at)
	verdicts := b.ranking.explain(p.job, now)
	for i := range verdicts {
		switch v := &verdicts[i]; {
		case chosen == "":
		case v.Site == chosen:
			v.Outcome, v.Refusal = OutcomeChosen, 0
			v.Detail = v.detail(p.job, nil, now)
		case v.Outcome == OutcomeChosen:
			v.Outcome = OutcomeCandidate
		}
	}
	return verdicts
}

// takeHome places the job here if the schedule allows it. If not, the refusal
// stands among what was asked.
func (b *broker) takeHome(now grid.Time, p *placement, out *grid.Outbox) bool {
	award, refusal := b.reserveHome(now, p)
	asked := Asked{Site: b.cfg.Site, Outcome: OutcomeCandidate, Refusal: refusal, Finish: award.Finish, Cost: award.Cost}
	if refusal != Granted {
		asked.Outcome = OutcomeRefused
	}
	p.asked = append(p.asked, asked)
	p.asks = append(p.asks, ask{site: b.cfg.Site, state: over})
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
	b.dropPlacement(now, p, out)
}

// refuse reports that no site has the job.
func (b *broker) refuse(now grid.Time, p *placement, why Reason, out *grid.Outbox) {
	r := &Refused{Job: p.job.ID, Why: why, Verdicts: b.verdicts(now, p, ""), Messages: p.messages}
	r.Earliest, r.Cheapest = Earliest(r.Verdicts), Cheapest(r.Verdicts)
	r.Reason = r.describe(now, p.failed)
	out.Local(r)
	b.dropPlacement(now, p, out)
}

// describe puts the refusal into words.
func (r *Refused) describe(now grid.Time, failed error) string {
	switch r.Why {
	case ReasonStopped:
		return "stopped while it was being placed"
	case ReasonNoAnswer:
		return fmt.Sprintf("%v, and this site cannot run it", failed)
	}
	text := "no site would have it"
	if n := len(r.Verdicts); n > 1 {
		text = fmt.Sprintf("none of %d sites would have it", n)
	}
	if r.Earliest.Site == "" {
		return text
	}
	text += fmt.Sprintf("; earliest: done in %v for %v credits at %s", span(r.Earliest.Finish-now), r.Earliest.Cost, r.Earliest)
	if r.Cheapest.Site != r.Earliest.Site {
		text += fmt.Sprintf("; cheapest: %v credits, done in %v at %s", r.Cheapest.Cost, span(r.Cheapest.Finish-now), r.Cheapest)
	}
	return text
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
	start, err := b.cluster.Admit(now, lrms.Request{ID: p.task(), Processors: p.job.Processors, Estimate: estimate}, p.job.Deadline)
	if err != nil {
		return Award{}, refusalOf(err)
	}
	return Award{
		Site: b.cfg.Site, Epoch: p.epoch, Price: b.tariff.price, Cost: b.cost(p.job),
		Start: start, Finish: start.Add(estimate), Until: untilHome(now, start-now, Limit(p.job, b.cfg.Rating)),
	}, Granted
}
