package lease

import (
	"google.golang.org/protobuf/proto"

	"gridnode/internal/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Protocol is how books speak over libp2p. Every decoder checks every field, so a
// decoded message holds nothing that Step could trip over.
var Protocol = wire.Protocol{
	ID: "/gridnode/lease/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{
		wire.LeaseRequest:  decodeRequest,
		wire.LeaseGrant:    decodeGrant,
		wire.LeaseRefuse:   decodeRefuse,
		wire.LeaseClaim:    decodeClaim,
		wire.LeaseRenew:    decodeRenew,
		wire.LeaseRenewed:  decodeRenewed,
		wire.LeaseRelease:  decodeRelease,
		wire.LeaseReleased: decodeReleased,
		wire.LeaseRevoke:   decodeRevoke,
	},
}

const siteIDMax = 128 // bytes

// goneMax bounds Grant.Gone: two terms for each lease of a chain, and some.
const goneMax = 4 * HopsMax * SpanLimit

// Proto implements wire.Message.
func (m *Request) Proto() proto.Message {
	return &wirepb.LeaseRequest{
		Number: m.Number, Processors: m.Processors, Span: int64(m.Span), Patience: int64(m.Patience), Hold: int64(m.Hold),
		Subject: subjectBytes(m.Subject), Sink: string(m.Sink), Ttl: m.TTL, Age: int64(m.Age),
	}
}

func decodeRequest(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRequest
	if err := unmarshal(body, &p, wire.LeaseRequest); err != nil {
		return nil, err
	}
	m := &Request{
		Number: p.Number, Processors: p.Processors, Span: grid.Time(p.Span), Patience: grid.Time(p.Patience), Hold: grid.Time(p.Hold),
		Sink: grid.SiteID(p.Sink), TTL: p.Ttl, Age: grid.Time(p.Age),
	}
	var c check
	c.number(p.Number)
	c.within("processors", p.Processors, 1, ProcessorsMax)
	c.within("span", p.Span, 1, int64(SpanLimit))
	c.within("patience", p.Patience, 0, int64(PatienceLimit))
	c.within("hold", p.Hold, 0, int64(HoldLimit))
	m.Subject = c.subject(p.Subject)
	c.site("sink", p.Sink)
	c.within("delegations left", int64(p.Ttl), 0, TTLMax)
	c.within("age", p.Age, 0, int64(grid.SpanMax))
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Grant) Proto() proto.Message {
	return &wirepb.LeaseGrant{
		Number: m.Number, Epoch: m.Epoch, Stamp: int64(m.Stamp), Hold: int64(m.Hold), Span: int64(m.Span),
		Source: string(m.Source), Key: m.Key, Hops: m.Hops, Gone: int64(m.Gone),
	}
}

func decodeGrant(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseGrant
	if err := unmarshal(body, &p, wire.LeaseGrant); err != nil {
		return nil, err
	}
	m := &Grant{
		Number: p.Number, Epoch: p.Epoch, Stamp: grid.Time(p.Stamp), Hold: grid.Time(p.Hold), Span: grid.Time(p.Span),
		Source: grid.SiteID(p.Source), Key: p.Key, Hops: p.Hops, Gone: grid.Time(p.Gone),
	}
	var c check
	c.number(p.Number)
	c.positive("epoch", p.Epoch)
	c.within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.within("hold", p.Hold, 1, int64(HoldLimit))
	c.within("span", p.Span, 1, int64(SpanLimit))
	c.site("source", p.Source)
	c.positive("key", p.Key)
	c.within("hops", int64(p.Hops), 1, HopsMax)
	c.within("end of the last use", p.Gone, 0, int64(goneMax))
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Refuse) Proto() proto.Message {
	return &wirepb.LeaseRefuse{Number: m.Number, Reason: uint32(m.Reason), Free: m.Free}
}

func decodeRefuse(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRefuse
	if err := unmarshal(body, &p, wire.LeaseRefuse); err != nil {
		return nil, err
	}
	m := &Refuse{Number: p.Number, Reason: Reason(p.Reason), Free: p.Free}
	var c check
	c.number(p.Number)
	c.within("reason", int64(p.Reason), 1, 255) // a newer site's reason is still a refusal
	c.within("free processors", p.Free, 0, ProcessorsMax)
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Claim) Proto() proto.Message {
	return &wirepb.LeaseClaim{Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp)}
}

