package lease

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

func TestGrantClaimRenewRelease(t *testing.T) {
	mk := func(id grid.SiteID, p int64) *Book {
		c, _ := lrms.New(lrms.Config{Processors: p})
		b, err := New(Config{Site: id}, c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := mk("a", 2), mk("b", 8)
	var out grid.Outbox
	now := grid.Hour
	id, err := a.Request(now, "b", Want{Processors: 3, Span: grid.Hour}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var locals []grid.Input
	pump := func() {
		for len(out.Sends) > 0 {
			sends := append([]grid.Send(nil), out.Sends...)
			locals = append(locals, out.Locals...)
			out = grid.Outbox{}
			for _, s := range sends {
				to, from := a, grid.SiteID("b")
				if s.To == "b" {
					to, from = b, "a"
				}
				to.Step(now, &grid.Delivery{From: from, Message: s.Message}, &out)
				for _, l := range out.Locals {
					switch l := l.(type) {
					case *Asked:
						if err := b.Grant(now, l.ID, Terms{}, &out); err != nil {
							t.Fatal(err)
						}
					case *Granted:
						a.Claim(now, l.ID, &out)
					}
				}
				locals = append(locals, out.Locals...)
				out.Locals = nil
			}
		}
	}
	pump()
	if a.Totals() != (Totals{Borrowed: 3}) || b.Totals() != (Totals{Lent: 3}) || b.cluster.Idle(now) != 5 {
		t.Fatalf("claimed: %+v at the borrower, %+v at the lender", a.Totals(), b.Totals())
	}
	before, _ := a.Get(id)
	now += 2 * grid.Minute
	a.Step(now, grid.Tick{}, &out)
	pump()
	mine, _ := a.Get(id)
	theirs, _ := b.Get(id)
	if mine.End <= before.End || mine.End >= theirs.End {
		t.Fatalf("renewed from %v to %v, at the lender %v", before.End, mine.End, theirs.End)
	}
	a.Release(now, id, &out)
	pump()
	if len(a.Leases())+len(b.Leases()) != 0 || b.cluster.Idle(now) != 8 || b.Totals() != (Totals{}) {
		t.Fatalf("released: %v at the borrower, %v at the lender", a.Leases(), b.Leases())
	}
	if len(locals) == 0 {
		t.Fatal("nobody was told")
	}
}
