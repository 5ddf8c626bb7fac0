package chaos

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// books watches the banks of a network. It keeps books of its own, the plain way,
// from each bank's journal and from what homes tell, and looks for differences:
//
//   - every transaction sums to zero, and so do all accounts, after each turn (C-1);
//   - a bank's accounts are what its journal says, and none is below its limit (C-2);
//   - a cheque is paid at most once, to its payee, before its expiry, and payment and
//     refund are its ceiling (C-3);
//   - nobody pays more than his job's budget, however often it runs (C-7);
//   - at rest, nothing is committed, no bill is open, and for every pair of sites what
//     one's jobs cost at the other is what banks have moved between them (C-5).
type books struct {
	n     *testnet.Network
	watch *testnet.Checker
	banks []int                 // sites that keep one
	own   map[int]*bankBooks    // by site
	spent map[pair]grid.Credits // by home, for jobs at a site, as the home says
	count map[bank.TransactionKind]int64
	fees  *feeWatch

	roster *roster // nil: the federation is open
	older  older

	literal func(site int) bool         // places as Grid-Federation does: budgets bind GoalTime only
	budgets map[grid.JobID]grid.Credits // as submitted
	cost    map[grid.JobID]grid.Credits // of all executions, as the home says
}

// pair is a site that pays and one that is paid.
type pair struct{ payer, payee grid.SiteID }

// bankBooks are the books of one bank, kept the plain way.
type bankBooks struct {
	last     uint64
	accounts map[grid.SiteID]bank.Balance // Incoming is not kept
	cheques  map[chequeID]*openCheque
	paid     map[pair]grid.Credits
	moved    map[chequeID]*bank.Transaction // grants and transfers, by sender and ID
	was      map[posted]bank.Balance
	newest   map[grid.SiteID]uint64       // transaction of each account
	out, in  map[grid.SiteID]grid.Credits // by cheques
}

func newBankBooks() *bankBooks {
	return &bankBooks{
		accounts: make(map[grid.SiteID]bank.Balance), cheques: make(map[chequeID]*openCheque), paid: make(map[pair]grid.Credits),
		moved: make(map[chequeID]*bank.Transaction), was: make(map[posted]bank.Balance), newest: make(map[grid.SiteID]uint64),
		out: make(map[grid.SiteID]grid.Credits), in: make(map[grid.SiteID]grid.Credits),
	}
}

// posted is an account after a transaction that has changed it.
type posted struct {
	account  grid.SiteID
	sequence uint64
}

type chequeID struct {
	payer grid.SiteID
	task  grid.TaskID
}

type openCheque struct {
	payee   grid.SiteID
	ceiling grid.Credits
	expires grid.Time
	closed  bool
	when    grid.Time // in true time
	paid    grid.Credits
}

// watchBooks starts to watch the banks of n, which are at the given sites.
func watchBooks(n *testnet.Network, watch *testnet.Checker, banks []int) *books {
	b := &books{n: n, watch: watch, banks: banks, own: make(map[int]*bankBooks), spent: make(map[pair]grid.Credits), count: make(map[bank.TransactionKind]int64), budgets: make(map[grid.JobID]grid.Credits), cost: make(map[grid.JobID]grid.Credits)}
	for _, site := range banks {
		b.own[site] = newBankBooks()
	}
	b.fees = watchFees(n, watch) // it reads its meters first
	n.Observe(testnet.Observer{Event: b.event, Turn: func(_ grid.Time, site int) { b.turn(site) }})
	return b
}

// event accounts for what a home says that a job has cost.
func (b *books) event(_ grid.Time, site int, e *grid.Event) {
	switch e.Kind {
	case grid.JobSubmitted:
		if b.budgets[e.Job.ID] = e.Job.Budget; b.literal != nil && b.literal(site) && e.Job.Goal != grid.GoalTime {
			b.budgets[e.Job.ID] = grid.NoBudget
		}
		return
	case grid.JobFinished, grid.JobCancelled, grid.JobReplaced:
	default:
		return
	}
	if b.cost[e.Job.ID] += e.Cost; b.budgets[e.Job.ID] >= 0 && b.cost[e.Job.ID] > b.budgets[e.Job.ID] {
		b.watch.Violated("job %s has cost %v, its budget is %v", e.Job.ID, b.cost[e.Job.ID], b.budgets[e.Job.ID])
	}
	if home := b.n.ID(site); e.Site != home && e.Cost > 0 {
		b.spent[pair{home, e.Site}] += e.Cost
	}
}

