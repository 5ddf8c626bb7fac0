package chaos

import (
	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// accountWatch compares what users are told of their accounts with the journals of the banks:
//
//   - what a user is told has moved credits has, and what is refused has not and never will,
//     unless he says it again (C-10);
//   - a statement is what the account was after the newest transaction that it shows, and shows
//     those that there were when it was asked for (C-11).
type accountWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	books  *books
	asked  map[uint64]*accountAsk // by token
	refuse []*accountAsk          // what was refused, and not said again
	later  []func()               // looks at what a bank has told that has died of it
	counts accountCounts
}

// accountCounts are what users were told.
type accountCounts struct {
	Moved   int64 `json:"moved"`   // transfers that banks have made
	Refused int64 `json:"refused"` // that they have not
	Shown   int64 `json:"shown"`   // statements
}

// accountAsk is something that a user says to his bank.
type accountAsk struct {
	payer  grid.SiteID
	bank   int
	id     grid.JobID // of a transfer
	amount grid.Credits
	to     grid.SiteID
	since  uint64 // newest transaction of the account when it was asked about
	again  bool   // it is said again
}

// accountNumbers is where the numbers of what is said to banks begin among those of wishes.
const accountNumbers = 1 << 33

func watchAccounts(n *testnet.Network, c *testnet.Checker, b *books) *accountWatch {
	w := &accountWatch{n: n, checks: c, books: b, asked: make(map[uint64]*accountAsk)}
	n.Observe(testnet.Observer{Answer: w.answer})
	return w
}

// drawAccounts draws when users move credits, or ask about their accounts.
func drawAccounts(seed uint64, sites int, times float64, span grid.Time) (drawn []Wish) {
	pcg := draw.PCG(seed, "accounts", draw.ForJobs)
	for range int(times*float64(sites)*span.Seconds()/3600 + 0.5) {
		w := Wish{Kind: WishTransfer, Site: int(draw.Uniform(pcg, uint64(sites))), Lender: int(draw.Uniform(pcg, uint64(sites)))}
		w.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
		most := [...]grid.Credits{grid.Credit / 100, grid.Credit, 10 * grid.Credit}[draw.Uniform(pcg, 3)]
		w.Which = draw.Uniform(pcg, uint64(most))
		switch draw.Uniform(pcg, 4) {
		case 0:
			w.Kind, w.Which = WishAccount, draw.Uniform(pcg, 4)
		case 1:
			w.Span = grid.Millisecond + grid.Time(draw.Uniform(pcg, uint64(20*grid.Second)))
		}
		drawn = append(drawn, w)
	}
	return drawn
}

// say has a wish about an account be said when its time comes.
func (w *accountWatch) say(wish *Wish) {
	n := w.n
	payer := n.ID(wish.Site)
	at, _ := n.Index(chaosBank(n.Len(), n.ID)(wish.Site).Bank)
	ask := &accountAsk{payer: payer, bank: at, again: wish.Span > 0}
	token := wishTokens + accountNumbers + uint64(len(w.asked))
	w.asked[token] = ask
	if wish.Kind == WishAccount {
		n.Call(wish.At, wish.Site, func() {
			ask.since = w.books.own[at].newest[payer]
			n.Step(wish.Site, &bank.Question{Token: token, Account: payer, Limit: int32(wish.Which)})
		})
		return
	}
	ask.id, ask.amount, ask.to = grid.JobID{Hi: 1<<40 + uint64(wish.Site), Lo: uint64(wish.At)}, grid.Credits(wish.Which), n.ID(wish.Lender)
	said := &bank.Transfer{Token: token, ID: ask.id, To: ask.to, Amount: ask.amount}
	n.Inject(wish.At, wish.Site, said)
	if ask.again {
		n.Inject(wish.At+wish.Span, wish.Site, said)
	}
}

// answer takes what a user is told.
func (w *accountWatch) answer(_ grid.Time, _ int, a grid.Answer) {
	ask := w.asked[a.Token]
	s, yes := a.Value.(*bank.Statement)
	if ask == nil || !yes || s.Silent {
		return
	}
	if w.books.ledger(ask.bank) == nil {
		w.later = append(w.later, func() { w.told(ask, s) })
		return
	}
	w.books.turn(ask.bank) // it may be this very site, in this turn
	w.told(ask, s)
}

// told compares what a user was told with the journal.
func (w *accountWatch) told(ask *accountAsk, s *bank.Statement) {
	switch {
	case ask.id == grid.JobID{}:
		w.shown(ask, s)
	case s.Refusal == bank.Done:
		w.counts.Moved++
		t := w.books.own[ask.bank].moved[chequeID{ask.payer, grid.TaskID{Job: ask.id}}]
		if t == nil || t.Payee != ask.to || t.Amount != ask.amount {
			w.checks.Violated("%s is told that %v have been moved to %s, transfer %s, and the journal of its bank has no such transaction", ask.payer, ask.amount, ask.to, ask.id)
		}
	default:
		w.counts.Refused++
		if !ask.again {
			w.refuse = append(w.refuse, ask)
			w.unmoved(ask)
		}
	}
}

// unmoved looks whether what was refused has been done.
func (w *accountWatch) unmoved(ask *accountAsk) {
	if t := w.books.own[ask.bank].moved[chequeID{ask.payer, grid.TaskID{Job: ask.id}}]; t != nil {
		w.checks.Violated("%s is told that transfer %s of %v is refused, and transaction %d of its bank has moved them", ask.payer, ask.id, ask.amount, t.Sequence)
	}
}

// shown takes a statement.
func (w *accountWatch) shown(ask *accountAsk, s *bank.Statement) {
	if s.Refusal != bank.Done || len(s.Transactions) == 0 {
		return
	}
	w.counts.Shown++
	newest := s.Transactions[0].Sequence
	was, known := w.books.own[ask.bank].was[posted{ask.payer, newest}]
	switch {
	case newest < ask.since:
		w.checks.Violated("%s is told of its account up to transaction %d, and had %d before it asked", ask.payer, newest, ask.since)
	case !known || s.Balance.Settled != was.Settled || s.Balance.Committed != was.Committed:
		w.checks.Violated("%s is told that it has %v settled and %v committed after transaction %d, its bank's journal says %v and %v",
			ask.payer, s.Balance.Settled, s.Balance.Committed, newest, was.Settled, was.Committed)
	}
}

// atRest looks for what was done after it had been refused.
func (w *accountWatch) atRest() error {
	for _, look := range w.later {
		look()
	}
	for _, ask := range w.refuse {
		w.unmoved(ask)
	}
	return w.checks.Violation(0)
}
