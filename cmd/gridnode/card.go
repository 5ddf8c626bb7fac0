//go:build !client

package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node"
	"gridnode/node/member"
)

// Files of a home that say of which federation its site is a member. Certificates are in
// PEM, as other programs read them.
const (
	rootsFile  = "federation.pem" // of the roots
	memberFile = "member.pem"     // of the site first, then of who certified it
	rootKey    = "root.key"       // of a root that was made here; of several: root-1.key, …
)

// loadCard returns what makes the site a member, nil if its federation is open.
func loadCard(home string) (*node.Card, error) {
	roots, err := os.ReadFile(filepath.Join(home, rootsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := member.ParseFederation(roots)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(home, rootsFile), err)
	}
	path := filepath.Join(home, memberFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: this site knows its federation %s and is no member; ask for an invitation and use 'gridnode federation join TOKEN'", path, f.Name)
	}
	if err != nil {
		return nil, err
	}
	certificates, err := member.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &node.Card{Federation: f, Proof: member.NewProof(certificates...)}, nil
}

// saveCard writes the files that loadCard reads.
func saveCard(home string, c *node.Card) error {
	certificates, err := c.Proof.Certificates()
	if err != nil {
		return err
	}
	var text []byte
	for _, certificate := range certificates {
		text = append(text, member.PEM(certificate.Raw)...)
	}
	// Without the roots the certificate says nothing, so they come last.
	if err := atomicfile.Rewrite(filepath.Join(home, memberFile), text); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := atomicfile.Rewrite(filepath.Join(home, rootsFile), c.Federation.PEM()); err != nil {
		return fmt.Errorf("write roots: %w", err)
	}
	return nil
}

// writeRootKey stores the key of a root where none is.
func writeRootKey(path string, key ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write root key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return errors.Join(err, f.Sync(), f.Close())
}

// ownMember returns what the roots say of the site of a home.
func ownMember(card *node.Card, key crypto.PrivKey) (*member.Member, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return card.Federation.Verify(card.Proof, grid.SiteID(id.String()), wallClock())
}
