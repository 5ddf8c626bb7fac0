package bank

import (
	"bytes"
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// signer is a site with a key.
type signer struct {
	id   grid.SiteID
	seal Seal
}

func newSigner(tb testing.TB) signer {
	tb.Helper()
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return signer{grid.SiteID(id.String()), func(domain string, payload []byte) ([]byte, error) { return wire.Seal(key, domain, payload) }}
}

// papers are the signed documents of one job.
type papers struct {
	bank, payer, payee signer
	cheque             *Cheque
	claim, agreement   *Receipt
}

func newPapers(tb testing.TB) papers {
	p := papers{bank: newSigner(tb), payer: newSigner(tb), payee: newSigner(tb)}
	p.cheque = &Cheque{Bank: p.bank.id, Payer: p.payer.id, Payee: p.payee.id, Task: task(1), Ceiling: 5, Expires: 99}
	p.claim, p.agreement = receipt(p.cheque, p.payee.id, 4), receipt(p.cheque, p.payer.id, 3)
	p.cheque.seal(p.bank.seal)
	p.claim.seal(p.payee.seal)
	p.agreement.seal(p.payer.seal)
	return p
}

// messages returns one of each kind, and who sends it.
func (p *papers) messages() map[wire.Message]grid.SiteID {
	t := &Transaction{Sequence: 3, At: 5, Kind: KindRedeem, Payer: p.payer.id, Payee: p.payee.id, Task: task(1), Amount: 3, Refund: 2}
	return map[wire.Message]grid.SiteID{
		&Draw{Task: task(1), Payee: p.payee.id, Ceiling: 5, Lifetime: 7, Withdrawn: true}: p.payer.id,
		&Drawn{Task: task(1), Cheque: p.cheque, Settled: 8, Committed: 9}:                 p.bank.id,
		&Drawn{Task: task(1), Refusal: NoFunds, Settled: 8, Committed: 9}:                 p.bank.id,
		&Return{Cheque: p.cheque}: p.payer.id,
		&Redeem{Cheque: p.cheque, Claim: p.claim, Agreement: p.agreement}:             p.payee.id,
		&Redeem{Cheque: p.cheque, Claim: p.claim}:                                     p.payee.id,
		&Redeemed{Payer: p.payer.id, Task: task(1), Refusal: Expired}:                 p.bank.id,
		&Settled{Task: task(1), Paid: 3}:                                              p.bank.id,
		&TransferRequest{ID: id(4), To: p.payee.id, Amount: -1}:                       p.payer.id,
		&TransferReply{ID: id(4), Refusal: BadAmount, Settled: 1, Committed: 2}:       p.bank.id,
		&Inquire{Token: 6, Limit: 100}:                                                p.payer.id,
		&Inform{Token: 6, Balance: Balance{1, 2, 3}, Transactions: []*Transaction{t}}: p.bank.id,
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	p := newPapers(t)
	kinds := make(map[grid.Kind]bool)
	for m, from := range p.messages() {
		kinds[m.MessageKind()] = true
		body, err := proto.Marshal(m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Protocol.Decoders[m.MessageKind()](from, body)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: got %+v, %v; want %+v", wire.KindName(m.MessageKind()), got, err, m)
		}
		if j, ok := m.(grid.JobMessage); ok && j.ForJob() != id(1) {
			t.Errorf("%T is about job %v", m, j.ForJob())
		}
	}
	if len(kinds) != len(Protocol.Decoders) {
		t.Errorf("%d kinds tried, there are %d decoders", len(kinds), len(Protocol.Decoders))
	}
}

// What nobody has signed, or the wrong site, does not get through.
func TestForgeries(t *testing.T) {
	p := newPapers(t)
	thief := newSigner(t)
	forged := *p.cheque
	forged.Ceiling = 50
	forged.seal(thief.seal)
	otherReceipt := *p.agreement
	otherReceipt.seal(thief.seal)
	swapped := receipt(p.cheque, p.payer.id, 5)
	swapped.Sealed = sealed(p.bank.seal, ChequeDomain, swapped.proto())
	negative := *p.cheque
	negative.Ceiling = -1
	negative.seal(p.bank.seal)
	toSelf := *p.cheque
	toSelf.Payee = toSelf.Payer
	toSelf.seal(p.bank.seal)
	flipped := *p.cheque
	flipped.Sealed = bytes.Clone(p.cheque.Sealed)
	flipped.Sealed[len(flipped.Sealed)-1] ^= 1
	for _, tt := range []struct {
		name, want string
		from       grid.SiteID
		m          wire.Message
	}{
		{"cheque by a thief", "signed by", p.bank.id, &Drawn{Task: task(1), Cheque: &forged}},
		{"unsigned cheque", "neither", p.bank.id, &Drawn{Task: task(1), Cheque: &Cheque{}}},
		{"flipped bit", "signed cheque", p.bank.id, &Drawn{Task: task(1), Cheque: &flipped}},
		{"negative ceiling", "ceiling", p.bank.id, &Drawn{Task: task(1), Cheque: &negative}},
		{"cheque to oneself", "to itself", p.bank.id, &Drawn{Task: task(1), Cheque: &toSelf}},
		{"refusal with a cheque", "neither", p.bank.id, &Drawn{Task: task(1), Refusal: NoFunds, Cheque: p.cheque}},
		{"return by a thief", "another site", thief.id, &Return{Cheque: p.cheque}},
		{"redeemed by a thief", "another site", thief.id, &Redeem{Cheque: p.cheque, Claim: p.claim, Agreement: p.agreement}},
		{"agreement by a thief", "signed by", p.payee.id, &Redeem{Cheque: p.cheque, Claim: p.claim, Agreement: &otherReceipt}},
		{"a receipt as another document", "signed receipt", p.payee.id, &Redeem{Cheque: p.cheque, Claim: p.claim, Agreement: swapped}},
		{"a receipt as a cheque", "signed cheque", p.payee.id, &Redeem{Cheque: &Cheque{Sealed: p.claim.Sealed}, Claim: p.claim}},
		{"lifetime of nothing", "lifetime", p.payer.id, &Draw{Task: task(1), Payee: p.payee.id, Ceiling: 5}},
		{"no payee", "payee", p.payer.id, &Draw{Task: task(1), Ceiling: 5, Lifetime: 1}},
		{"long payee", "payee", p.payer.id, &Draw{Task: task(1), Payee: grid.SiteID(strings.Repeat("x", 129)), Ceiling: 5, Lifetime: 1}},
		{"no job", "no ID", p.payer.id, &Draw{Payee: p.payee.id, Ceiling: 5, Lifetime: 1}},
		{"long statement", "limit", p.payer.id, &Inquire{Limit: statementMax + 1}},
		{"longer statement", "transactions", p.bank.id, &Inform{Transactions: make([]*Transaction, 0)}},
		{"transaction without a number", "sequence number", p.bank.id, &Inform{}},
		{"negative payment", "payment", p.bank.id, &Settled{Task: task(1), Paid: -1}},
		{"large payment", "payment", p.bank.id, &Redeemed{Payer: p.payer.id, Task: task(1), Paid: grid.CreditsMax + 1}},
		{"large refusal", "refusal", p.bank.id, &TransferReply{ID: id(1), Settled: -1}},
	} {
		message := tt.m.Proto()
		switch tt.name { // what our types cannot express
		case "longer statement":
			for range statementMax + 1 {
				message.(*wirepb.BankInform).Transactions = append(message.(*wirepb.BankInform).Transactions, &wirepb.BankTransaction{})
			}
		case "transaction without a number":
			message.(*wirepb.BankInform).Transactions = []*wirepb.BankTransaction{{
				Kind: uint32(KindGrant), Payer: string(Issuer), Payee: string(p.payee.id), Amount: 1, Job: wire.JobBytes(task(1).Job),
			}}
		case "large refusal":
			message.(*wirepb.BankTransferred).Refusal = 256
		}
		body, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Protocol.Decoders[tt.m.MessageKind()](tt.from, body)
		if got != nil || !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want an error about %q", tt.name, got, err, tt.want)
		}
	}
}

// fuzz runs the decoder of a kind: it returns a valid message or an error that
// wraps ErrMalformed, and what it returns encodes again to what it decodes to.
func fuzz(f *testing.F, kind grid.Kind) {
	p := newPapers(f)
	from := grid.SiteID("")
	for m, sender := range p.messages() {
		if m.MessageKind() == kind {
			body, err := proto.Marshal(m.Proto())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
			from = sender
		}
	}
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		m, err := Protocol.Decoders[kind](from, body)
		if err != nil {
			if m != nil || !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%v, %v", m, err)
			}
			return
		}
		again, err := proto.Marshal(m.(wire.Message).Proto())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := Protocol.Decoders[kind](from, again); err != nil || !reflect.DeepEqual(n, m) {
			t.Fatalf("%+v became %+v, %v", m, n, err)
		}
	})
}