// ledger returns the books of the bank at a site, nil while it is down.
func (b *books) ledger(at int) *bank.Ledger {
	if s, ok := scenario.SiteAt(b.n, at); ok {
		return s.Desk().Ledger()
	}
	return nil
}

// turn compares the books of a bank with our own.
func (b *books) turn(site int) {
	own := b.own[site]
	if own == nil {
		return
	}
	l := b.ledger(site)
	if l == nil || l.Last() == own.last {
		return
	}
	l.Journal(own.last+1, func(t *bank.Transaction) bool {
		b.count[t.Kind]++
		err := own.apply(t)
		if c := own.cheques[chequeID{t.Payer, t.Task}]; c != nil && c.closed {
			c.when = b.n.Now()
		}
		if err == nil && t.Kind == bank.KindRedeem {
			err = b.fees.redeemed(b.n.Now(), t)
		}
		if err != nil {
			b.watch.Violated("bank %s, transaction %d: %w", b.n.ID(site), t.Sequence, err)
		}
		return true
	})
	if err := l.Audit(); err != nil {
		b.watch.Violated("bank %s: %w", b.n.ID(site), err)
	}
	for id, want := range own.accounts {
		got, _ := l.Balance(id)
		if got.Settled != want.Settled || got.Committed != want.Committed {
			b.watch.Violated("bank %s has %v settled and %v committed for %s, its journal says %v and %v",
				b.n.ID(site), got.Settled, got.Committed, id, want.Settled, want.Committed)
		}
	}
}

// apply takes one transaction.
func (b *bankBooks) apply(t *bank.Transaction) error {
	if t.Sequence != b.last+1 {
		return fmt.Errorf("it follows transaction %d", b.last)
	}
	b.last = t.Sequence
	payer, payee := b.accounts[t.Payer], b.accounts[t.Payee]
	id := chequeID{t.Payer, t.Task}
	c := b.cheques[id]
	switch t.Kind {
	case bank.KindGrant, bank.KindTransfer:
		if b.moved[id] != nil {
			return fmt.Errorf("a second %v %s of %s", t.Kind, t.Task.Job, t.Payer)
		}
		b.moved[id] = t
		payer.Settled -= t.Amount
		payee.Settled += t.Amount
	case bank.KindDraw:
		if c != nil {
			return fmt.Errorf("a second cheque of %s for %v", t.Payer, t.Task)
		}
		b.cheques[id] = &openCheque{payee: t.Payee, ceiling: t.Amount, expires: t.Expires}
		payer.Settled -= t.Amount
		payer.Committed += t.Amount
	case bank.KindRedeem, bank.KindExpire:
		switch {
		case c == nil || c.closed:
			return fmt.Errorf("the cheque of %s for %v is closed already, or was never written", t.Payer, t.Task)
		case t.Payee != c.payee || t.Amount < 0 || t.Refund < 0 || t.Amount+t.Refund != c.ceiling:
			return fmt.Errorf("cheque over %v for %s: %v to %s, %v back", c.ceiling, c.payee, t.Amount, t.Payee, t.Refund)
		case (t.At >= c.expires) != (t.Kind == bank.KindExpire):
			return fmt.Errorf("%v of a cheque at %v that expires at %v", t.Kind, t.At, c.expires)
		}
		c.closed = true
		payer.Committed -= c.ceiling
		if t.Kind == bank.KindRedeem {
			payer.Settled += t.Refund
			payee.Settled += t.Amount
			c.paid = t.Amount
			b.out[t.Payer] += t.Amount
			b.in[t.Payee] += t.Amount
			if _, yes := fee.IsFee(t.Task); !yes { // leases are in the books of feeWatch
				b.paid[pair{t.Payer, t.Payee}] += t.Amount
			}
		} else {
			payer.Settled += t.Amount
		}
	}
	if t.Payer != bank.Issuer && payer.Settled < 0 || payer.Committed < 0 {
		return fmt.Errorf("%s has %v settled and %v committed", t.Payer, payer.Settled, payer.Committed)
	}
	b.post(t, t.Payer, payer)
	if t.Kind != bank.KindDraw && t.Kind != bank.KindExpire && t.Amount > 0 {
		b.post(t, t.Payee, payee)
	}
	return nil
}

// post notes what an account is after a transaction.
func (b *bankBooks) post(t *bank.Transaction, account grid.SiteID, now bank.Balance) {
	b.accounts[account], b.was[posted{account, t.Sequence}], b.newest[account] = now, now, t.Sequence
}

