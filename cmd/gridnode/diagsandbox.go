//go:build !client

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"gridnode/node/run/probe"
	"gridnode/node/sandbox"
)

// sandboxReport is what the sandbox of one account has held.
type sandboxReport struct {
	Account    string         `json:"account"`         // root or plain
	Walls      sandbox.Kind   `json:"walls,omitempty"` // empty: there are none
	Bubblewrap string         `json:"bubblewrap"`      // its path, or why it does not work
	Landlock   string         `json:"landlock"`        // its version, or why it does not work
	Groups     string         `json:"groups"`          // control groups, or why there are none
	Refused    string         `json:"refused,omitempty"`
	Probes     []probe.Result `json:"probes"`
}

// Accounts of diag sandbox.
const (
	accountAll   = "all"
	accountOwn   = "own"
	accountPlain = "plain" // the account without rights that root tries, too
	accountRoot  = "root"
)

// plainUser is an account that owns nothing, for a while; it needs no entry anywhere.
const plainUser = 0x7000_0000 - 1

func newDiagSandbox() *cobra.Command {
	var l listing
	walls, account := string(sandbox.Auto), accountAll
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Try to leave the sandbox, and to break its limits",
		Long: `Try to leave the sandbox in which jobs of other sites run, and to break its limits:
each attempt is a job that runs as a guest's does, beside baits such as a site's home
and key. The table says for each whether the walls held. Root tries as an account
without rights, too. It takes about ten seconds for each account, and no daemon.

The exit code is 1 if an attempt succeeded, or if this machine has nothing to make a
sandbox of: it says what is missing. Jobs of other sites are refused then.`,
		Example: `  gridnode diag sandbox
  gridnode diag sandbox --walls landlock -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, err := sandbox.ParseKind(walls)
			if err != nil || kind == sandbox.None {
				return usagef("--walls: %q: want auto, bubblewrap or landlock", walls)
			}
			if !slices.Contains([]string{accountAll, accountOwn}, account) {
				return usagef("--account: %q: want all or own", account)
			}
			reports, err := diagSandbox(cmd, kind, account)
			if err != nil {
				return err
			}
			return printSandbox(cmd.OutOrStdout(), l, reports)
		},
	}
	cmd.Flags().StringVar(&walls, "walls", walls, "`WALLS` to try: auto (those that jobs get), bubblewrap or landlock")
	cmd.Flags().StringVar(&account, "account", account, "`ACCOUNT` to try as: all (root tries as a plain user, too) or own")
	addListingFlags(cmd, &l)
	return cmd
}

// diagSandbox makes the attempts as this account, and as root as a plain user, too.
func diagSandbox(cmd *cobra.Command, kind sandbox.Kind, account string) ([]sandboxReport, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	means := sandbox.Find()
	r := sandboxReport{
		Account: accountPlain, Bubblewrap: means.Program, Landlock: fmt.Sprintf("version %d", means.ABI),
		Groups: means.Groups.String(), Probes: []probe.Result{},
	}
	if os.Geteuid() == 0 {
		r.Account = accountRoot
	}
	for err, text := range map[error]*string{means.NoBubblewrap: &r.Bubblewrap, means.NoLandlock: &r.Landlock, means.NoGroups: &r.Groups} {
		if err != nil {
			*text = err.Error()
		}
	}
	if r.Walls, err = means.Walls(kind); err != nil {
		r.Walls, r.Refused = "", err.Error()
	} else if r.Probes, err = probe.Run(cmd.Context(), probe.Config{Program: self, Walls: kind, Means: means}); err != nil {
		return nil, err
	}
	reports := []sandboxReport{r}
	if os.Geteuid() == 0 && account == accountAll {
		more, err := diagAsPlain(cmd, self, kind)
		if err != nil {
			return nil, fmt.Errorf("as a plain user: %w", err)
		}
		reports = append(reports, more...)
	}
	return reports, nil
}

// diagAsPlain runs this program as an account without rights.
func diagAsPlain(cmd *cobra.Command, self string, kind sandbox.Kind) (reports []sandboxReport, err error) {
	dir, err := os.MkdirTemp("", "gridnode-diag")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, plainUser, plainUser); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "gridnode") // the program may lie where only root gets
	if err := copyProgram(self, program); err != nil {
		return nil, err
	}
	child := exec.CommandContext(cmd.Context(), program, "diag", "sandbox", "--walls", string(kind), "--account", accountOwn, "-o", "json")
	child.Dir, child.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	var stdout, stderr bytes.Buffer
	child.Stdout, child.Stderr = &stdout, &stderr
	failed := child.Run()
	if err := json.Unmarshal(stdout.Bytes(), &reports); err != nil {
		return nil, errors.Join(failed, errors.New(stderr.String()))
	}
	return reports, nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// sandboxRow is one line of the table.
type sandboxRow struct {
	account string
	walls   sandbox.Kind
	probe.Result
}

func (r *sandboxRow) verdict() string {
	switch {
	case r.Left:
		return "left out"
	case r.Held:
		return "held"
	}
	return "NOT HELD"
}

// printSandbox prints reports, and returns an error if something was not held.
func printSandbox(w io.Writer, l listing, reports []sandboxReport) error {
	var rows []sandboxRow
	var failures []error
	for _, r := range reports {
		if r.Refused != "" {
			failures = append(failures, fmt.Errorf("as %s: %s: jobs of other sites are refused", r.Account, r.Refused))
		}
		broken := 0
		for _, p := range r.Probes {
			rows = append(rows, sandboxRow{r.Account, r.Walls, p})
			if !p.Held {
				broken++
			}
		}
		if broken > 0 {
			failures = append(failures, fmt.Errorf("as %s: %d of %d attempts were not held: do not allow jobs of other sites here", r.Account, broken, len(r.Probes)))
		}
		if l.format == formatTable || l.format == formatWide {
			fmt.Fprintf(w, "as %s: walls: %s; bubblewrap: %s; landlock: %s; control groups: %s\n", r.Account, cellText(string(r.Walls)), r.Bubblewrap, r.Landlock, r.Groups)
		}
	}
	var err error
	if l.format == formatJSON {
		err = printJSON(w, reports)
	} else {
		err = printList(w, l, []column[sandboxRow]{
			{head: "ATTEMPT", text: func(r sandboxRow) string { return r.Name }},
			{head: "AS", text: func(r sandboxRow) string { return r.account }},
			{head: "WALLS", wide: true, text: func(r sandboxRow) string { return string(r.walls) }},
			{head: "KIND", text: func(r sandboxRow) string { return r.Kind }},
			{head: "RESULT", text: func(r sandboxRow) string { return r.verdict() }},
			{head: "TO", text: func(r sandboxRow) string { return r.Does }},
			{head: "DETAIL", text: func(r sandboxRow) string { return r.Detail }},
		}, rows)
	}
	return errors.Join(append([]error{err}, failures...)...)
}
