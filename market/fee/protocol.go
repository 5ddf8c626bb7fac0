package fee

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/market/bank"
)

// Protocol is how tabs speak over libp2p. Every decoder checks every field and verifies
// every signature.
var Protocol = wire.Protocol{
	ID: "/gridnode/fee/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{
		wire.FeeAdvance:  decodeAdvance,
		wire.FeeAdvanced: decodeAdvances,
		wire.FeeBill:     decodeBill,
		wire.FeeAgreed:   decodeAgreed,
	},
}

// Proto implements wire.Message. A cheque that was not signed cannot travel.
func (m *Advance) Proto() proto.Message {
	return &wirepb.FeeAdvance{Number: m.Number, Epoch: m.Epoch, Cheque: m.Cheque.Sealed}
}

func decodeAdvance(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.FeeAdvance
	if err := wire.Unmarshal(body, &p, wire.FeeAdvance); err != nil {
		return nil, err
	}
	var c check
	c.lease(p.Number, p.Epoch)
	m := &Advance{Number: p.Number, Epoch: p.Epoch}
	if c.Err == nil {
		m.Cheque, c.Err = bank.OpenCheque(p.Cheque)
	}
	if c.Err == nil && (m.Cheque.Payer != from || m.Cheque.Task != TaskOf(p.Number)) {
		c.Fail("cheque of another site, or for something else")
	}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Advances) Proto() proto.Message {
	return &wirepb.FeeAdvanced{Number: m.Number, Epoch: m.Epoch, Refusal: uint32(m.Refusal)}
}

func decodeAdvances(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.FeeAdvanced
	if err := wire.Unmarshal(body, &p, wire.FeeAdvanced); err != nil {
		return nil, err
	}
	var c check
	c.lease(p.Number, p.Epoch)
	c.Within("refusal", int64(p.Refusal), 0, 255) // a newer site's is one, too
	return wire.Checked(&Advances{Number: p.Number, Epoch: p.Epoch, Refusal: Refusal(p.Refusal)}, c.Err)
}

// Proto implements wire.Message.
func (m *Bill) Proto() proto.Message {
	p := &wirepb.FeeBill{Number: m.Number, Epoch: m.Epoch}
	if m.Claim != nil {
		p.Claim = m.Claim.Sealed
	}
	return p
}

func decodeBill(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.FeeBill
	if err := wire.Unmarshal(body, &p, wire.FeeBill); err != nil {
		return nil, err
	}
	var c check
	c.lease(p.Number, p.Epoch)
	m := &Bill{Number: p.Number, Epoch: p.Epoch}
	m.Claim = c.receipt(p.Claim, from, p.Number)
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Agreed) Proto() proto.Message {
	p := &wirepb.FeeAgreed{Number: m.Number, Epoch: m.Epoch}
	if m.Agreement != nil {
		p.Agreement = m.Agreement.Sealed
	}
	return p
}

func decodeAgreed(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.FeeAgreed
	if err := wire.Unmarshal(body, &p, wire.FeeAgreed); err != nil {
		return nil, err
	}
	var c check
	c.lease(p.Number, p.Epoch)
	m := &Agreed{Number: p.Number, Epoch: p.Epoch}
	if len(p.Agreement) > 0 {
		m.Agreement = c.receipt(p.Agreement, from, p.Number)
	}
	return wire.Checked(m, c.Err)
}

// check collects the first thing wrong with a message.
type check struct{ wire.Check }

func (c *check) lease(number, epoch uint64) {
	c.Positive("number", number)
	c.Positive("epoch", epoch)
}

// receipt opens what a site has signed about the cheque of a lease.
func (c *check) receipt(sealed []byte, from grid.SiteID, number uint64) *bank.Receipt {
	if c.Err != nil {
		return nil
	}
	r, err := bank.OpenReceipt(sealed)
	if c.Err = err; err == nil && (r.Signer != from || r.Task != TaskOf(number)) {
		c.Fail("receipt of another site, or for something else")
	}
	return r
}
