package market

import (
	"errors"

	"gridnode/directory"
	"gridnode/grid"
)

// stretch says which quotes a page is of. A placement fetches no page before the last one
// is used up.
type stretch uint8

const (
	front  stretch = iota // the best by the goal, whatever their load
	room                  // of those behind them, the ones that have room at this moment
	far                   // those that have room, from the other end of the order on
	behind                // those behind the front, whatever their load: they may have room in time
)

// paging is the part of a placement that fetches quotes from the directory.
type paging struct {
	query    directory.QueryID
	question directory.Query // of the query
	finding  bool            // query is under way
	asked    grid.Time       // when it was put
	failures int             // queries that failed since the last one that did not
	failed   error           // the last failure, if that was the end of it
	unsure   bool            // sites may be missing from a page
	amid     bool            // the pages began amid a tie
	turns    int             // times that a page was fetched from another place instead
	all      bool            // ask for quotes of sites too narrow, too: nobody else is there
	last     directory.Quote // of the newest page of front or behind: the next one begins behind it
}

// amidMin is how many quotes of a tie are enough: they are as good as each other, and a
// shorter page less often takes a second cell of the directory.
const amidMin = 8

// find asks the directory for the next page of quotes.
func (b *broker) find(now grid.Time, p *placement, out *grid.Outbox) {
	q := directory.Query{Attribute: directory.Speed, Descending: true, Limit: b.cfg.Page}
	if p.job.Goal == grid.GoalCost {
		q.Attribute, q.Descending = directory.Price, false
	}
	switch {
	case p.token != 0:
		q.Limit = min(previewPage, b.cfg.PreviewsMax)
	case p.selects():
		q.Filter.ProcessorsMin, q.Filter.GPUs = p.job.Processors, p.job.GPUs
	}
	if p.paging.amid && p.stretch == room {
		b.ties.move(&q, p.job.Processors)
	}
	switch p.stretch {
	case far:
		// What has room near the front has been told to every home.
		q.Descending = !q.Descending
		fallthrough
	case room:
		q.Filter.FreeMin, q.Filter.ForeignOnly = p.job.Processors, !p.job.IsModule() // which holders of quotes know nothing of
	}
	if p.paging.last.Site != "" && p.stretch != far {
		q.After = directory.Behind(&p.paging.last, q.Attribute)
	} else if p.selects() && (p.stretch == front || p.stretch == far) {
		p.paging.amid = p.paging.amid && p.stretch != front
		if t := b.ties.of(now, &q, p.job.Processors); t != nil && p.job.GPUs.Count == 0 {
			q.After, q.Limit = b.ties.begin(t, q.Descending), max(q.Limit/2, min(q.Limit, amidMin))
			p.paging.amid = p.paging.amid || p.stretch == front
		} else {
			q.Tie = min(q.Limit, amidMin)
		}
	}
	p.paging.question, p.paging.finding, p.paging.asked = q, true, now
	p.paging.query = b.dir.Find(now, q, out)
	b.queries[p.paging.query] = p
	p.wakeAt = now.Add(b.cfg.FindTimeout)
	b.watch(p)
}

// selects reports whether p wants quotes of sites that suit it only: whoever looks at
// the whole federation and whoever explains a job go through all of them.
func (p *placement) selects() bool {
	return !p.broker.traits.Whole && p.token == 0 && !p.paging.all
}

// found is the directory's answer.
func (b *broker) found(now grid.Time, in *directory.Found, out *grid.Outbox) {
	p := b.queries[in.ID]
	if p == nil {
		return // nobody waits for it any more
	}
	delete(b.queries, in.ID)
	p.paging.finding = false
	if b.cfg.Sought != nil && p.token == 0 {
		b.cfg.Sought(p.job, p.paging.asked, now, len(in.Quotes), in.Err)
	}
	b.watch(p)
	if in.Err != nil && len(in.Quotes) == 0 {
		b.notFound(now, p, in.Err, out)
		return
	}
	p.paging.failures = 0
	if p.selects() && p.paging.turns < turnsMax && b.learned(now, p, in) {
		p.paging.turns++
		b.find(now, p, out) // the same page once more, from another place on
		return
	}
	p.pages++
	p.paging.unsure = p.paging.unsure || !in.Certain
	b.turn(p, in)
	b.addQuotes(now, p, in.Quotes)
	b.advance(now, p, out)
}

// learned takes what a page from the front of an order says about ties, and reports
// whether a page from elsewhere is wanted instead.
func (b *broker) learned(now grid.Time, p *placement, in *directory.Found) bool {
	switch {
	case p.stretch != front && p.stretch != far, p.job.GPUs.Count > 0: // few sites have some
		return false
	case p.paging.question.After == nil:
		return b.ties.noticed(now, &p.paging.question, in.Quotes, in.End)
	}
	return b.ties.dissolved(&p.paging.question, in.Quotes)
}

// turn notes how far a page has come, and chooses the next stretch.
func (b *broker) turn(p *placement, in *directory.Found) {
	end := in.End || len(in.Quotes) == 0
	if p.stretch == front || p.stretch == behind {
		p.end = end
		if n := len(in.Quotes); n > 0 {
			p.paging.last = in.Quotes[n-1]
		}
		if end && p.paging.amid { // those before the place where the pages began are left
			p.end, p.paging.amid, p.paging.last = false, false, directory.Quote{}
		}
	}
	switch {
	case !p.selects():
		p.stretch = behind
	case p.stretch == front && b.cfg.Pages > 2:
		p.stretch = room
	case p.stretch == front, p.stretch == room && (p.paging.amid || !end):
		p.stretch = far
	default:
		p.stretch = behind
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
		q = directory.Quote{Site: p.job.Site, Resources: p.job.Resources, Rating: b.cfg.Rating, Widest: p.job.Processors, Foreign: true, Modules: true}
		if need := p.job.GPUs; need.Count > 0 {
			q.GPUs = grid.GPUStock{{Type: need.Type, Count: need.Count, Free: need.Count}}
		}
	}
	p.blind = !ok
	p.quotes = append(p.quotes, q)
}

// addQuotes appends a page. Home's own quote takes the place at which the directory
// lists it, or should: the published loop asks in this order.
func (b *broker) addQuotes(now grid.Time, p *placement, page []directory.Quote) {
	first := p.pages == 1 && !p.paging.all // a page has each site once
	for i := range page {
		q := &page[i]
		if checkPrice(q.Price) != nil {
			b.rejected++
			continue
		}
		if p.own < 0 && (q.Site == b.cfg.Site || b.precedes(p.job.Goal, q)) {
			b.addHome(now, p)
		}
		if q.Site != b.cfg.Site && (first || !quoted(p.quotes, q.Site)) {
			p.quotes = append(p.quotes, *q)
			p.quotes[len(p.quotes)-1].Sealed = nil // not needed, and large
		}
	}
	if p.own < 0 && (p.end || !b.traits.Whole) {
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
	p.own = len(p.quotes)
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
	p.paging.failures++
	if p.paging.failures <= failuresMax {
		p.pausing, p.wakeAt = true, now.Add(grid.Second<<(p.paging.failures-1))
		b.watch(p)
		return
	}
	p.paging.failed, p.end = err, true
	if p.own < 0 {
		b.addHome(now, p)
	}
	b.advance(now, p, out)
}

// errFindTimeout is what a query without an answer comes to.
var errFindTimeout = errors.New("the directory did not answer")
