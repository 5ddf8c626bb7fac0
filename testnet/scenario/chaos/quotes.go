package chaos

import (
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// quoteWatch looks at what the directory says:
//
//   - no page has a quote that has run out by its holder's clock (D-1);
//   - a site that is up and offers has a quote that has not run out, and the numbers of its
//     quotes rise, across restarts, too (D-2, D-3);
//   - nothing is placed on what it says alone: who gets a job has guaranteed it for that price to its
//     home, and who has lent processors has granted them (D-4).
type quoteWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	turns  int
	last   map[int]uint64 // number of each site's latest quote
	set    map[int]bool   // sites whose clocks have jumped

	promised map[promise]grid.Credits // guarantees: for how much
	granted  map[grant]bool
}

// promise is a guarantee of a site.
type promise struct {
	task grid.TaskID
	site grid.SiteID
	home grid.SiteID
}

// grant is one of a lender.
type grant struct {
	id     lease.ID
	lender grid.SiteID
}

// The bounds of a quoteWatch.
const (
	quoteTurns = 8           // it looks at one turn of so many
	quoteLate  = grid.Second // a quote that was to be renewed is by then
)

func watchQuotes(n *testnet.Network, c *testnet.Checker) *quoteWatch {
	w := &quoteWatch{n: n, checks: c, last: make(map[int]uint64), set: make(map[int]bool), promised: make(map[promise]grid.Credits), granted: make(map[grant]bool)}
	n.Observe(testnet.Observer{Turn: w.turn, Send: w.send, Step: w.step, Event: w.placed, Start: w.start})
	return w
}

// placed checks that a job goes where it was guaranteed, for what was said then.
func (w *quoteWatch) placed(_ grid.Time, at int, e *grid.Event) {
	home := w.n.ID(at)
	if e.Kind != grid.JobPlaced || e.Site == home || e.Job.Coallocate != nil || e.Job.Spread {
		return
	}
	if cost, there := w.promised[promise{grid.TaskID{Job: e.Job.ID, Epoch: e.Epoch}, e.Site, home}]; !there || e.Cost != cost {
		w.checks.Violated("job %s is placed with epoch %d at %s for %v, which has not promised that (%t: %v)", e.Job.ID, e.Epoch, e.Site, e.Cost, there, cost)
	}
}

// start checks that what runs for another site was promised to it.
func (w *quoteWatch) start(_ grid.Time, x *testnet.Execution) {
	at := w.n.ID(x.Site)
	if x.Pilot.Key != 0 || x.Squad != nil || x.Job.Home == at {
		return
	}
	if _, there := w.promised[promise{x.ID, at, x.Job.Home}]; !there {
		w.checks.Violated("job %s of %s starts with epoch %d at %s, which has not promised that", x.Job.ID, x.Job.Home, x.ID.Epoch, at)
	}
}

// borrowed checks that what a site has borrowed was granted.
func (w *quoteWatch) borrowed(at int, s *site.Site) {
	for l := range lease.All(site.CoresOf(s).Book) {
		if held := l.State == lease.Held || l.State == lease.Claiming || l.State == lease.Active; held && !l.Lent && !w.granted[grant{l.ID, l.Lender}] {
			w.checks.Violated("%s has borrowed %d processors of %s with lease %d, %v, which has not granted them", w.n.ID(at), l.Processors, l.Lender, l.Number, l.State)
		}
	}
}

// step: the numbers of a site's quotes begin with what its clock shows, at each start.
func (w *quoteWatch) step(_ grid.Time, at int, _ grid.Time) { w.set[at] = true }

// turn looks at a site's own quote.
func (w *quoteWatch) turn(now grid.Time, at int) {
	if w.turns++; w.turns%quoteTurns != 0 || now < federation.Warmup {
		return
	}
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	w.borrowed(at, s)
	q, known := s.Known(w.n.ID(at))
	if !known || q.Withdrawn {
		return
	}
	if q.Sequence < w.last[at] && !w.set[at] {
		w.checks.Violated("%s has quote %d, and had quote %d before", w.n.ID(at), q.Sequence, w.last[at])
	}
	w.last[at] = q.Sequence
	if local := w.n.Clock(at).Local(now); q.Expires()+quoteLate < local && !s.Draining() {
		w.checks.Violated("%s has let its own quote run out at %v", w.n.ID(at), q.Expires())
	}
}

// send looks at pages, and remembers what is promised.
func (w *quoteWatch) send(now grid.Time, from int, to grid.SiteID, m grid.Message) {
	switch m := m.(type) {
	case *directory.Page:
		local := w.n.Clock(from).Local(now)
		for _, q := range m.Quotes {
			if q.Expires() <= local {
				w.checks.Violated("%s answers %s with quote %d of %s, which has run out at %v", w.n.ID(from), to, q.Sequence, q.Site, q.Expires())
			}
		}
	case *market.Reply:
		if m.Refusal == market.Granted && !m.Probe {
			w.promised[promise{m.Task, w.n.ID(from), to}] = m.Cost
		}
	case *lease.Grant:
		w.granted[grant{lease.ID{Borrower: to, Number: m.Number}, w.n.ID(from)}] = true
	}
}
