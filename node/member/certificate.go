package member

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Bounds on certificates.
const (
	certificateMax = 2048 // bytes of one
	proofMax       = 8    // certificates of one site
	rootsMax       = 15   // root keys of a federation
	nameMax        = 63   // characters of a site's name
	orgMax         = 63   // characters of an organisation
	serialBits     = 128
)

// The rights of a member, and the number of roots that must agree, are extensions of
// certificates. Their names are below a UUID, which needs no registry.
var (
	arc         = asn1.ObjectIdentifier{2, 25, 4711, 8, 1}
	rightsID    = append(arc[:len(arc):len(arc)], 1)
	quorumID    = append(arc[:len(arc):len(arc)], 2)
	errDelegate = errors.New("only the federation's roots give the right to invite")
	errNoRights = errors.New("it has no rights of this federation")
)

// Member is what a federation's roots say of a site.
type Member struct {
	Site    grid.SiteID
	Name    string // unique among members; see Prior
	Org     string // may be empty
	Rights  Rights
	Issued  grid.Time
	Expires grid.Time
	Serial  [serialBits / 8]byte // of its certificate
	Issuer  string               // who certified it: a member's name, or a root's
	Depth   int                  // certificates between a root and it: 0 or 1

	chain []revocation // any of which ends the membership
	proof Proof        // of it, to be shown to others; nil if it is too long for that
}

// Prior reports whether m has a better claim than other to a name that both have: it is
// nearer to the roots, or was certified earlier.
func (m *Member) Prior(other *Member) bool {
	switch {
	case m.Depth != other.Depth:
		return m.Depth < other.Depth
	case m.Issued != other.Issued:
		return m.Issued < other.Issued
	}
	return m.Site < other.Site
}

// Grant is what a certificate is to say.
type Grant struct {
	Key     ed25519.PublicKey
	Name    string
	Org     string
	Rights  Rights
	From    grid.Time
	Expires grid.Time
	Lot     Lot // that the member has from an earlier certificate; none: one is drawn
}

// Lot is what a certifier draws for a member, once it knows the member's key: the latter half
// of its certificates' serial numbers. A renewed certificate has the same, as who could have
// it drawn again would do so until it is a good one. See Roll.Seat.
type Lot [serialBits / 8 / 2]byte

// Lot returns what was drawn for the member.
func (m *Member) Lot() Lot { return Lot(m.Serial[len(m.Serial)-len(Lot{}):]) }

// Issuer signs certificates and revocation lists.
type Issuer struct {
	Certificate *x509.Certificate
	Key         crypto.Signer // of Certificate
}

// skew is how far a clock may be behind its issuer's.
const skew = 10 * grid.Minute

// Issue certifies a member. Nothing in the grant may go beyond what the issuer has:
// its rights and its end are cut down to the issuer's.
func (i *Issuer) Issue(random io.Reader, g Grant) ([]byte, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if !i.Certificate.IsCA {
		return nil, fmt.Errorf("%s may not invite", i.Certificate.Subject.CommonName)
	}
	rights := g.Rights
	expires := instant(g.Expires)
	if i.delegate() {
		own, err := rightsOf(i.Certificate)
		if err != nil {
			return nil, err
		}
		if rights.Has(MayInvite) {
			return nil, errDelegate
		}
		rights &= own
		expires = earlier(expires, i.Certificate.NotAfter)
	}
	extension, err := rightsExtension(rights)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		Subject: subject(g.Name, g.Org), NotBefore: instant(g.From - skew), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, ExtraExtensions: []pkix.Extension{extension},
	}
	if rights.Has(MayInvite) {
		t.IsCA, t.MaxPathLenZero = true, true
		t.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	return i.sign(random, t, g.Key, g.Lot)
}

// delegate reports whether the issuer is a member, and no root.
func (i *Issuer) delegate() bool { return i.Certificate.CheckSignatureFrom(i.Certificate) != nil }

