//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/spf13/cobra"

	"gridnode/internal/atomicfile"
	"gridnode/node"
	"gridnode/node/backup"
	"gridnode/node/site"
	"gridnode/node/store"
)

// backupOf returns what makes backups of a running daemon.
func backupOf(home string, s *settings, host *node.Host) func(context.Context, io.Writer, bool) error {
	return func(ctx context.Context, to io.Writer, keys bool) error {
		snapshot, err := host.Snapshot(ctx)
		if err != nil {
			return err
		}
		return backup.Write(to, home, snapshot, backup.Manifest{
			Site: string(host.ID()), Name: s.name, Federation: s.federation, Version: version, At: time.Now().UTC(), Keys: keys,
		})
	}
}

func newBackup(root *options) *cobra.Command {
	var without bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy what the site is and knows into one file, while it runs",
		Long: `Copy what the site is and knows into a new file, while it runs: its records as they are at
one moment (jobs, leases, accounts of a bank), settings, certificates, tokens, the job log,
and its private key. Outputs and files of jobs are not in it. FILE can be -, for standard
output. Who has the file has the site's key, unless --no-keys leaves that out.

'gridnode restore' makes a home of it.`,
		Example: `  gridnode backup /backup/physics.tar.gz
  gridnode backup --no-keys - | ssh vault 'cat >physics.tar.gz'`,
		Args: exactArgs(1, "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fill := func(to io.Writer) error {
				return apiError(root.client().Download(cmd.Context(), fmt.Sprintf("/v1/backup?keys=%v", !without), to))
			}
			if args[0] == "-" {
				return fill(cmd.OutOrStdout())
			}
			return writeNew(args[0], fill)
		},
	}
	cmd.Flags().BoolVar(&without, "no-keys", false, "leave the site's private keys out")
	return cmd
}

// writeNew makes a file of what fill writes, which only its owner can read; none if fill
// fails.
func writeNew(path string, fill func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return usagef("%s is there already: name another file", path)
	}
	return atomicfile.Fill(path, 0o600, func(file *os.File) error { return fill(file) })
}

func newRestore(root *options) *cobra.Command {
	var this bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a home of a backup",
		Long: `Make a home of a backup, which 'gridnode start' then goes on with. What came after the
backup is forgotten: jobs submitted since, what was paid and lent. Jobs that were not over
run again, so first end what still runs of them elsewhere; leases of that time end by
themselves. FILE can be -, for standard input. Nothing that is there is written over.

The restored site counts as newer than whatever was lost. So does, with --this-copy, the
home as it is: an older copy that a daemon has refused to start with.`,
		Example: `  gridnode --home /srv/physics restore /backup/physics.tar.gz
  gridnode restore --this-copy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if this {
				return exactArgs(0, "")(cmd, args)
			}
			return exactArgs(1, "one FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if this {
				return acceptCopy(cmd, root.home)
			}
			return restoreHome(cmd, root.home, args[0])
		},
	}
	cmd.Flags().BoolVar(&this, "this-copy", false, "go on with the older copy that lies in the home")
	return cmd
}

func restoreHome(cmd *cobra.Command, home, name string) error {
	if err := checkOwn(home); err != nil {
		return err
	}
	from := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	m, err := backup.Restore(from, home)
	if err != nil {
		return fmt.Errorf("restore %s: %w", home, err)
	}
	if err := checkPrivate(home); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "site %s (%s) as it was at %s; what came after that is forgotten\n", m.Name, m.Site, m.At.Format(time.RFC3339))
	return nil
}

// acceptCopy has the home count as the newest there is of its site.
func acceptCopy(cmd *cobra.Command, home string) error {
	unlock, err := lockHome(home)
	if err != nil {
		return err
	}
	defer unlock()
	s, _, err := loadSettings(home, nil)
	if err != nil {
		return settingsError(err)
	}
	key, err := loadKey(home)
	if err != nil {
		return err
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return fmt.Errorf("identity of the site: %w", err)
	}
	dir := filepath.Join(home, backup.StoreDir)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there: this home has no records to go on with", dir)
	}
	if err := store.Accept(dir, store.Options{Site: id.String(), Federation: s.federation, Records: site.RecordsVersion}); err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "the next start goes on with this copy; what came after it is forgotten")
	return nil
}