// open returns cheques of a bank that are good still, in order of payer and task, so many at most.
func (b *bankBooks) open(self grid.SiteID, now grid.Time, most int) (list []bank.Cheque) {
	for id, c := range b.cheques {
		if !c.closed && c.expires > now+grid.Minute {
			list = append(list, bank.Cheque{Bank: self, Payer: id.payer, Payee: c.payee, Task: id.task, Ceiling: c.ceiling, Expires: c.expires})
		}
	}
	slices.SortFunc(list, func(a, b bank.Cheque) int { return cmp.Or(cmp.Compare(a.Payer, b.Payer), a.Task.Compare(b.Task)) })
	return list[:min(len(list), most)]
}

// Paid implements word.Books.
func (b *books) Paid(at int, payer grid.SiteID, task grid.TaskID) (paid grid.Credits, written, open bool) {
	b.turn(at) // it says so in this turn
	if own := b.own[at]; own != nil {
		if c := own.cheques[chequeID{payer, task}]; c != nil {
			return c.paid, true, !c.closed
		}
	}
	return 0, false, false
}

// Closed implements word.Books.
func (b *books) Closed(at int, payer grid.SiteID, task grid.TaskID) grid.Time {
	if own := b.own[at]; own != nil {
		if c := own.cheques[chequeID{payer, task}]; c != nil && c.closed {
			return c.when
		}
	}
	return -grid.Day
}

// Account implements word.Books.
func (b *books) Account(at int, of grid.SiteID) bank.Balance {
	b.turn(at)
	if own := b.own[at]; own != nil {
		return own.accounts[of]
	}
	return bank.Balance{}
}

// Moved implements word.Books.
func (b *books) Moved(of grid.SiteID) (out, in grid.Credits, known bool) {
	for at, own := range b.own {
		if b.ledger(at) == nil {
			return 0, 0, false
		}
		out, in = out+own.out[of], in+own.in[of]
	}
	return out, in, true
}

// unsettled says what a site has not settled; nil: nothing.
func (b *books) unsettled(i int) error {
	s, up := scenario.SiteAt(b.n, i)
	if !up {
		return fmt.Errorf("site %s is down", b.n.ID(i))
	}
	if b.roster.out(i) {
		return nil // nobody hears it
	}
	if owes, owed := s.Fees(); owes+owed > 0 {
		return fmt.Errorf("site %s owes for %d leases, and is owed for %d", b.n.ID(i), owes, owed)
	}
	if _, bills := s.Desk().Open(); bills > 0 {
		return fmt.Errorf("site %s has %d bills that are not paid", b.n.ID(i), bills)
	}
	return nil
}

// committed says what banks hold for cheques; nil: nothing. All sites are up.
func (b *books) committed() error {
	for _, site := range b.banks {
		l := b.ledger(site)
		for _, id := range l.Sites() {
			if b.roster.out(site) || b.roster.outID(id) {
				continue // its open cheques expire
			}
			if b.forgotten(site, id) {
				continue
			}
			if balance, _ := l.Balance(id); balance.Committed != 0 {
				return fmt.Errorf("bank %s holds %v of %s", b.n.ID(site), balance.Committed, id)
			}
		}
	}
	return nil
}

// forgotten reports whether a bank holds something of a site for one that may have forgotten it:
// that expires.
func (b *books) forgotten(bank int, payer grid.SiteID) bool {
	for id, c := range b.own[bank].cheques {
		if len(b.older) > 0 && !c.closed && id.payer == payer && (b.older[payer] || b.older[c.payee]) {
			return true
		}
	}
	return false
}

// atRest looks for what must not be there once everything has healed and ended.
func (b *books) atRest() error {
	down := false
	for i := range b.n.Len() {
		_, up := scenario.SiteAt(b.n, i)
		down = down || !up
		if err := b.unsettled(i); err != nil {
			b.watch.Violated("%w", err)
		}
	}
	if !down {
		if err := b.committed(); err != nil {
			b.watch.Violated("%w", err)
		}
	}
	paid := make(map[pair]grid.Credits)
	for _, own := range b.own {
		for p, amount := range own.paid {
			paid[p] += amount
		}
	}
	for i := range b.n.Len() {
		for j := range b.n.Len() {
			p := pair{b.n.ID(i), b.n.ID(j)}
			if b.roster.apart(i, j) || b.older[p.payer] || b.older[p.payee] {
				continue
			}
			if b.spent[p] != paid[p] {
				b.watch.Violated("jobs of %s have cost %v at %s, banks have paid %v for them", p.payer, b.spent[p], p.payee, paid[p])
			}
		}
	}
	if err := b.fees.atRest(); err != nil {
		b.watch.Violated("%w", err)
	}
	return b.watch.Violation(0)
}
