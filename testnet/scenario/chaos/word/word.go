package word

import (
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/site"
	"gridnode/testnet"
)

// Config is what a Watch is told of a run.
type Config struct {
	N      *testnet.Network
	Checks *testnet.Checker
	Site   func(at int) site.Config // what a site is told
	Books  Books

	// Apart reports whether a site knows less than it once did, or has had its clock set: nothing that
	// it says, or that is said to it, is looked at.
	Apart func(at int) bool

	Forgets bool // a bank may forget what it has paid
}

// Books are what is known of the banks of a run.
type Books interface {
	// Paid returns what a bank's journal says of the cheque of a payer for an execution: whether it is
	// written, and open, and what was paid for it.
	Paid(bank int, payer grid.SiteID, task grid.TaskID) (paid grid.Credits, written, open bool)
	// Closed returns when, in true time, that was settled; before the beginning if it was not.
	Closed(bank int, payer grid.SiteID, task grid.TaskID) grid.Time
	// Account returns what the journal says of an account.
	Account(bank int, of grid.SiteID) bank.Balance
	// Moved returns what banks have paid by cheques of a site, and to it; known is false while one is
	// down, which may have said so before.
	Moved(of grid.SiteID) (out, in grid.Credits, known bool)
}

// Watch listens to all that sites say to each other:
//
//   - what home asks for is what its job needs, and is worth, after what it has cost before (C-7);
//   - a site promises what it was asked for and no more, a copy of a promise is the same, and no name
//     of one is used twice; a job goes for what was promised, with a cheque over that (C-4, D-4);
//   - what it promises it runs, for its price; what it says against a job is so (J-12);
//     on what it says to be idle, as it answers, nothing runs (P-6);
//   - a job leaves home while its guarantee stands, and as long is taken for it (J-11);
//   - what an execution has come to is what has happened there, and costs no more than that (C-4);
//     one that is given up does not start (J-3, J-5);
//   - who has signed for an amount signs for no other one, and nobody for more than is claimed, or than
//     the cheque is over (C-4);
//   - what a bank says of a cheque or of an account is what its journal says (C-3, C-11);
//   - a lender grants what it was asked for, at a price that the borrower pays, for no longer than its
//     terms, and says to be free no sooner than it is; a lease that it wants back, or that is paid for,
//     is prolonged no more (P-4, C-8);
//   - what a lender says against a lease is so, and what a bank says against a cheque (J-12);
//   - a lease counts as given back if its borrower has given it back;
//   - what a site has said of a lease is saved;
//   - a borrower says again what its lender said last, and counts what it says (P-4);
//   - what is not answered is said again after longer and longer pauses.
type Watch struct {
	Config
	told []*site.Config    // what sites were told; nil: was not asked
	came map[int]grid.Time // when a site last came up
	set  map[int]bool      // whose machine's clock was set: of its tasks it does not know for how long they ran

	asks    map[request]market.Negotiate
	grants  map[guarantee]*grant
	holds   map[name]grid.TaskID
	sent    map[guarantee]bool
	runs    map[execution]*run
	budgets map[grid.JobID]grid.Credits // what is left of those that jobs have
	signed  map[signature]grid.Credits
	draws   map[signature]*bank.Draw

	wants map[loan]*want
	held  map[serves][]*want // to be held for one job
	loans map[term]*lent
	says  map[term]said
	used  map[renewal]said

	spoken map[int][]lease.ID // by site: of which leases it has said something since it was last at rest

	paused map[saying]pause
	given  map[signature]grid.Time // when a payer first said that it does not want a draw any more
}

// New starts to listen.
func New(c Config) *Watch {
	w := &Watch{
		Config: c, told: make([]*site.Config, c.N.Len()), came: make(map[int]grid.Time), set: make(map[int]bool),
		asks: make(map[request]market.Negotiate), grants: make(map[guarantee]*grant), holds: make(map[name]grid.TaskID), sent: make(map[guarantee]bool),
		runs: make(map[execution]*run), budgets: make(map[grid.JobID]grid.Credits), signed: make(map[signature]grid.Credits), draws: make(map[signature]*bank.Draw),
		wants: make(map[loan]*want), held: make(map[serves][]*want), loans: make(map[term]*lent), says: make(map[term]said), used: make(map[renewal]said),
		paused: make(map[saying]pause), given: make(map[signature]grid.Time),
		spoken: make(map[int][]lease.ID),
	}
	c.N.Observe(testnet.Observer{Send: w.send, Event: w.event, Start: w.start, End: w.end, Answer: w.answered, Turn: w.turn, Fault: func(now grid.Time, f *testnet.Fault) {
		if f.Healing() && f.Kind.Kills() {
			w.came[f.Sites[0]] = now
		}
		if f.Kind.Clocks() {
			w.set[f.Sites[0]] = true
		}
	}})
	return w
}

// site returns what a site was told.
func (w *Watch) site(at int) *site.Config {
	if w.told[at] == nil {
		told := w.Site(at)
		w.told[at] = &told
	}
	return w.told[at]
}

// word is who says something, to whom and when.
type word struct {
	now, local grid.Time
	at         int // who says it
	from, to   grid.SiteID
}

// send takes what is said.
func (w *Watch) send(now grid.Time, from int, to grid.SiteID, m grid.Message) {
	other, known := w.N.Index(to)
	if !known || w.Apart(from) || w.Apart(other) {
		return
	}
	o := &word{now, w.N.Clock(from).Local(now), from, w.N.ID(from), to}
	w.pauses(o, m)
	switch m := m.(type) {
	case *market.Negotiate:
		w.asked(o, m)
	case *market.Reply:
		w.promised(o, m)
	case *market.JobSubmission:
		w.submitted(o, m)
	case *market.JobCompletion:
		w.ended(o, m)
	case *market.Cancel:
		w.unwanted(o, m)
	case *market.Acknowledge:
		w.arrived(o, m)
		w.agreed(o, m.Agreement)
	case *bank.Draw:
		w.draw(o, m)
	case *bank.Drawn:
		w.drawn(o, m)
	case *bank.Redeem:
		w.sign(o, m.Claim)
	case *bank.Redeemed:
		w.redeemed(o, m)
	case *bank.TransferReply:
		if m.Refusal != bank.NoBank {
			w.account(o, m.Settled, m.Committed)
		}
	case *fee.Bill:
		w.sign(o, m.Claim)
	case *fee.Agreed:
		w.agreed(o, m.Agreement)
	default:
		w.leases(o, m)
	}
}
