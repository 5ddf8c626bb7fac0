package chaos

import (
	"maps"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// quoteWatch looks at what the directory says:
//
//   - no page has a quote that has run out by its holder's clock (D-1);
//   - a site that is up and offers has a quote that has not run out, and the numbers of its
//     quotes rise, across restarts, too (D-2, D-3);
//   - nothing is placed on what it says alone: who gets a job has guaranteed it for that price to its
//     home, and who has lent processors has granted them (D-4);
//   - what comes late, an older quote, one that has run out or was withdrawn, takes the place of
//     nothing, and nobody withdraws the quote of another (D-3): see forger.lateQuote.
type quoteWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	turns  int
	last   map[int]uint64         // number of each site's latest quote
	set    map[int]bool           // sites whose clocks have jumped
	copies map[int][]*publication // of messages to a holder, the latest
	gone   map[withdrawal]uint64  // number of the latest quote that a holder says to have dropped

	promised map[promise]grid.Credits // guarantees: for how much
	granted  map[grant]bool
}

// withdrawal is what a site has taken back from a holder.
type withdrawal struct {
	holder int
	of     grid.SiteID
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

// publication is a message that has been on its way to a holder.
type publication struct {
	from int
	m    directory.Publish
	at   grid.Time
}

// The bounds of a quoteWatch.
const (
	quoteTurns   = 8           // it looks at one turn of so many
	quoteLate    = grid.Second // a quote that was to be renewed is by then
	copiesKept   = 32          // messages to a holder that are remembered
	copiesChosen = 20          // one of so many is
)

func watchQuotes(n *testnet.Network, c *testnet.Checker) *quoteWatch {
	w := &quoteWatch{n: n, checks: c, last: make(map[int]uint64), set: make(map[int]bool), copies: make(map[int][]*publication), gone: make(map[withdrawal]uint64), promised: make(map[promise]grid.Credits), granted: make(map[grant]bool)}
	n.Observe(testnet.Observer{Turn: w.turn, Send: w.send, Step: w.step, Event: w.placed, Start: w.start, Fault: w.fault})
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

// fault: who has been down knows nothing of the quotes of others.
func (w *quoteWatch) fault(_ grid.Time, f *testnet.Fault) {
	if f.Healing() && f.Kind.Kills() {
		maps.DeleteFunc(w.gone, func(of withdrawal, _ uint64) bool { return of.holder == f.Sites[0] })
	}
}

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

// send looks at pages, and remembers some publications.
func (w *quoteWatch) send(now grid.Time, from int, to grid.SiteID, m grid.Message) {
	switch m := m.(type) {
	case *directory.Page:
		local := w.n.Clock(from).Local(now)
		for _, q := range m.Quotes {
			if q.Expires() <= local {
				w.checks.Violated("%s answers %s with quote %d of %s, which has run out at %v", w.n.ID(from), to, q.Sequence, q.Site, q.Expires())
			}
		}
	case *directory.Published:
		for i := range m.Receipts {
			if r := &m.Receipts[i]; r.Gone && !r.Refused {
				of := withdrawal{from, to}
				w.gone[of] = max(w.gone[of], m.Sequence)
			}
		}
	case *market.Reply:
		if m.Refusal == market.Granted && !m.Probe {
			w.promised[promise{m.Task, w.n.ID(from), to}] = m.Cost
		}
	case *lease.Grant:
		w.granted[grant{lease.ID{Borrower: to, Number: m.Number}, w.n.ID(from)}] = true
	case *directory.Publish:
		holder, known := w.n.Index(to)
		if !known || holder == from || draw.Mix(m.Quote.Sequence, draw.Text(string(m.Quote.Site)))%copiesChosen != 0 {
			return
		}
		list := w.copies[holder]
		if len(list) == copiesKept {
			list = list[1:]
		}
		w.copies[holder] = append(list, &publication{from, directory.Publish{Quote: m.Quote, Copies: append([]directory.Copy(nil), m.Copies...)}, now})
	}
}
