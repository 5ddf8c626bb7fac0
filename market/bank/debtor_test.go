package bank

import (
	"fmt"
	"testing"

	"gridnode/grid"
)

func TestDebtors(t *testing.T) {
	d := NewDesk(Config{Self: "self"}, 1)
	for bill := range debtsMax {
		if !d.Trusts(grid.Hour, "owes") {
			t.Errorf("a debtor after %d bills, want %d", bill, debtsMax)
		}
		d.debtors.owes(grid.Hour, "owes")
	}
	for _, c := range []struct {
		now    grid.Time
		payer  grid.SiteID
		trusts bool
	}{
		{grid.Hour, "owes", false}, {grid.Hour, "pays", true},
		{grid.Hour + debtSpan - 1, "owes", false}, {grid.Hour + debtSpan, "owes", true},
	} {
		if d.Trusts(c.now, c.payer) != c.trusts {
			t.Errorf("%s at %v: want trusted %v", c.payer, c.now, c.trusts)
		}
	}
	d.debtors.owes(grid.Hour+debtSpan, "owes")
	if !d.Trusts(grid.Hour+debtSpan, "owes") {
		t.Error("what was forgiven counts again")
	}
	for i := range debtorsMax { // the newest are kept
		d.debtors.owes(3*grid.Day+grid.Time(i), grid.SiteID(fmt.Sprint("site-", i)))
	}
	d.debtors.owes(4*grid.Day, "one more")
	if _, kept := d.debtors["one more"]; !kept || len(d.debtors) != debtorsMax {
		t.Errorf("%d debtors are remembered, the newest: %v; want %d", len(d.debtors), kept, debtorsMax)
	}
}
