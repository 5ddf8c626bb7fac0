package fee

import (
	"testing"

	"gridnode/grid"
)

// castOut has two sites settle what is under way with a third, which says nothing more.
func (w *trio) castOut(gone *party) {
	w.flight = nil
	for _, p := range []*party{w.bank, w.borrower, w.lender} {
		if p != gone {
			w.do(p, func(out *grid.Outbox) {
				p.desk.Outcasts().Add(w.now, gone.id, out)
				p.tab.CastOut(w.now, gone.id, out)
			})
		}
	}
	w.deaf = gone
}

// lend has a lease begin that is paid for.
func (w *trio) lend() (borrowed, lent Terms) {
	borrowed, lent = w.terms()
	w.lent[lent.Ref] = lent
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	return borrowed, lent
}

// earned returns what the lender has, once nothing is committed.
func (w *trio) earned() grid.Credits {
	w.t.Helper()
	l := w.bank.desk.Ledger()
	if err := l.Audit(); err != nil {
		w.t.Error(err)
	}
	if b, _ := l.Balance(w.borrower.id); b.Committed != 0 {
		w.t.Errorf("%v of the borrower's are committed", b.Committed)
	}
	earned, _ := l.Balance(w.lender.id)
	return earned.Settled
}

// What a borrower owes that is an outcast is claimed without it: of a lease that was billed
// already, and of one that ends later.
func TestLeaseOfAnOutcastIsPaid(t *testing.T) {
	for name, billed := range map[string]bool{"billed before": true, "ends later": false} {
		t.Run(name, func(t *testing.T) {
			w := newTrio(t)
			_, lent := w.lend()
			w.now += 20 * grid.Minute
			delete(w.lent, lent.Ref)
			end := func() {
				w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
			}
			if billed {
				end()
			}
			w.castOut(w.borrower)
			if !billed {
				end()
			}
			w.deliver()
			if got := w.earned(); got != 2*grid.Credit {
				t.Errorf("the lender has got %v, want 2", got)
			}
			if _, owed := w.lender.tab.Open(); owed != 0 || len(w.lender.records) != 0 {
				t.Errorf("%d leases and %d records are open", owed, len(w.lender.records))
			}
		})
	}
}

// What is owed to a lender that is an outcast is paid by the borrower's meter when the lease
// is over there.
func TestLeaseFromAnOutcastIsPaid(t *testing.T) {
	w := newTrio(t)
	w.lend()
	w.now += 20 * grid.Minute
	w.castOut(w.lender)
	if owes, _ := w.borrower.tab.Open(); owes != 1 {
		t.Fatal("it is settled before it is over")
	}
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now+10*grid.Minute, out) })
	if at := w.borrower.tab.NextTimer(); at != w.now+10*grid.Minute {
		t.Errorf("it is settled at %v, want %v", at, w.now+10*grid.Minute)
	}
	w.now += 10 * grid.Minute
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	w.deliver()
	if got := w.earned(); got != 3*grid.Credit {
		t.Errorf("the lender has got %v, want 3", got)
	}
	if owes, _ := w.borrower.tab.Open(); owes != 0 || len(w.borrower.records) != 0 {
		t.Errorf("%d leases and %d records are open", owes, len(w.borrower.records))
	}
}

// A cheque that its lender has not taken comes back, and the lease is told to be unpaid.
func TestChequeForALenderThatIsAnOutcast(t *testing.T) {
	w := newTrio(t)
	borrowed, _ := w.terms()
	w.deaf = w.lender
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	w.castOut(w.lender)
	w.deliver()
	if got := w.earned(); got != 0 {
		t.Errorf("the lender has got %v", got)
	}
	if _, unpaid := w.borrower.told[len(w.borrower.told)-1].(*Unpaid); !unpaid {
		t.Errorf("the borrower was told %v", w.borrower.told)
	}
}

// Where the bank is an outcast nobody is billed, and nobody waits for a bill.
func TestLeaseThatAnOutcastWouldPay(t *testing.T) {
	w := newTrio(t)
	_, lent := w.lend()
	w.now += 20 * grid.Minute
	w.castOut(w.bank)
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now, out) })
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Step(w.now+lateKeep, grid.Tick{}, out) })
	for _, p := range []*party{w.borrower, w.lender} {
		if owes, owed := p.tab.Open(); owes+owed != 0 || len(p.records) != 0 {
			t.Errorf("%d and %d leases are open, records %d", owes, owed, len(p.records))
		}
	}
}

// Others go on as before when a site that they do not deal with is an outcast, and a lease from an
// outcast whose end nobody knows is looked at in an hour.
func TestOutcastIsNoneOfTheirs(t *testing.T) {
	w := newTrio(t)
	_, lent := w.lend()
	before := w.borrower.tab.NextTimer()
	w.now += grid.Minute
	w.do(w.lender, func(out *grid.Outbox) {
		w.lender.tab.Ended(w.now, lent, grid.Minute, out)
		w.now += grid.Second
		bills := len(out.Sends)
		if w.lender.tab.CastOut(w.now, "nobody", out); len(out.Sends) != bills {
			t.Error("the lease is billed again")
		}
	})
	for _, who := range []grid.SiteID{"nobody", w.lender.id} {
		w.do(w.borrower, func(out *grid.Outbox) {
			w.borrower.desk.Outcasts().Add(w.now, who, out)
			w.borrower.tab.CastOut(w.now, who, out)
		})
		want := before
		if who == w.lender.id {
			want = w.now + checkIn
		}
		if at := w.borrower.tab.NextTimer(); at != want {
			t.Errorf("with %s an outcast it is looked at %v, want %v", who, at, want)
		}
	}
	w.now += checkIn
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	if owes, _ := w.borrower.tab.Open(); owes != 1 {
		t.Error("the lease is settled before it is over")
	}
}
