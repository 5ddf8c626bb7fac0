package bank

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Protocol is how desks speak over libp2p. Every decoder checks every field and
// verifies every signature, so a decoded message holds nothing that Step could trip
// over, and no document that its signer has not signed.
var Protocol = wire.Protocol{
	ID: "/gridnode/bank/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{
		wire.BankDraw:        decodeDraw,
		wire.BankDrawn:       decodeDrawn,
		wire.BankReturn:      decodeReturn,
		wire.BankRedeem:      decodeRedeem,
		wire.BankRedeemed:    decodeRedeemed,
		wire.BankSettled:     decodeSettled,
		wire.BankTransfer:    decodeTransfer,
		wire.BankTransferred: decodeTransferred,
		wire.BankInquire:     decodeInquire,
		wire.BankInform:      decodeInform,
	},
}

// Proto implements wire.Message.
func (m *Draw) Proto() proto.Message {
	return &wirepb.BankDraw{
		Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Payee: string(m.Payee), Ceiling: int64(m.Ceiling),
		Lifetime: int64(m.Lifetime), Withdrawn: m.Withdrawn,
	}
}

func decodeDraw(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankDraw
	if err := wire.Unmarshal(body, &p, wire.BankDraw); err != nil {
		return nil, err
	}
	var c check
	m := &Draw{
		Task: c.task(p.Job, p.Epoch), Payee: c.site("payee", p.Payee), Ceiling: grid.Credits(p.Ceiling),
		Lifetime: grid.Time(p.Lifetime), Withdrawn: p.Withdrawn,
	}
	c.Within("lifetime", p.Lifetime, 1, int64(lifetimeMax))
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message. A cheque that was not signed cannot travel.
func (m *Drawn) Proto() proto.Message {
	p := &wirepb.BankDrawn{
		Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Refusal: uint32(m.Refusal),
		Settled: int64(m.Settled), Committed: int64(m.Committed),
	}
	if m.Cheque != nil {
		p.Cheque = m.Cheque.Sealed
	}
	return p
}

func decodeDrawn(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankDrawn
	if err := wire.Unmarshal(body, &p, wire.BankDrawn); err != nil {
		return nil, err
	}
	var c check
	m := &Drawn{Task: c.task(p.Job, p.Epoch), Refusal: c.refusal(p.Refusal), Settled: c.amount("balance", p.Settled, 0), Committed: c.amount("balance", p.Committed, 0)}
	if (m.Refusal == Done) != (len(p.Cheque) > 0) {
		c.Fail("a cheque and a refusal, or neither")
	}
	if m.Refusal == Done {
		m.Cheque = c.cheque(p.Cheque)
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Return) Proto() proto.Message { return &wirepb.BankReturn{Cheque: m.Cheque.Sealed} }

func decodeReturn(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankReturn
	if err := wire.Unmarshal(body, &p, wire.BankReturn); err != nil {
		return nil, err
	}
	var c check
	m := &Return{c.cheque(p.Cheque)}
	if c.Err == nil && m.Cheque.Payer != from {
		c.Fail("return of another site's cheque")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Redeem) Proto() proto.Message {
	p := &wirepb.BankRedeem{Cheque: m.Cheque.Sealed, Claim: m.Claim.Sealed}
	if m.Agreement != nil {
		p.Agreement = m.Agreement.Sealed
	}
	return p
}

func decodeRedeem(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankRedeem
	if err := wire.Unmarshal(body, &p, wire.BankRedeem); err != nil {
		return nil, err
	}
	var c check
	m := &Redeem{Cheque: c.cheque(p.Cheque), Claim: c.receipt(p.Claim)}
	if len(p.Agreement) > 0 {
		m.Agreement = c.receipt(p.Agreement)
	}
	if c.Err == nil && m.Claim.Signer != from {
		c.Fail("claim of another site")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Redeemed) Proto() proto.Message {
	return &wirepb.BankRedeemed{
		Payer: string(m.Payer), Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Refusal: uint32(m.Refusal), Paid: int64(m.Paid),
	}
}

func decodeRedeemed(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankRedeemed
	if err := wire.Unmarshal(body, &p, wire.BankRedeemed); err != nil {
		return nil, err
	}
	var c check
	m := &Redeemed{Payer: c.site("payer", p.Payer), Task: c.task(p.Job, p.Epoch), Refusal: c.refusal(p.Refusal), Paid: c.amount("payment", p.Paid, 0)}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Settled) Proto() proto.Message {
	return &wirepb.BankSettled{Job: wire.JobBytes(m.Task.Job), Epoch: m.Task.Epoch, Paid: int64(m.Paid)}
}

func decodeSettled(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankSettled
	if err := wire.Unmarshal(body, &p, wire.BankSettled); err != nil {
		return nil, err
	}
	var c check
	m := &Settled{Task: c.task(p.Job, p.Epoch), Paid: c.amount("payment", p.Paid, 0)}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *TransferRequest) Proto() proto.Message {
	id := m.ID.Bytes()
	return &wirepb.BankTransfer{Id: id[:], To: string(m.To), Amount: int64(m.Amount), Asked: int64(m.Asked)}
}

// decodeTransfer lets every amount through: the ledger refuses with a reason.
func decodeTransfer(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankTransfer
	if err := wire.Unmarshal(body, &p, wire.BankTransfer); err != nil {
		return nil, err
	}
	var c check
	m := &TransferRequest{ID: c.id(p.Id), To: c.site("receiver", p.To), Amount: grid.Credits(p.Amount), Asked: c.asked(p.Asked)}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *TransferReply) Proto() proto.Message {
	id := m.ID.Bytes()
	return &wirepb.BankTransferred{Id: id[:], Refusal: uint32(m.Refusal), Settled: int64(m.Settled), Committed: int64(m.Committed), Asked: int64(m.Asked)}
}

func decodeTransferred(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankTransferred
	if err := wire.Unmarshal(body, &p, wire.BankTransferred); err != nil {
		return nil, err
	}
	var c check
	m := &TransferReply{ID: c.id(p.Id), Asked: c.asked(p.Asked), Refusal: c.refusal(p.Refusal), Settled: c.amount("balance", p.Settled, 0), Committed: c.amount("balance", p.Committed, 0)}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Inquire) Proto() proto.Message {
	return &wirepb.BankInquire{Token: m.Token, Limit: uint32(m.Limit)}
}

func decodeInquire(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankInquire
	if err := wire.Unmarshal(body, &p, wire.BankInquire); err != nil {
		return nil, err
	}
	var c check
	c.Within("limit", int64(p.Limit), 0, statementMax)
	return wire.Checked(&Inquire{Token: p.Token, Limit: int32(p.Limit)}, c.Err)
}

// Proto implements wire.Message.
func (m *Inform) Proto() proto.Message {
	p := &wirepb.BankInform{
		Token: m.Token, Refusal: uint32(m.Refusal),
		Settled: int64(m.Balance.Settled), Incoming: int64(m.Balance.Incoming), Committed: int64(m.Balance.Committed),
	}
	for _, t := range m.Transactions {
		p.Transactions = append(p.Transactions, t.proto())
	}
	return p
}

func decodeInform(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.BankInform
	if err := wire.Unmarshal(body, &p, wire.BankInform); err != nil {
		return nil, err
	}
	if len(p.Transactions) > statementMax {
		return nil, wire.Malformed("%d transactions, at most %d", len(p.Transactions), statementMax)
	}
	var c check
	m := &Inform{Token: p.Token, Refusal: c.refusal(p.Refusal), Balance: Balance{
		Settled: c.amount("balance", p.Settled, 0), Incoming: c.amount("balance", p.Incoming, 0), Committed: c.amount("balance", p.Committed, 0),
	}}
	for _, t := range p.Transactions {
		m.Transactions = append(m.Transactions, c.transaction(t))
	}
	return wire.Checked(m, c.Err)
}

// check collects the first thing wrong with a message or record.
type check struct{ wire.Check }

func (c *check) site(what, id string) grid.SiteID {
	c.Within(what+"'s length", int64(len(id)), 1, siteBytesMax)
	return grid.SiteID(id)
}

func (c *check) amount(what string, v, least int64) grid.Credits {
	c.Within(what, v, least, int64(grid.CreditsMax))
	return grid.Credits(v)
}

func (c *check) asked(v int64) grid.Time {
	c.Within("asked", v, 0, int64(grid.Never))
	return grid.Time(v)
}

func (c *check) id(b []byte) grid.JobID {
	id, err := grid.JobIDFromBytes(b)
	if err != nil || id.IsZero() {
		c.Fail("no ID")
	}
	return id
}

func (c *check) task(job []byte, epoch uint32) grid.TaskID {
	id := c.id(job)
	if epoch == 0 {
		c.Fail("no epoch")
	}
	return grid.TaskID{Job: id, Epoch: epoch}
}

// refusal takes a newer site's reason for a refusal, too.
func (c *check) refusal(v uint32) Refusal {
	c.Within("refusal", int64(v), 0, 255)
	return Refusal(v)
}

func (c *check) cheque(sealed []byte) *Cheque {
	if c.Err != nil {
		return nil
	}
	q, err := OpenCheque(sealed)
	c.Err = err
	return q
}

func (c *check) receipt(sealed []byte) *Receipt {
	if c.Err != nil {
		return nil
	}
	r, err := OpenReceipt(sealed)
	c.Err = err
	return r
}
