package lease

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
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
		wire.LeaseInvite:   decodeInvite,
		wire.LeaseJoin:     decodeJoin,
		wire.LeaseFamily:   decodeFamily,
	},
}

const siteIDMax = 128 // bytes

// goneMax bounds Grant.Gone: two terms for each lease of a chain, and some.
const goneMax = 4 * HopsMax * TermMax

// Proto implements wire.Message.
func (m *Request) Proto() proto.Message {
	return &wirepb.LeaseRequest{
		Number: m.Number, Processors: m.Processors, Span: int64(m.Span), Patience: int64(m.Patience), Hold: int64(m.Hold),
		Subject: wire.JobBytes(m.Subject), Sink: string(m.Sink), Ttl: m.TTL, Age: int64(m.Age),
		Bank: string(m.Bank), Most: int64(m.Most), Within: int64(m.Within),
	}
}

func decodeRequest(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRequest
	if err := wire.Unmarshal(body, &p, wire.LeaseRequest); err != nil {
		return nil, err
	}
	m := &Request{
		Number: p.Number, Processors: p.Processors, Span: grid.Time(p.Span), Patience: grid.Time(p.Patience), Hold: grid.Time(p.Hold),
		Sink: grid.SiteID(p.Sink), TTL: p.Ttl, Age: grid.Time(p.Age), Bank: grid.SiteID(p.Bank), Most: grid.Price(p.Most),
		Within: grid.Time(p.Within),
	}
	var c check
	c.number(p.Number)
	c.Within("processors", p.Processors, 1, ProcessorsMax)
	c.Within("span", p.Span, 1, int64(SpanLimit))
	c.Within("patience", p.Patience, 0, int64(PatienceLimit))
	c.Within("hold", p.Hold, 0, int64(HoldLimit))
	m.Subject = c.subject(p.Subject)
	c.site("sink", p.Sink)
	c.Within("delegations left", int64(p.Ttl), 0, TTLMax)
	c.Within("age", p.Age, 0, int64(grid.SpanMax))
	c.Within("bank's length", int64(len(p.Bank)), 0, siteIDMax)
	c.price(p.Most)
	c.Within("span until they are needed", p.Within, 0, int64(grid.SpanMax))
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Grant) Proto() proto.Message {
	return &wirepb.LeaseGrant{
		Number: m.Number, Epoch: m.Epoch, Stamp: int64(m.Stamp), Hold: int64(m.Hold), Span: int64(m.Span),
		Source: string(m.Source), Key: m.Key, Hops: m.Hops, Gone: int64(m.Gone), Price: int64(m.Price),
	}
}

func decodeGrant(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseGrant
	if err := wire.Unmarshal(body, &p, wire.LeaseGrant); err != nil {
		return nil, err
	}
	m := &Grant{
		Number: p.Number, Epoch: p.Epoch, Stamp: grid.Time(p.Stamp), Hold: grid.Time(p.Hold), Span: grid.Time(p.Span),
		Source: grid.SiteID(p.Source), Key: p.Key, Hops: p.Hops, Gone: grid.Time(p.Gone), Price: grid.Price(p.Price),
	}
	var c check
	c.number(p.Number)
	c.Positive("epoch", p.Epoch)
	c.Within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.Within("hold", p.Hold, 1, int64(HoldLimit))
	c.Within("span", p.Span, 1, int64(SpanLimit))
	c.site("source", p.Source)
	c.Positive("key", p.Key)
	c.Within("hops", int64(p.Hops), 1, HopsMax)
	c.Within("end of the last use", p.Gone, 0, int64(goneMax))
	c.price(p.Price)
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Refuse) Proto() proto.Message {
	return &wirepb.LeaseRefuse{Number: m.Number, Reason: uint32(m.Reason), Free: m.Free, Price: int64(m.Price), Ready: int64(m.Ready), Span: int64(m.Span), Lends: m.Lends}
}

func decodeRefuse(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRefuse
	if err := wire.Unmarshal(body, &p, wire.LeaseRefuse); err != nil {
		return nil, err
	}
	m := &Refuse{Number: p.Number, Reason: Reason(p.Reason), Free: p.Free, Price: grid.Price(p.Price), Ready: grid.Time(p.Ready), Span: grid.Time(p.Span), Lends: p.Lends}
	var c check
	c.number(p.Number)
	c.Within("reason", int64(p.Reason), 1, 255) // a newer site's reason is still a refusal
	c.Within("free processors", p.Free, 0, ProcessorsMax)
	c.Within("span until they are ready", p.Ready, 0, int64(grid.SpanMax))
	c.Within("span", p.Span, 0, int64(SpanLimit))
	c.Within("most processors", p.Lends, 0, ProcessorsMax)
	c.price(p.Price)
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Claim) Proto() proto.Message {
	return &wirepb.LeaseClaim{Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp)}
}

