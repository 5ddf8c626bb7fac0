package bank

import (
	"crypto/sha256"
	"fmt"

	"gridnode/grid"
)

// Ledger is a bank's books: accounts, cheques and the journal of everything that
// was moved, in double entry. Each method that changes it saves what it changed and
// returns Done, or changes nothing and returns why. now is the bank's clock. Not
// safe for concurrent use.
type Ledger struct {
	self grid.SiteID
	sign Seal

	accounts map[grid.SiteID]*account
	holds    map[key]*hold
	moved    map[moveKey]*Transaction // grants and transfers that are kept, by their ID
	journal  []*Transaction           // those kept, contiguous, oldest first
	head     [sha256.Size]byte        // hash of the newest
	last     uint64                   // its sequence
	alarms   grid.Alarms[*hold]
	refused  [refusalMax]int64
	declined declined
	outcasts *Outcasts

	transactions grid.Slab[Transaction]
	records      grid.Slab[accountRecord]
}

// moveKey identifies a grant or transfer.
type moveKey struct {
	payer grid.SiteID
	id    grid.JobID
}

// NewLedger returns the books of the bank that site self keeps, without accounts.
// sign signs its cheques; nil in virtual time.
func NewLedger(self grid.SiteID, sign Seal) *Ledger {
	l := &Ledger{
		self: self, sign: sign,
		outcasts: new(Outcasts), accounts: make(map[grid.SiteID]*account), holds: make(map[key]*hold), moved: make(map[moveKey]*Transaction),
	}
	l.accounts[Issuer] = newAccount(Issuer)
	return l
}

// Grant issues credits: from the issuer's account to that of a site, which it opens
// if need be. The same ID grants once.
func (l *Ledger) Grant(now grid.Time, g *Grant, out *grid.Outbox) Refusal {
	return l.refuse(l.move(Transaction{
		At: now, Kind: KindGrant, Payer: Issuer, Payee: g.To, Task: grid.TaskID{Job: g.ID}, Amount: g.Amount,
	}, out))
}

// Transfer moves credits from one account to another. The same sender and ID move
// credits once. A copy of a request that was refused is refused, whatever there is by then.
func (l *Ledger) Transfer(now grid.Time, from grid.SiteID, r *TransferRequest, out *grid.Outbox) Refusal {
	id := moveKey{from, r.ID}
	if why, copied := l.refusedBefore(now, id, r.Asked); copied && l.moved[id] == nil {
		return l.refuse(why)
	}
	refusal := l.move(Transaction{
		At: now, Kind: KindTransfer, Payer: from, Payee: r.To, Task: grid.TaskID{Job: r.ID}, Amount: r.Amount,
	}, out)
	if refusal != Done && r.Asked != 0 {
		l.decline(now, id, r.Asked, refusal, out)
	}
	return l.refuse(refusal)
}

// refusedBefore returns why a request for a transfer was refused of which this is a copy, and whether
// it is one.
func (l *Ledger) refusedBefore(now grid.Time, id moveKey, asked grid.Time) (Refusal, bool) {
	if why, copied := l.declined.copied(now, id, asked); copied {
		return why, true
	}
	a := l.accounts[id.payer]
	if a == nil || !a.forgotten.copied(now, asked) {
		return Done, false
	}
	return a.forgotten.why, true
}

// decline notes that a transfer was refused.
func (l *Ledger) decline(now grid.Time, id moveKey, asked grid.Time, why Refusal, out *grid.Outbox) {
	noted, crowded := l.declined.add(now, id, asked, why)
	if a := l.accounts[crowded.id.payer]; a != nil {
		a.forgotten.add(crowded)
	}
	if a := l.accounts[id.payer]; a != nil {
		a.refused.add(noted)
		out.Save(l.records.New().set(a))
	}
}

// move posts a grant or transfer, once.
func (l *Ledger) move(t Transaction, out *grid.Outbox) Refusal {
	id := moveKey{t.Payer, t.Task.Job}
	if before := l.moved[id]; before != nil {
		if before.Payee != t.Payee || before.Amount != t.Amount || before.Kind != t.Kind {
			return OtherTerms
		}
		return Done
	}
	payer, payee := l.accounts[t.Payer], l.accounts[t.Payee]
	switch {
	case payer == nil:
		return NoAccount
	case t.Payer == t.Payee:
		return ToSelf
	case t.Amount <= 0 || t.Amount > grid.CreditsMax:
		return BadAmount
	case t.Kind == KindGrant && t.Amount > grid.CreditsMax+payer.Settled: // what is issued bounds every balance
		return BadAmount
	case t.Payee == Issuer, t.Kind == KindTransfer && payee == nil:
		return NoPayee
	case t.Kind == KindTransfer && payer.Settled < t.Amount:
		return NoFunds
	case l.full(t.At), len(l.accounts) >= accountsMax && payee == nil:
		return Full
	}
	l.moved[id] = l.post(t, out)
	return Done
}

