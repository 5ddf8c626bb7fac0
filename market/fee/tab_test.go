package fee

import (
	"bytes"
	"crypto/rand"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// party is a site with a key, a desk and a tab.
type party struct {
	id      grid.SiteID
	seal    bank.Seal
	desk    *bank.Desk
	tab     *Tab
	records map[string][]byte
	told    []grid.Input // of the tab
}

// trio is a bank, a borrower with 100 credits, and a lender. What they say travels as bytes.
type trio struct {
	t                      testing.TB
	now                    grid.Time
	bank, borrower, lender *party
	lent                   map[Ref]Terms
	flight                 []mail
	tamper                 func(m grid.Message) // changes what is said before it travels
	deaf                   *party               // hears nothing, and is not heard; nil: nobody
}

type mail struct {
	from, to grid.SiteID
	m        wire.Message
}

func newTrio(t testing.TB) *trio {
	w := &trio{t: t, now: grid.Hour, lent: make(map[Ref]Terms)}
	for _, p := range []**party{&w.bank, &w.borrower, &w.lender} {
		key, public, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := peer.IDFromPublicKey(public)
		seal := func(domain string, payload []byte) ([]byte, error) { return wire.Seal(key, domain, payload) }
		*p = &party{id: grid.SiteID(id.String()), seal: seal, records: make(map[string][]byte)}
	}
	for _, p := range []*party{w.bank, w.borrower, w.lender} {
		p.desk = bank.NewDesk(bank.Config{Self: p.id, Offer: p == w.bank, Bank: w.bank.id, Seal: p.seal}, 1)
		p.tab = New(p.id, p.desk, func(r Ref) (Terms, bool) { t, ok := w.lent[r]; return t, ok })
	}
	w.do(w.bank, func(out *grid.Outbox) {
		w.bank.desk.Step(w.now, &bank.Grant{ID: grid.JobID{Lo: 1}, To: w.borrower.id, Amount: 100 * grid.Credit}, out)
	})
	return w
}

// terms are those of a lease of 2 processors for an hour at 3 credits.
func (w *trio) terms() (borrowed, lent Terms) {
	borrowed = Terms{Ref: Ref{w.lender.id, 7, 9}, Bank: w.bank.id, Processors: 2, Price: 3 * grid.Credit, Longest: grid.Hour}
	lent = borrowed
	lent.Peer = w.borrower.id
	return borrowed, lent
}

// do has a party do something, and carries out what it orders.
func (w *trio) do(p *party, act func(out *grid.Outbox)) {
	var out grid.Outbox
	act(&out)
	out.Feed(0, func(in grid.Input) {
		switch in := in.(type) {
		case *bank.Written:
			if !p.tab.Written(w.now, in.Task, &out) {
				w.t.Errorf("%v, which is written, is said to be for no lease", in.Task)
			}
		case *bank.Declined:
			p.tab.Declined(in, &out)
		case *bank.Back:
		default:
			p.told = append(p.told, in)
		}
	})
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			key, now := out.Records[e.Index].RecordKey(), out.Records[e.Index].AppendRecord(nil)
			if was, stored := p.records[key]; stored && bytes.Equal(was, now) && strings.HasPrefix(key, RecordPrefix) {
				w.t.Errorf("%s is stored again as it is", key)
			}
			p.records[key] = now
		case grid.EffectDelete:
			key := out.Records[e.Index].RecordKey()
			if _, stored := p.records[key]; !stored {
				w.t.Errorf("%s is deleted and is not stored", key)
			}
			delete(p.records, key)
		case grid.EffectSend:
			w.flight = append(w.flight, mail{p.id, out.Sends[e.Index].To, out.Sends[e.Index].Message.(wire.Message)})
		}
	}
	if err := Audit(w.now, p.tab); err != nil {
		w.t.Error(err)
	}
	for _, open := range []iter.Seq[*fee]{maps.Values(p.tab.owes), maps.Values(p.tab.owed)} {
		for f := range open {
			if !bytes.Equal(p.records[f.RecordKey()], f.AppendRecord(nil)) {
				w.t.Errorf("%s in state %d is not stored", f.RecordKey(), f.state)
			}
		}
	}
}

