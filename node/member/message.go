package member

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Topic is where revocation lists are gossiped.
const Topic = "revoked"

// Revocations tells of certificates that are not good any more. Its list was verified
// when it came in.
type Revocations struct{ List *List }

// MessageKind returns wire.MemberRevoked.
func (*Revocations) MessageKind() grid.Kind { return wire.MemberRevoked }

// Proto implements wire.Message.
func (m *Revocations) Proto() proto.Message {
	return &wirepb.MemberRevoked{Signed: m.List.Signed, Proof: m.List.Proof}
}

// revocationsTag begins the words of Words: no proof begins so, which is a sequence in DER.
const revocationsTag = 0x0a

// Words returns the message as a peer is told it in place of a proof of membership.
func (m *Revocations) Words() []byte {
	b, err := proto.Marshal(m.Proto())
	if err != nil {
		panic(fmt.Sprintf("member: encode a revocation list: %v", err)) // it is bytes
	}
	return b
}

// ReadWords is the inverse of Words. It returns nil, nil for what is no such words, but may be
// a proof. The error wraps wire.ErrMalformed.
func (f *Federation) ReadWords(words []byte) (*Revocations, error) {
	if len(words) == 0 || words[0] != revocationsTag {
		return nil, nil
	}
	m, err := f.decodeRevoked(words)
	if err != nil {
		return nil, err
	}
	return m.(*Revocations), nil
}

// Digest says which lists a site has: of each issuer the number of the newest. Whoever
// has newer ones sends them.
type Digest struct {
	Newest map[[sha256.Size]byte]uint64 // by issuer
	Reply  bool                         // to one that has shown newer lists; it is not replied to
}

// MessageKind returns wire.MemberDigest.
func (*Digest) MessageKind() grid.Kind { return wire.MemberDigest }

// Proto implements wire.Message.
func (m *Digest) Proto() proto.Message {
	p := &wirepb.MemberDigest{Reply: m.Reply}
	for issuer, n := range m.Newest {
		p.Newest = append(p.Newest, &wirepb.MemberNewest{Issuer: issuer[:], Number: n})
	}
	return p
}

// Inquire asks for the proofs of sites that have passed nothing but quotes or records on
// through others.
type Inquire struct {
	Sites []grid.SiteID // 1 to inquireMax
}

// inquireMax bounds the sites of one Inquire.
const inquireMax = 64

// MessageKind returns wire.MemberInquire.
func (*Inquire) MessageKind() grid.Kind { return wire.MemberInquire }

// Proto implements wire.Message.
func (m *Inquire) Proto() proto.Message {
	p := &wirepb.MemberInquire{}
	for _, s := range m.Sites {
		p.Sites = append(p.Sites, string(s))
	}
	return p
}

// Inform answers Inquire, as far as the site has met those asked for, or has been shown
// their proofs. They are not verified.
type Inform struct {
	Proofs []Proof
}

// informMax bounds the proofs of an Inform, in bytes.
const informMax = 48 << 10

// MessageKind returns wire.MemberInform.
func (*Inform) MessageKind() grid.Kind { return wire.MemberInform }

// Proto implements wire.Message.
func (m *Inform) Proto() proto.Message {
	p := &wirepb.MemberInform{}
	for _, proof := range m.Proofs {
		p.Proofs = append(p.Proofs, proof)
	}
	return p
}

// NewProtocol returns how members of a federation tell each other of revocations. A
// list that no one in the federation may sign is malformed.
func NewProtocol(f *Federation) *wire.Protocol {
	return &wire.Protocol{
		ID: "/gridnode/member/1.0.0",
		Decoders: map[grid.Kind]wire.Decoder{
			wire.MemberRevoked: func(_ grid.SiteID, body []byte) (grid.Message, error) { return f.decodeRevoked(body) },
			wire.MemberDigest:  func(_ grid.SiteID, body []byte) (grid.Message, error) { return decodeDigest(body) },
			wire.MemberInquire: func(_ grid.SiteID, body []byte) (grid.Message, error) { return decodeInquire(body) },
			wire.MemberInform:  func(_ grid.SiteID, body []byte) (grid.Message, error) { return decodeInform(body) },
		},
	}
}

func (f *Federation) decodeRevoked(body []byte) (grid.Message, error) {
	var p wirepb.MemberRevoked
	if err := wire.Unmarshal(body, &p, wire.MemberRevoked); err != nil {
		return nil, err
	}
	l, err := f.OpenList(p.Signed, p.Proof)
	if err != nil {
		return nil, wire.Malformed("%v", err)
	}
	return &Revocations{l}, nil
}

func decodeDigest(body []byte) (grid.Message, error) {
	var p wirepb.MemberDigest
	if err := wire.Unmarshal(body, &p, wire.MemberDigest); err != nil {
		return nil, err
	}
	if len(p.Newest) > issuersMax+rootsMax {
		return nil, wire.Malformed("digest of %d revocation lists, at most %d", len(p.Newest), issuersMax+rootsMax)
	}
	m := &Digest{Newest: make(map[[sha256.Size]byte]uint64, len(p.Newest)), Reply: p.Reply}
	for _, e := range p.Newest {
		if len(e.GetIssuer()) != sha256.Size {
			return nil, wire.Malformed("issuer of %d bytes, want %d", len(e.GetIssuer()), sha256.Size)
		}
		m.Newest[[sha256.Size]byte(e.Issuer)] = e.Number
	}
	return m, nil
}

func decodeInquire(body []byte) (grid.Message, error) {
	var p wirepb.MemberInquire
	if err := wire.Unmarshal(body, &p, wire.MemberInquire); err != nil {
		return nil, err
	}
	if len(p.Sites) == 0 || len(p.Sites) > inquireMax {
		return nil, wire.Malformed("question about %d sites, want 1 to %d", len(p.Sites), inquireMax)
	}
	m := &Inquire{}
	for _, s := range p.Sites {
		if len(s) == 0 || len(s) > siteMax {
			return nil, wire.Malformed("question about a site of %d bytes, want 1 to %d", len(s), siteMax)
		}
		m.Sites = append(m.Sites, grid.SiteID(s))
	}
	return m, nil
}

// siteMax bounds the ID of a site, in bytes.
const siteMax = 128

func decodeInform(body []byte) (grid.Message, error) {
	var p wirepb.MemberInform
	if err := wire.Unmarshal(body, &p, wire.MemberInform); err != nil {
		return nil, err
	}
	if len(p.Proofs) > inquireMax {
		return nil, wire.Malformed("%d proofs, want at most %d", len(p.Proofs), inquireMax)
	}
	m := &Inform{}
	for _, proof := range p.Proofs {
		if len(proof) == 0 || len(proof) > ProofMax {
			return nil, wire.Malformed("proof of %d bytes, want 1 to %d", len(proof), ProofMax)
		}
		m.Proofs = append(m.Proofs, proof)
	}
	return m, nil
}

// listRecord is the stored form of a list: its message.
type listRecord List

// RecordKey implements grid.Record.
func (l *listRecord) RecordKey() string { return ListPrefix + hex.EncodeToString(l.Issuer[:]) }

// AppendRecord implements grid.Record.
func (l *listRecord) AppendRecord(dst []byte) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, (&Revocations{(*List)(l)}).Proto())
	if err != nil {
		panic(err) // bytes only
	}
	return b
}
