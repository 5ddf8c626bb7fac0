package member

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// InvitationPrefix begins the keys of stored invitations.
const InvitationPrefix = "invitation/"

// Bounds on invitations.
const (
	invitationsMax = 4096 // those that were used included, while their certificates last
	renewalsMax    = 32   // certificates of one member that have not ended
	secretSize     = 16
	addressesMax   = 16
	tokenMax       = 8 << 10
)

// InvitationID names an invitation.
type InvitationID [8]byte

// String returns the ID in hexadecimal.
func (id InvitationID) String() string { return hex.EncodeToString(id[:]) }

// Secret is what makes its bearer the one who is invited.
type Secret [secretSize]byte

// Invitation is one site's right to become a member, until it expires.
type Invitation struct {
	ID      InvitationID
	Hash    [sha256.Size]byte // of the secret, which only the bearer has
	Name    string            // that the site will have; empty: the site says
	Org     string
	Rights  Rights
	Expires grid.Time // of the invitation
	Valid   grid.Time // span for which the certificate will be good

	Site        grid.SiteID // who has used it; empty: nobody
	Took        string      // the name that it was used for
	Certificate []byte      // what it was given first, in DER
	Serials     []Serial    // of all certificates that it was given, renewals included, and that have not ended; newest last
	Ends        []grid.Time // when each of those ends
	Until       grid.Time   // when the last of those ends
}

// over reports whether nobody can use an invitation, or what it led to, any more.
func (i *Invitation) over(now grid.Time) bool { return max(i.Expires, i.Until) <= now }

// forget drops the certificates that have ended, by any clock: nobody needs to take them back.
func (i *Invitation) forget(now grid.Time) {
	kept := 0
	for k, end := range i.Ends {
		if now < end.Add(skew) {
			i.Serials[kept], i.Ends[kept] = i.Serials[k], end
			kept++
		}
	}
	i.Serials, i.Ends = i.Serials[:kept], i.Ends[:kept]
}

// gave notes a certificate.
func (i *Invitation) gave(der []byte) error {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	serial, ok := serialOf(c.SerialNumber)
	if !ok {
		return errSerial
	}
	i.Until = since(c.NotAfter)
	i.Serials, i.Ends = append(i.Serials, serial), append(i.Ends, i.Until)
	return nil
}

var errSerial = fmt.Errorf("a serial number of more than %d bits", serialBits)

// RecordKey implements grid.Record.
func (i *Invitation) RecordKey() string { return InvitationPrefix + i.ID.String() }

// AppendRecord implements grid.Record.
func (i *Invitation) AppendRecord(dst []byte) []byte {
	serials, ends := make([][]byte, len(i.Serials)), make([]int64, len(i.Serials))
	for k := range i.Serials {
		serials[k], ends[k] = i.Serials[k][:], int64(i.Ends[k])
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.MemberInvitation{
		Id: i.ID[:], Secret: i.Hash[:], Name: i.Name, Org: i.Org, Rights: uint32(i.Rights), Expires: int64(i.Expires), Valid: int64(i.Valid),
		Site: string(i.Site), Took: i.Took, Certificate: i.Certificate, Serials: serials, Until: int64(i.Until), Ends: ends,
	})
	if err != nil {
		panic(fmt.Sprintf("member: record %s: %v", i.RecordKey(), err)) // all strings were checked when they came in
	}
	return b
}

func decodeInvitation(value []byte) (*Invitation, error) {
	var p wirepb.MemberInvitation
	if err := proto.Unmarshal(value, &p); err != nil {
		return nil, err
	}
	if len(p.Id) != len(InvitationID{}) || len(p.Secret) != sha256.Size {
		return nil, errors.New("it is cut short")
	}
	serials, ends := make([]Serial, len(p.Serials)), make([]grid.Time, len(p.Serials))
	for k, s := range p.Serials {
		if len(s) != len(Serial{}) {
			return nil, errors.New("a serial number is cut short")
		}
		serials[k], ends[k] = Serial(s), grid.Time(p.Until)
		if len(p.Ends) == len(ends) { // else a former release has written it
			ends[k] = grid.Time(p.Ends[k])
		}
	}
	return &Invitation{
		Serials: serials, Ends: ends, Until: grid.Time(p.Until),
		ID: InvitationID(p.Id), Hash: [sha256.Size]byte(p.Secret), Name: p.Name, Org: p.Org, Rights: Rights(p.Rights) & All,
		Expires: grid.Time(p.Expires), Valid: grid.Time(p.Valid), Site: grid.SiteID(p.Site), Took: p.Took, Certificate: p.Certificate,
	}, nil
}

// Token is what an invited site is given, out of band: where to ask, with which secret,
// and how to know the federation.
type Token struct {
	ID          InvitationID
	Secret      Secret
	Federation  string
	Fingerprint [sha256.Size]byte // Federation.Fingerprint
	Addresses   []string          // multiaddrs of the inviting site, with /p2p/ID
	Name        string            // of the new site, if it was said
}

// tokenPrefix tells what a token is, and of which version.
const tokenPrefix = "gridnode-invitation-1."

// tokenForm is what a token says in JSON.
type tokenForm struct {
	ID          []byte   `json:"i"`
	Secret      []byte   `json:"s"`
	Federation  string   `json:"f"`
	Fingerprint []byte   `json:"r"`
	Addresses   []string `json:"a"`
	Name        string   `json:"n,omitempty"`
}

// String returns one word that ParseToken reads.
func (t *Token) String() string {
	text, err := json.Marshal(tokenForm{t.ID[:], t.Secret[:], t.Federation, t.Fingerprint[:], t.Addresses, t.Name})
	if err != nil {
		panic(err) // strings and bytes only
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken reads what String returns.
func ParseToken(text string) (*Token, error) {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > tokenMax {
		return nil, fmt.Errorf("this is no invitation: it should begin with %s", tokenPrefix)
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return nil, errors.New("the invitation is damaged: was all of it copied?")
	}
	var f tokenForm
	if err := json.Unmarshal(raw, &f); err != nil || len(f.ID) != len(InvitationID{}) || len(f.Secret) != secretSize || len(f.Fingerprint) != sha256.Size {
		return nil, errors.New("the invitation is damaged: was all of it copied?")
	}
	if len(f.Addresses) == 0 || len(f.Addresses) > addressesMax {
		return nil, fmt.Errorf("the invitation has %d addresses: want 1 to %d", len(f.Addresses), addressesMax)
	}
	if err := CheckName(f.Federation); err != nil {
		return nil, fmt.Errorf("the invitation's federation: %w", err)
	}
	return &Token{InvitationID(f.ID), Secret(f.Secret), f.Federation, [sha256.Size]byte(f.Fingerprint), slices.Clone(f.Addresses), f.Name}, nil
}

// Application is how an invited site asks to be certified.
type Application struct {
	ID     InvitationID
	Secret Secret
	Name   string // that it wants, if the invitation leaves it open
	Site   grid.SiteID
	Key    ed25519.PublicKey // of Site
}