// deliver delivers all messages, and those that they cause.
func (w *trio) deliver() {
	for len(w.flight) > 0 {
		m := w.flight[0]
		w.flight = w.flight[1:]
		if w.tamper != nil {
			w.tamper(m.m)
		}
		body, err := proto.Marshal(m.m.Proto())
		if err != nil {
			w.t.Fatal(err)
		}
		kind := m.m.MessageKind()
		for _, p := range []*party{w.bank, w.borrower, w.lender} {
			if p.id != m.to || w.deaf != nil && (p == w.deaf || m.from == w.deaf.id) {
				continue
			}
			decode, step := bank.Protocol.Decoders[kind], p.desk.Step
			if decode == nil {
				decode, step = Protocol.Decoders[kind], p.tab.Step
			}
			got, err := decode(m.from, body)
			if err != nil {
				w.t.Logf("%s: %v", wire.KindName(kind), err)
				continue
			}
			w.do(p, func(out *grid.Outbox) { step(w.now, &grid.Delivery{From: m.from, Message: got}, out) })
		}
	}
}

// paid runs a lease that is held for a span, and returns what it has cost.
func (w *trio) paid(held grid.Time) grid.Credits {
	w.t.Helper()
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	w.now += held
	delete(w.lent, lent.Ref)
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, held, out) })
	w.deliver()
	return w.settled()
}

// settled checks that nothing is open, and returns what the lender has.
func (w *trio) settled() grid.Credits {
	w.t.Helper()
	l := w.bank.desk.Ledger()
	if err := l.Audit(); err != nil {
		w.t.Error(err)
	}
	b, _ := l.Balance(w.borrower.id)
	earned, _ := l.Balance(w.lender.id)
	if b.Committed != 0 || b.Settled+earned.Settled != 100*grid.Credit {
		w.t.Errorf("the borrower has %+v, the lender %+v, of 100 credits", b, earned)
	}
	for _, p := range []*party{w.borrower, w.lender} {
		if owes, owed := p.tab.Open(); owes+owed > 0 || len(p.records) > 0 {
			w.t.Errorf("%s: %d and %d leases are open, records %d", p.id, owes, owed, len(p.records))
		}
		if at := p.tab.NextTimer(); at != grid.Never {
			w.t.Errorf("%s waits until %v for nothing", p.id, at)
		}
	}
	return earned.Settled
}

// TestLeaseIsPaidForTheTimeItWasHeld: price × processors × time, through the bank; the
// cheque is with the lender before the borrower may claim.
func TestLeaseIsPaidForTheTimeItWasHeld(t *testing.T) {
	w := newTrio(t)
	if got := w.paid(20 * grid.Minute); got != 2*grid.Credit {
		t.Errorf("20 minutes of 2 processors at 3 credits have cost %v, want 2", got)
	}
	if _, ok := w.borrower.told[0].(*Paid); len(w.borrower.told) != 1 || !ok {
		t.Errorf("the borrower was told %v", w.borrower.told)
	}
	if _, ok := w.lender.told[0].(*Advanced); len(w.lender.told) != 1 || !ok {
		t.Errorf("the lender was told %v", w.lender.told)
	}
}

// restart has a party begin anew with what it has stored of leases.
func (w *trio) restart(p *party) {
	w.t.Helper()
	p.tab = New(p.id, p.desk, func(r Ref) (Terms, bool) { t, ok := w.lent[r]; return t, ok })
	for _, key := range slices.Sorted(maps.Keys(p.records)) {
		if strings.HasPrefix(key, RecordPrefix) {
			w.do(p, func(out *grid.Outbox) {
				if err := p.tab.Load(w.now, p.records[key], out); err != nil {
					w.t.Error(err)
				}
			})
		}
	}
}

