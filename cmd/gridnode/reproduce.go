//go:build !client

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/papers"
)

// reproduceGC lets the heap of an evaluation grow to five times what lives, unless GOGC
// says otherwise: it lives on less than 200 MB, and a run of delegated matchmaking takes
// a sixth less processor time than with Go's default (3.0 instead of 3.6 s at 60/150).
const reproduceGC = 400

func newReproduce(root *options) *cobra.Command {
	o, l, out, beyond := reproduce.DefaultOptions(), listing{}, "", beyond{}
	var all strings.Builder
	var names []string
	for _, p := range papers.All() {
		fmt.Fprintf(&all, "  %s\n      %s\n", p.Name, p.Title)
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use:   "reproduce PAPER|all [flags]",
		Short: "Repeat a published evaluation and compare the figures",
		Long: `Repeat the evaluation of a paper in virtual time and print each figure beside the
published one, with the deviation; with --out, as CSV, JSON and a page with the paper's
plots (HTML, one file), too. With all it ends with a summary: how many figures and
claims of each paper are met. Papers:

` + all.String() + `
Without logs a generated workload is used, to which the published figures do not apply.`,
		Example: `  gridnode testnet reproduce grid-federation --traces logs --out report
  gridnode testnet reproduce grid-federation --traces logs --windows 1 --quick
  gridnode testnet reproduce all -j 4 -o json`,
		ValidArgs: append(names, "all"),
		Args:      exactArgs(1, "the name of a paper, or all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := papers.All()
			if args[0] != "all" {
				p, err := papers.Find(args[0])
				if err != nil {
					return usagef("%w", err)
				}
				chosen = []reproduce.Paper{p}
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(reproduceGC)
			}
			var summary reproduce.Summary
			for _, p := range chosen {
				one := beyond
				if len(chosen) > 1 && one.work != "" {
					one.work = filepath.Join(one.work, p.Name)
				}
				var err error
				if o.Away, err = one.away(cmd, root, []string{p.Name}, nil); err != nil {
					return err
				}
				err = experiment(cmd, p.Name, l, out, func(ctx context.Context, progress func(done, total int64)) (savedReport, error) {
					o.Progress = progress
					r, err := reproduce.Reproduce(ctx, p, o)
					if err != nil {
						return nil, err
					}
					summary.Add(r)
					return r, nil
				})
				if err != nil {
					return err
				}
			}
			if len(chosen) == 1 {
				return nil
			}
			return summarize(cmd, l, out, &summary)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Traces, "traces", "", "directory with the logs, named as in the Parallel Workloads Archive (default: a generated workload)")
	f.IntVar(&o.Windows, "windows", o.Windows, fmt.Sprintf("workloads for the spread, 1 to %d; the first is compared", reproduce.WindowsMax))
	f.BoolVar(&o.Quick, "quick", false, "leave out what the paper does not print: other readings and loads, jobs of a week and a month")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "determines everything random in the runs")
	f.IntVarP(&o.Workers, "jobs", "j", 0, "how many runs at a time, each on a processor of its own (default: all processors)")
	f.StringVar(&out, "out", "", "directory to write PAPER.html, PAPER.csv and PAPER.json to, with all summary.html, too")
	_ = cmd.MarkFlagDirname("traces")
	_ = cmd.MarkFlagDirname("out")
	beyond.flags(cmd)
	addListingFlags(cmd, &l, formatTable, formatJSON)
	_ = f.MarkHidden("no-headers")
	return cmd
}

// summarize ends a run of all papers with the page about them, on a terminal or in the
// directory out; as JSON every report has its own score.
func summarize(cmd *cobra.Command, l listing, out string, summary *reproduce.Summary) error {
	if l.format == formatTable {
		if err := summary.WriteText(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if out == "" {
		return nil
	}
	path, err := summary.Save(out)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "summary: %s\n", path)
	}
	return err
}
