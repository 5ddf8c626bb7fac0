package bank

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// TestPapersAtTheirBounds: what a cheque or a receipt may say at least and at most, wherever it comes from.
func TestPapersAtTheirBounds(t *testing.T) {
	p := newPapers(t)
	most := int64(grid.CreditsMax)
	for name, tt := range map[string]struct {
		change func(*wirepb.BankCheque)
		good   bool
	}{
		"as it is":            {func(*wirepb.BankCheque) {}, true},
		"no ceiling":          {func(c *wirepb.BankCheque) { c.Ceiling = 0 }, false},
		"a trifle":            {func(c *wirepb.BankCheque) { c.Ceiling = 1 }, true},
		"as much as there is": {func(c *wirepb.BankCheque) { c.Ceiling = most }, true},
		"more than there is":  {func(c *wirepb.BankCheque) { c.Ceiling = most + 1 }, false},
		"no expiry":           {func(c *wirepb.BankCheque) { c.Expires = 0 }, false},
		"the first expiry":    {func(c *wirepb.BankCheque) { c.Expires = 1 }, true},
		"the last expiry":     {func(c *wirepb.BankCheque) { c.Expires = int64(grid.SpanMax) }, true},
		"a later expiry":      {func(c *wirepb.BankCheque) { c.Expires = int64(grid.SpanMax) + 1 }, false},
		"no bank":             {func(c *wirepb.BankCheque) { c.Bank = "" }, false},
		"no payer":            {func(c *wirepb.BankCheque) { c.Payer = "" }, false},
		"no payee":            {func(c *wirepb.BankCheque) { c.Payee = "" }, false},
		"a long name":         {func(c *wirepb.BankCheque) { c.Payee = strings.Repeat("x", siteBytesMax+1) }, false},
		"the longest name":    {func(c *wirepb.BankCheque) { c.Payee = strings.Repeat("x", siteBytesMax) }, true},
		"to itself":           {func(c *wirepb.BankCheque) { c.Payee = c.Payer }, false},
		"no epoch":            {func(c *wirepb.BankCheque) { c.Epoch = 0 }, false},
	} {
		c := p.cheque.proto()
		if tt.change(c); tt.good != func() bool { _, err := chequeFromProto(c); return err == nil }() {
			t.Errorf("a cheque, %s: is taken %t", name, !tt.good)
		}
	}
	for name, tt := range map[string]struct {
		change func(*wirepb.BankReceipt)
		good   bool
	}{
		"as it is":           {func(*wirepb.BankReceipt) {}, true},
		"nothing":            {func(r *wirepb.BankReceipt) { r.Amount = 0 }, true},
		"less than nothing":  {func(r *wirepb.BankReceipt) { r.Amount = -1 }, false},
		"more than there is": {func(r *wirepb.BankReceipt) { r.Amount = most + 1 }, false},
		"no bank":            {func(r *wirepb.BankReceipt) { r.Bank = "" }, false},
		"no payer":           {func(r *wirepb.BankReceipt) { r.Payer = "" }, false},
		"no payee":           {func(r *wirepb.BankReceipt) { r.Payee = "" }, false},
		"no epoch":           {func(r *wirepb.BankReceipt) { r.Epoch = 0 }, false},
	} {
		r := p.claim.proto()
		if tt.change(r); tt.good != func() bool { _, err := receiptFromProto(r); return err == nil }() {
			t.Errorf("a receipt, %s: is taken %t", name, !tt.good)
		}
	}
	one := (&Transaction{Sequence: 3, At: 5, Kind: KindRedeem, Payer: p.payer.id, Payee: p.payee.id, Task: task(1), Amount: 3, Refund: 2}).proto()
	for _, n := range []int{statementMax, statementMax + 1} {
		inform := &wirepb.BankInform{}
		for range n {
			inform.Transactions = append(inform.Transactions, one)
		}
		body, err := proto.Marshal(inform)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeInform(p.bank.id, body); (err == nil) != (n <= statementMax) {
			t.Errorf("%d transactions: %v", n, err)
		}
	}
}

