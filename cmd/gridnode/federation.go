//go:build !client

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node"
	"gridnode/node/member"
)

// wallClock is the time by which certificates are good or not.
func wallClock() grid.Time { return grid.Time(time.Now().UnixMicro()) }

// certificateSpan is how long the certificate of a federation's first member lasts.
const certificateSpan = 365 * grid.Day

func newFederation(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "federation",
		Short: "Make a federation, join one, and see which one this site is a member of",
		Long: `A federation is the sites that its root key vouches for. Whoever has made it invites
others ('gridnode invite'), and takes membership back ('gridnode revoke'). Sites whose home
has no federation.pem are in an open federation: there, whoever knows an address takes part.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range []*cobra.Command{newFederationCreate(root), newFederationJoin(root), newFederationShow(root),
		newFederationRequest(root), newFederationSign(root), newFederationInstall(root), newFederationRotate(root)} {
		verb.DisableFlagsInUseLine = true
		cmd.AddCommand(verb)
	}
	return cmd
}

func newFederationCreate(root *options) *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a federation whose first member is this site",
		Long: `Make a root key, and certify this site as the first member, with every right. The
federation's certificates are written to federation.pem and member.pem in the home directory,
the root key to root.key. The daemon does not need the root key: move it to where it is safe.
Who has it can certify and revoke anybody; without it nobody can give the right to invite.

With --roots N --quorum K there are N root keys, K of which must certify a site that may invite,
so that a key that is lost or stolen is not the end: root-1.key and so on.`,
		Example: `  gridnode federation create physics
  gridnode federation create physics --org 'Institute of Physics'
  gridnode federation create physics --roots 3 --quorum 2`,
		Args: exactArgs(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.create(cmd, root.home, args[0])
		},
	}
	cmd.Flags().StringVar(&c.org, "org", "", "organisation that this site belongs to")
	cmd.Flags().IntVar(&c.roots, "roots", 1, "number of root keys, 1 to 15")
	cmd.Flags().IntVar(&c.quorum, "quorum", 1, "how many of them must agree")
	return cmd
}

// creation is what create is told.
type creation struct {
	org           string
	roots, quorum int
}

func (c *creation) create(cmd *cobra.Command, home, name string) error {
	name, err := checkFederation(name)
	if err != nil {
		return err
	}
	if err := member.CheckOrg(c.org); err != nil {
		return usagef("--org: %w", err)
	}
	if c.roots < 1 || c.roots > 15 || c.quorum < 1 || c.quorum > c.roots || c.quorum > 7 {
		return usagef("--roots %d --quorum %d: want 1 to 15 roots, of which 1 to all, and at most 7, must agree", c.roots, c.quorum)
	}
	s, _, err := loadSettings(home, nil)
	if err != nil {
		return settingsError(err)
	}
	unlock, err := changeMembership(home)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(home, rootsFile)); err == nil {
		return failf(exitRefused, "%s is there already: this site is in a federation; 'gridnode federation show' says which", filepath.Join(home, rootsFile))
	}
	key, err := loadKey(home)
	if err != nil {
		return err
	}
	paths, err := c.found(home, name, s.name, key)
	if err != nil {
		return err
	}
	if err := writeSetting(home, "federation", name); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), foundedText(name, s.name))
	fmt.Fprintln(cmd.ErrOrStderr(), rootKeyText(paths))
	return nil
}

// checkFederation returns the name of a new federation.
func checkFederation(text string) (string, error) {
	name, err := checkName(text)
	if err != nil {
		return "", usagef("federation: %w", err)
	}
	if name != strings.ToLower(name) {
		return "", usagef("federation %q: want lower-case letters", name)
	}
	return name, nil
}

func foundedText(federation, site string) string {
	return fmt.Sprintf("federation %s: %s is its first member", federation, site)
}

func rootKeyText(paths []string) string {
	return fmt.Sprintf("root key: %s; move it to a safe place, several to different ones; invite others with 'gridnode invite' once the daemon runs", strings.Join(paths, " "))
}

// found makes the root keys, and the site of a home the first member. It returns where the
// keys are.
func (c *creation) found(home, name, site string, key crypto.PrivKey) (paths []string, err error) {
	card, keys, err := foundBy(c.roots, c.quorum, name, site, c.org, key, certificateSpan)
	if err != nil {
		return nil, err
	}
	for i, private := range keys {
		path := filepath.Join(home, rootKey)
		if len(keys) > 1 {
			path = filepath.Join(home, fmt.Sprintf("root-%d.key", i+1))
		}
		if err := writeRootKey(path, private); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, saveCard(home, card)
}

// changeMembership locks a home whose daemon must not run meanwhile.
func changeMembership(home string) (unlock func(), err error) {
	if unlock, err = lockHome(home); err != nil {
		return nil, fmt.Errorf("%w; stop it first: a daemon keeps the membership with which it has started", err)
	}
	return unlock, nil
}

// writeSetting changes one key in the file.
func writeSetting(home, name, value string) error {
	key, err := findSetting(name)
	if err != nil {
		return err
	}
	path := filepath.Join(home, configFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = editFile(path, text, key, value); err != nil {
		return err
	}
	return atomicfile.Rewrite(path, text)
}

func newFederationJoin(root *options) *cobra.Command {
	return &cobra.Command{
		Use:   "join TOKEN",
		Short: "Become a member with an invitation",
		Long: `Use an invitation ('gridnode invite') for a site whose home is there already; for a new
site, 'gridnode init --join TOKEN' does the same. The site that has sent the invitation is
asked for a certificate, and must be running. An invitation can be used once, until it
expires. What was a member of another federation before is a member of this one then.`,
		Example: "  gridnode federation join gridnode-invitation-1.eyJpIjoi...",
		Args:    exactArgs(1, "the token of an invitation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := member.ParseToken(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			s, _, err := loadSettings(root.home, nil)
			if err != nil {
				return settingsError(err)
			}
			unlock, err := changeMembership(root.home)
			if err != nil {
				return err
			}
			defer unlock()
			key, err := loadKey(root.home)
			if err != nil {
				return err
			}
			m, err := join(cmd.Context(), root.home, token, key, s.name)
			if err != nil {
				return err
			}
			for _, set := range []struct{ key, value string }{{"federation", token.Federation}, {"network.join", strings.Join(token.Addresses, ",")}} {
				if err := writeSetting(root.home, set.key, set.value); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), memberText(token.Federation, m))
			return nil
		},
	}
}

// joinMax bounds the wait for the site that sent an invitation.
const joinMax = time.Minute

// join has the site of a home certified, and stores what it is given.
func join(ctx context.Context, home string, token *member.Token, key crypto.PrivKey, name string) (*member.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, joinMax)
	defer cancel()
	card, err := node.Apply(ctx, token, key, name)
	switch {
	case errors.Is(err, node.ErrRefused):
		return nil, failf(exitRefused, "join federation %s: %w", token.Federation, err)
	case err != nil:
		return nil, fmt.Errorf("join federation %s: %w; is its daemon running, and can it be reached from here?", token.Federation, err)
	}
	if err := saveCard(home, card); err != nil {
		return nil, err
	}
	return ownMember(card, key)
}

func memberText(federation string, m *member.Member) string {
	return fmt.Sprintf("%s is a member of %s until %s, with the rights %v", m.Name, federation, time.UnixMicro(int64(m.Expires)).Format(time.DateOnly), m.Rights)
}

// federationView is what show prints.
type federationView struct {
	Federation  string   `json:"federation"`
	Open        bool     `json:"open"`
	Quorum      int      `json:"quorum"` // roots that must agree
	Roots       int      `json:"roots"`
	Fingerprint string   `json:"fingerprint"` // of the roots
	Site        string   `json:"site"`
	Rights      []string `json:"rights"`
	Issuer      string   `json:"issuer"`
	Expires     string   `json:"expires"`
}

func newFederationShow(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Say of which federation this site is a member",
		Long: `Say of which federation this site is a member, with which rights, and until when. It reads
the home directory; the daemon need not run. Two sites are in one federation if the
fingerprints of its roots are the same.`,
		Example: "  gridnode federation show\n  gridnode federation show -o json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := viewFederation(root.home)
			if err != nil {
				return err
			}
			if l.format != formatTable {
				return l.act(cmd.OutOrStdout(), view, view.facts(), nil)
			}
			return printFederation(cmd, view)
		},
	}
	addActFlags(cmd, &l)
	return cmd
}

func viewFederation(home string) (*federationView, error) {
	s, _, err := loadSettings(home, nil)
	if err != nil {
		return nil, settingsError(err)
	}
	card, err := loadCard(home)
	if err != nil {
		return nil, err
	}
	view := &federationView{Federation: s.federation, Open: card == nil, Site: s.name, Rights: []string{}}
	if card == nil {
		return view, nil
	}
	key, err := loadKey(home)
	if err != nil {
		return nil, err
	}
	m, err := ownMember(card, key)
	if err != nil {
		return nil, err
	}
	f := card.Federation
	print := f.Fingerprint()
	view.Federation, view.Quorum, view.Roots, view.Fingerprint = f.Name, f.Quorum, len(f.Roots), fmt.Sprintf("%x", print[:])
	view.Site, view.Rights, view.Issuer = m.Name, strings.Split(m.Rights.String(), ","), m.Issuer
	view.Expires = time.UnixMicro(int64(m.Expires)).UTC().Format(time.RFC3339)
	return view, nil
}

func (v *federationView) facts() []fact {
	return []fact{
		{"federation", v.Federation}, {"site", v.Site}, {"open", strconv.FormatBool(v.Open)}, {"quorum", strconv.Itoa(v.Quorum)}, {"roots", strconv.Itoa(v.Roots)},
		{"fingerprint", v.Fingerprint}, {"rights", strings.Join(v.Rights, ",")}, {"issuer", v.Issuer}, {"expires", v.Expires},
	}
}

func printFederation(cmd *cobra.Command, v *federationView) error {
	out := cmd.OutOrStdout()
	if v.Open {
		_, err := fmt.Fprintf(out, "%s is in the open federation %s: whoever knows an address takes part\n", v.Site, v.Federation)
		return err
	}
	_, err := fmt.Fprintf(out, "federation   %s\nroots        %d, of which %d must agree\nfingerprint  %s\nmember       %s\nrights       %s\ncertified    by %s, until %s\n",
		v.Federation, v.Roots, v.Quorum, v.Fingerprint, v.Site, strings.Join(v.Rights, ","), cmp.Or(v.Issuer, "?"), v.Expires)
	return err
}