// TestLeaseIsPaidAfterRestarts: a borrower whose cheque the lender has not heard of gives it again, and
// both know of a lease that goes on.
func TestLeaseIsPaidAfterRestarts(t *testing.T) {
	w := newTrio(t)
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	w.deaf = w.lender
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	w.restart(w.borrower)
	w.deaf = nil
	w.now += askMax
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	w.deliver()
	w.restart(w.borrower)
	w.restart(w.lender)
	if owes, _ := w.borrower.tab.Open(); owes != 1 {
		t.Errorf("the borrower knows of %d leases, want 1", owes)
	}
	w.now += 20 * grid.Minute
	delete(w.lent, lent.Ref)
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
	w.restart(w.lender)
	w.deliver()
	if got := w.settled(); got != 2*grid.Credit {
		t.Errorf("the lease has cost %v, want 2", got)
	}
}

// A lender that bills more than the borrower has measured gets what that has measured.
func TestBorrowerSignsForNoMoreThanItsOwnMeter(t *testing.T) {
	w := newTrio(t)
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now+10*grid.Minute, out) })
	w.now += 30 * grid.Minute
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 30*grid.Minute, out) })
	w.deliver()
	if got, most := w.settled(), grid.Credit*1003/1000; got != most {
		t.Errorf("the lender has got %v, want %v: its processors were free after 10 minutes", got, most)
	}
}

// A bill that comes again, or an end that is told again, is paid once.
func TestLeaseIsBilledOnce(t *testing.T) {
	w := newTrio(t)
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	w.now += 20 * grid.Minute
	for range 2 {
		w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
	}
	w.flight = append(w.flight, w.flight...)
	w.deliver()
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 0, out) })
	w.deliver()
	if got := w.settled(); got != 2*grid.Credit {
		t.Errorf("it has cost %v, want 2", got)
	}
}

// Who releases a lease before its cheque is written pays for what was held all the same,
// if the cheque comes within the hour.
func TestCancelledLeaseIsPaid(t *testing.T) {
	for _, tt := range []struct {
		later grid.Time
		want  grid.Credits
	}{{grid.Second, 5000}, {2 * grid.Hour, 0}} {
		w := newTrio(t)
		borrowed, lent := w.terms()
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
		w.now += 3 * grid.Second
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now, out) })
		w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 3*grid.Second, out) })
		w.now += tt.later
		w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Step(w.now, grid.Tick{}, out) })
		w.deliver()
		if got := w.settled(); got != tt.want {
			t.Errorf("%v later: it has cost %v, want %v", tt.later, got, tt.want)
		}
	}
}

// A lender that takes its hold back gives the cheque back. The bank tells the borrower once: if
// that is lost, the borrower asks, and pays a lender that bills it late all the same.
func TestLostWordOfACheque(t *testing.T) {
	for name, bills := range map[string]bool{"given back": false, "billed late": true} {
		w := newTrio(t)
		borrowed, lent := w.terms()
		w.lent[lent.Ref] = lent
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
		w.deliver()
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now+20*grid.Minute, out) })
		want := grid.Credits(0)
		if bills {
			want = 2 * grid.Credit
		} else {
			w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 0, out) })
			id := w.borrower.id
			w.borrower.id = "nobody" // whom nothing reaches
			w.deliver()
			w.borrower.id = id
			if owes, _ := w.borrower.tab.Open(); owes != 1 {
				t.Errorf("%s: %d leases are open before anybody asks, want 1", name, owes)
			}
		}
		for range 2 {
			w.now += checkIn
			w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
			w.deliver()
		}
		if bills {
			w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, 20*grid.Minute, out) })
			w.deliver()
		}
		if got := w.settled(); got != want {
			t.Errorf("%s: it has cost %v, want %v", name, got, want)
		}
	}
}