func FuzzDecodeDraw(f *testing.F)        { fuzz(f, wire.BankDraw) }
func FuzzDecodeDrawn(f *testing.F)       { fuzz(f, wire.BankDrawn) }
func FuzzDecodeReturn(f *testing.F)      { fuzz(f, wire.BankReturn) }
func FuzzDecodeRedeem(f *testing.F)      { fuzz(f, wire.BankRedeem) }
func FuzzDecodeRedeemed(f *testing.F)    { fuzz(f, wire.BankRedeemed) }
func FuzzDecodeSettled(f *testing.F)     { fuzz(f, wire.BankSettled) }
func FuzzDecodeTransfer(f *testing.F)    { fuzz(f, wire.BankTransfer) }
func FuzzDecodeTransferred(f *testing.F) { fuzz(f, wire.BankTransferred) }
func FuzzDecodeInquire(f *testing.F)     { fuzz(f, wire.BankInquire) }
func FuzzDecodeInform(f *testing.F)      { fuzz(f, wire.BankInform) }

// FuzzLoad: a record that is no record is an error and nothing else.
func FuzzLoad(f *testing.F) {
	_, _, out := books(f)
	d := disk{}
	d.write(out, -1)
	for key, value := range d {
		f.Add([]byte(key + "\x00" + string(value)))
	}
	corpus.Fuzz(f, func(t *testing.T, input []byte) {
		key, value, _ := bytes.Cut(input, []byte{0})
		var out grid.Outbox
		desk := NewDesk(Config{Self: here, Offer: true}, 1)
		if desk.Load(1, string(key), value, &out) == nil {
			_ = desk.Loaded(1, &out)
		}
	})
}

func BenchmarkOpenCheque(b *testing.B) {
	p := newPapers(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := OpenCheque(p.cheque.Sealed); err != nil {
			b.Fatal(err)
		}
	}
}
