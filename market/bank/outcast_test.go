package bank

import (
	"testing"

	"gridnode/grid"
)

// circle is a bank, a payer and a payee that say things to each other.
type circle struct {
	t     *testing.T
	now   grid.Time
	desks map[grid.SiteID]*Desk
	told  []grid.Input // to the rest of a site
}

// newCircle returns one in which alice has ten credits.
func newCircle(t *testing.T) *circle {
	c := &circle{t: t, now: grid.Hour, desks: make(map[grid.SiteID]*Desk)}
	for i, site := range []grid.SiteID{here, alice, bob} {
		c.desks[site] = NewDesk(Config{Self: site, Offer: site == here, Bank: here}, uint64(i))
	}
	c.do(here, func(d *Desk, out *grid.Outbox) { d.Step(c.now, &Grant{ID: id(1), To: alice, Amount: credits(10)}, out) })
	return c
}

// do has a desk do something, and delivers what is said then. Nobody hears an outcast.
func (c *circle) do(at grid.SiteID, act func(d *Desk, out *grid.Outbox)) {
	out := new(grid.Outbox)
	act(c.desks[at], out)
	c.told = append(c.told, out.Locals...)
	for _, s := range out.Sends {
		if d := c.desks[s.To]; !d.Outcasts().Has(at) {
			c.do(s.To, func(d *Desk, out *grid.Outbox) { d.Step(c.now, &grid.Delivery{From: at, Message: s.Message}, out) })
		}
	}
}

// draw has alice write a cheque over three credits for bob, who keeps it if he takes it.
func (c *circle) draw(n uint64, takes bool) {
	c.t.Helper()
	c.do(alice, func(d *Desk, out *grid.Outbox) { d.Draw(c.now, task(n), bob, credits(3), grid.Hour, out) })
	cheque := c.desks[alice].Cheque(task(n))
	if cheque == nil {
		c.t.Fatal("no cheque")
	}
	if takes {
		c.do(bob, func(d *Desk, out *grid.Outbox) { d.Take(cheque, out) })
	}
}

// castOut tells sites that one is an outcast.
func (c *circle) castOut(site grid.SiteID, at ...grid.SiteID) {
	for _, s := range at {
		c.do(s, func(d *Desk, out *grid.Outbox) { d.Outcasts().Add(c.now, site, out) })
	}
}

// wait lets timers go off for a span.
func (c *circle) wait(span grid.Time) {
	for end := c.now + span; ; {
		next := grid.Never
		for _, d := range c.desks {
			next = min(next, d.NextTimer())
		}
		if next > end {
			c.now = end
			return
		}
		c.now = max(c.now, next)
		for _, site := range []grid.SiteID{here, alice, bob} {
			c.do(site, func(d *Desk, out *grid.Outbox) { d.Step(c.now, grid.Tick{}, out) })
		}
	}
}

// want compares what alice and bob have settled, and what is committed of alice's.
func (c *circle) want(settled, committed, earned int64) {
	c.t.Helper()
	l := c.desks[here].Ledger()
	if err := l.Audit(); err != nil {
		c.t.Error(err)
	}
	a, _ := l.Balance(alice)
	b, _ := l.Balance(bob)
	if a.Settled != credits(settled) || a.Committed != credits(committed) || b.Settled != credits(earned) {
		c.t.Errorf("alice has %v and %v committed, bob %v; want %d, %d, %d", a.Settled, a.Committed, b.Settled, settled, committed, earned)
	}
}

// open compares how many cheques of alice's and bills of bob's are open.
func (c *circle) open(payments, bills int) {
	c.t.Helper()
	p, _ := c.desks[alice].Open()
	if _, b := c.desks[bob].Open(); p != payments || b != bills {
		c.t.Errorf("alice has %d cheques open, bob %d bills; want %d and %d", p, b, payments, bills)
	}
}

// A cheque of an outcast is worth what its payee claims, as soon as the bank has heard of it,
// too. Before, the payee's word alone is worth nothing.
func TestChequeOfAnOutcastIsPaid(t *testing.T) {
	c := newCircle(t)
	c.draw(1, true)
	c.draw(2, true)
	c.castOut(alice, bob)
	c.do(bob, func(d *Desk, out *grid.Outbox) { d.Outcasts().Claim(c.now, alice, task(1), credits(2), out) })
	c.wait(grid.Minute)
	c.want(4, 6, 0)
	if _, bills := c.desks[bob].Open(); bills != 2 {
		t.Errorf("bob has %d bills open, want 2: he gave up too early", bills)
	}
	c.castOut(alice, here)
	c.wait(redeemMax + grid.Minute*5)
	c.want(5, 3, 2)
	c.do(bob, func(d *Desk, out *grid.Outbox) { d.Outcasts().Claim(c.now, alice, task(2), credits(9), out) }) // its ceiling at most
	c.want(5, 0, 5)
	if _, bills := c.desks[bob].Open(); bills != 0 || c.desks[bob].Stats().Unpaid != 0 {
		t.Errorf("bob has %d bills open, %v unpaid", bills, c.desks[bob].Stats().Unpaid)
	}
}

