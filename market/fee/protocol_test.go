package fee

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market/bank"
)

// spoken is a message, and who has sent it.
type spoken struct {
	from grid.SiteID
	m    wire.Message
}

// conversation returns what is said of the lease of trio.terms, one message of each kind.
func conversation(t testing.TB) (*trio, map[grid.Kind]spoken) {
	w := newTrio(t)
	said := make(map[grid.Kind]spoken)
	w.tamper = func(m grid.Message) {
		switch m := m.(type) {
		case *Advance:
			said[m.MessageKind()] = spoken{w.borrower.id, m}
		case *Agreed:
			said[m.MessageKind()] = spoken{w.borrower.id, m}
		case *Advances:
			said[m.MessageKind()] = spoken{w.lender.id, m}
		case *Bill:
			said[m.MessageKind()] = spoken{w.lender.id, m}
		}
	}
	w.paid(20 * grid.Minute)
	if len(said) != len(Protocol.Decoders) {
		t.Fatalf("%d kinds of message were sent, want %d", len(said), len(Protocol.Decoders))
	}
	return w, said
}

// TestMessagesSurviveTheWire: what is decoded is what was sent.
func TestMessagesSurviveTheWire(t *testing.T) {
	w, said := conversation(t)
	all := []spoken{
		{w.lender.id, &Advances{Number: 7, Epoch: 9, Refusal: NotGood}},
		{w.borrower.id, &Agreed{Number: 7, Epoch: 9}},
	}
	for _, s := range said {
		all = append(all, s)
	}
	for _, s := range all {
		body, err := proto.Marshal(s.m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		m, err := Protocol.Decoders[s.m.MessageKind()](s.from, body)
		if err != nil {
			t.Errorf("%s: %v", wire.KindName(s.m.MessageKind()), err)
			continue
		}
		if got, err := proto.Marshal(m.(wire.Message).Proto()); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%+v became %+v", s.m, m)
		}
	}
}

// TestDecodersRefuse: bytes that are no message, fields out of their bounds, and papers of another
// site or for something else.
func TestDecodersRefuse(t *testing.T) {
	w, said := conversation(t)
	cheque := said[wire.FeeAdvance].m.(*Advance).Cheque
	claim, agreement := said[wire.FeeBill].m.(*Bill).Claim, said[wire.FeeAgreed].m.(*Agreed).Agreement
	stranger := w.bank.id
	for kind, s := range said {
		if m, err := Protocol.Decoders[kind](s.from, []byte{0xff}); err == nil || m != nil {
			t.Errorf("%s: of no message it makes %v, %v", wire.KindName(kind), m, err)
		}
	}
	for name, tt := range map[string]struct {
		from grid.SiteID
		kind grid.Kind
		p    proto.Message
	}{
		"cheque, no number":           {w.borrower.id, wire.FeeAdvance, &wirepb.FeeAdvance{Epoch: 9, Cheque: cheque.Sealed}},
		"cheque, no epoch":            {w.borrower.id, wire.FeeAdvance, &wirepb.FeeAdvance{Number: 7, Cheque: cheque.Sealed}},
		"cheque of another site":      {stranger, wire.FeeAdvance, &wirepb.FeeAdvance{Number: 7, Epoch: 9, Cheque: cheque.Sealed}},
		"cheque for another lease":    {w.borrower.id, wire.FeeAdvance, &wirepb.FeeAdvance{Number: 8, Epoch: 9, Cheque: cheque.Sealed}},
		"cheque left out":             {w.borrower.id, wire.FeeAdvance, &wirepb.FeeAdvance{Number: 7, Epoch: 9}},
		"a receipt for a cheque":      {w.borrower.id, wire.FeeAdvance, &wirepb.FeeAdvance{Number: 7, Epoch: 9, Cheque: agreement.Sealed}},
		"answer, no number":           {w.lender.id, wire.FeeAdvanced, &wirepb.FeeAdvanced{Epoch: 9}},
		"answer, no epoch":            {w.lender.id, wire.FeeAdvanced, &wirepb.FeeAdvanced{Number: 7}},
		"answer, beyond refusals":     {w.lender.id, wire.FeeAdvanced, &wirepb.FeeAdvanced{Number: 7, Epoch: 9, Refusal: 256}},
		"bill, no number":             {w.lender.id, wire.FeeBill, &wirepb.FeeBill{Epoch: 9, Claim: claim.Sealed}},
		"bill, no epoch":              {w.lender.id, wire.FeeBill, &wirepb.FeeBill{Number: 7, Claim: claim.Sealed}},
		"bill of another site":        {stranger, wire.FeeBill, &wirepb.FeeBill{Number: 7, Epoch: 9, Claim: claim.Sealed}},
		"bill for another lease":      {w.lender.id, wire.FeeBill, &wirepb.FeeBill{Number: 8, Epoch: 9, Claim: claim.Sealed}},
		"bill, the other's receipt":   {w.lender.id, wire.FeeBill, &wirepb.FeeBill{Number: 7, Epoch: 9, Claim: agreement.Sealed}},
		"bill, receipt left out":      {w.lender.id, wire.FeeBill, &wirepb.FeeBill{Number: 7, Epoch: 9}},
		"agreed, no number":           {w.borrower.id, wire.FeeAgreed, &wirepb.FeeAgreed{Epoch: 9, Agreement: agreement.Sealed}},
		"agreed, no epoch":            {w.borrower.id, wire.FeeAgreed, &wirepb.FeeAgreed{Number: 7, Agreement: agreement.Sealed}},
		"agreed by another site":      {stranger, wire.FeeAgreed, &wirepb.FeeAgreed{Number: 7, Epoch: 9, Agreement: agreement.Sealed}},
		"agreed for another lease":    {w.borrower.id, wire.FeeAgreed, &wirepb.FeeAgreed{Number: 8, Epoch: 9, Agreement: agreement.Sealed}},
		"agreed, the other's receipt": {w.borrower.id, wire.FeeAgreed, &wirepb.FeeAgreed{Number: 7, Epoch: 9, Agreement: claim.Sealed}},
	} {
		body, err := proto.Marshal(tt.p)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Protocol.Decoders[tt.kind](tt.from, body); err == nil || m != nil {
			t.Errorf("%s: decoded to %+v, %v", name, m, err)
		}
	}
}