// Without funds nothing is owed, and the borrower hears why.
func TestMoneyLimitHoldsForLeases(t *testing.T) {
	w := newTrio(t)
	borrowed, _ := w.terms()
	borrowed.Price = 60 * grid.Credit
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	if got := w.settled(); got != 0 {
		t.Errorf("the lender has %v", got)
	}
	if u, ok := w.borrower.told[0].(*Unpaid); !ok || u.Number != 7 || u.Reason == "" {
		t.Errorf("the borrower was told %v", w.borrower.told)
	}
}

// A cheque that does not pay for the lease is refused, and its money goes back; one that is
// for something else, or another site's, does not even get through.
func TestBadCheques(t *testing.T) {
	for name, change := range map[string]func(w *trio, lent *Terms){
		"too little":     func(_ *trio, lent *Terms) { lent.Longest *= 2 },
		"other bank":     func(w *trio, lent *Terms) { lent.Bank = w.lender.id },
		"no such lease":  func(_ *trio, lent *Terms) { lent.Epoch++ },
		"another number": func(_ *trio, lent *Terms) { lent.Number++ },
	} {
		w := newTrio(t)
		borrowed, lent := w.terms()
		change(w, &lent)
		w.lent[lent.Ref] = lent
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
		w.deliver()
		if got := w.settled(); got != 0 {
			t.Errorf("%s: the lender has %v", name, got)
		}
		if _, ok := w.borrower.told[0].(*Unpaid); !ok {
			t.Errorf("%s: the borrower was told %v", name, w.borrower.told)
		}
	}
	w := newTrio(t)
	w.tamper = func(m grid.Message) {
		if a, ok := m.(*Advance); ok {
			a.Number++
		}
	}
	borrowed, lent := w.terms()
	w.lent[lent.Ref] = lent
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	if len(w.lender.told) > 0 || len(w.lender.records) > 0 {
		t.Errorf("the lender took it: %v", w.lender.told)
	}
}

// FuzzDecode: bytes of a peer never panic a decoder, and what it lets through keeps to the bounds.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 8, 1, 16, 1})
	f.Add([]byte{1, 8, 1, 16, 1, 24, 2})
	corpus.Fuzz(f, func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		kind := wire.FeeAdvance + grid.Kind(input[0]%4)
		m, err := Protocol.Decoders[kind]("site", input[1:])
		if err == nil && m.MessageKind() != kind {
			t.Errorf("%s decoded to %T", wire.KindName(kind), m)
		}
	})
}

// TestQuestionsAreRepeated: of a lender that does not hear of its cheque, and of a borrower that
// does not hear of its bill: ever more rarely, and until it is answered.
func TestQuestionsAreRepeated(t *testing.T) {
	repeated := func(w *trio, asker *party) {
		t.Helper()
		at, pause := w.now, askPause
		for range 12 {
			if w.flight = nil; asker.tab.NextTimer() != at+pause {
				t.Fatalf("it is asked again at %v, want %v", asker.tab.NextTimer(), at+pause)
			}
			at += pause
			pause = min(2*pause, askMax)
			w.now = at - 1
			w.do(asker, func(out *grid.Outbox) { asker.tab.Step(w.now, grid.Tick{}, out) })
			if w.now = at; len(w.flight) > 0 {
				t.Fatalf("%T is sent before it is due", w.flight[0].m)
			}
			w.do(asker, func(out *grid.Outbox) { asker.tab.Step(w.now, grid.Tick{}, out) })
			if len(w.flight) != 1 {
				t.Fatalf("%d messages are sent when it is due", len(w.flight))
			}
		}
	}
	w := newTrio(t)
	borrowed, lent := w.terms()
	lent.Longest, borrowed.Longest = 4*grid.Hour, 4*grid.Hour
	w.lent[lent.Ref] = lent
	w.deaf = w.lender
	asked := w.now
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.deliver()
	repeated(w, w.borrower)
	w.deaf = nil
	w.deliver()
	if owes, _ := w.borrower.tab.Open(); owes != 1 || len(w.borrower.told) != 1 {
		t.Fatalf("%d leases, and told was %v", owes, w.borrower.told)
	}
	if at := w.borrower.tab.NextTimer(); at != w.now+checkIn {
		t.Errorf("the borrower looks again at %v, want %v", at, w.now+checkIn)
	}
	held := w.now - asked
	delete(w.lent, lent.Ref)
	w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, held, out) })
	repeated(w, w.lender)
	w.deliver()
	if got, want := w.settled(), lent.Cost(held); got != want {
		t.Errorf("the lease has cost %v, want %v", got, want)
	}
}

