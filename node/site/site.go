package site

import (
	"fmt"

	"gridnode/grid"
)

// Site is one site: its parts, and who takes which input. Not safe for concurrent use.
type Site struct {
	// What nearly every step reads comes first, in a few cache lines that follow each other:
	// in a large federation nothing of a site is in the processor's cache.
	unsettled bool      // an input changed something that only a Tick acts on
	touched   bool      // an input was not private to one part
	moved     calms     // those of calm that may need it at another time than they have said
	due       grid.Time // when one of rest needs a Tick; of no use while touched
	soon      grid.Time // when one of calm needs a Tick; of no use while unsettled
	stale     grid.Time // until when what the tellers said stays true; of no use while touched
	calm      []calmPart
	calmList  [4]calmPart // what calm is in

	membership *membership // nil: the federation is open
	siblings   *siblings
	quotes     *quotes
	latencies  *latencies
	names      *names

	base

	// Those of the parts that are there, with those above; nil otherwise. Nobody but the board
	// and whoever reads looks at them here: parts know those that they have to do with.
	recovery  *recovery
	jobs      *jobs
	placing   *placing
	leased    *leased
	loans     *loans
	pilots    *pilots
	links     *links
	payment   *payment
	fees      *fees
	borrowing *borrowing
	spreads   *spreads
	inputs    *inputs
	gangs     *gangs
	limbo     *limbo
	packing   *packing
	room      *room

	guests    *guests    // nil: nothing of others is taken, or whatever comes
	chronicle *chronicle // nil: no job log is kept

	tickers   []ticker // in the order of their ticks
	rest      []ticker // the others
	starters  []starter
	tellers   []teller
	recorders []recorder // in the order in which they take up what was stored

	lists struct { // what those lists are in: every Tick walks them, so they are kept beside what it looks at
		tickers  [18]ticker
		rest     [14]ticker
		starters [2]starter
		tellers  [2]teller
	}
}

// New returns a site that has no jobs. seed determines every random choice. The error
// says what is wrong with cfg.
func New(cfg Config, seed uint64) (*Site, error) {
	cfg = cfg.filled()
	s := &Site{base: base{cfg: cfg}, unsettled: true, touched: true}
	parts, err := cfg.parts()
	if err == nil {
		err = builder{s, parts, seed}.build()
	}
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	return s, nil
}

// Step applies one input at time now and appends the effects to out. Jobs are
// started by grid.Tick only, so that everything that happens at one instant is
// known when the scheduler decides.
func (s *Site) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	before := len(out.Locals)
	s.apply(now, in, out)
	s.feed(now, before, out)
}

// feed applies what the cores of this site have told each other, but for what stood in
// the outbox before.
func (s *Site) feed(now grid.Time, before int, out *grid.Outbox) {
	if len(out.Locals) > before {
		out.Feed(before, func(in grid.Input) { s.apply(now, in, out) })
	}
}

// apply gives an input to the part that takes it.
func (s *Site) apply(now grid.Time, in grid.Input, out *grid.Outbox) {
	s.unsettled = true
	if _, ok := in.(grid.Tick); ok {
		s.tick(now, out)
		return
	}
	h := switchboard.find(in)
	if d, ok := in.(*grid.Delivery); ok {
		if s.membership != nil {
			if !s.membership.hears(now, d) {
				return
			}
			if in = s.membership.vet(now, d, out); in == nil {
				s.touched = true
				return
			}
		}
		if s.siblings != nil {
			s.siblings.circle.Alive(now, d.From)
			s.moved |= calmSiblings
		}
	}
	if h == nil {
		s.touched = true
		return // a message that no site of ours speaks of
	}
	s.touched = s.touched || h.private == 0
	s.moved |= h.private
	if !h.do(s, now, in, out) {
		s.absent(in, out)
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
// It is in the past while something waits for a Tick of the present instant.
func (s *Site) NextTimer() grid.Time {
	if s.unsettled {
		return 0
	}
	return min(s.due, s.soon)
}

// tick does what is due and starts what can start. If since the last whole Tick nothing
// has happened but what is private to single parts, and nothing else is due, those parts
// have their ticks and that is all.
func (s *Site) tick(now grid.Time, out *grid.Outbox) {
	if !s.touched && now < s.due && now < s.stale {
		if s.unsettled = false; s.calmed() > now {
			return
		}
		for i := range s.calm {
			if p := &s.calm[i]; p.next <= now {
				p.tick(now, out)
				s.moved |= p.bit
			}
		}
		s.calmed()
		return
	}
	for _, p := range s.tickers {
		p.tick(now, out)
	}
	for _, p := range s.starters {
		p.startTasks(now, out)
	}
	for _, p := range s.tellers {
		p.tell(now, out)
	}
	s.due, s.stale = grid.Never, grid.Never
	for _, p := range s.rest {
		s.due = min(s.due, p.nextTimer())
	}
	for _, p := range s.tellers {
		s.stale = min(s.stale, p.stale())
	}
	s.moved = calmAll
	s.calmed()
	s.unsettled, s.touched = false, false // unless the parts told one another something: that comes next
}

// calmed notes, and returns, when one of calm needs a Tick. Nothing but an input, after
// which a Tick comes, can change that; of a part that no input concerned nothing is read,
// as it is in no cache any more.
func (s *Site) calmed() grid.Time {
	s.soon = grid.Never
	for i := range s.calm {
		p := &s.calm[i]
		if s.moved&p.bit != 0 {
			p.next = p.nextTimer()
		}
		s.soon = min(s.soon, p.next)
	}
	s.moved = 0
	return s.soon
}
