package market

import (
	"errors"
	"fmt"

	"gridnode/directory"
	"gridnode/grid"
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
	losses   uint32
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

// place starts a placement.
func (a *Agent) place(now grid.Time, in *Place, out *grid.Outbox) {
	if p := a.placing[in.Job.ID]; p != nil {
		panic(fmt.Sprintf("market: place job %s epoch %d while epoch %d is being placed", in.Job.ID, in.Epoch, p.epoch))
	}
	if len(a.placing) >= a.cfg.PlacementsMax {
		out.Local(&Refused{Job: in.Job.ID, Why: ReasonFull, Reason: fmt.Sprintf("this site is placing %d jobs already", len(a.placing))})
		return
	}
	p := a.newPlacement(in.Job)
	p.epoch, p.messages, p.losses = in.Epoch, in.Messages, in.Losses
	a.placing[in.Job.ID] = p
	switch {
	case p.job.Goal == grid.GoalLocal, p.job.Site == a.cfg.Site:
		p.end = true
		a.addHome(now, p)
		a.advance(now, p, out)
	case p.job.Site != "":
		p.end = true
		a.named(p)
		if in.Headed {
			p.quotes[0].Foreign = true
		}
		a.advance(now, p, out)
	case p.job.Goal == grid.GoalSpill:
		// Experiment 2: "In case a local resource is not available then online
		// scheduling is performed that considers the resources in the federation".
		a.addHome(now, p)
		at := a.circumstances(now, p)
		if v := judge(p.job, &p.quotes[0], &at); v.Outcome == OutcomeCandidate && a.takeHome(now, p, out) {
			return
		}
		a.find(now, p, out)
	default:
		a.find(now, p, out)
	}
}

// named takes the newest quote of the site that a job names. If there is none the
// site is asked all the same: the reply has its terms.
func (a *Agent) named(p *placement) {
	q, ok := a.dir.Known(p.job.Site)
	if ok && checkPrice(q.Price) != nil {
		a.Rejected++
		ok = false
	}
	if !ok {
		q = directory.Quote{Site: p.job.Site, Resources: p.job.Resources, Rating: a.cfg.Rating, Widest: p.job.Processors, Foreign: true}
	}
	p.blind = !ok
	p.quotes = append(p.quotes, q)
}

func (a *Agent) newPlacement(job *grid.Job) *placement {
	if n := len(a.spare); n > 0 {
		p := a.spare[n-1]
		a.spare = a.spare[:n-1]
		p.job = job
		return p
	}
	p := &placement{job: job}
	p.timer.Owner = p
	return p
}

// dropPlacement ends everything that p still has under way.
func (a *Agent) dropPlacement(now grid.Time, p *placement, out *grid.Outbox) {
	for i := range p.asks {
		a.giveUp(p, &p.asks[i], out)
	}
	a.stopWaiting(p)
	a.timers.Stop(&p.timer)
	if p.finding {
		delete(a.queries, p.query)
	}
	if p.token == 0 {
		delete(a.placing, p.job.ID)
	}
	clear(p.asked)
	clear(p.asks)
	fresh := placement{quotes: p.quotes[:0], asked: p.asked[:0], asks: p.asks[:0]}
	*p = fresh
	p.timer.Owner = p
	if len(a.spare) < spareMax {
		a.spare = append(a.spare, p)
	}
}

// addQuotes appends a page. Home's own quote takes the place at which the directory
// lists it, or should: the published loop asks in this order.
func (a *Agent) addQuotes(now grid.Time, p *placement, page []directory.Quote) {
	first := p.pages == 1 && !p.all // a page has each site once
	for i := range page {
		q := &page[i]
		if checkPrice(q.Price) != nil {
			a.Rejected++
			continue
		}
		if !p.home && (q.Site == a.cfg.Site || a.precedes(p.job.Goal, q)) {
			a.addHome(now, p)
		}
		if q.Site != a.cfg.Site && (first || !quoted(p.quotes, q.Site)) {
			p.quotes = append(p.quotes, *q)
			p.quotes[len(p.quotes)-1].Sealed = nil // not needed, and large
		}
	}
	if !p.home && (p.end || a.cfg.Placement == PlacementCoordinated) {
		a.addHome(now, p)
	}
}

// precedes reports whether the directory lists this site before q whatever it
// does with ties.
func (a *Agent) precedes(goal grid.Goal, q *directory.Quote) bool {
	if goal == grid.GoalCost {
		return a.cfg.Price < q.Price
	}
	return a.cfg.Speed > q.Speed
}

// addHome appends this site's own quote.
func (a *Agent) addHome(now grid.Time, p *placement) {
	p.home, p.own = true, len(p.quotes)
	p.quotes = append(p.quotes, a.Quote(now))
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
func (a *Agent) notFound(now grid.Time, p *placement, err error, out *grid.Outbox) {
	p.failures++
	if p.failures <= failuresMax {
		p.pausing, p.wakeAt = true, now.Add(grid.Second<<(p.failures-1))
		a.watch(p)
		return
	}
	p.failed, p.end = err, true
	if !p.home {
		a.addHome(now, p)
	}
	a.advance(now, p, out)
}

// errFindTimeout is what a query without an answer comes to.
var errFindTimeout = errors.New("the directory did not answer")

// due implements alarmed: a query or a negotiation took too long, or a pause is over.
func (p *placement) due(a *Agent, now grid.Time, out *grid.Outbox) {
	for i := range p.asks {
		if k := &p.asks[i]; k.state == asking && k.deadline <= now {
			a.missed(now, p, i)
		}
	}
	switch {
	case p.wakeAt > now:
	case p.finding:
		delete(a.queries, p.query)
		p.finding = false
		a.notFound(now, p, errFindTimeout, out)
		return
	case p.pausing:
		p.pausing = false
		if p.failures > 0 {
			a.find(now, p, out)
			return
		}
	}
	a.watch(p)
	a.advance(now, p, out)
}

// advance does the next thing for a job: it asks, waits, places or refuses.
func (a *Agent) advance(now grid.Time, p *placement, out *grid.Outbox) {
	switch {
	case p.finding || p.pausing:
	case p.token != 0:
		a.previewed(now, p, out)
	case a.cfg.Placement == PlacementPaper:
		a.advancePaper(now, p, out)
	default:
		a.advanceCoordinated(now, p, out)
	}
}

// circumstances returns what a ranking for p depends on.
func (a *Agent) circumstances(now grid.Time, p *placement) Circumstances {
	at := Circumstances{
		Now: now, Home: a.cfg.Site, HomeStart: grid.Never, Placement: a.cfg.Placement,
		Allowance: a.cfg.Allowance, Memory: &a.memory, Gossip: a.gossip, Asked: p.asked,
	}
	if p.home {
		p.quotes[p.own].Price = a.cfg.Price // it may have changed since
	}
	if p.job.Processors <= a.cfg.Processors {
		at.HomeStart = a.cluster.EarliestStart(now, p.job.Processors, p.job.EstimateAt(a.cfg.Rating))
	}
	if a.cfg.Placement == PlacementPaper {
		at.Memory, at.Gossip = nil, nil // the published loop knows nothing but quotes
	}
	return at
}

// verdicts explains p for users. The site that has the job is marked as chosen
// even if another one was preferred.
func (a *Agent) verdicts(now grid.Time, p *placement, chosen grid.SiteID) []Verdict {
	if a.cfg.Quiet && p.token == 0 {
		return nil
	}
	at := a.circumstances(now, p)
	a.ranking.rank(p.job, p.quotes, &at)
	verdicts := a.ranking.explain(p.job, now)
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
func (a *Agent) takeHome(now grid.Time, p *placement, out *grid.Outbox) bool {
	award, refusal := a.reserveHome(now, p)
	asked := Asked{Site: a.cfg.Site, Outcome: OutcomeCandidate, Refusal: refusal, Finish: award.Finish, Cost: award.Cost}
	if refusal != Granted {
		asked.Outcome = OutcomeRefused
	}
	p.asked = append(p.asked, asked)
	p.asks = append(p.asks, ask{site: a.cfg.Site, state: over})
	if refusal != Granted {
		return false
	}
	a.placedAt(now, p, award, out)
	return true
}

// placedAt reports success and forgets the placement.
func (a *Agent) placedAt(now grid.Time, p *placement, award Award, out *grid.Outbox) {
	placed := a.slabs.placed.New()
	*placed = Placed{Job: p.job.ID, Award: award, Verdicts: a.verdicts(now, p, award.Site), Messages: p.messages}
	out.Local(placed)
	a.dropPlacement(now, p, out)
}

// refuse reports that no site has the job.
func (a *Agent) refuse(now grid.Time, p *placement, why Reason, out *grid.Outbox) {
	r := &Refused{Job: p.job.ID, Why: why, Verdicts: a.verdicts(now, p, ""), Messages: p.messages}
	r.Earliest, r.Cheapest = Earliest(r.Verdicts), Cheapest(r.Verdicts)
	r.Reason = r.describe(now, p.failed)
	out.Local(r)
	a.dropPlacement(now, p, out)
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

// stop gives a job up.
func (a *Agent) stop(now grid.Time, in *Stop, out *grid.Outbox) {
	if p := a.placing[in.Job]; p != nil {
		a.refuse(now, p, ReasonStopped, out)
		return
	}
	if m := a.migrated[in.Job]; m != nil {
		a.cancelMigrated(now, m, in.Cause, out)
	}
}
