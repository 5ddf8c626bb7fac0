//go:build !client

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/member"
)

// requestType is the PEM type of a request for a certificate (RFC 7468).
const requestType = "CERTIFICATE REQUEST"

// fileMax bounds what these verbs read.
const fileMax = 1 << 20

func newFederationRequest(root *options) *cobra.Command {
	return &cobra.Command{
		Use:   "request",
		Short: "Print what a root key is to sign",
		Long: `Print a request for a certificate of this site (PKCS #10, in PEM), for whoever has a root key:
'gridnode federation sign' reads it. That is how a certificate of a root is renewed, how a
site gets the right to invite, and how several roots certify one site.`,
		Example: "  gridnode federation request > hill.csr",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := loadSettings(root.home, nil)
			if err != nil {
				return settingsError(err)
			}
			key, err := loadKey(root.home)
			if err != nil {
				return err
			}
			raw, err := rawKey(key)
			if err != nil {
				return err
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: s.name}}, raw)
			if err != nil {
				return fmt.Errorf("make request: %w", err)
			}
			return pem.Encode(cmd.OutOrStdout(), &pem.Block{Type: requestType, Bytes: der})
		},
	}
}

func rawKey(key crypto.PrivKey) (ed25519.PrivateKey, error) {
	raw, err := key.Raw()
	if err != nil || len(raw) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("the site's key is of type %v: members have Ed25519 keys", key.Type())
	}
	return raw, nil
}

// signing is what sign is told.
type signing struct {
	keyFile, rootsFile string
	name, org          string
	rights, valid      string
}

func newFederationSign(root *options) *cobra.Command {
	var s signing
	cmd := &cobra.Command{
		Use:   "sign REQUEST",
		Short: "Certify a site with a root key",
		Long: `Read a request ('gridnode federation request') from a file, or from standard input if it is
-, and print the certificate, with those of the roots: 'gridnode federation install' takes it.
Only the root key and federation.pem are needed, on any machine. If several roots must agree
each of them signs the same request.`,
		Example: `  gridnode federation sign hill.csr --root-key root.key > hill.pem
  gridnode federation sign hill.csr --root-key root.key --rights all --valid 365d > hill.pem`,
		Args: exactArgs(1, "the file of a request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, f := range []struct {
				value *string
				name  string
			}{{&s.keyFile, rootKey}, {&s.rootsFile, rootsFile}} {
				if *f.value == "" {
					*f.value = filepath.Join(root.home, f.name)
				}
			}
			text, err := readInput(cmd, args[0])
			if err != nil {
				return err
			}
			signed, err := s.sign(text)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(signed)
			return err
		},
	}
	cmd.Flags().StringVar(&s.keyFile, "root-key", "", "file of the root key (default root.key of the home)")
	cmd.Flags().StringVar(&s.rootsFile, "roots", "", "file of the roots' certificates (default federation.pem of the home)")
	cmd.Flags().StringVar(&s.name, "site", "", "name that the member will have (default the one in the request)")
	cmd.Flags().StringVar(&s.org, "org", "", "organisation that it belongs to")
	cmd.Flags().StringVar(&s.rights, "rights", "usual", "what it may do: offer, submit, lend, hold, bank, invite, with commas; usual: all but bank and invite; all")
	cmd.Flags().StringVar(&s.valid, "valid", spanText(certificateSpan), "how long the certificate is good")
	return cmd
}

// readInput reads a file, or standard input if it is called -.
func readInput(cmd *cobra.Command, path string) ([]byte, error) {
	var r io.Reader = cmd.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	text, err := io.ReadAll(io.LimitReader(r, fileMax+1))
	if err == nil && len(text) > fileMax {
		err = fmt.Errorf("%s: more than %d bytes", path, fileMax)
	}
	return text, err
}

// sign returns a certificate and those of the roots, in PEM.
func (s *signing) sign(request []byte) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != requestType {
		return nil, usagef("this is no request: want what 'gridnode federation request' prints")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, usagef("the request is damaged: %w", err)
	}
	key, ok := r.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, usagef("the request is for a key of type %T: members have Ed25519 keys", r.PublicKey)
	}
	rights, err := member.ParseRights(s.rights)
	if err != nil {
		return nil, usagef("--rights: %w", err)
	}
	valid, err := parseSpan(s.valid)
	if err != nil {
		return nil, usagef("--valid: %w", err)
	}
	f, issuer, err := s.root()
	if err != nil {
		return nil, err
	}
	g := member.Grant{Key: key, Name: s.name, Org: s.org, Rights: rights, From: wallClock(), Expires: wallClock() + valid}
	if g.Name == "" {
		g.Name = r.Subject.CommonName
	}
	der, err := issuer.Issue(rand.Reader, g)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return append(member.PEM(der), f.PEM()...), nil
}

