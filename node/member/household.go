package member

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"io"

	"gridnode/grid"
)

// Household is a federation whose root key lies in this program's memory: it certifies
// every site of a network on one machine.
type Household struct {
	Federation *Federation
	root       *Root
	random     io.Reader
	now        grid.Time
	span       grid.Time // for which certificates are good
}

// NewHousehold makes a federation from a root key. The same arguments, with random bits
// that are the same, give the same federation.
func NewHousehold(random io.Reader, key ed25519.PrivateKey, name string, now, span grid.Time) (*Household, error) {
	root, err := NewRoot(random, key, name, 1, now)
	if err != nil {
		return nil, err
	}
	f, err := NewFederation([]*x509.Certificate{root.Certificate})
	if err != nil {
		return nil, err
	}
	return &Household{Federation: f, root: root, random: random, now: now, span: span}, nil
}

// Admit certifies the site with that key.
func (h *Household) Admit(key ed25519.PublicKey, name, org string, rights Rights) (Proof, error) {
	return h.Issue(Grant{Key: key, Name: name, Org: org, Rights: rights, From: h.now, Expires: h.now + h.span})
}

// Issue certifies a site as a grant says.
func (h *Household) Issue(g Grant) (Proof, error) {
	der, err := h.root.Issue(h.random, g)
	if err != nil {
		return nil, fmt.Errorf("admit %s: %w", g.Name, err)
	}
	return der, nil
}

// Revoke takes certificates back: the list is numbered after before, which may be nil.
func (h *Household) Revoke(before *List, now grid.Time, serials ...Serial) (*List, error) {
	signed, err := h.root.Revoke(h.random, before, now, serials...)
	if err != nil {
		return nil, err
	}
	return h.Federation.OpenList(signed, nil)
}
