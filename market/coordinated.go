package market

import "gridnode/grid"

// coordinated places a job with as few messages as it can: it asks the best
// candidates of a ranking, at most Config.Parallel at a time, and awards the job
// to the first guarantee that no better candidate can still beat.
type coordinated struct{}

// Marks of coordinated.
const (
	coordinatedHopes   = iota // sites asked that had no room for the job at the moment
	coordinatedLoaded         // sites asked that seemed too loaded
	coordinatedPatient        // 1: nobody else is left who has room: the others are asked, too
)

// loadedMax is how many sites are asked although they seem too loaded: a wrong guess
// must not cost the job.
const loadedMax = 2

// Traits implements Policy.
func (coordinated) Traits() Traits { return Traits{} }

// Key implements Policy: GoalCost wants the "minimum possible cost within the
// deadline", GoalTime the "minimum possible response time within the budget limit"
// (Grid-Federation §2.2).
func (coordinated) Key(c Candidate) int64 {
	switch c.Job.Goal {
	case grid.GoalCost:
		return int64(c.Verdict.Cost)
	case grid.GoalTime:
		return int64(c.Verdict.Finish)
	}
	return homeFirst(c)
}

// Next implements Policy: it walks down the ranking and does the first thing there is
// to do.
func (l coordinated) Next(s *Search) Move {
	if l.asExpected(s) {
		return s.award(0)
	}
	m, passed := l.walk(s)
	if m.Act == 0 && passed && (s.end || s.stretch == behind || s.pages >= s.limits().Pages) {
		s.Marks[coordinatedPatient] = 1
		m, _ = l.walk(s)
	}
	if m.Act == 0 {
		return l.exhausted(s)
	}
	return m
}

// walk returns the first thing there is to do, none if nobody in the ranking is left.
// passed says that somebody without room at the moment was passed over.
func (l coordinated) walk(s *Search) (m Move, passed bool) {
	cfg, r, outstanding := s.limits(), s.rank(), s.outstanding()
	better := false // somebody better than what follows has not answered yet
	for position := 0; ; position++ {
		o := r.at(position)
		if o == nil || !o.fits {
			break
		}
		quote := int(o.index)
		switch standing := s.Standing(quote); {
		case standing == StandingQueued, standing == StandingAsked:
			better = true
		case better && (standing == StandingGranted || o.home):
			return Move{Act: ActWait}, false
		case standing == StandingGranted:
			return Move{Act: ActAward, Quote: quote}, false
		case o.home:
			return Move{Act: ActAsk, Quote: quote}, false
		case !better && l.goodEnough(s, o.finish) >= 0:
			return s.award(l.goodEnough(s, o.finish)), false
		case s.sent >= cfg.Asks:
			continue
		case s.Marks[coordinatedPatient] == 0 && s.Marks[coordinatedHopes] >= int64(cfg.Hopes) && l.waits(s, o):
			passed = true
		case outstanding >= cfg.Parallel || s.waiting != nil:
			return Move{Act: ActWait}, false
		default:
			if l.waits(s, o) {
				s.Marks[coordinatedHopes]++
			}
			return Move{Act: ActAsk, Quote: l.draw(s, position), Again: outstanding+1 < cfg.Parallel}, false
		}
	}
	if outstanding > 0 {
		return Move{Act: ActWait}, false
	}
	return Move{}, passed
}

// waits reports whether a job would have to wait at a site, as far as one knows: its
// guarantee is a matter of hope. Each costs two messages, and one in eight was given
// where the cheapest sites were full.
func (coordinated) waits(s *Search, o *ranked) bool {
	return o.finish > s.now.Add(s.job.SeenFrom(s.quotes[o.index].Site).EstimateAt(s.quotes[o.index].Rating))
}

// chaseDivisor: an unasked site is asked in spite of a guarantee only if it could
// finish earlier by more than a tenth; less is within the error of an estimate.
const chaseDivisor = 10

// goodEnough returns a guarantee that is not worth trying to beat with a candidate
// that is estimated to finish at finish, or -1. Only the finish of a guarantee can
// differ from what the ranking expected, so only GoalTime has something to chase.
func (coordinated) goodEnough(s *Search, finish grid.Time) int {
	if s.job.Goal != grid.GoalTime {
		return -1
	}
	span, replied := finish-s.now, s.now.Add(s.limits().ReplyTimeout)
	for i := range s.asks {
		k := &s.asks[i]
		if k.standing == StandingGranted && (k.finish-s.now <= span+span/chaseDivisor || k.expires <= replied) {
			return i
		}
	}
	return -1
}

// asExpected reports whether a guarantee may be taken up without ranking anew: it
// was the best when it was asked for, nobody else was asked, and it finishes about
// when it was expected to.
func (coordinated) asExpected(s *Search) bool {
	if len(s.asks) != 1 || s.asks[0].standing != StandingGranted || s.Marks[coordinatedLoaded] > 0 {
		return false
	}
	k := &s.asks[0]
	expected := k.expected - s.now
	return s.job.Goal != grid.GoalTime || k.finish-s.now <= expected+expected/chaseDivisor
}

// nearDivisor: finishes that differ by less than a 64th are equally good. Quotes
// are older than that.
const nearDivisor = 64

// nearMax bounds Config.Near.
const nearMax = 16

// draw picks one of the up to Config.Near equally good candidates from position
// on, so that homes that see the same quotes do not all run to the same site.
// The cost of equally good ones is the same; only finishes may differ a little.
func (coordinated) draw(s *Search, position int) int {
	var near [nearMax]int32
	first := *s.ranking.at(position)
	latest := first.finish + (first.finish-s.now)/nearDivisor
	n := 0
	for most := min(s.limits().Near, nearMax); n < most; position++ {
		o := s.ranking.at(position)
		if o == nil || !o.fits || o.finish > latest || s.job.Goal != grid.GoalTime && o.key != first.key {
			break
		}
		if o.cost <= first.cost && !o.home && s.find(s.quotes[o.index].Site) < 0 {
			near[n] = o.index
			n++
		}
	}
	if n <= 1 {
		return int(first.index)
	}
	return int(near[s.Draw(n)])
}

// exhausted: nobody on the pages so far will have the job.
func (l coordinated) exhausted(s *Search) Move {
	cfg := s.limits()
	switch {
	case !s.end && s.pages < cfg.Pages:
		return Move{Act: ActPage}
	case s.Marks[coordinatedLoaded] < loadedMax && s.sent < cfg.Asks:
		if i := l.leastLoaded(s); i >= 0 {
			s.Marks[coordinatedLoaded]++
			return Move{Act: ActAsk, Quote: i}
		}
	}
	return Move{Act: ActRefuse}
}

// leastLoaded returns the quote of the site that would be done first among those
// that only seem too late because of what waits there, or -1. The wait is an
// estimate; the site itself knows better.
func (coordinated) leastLoaded(s *Search) int {
	best := -1
	var finish grid.Time
	for _, o := range s.ranking.order { // the whole of it was read
		v := &s.ranking.verdicts[o.index]
		if v.Outcome == OutcomeLoaded && !o.home && s.find(v.Site) < 0 && (best < 0 || v.Finish < finish) {
			best, finish = int(o.index), v.Finish
		}
	}
	return best
}