// TestWordsThatDoNotConcernALease: of another site, another epoch or another lease, and at
// the wrong time. Nothing is done, and the lease is paid afterwards.
func TestWordsThatDoNotConcernALease(t *testing.T) {
	w := newTrio(t)
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	cheque := func() *bank.Cheque { return w.borrower.desk.Cheque(TaskOf(7)) }
	heed := func(when string, p *party, from grid.SiteID, m wire.Message) {
		t.Helper()
		told := len(p.told)
		if w.do(p, func(out *grid.Outbox) { p.tab.Step(w.now, &grid.Delivery{From: from, Message: m}, out) }); len(w.flight) > 0 {
			t.Errorf("%s: %T %+v is answered with %T", when, m, m, w.flight[0].m)
		}
		if w.flight = nil; len(p.told) != told {
			t.Errorf("%s: %T %+v has told %v", when, m, m, p.told[told:])
		}
	}
	again := func(when string, epoch uint64, want Refusal) {
		t.Helper()
		w.do(w.lender, func(out *grid.Outbox) {
			w.lender.tab.Step(w.now, &grid.Delivery{From: w.borrower.id, Message: &Advance{Number: 7, Epoch: epoch, Cheque: cheque()}}, out)
		})
		if len(w.flight) != 1 || w.flight[0].m.(*Advances).Refusal != want {
			t.Errorf("%s: a copy of the cheque is answered with %+v, want %v", when, w.flight, want)
		}
		w.flight = nil
	}
	stray := func(when string) {
		for _, refusal := range []Refusal{Kept, Gone} {
			heed(when, w.borrower, w.lender.id, &Advances{Number: 8, Epoch: 9, Refusal: refusal})
			heed(when, w.borrower, w.lender.id, &Advances{Number: 7, Epoch: 8, Refusal: refusal})
			heed(when, w.borrower, w.bank.id, &Advances{Number: 7, Epoch: 9, Refusal: refusal})
		}
		heed(when, w.borrower, w.lender.id, &Bill{Number: 7, Epoch: 8})
		heed(when, w.borrower, w.bank.id, &Bill{Number: 7, Epoch: 9})
		heed(when, w.lender, w.borrower.id, &Agreed{Number: 8, Epoch: 9})
		heed(when, w.lender, w.borrower.id, &Agreed{Number: 7, Epoch: 8})
		heed(when, w.lender, w.bank.id, &Agreed{Number: 7, Epoch: 9})
	}
	open := func(when string, owes, owed int) {
		t.Helper()
		if got, _ := w.borrower.tab.Open(); got != owes {
			t.Errorf("%s: the borrower owes for %d leases, want %d", when, got, owes)
		}
		if _, got := w.lender.tab.Open(); got != owed {
			t.Errorf("%s: the lender is owed for %d leases, want %d", when, got, owed)
		}
	}

	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(8, w.now, out) })
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	if len(w.flight) != 1 {
		t.Fatalf("%d messages for one cheque", len(w.flight))
	}
	asked := w.flight
	w.flight = nil
	stray("while the bank is asked")
	heed("while the bank is asked", w.borrower, w.lender.id, &Advances{Number: 7, Epoch: 9})
	heed("while the bank is asked", w.borrower, w.lender.id, &Bill{Number: 7, Epoch: 9})
	open("while the bank is asked", 1, 0)

	w.flight, w.deaf = asked, w.lender
	w.deliver()
	if w.deaf = nil; cheque() == nil {
		t.Fatal("the bank has written no cheque")
	}
	stray("while the lender is given the cheque")
	open("while the lender is given the cheque", 1, 0)

	w.now = w.borrower.tab.NextTimer()
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	w.deliver()
	stray("while it runs")
	heed("while it runs", w.borrower, w.lender.id, &Advances{Number: 7, Epoch: 9, Refusal: Gone}) // a late copy
	again("while it runs", 9, Kept)
	open("while it runs", 1, 0)
	if len(w.borrower.told) != 1 || len(w.lender.told) != 2 { // the site of a lender hears of each copy
		t.Errorf("told were %v and %v", w.borrower.told, w.lender.told)
	}

	w.now += 20*grid.Minute - 2*grid.Second
	delete(w.lent, lent.Ref)
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
	billed := w.flight
	w.flight = nil
	stray("while it is billed")
	open("while it is billed", 1, 1)
	again("while it is billed", 9, Kept)
	again("while it is billed", 8, Gone)
	w.flight = billed
	w.deliver()
	if got := w.settled(); got != 2*grid.Credit {
		t.Errorf("the lease has cost %v, want 2", got)
	}
}
