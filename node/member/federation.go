package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gridnode/grid"
)

// rootLife is how long a root's certificate lasts. The keys can be changed sooner.
const rootLife = 20 * 365 * grid.Day

// Federation is what a site must know to tell members from strangers: its name, and the
// certificates of its roots. It does not change; all its methods may be called
// concurrently.
type Federation struct {
	Name   string
	Quorum int // roots that must agree, from 1 to len(Roots)
	Roots  []*x509.Certificate
}

// Root is a root key with its certificate.
type Root struct{ Issuer }

// NewRoot makes the certificate of a root key of the federation that name says. Of all
// roots quorum must agree.
func NewRoot(random io.Reader, key ed25519.PrivateKey, name string, quorum int, now grid.Time) (*Root, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	agree, err := asn1.Marshal(quorum)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial(random, Lot{})
	if err != nil {
		return nil, err
	}
	public := key.Public().(ed25519.PublicKey)
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: rootMark(public)},
		NotBefore: instant(now - skew), NotAfter: instant(now + rootLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage:        x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtraExtensions: []pkix.Extension{{Id: quorumID, Value: agree}},
	}
	der, err := x509.CreateCertificate(random, t, t, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of root %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Root{Issuer{Certificate: certificate, Key: key}}, nil
}

// rootMark tells the roots of one federation apart: the beginning of the key's hash.
func rootMark(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}

// NewFederation returns the federation of the roots. All must say the same name and the
// same quorum.
func NewFederation(roots []*x509.Certificate) (*Federation, error) {
	if len(roots) == 0 || len(roots) > rootsMax {
		return nil, fmt.Errorf("federation with %d roots: want 1 to %d", len(roots), rootsMax)
	}
	f := &Federation{Name: roots[0].Subject.CommonName, Roots: slices.Clone(roots)}
	slices.SortFunc(f.Roots, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	f.Quorum, _ = number(roots[0], quorumID)
	if f.Quorum < 1 || f.Quorum > len(roots) {
		return nil, fmt.Errorf("federation %s: %d of %d roots must agree; want 1 to %[3]d", f.Name, f.Quorum, len(roots))
	}
	keys := make(map[string]bool)
	for _, c := range f.Roots {
		key, ok := c.PublicKey.(ed25519.PublicKey)
		quorum, _ := number(c, quorumID)
		switch {
		case !ok || !c.IsCA || c.CheckSignatureFrom(c) != nil:
			return nil, fmt.Errorf("federation %s: a certificate that is not a root's", f.Name)
		case c.Subject.CommonName != f.Name || quorum != f.Quorum:
			return nil, fmt.Errorf("federation %s, %d must agree: a root says %s, %d", f.Name, f.Quorum, c.Subject.CommonName, quorum)
		case keys[string(key)]:
			return nil, fmt.Errorf("federation %s: one root key twice", f.Name)
		}
		keys[string(key)] = true
	}
	return f, CheckName(f.Name)
}

const pemType = "CERTIFICATE"

// ParseFederation reads root certificates in PEM.
func ParseFederation(text []byte) (*Federation, error) {
	roots, err := ParsePEM(text)
	if err != nil {
		return nil, err
	}
	return NewFederation(roots)
}

// PEM returns what ParseFederation reads.
func (f *Federation) PEM() []byte {
	var text []byte
	for _, c := range f.Roots {
		text = append(text, PEM(c.Raw)...)
	}
	return text
}

// Fingerprint names the federation's roots: whoever knows it can be given the rest by
// anybody.
func (f *Federation) Fingerprint() [sha256.Size]byte {
	var all []byte
	for _, c := range f.Roots {
		all = append(all, c.Raw...)
	}
	return sha256.Sum256(all)
}

// PEM writes one certificate.
func PEM(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}) }

// ParsePEM reads certificates, at most as many as a federation may have roots.
func ParsePEM(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != pemType || len(block.Bytes) > certificateMax || len(all) >= rootsMax {
			return nil, fmt.Errorf("a block %s of %d bytes: want at most %d certificates of %d bytes", block.Type, len(block.Bytes), rootsMax, certificateMax)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("no certificate in it")
	}
	return all, nil
}

// root returns the root with that subject, or nil.
func (f *Federation) root(issuer []byte) *x509.Certificate {
	for _, c := range f.Roots {
		if bytes.Equal(c.RawSubject, issuer) {
			return c
		}
	}
	return nil
}