// TestLeaseThatCostsNothing: its cheque goes back at once, and nobody is billed.
func TestLeaseThatCostsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		price grid.Price
		held  grid.Time
	}{"held not at all": {3 * grid.Credit, 0}, "held by a clock that went back": {3 * grid.Credit, -grid.Minute}, "a trifle": {1, 1}} {
		w := newTrio(t)
		borrowed, lent := w.terms()
		borrowed.Price, lent.Price = tt.price, tt.price
		w.lent[lent.Ref] = lent
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
		w.deliver()
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, w.now, out) })
		w.tamper = func(m grid.Message) {
			if b, billed := m.(*Bill); billed {
				t.Errorf("%s: it is billed: %+v", name, b)
			}
		}
		w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, lent, tt.held, out) })
		w.deliver()
		w.now += checkIn
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
		w.deliver()
		if got := w.settled(); got != 0 {
			t.Errorf("%s: it has cost %v", name, got)
		}
	}
}

// TestEndIsToldAgain: a lease that is over at an instant costs no more later, and one whose time
// has come is asked for at that very instant.
func TestEndIsToldAgain(t *testing.T) {
	w := newTrio(t)
	w.lend()
	gone := w.borrower.tab.NextTimer()
	for _, at := range []grid.Time{gone + grid.Minute, gone, gone, gone + 1} {
		w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Over(7, at, out) })
		if at := w.borrower.tab.NextTimer(); at != gone {
			t.Errorf("the borrower looks again at %v, want %v as before", at, gone)
		}
	}
	if f := w.borrower.tab.owes[7]; f.over != gone {
		t.Errorf("it is over at %v, want %v", f.over, gone)
	}
	w.now = gone
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Step(w.now, grid.Tick{}, out) })
	if len(w.flight) != 1 {
		t.Fatalf("%d messages", len(w.flight))
	}
	if r, back := w.flight[0].m.(*bank.Return); !back || w.flight[0].to != w.lender.id || r.Cheque == nil {
		t.Errorf("%T is sent to %s", w.flight[0].m, w.flight[0].to)
	}
}

// TestChequeThatCameTooLate: of a lease that is owed for no longer it goes back; what the desk says
// of jobs is none of a tab's business.
func TestChequeThatCameTooLate(t *testing.T) {
	w := newTrio(t)
	borrowed, _ := w.terms()
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	for _, tt := range []struct {
		task grid.TaskID
		fee  bool
	}{{grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 7}, Epoch: 1}, false}, {TaskOf(8), true}} {
		w.do(w.borrower, func(out *grid.Outbox) {
			if got := w.borrower.tab.Declined(&bank.Declined{Task: tt.task}, out); got != tt.fee {
				t.Errorf("%v, which is declined, is for a lease: %v", tt.task, got)
			}
			if got := w.borrower.tab.Written(w.now, tt.task, out); got != tt.fee {
				t.Errorf("%v, which is written, is for a lease: %v", tt.task, got)
			}
		})
	}
	w.do(w.borrower, func(out *grid.Outbox) { // the bank was slow, and the user has given up
		f := w.borrower.tab.owes[7]
		w.borrower.tab.drop(f, out)
	})
	w.deliver()
	if w.borrower.desk.Cheque(TaskOf(7)) != nil || len(w.lender.records) > 0 {
		t.Error("the cheque is kept")
	}
	w.settled()
	w.do(w.borrower, func(out *grid.Outbox) { w.borrower.tab.Pay(w.now, borrowed, w.now, out) })
	w.lent = map[Ref]Terms{{w.borrower.id, 7, 9}: borrowed}
	w.do(w.borrower, func(out *grid.Outbox) {
		if !w.borrower.tab.Declined(&bank.Declined{Task: TaskOf(7), Reason: "why"}, out) {
			t.Error("a lease's cheque that is declined is said to be a job's")
		}
	})
}

