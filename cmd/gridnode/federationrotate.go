//go:build !client

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/node"
	"gridnode/node/member"
)

// rotation is what rotate is told.
type rotation struct {
	keyFiles  []string
	rootsFile string
	nextFile  string // vouched for already, by other roots
	newKey    string
	all       bool
}

func newFederationRotate(root *options) *cobra.Command {
	var r rotation
	cmd := &cobra.Command{
		Use:   "rotate --root-key FILE…",
		Short: "Put new root keys in the place of lost or stolen ones",
		Long: `Replace the roots of the federation whose keys are not given, because they were lost or
stolen, by new ones. As many root keys must be given as roots must agree. The result is printed:
every site takes it with 'gridnode federation install', and does not believe the old roots any
more. Certificates that enough of the roots that stay have signed remain good; 'install' says
which do not.

Where the keys are kept at several places, the first prints what the next one reads with --next
and adds its word to; 'install' takes it when enough have.

With --all the roots whose keys are given are replaced, too: that is how a federation of one root
gets another one. All certificates that the old ones have signed must then be signed again.`,
		Example: `  gridnode federation rotate --root-key root-1.key,root-2.key --new-key root-4.key > next.pem
  gridnode federation rotate --root-key root-2.key --next next-1.pem > next.pem
  gridnode federation rotate --root-key root.key --all --new-key root-new.key > next.pem`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.rootsFile == "" {
				r.rootsFile = filepath.Join(root.home, rootsFile)
			}
			text, err := r.rotate(cmd)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&r.keyFiles, "root-key", nil, "files of the root keys that agree, with commas")
	cmd.Flags().StringVar(&r.rootsFile, "roots", "", "file of the roots' certificates (default federation.pem of the home)")
	cmd.Flags().StringVar(&r.nextFile, "next", "", "what rotate has printed elsewhere, for one more root to agree to")
	cmd.Flags().StringVar(&r.newKey, "new-key", "root-new.key", "file for the new root key; of several: with -1, -2 … before its ending")
	cmd.Flags().BoolVar(&r.all, "all", false, "replace the roots whose keys are given, too")
	return cmd
}

// rotate returns the next roots with the word of those whose keys are given.
func (r *rotation) rotate(cmd *cobra.Command) ([]byte, error) {
	if len(r.keyFiles) == 0 {
		return nil, usagef("--root-key: want the files of the root keys that are still yours alone")
	}
	f, issuers, err := r.issuers()
	if err != nil {
		return nil, err
	}
	var next *member.Federation
	var vouchers []*x509.Certificate
	if r.nextFile != "" {
		if next, vouchers, err = readSuccession(cmd, r.nextFile); err != nil {
			return nil, err
		}
	} else if next, err = r.successors(cmd, f, issuers); err != nil {
		return nil, err
	}
	for _, i := range issuers {
		v, err := i.Vouch(rand.Reader, next, wallClock())
		if err != nil {
			return nil, err
		}
		vouchers = append(vouchers, v)
	}
	if err := f.Succeed(next, vouchers); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "not enough yet: %v; have it read with --next where the other keys are\n", err)
	}
	text := next.PEM()
	for _, v := range vouchers {
		text = append(text, member.PEM(v.Raw)...)
	}
	return text, nil
}

// issuers returns the federation and its roots whose keys are given.
func (r *rotation) issuers() (f *member.Federation, all []*member.Issuer, err error) {
	for _, path := range r.keyFiles {
		s := signing{keyFile: path, rootsFile: r.rootsFile}
		var i *member.Issuer
		if f, i, err = s.root(); err != nil {
			return nil, nil, err
		}
		all = append(all, i)
	}
	return f, all, nil
}

// successors makes the roots that take the place of those that go, and stores their keys.
func (r *rotation) successors(cmd *cobra.Command, f *member.Federation, stay []*member.Issuer) (*member.Federation, error) {
	var roots []*x509.Certificate
	for _, i := range stay {
		if !r.all && !containsCertificate(roots, i.Certificate) {
			roots = append(roots, i.Certificate)
		}
	}
	gone := len(f.Roots) - len(roots)
	if gone == 0 {
		return nil, usagef("the keys of all roots are given, so none is replaced: leave out those that were lost or stolen, or say --all")
	}
	for n := range gone {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make root key: %w", err)
		}
		root, err := member.NewRoot(rand.Reader, private, f.Name, f.Quorum, wallClock())
		if err != nil {
			return nil, err
		}
		path := r.newKey
		if gone > 1 {
			ending := filepath.Ext(path)
			path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ending), n+1, ending)
		}
		if err := writeRootKey(path, private); err != nil {
			return nil, err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "new root key: %s; move it to a safe place\n", path)
		roots = append(roots, root.Certificate)
	}
	return member.NewFederation(roots)
}

// readSuccession reads what rotate has printed.
func readSuccession(cmd *cobra.Command, path string) (*member.Federation, []*x509.Certificate, error) {
	text, err := readInput(cmd, path)
	if err != nil {
		return nil, nil, err
	}
	all, err := member.ParsePEM(text)
	if err != nil {
		return nil, nil, usagef("%s: %w", path, err)
	}
	p := sortCertificates(all)
	next, err := member.NewFederation(p.roots)
	if err != nil {
		return nil, nil, usagef("%s: %w", path, err)
	}
	return next, p.vouchers, nil
}

// bundle is certificates by what they are for.
type bundle struct {
	roots    []*x509.Certificate
	vouchers []*x509.Certificate // for roots
	members  []*x509.Certificate
}

func sortCertificates(all []*x509.Certificate) (p bundle) {
	for _, c := range all {
		switch {
		case member.IsVoucher(c):
			p.vouchers = append(p.vouchers, c)
		case string(c.RawIssuer) != string(c.RawSubject):
			p.members = append(p.members, c)
		case !containsCertificate(p.roots, c):
			p.roots = append(p.roots, c)
		}
	}
	return p
}

// succeed returns the card of a site whose federation has other roots now. What certifies
// the site stays, with what is given besides: who has certified it may have a new
// certificate itself.
func succeed(before *node.Card, p bundle) (*node.Card, error) {
	if before == nil {
		return nil, usagef("this site is in no federation whose roots could be replaced")
	}
	next, err := member.NewFederation(p.roots)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if err := before.Federation.Succeed(next, p.vouchers); err != nil {
		return nil, failf(exitRefused, "these roots do not take the place of this site's: %w", err)
	}
	own, err := before.Proof.Certificates()
	if err != nil {
		return nil, err
	}
	return &node.Card{Federation: next, Proof: member.NewProof(append(p.members, own...)...)}, nil
}

// errNoOwn says what is missing in files that were to make a site a member.
var errNoOwn = errors.New("want what 'gridnode federation sign' prints")

// readBundle reads certificates from files.
func readBundle(cmd *cobra.Command, paths []string) (bundle, error) {
	var all []*x509.Certificate
	for _, path := range paths {
		text, err := readInput(cmd, path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, io.EOF) {
			return bundle{}, usagef("%w", err)
		}
		if err != nil {
			return bundle{}, err
		}
		some, err := member.ParsePEM(text)
		if err != nil {
			return bundle{}, usagef("%s: %w", path, err)
		}
		all = append(all, some...)
	}
	return sortCertificates(all), nil
}
