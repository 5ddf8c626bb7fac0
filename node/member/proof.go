package member

import (
	"crypto/x509"
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// ErrStranger is wrapped by the errors about who is not, or no longer, a member.
var ErrStranger = errors.New("not a member of this federation")

// Proof is the certificates that lead from a site's key to the federation's roots, in
// DER, one after the other; those of the site come first.
type Proof []byte

// ProofMax bounds a proof, in bytes.
const ProofMax = proofMax * certificateMax

// Certificates parses a proof. The error wraps wire.ErrMalformed.
func (p Proof) Certificates() ([]*x509.Certificate, error) {
	if len(p) == 0 || len(p) > ProofMax {
		return nil, wire.Malformed("proof of membership of %d bytes, want 1 to %d", len(p), ProofMax)
	}
	all, err := x509.ParseCertificates(p)
	if err != nil {
		return nil, wire.Malformed("proof of membership: %v", err)
	}
	if len(all) > proofMax {
		return nil, wire.Malformed("proof of membership of %d certificates, want at most %d", len(all), proofMax)
	}
	return all, nil
}

// NewProof puts certificates together.
func NewProof(certificates ...*x509.Certificate) Proof {
	var p Proof
	for _, c := range certificates {
		p = append(p, c.Raw...)
	}
	return p
}

// Verify returns what the federation's roots say of site, as its proof shows. As many
// roots as must agree have to lead to the site's key; its rights are those that every
// certificate on the way has. Whether one was revoked Revoked.Has says. The error wraps
// wire.ErrMalformed or ErrStranger.
func (f *Federation) Verify(p Proof, site grid.SiteID, now grid.Time) (*Member, error) {
	all, err := p.Certificates()
	if err != nil {
		return nil, err
	}
	var own, others []*x509.Certificate
	for _, c := range all {
		if of, err := siteOf(c); err == nil && of == site {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("%w: no certificate is of the key of %s", ErrStranger, site)
	}
	var found *Member
	agreed := 0
	var why error
	for _, root := range f.Roots {
		m, err := underRoot(root, site, own, others, now)
		switch {
		case err != nil:
			why = err
			continue
		case found == nil:
			found = m
		case found.Name != m.Name || found.Org != m.Org:
			return nil, fmt.Errorf("%w: the roots disagree about %s: %s (%s) and %s (%s)", ErrStranger, site, found.Name, found.Org, m.Name, m.Org)
		default:
			found.Rights &= m.Rights
			found.Expires = min(found.Expires, m.Expires)
			found.Depth = max(found.Depth, m.Depth)
			found.chain = append(found.chain, m.chain...)
		}
		agreed++
	}
	if agreed < f.Quorum {
		return nil, fmt.Errorf("%w: %d of %d roots vouch for %s, %d must: %w", ErrStranger, agreed, len(f.Roots), site, f.Quorum, why)
	}
	if len(p) <= passedMax {
		found.proof = p
	}
	return found, nil
}

// Site returns whose proof it is, if it is a good one: the first certificate's.
func (p Proof) Site() (grid.SiteID, error) {
	all, err := p.Certificates()
	if err != nil {
		return "", err
	}
	return siteOf(all[0])
}

// underRoot returns what one root says of a site.
func underRoot(root *x509.Certificate, site grid.SiteID, own, others []*x509.Certificate, now grid.Time) (*Member, error) {
	o := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: instant(now),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	o.Roots.AddCert(root)
	for _, c := range others {
		o.Intermediates.AddCert(c)
	}
	var why error
	for _, leaf := range own {
		chains, err := leaf.Verify(o)
		if err != nil {
			why = explain(leaf, now, err)
			continue
		}
		m, err := memberOf(site, chains[0])
		if err != nil {
			why = err
			continue
		}
		return m, nil
	}
	return nil, why
}

// explain says what was wrong in words for people.
func explain(c *x509.Certificate, now grid.Time, err error) error {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		if now < since(c.NotBefore) {
			return fmt.Errorf("the certificate of %s begins %v, which has not come; is the clock right?", c.Subject.CommonName, c.NotBefore)
		}
		return fmt.Errorf("the certificate of %s, or one above it, ended %v", c.Subject.CommonName, c.NotAfter)
	}
	return err
}

// memberOf reads a chain that has been verified: the site's certificate first.
func memberOf(site grid.SiteID, chain []*x509.Certificate) (*Member, error) {
	leaf := chain[0]
	if len(chain) < 2 {
		return nil, errNoRights // a root is no site
	}
	m := &Member{
		Site: site, Name: leaf.Subject.CommonName, Issued: since(leaf.NotBefore) + skew, Expires: since(leaf.NotAfter),
		Rights: All, Depth: len(chain) - 2, Issuer: chain[1].Subject.CommonName,
	}
	if len(leaf.Subject.Organization) > 0 {
		m.Org = leaf.Subject.Organization[0]
	}
	if CheckName(m.Name) != nil || CheckOrg(m.Org) != nil {
		return nil, wire.Malformed("a certificate names a site %q of organisation %q", m.Name, m.Org)
	}
	for i, c := range chain[:len(chain)-1] {
		rights, err := rightsOf(c)
		if err != nil {
			return nil, err
		}
		if i > 0 { // a delegate: it gives what it has, but for the right to invite
			if !rights.Has(MayInvite) {
				return nil, fmt.Errorf("%s was certified by %s, who may not invite", m.Name, c.Subject.CommonName)
			}
			rights &^= MayInvite
		}
		m.Rights &= rights
		m.Expires = min(m.Expires, since(c.NotAfter))
		serial, ok := serialOf(c.SerialNumber)
		if !ok {
			return nil, wire.Malformed("the serial number of a certificate: want 1 to %d bits", serialBits)
		}
		m.chain = append(m.chain, revocation{issuerName(chain[i+1]), serial})
	}
	m.Serial = m.chain[0].serial
	return m, nil
}

// Issuer returns the member that has certified a site, empty if a root has.
func (p Proof) Issuer(site grid.SiteID) grid.SiteID {
	all, err := p.Certificates()
	if err != nil {
		return ""
	}
	for _, c := range all {
		if of, err := siteOf(c); err == nil && of != site && c.IsCA {
			return of
		}
	}
	return ""
}