// TestFeesAreBounded: a site that owes as much as it keeps borrows nothing more for money, and says
// so; one that is owed as much lets the cheque lapse. One fee less is taken.
func TestFeesAreBounded(t *testing.T) {
	for _, full := range []bool{false, true} {
		w := newTrio(t)
		borrowed, lent := w.terms()
		some := feesMax - 1
		if full {
			some++
		}
		for i := range uint64(some) {
			w.borrower.tab.owes[1000+i] = nil
			w.lender.tab.owed[key{"site", i}] = nil
		}
		var out grid.Outbox
		w.borrower.tab.Pay(w.now, borrowed, w.now, &out)
		w.lender.tab.Ended(w.now, lent, grid.Minute, &out)
		owes, owed := w.borrower.tab.Open()
		if _, owedThere := w.lender.tab.Open(); owes != feesMax || owedThere != feesMax || owed != 0 {
			t.Errorf("full %v: it owes for %d leases and is owed for %d, want %d", full, owes, owedThere, feesMax)
		}
		unpaid := false
		out.Feed(0, func(in grid.Input) {
			u, is := in.(*Unpaid)
			unpaid = unpaid || is && u.Number == 7 && u.Reason != ""
		})
		if unpaid != full {
			t.Errorf("full %v: it is told as unpaid: %v", full, unpaid)
		}
	}
}

// TestBothWays: sites that borrow from each other under the same number are paid both.
func TestBothWays(t *testing.T) {
	w := newTrio(t)
	w.do(w.bank, func(out *grid.Outbox) {
		w.bank.desk.Step(w.now, &bank.Grant{ID: grid.JobID{Lo: 2}, To: w.lender.id, Amount: 10 * grid.Credit}, out)
	})
	var mine, its Terms
	for range 2 {
		if mine, its = w.lend(); len(w.borrower.told) == 0 || len(w.lender.told) == 0 {
			t.Fatal("nothing is paid")
		}
		w.now += grid.Minute
		w.borrower, w.lender = w.lender, w.borrower
	}
	for range 2 {
		_, its = w.terms()
		w.do(w.lender, func(out *grid.Outbox) { w.lender.tab.Ended(w.now, its, grid.Minute, out) })
		w.borrower, w.lender = w.lender, w.borrower
	}
	if keys := slices.Sorted(maps.Keys(w.borrower.records)); len(keys) < 2 || mine.Number != its.Number {
		t.Errorf("what is owed and what owes is stored as %v", keys)
	}
	w.deliver()
	for _, p := range []*party{w.borrower, w.lender} {
		if owes, owed := p.tab.Open(); owes+owed > 0 || p.tab.NextTimer() != grid.Never {
			t.Errorf("%d and %d leases are open until %v", owes, owed, p.tab.NextTimer())
		}
	}
}

// TestRefusalsInWords: also those that a newer site has.
func TestRefusalsInWords(t *testing.T) {
	said := make(map[string]bool)
	for r := range Refusal(5) {
		said[r.String()] = true
	}
	if len(said) != 5 || said[""] {
		t.Errorf("%v", said)
	}
}
