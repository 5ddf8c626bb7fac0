//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

func newTestnet(root *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "testnet",
		Short: "Run many sites on this machine, live or in virtual time",
		Long: `Run many sites on this machine: real nodes on loopback (up), or in virtual time (run),
where a two-year log takes seconds and the same seed gives the same run. Published
evaluations can be repeated (reproduce).`,
		Example: `  gridnode testnet up -n 12
  gridnode testnet run federation --mode economy --oft 50
  gridnode testnet run leasing --trace CTC-SP2-1996-3.1-cln.swf.gz --processors 430`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	run := &cobra.Command{
		Use:   "run",
		Short: "Run a scenario in virtual time",
		Long: `Run a scenario in virtual time and print what came of it. The same seed gives the same
run, event by event: its trace hash is printed. Without a log a generated workload
(Lublin and Feitelson 2003) is used.`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	run.AddCommand(newRunFederation(), newRunLeasing(), newRunDelegation(), newRunCoallocation(), newRunPacking(), newRunChaos(root), newRunHostile())
	for _, scenario := range run.Commands() {
		scenario.PreRun = func(*cobra.Command, []string) { spareCollector() }
	}
	cmd.AddCommand(newUp(), run, newReproduce(root), newScale(root))
	return cmd
}

// addScenarioFlags gives cmd what every scenario takes.
func addScenarioFlags(cmd *cobra.Command, common *scenario.Common, l *listing) {
	cmd.Flags().Uint64Var(&common.Seed, "seed", common.Seed, "determines everything random in the run")
	cmd.Flags().StringVar(&common.Out, "out", "", "directory to write result.json and sites.csv to")
	cmd.Flags().BoolVar(&common.Jobs, "jobs-csv", false, "with --out, write a line for every job to jobs.csv as well")
	_ = cmd.MarkFlagDirname("out")
	addListingFlags(cmd, l, formatTable, formatJSON, formatCSV)
	_ = cmd.Flags().MarkHidden("no-headers")
}

// addStrictFlag gives flags what is to be done about logs that are not as their format
// says.
func addStrictFlag(f *pflag.FlagSet, strict *bool) {
	f.BoolVar(strict, "strict", false, "end at the first malformed line of a log; else such lines are skipped or repaired, and counted")
	f.Bool("lenient", false, "does nothing: it is so without --strict")
	_ = f.MarkHidden("lenient")
}

// interruptible returns a context that ends with SIGINT or SIGTERM; a second signal
// ends the process at once.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// printResult prints what a scenario gave, or its error.
func printResult(cmd *cobra.Command, l listing, result *measure.Result, err error) error {
	switch {
	case errors.Is(err, scenario.ErrConfig):
		return usagef("%w", err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case err != nil:
		return err
	}
	return result.Write(cmd.OutOrStdout(), string(l.format))
}

// traceArgs takes arguments that are not flags for further logs, so that a shell
// may expand a pattern behind --trace.
func traceArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && !cmd.Flags().Changed("trace") {
		return usagef("takes no arguments, got %q; logs come after --trace", args[0])
	}
	return nil
}

// latencyFlag is a flag LOW[,HIGH] for how long messages take.
type latencyFlag struct{ low, high *grid.Time }

func (f latencyFlag) Type() string   { return "LOW[,HIGH]" }
func (f latencyFlag) String() string { return fmt.Sprintf("%v,%v", *f.low, *f.high) }
func (f latencyFlag) Set(s string) error {
	lowText, highText, two := strings.Cut(s, ",")
	if !two {
		highText = lowText
	}
	var spans [2]grid.Time
	for i, text := range []string{lowText, highText} {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("want one or two durations, like 20ms or 5ms,50ms")
		}
		spans[i] = grid.FromDuration(d)
	}
	if spans[1] < spans[0] {
		return fmt.Errorf("the higher duration comes second")
	}
	*f.low, *f.high = spans[0], spans[1]
	return nil
}