// What an outcast has signed for counts: it is not claimed more.
func TestReceiptOfAnOutcastCounts(t *testing.T) {
	c := newCircle(t)
	c.draw(1, true)
	cheque := c.desks[alice].Cheque(task(1))
	c.castOut(alice, bob, here)
	c.do(bob, func(d *Desk, out *grid.Outbox) {
		d.Agreed(c.now, alice, task(1), credits(3), receipt(cheque, alice, credits(1)), out)
	})
	c.want(9, 0, 1)
}

// What a payer owes to an outcast is paid on its own word, and what it does not owe comes back
// at once.
func TestChequeForAnOutcastComesBack(t *testing.T) {
	for name, inTime := range map[string]bool{"the bank knows": true, "the bank hears of it later": false} {
		t.Run(name, func(t *testing.T) {
			c := newCircle(t)
			c.draw(1, true)
			c.draw(2, false)
			c.draw(3, true)
			c.do(alice, func(d *Desk, out *grid.Outbox) { d.Agree(task(1), bob, credits(2), out) })
			if inTime {
				c.castOut(bob, here)
			}
			c.castOut(bob, alice)
			c.do(alice, func(d *Desk, out *grid.Outbox) {
				d.Unwanted(c.now, task(2), out)
				d.Outcasts().Settle(c.now, task(3), credits(1), out)
			})
			if !inTime {
				c.want(1, 9, 0)
				c.castOut(bob, here)
				c.wait(redeemMax + 5*grid.Minute)
			}
			c.want(7, 0, 3)
			if payments, _ := c.desks[alice].Open(); payments != 0 {
				t.Errorf("%d payments are open", payments)
			}
		})
	}
}

// A payer cannot take back the cheque of a member, whatever it says of that.
func TestOnlyOutcastsNeedNoSignature(t *testing.T) {
	c := newCircle(t)
	c.draw(1, true)
	c.castOut(bob, alice)
	c.do(alice, func(d *Desk, out *grid.Outbox) { d.Unwanted(c.now, task(1), out) })
	c.want(7, 3, 0)
	c.do(alice, func(d *Desk, _ *grid.Outbox) { d.Outcasts().Remove(bob) })
	c.do(alice, func(d *Desk, _ *grid.Outbox) {
		if d.Outcasts().Has(bob) {
			t.Error("bob was taken in again")
		}
	})
}

// The cheques of a bank that is an outcast are worth nothing, and no more are drawn.
func TestBankThatIsAnOutcast(t *testing.T) {
	c := newCircle(t)
	c.draw(1, true)
	c.draw(2, false)
	c.do(alice, func(d *Desk, out *grid.Outbox) {
		d.Unwanted(c.now, task(2), new(grid.Outbox))                // its return is lost
		d.Draw(c.now, task(3), bob, 1, grid.Hour, new(grid.Outbox)) // and so is this draw
	})
	c.told = nil
	c.castOut(here, alice, bob)
	declined, ok := c.told[0].(*Declined)
	if !ok || declined.Silent || declined.Task != task(3) {
		t.Errorf("told %+v", c.told)
	}
	c.open(1, 0) // of the job that is away
	c.do(alice, func(d *Desk, out *grid.Outbox) { d.Unwanted(c.now, task(1), out) })
	c.open(0, 0)
	c.do(bob, func(d *Desk, out *grid.Outbox) { // whose payer has not heard of it
		d.Step(c.now, &grid.Delivery{From: alice, Message: &Return{&Cheque{Bank: here, Payer: alice, Payee: bob, Task: task(5), Ceiling: 1, Expires: grid.Day}}}, out)
	})
	c.open(0, 0)
	if c.desks[bob].Stats().Unpaid != credits(3) || c.desks[bob].Accepts(here) {
		t.Errorf("bob is owed %v, accepts the bank: %t", c.desks[bob].Stats().Unpaid, c.desks[bob].Accepts(here))
	}
	c.told = nil
	c.do(alice, func(d *Desk, out *grid.Outbox) { d.Draw(c.now, task(4), bob, 1, grid.Hour, out) })
	if declined, ok := c.told[0].(*Declined); !ok || declined.Silent || declined.Reason == "" {
		t.Errorf("told %+v", c.told)
	}
}

// Jobs that wait for a silent bank do so no more once it is an outcast.
func TestSilentBankThatIsAnOutcast(t *testing.T) {
	c := newCircle(t)
	c.castOut(alice, here) // so that it does not answer
	c.do(alice, func(d *Desk, out *grid.Outbox) { d.Draw(c.now, task(1), bob, 1, grid.Hour, out) })
	c.wait(drawMax + grid.Second)
	if declined, ok := c.told[len(c.told)-1].(*Declined); !ok || !declined.Silent {
		t.Fatalf("told %+v", c.told)
	}
	c.told = nil
	c.castOut(here, alice)
	if _, back := c.told[len(c.told)-1].(*Back); !back {
		t.Errorf("told %+v, want that it is worth another try", c.told)
	}
}
