//go:build !client

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/internal/atomicfile"
	"gridnode/node/api"
	"gridnode/node/member"
)

// keyFile holds the site's private key (a protobuf of libp2p): its identity.
const keyFile = "key"

func newInit(root *options) *cobra.Command {
	var federation string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make this directory the home of a new site",
		Long: `Make the home directory, the site's key, which is its identity, and config.yaml with a
comment for every setting. The speed of the processors is measured, which takes a third
of a second, unless --speed says it. A home that has a key already is left alone.

With --create the new site is the first member of a new federation, as with 'gridnode federation
create'. With the token of an invitation ('gridnode invite') as --join, it is a member of the
federation that has invited it. Without either it is in an open federation: it runs no jobs of
other sites, and they run none of its jobs.`,
		Example: `  gridnode init --site physics --create campus --price 0.5 --foreign allow
  gridnode init --site hill --join gridnode-invitation-1.eyJpIjoi...
  gridnode init --home /srv/b --listen 127.0.0.1:7532 --join $(gridnode peers --self -o name | paste -sd,)`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return initHome(cmd, root.home, federation) },
	}
	addSettingFlags(cmd)
	cmd.Flags().StringVar(&federation, "create", "", "make a federation of that name, whose first member is this site")
	return cmd
}

// initHome makes a home; the site founds a federation, if that is not empty.
func initHome(cmd *cobra.Command, home, federation string) error {
	if err := checkOwn(home); err != nil {
		return err
	}
	for _, name := range []string{keyFile, configFile} {
		path := filepath.Join(home, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			return fmt.Errorf("%s is there already: this home has a site; change it with 'gridnode config set', or choose another home with --home", path)
		}
	}
	token, err := invitationIn(cmd)
	if err != nil {
		return err
	}
	if federation != "" {
		if token != nil {
			return usagef("--create %s and an invitation to %s: a site is a member of one federation", federation, token.Federation)
		}
		if federation, err = checkFederation(federation); err != nil {
			return err
		}
		if err := cmd.Flags().Set("federation", federation); err != nil {
			return err
		}
	}
	// An empty file: what is not a flag or in the environment takes its default.
	flags := cmd.Flags()
	s, values, err := readSettings(filepath.Join(home, configFile), nil, flags)
	if err != nil {
		return settingsError(err)
	}
	for i, e := range values {
		switch {
		case e.Origin != "default":
		case e.Key == "site.speed":
			values[i].Value = strconv.FormatInt(rateSpeed(), 10)
		case e.Key == "site.name":
			values[i].Value = s.name
		}
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	if err := os.Chmod(home, 0o700); err != nil { // one that was there may be open to others
		return fmt.Errorf("make home: %w", err)
	}
	id, err := newKey(filepath.Join(home, keyFile))
	if err != nil {
		return err
	}
	became := ""
	switch {
	case token != nil:
		became, err = joinNew(cmd, home, token, s.name)
	case federation != "":
		became, err = foundNew(home, federation, s.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(filepath.Join(home, keyFile))) // as if nothing had happened
	}
	if err := atomicfile.Rewrite(filepath.Join(home, configFile), newFile(values)); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), id)
	if became != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), became)
	}
	start := api.StartCommand(home)
	if flags.Changed("home") && home != api.SystemHome {
		start += " --home " + home
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "site %s is ready in %s; its settings are in %s\nstart it with '%s'\n",
		s.name, home, filepath.Join(home, configFile), start)
	return nil
}

// invitationIn returns the invitation that --join names instead of addresses, nil if it
// names none. What the invitation says is taken for the flags that say it otherwise; a flag
// that says something else is an error.
func invitationIn(cmd *cobra.Command) (*member.Token, error) {
	flags := cmd.Flags()
	said, err := flags.GetStringSlice("join")
	if err == nil && flags.Changed("join") && strings.TrimSpace(strings.Join(said, "")) == "" {
		return nil, usagef("--join: it is empty: want an invitation, as 'gridnode invite' prints it, or addresses; leave it out for a site of its own")
	}
	if err != nil || len(said) != 1 || strings.Contains(said[0], "/") {
		return nil, err
	}
	token, err := member.ParseToken(said[0])
	if err != nil {
		return nil, usagef("--join: %w; addresses have /p2p/ID", err)
	}
	if err := invited(flags, "federation", token.Federation); err != nil {
		return nil, err
	}
	join, _ := flags.Lookup("join").Value.(pflag.SliceValue)
	if err := join.Replace(token.Addresses); err != nil {
		return nil, err
	}
	if token.Name != "" {
		return token, invited(flags, "site", token.Name)
	}
	return token, nil
}

// invited gives a flag the value that the invitation has for it.
func invited(flags *pflag.FlagSet, name, value string) error {
	if flag := flags.Lookup(name); flag.Changed && flag.Value.String() != value {
		return usagef("--%s %s: the invitation is for %s: leave --%s out, or ask for another invitation", name, flag.Value, value, name)
	}
	return flags.Set(name, value)
}

// joinNew makes the site of a new home a member, and says so.
func joinNew(cmd *cobra.Command, home string, token *member.Token, name string) (string, error) {
	key, err := loadKey(home)
	if err != nil {
		return "", err
	}
	m, err := join(cmd.Context(), home, token, key, name)
	if err != nil {
		return "", err
	}
	return memberText(token.Federation, m), nil
}

// foundNew makes the site of a new home the first member of a new federation, and says so.
func foundNew(home, federation, name string) (string, error) {
	key, err := loadKey(home)
	if err != nil {
		return "", err
	}
	paths, err := (&creation{roots: 1, quorum: 1}).found(home, federation, name, key)
	return foundedText(federation, name) + "\n" + rootKeyText(paths), err
}

// newKey draws a key, stores it where none is, and returns the identity it means.
func newKey(path string) (peer.ID, error) {
	private, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	encoded, err := crypto.MarshalPrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("store key: %w", err)
	}
	_, err = file.Write(encoded)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("store key: %w", err)
	}
	return peer.IDFromPublicKey(public)
}

// loadKey reads the key that newKey stored.
func loadKey(home string) (crypto.PrivKey, error) {
	path := filepath.Join(home, keyFile)
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: put the site's key back from a copy; a new one would be another site", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key, err := crypto.UnmarshalPrivateKey(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): put the site's key back from a copy", path, err)
	}
	return key, nil
}
