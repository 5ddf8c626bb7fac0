package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

func newBook(t *testing.T, site grid.SiteID, processors int64) *Book {
	t.Helper()
	c, err := lrms.New(lrms.Config{Processors: processors, Discipline: lrms.FCFS})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{Site: site}, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// state prints everything a refused call must leave alone.
func state(b *Book) string { return fmt.Sprint(b.Leases(), b.Totals(), b.NextTimer()) }

func TestBadWantsAreRefused(t *testing.T) {
	b := newBook(t, "a", 4)
	good := Want{Processors: 1, Span: grid.Hour}
	for i, tt := range []struct {
		lender grid.SiteID
		change func(*Want)
	}{
		{"a", func(*Want) {}},
		{"", func(*Want) {}},
		{"b", func(w *Want) { w.Processors = 0 }},
		{"b", func(w *Want) { w.Processors = -3 }},
		{"b", func(w *Want) { w.Processors = ProcessorsMax + 1 }},
		{"b", func(w *Want) { w.Span = 0 }},
		{"b", func(w *Want) { w.Span = -1 }},
		{"b", func(w *Want) { w.Span = SpanLimit + 1 }},
		{"b", func(w *Want) { w.Hold = -1 }},
		{"b", func(w *Want) { w.Patience = PatienceLimit + 1 }},
		{"b", func(w *Want) { w.TTL = TTLMax + 1 }},
		{"b", func(w *Want) { w.Most = -1 }},
		{"b", func(w *Want) { w.Within = grid.SpanMax + 1 }},
	} {
		w, out, before := good, grid.Outbox{}, state(b)
		tt.change(&w)
		if _, err := b.Request(grid.Hour, tt.lender, w, &out); !errors.Is(err, ErrBounds) || state(b) != before || len(out.Effects) > 0 {
			t.Errorf("case %d: %v, state %s, effects %v", i, err, state(b), out.Effects)
		}
	}
}

// lent returns a book that has lent three of its eight processors to a.
func lent(t *testing.T) (*Book, Lease) {
	b := newBook(t, "b", 8)
	var out grid.Outbox
	now := grid.Hour
	b.Step(now, &grid.Delivery{From: "a", Message: &Request{Number: 5, Processors: 3, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "a"}}, &out)
	id := ID{"a", 5}
	if err := b.Grant(now, id, Terms{}, &out); err != nil {
		t.Fatal(err)
	}
	l, _ := b.Get(id)
	b.Step(now, &grid.Delivery{From: "a", Message: &Claim{Number: 5, Epoch: l.Epoch, Sequence: 1, Stamp: now}}, &out)
	l, _ = b.Get(id)
	if l.State != Active || b.cluster.Idle(now) != 5 {
		t.Fatalf("%+v, %d idle", l, b.cluster.Idle(now))
	}
	return b, l
}

// TestOthersCannotTouchALease: what a stranger, or an old message, says of a lease is
// answered and changes nothing.
func TestOthersCannotTouchALease(t *testing.T) {
	b, l := lent(t)
	for _, m := range []grid.Message{
		&Release{l.Number, l.Epoch},
		&Renew{Number: l.Number, Epoch: l.Epoch, Sequence: 2},
		&Claim{Number: l.Number, Epoch: l.Epoch, Sequence: 2},
	} {
		for _, from := range []grid.SiteID{"c", "b"} {
			var out grid.Outbox
			before := state(b)
			b.Step(grid.Hour, &grid.Delivery{From: from, Message: m}, &out)
			if state(b) != before {
				t.Errorf("%T from %s changed the book to %s", m, from, state(b))
			}
			if r, ok := out.Sends[0].Message.(*Released); len(out.Sends) != 1 || !ok || r.Cause != Unknown {
				t.Errorf("%T from %s is answered with %+v", m, from, out.Sends)
			}
		}
	}
	a := newBook(t, "a", 1)
	var asked grid.Outbox
	id, err := a.Request(grid.Hour, "b", Want{Processors: 1, Span: grid.Hour}, &asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []grid.Message{ // of a site that was not asked
		&Refuse{Number: id.Number, Reason: Busy}, &Released{Number: id.Number},
		&Grant{Number: id.Number, Epoch: 1, Hold: 1, Span: 1, Source: "c", Key: 1, Hops: 1},
	} {
		var out grid.Outbox
		before := state(a)
		a.Step(grid.Hour, &grid.Delivery{From: "c", Message: m}, &out)
		if state(a) != before {
			t.Errorf("%T from a site that was not asked changed the book to %s", m, state(a))
		}
	}
	for _, m := range []grid.Message{
		&Renew{Number: l.Number, Epoch: l.Epoch + 1, Sequence: 2},
		&Release{l.Number, l.Epoch + 1},
		&Claim{Number: l.Number + 1, Epoch: l.Epoch, Sequence: 1},
	} {
		var out grid.Outbox
		before := state(b)
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: m}, &out)
		if state(b) != before || len(out.Sends) != 1 {
			t.Errorf("%T of another epoch or number changed the book to %s", m, state(b))
		}
	}
	// Words of a lender that nothing was asked of.
	for _, m := range []grid.Message{
		&Grant{Number: 9, Epoch: 1, Hold: 1, Span: 1, Source: "z", Key: 1, Hops: 1},
		&Renewed{Number: 9, Epoch: 1, Sequence: 1, Term: 1, Limit: 1},
		&Refuse{Number: 9, Reason: Busy}, &Released{Number: 9}, &Revoke{Number: 9, Epoch: 1},
	} {
		var out grid.Outbox
		before := state(b)
		b.Step(grid.Hour, &grid.Delivery{From: "z", Message: m}, &out)
		if state(b) != before {
			t.Errorf("%T out of nowhere changed the book to %s", m, state(b))
		}
		if _, gives := m.(*Grant); gives || m.MessageKind() == (&Revoke{}).MessageKind() { // of what nobody has here
			if _, back := out.Sends[0].Message.(*Release); len(out.Sends) != 1 || !back {
				t.Errorf("%T out of nowhere is answered with %+v", m, out.Sends)
			}
		}
	}
}

