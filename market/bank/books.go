package bank

import (
	"fmt"
	"maps"
	"slices"

	"gridnode/grid"
)

// Balance returns what is in an account, and whether there is one.
func (l *Ledger) Balance(site grid.SiteID) (Balance, bool) {
	a := l.accounts[site]
	if a == nil {
		return Balance{}, false
	}
	return a.Balance, true
}

// Sites returns the accounts' owners in order, the issuer included.
func (l *Ledger) Sites() []grid.SiteID { return slices.Sorted(maps.Keys(l.accounts)) }

// History returns the newest transactions of an account, newest first, at most
// limit of those that are kept. They must not be changed.
func (l *Ledger) History(site grid.SiteID, limit int) []*Transaction {
	a := l.accounts[site]
	if a == nil || limit <= 0 {
		return nil
	}
	list := make([]*Transaction, 0, min(limit, len(a.history)))
	for i := len(a.history) - 1; i >= 0 && len(list) < limit; i-- {
		list = append(list, l.journal[a.history[i]-l.first()])
	}
	return list
}

// first returns the sequence of the oldest transaction that is kept.
func (l *Ledger) first() uint64 { return l.last + 1 - uint64(len(l.journal)) }

// Journal calls yield for every transaction from sequence on that is kept, in order.
func (l *Ledger) Journal(from uint64, yield func(*Transaction) bool) {
	for i := max(from, l.first()) - l.first(); i < uint64(len(l.journal)); i++ {
		if !yield(l.journal[i]) {
			return
		}
	}
}

// Last returns the sequence of the newest transaction, 0 if there is none.
func (l *Ledger) Last() uint64 { return l.last }

// Refused returns how often the bank has said no since it started, by reason.
func (l *Ledger) Refused() map[string]int64 {
	m := make(map[string]int64)
	for r, n := range l.refused {
		if n > 0 && Refusal(r) != Done {
			m[Refusal(r).String()] = n
		}
	}
	return m
}

// Audit checks what must hold at every instant and returns the first violation: all
// accounts sum to zero, none is below its limit, what is committed in each is the
// sum of its open cheques, and the journal is contiguous with a valid chain.
func (l *Ledger) Audit() error {
	committed, incoming := make(map[grid.SiteID]grid.Credits), make(map[grid.SiteID]grid.Credits)
	for _, h := range l.holds {
		if h.state == holdOpen {
			committed[h.Payer] += h.Ceiling
			incoming[h.Payee] += h.Ceiling
		}
	}
	var sum grid.Credits
	for _, site := range l.Sites() {
		a := l.accounts[site]
		sum += a.Settled + a.Committed // bounded by what was issued
		switch {
		case a.Settled < 0 && site != Issuer, a.Committed < 0:
			return fmt.Errorf("account %s has %v settled and %v committed", site, a.Settled, a.Committed)
		case a.Committed != committed[site]:
			return fmt.Errorf("account %s has %v committed and open cheques over %v", site, a.Committed, committed[site])
		case a.Incoming != incoming[site]:
			return fmt.Errorf("account %s expects %v and the open cheques for it are over %v", site, a.Incoming, incoming[site])
		case a.last > l.last:
			return fmt.Errorf("account %s has transaction %d, the journal ends with %d", site, a.last, l.last)
		}
	}
	if sum != 0 {
		return fmt.Errorf("all accounts sum to %v, want 0", sum)
	}
	return nil
}

// auditChain checks that the journal is contiguous and that each hash covers the one before.
func (l *Ledger) auditChain() error {
	for i := 1; i < len(l.journal); i++ {
		before, t := l.journal[i-1], l.journal[i]
		switch {
		case t.Sequence != before.Sequence+1:
			return fmt.Errorf("transaction %d follows transaction %d", t.Sequence, before.Sequence)
		case t.hash != t.chain(&before.hash):
			return fmt.Errorf("transaction %d does not match its hash or the one before", t.Sequence)
		}
	}
	return nil
}
