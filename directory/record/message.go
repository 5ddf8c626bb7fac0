package record

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of messages.
const (
	textMax    = max(siteMax, NameMax) // bytes of what is looked for
	claimsMax  = 8                     // sites that claim one name and are told of
	informMax  = claimsMax + 1         // records of an answer: the site of that ID, and those of that name
	frameMax   = informMax*(sealedMax+16) + 64
	refusalMax = 3
)

// Refusal is why a record was not taken. Numbers travel on the wire: append, never
// renumber.
type Refusal uint8

// Refusals.
const (
	Taken    Refusal = iota // it was
	Outdated                // a newer one of the site is held
	Void                    // it has expired, or is from the future
	Full                    // there is no room for another site, or for another that claims the name
)

// Enter hands a site's own record to one that is to hold it.
type Enter struct{ Record *Record }

// Entered answers Enter.
type Entered struct {
	Sequence uint64 // of the record that is held; 0 if none is
	Refusal  Refusal
	Claims   []grid.SiteID // other sites whose records claim the same name, by ID; at most 8
}

// Inquire asks for the records of those whom a text names.
type Inquire struct {
	Token uint64 // repeated in the answer
	Text  string // an ID or a name
}

// Inform answers Inquire.
type Inform struct {
	Token   uint64
	Records []*Record // by ID, each site once; at most 9
}

// MessageKind returns wire.DirectoryEnter.
func (*Enter) MessageKind() grid.Kind { return wire.DirectoryEnter }

// MessageKind returns wire.DirectoryEntered.
func (*Entered) MessageKind() grid.Kind { return wire.DirectoryEntered }

// MessageKind returns wire.DirectoryInquire.
func (*Inquire) MessageKind() grid.Kind { return wire.DirectoryInquire }

// MessageKind returns wire.DirectoryInform.
func (*Inform) MessageKind() grid.Kind { return wire.DirectoryInform }

// Protocol is how registries speak over libp2p.
var Protocol = wire.Protocol{
	ID: "/gridnode/site-record/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{
		wire.DirectoryEnter: decodeEnter, wire.DirectoryEntered: decodeEntered,
		wire.DirectoryInquire: decodeInquire, wire.DirectoryInform: decodeInform,
	},
}

// Proto implements wire.Message.
func (m *Enter) Proto() proto.Message { return &wirepb.RecordEnter{Sealed: m.Record.Sealed} }

// Proto implements wire.Message.
func (m *Entered) Proto() proto.Message {
	p := &wirepb.RecordEntered{Sequence: m.Sequence, Refusal: uint32(m.Refusal)}
	for _, s := range m.Claims {
		p.Claims = append(p.Claims, string(s))
	}
	return p
}

// Proto implements wire.Message.
func (m *Inquire) Proto() proto.Message {
	return &wirepb.RecordInquire{Token: m.Token, Text: []byte(m.Text)}
}

// Proto implements wire.Message.
func (m *Inform) Proto() proto.Message {
	p := &wirepb.RecordInform{Token: m.Token}
	for _, r := range m.Records {
		p.Sealed = append(p.Sealed, r.Sealed)
	}
	return p
}

// decodeEnter takes a record from its own site only.
func decodeEnter(from grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.RecordEnter
	if err := unmarshal(body, &p, wire.DirectoryEnter); err != nil {
		return nil, err
	}
	r, err := Open(p.Sealed)
	if err == nil && r.Site != from {
		err = wire.Malformed("record of %q sent by %q", r.Site, from)
	}
	return wire.Checked(&Enter{r}, err)
}

func decodeEntered(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.RecordEntered
	if err := unmarshal(body, &p, wire.DirectoryEntered); err != nil {
		return nil, err
	}
	if len(p.Claims) > claimsMax || p.Refusal > refusalMax {
		return nil, wire.Malformed("%d claims and refusal %d, at most %d and %d", len(p.Claims), p.Refusal, claimsMax, refusalMax)
	}
	m := &Entered{Sequence: p.Sequence, Refusal: Refusal(p.Refusal)}
	for i, s := range p.Claims {
		if len(s) == 0 || len(s) > siteMax || i > 0 && s <= p.Claims[i-1] {
			return nil, wire.Malformed("claim of %q: want 1 to %d bytes, in order", s, siteMax)
		}
		m.Claims = append(m.Claims, grid.SiteID(s))
	}
	return m, nil
}

func decodeInquire(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.RecordInquire
	if err := unmarshal(body, &p, wire.DirectoryInquire); err != nil {
		return nil, err
	}
	if len(p.Text) == 0 || len(p.Text) > textMax {
		return nil, wire.Malformed("text of %d bytes, want 1 to %d", len(p.Text), textMax)
	}
	return &Inquire{p.Token, string(p.Text)}, nil
}

func decodeInform(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.RecordInform
	if err := unmarshal(body, &p, wire.DirectoryInform); err != nil {
		return nil, err
	}
	if len(p.Sealed) > informMax {
		return nil, wire.Malformed("%d records, at most %d", len(p.Sealed), informMax)
	}
	m := &Inform{Token: p.Token}
	for _, sealed := range p.Sealed {
		r, err := Open(sealed)
		if err != nil {
			return nil, err
		}
		if n := len(m.Records); n > 0 && r.Site <= m.Records[n-1].Site {
			return nil, wire.Malformed("record of %q out of order", r.Site)
		}
		m.Records = append(m.Records, r)
	}
	return m, nil
}

func unmarshal(body []byte, p proto.Message, kind grid.Kind) error {
	if len(body) > frameMax {
		return wire.Malformed("%s of %d bytes, at most %d", wire.KindName(kind), len(body), frameMax)
	}
	return wire.Unmarshal(body, p, kind)
}