func decodeClaim(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseClaim
	if err := unmarshal(body, &p, wire.LeaseClaim); err != nil {
		return nil, err
	}
	m := &Claim{Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp)}
	var c check
	c.number(p.Number)
	c.positive("epoch", p.Epoch)
	c.positive("sequence", p.Sequence)
	c.within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Renew) Proto() proto.Message {
	return &wirepb.LeaseRenew{Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp), Span: int64(m.Span)}
}

func decodeRenew(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRenew
	if err := unmarshal(body, &p, wire.LeaseRenew); err != nil {
		return nil, err
	}
	m := &Renew{Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp), Span: grid.Time(p.Span)}
	var c check
	c.number(p.Number)
	c.positive("epoch", p.Epoch)
	c.positive("sequence", p.Sequence)
	c.within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.within("span", p.Span, 0, int64(SpanLimit))
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Renewed) Proto() proto.Message {
	return &wirepb.LeaseRenewed{
		Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp), Term: int64(m.Term), Limit: int64(m.Limit), Gone: int64(m.Gone),
	}
}

func decodeRenewed(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRenewed
	if err := unmarshal(body, &p, wire.LeaseRenewed); err != nil {
		return nil, err
	}
	m := &Renewed{
		Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp),
		Term: grid.Time(p.Term), Limit: grid.Time(p.Limit), Gone: grid.Time(p.Gone),
	}
	var c check
	c.number(p.Number)
	c.positive("epoch", p.Epoch)
	c.positive("sequence", p.Sequence)
	c.within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.within("term", p.Term, 1, int64(SpanLimit))
	c.within("limit", p.Limit, p.Term, int64(SpanLimit))
	c.within("end of the last use", p.Gone, 0, int64(goneMax))
	return result(m, c.err)
}

// Proto implements wire.Message.
func (m *Release) Proto() proto.Message {
	return &wirepb.LeaseRelease{Number: m.Number, Epoch: m.Epoch}
}

func decodeRelease(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRelease
	if err := unmarshal(body, &p, wire.LeaseRelease); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	return result(&Release{Number: p.Number, Epoch: p.Epoch}, c.err)
}

// Proto implements wire.Message.
func (m *Released) Proto() proto.Message {
	return &wirepb.LeaseReleased{Number: m.Number, Epoch: m.Epoch, Cause: uint32(m.Cause), Gone: int64(m.Gone)}
}

func decodeReleased(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseReleased
	if err := unmarshal(body, &p, wire.LeaseReleased); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	c.within("cause", int64(p.Cause), 0, 255)
	c.within("end of the last use", p.Gone, 0, int64(goneMax))
	return result(&Released{Number: p.Number, Epoch: p.Epoch, Cause: Cause(p.Cause), Gone: grid.Time(p.Gone)}, c.err)
}

// Proto implements wire.Message.
func (m *Revoke) Proto() proto.Message {
	return &wirepb.LeaseRevoke{Number: m.Number, Epoch: m.Epoch}
}

func decodeRevoke(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRevoke
	if err := unmarshal(body, &p, wire.LeaseRevoke); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	c.positive("epoch", p.Epoch)
	return result(&Revoke{Number: p.Number, Epoch: p.Epoch}, c.err)
}

func unmarshal(body []byte, p proto.Message, kind grid.Kind) error {
	if err := proto.Unmarshal(body, p); err != nil {
		return wire.Malformed("%s: %v", wire.KindName(kind), err)
	}
	return nil
}

// result returns m, or only the error.
func result[M grid.Message](m M, err error) (grid.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func subjectBytes(id grid.JobID) []byte {
	b := id.Bytes()
	return b[:]
}

// check collects the first thing wrong with a message.
type check struct{ err error }

func (c *check) fail(what string) {
	if c.err == nil {
		c.err = wire.Malformed("%s", what)
	}
}

func (c *check) number(n uint64) { c.positive("number", n) }

func (c *check) subject(b []byte) grid.JobID {
	id, err := grid.JobIDFromBytes(b)
	if err != nil || id.IsZero() {
		c.fail("no subject")
	}
	return id
}

func (c *check) site(what, id string) {
	if id == "" || len(id) > siteIDMax {
		c.fail("no " + what)
	}
}

func (c *check) positive(what string, v uint64) {
	if v == 0 {
		c.fail("no " + what)
	}
}

func (c *check) within(what string, v, low, high int64) {
	if c.err == nil && (v < low || v > high) {
		c.err = wire.Malformed("%s %d, want %d to %d", what, v, low, high)
	}
}
