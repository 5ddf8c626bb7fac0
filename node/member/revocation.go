package member

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Bounds on revocation lists.
const (
	// ListMax bounds a revocation list with the proof of whoever signed it, in bytes.
	ListMax = 48 << 10
	// entriesMax bounds the certificates on one list.
	entriesMax = 1000
	// issuersMax bounds the issuers whose lists are kept.
	issuersMax = 256
)

// List is a revocation list: all certificates that one issuer has taken back and that
// would not have ended by themselves. A newer one has a higher number.
type List struct {
	Issuer [sha256.Size]byte // hash of the issuer's key
	Number uint64
	Signed []byte // an X.509 revocation list, in DER
	Proof  Proof  // of the issuer; empty if it is a root

	serials []([serialBits / 8]byte)
	root    bool
}

// Serial names a certificate.
type Serial = [serialBits / 8]byte

// Revoke returns the list of an issuer with those serials, numbered after before, which
// may be nil.
func (i *Issuer) Revoke(random io.Reader, before *List, now grid.Time, serials ...Serial) ([]byte, error) {
	all := slices.Clone(serials)
	number := uint64(1)
	if before != nil {
		number = before.Number + 1
		all = append(all, before.serials...)
	}
	slices.SortFunc(all, func(a, b Serial) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	if len(all) > entriesMax {
		return nil, fmt.Errorf("%d certificates to revoke: want at most %d; the roots can be changed instead", len(all), entriesMax)
	}
	t := &x509.RevocationList{Number: new(big.Int).SetUint64(number), ThisUpdate: instant(now), NextUpdate: instant(now + rootLife)}
	for _, s := range all {
		t.RevokedCertificateEntries = append(t.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: new(big.Int).SetBytes(s[:]), RevocationTime: instant(now)})
	}
	der, err := x509.CreateRevocationList(random, t, i.Certificate, i.Key)
	if err != nil {
		return nil, fmt.Errorf("sign revocation list of %s: %w", i.Certificate.Subject.CommonName, err)
	}
	return der, nil
}

// OpenList verifies a list: it is signed by a root, or by the member that its proof is
// of, which may invite. That the member's own certificate has ended or was revoked does
// not matter: it may always take back what it gave. The error wraps wire.ErrMalformed or
// ErrStranger.
func (f *Federation) OpenList(signed []byte, proof Proof) (*List, error) {
	if len(signed)+len(proof) > ListMax {
		return nil, wire.Malformed("revocation list of %d bytes, want at most %d", len(signed)+len(proof), ListMax)
	}
	parsed, err := x509.ParseRevocationList(signed)
	if err != nil {
		return nil, wire.Malformed("revocation list: %v", err)
	}
	l := &List{Signed: bytes.Clone(signed), Proof: slices.Clone(proof)}
	issuer := f.root(parsed.RawIssuer)
	l.root = issuer != nil
	if issuer == nil {
		if issuer, err = f.issuerOf(proof, parsed); err != nil {
			return nil, err
		}
	}
	if err := parsed.CheckSignatureFrom(issuer); err != nil {
		return nil, fmt.Errorf("%w: revocation list of %s: %w", ErrStranger, issuer.Subject.CommonName, err)
	}
	l.Issuer = issuerName(issuer)
	if parsed.Number == nil || !parsed.Number.IsUint64() || len(parsed.RevokedCertificateEntries) > entriesMax {
		return nil, wire.Malformed("revocation list of %s: number %v, %d entries", issuer.Subject.CommonName, parsed.Number, len(parsed.RevokedCertificateEntries))
	}
	l.Number = parsed.Number.Uint64()
	for _, e := range parsed.RevokedCertificateEntries {
		serial, ok := serialOf(e.SerialNumber)
		if !ok {
			return nil, wire.Malformed("revocation list of %s: serial number %v", issuer.Subject.CommonName, e.SerialNumber)
		}
		l.serials = append(l.serials, serial)
	}
	return l, nil
}

// issuerOf returns the certificate in proof that may have signed a list.
func (f *Federation) issuerOf(proof Proof, list *x509.RevocationList) (*x509.Certificate, error) {
	all, err := proof.Certificates()
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if !bytes.Equal(c.RawSubject, list.RawIssuer) || !c.IsCA {
			continue
		}
		for _, root := range f.Roots {
			if c.CheckSignatureFrom(root) == nil {
				return c, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: nobody whom a root gave the right to invite has signed the revocation list", ErrStranger)
}

// issuerName tells issuers apart: two may have one name, but not one key.
func issuerName(c *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(c.RawSubjectPublicKeyInfo)
}

// Revoked is what was taken back, by all issuers. Use NewRevoked. A nil one holds
// nothing. It is changed by Add only.
type Revoked struct {
	lists   map[[sha256.Size]byte]*List // by issuer
	serials map[revocation]bool
}

// revocation is a certificate as its issuer, or a root (zeros), takes it back.
type revocation struct {
	issuer [sha256.Size]byte
	serial Serial
}

// NewRevoked returns an empty one.
func NewRevoked() *Revoked {
	return &Revoked{lists: make(map[[sha256.Size]byte]*List), serials: make(map[revocation]bool)}
}

// errBounds says that no more issuers' lists are kept.
var errBounds = errors.New("too many issuers of revocation lists")

// Add keeps a list that is newer than what is known of its issuer, and reports whether
// it is.
func (r *Revoked) Add(l *List) (news bool, err error) {
	old := r.lists[l.Issuer]
	if old != nil && old.Number >= l.Number {
		return false, nil
	}
	if old == nil && len(r.lists) >= issuersMax && !l.root {
		return false, errBounds
	}
	if old != nil {
		for _, s := range old.serials {
			delete(r.serials, revocation{old.scope(), s})
		}
	}
	r.lists[l.Issuer] = l
	for _, s := range l.serials {
		r.serials[revocation{l.scope(), s}] = true
	}
	return true, nil
}

// has reports whether the list takes back a certificate of a chain.
func (l *List) has(chain []revocation) bool {
	return slices.ContainsFunc(chain, func(link revocation) bool {
		return (l.root || link.issuer == l.Issuer) && slices.Contains(l.serials, link.serial)
	})
}

func (l *List) scope() (issuer [sha256.Size]byte) {
	if l.root {
		return issuer // of any issuer
	}
	return l.Issuer
}

// Of returns the newest list of an issuer, or nil.
func (r *Revoked) Of(i *Issuer) *List { return r.lists[issuerName(i.Certificate)] }

// Lists returns all lists, in the order of their issuers.
func (r *Revoked) Lists() []*List {
	all := make([]*List, 0, len(r.lists))
	for _, l := range r.lists {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *List) int { return bytes.Compare(a.Issuer[:], b.Issuer[:]) })
	return all
}

// Clone returns a copy that Add on r does not change.
func (r *Revoked) Clone() *Revoked {
	c := NewRevoked()
	for k, v := range r.lists {
		c.lists[k] = v
	}
	for k := range r.serials {
		c.serials[k] = true
	}
	return c
}

// Has reports whether a member's certificate, or one above it, was taken back by who
// signed it, or by a root.
func (r *Revoked) Has(m *Member) bool { return r.hasAny(m.chain) }

func (r *Revoked) hasAny(chain []revocation) bool {
	for _, link := range chain {
		if r.serials[link] || r.serials[revocation{serial: link.serial}] {
			return true
		}
	}
	return false
}