func TestEndedLeasesStayEnded(t *testing.T) {
	b, l := lent(t)
	var out grid.Outbox
	b.Step(l.End, grid.Tick{}, &out)
	if len(b.Leases()) != 0 || b.cluster.Idle(l.End) != 8 || b.Totals() != (Totals{}) {
		t.Fatalf("at its end: %s", state(b))
	}
	for _, m := range []grid.Message{
		&Request{Number: 5, Processors: 3, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "a"}, // a late copy
		&Renew{Number: 5, Epoch: l.Epoch, Sequence: 2},
		&Claim{Number: 5, Epoch: l.Epoch, Sequence: 1},
		&Release{5, l.Epoch},
	} {
		out.Reset()
		b.Step(l.End, &grid.Delivery{From: "a", Message: m}, &out)
		if len(b.Leases()) != 0 || len(out.Locals) != 0 || len(out.Sends) != 1 {
			t.Errorf("%T after the end: %s, answer %+v", m, state(b), out.Sends)
		}
	}
	for name, err := range map[string]error{
		"renew":  b.Renew(l.End, l.ID, grid.Hour, &out),
		"claim":  b.Claim(l.End, l.ID, &out),
		"free":   b.Release(l.End, l.ID, &out),
		"revoke": b.Revoke(l.End, l.ID, true, &out),
		"grant":  b.Grant(l.End, l.ID, Terms{}, &out),
		"vacate": b.Vacated(l.End, l.ID, &out),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of an ended lease: %v", name, err)
		}
	}
}

func TestLongLeasesAndLoopsAreRefused(t *testing.T) {
	b := newBook(t, "b", 8)
	for _, tt := range []struct {
		m   *Request
		why Reason
	}{
		{&Request{Number: 1, Processors: 1, Span: 31 * grid.Day, Sink: "a"}, TooLong},
		{&Request{Number: 2, Processors: 1, Span: grid.Hour, Sink: "b"}, Loop},
		{&Request{Number: 3, Processors: 0, Span: grid.Hour, Sink: "a"}, Malformed},
	} {
		var out grid.Outbox
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: tt.m}, &out)
		r, ok := out.Sends[0].Message.(*Refuse)
		if !ok || r.Reason != tt.why || len(b.Leases()) != 0 || len(out.Locals) != 0 {
			t.Errorf("%+v: %+v", tt.m, out.Sends[0].Message)
		}
	}
}

