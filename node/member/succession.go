package member

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"

	"gridnode/grid"
)

// successionID is the extension of a voucher: the fingerprint of the federation's next
// roots. It has no rights, so it makes nobody a member.
var successionID = append(arc[:len(arc):len(arc)], 3)

// vouchedFor returns which roots a certificate vouches for.
func vouchedFor(c *x509.Certificate) (fingerprint [sha256.Size]byte, ok bool) {
	for _, e := range c.Extensions {
		if e.Id.Equal(successionID) {
			var sum []byte
			rest, err := asn1.Unmarshal(e.Value, &sum)
			if err != nil || len(rest) > 0 || len(sum) != sha256.Size {
				return fingerprint, false
			}
			return [sha256.Size]byte(sum), true
		}
	}
	return fingerprint, false
}

// IsVoucher reports whether a certificate is one of those that Vouch makes.
func IsVoucher(c *x509.Certificate) bool {
	_, ok := vouchedFor(c)
	return ok
}

// Vouch says, as a root of the federation, that its roots are those of next from now on.
func (i *Issuer) Vouch(random io.Reader, next *Federation, now grid.Time) (*x509.Certificate, error) {
	print := next.Fingerprint()
	value, err := asn1.Marshal(print[:])
	if err != nil {
		return nil, err
	}
	serial, err := newSerial(random, Lot{})
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "next roots of " + next.Name},
		NotBefore: instant(now - skew), NotAfter: instant(now + rootLife),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtraExtensions: []pkix.Extension{{Id: successionID, Value: value}},
	}
	der, err := x509.CreateCertificate(random, t, i.Certificate, i.Key.Public(), i.Key)
	if err != nil {
		return nil, fmt.Errorf("vouch for the next roots of %s: %w", next.Name, err)
	}
	return x509.ParseCertificate(der)
}

// Succeed returns an error unless as many roots of f as must agree have vouched that next
// takes its place. The error wraps ErrStranger.
func (f *Federation) Succeed(next *Federation, vouchers []*x509.Certificate) error {
	if next.Name != f.Name {
		return fmt.Errorf("%w: the next roots are of %s, not of %s", ErrStranger, next.Name, f.Name)
	}
	want := next.Fingerprint()
	agreed := 0
	for _, root := range f.Roots {
		for _, v := range vouchers {
			if print, ok := vouchedFor(v); ok && bytes.Equal(print[:], want[:]) && v.CheckSignatureFrom(root) == nil {
				agreed++
				break
			}
		}
	}
	if agreed < f.Quorum {
		return fmt.Errorf("%w: %d of the %d roots of %s vouch for the next ones, %d must", ErrStranger, agreed, len(f.Roots), f.Name, f.Quorum)
	}
	return nil
}
