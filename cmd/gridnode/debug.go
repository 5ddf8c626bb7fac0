//go:build !client

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newDebug(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug",
		Short: "Gather what helps to find a defect",
		Long:  "Gather what helps to find a defect of a running daemon.",
		Args:  noVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDebugBundle(root), newDebugLog(root))
	return cmd
}

func newDebugLog(root *options) *cobra.Command {
	return &cobra.Command{
		Use:     "log",
		Short:   "Print the last lines that the daemon has logged",
		Long:    "Print the last lines that the daemon has logged, at most 256 KiB, wherever the log goes.",
		Example: "  gridnode debug log | tail",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return apiError(root.client().Download(cmd.Context(), "/v1/log/lines", cmd.OutOrStdout()))
		},
	}
}

// bundled is what a bundle has of a daemon: which file, and the call that answers with it.
// No call is here that answers with keys, tokens, or what jobs are and write.
var bundled = []struct{ name, call string }{
	{"node.json", "/v1/node"},
	{"net.json", "/v1/net"},
	{"peers.json", "/v1/peers"},
	{"bans.json", "/v1/peers/bans"},
	{"sites.json", "/v1/sites"},
	{"members.json", "/v1/members"},
	{"leases.json", "/v1/leases"},
	{"links.json", "/v1/links"},
	{"counters.json", "/v1/counters"},
	{"drain.json", "/v1/drain"},
	{"metrics.txt", "/metrics"},
	{"loglevels.json", "/v1/log"},
	{"log.txt", "/v1/log/lines"},
	{"goroutines.txt", "/v1/goroutines"},
}

// bundleMax bounds the wait for one answer of the daemon, which may be what is wrong.
const bundleMax = 10 * time.Second

func newDebugBundle(root *options) *cobra.Command {
	return &cobra.Command{
		Use:   "bundle FILE",
		Short: "Gather what helps to find a defect into one file",
		Long: `Gather what helps to find a defect into one new file (tar.gz): versions, the settings that
count, what 'gridnode doctor' finds, and of the daemon, if one runs: status, peers, sites,
members, leases, metrics, every goroutine and the last lines of its log. Keys, tokens, jobs
and their output are not in it; names and addresses of sites and users are. FILE can be -,
for standard output.`,
		Example: "  gridnode debug bundle site.tar.gz",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fill := func(to io.Writer) error { return writeBundle(cmd.Context(), root, to, time.Now()) }
			if args[0] == "-" {
				return fill(cmd.OutOrStdout())
			}
			return writeNew(args[0], fill)
		},
	}
}

// writeBundle writes a bundle. What cannot be had is said in it.
func writeBundle(ctx context.Context, root *options, to io.Writer, now time.Time) error {
	packed := gzip.NewWriter(to)
	w := tar.NewWriter(packed)
	var errs []error
	put := func(name string, text []byte) {
		err := w.WriteHeader(&tar.Header{Name: "gridnode-debug/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: now})
		if err == nil {
			_, err = w.Write(text)
		}
		errs = append(errs, err)
	}
	putJSON := func(name string, value any) {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			text = []byte(err.Error())
		}
		put(name, append(text, '\n'))
	}
	putJSON("version.json", thisBuild())
	system, _ := os.ReadFile("/proc/version")
	put("system.txt", system)
	if root.remote == "" && root.socket == "" {
		if _, values, err := loadSettings(root.home, nil); err != nil {
			put("settings.error", []byte(err.Error()+"\n"))
		} else {
			putJSON("settings.json", values)
		}
		putJSON("doctor.json", examine(ctx, root))
	}
	client := root.client()
	for _, b := range bundled {
		text, err := downloaded(ctx, client, b.call)
		if err == nil {
			put(b.name, text)
			continue
		}
		put(b.name+".error", []byte(err.Error()+"\n"))
		if errors.Is(err, api.ErrNoDaemon) {
			break
		}
	}
	if err := errors.Join(append(errs, w.Close(), packed.Close())...); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

func downloaded(ctx context.Context, client *api.Client, call string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bundleMax)
	defer cancel()
	var text bytes.Buffer
	err := client.Download(ctx, call, &text)
	return text.Bytes(), err
}