// Draw writes a cheque, or returns the one that was written before for the same
// payer and execution. A withdrawn Draw writes none; if there is none yet there
// never will be.
func (l *Ledger) Draw(now grid.Time, payer grid.SiteID, d *Draw, out *grid.Outbox) (*Cheque, Refusal) {
	c, refusal := l.draw(now, payer, d, out)
	return c, l.refuse(refusal)
}

func (l *Ledger) draw(now grid.Time, payer grid.SiteID, d *Draw, out *grid.Outbox) (*Cheque, Refusal) {
	account := l.accounts[payer]
	if account == nil || payer == Issuer {
		return nil, NoAccount
	}
	if h := l.holds[key{payer, d.Task}]; h != nil {
		switch {
		case h.Payee != d.Payee || h.Ceiling != d.Ceiling:
			return nil, OtherTerms
		case h.state == holdExpired:
			return nil, Expired
		case h.state != holdOpen:
			return nil, Closed
		}
		return l.cheque(h), Done
	}
	switch {
	case payer == d.Payee:
		return nil, ToSelf
	case d.Ceiling <= 0 || d.Ceiling > grid.CreditsMax || d.Lifetime <= 0 || d.Lifetime > lifetimeMax:
		return nil, BadAmount
	case d.Payee == Issuer:
		return nil, NoPayee
	case !d.Withdrawn && account.Settled < d.Ceiling:
		return nil, NoFunds
	case len(l.holds) >= holdsMax, account.holds >= perPayerMax, !d.Withdrawn && l.full(now):
		return nil, Full
	}
	h := newHold(Cheque{Bank: l.self, Payer: payer, Payee: d.Payee, Task: d.Task, Ceiling: d.Ceiling, Expires: now.Add(d.Lifetime)})
	l.add(h)
	if d.Withdrawn {
		l.close(now, h, holdWithdrawn, out)
		return nil, Closed
	}
	h.state = holdOpen
	l.post(Transaction{At: now, Kind: KindDraw, Payer: payer, Payee: d.Payee, Task: d.Task, Amount: d.Ceiling, Expires: h.Expires}, out)
	l.expect(h)
	out.Save(h)
	return l.cheque(h), Done
}

// add puts a hold into the books.
func (l *Ledger) add(h *hold) {
	l.holds[h.key()] = h
	l.accounts[h.Payer].holds++
	h.due.Owner = h
}

// expect counts an open cheque for its payee and waits for its expiry.
func (l *Ledger) expect(h *hold) {
	if payee := l.accounts[h.Payee]; payee != nil {
		payee.Incoming += h.Ceiling
	}
	l.alarms.Set(&h.due, h.Expires)
}

// cheque returns the signed cheque of a hold.
func (l *Ledger) cheque(h *hold) *Cheque {
	c := h.Cheque
	c.seal(l.sign)
	return &c
}

// Redeem pays a cheque to its payee: the least of ceiling, claim and agreement. The
// rest goes back to the payer. Without an agreement only a claim of nothing is
// good. The same redemption once more returns what was paid before. Of a payee or a payer
// that is an outcast no word is needed: see Outcasts.
func (l *Ledger) Redeem(now grid.Time, by grid.SiteID, r *Redeem, out *grid.Outbox) (grid.Credits, Refusal) {
	paid, refusal := l.redeem(now, by, r, out)
	return paid, l.refuse(refusal)
}

func (l *Ledger) redeem(now grid.Time, by grid.SiteID, r *Redeem, out *grid.Outbox) (grid.Credits, Refusal) {
	if r.Cheque.Bank != l.self {
		return 0, WrongBank
	}
	h := l.holds[r.Cheque.key()]
	switch {
	case h == nil:
		return 0, UnknownCheque
	case !l.may(h, by):
		return 0, NotPayee
	case !h.same(r.Cheque):
		return 0, OtherTerms
	case !r.Claim.about(&h.Cheque, by):
		return 0, NotPayee
	case h.state == holdRedeemed:
		return h.paid, Done
	case h.state == holdExpired || now >= h.Expires:
		return 0, Expired
	case h.state != holdOpen:
		return 0, Closed
	case r.Claim.Amount < 0:
		return 0, BadAmount
	case r.Claim.Amount > h.Ceiling:
		return 0, TooMuch
	}
	paid, refusal := l.worth(h, by, r)
	if refusal != Done {
		return 0, refusal
	}
	if l.full(now) || paid > 0 && l.accounts[h.Payee] == nil && len(l.accounts) >= accountsMax {
		return 0, Full
	}
	l.post(Transaction{At: now, Kind: KindRedeem, Payer: h.Payer, Payee: h.Payee, Task: h.Task, Amount: paid, Refund: h.Ceiling - paid}, out)
	h.paid = paid
	l.close(now, h, holdRedeemed, out)
	return paid, Done
}

