package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/spf13/cobra"
)

// keyFile holds the site's private key (a protobuf of libp2p): its identity.
const keyFile = "key"

func newInit(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make this directory the home of a new site",
		Long: `Make the home directory, the site's key, which is its identity, and config.yaml with a
comment for every setting. The speed of the processors is measured, which takes a third
of a second, unless --speed says it. A home that has a key already is left alone.`,
		Example: `  gridnode init --site physics --price 0.5 --foreign allow
  gridnode init --home /srv/b --listen /ip4/127.0.0.1/tcp/7532 --join $(gridnode peers --self -o name | paste -sd,)`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return initHome(cmd, root.home) },
	}
	addSettingFlags(cmd)
	return cmd
}

func initHome(cmd *cobra.Command, home string) error {
	for _, name := range []string{keyFile, configFile} {
		path := filepath.Join(home, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			return fmt.Errorf("%s is there already: this home has a site; change it with 'gridnode config set', or choose another home with --home", path)
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
	id, err := newKey(filepath.Join(home, keyFile))
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(home, configFile), newFile(values)); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), id)
	start := "gridnode start"
	if flags.Changed("home") {
		start += " --home " + home
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "site %s is ready in %s; its settings are in %s\nstart it with '%s'\n",
		s.name, home, filepath.Join(home, configFile), start)
	return nil
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
