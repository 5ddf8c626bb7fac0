package market

import (
	"gridnode/directory"
	"gridnode/grid"
)

// step says how a placement goes on.
type step uint8

const (
	wait  step = iota // for an answer, or it is done
	again             // something changed: rank anew
)

// advanceCoordinated places a job with as few messages as it can: it asks the best
// candidates of a ranking, at most Config.Parallel at a time, and awards the job
// to the first guarantee that no better candidate can still beat.
func (b *broker) advanceCoordinated(now grid.Time, p *placement, out *grid.Outbox) {
	for {
		at := b.circumstances(now, p)
		b.ranking.rank(p.job, p.quotes, &at)
		if b.pursue(now, p, out) == wait {
			return
		}
	}
}

// pursue walks down the ranking and does the first thing there is to do.
func (b *broker) pursue(now grid.Time, p *placement, out *grid.Outbox) step {
	outstanding := p.outstanding()
	better := false // somebody better than what follows has not answered yet
	passed := false // somebody without room at the moment was passed over
	for position := 0; ; position++ {
		o := b.ranking.at(position)
		if o == nil || !o.fits {
			break
		}
		site := p.quotes[o.index].Site
		i := p.find(site)
		switch {
		case p.waiting != nil && p.waiting.site == site, i >= 0 && p.asks[i].state == asking:
			better = true
		case i >= 0 && p.asks[i].state == granted:
			if !better {
				b.award(now, p, &p.asks[i], out)
			}
			return wait
		case o.home:
			if better || !b.takeHome(now, p, out) {
				return waitIf(better)
			}
			return wait
		case b.goodEnough(now, p, o.finish) >= 0 && !better:
			b.award(now, p, &p.asks[b.goodEnough(now, p, o.finish)], out)
			return wait
		case p.number >= b.cfg.Asks:
			continue
		case !p.patient && p.hopes >= b.cfg.Hopes && b.waits(now, p, o):
			passed = true
		case outstanding >= b.cfg.Parallel || p.waiting != nil:
			return wait
		default:
			if b.waits(now, p, o) {
				p.hopes++
			}
			b.negotiate(now, p, b.draw(now, p, position), out)
			return waitIf(outstanding+1 >= b.cfg.Parallel)
		}
	}
	if outstanding > 0 {
		return wait
	}
	if passed && (p.end || p.view == behind || p.pages >= b.cfg.Pages) {
		p.patient = true
		return again
	}
	return b.exhausted(now, p, out)
}

// waits reports whether a job would have to wait at a site, as far as one knows: its
// guarantee is a matter of hope. Each costs two messages, and one in eight was given
// where the cheapest sites were full.
func (b *broker) waits(now grid.Time, p *placement, o *ranked) bool {
	return o.finish > now.Add(p.job.EstimateAt(p.quotes[o.index].Rating))
}

func waitIf(yes bool) step {
	if yes {
		return wait
	}
	return again
}

// chaseDivisor: an unasked site is asked in spite of a guarantee only if it could
// finish earlier by more than a tenth; less is within the error of an estimate.
const chaseDivisor = 10

// goodEnough returns a guarantee that is not worth trying to beat with a candidate
// that is estimated to finish at finish, or -1. Only the finish of a guarantee can
// differ from what the ranking expected, so only GoalTime has something to chase.
func (b *broker) goodEnough(now grid.Time, p *placement, finish grid.Time) int {
	if p.job.Goal != grid.GoalTime {
		return -1
	}
	span := finish - now
	for i := range p.asks {
		k := &p.asks[i]
		if k.state == granted && (k.finish-now <= span+span/chaseDivisor || k.expires <= now.Add(b.cfg.ReplyTimeout)) {
			return i
		}
	}
	return -1
}

// asExpected reports whether a guarantee may be taken up without ranking anew: it
// was the best when it was asked for, nobody else was asked, and it finishes about
// when it was expected to.
func (b *broker) asExpected(now grid.Time, p *placement, k *ask) bool {
	if k.state != granted || p.pausing || len(p.asks) > 1 || p.loaded > 0 {
		return false
	}
	expected := k.expected - now
	return p.job.Goal != grid.GoalTime || k.finish-now <= expected+expected/chaseDivisor
}

// nearDivisor: finishes that differ by less than a 64th are equally good. Quotes
// are older than that.
const nearDivisor = 64

// nearMax bounds Config.Near.
const nearMax = 16

// draw picks one of the up to Config.Near equally good candidates from position
// on, so that homes that see the same quotes do not all run to the same site.
// The cost of equally good ones is the same; only finishes may differ a little.
func (b *broker) draw(now grid.Time, p *placement, position int) int {
	var near [nearMax]int32
	first := *b.ranking.at(position)
	latest := first.finish + (first.finish-now)/nearDivisor
	n := 0
	for most := min(b.cfg.Near, nearMax); n < most; position++ {
		o := b.ranking.at(position)
		if o == nil || !o.fits || o.finish > latest || p.job.Goal != grid.GoalTime && o.key != first.key {
			break
		}
		if o.cost <= first.cost && !o.home && p.find(p.quotes[o.index].Site) < 0 {
			near[n] = o.index
			n++
		}
	}
	if n <= 1 {
		return int(first.index)
	}
	return int(near[b.rng.IntN(n)])
}

// exhausted: nobody on the pages so far will have the job.
func (b *broker) exhausted(now grid.Time, p *placement, out *grid.Outbox) step {
	switch {
	case !p.end && p.pages < b.cfg.Pages:
		b.find(now, p, out)
		return wait
	case p.loaded < loadedMax && p.number < b.cfg.Asks:
		if i := b.leastLoaded(p); i >= 0 {
			p.loaded++
			b.negotiate(now, p, i, out)
			return wait
		}
	}
	if !p.all && p.pages > 0 && len(p.quotes) <= 1 && p.failed == nil && !b.cfg.Quiet {
		// Everybody is too narrow: name them, so that the user sees it.
		p.all, p.view, p.end, p.last, p.pages = true, front, false, directory.Quote{}, 0
		b.find(now, p, out)
		return wait
	}
	why := ReasonNoSite
	if p.failed != nil {
		why = ReasonNoAnswer
	}
	b.refuse(now, p, why, out)
	return wait
}

// leastLoaded returns the quote of the site that would be done first among those
// that only seem too late because of what waits there, or -1. The wait is an
// estimate; the site itself knows better.
func (b *broker) leastLoaded(p *placement) int {
	best := -1
	var finish grid.Time
	for _, o := range b.ranking.order { // the whole of it was read
		v := &b.ranking.verdicts[o.index]
		if v.Outcome == OutcomeLoaded && !o.home && p.find(v.Site) < 0 && (best < 0 || v.Finish < finish) {
			best, finish = int(o.index), v.Finish
		}
	}
	return best
}