// TestRecordsOfBills: what no desk has stored is an error.
func TestRecordsOfBills(t *testing.T) {
	p := newPapers(t)
	bad := p.claim.proto()
	bad.Amount = -1
	cheque := p.cheque.proto()
	cheque.Ceiling = 0
	for name, tt := range map[string]struct {
		record *wirepb.BankBillRecord
		good   bool
	}{
		"open":                {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billOpen)}, true},
		"presented":           {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billRedeeming), Claim: p.claim.proto(), Agreement: p.agreement.proto()}, true},
		"presented, no claim": {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billRedeeming)}, false},
		"no state":            {&wirepb.BankBillRecord{Cheque: p.cheque.proto()}, false},
		"a state too many":    {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billRedeeming) + 1, Claim: p.claim.proto()}, false},
		"no cheque":           {&wirepb.BankBillRecord{State: uint32(billOpen)}, false},
		"a bad cheque":        {&wirepb.BankBillRecord{Cheque: cheque, State: uint32(billOpen)}, false},
		"a bad claim":         {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billRedeeming), Claim: bad}, false},
		"a bad agreement":     {&wirepb.BankBillRecord{Cheque: p.cheque.proto(), State: uint32(billRedeeming), Claim: p.claim.proto(), Agreement: bad}, false},
	} {
		value, err := proto.Marshal(tt.record)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDesk(Config{Self: p.payee.id}, 1)
		if err := d.recoverBill(grid.Hour, value); (err == nil) != tt.good || d.Holds(p.payer.id, task(1)) != tt.good {
			t.Errorf("%s: %v, and it holds the cheque %t", name, err, d.Holds(p.payer.id, task(1)))
		}
	}
	if err := NewDesk(Config{Self: p.payee.id}, 1).recoverBill(grid.Hour, []byte{0xff}); err == nil {
		t.Error("no record, and no error")
	}
}

// TestWhoDoesNotSignOwes: a home that signs nothing for what was done for it, or less than half, is a debtor
// after a few bills; one that owes nothing, or signs for most of it, is none. The cheque is presented in any case.
func TestWhoDoesNotSignOwes(t *testing.T) {
	for name, tt := range map[string]struct {
		signs  bool
		signed grid.Credits
		amount grid.Credits
		owes   bool
		unpaid grid.Credits
	}{
		"nothing":              {false, 0, 4, true, 4},
		"nothing, for nothing": {false, 0, 0, false, 0},
		"all":                  {true, 4, 4, false, 0},
		"half":                 {true, 2, 4, false, 0},
		"less than half":       {true, 1, 4, true, 0},
	} {
		d := NewDesk(Config{Self: "payee", Seal: newSigner(t).seal}, 1)
		var out grid.Outbox
		for n := range uint64(debtsMax) {
			c := &Cheque{Bank: "bank", Payer: "payer", Payee: "payee", Task: task(n + 1), Ceiling: 5, Expires: grid.Day}
			if !d.Trusts(grid.Hour, "payer") {
				t.Errorf("%s: it is a debtor after %d bills", name, n)
			}
			d.Take(c, &out)
			var agreement *Receipt
			if tt.signs {
				agreement = receipt(c, "payer", tt.signed)
			}
			sent := len(out.Sends)
			d.Agreed(grid.Hour, "payer", c.Task, tt.amount, agreement, &out)
			if len(out.Sends) != sent+1 {
				t.Fatalf("%s: the cheque is presented %d times", name, len(out.Sends)-sent)
			}
			m := out.Sends[sent].Message.(*Redeem)
			want := tt.amount
			if !tt.signs {
				want = 0
			}
			if m.Claim.Amount != want || (m.Agreement != nil) != tt.signs {
				t.Errorf("%s: %v are claimed, and the payer's receipt is %+v", name, m.Claim.Amount, m.Agreement)
			}
			d.Agreed(grid.Hour, "payer", c.Task, tt.amount, agreement, &out) // told again
			if len(out.Sends) != sent+1 {
				t.Errorf("%s: it is presented once more", name)
			}
		}
		if d.Trusts(grid.Hour, "payer") == tt.owes {
			t.Errorf("%s: it is a debtor: %t", name, !tt.owes)
		}
		if want := debtsMax * tt.unpaid; d.stats.Unpaid != want {
			t.Errorf("%s: %v are unpaid, want %v", name, d.stats.Unpaid, want)
		}
	}
}

// TestRefusalsInWords: also those that a newer bank has.
func TestRefusalsInWords(t *testing.T) {
	said := make(map[string]Refusal)
	for r := range refusalMax + 2 {
		if before, twice := said[r.String()]; twice || r.String() == "" {
			t.Errorf("%d and %d are both %q", before, r, r)
		}
		said[r.String()] = r
	}
	l, c, out := books(t)
	if len(l.Refused()) > 0 {
		t.Errorf("%v are refused before anything is", l.Refused())
	}
	other := *c
	other.Ceiling++
	if paid, refusal := l.Redeem(grid.Hour, c.Payee, signed(&other, 1), out); paid != 0 || refusal != OtherTerms {
		t.Errorf("a cheque over another sum: %v are paid, %v", paid, refusal)
	}
	if got := l.Refused(); len(got) != 1 || got[OtherTerms.String()] != 1 {
		t.Errorf("refused are %v", got)
	}
}