func TestPeersAreBounded(t *testing.T) {
	b := newBook(t, "b", 8)
	var out grid.Outbox
	for n := range uint64(PerPeerMax) + 1 {
		out.Reset()
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Request{Number: n + 1, Processors: 1, Span: grid.Hour, Patience: grid.Hour, Sink: "a"}}, &out)
	}
	if r, ok := out.Sends[0].Message.(*Refuse); !ok || r.Reason != Full || len(b.Leases()) != PerPeerMax {
		t.Errorf("request %d: %+v, %d kept", PerPeerMax+1, out.Sends, len(b.Leases()))
	}
}

func TestHierarchiesMustBeOne(t *testing.T) {
	for name, links := range map[string][]Link{
		"own parent":             {{"a", Parent}},
		"own sibling":            {{"a", Sibling}},
		"parent and child":       {{"b", Parent}, {"b", Child}},
		"two parents":            {{"b", Parent}, {"c", Parent}},
		"the same sibling twice": {{"b", Sibling}, {"b", Sibling}},
	} {
		if err := CheckLinks("a", links); !errors.Is(err, ErrLoop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckLinks("a", []Link{{"b", Parent}, {"c", Sibling}, {"d", Child}, {"e", Child}}); err != nil {
		t.Error(err)
	}
	b := newBook(t, "a", 1)
	if _, err := NewMatchmaker(MatchConfig{Links: []Link{{"a", Parent}}}, b.cluster, b, nil, rand.New(rand.NewPCG(1, 2))); !errors.Is(err, ErrLoop) {
		t.Errorf("a matchmaker whose site is its own parent: %v", err)
	}
}

// TestLoopsEnd: sites whose configurations say that each is above the other pass a
// request on until somebody has seen it, not for ever.
func TestLoopsEnd(t *testing.T) {
	ids := []grid.SiteID{"b", "c", "d", "a"}
	books, matchers := map[grid.SiteID]*Book{}, map[grid.SiteID]*Matchmaker{}
	for i, id := range ids {
		books[id] = newBook(t, id, 1)
		links := []Link{{ids[(i+1)%3], Parent}, {ids[(i+2)%3], Child}}
		if id == "a" { // outside the loop
			links = []Link{{"b", Parent}}
		}
		m, err := NewMatchmaker(MatchConfig{
			Links: links, Lend: true, Threshold: 1000, TTL: TTLMax,
		}, books[id].cluster, books[id], nil, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		matchers[id] = m
	}
	var out grid.Outbox
	if err := matchers["a"].Submit(0, Work{Request: lrms.Request{ID: grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}, Processors: 5, Estimate: grid.Hour}}, &out); err != nil {
		t.Fatal(err)
	}
	matchers["a"].Step(0, grid.Tick{}, &out)
	type sent struct {
		from grid.SiteID
		grid.Send
	}
	var flight []sent
	drain := func(id grid.SiteID) {
		for i := 0; i < len(out.Locals); i++ {
			matchers[id].Step(0, out.Locals[i], &out)
		}
		for _, s := range out.Sends {
			flight = append(flight, sent{id, s})
		}
		out = grid.Outbox{}
	}
	drain("a")
	messages := 0
	for len(flight) > 0 {
		if messages++; messages > 12 {
			t.Fatal("a request goes round for ever")
		}
		s := flight[0]
		flight = flight[1:]
		books[s.To].Step(0, &grid.Delivery{From: s.from, Message: s.Message}, &out)
		drain(s.To)
	}
	if messages < 4 {
		t.Errorf("%d messages: nobody was asked", messages)
	}
}

// TestPriceIsPaid: a lender lends to who pays its price, or any, and refuses who pays less, and says what it asks for.
func TestPriceIsPaid(t *testing.T) {
	for _, tt := range []struct {
		most  grid.Price
		lends bool
	}{{0, true}, {6, false}, {7, true}, {8, true}} {
		b := newBook(t, "b", 8)
		b.cfg.Tariff = func(grid.SiteID, grid.SiteID) (grid.Price, bool) { return 7, true }
		var out grid.Outbox
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Request{Number: 1, Processors: 3, Span: grid.Hour, Sink: "a", Bank: "k", Most: tt.most}}, &out)
		lends := len(out.Locals) == 1 && len(out.Sends) == 0
		var refused *Refuse
		if len(out.Sends) == 1 {
			refused, _ = out.Sends[0].Message.(*Refuse)
		}
		if lends != tt.lends || !lends && (refused == nil || refused.Reason != Dear || refused.Price != 7) {
			t.Errorf("to who pays %v at most: %v, %v; want %t", tt.most, out.Locals, out.Sends, tt.lends)
		}
	}
}

