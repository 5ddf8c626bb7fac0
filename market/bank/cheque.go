package bank

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Domains under which the documents are signed.
const (
	ChequeDomain  = "cheque"
	ReceiptDomain = "receipt"
)

// sealedMax bounds the signed form of a document.
const sealedMax = 2 << 10

// Cheque is a bank's signed word that it holds up to Ceiling of the payer's for the
// payee, for one execution. Payer and execution are its identity.
type Cheque struct {
	Bank    grid.SiteID
	Payer   grid.SiteID
	Payee   grid.SiteID
	Task    grid.TaskID
	Ceiling grid.Credits // 1 to grid.CreditsMax
	Expires grid.Time    // instant on the bank's clock from which on it is void
	Sealed  []byte       // signed by Bank; nil in virtual time
}

// Receipt is what payer or payee signs about an execution that has ended.
type Receipt struct {
	Bank   grid.SiteID // of the cheque
	Payer  grid.SiteID
	Payee  grid.SiteID
	Task   grid.TaskID
	Amount grid.Credits // what it costs, 0 to grid.CreditsMax
	Signer grid.SiteID  // Payer or Payee
	Sealed []byte       // signed by Signer; nil in virtual time
}

// key identifies a cheque at its bank.
type key struct {
	payer grid.SiteID
	task  grid.TaskID
}

func (c *Cheque) key() key { return key{c.Payer, c.Task} }

// same reports whether two cheques have the same terms.
func (c *Cheque) same(other *Cheque) bool {
	return c.Bank == other.Bank && c.Payer == other.Payer && c.Payee == other.Payee && c.Task == other.Task &&
		c.Ceiling == other.Ceiling && c.Expires == other.Expires
}

// about reports whether r is signer's word about cheque c.
func (r *Receipt) about(c *Cheque, signer grid.SiteID) bool {
	return r != nil && r.Bank == c.Bank && r.Payer == c.Payer && r.Payee == c.Payee && r.Task == c.Task && r.Signer == signer
}

// Seal signs a document: wire.Seal with the domain. It is nil in virtual time,
// where nobody forges.
type Seal func(domain string, payload []byte) ([]byte, error)

func (c *Cheque) seal(sign Seal) { c.Sealed = sealed(sign, ChequeDomain, c.proto()) }

func (r *Receipt) seal(sign Seal) { r.Sealed = sealed(sign, ReceiptDomain, r.proto()) }

// sealed returns the signed form of a document. That our own document cannot be
// encoded or signed is a defect.
func sealed(sign Seal, domain string, document proto.Message) []byte {
	if sign == nil {
		return nil
	}
	payload, err := proto.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("bank: encode %s: %v", domain, err))
	}
	envelope, err := sign(domain, payload)
	if err != nil {
		panic(fmt.Sprintf("bank: sign %s: %v", domain, err))
	}
	return envelope
}

func (c *Cheque) proto() *wirepb.BankCheque {
	return &wirepb.BankCheque{
		Bank: string(c.Bank), Payer: string(c.Payer), Payee: string(c.Payee), Job: wire.JobBytes(c.Task.Job), Epoch: c.Task.Epoch,
		Ceiling: int64(c.Ceiling), Expires: int64(c.Expires),
	}
}

func chequeFromProto(p *wirepb.BankCheque) (*Cheque, error) {
	var c check
	q := &Cheque{
		Bank: c.site("bank", p.GetBank()), Payer: c.site("payer", p.GetPayer()), Payee: c.site("payee", p.GetPayee()),
		Task: c.task(p.GetJob(), p.GetEpoch()), Ceiling: c.amount("ceiling", p.GetCeiling(), 1), Expires: grid.Time(p.GetExpires()),
	}
	c.Within("expiry", p.GetExpires(), 1, int64(grid.SpanMax))
	if q.Payer == q.Payee {
		c.Fail("cheque of a site to itself")
	}
	return q, c.Err
}

func (r *Receipt) proto() *wirepb.BankReceipt {
	return &wirepb.BankReceipt{
		Bank: string(r.Bank), Payer: string(r.Payer), Payee: string(r.Payee), Job: wire.JobBytes(r.Task.Job), Epoch: r.Task.Epoch,
		Amount: int64(r.Amount), Signer: string(r.Signer),
	}
}

func receiptFromProto(p *wirepb.BankReceipt) (*Receipt, error) {
	var c check
	r := &Receipt{
		Bank: c.site("bank", p.GetBank()), Payer: c.site("payer", p.GetPayer()), Payee: c.site("payee", p.GetPayee()),
		Task: c.task(p.GetJob(), p.GetEpoch()), Amount: c.amount("amount", p.GetAmount(), 0), Signer: grid.SiteID(p.GetSigner()),
	}
	if r.Signer != r.Payer && r.Signer != r.Payee {
		c.Fail("receipt signed by neither payer nor payee")
	}
	return r, c.Err
}

// OpenCheque verifies a signed cheque and returns it, or an error wrapping
// wire.ErrMalformed. Whether its bank still honours it only the bank knows.
func OpenCheque(sealed []byte) (*Cheque, error) {
	var p wirepb.BankCheque
	signer, err := open(ChequeDomain, sealed, &p)
	if err != nil {
		return nil, err
	}
	c, err := chequeFromProto(&p)
	switch {
	case err != nil:
		return nil, err
	case c.Bank != signer:
		return nil, wire.Malformed("cheque of bank %q signed by %q", c.Bank, signer)
	}
	c.Sealed = sealed
	return c, nil
}

// OpenReceipt verifies a signed receipt and returns it, or an error wrapping
// wire.ErrMalformed.
func OpenReceipt(sealed []byte) (*Receipt, error) {
	var p wirepb.BankReceipt
	signer, err := open(ReceiptDomain, sealed, &p)
	if err != nil {
		return nil, err
	}
	r, err := receiptFromProto(&p)
	switch {
	case err != nil:
		return nil, err
	case r.Signer != signer:
		return nil, wire.Malformed("receipt of %q signed by %q", r.Signer, signer)
	}
	r.Sealed = sealed
	return r, nil
}

func open(domain string, sealed []byte, p proto.Message) (signer grid.SiteID, err error) {
	if len(sealed) > sealedMax {
		return "", wire.Malformed("%s of %d bytes, at most %d", domain, len(sealed), sealedMax)
	}
	payload, signer, err := wire.Open(domain, sealed)
	if err != nil {
		return "", err
	}
	if err := proto.Unmarshal(payload, p); err != nil {
		return "", wire.Malformed("%s: %v", domain, err)
	}
	return signer, nil
}