func decodeClaim(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseClaim
	if err := wire.Unmarshal(body, &p, wire.LeaseClaim); err != nil {
		return nil, err
	}
	m := &Claim{Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp)}
	var c check
	c.number(p.Number)
	c.Positive("epoch", p.Epoch)
	c.Positive("sequence", p.Sequence)
	c.Within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Renew) Proto() proto.Message {
	return &wirepb.LeaseRenew{Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp), Span: int64(m.Span)}
}

func decodeRenew(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRenew
	if err := wire.Unmarshal(body, &p, wire.LeaseRenew); err != nil {
		return nil, err
	}
	m := &Renew{Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp), Span: grid.Time(p.Span)}
	var c check
	c.number(p.Number)
	c.Positive("epoch", p.Epoch)
	c.Positive("sequence", p.Sequence)
	c.Within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.Within("span", p.Span, 0, int64(SpanLimit))
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Renewed) Proto() proto.Message {
	return &wirepb.LeaseRenewed{
		Number: m.Number, Epoch: m.Epoch, Sequence: m.Sequence, Stamp: int64(m.Stamp), Term: int64(m.Term), Limit: int64(m.Limit), Gone: int64(m.Gone),
	}
}

func decodeRenewed(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRenewed
	if err := wire.Unmarshal(body, &p, wire.LeaseRenewed); err != nil {
		return nil, err
	}
	m := &Renewed{
		Number: p.Number, Epoch: p.Epoch, Sequence: p.Sequence, Stamp: grid.Time(p.Stamp),
		Term: grid.Time(p.Term), Limit: grid.Time(p.Limit), Gone: grid.Time(p.Gone),
	}
	var c check
	c.number(p.Number)
	c.Positive("epoch", p.Epoch)
	c.Positive("sequence", p.Sequence)
	c.Within("stamp", p.Stamp, 0, int64(grid.SpanMax))
	c.Within("term", p.Term, 1, int64(TermMax))
	c.Within("limit", p.Limit, p.Term, int64(SpanLimit))
	c.Within("end of the last use", p.Gone, 0, int64(goneMax))
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Release) Proto() proto.Message {
	return &wirepb.LeaseRelease{Number: m.Number, Epoch: m.Epoch}
}

func decodeRelease(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRelease
	if err := wire.Unmarshal(body, &p, wire.LeaseRelease); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	return wire.Checked(&Release{Number: p.Number, Epoch: p.Epoch}, c.Err)
}

// Proto implements wire.Message.
func (m *Released) Proto() proto.Message {
	return &wirepb.LeaseReleased{Number: m.Number, Epoch: m.Epoch, Cause: uint32(m.Cause), Gone: int64(m.Gone)}
}

func decodeReleased(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseReleased
	if err := wire.Unmarshal(body, &p, wire.LeaseReleased); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	c.Within("cause", int64(p.Cause), 0, 255)
	c.Within("end of the last use", p.Gone, 0, int64(goneMax))
	return wire.Checked(&Released{Number: p.Number, Epoch: p.Epoch, Cause: Cause(p.Cause), Gone: grid.Time(p.Gone)}, c.Err)
}

// Proto implements wire.Message.
func (m *Revoke) Proto() proto.Message {
	return &wirepb.LeaseRevoke{Number: m.Number, Epoch: m.Epoch}
}

func decodeRevoke(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseRevoke
	if err := wire.Unmarshal(body, &p, wire.LeaseRevoke); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	c.Positive("epoch", p.Epoch)
	return wire.Checked(&Revoke{Number: p.Number, Epoch: p.Epoch}, c.Err)
}

// check collects the first thing wrong with a message.
type check struct{ wire.Check }

func (c *check) number(n uint64) { c.Positive("number", n) }

func (c *check) price(p int64) { c.Within("price", p, 0, int64(grid.CreditsMax)) }

func (c *check) subject(b []byte) grid.JobID {
	id, err := grid.JobIDFromBytes(b)
	if err != nil || id.IsZero() {
		c.Fail("no subject")
	}
	return id
}

func (c *check) site(what, id string) {
	if id == "" || len(id) > siteIDMax {
		c.Fail("no " + what)
	}
}