// root returns the root whose key is in the file.
func (s *signing) root() (*member.Federation, *member.Issuer, error) {
	text, err := os.ReadFile(s.rootsFile)
	if err != nil {
		return nil, nil, fmt.Errorf("certificates of the roots: %w", err)
	}
	all, err := member.ParsePEM(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.rootsFile, err)
	}
	f, err := member.NewFederation(sortCertificates(all).roots) // in what rotate has printed are other ones, too
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.rootsFile, err)
	}
	if text, err = os.ReadFile(s.keyFile); err != nil {
		return nil, nil, fmt.Errorf("root key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, fmt.Errorf("%s: no key in it", s.keyFile)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.keyFile, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%s: a key of type %T, want Ed25519", s.keyFile, parsed)
	}
	for _, root := range f.Roots {
		if key.Public().(ed25519.PublicKey).Equal(root.PublicKey) {
			return f, &member.Issuer{Certificate: root, Key: key}, nil
		}
	}
	return nil, nil, fmt.Errorf("%s is the key of no root in %s: --roots says the file of others, such as what 'gridnode federation rotate' has printed", s.keyFile, s.rootsFile)
}

func newFederationInstall(root *options) *cobra.Command {
	return &cobra.Command{
		Use:   "install FILE…",
		Short: "Take certificates that root keys have signed",
		Long: `Take what 'gridnode federation sign' has printed, of as many roots as must agree, in place of
the certificates that this site has. What 'gridnode federation rotate' has printed replaces the
roots, if enough of those that this site knows have agreed. Nothing is changed unless the result
makes it a member. The daemon must not run meanwhile.`,
		Example: "  gridnode federation install hill.pem\n  gridnode federation install hill-1.pem hill-2.pem\n  gridnode federation install next.pem",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			unlock, err := changeMembership(root.home)
			if err != nil {
				return err
			}
			defer unlock()
			key, err := loadKey(root.home)
			if err != nil {
				return err
			}
			before, _ := loadCard(root.home) // one that is damaged is replaced
			card, err := cardFrom(cmd, before, args)
			if err != nil {
				return err
			}
			m, err := ownMember(card, key)
			if err != nil {
				return failf(exitRefused, "with these certificates this site would not be a member: %w; have its request ('gridnode federation request') signed by the roots that there are now, and install all files at once", err)
			}
			if err := saveCard(root.home, card); err != nil {
				return err
			}
			if err := writeSetting(root.home, "federation", card.Federation.Name); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), memberText(card.Federation.Name, m))
			return nil
		},
	}
}

// cardFrom puts together what the certificates in some files say; before is the card that
// the site has, or nil.
func cardFrom(cmd *cobra.Command, before *node.Card, paths []string) (*node.Card, error) {
	p, err := readBundle(cmd, paths)
	if err != nil {
		return nil, err
	}
	if len(p.vouchers) > 0 {
		return succeed(before, p)
	}
	f, err := member.NewFederation(p.roots)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if len(p.members) == 0 {
		return nil, usagef("there is no certificate of this site in it: %w", errNoOwn)
	}
	return &node.Card{Federation: f, Proof: member.NewProof(p.members...)}, nil
}

func containsCertificate(all []*x509.Certificate, c *x509.Certificate) bool {
	for _, other := range all {
		if other.Equal(c) {
			return true
		}
	}
	return false
}

// foundBy makes a federation of some roots, as many of which must agree, and certifies the
// site with that key as its first member.
func foundBy(roots, quorum int, name, siteName, org string, key crypto.PrivKey, valid grid.Time) (*node.Card, []ed25519.PrivateKey, error) {
	now := wallClock()
	var keys []ed25519.PrivateKey
	var all []*x509.Certificate
	var issuers []*member.Root
	for range roots {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, nil, fmt.Errorf("make root key: %w", err)
		}
		r, err := member.NewRoot(rand.Reader, private, name, quorum, now)
		if err != nil {
			return nil, nil, err
		}
		keys, all, issuers = append(keys, private), append(all, r.Certificate), append(issuers, r)
	}
	f, err := member.NewFederation(all)
	if err != nil {
		return nil, nil, err
	}
	raw, err := rawKey(key)
	if err != nil {
		return nil, nil, err
	}
	var proof member.Proof
	for _, r := range issuers[:quorum] {
		der, err := r.Issue(rand.Reader, member.Grant{
			Key: raw.Public().(ed25519.PublicKey), Name: siteName, Org: org, Rights: member.All, From: now, Expires: now + valid,
		})
		if err != nil {
			return nil, nil, err
		}
		proof = append(proof, der...)
	}
	return &node.Card{Federation: f, Proof: proof}, keys, nil
}