// close ends a hold and remembers it for a while.
func (l *Ledger) close(now grid.Time, h *hold, state holdState, out *grid.Outbox) {
	if payee := l.accounts[h.Payee]; payee != nil && h.state == holdOpen {
		payee.Incoming -= h.Ceiling
	}
	h.state = state
	l.alarms.Set(&h.due, now.Add(closedKeep))
	out.Save(h)
}

// Expire returns the money of cheques that have expired, and forgets those that were
// closed long ago. It must come before anything else that happens at now.
func (l *Ledger) Expire(now grid.Time, out *grid.Outbox) {
	for a := l.alarms.Pop(now); a != nil; a = l.alarms.Pop(now) {
		h := a.Owner
		if h.state != holdOpen {
			delete(l.holds, h.key())
			l.accounts[h.Payer].holds--
			out.Delete(h)
			continue
		}
		l.post(Transaction{At: now, Kind: KindExpire, Payer: h.Payer, Payee: h.Payee, Task: h.Task, Amount: h.Ceiling}, out)
		l.close(now, h, holdExpired, out)
	}
}

// NextTimer returns when Expire has something to do, and grid.Never if it has not.
func (l *Ledger) NextTimer() grid.Time { return l.alarms.Next() }

// full reports whether the journal has no room: its oldest transaction is so young
// that a copy of the message that caused it may still come.
func (l *Ledger) full(now grid.Time) bool {
	return len(l.journal) >= journalMax && now-l.journal[0].At < copyLife
}

// post enters a transaction in the books, its sequence, hash and key left to it: the
// only place where balances change.
func (l *Ledger) post(made Transaction, out *grid.Outbox) *Transaction {
	l.last++
	t := l.transactions.New()
	*t = made
	t.Sequence, t.record = l.last, journalKey(l.last)
	t.hash = t.chain(&l.head)
	l.head = t.hash
	l.journal = append(l.journal, t)
	out.Save(t) // before what it changes
	var sum grid.Credits
	sides := t.postings()
	for i := range sides {
		p := &sides[i]
		if p.site == "" || p.settled == 0 && p.committed == 0 {
			continue
		}
		a := l.open(t.At, p.site)
		if err := a.apply(t, p); err != nil { // whoever made the transaction has checked
			panic("bank: " + err.Error())
		}
		a.history = append(a.history, t.Sequence)
		out.Save(l.records.New().set(a))
		sum += p.settled + p.committed
	}
	if sum != 0 {
		panic(fmt.Sprintf("bank: the postings of transaction %d sum to %v", t.Sequence, sum))
	}
	l.trim(t.At, out)
	return t
}

// open returns the account of a site, a new one if there is none.
func (l *Ledger) open(now grid.Time, site grid.SiteID) *account {
	a := l.accounts[site]
	if a == nil {
		a = openAccount(now, site)
		l.accounts[site] = a
		for _, h := range l.holds { // whoever was promised something before it had an account
			if h.state == holdOpen && h.Payee == site {
				a.Incoming += h.Ceiling
			}
		}
	}
	return a
}

// trim forgets the oldest transactions beyond journalMax.
func (l *Ledger) trim(now grid.Time, out *grid.Outbox) {
	for len(l.journal) > journalMax && now-l.journal[0].At >= copyLife {
		t := l.journal[0]
		l.journal[0] = nil
		l.journal = l.journal[1:]
		if t.Kind == KindGrant || t.Kind == KindTransfer {
			delete(l.moved, moveKey{t.Payer, t.Task.Job})
		}
		sides := t.postings()
		for i := range sides {
			a := l.accounts[sides[i].site]
			if a != nil && len(a.history) > 0 && a.history[0] == t.Sequence {
				a.history = a.history[1:]
			}
		}
		out.Delete(t)
	}
}

// refuse counts a refusal and returns it.
func (l *Ledger) refuse(r Refusal) Refusal {
	l.refused[r]++
	return r
}
