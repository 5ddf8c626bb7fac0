package hostile

import (
	"gridnode/grid"
	"gridnode/market/bank"
	"gridnode/testnet"
	"gridnode/testnet/scenario/federation"
)

// grant is what each site is given, plenty.
const grant = grid.CreditsMax / 1_000_000

// money watches the banks, which are honest, and the accounts of honest sites:
//
//   - the books balance after each turn of a bank;
//   - an honest site pays another one no more than its jobs have cost there, as it says, and at
//     rest an honest one all of it;
//   - at rest an honest site has what it was given and earned less what it has paid.
//
// What hostile homes do not sign for is counted apart: nobody is paid for that, and who has
// left three bills unsigned gets nothing more done for money.
type money struct {
	t     *town
	last  [banks]uint64
	spent map[pair]grid.Credits // by honest homes, as they say
	paid  map[pair]grid.Credits // by banks
	moved grid.Credits
	count int64 // of jobs that were paid

	losses int64 // times that money was lost
}

// pair is who pays, and who is paid.
type pair struct{ payer, payee grid.SiteID }

func watchMoney(t *town) *money {
	w := &money{t: t, spent: make(map[pair]grid.Credits), paid: make(map[pair]grid.Credits)}
	t.n.Observe(testnet.Observer{Event: w.event, Turn: w.turn})
	for i := range t.Sites {
		t.n.Inject(federation.Warmup/2, i%banks, &bank.Grant{ID: grid.JobID{Hi: 1, Lo: uint64(i + 1)}, To: t.IDs[i], Amount: grant})
	}
	return w
}

func (w *money) event(_ grid.Time, at int, e *grid.Event) {
	switch e.Kind {
	case grid.JobFinished, grid.JobCancelled, grid.JobReplaced:
		if home := w.t.IDs[at]; w.t.honest(at) && e.Site != home && e.Cost > 0 {
			w.spent[pair{home, e.Site}] += e.Cost
		}
	}
}

// turn looks at what a bank has moved.
func (w *money) turn(_ grid.Time, at int) {
	if at >= banks {
		return
	}
	l := w.t.siteAt(at).Desk().Ledger()
	if l.Last() == w.last[at] {
		return
	}
	l.Journal(w.last[at]+1, func(x *bank.Transaction) bool {
		switch p := (pair{x.Payer, x.Payee}); x.Kind {
		case bank.KindRedeem:
			w.paid[p] += x.Amount
			w.moved += x.Amount
			w.count++
			if w.t.is(p.payer) && w.paid[p] > w.spent[p] {
				w.lost("%s has paid %v to %s, its jobs there have cost %v", w.t.name(p.payer), w.paid[p], w.t.name(p.payee), w.spent[p])
			}
		case bank.KindTransfer:
			w.lost("%v were transferred from %s to %s, which nobody has wanted", x.Amount, w.t.name(p.payer), w.t.name(p.payee))
		}
		return true
	})
	w.last[at] = l.Last()
	if err := l.Audit(); err != nil {
		w.lost("the books of %s: %w", w.t.Sites[at].Name, err)
	}
}

// lost notes that money was lost, which ends the run.
func (w *money) lost(format string, args ...any) {
	w.losses++
	w.t.watch.Violated("money: "+format, args...)
}

// quiet reports whether honest sites have paid each other.
func (w *money) quiet() bool {
	for p, cost := range w.spent {
		if w.t.is(p.payee) && w.paid[p] != cost {
			return false
		}
	}
	return true
}

// unsigned returns how many bills honest sites have that nobody has signed.
func (w *money) unsigned() (count int64) {
	for i := range w.t.Sites {
		if _, bills := w.t.siteAt(i).Desk().Open(); w.t.honest(i) {
			count += int64(bills)
		}
	}
	return count
}

// refused returns how many requests banks have refused.
func (w *money) refused() (count int64) {
	for b := range banks {
		for _, n := range w.t.siteAt(b).Desk().Ledger().Refused() {
			count += n
		}
	}
	return count
}

func (w *money) atRest() error {
	for i, id := range w.t.IDs {
		if !w.t.honest(i) {
			continue
		}
		has, want := grid.Credits(0), grid.Credits(grant)
		for b := range banks {
			balance, _ := w.t.siteAt(b).Desk().Ledger().Balance(id)
			has += balance.Settled + balance.Committed
		}
		for p, amount := range w.paid {
			if p.payer == id {
				want -= amount
			}
			if p.payee == id {
				want += amount
			}
		}
		if has != want {
			w.lost("%s has %v, want %v", w.t.Sites[i].Name, has, want)
		}
	}
	for p, cost := range w.spent {
		if w.t.is(p.payee) && w.paid[p] != cost {
			w.lost("jobs of %s have cost %v at %s, and banks have paid %v", w.t.name(p.payer), cost, w.t.name(p.payee), w.paid[p])
		}
	}
	return w.t.watch.Violation(0)
}
