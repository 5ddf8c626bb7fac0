package wire

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"

	"gridnode/grid"
)

// Seal signs payload as site key's statement of the kind that domain names, so
// that anyone may store and forward it (a libp2p signed envelope).
func Seal(key crypto.PrivKey, domain string, payload []byte) ([]byte, error) {
	envelope, err := record.Seal(&sealed{domain, payload}, key)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", domain, err)
	}
	return envelope.Marshal()
}

// Open verifies a sealed statement of the kind that domain names and returns its
// payload and who signed it, or an error wrapping ErrMalformed.
func Open(domain string, envelope []byte) (payload []byte, signer grid.SiteID, err error) {
	s := sealed{domain: domain}
	e, err := record.ConsumeTypedEnvelope(envelope, &s)
	if err != nil {
		return nil, "", Malformed("signed %s: %v", domain, err)
	}
	id, err := peer.IDFromPublicKey(e.PublicKey)
	if err != nil {
		return nil, "", Malformed("signed %s: %v", domain, err)
	}
	return s.payload, grid.SiteID(id.String()), nil
}

type sealed struct {
	domain  string
	payload []byte
}

func (s *sealed) Domain() string                 { return "gridnode/" + s.domain }
func (s *sealed) Codec() []byte                  { return []byte("/gridnode/" + s.domain) }
func (s *sealed) MarshalRecord() ([]byte, error) { return s.payload, nil }
func (s *sealed) UnmarshalRecord(b []byte) error { s.payload = append([]byte(nil), b...); return nil }

// SiteOf returns the site whose Ed25519 key that is. The error wraps ErrMalformed.
func SiteOf(key ed25519.PublicKey) (grid.SiteID, error) {
	public, err := crypto.UnmarshalEd25519PublicKey(key)
	if err != nil {
		return "", Malformed("key of a site: %v", err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		return "", Malformed("key of a site: %v", err)
	}
	return grid.SiteID(id.String()), nil
}