// TestPriceIsAgreed: a grant at a price that its borrower has not said it would pay, or of
// one that pays nobody, is given back; and a lease that is not paid for is not claimed, nor
// renewed for longer than it was paid for.
func TestPriceIsAgreed(t *testing.T) {
	grant := func(b *Book, bank grid.SiteID, price grid.Price) (in []grid.Input, sent []grid.Send) {
		b.cfg.Bank = bank
		var out grid.Outbox
		id, err := b.Request(grid.Hour, "b", Want{Processors: 1, Span: grid.Hour, Most: 5}, &out)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		b.Step(grid.Hour, &grid.Delivery{From: "b", Message: &Grant{
			Number: id.Number, Epoch: 9, Hold: grid.Minute, Span: grid.Hour, Source: "b", Key: 9, Hops: 1, Price: price,
		}}, &out)
		return out.Locals, out.Sends
	}
	for _, tt := range []struct {
		bank  grid.SiteID
		price grid.Price
		taken bool
	}{{"k", 5, true}, {"k", 0, true}, {"", 0, true}, {"k", 6, false}, {"", 1, false}} {
		locals, sent := grant(newBook(t, "a", 1), tt.bank, tt.price)
		_, taken := locals[0].(*Granted)
		r, refused := locals[0].(*Refused)
		refused = refused && r.Reason == Dear
		released := len(sent) == 1 && sent[0].Message.MessageKind() == (&Release{}).MessageKind()
		if taken != tt.taken || !taken && (!refused || !released) {
			t.Errorf("bank %q, price %v: told %v, sent %v; want taken %t", tt.bank, tt.price, locals, sent, tt.taken)
		}
	}

	b := newBook(t, "b", 8)
	b.cfg.Tariff = func(grid.SiteID, grid.SiteID) (grid.Price, bool) { return 7, true }
	var out grid.Outbox
	b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Request{Number: 1, Processors: 3, Span: grid.Hour, Subject: grid.JobID{Lo: 1}, Sink: "a", Bank: "k"}}, &out)
	id := ID{"a", 1}
	if err := b.Grant(grid.Hour, id, Terms{}, &out); err != nil {
		t.Fatal(err)
	}
	l, _ := b.Get(id)
	claim := func() State {
		b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Claim{Number: 1, Epoch: l.Epoch, Sequence: 1}}, &out)
		l, _ := b.Get(id)
		return l.State
	}
	if s := claim(); s != Held {
		t.Errorf("a lease that is not paid for is %v after a claim", s)
	}
	if err := b.Settle(grid.Hour, id, true, &out); err != nil {
		t.Fatal(err)
	}
	if s := claim(); s != Active {
		t.Errorf("a lease that is paid for is %v after a claim", s)
	}
	before, _ := b.Get(id)
	b.Step(grid.Hour, &grid.Delivery{From: "a", Message: &Renew{Number: 1, Epoch: l.Epoch, Sequence: 2, Span: 9 * grid.Hour}}, &out)
	if after, _ := b.Get(id); after.Limit != before.Limit {
		t.Errorf("it was renewed from %v to %v, and paid for until the former", before.Limit, after.Limit)
	}
}
