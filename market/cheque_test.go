package market

import (
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/bank"
)

// newSigner returns a site that can sign.
func newSigner(t *testing.T) (grid.SiteID, bank.Seal) {
	t.Helper()
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return grid.SiteID(id.String()), func(domain string, payload []byte) ([]byte, error) { return wire.Seal(key, domain, payload) }
}

// Cheques and receipts travel with the market's messages as they were signed, and
// only from whom they concern.
func TestSignedDocumentsTravel(t *testing.T) {
	bankID, sealBank := newSigner(t)
	home, sealHome := newSigner(t)
	away, sealAway := newSigner(t)
	task := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}
	// Real documents come from desks: a bank, a payer and a payee.
	var out grid.Outbox
	ledger := bank.NewLedger(bankID, sealBank)
	ledger.Grant(1, &bank.Grant{ID: grid.JobID{Lo: 9}, To: home, Amount: 100}, &out)
	cheque, refusal := ledger.Draw(1, home, &bank.Draw{Task: task, Payee: away, Ceiling: 50, Lifetime: grid.Day}, &out)
	if refusal != bank.Done {
		t.Fatal(refusal)
	}
	payee := bank.NewDesk(bank.Config{Self: away, Seal: sealAway}, 1)
	payee.Take(cheque, &out)
	claim := payee.Claim(home, task, 40)
	payer := bank.NewDesk(bank.Config{Self: home, Bank: bankID, Seal: sealHome}, 1)
	payer.Draw(1, task, away, 50, grid.Hour, &out)
	payer.Step(2, &grid.Delivery{From: bankID, Message: &bank.Drawn{Task: task, Cheque: cheque}}, &out)
	agreement := payer.Agree(task, away, 40, &out)
	if claim == nil || agreement == nil {
		t.Fatal("no receipts")
	}

	job := &grid.Job{
		ID: task.Job, Home: home, Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Hour,
		Work: grid.Work{Instructions: 1}, Deadline: grid.Never, Budget: grid.NoBudget,
	}
	flipped := *cheque
	flipped.Sealed = append([]byte(nil), cheque.Sealed...)
	flipped.Sealed[len(flipped.Sealed)-1] ^= 1
	submission := func(c *bank.Cheque) *JobSubmission {
		return &JobSubmission{Job: job, Epoch: 1, Hold: 2, Price: 3, Cost: 50, Deadline: grid.Never, Cheque: c}
	}
	for _, tt := range []struct {
		name, want string // empty: it arrives as it was sent
		from       grid.SiteID
		m          wire.Message
	}{
		{"submission", "", home, submission(cheque)},
		{"completion", "", away, &JobCompletion{Task: task, Run: 5, Cost: 40, Claim: claim}},
		{"acknowledgement", "", home, &Acknowledge{Task: task, Of: wire.MarketJobCompletion, Agreement: agreement}},
		{"negotiation", "", home, &Negotiate{Task: task, Request: 1, Processors: 1, Deadline: grid.Never, Bank: bankID}},
		{"forged cheque", "signed cheque", home, submission(&flipped)},
		{"a receipt as a cheque", "signed cheque", home, submission(&bank.Cheque{Sealed: claim.Sealed})},
		{"another site's claim", "sent by", away, &JobCompletion{Task: task, Run: 5, Cost: 40, Claim: agreement}},
		{"another site's agreement", "sent by", home, &Acknowledge{Task: task, Of: wire.MarketJobCompletion, Agreement: claim}},
		{"claim of what was given up", "given up", away, &JobCompletion{Task: task, Abandoned: true, Claim: claim}},
		{"long bank", "bank's length", home, &Negotiate{Task: task, Request: 1, Processors: 1, Deadline: grid.Never, Bank: grid.SiteID(strings.Repeat("b", 129))}},
	} {
		body, err := proto.Marshal(tt.m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Protocol.Decoders[tt.m.MessageKind()](tt.from, body)
		switch {
		case tt.want == "" && (err != nil || !reflect.DeepEqual(got, tt.m)):
			t.Errorf("%s: got %+v, %v; want %+v", tt.name, got, err, tt.m)
		case tt.want != "" && (got != nil || !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, %v; want an error about %q", tt.name, got, err, tt.want)
		}
	}
}