// sign gives a certificate its serial number and signature.
func (i *Issuer) sign(random io.Reader, t *x509.Certificate, key ed25519.PublicKey, lot Lot) ([]byte, error) {
	var err error
	if t.SerialNumber, err = newSerial(random, lot); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(random, t, i.Certificate, key, i.Key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", t.Subject.CommonName, err)
	}
	if len(der) > certificateMax {
		return nil, fmt.Errorf("certificate of %s: %d bytes, want at most %d", t.Subject.CommonName, len(der), certificateMax)
	}
	return der, nil
}

// newSerial draws a positive number that no other certificate has. Its latter half is lot,
// if there is one.
func newSerial(random io.Reader, lot Lot) (*big.Int, error) {
	var b Serial
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	b[0] &= 0x7f // DER: a first bit would need a further byte
	b[0] |= 0x40 // always as long
	if lot != (Lot{}) {
		copy(b[len(b)-len(lot):], lot[:])
	}
	return new(big.Int).SetBytes(b[:]), nil
}

func (g *Grant) check() error {
	if err := CheckName(g.Name); err != nil {
		return err
	}
	if err := CheckOrg(g.Org); err != nil {
		return err
	}
	if len(g.Key) != ed25519.PublicKeySize {
		return fmt.Errorf("key of %s: %d bytes, want an Ed25519 key of %d", g.Name, len(g.Key), ed25519.PublicKeySize)
	}
	if g.Expires <= g.From {
		return fmt.Errorf("certificate of %s: it would end before it begins", g.Name)
	}
	return nil
}

// CheckName returns an error unless name can be a site's.
func CheckName(name string) error {
	if name == "" || len(name) > nameMax || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return fmt.Errorf("name %q: want 1 to %d letters, digits, dots, dashes or underscores", name, nameMax)
	}
	return nil
}

// CheckOrg returns an error unless org can be an organisation's name; it may be empty.
func CheckOrg(org string) error {
	if len(org) > orgMax || strings.ContainsFunc(org, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return fmt.Errorf("organisation %q: want at most %d characters, none of them a control character", org, orgMax)
	}
	return nil
}

func subject(name, org string) pkix.Name {
	n := pkix.Name{CommonName: name}
	if org != "" {
		n.Organization = []string{org}
	}
	return n
}

func rightsExtension(r Rights) (pkix.Extension, error) {
	value, err := asn1.Marshal(int(r))
	return pkix.Extension{Id: rightsID, Value: value}, err
}

// rightsOf returns what a certificate says; rights that this program does not know are
// left out.
func rightsOf(c *x509.Certificate) (Rights, error) {
	n, ok := number(c, rightsID)
	if !ok || n < 0 {
		return 0, errNoRights
	}
	return Rights(n&int(All)) & All, nil
}

// number returns the whole number in an extension.
func number(c *x509.Certificate, id asn1.ObjectIdentifier) (int, bool) {
	for _, e := range c.Extensions {
		if e.Id.Equal(id) {
			var n int
			rest, err := asn1.Unmarshal(e.Value, &n)
			return n, err == nil && len(rest) == 0
		}
	}
	return 0, false
}

// siteOf returns whose key a certificate is about.
func siteOf(c *x509.Certificate) (grid.SiteID, error) {
	key, ok := c.PublicKey.(ed25519.PublicKey)
	if !ok {
		return "", wire.Malformed("a certificate of a key of type %T, want Ed25519", c.PublicKey)
	}
	return wire.SiteOf(key)
}

func serialOf(n *big.Int) (serial [serialBits / 8]byte, ok bool) {
	if n == nil || n.Sign() <= 0 || n.BitLen() > serialBits {
		return serial, false
	}
	n.FillBytes(serial[:])
	return serial, true
}

func instant(t grid.Time) time.Time { return time.UnixMicro(int64(t)).UTC() }

func since(t time.Time) grid.Time { return grid.Time(t.UnixMicro()) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
