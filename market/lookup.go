package market

import (
	"gridnode/directory"
	"gridnode/grid"
)

// view says which quotes a page is of. A placement fetches no page before the last
// one is used up.
type view uint8

const (
	front    view = iota // the best by the goal, whatever their load
	room                 // of those behind them, the ones that have room at this moment
	emptiest             // those with most free processors, wherever they stand
	behind               // those behind the front, whatever their load: they may have room in time
)

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
	case b.selects(p):
		q.Filter.ProcessorsMin = p.job.Processors
	}
	if p.amid && p.view == room {
		b.ties.move(q.Attribute, p.job.Processors)
	}
	switch p.view {
	case emptiest:
		// What is left of the goal's order has been told to every home.
		q.Attribute, q.Descending = directory.Free, true
		fallthrough
	case room:
		q.Filter.FreeMin, q.Filter.ForeignOnly = p.job.Processors, true
	}
	if p.last.Site != "" && p.view != emptiest {
		q.After = directory.Behind(&p.last, q.Attribute)
	} else if b.selects(p) && (p.view == front || p.view == emptiest) {
		p.amid = p.amid && p.view != front
		if t := b.ties.of(now, q.Attribute, p.job.Processors); t != nil {
			q.After, q.Limit = b.ties.begin(t, q.Descending), max(q.Limit/2, min(q.Limit, amidMin))
			p.amid = p.amid || p.view == front
		} else {
			q.Tie = min(q.Limit, amidMin)
		}
	}
	p.question, p.finding = q, true
	p.query = b.dir.Find(now, q, out)
	b.queries[p.query] = p
	p.wakeAt = now.Add(b.cfg.FindTimeout)
	b.watch(p)
}

// selects reports whether p wants quotes of sites that suit it only: the published
// loop and whoever explains a job go through all of them.
func (b *broker) selects(p *placement) bool {
	return b.cfg.Placement == PlacementCoordinated && p.token == 0 && !p.all
}

// found is the directory's answer.
func (b *broker) found(now grid.Time, in *directory.Found, out *grid.Outbox) {
	p := b.queries[in.ID]
	if p == nil {
		return // nobody waits for it any more
	}
	delete(b.queries, in.ID)
	p.finding = false
	b.watch(p)
	if in.Err != nil && len(in.Quotes) == 0 {
		b.notFound(now, p, in.Err, out)
		return
	}
	p.failures = 0
	if b.selects(p) && p.turns < turnsMax && b.learned(now, p, in) {
		p.turns++
		b.find(now, p, out) // the same page once more, from another place on
		return
	}
	p.pages++
	p.unsure = p.unsure || !in.Certain
	b.turn(p, in)
	b.addQuotes(now, p, in.Quotes)
	b.advance(now, p, out)
}

// learned takes what a page from the front of an order says about ties, and reports
// whether a page from elsewhere is wanted instead.
func (b *broker) learned(now grid.Time, p *placement, in *directory.Found) bool {
	switch {
	case p.view != front && p.view != emptiest:
		return false
	case p.question.After == nil:
		return b.ties.noticed(now, &p.question, in.Quotes, in.End)
	}
	return b.ties.dissolved(&p.question, in.Quotes)
}

// turn notes how far a page has come, and chooses the next view.
func (b *broker) turn(p *placement, in *directory.Found) {
	end := in.End || len(in.Quotes) == 0
	if p.view == front || p.view == behind {
		p.end = end
		if n := len(in.Quotes); n > 0 {
			p.last = in.Quotes[n-1]
		}
		if end && p.amid { // those before the place where the pages began are left
			p.end, p.amid, p.last = false, false, directory.Quote{}
		}
	}
	switch {
	case !b.selects(p):
		p.view = behind
	case p.view == front && b.cfg.Pages > 2:
		p.view = room
	case p.view == front, p.view == room && (p.amid || !end):
		p.view = emptiest
	default:
		p.view = behind
	}
}
