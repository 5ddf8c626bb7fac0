//go:build !client

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/testnet/scenario/packing"
)

func newRunPacking() *cobra.Command {
	cfg, l := packing.Default(), listing{}
	cmd := &cobra.Command{
		Use:   "packing [flags]",
		Short: "Batches of parallel jobs over the clusters one site heads (MUSCLE, 2004)",
		Long: `Batches of parallel jobs with soft deadlines are shared out over the clusters that one
site heads, as in He et al. (2004), section 5: by MUSCLE (or with the most pressed jobs
first: urgent), by dynamic least load (dll) or at random (wrand). Each cluster plans its
share with TITAN. MCP is the mean comprehensive performance of the clusters, PB how far
they are apart; lower is better.`,
		Example: `  gridnode testnet run packing --policy muscle --queue 100
  gridnode testnet run packing --policy dll --queue 100 --deadline-range 0,2 -o json
  gridnode testnet run packing --weights '12,3,1;8,3,1;4,3,1;1,3,1'
  gridnode testnet run packing --collect makespan --load 80
  gridnode testnet run packing --policy dll --collect makespan --load 80
  gridnode testnet run packing --queue 100 --window 130
  gridnode testnet run packing --clusters 10 --queue 292 --sizes log --weights 8,3,1`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := packing.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Policy, "policy", cfg.Policy, "who gets which job: muscle, urgent, dll or wrand")
	f.IntVar(&cfg.Queue, "queue", cfg.Queue, fmt.Sprintf("mean number of jobs in a batch, 1 to %d", packing.QueueMax))
	f.Var((*rangeFlag)(&cfg.DeadlineRange), "deadline-range", "a job's deadline is its longest run time × (1 + a number drawn from this range)")
	f.StringVar(&cfg.Weights, "weights", cfg.Weights, "O,M,I of over-deadline, makespan and idle time; of each cluster, separated by semicolons, or of all")
	f.IntVar(&cfg.Clusters, "clusters", cfg.Clusters, "so many clusters of 20, 24, … 56 processors, up to 10; 0: the four of table 3")
	f.StringVar(&cfg.Sizes, "sizes", cfg.Sizes, "how job sizes are distributed: uniform, normal or log")
	f.IntVar(&cfg.Total, "total", cfg.Total, "jobs in all batches together")
	f.StringVar(&cfg.Start, "start", cfg.Start, "what TITAN begins with where the policy gives no schedule: random, or the order of arrival")
	f.StringVar(&cfg.Deadlines, "deadlines", cfg.Deadlines, "deadlines count from when the batch is shared out, or from each job's arrival")
	f.StringVar(&cfg.Collect, "collect", cfg.Collect, "in batches of --queue jobs that come at once (batch), or as jobs come until a cluster runs short of work (makespan)")
	f.Var(percentFlag{&cfg.Load}, "load", "with --collect makespan: what the jobs take of the clusters' processor time")
	f.Float64Var(&cfg.Threshold, "threshold", cfg.Threshold, "with --collect makespan: seconds of work below which a cluster runs short")
	f.Float64Var(&cfg.Window, "window", cfg.Window, "seconds between two batches, which meet what is left of each other; 0: each meets empty clusters")
	f.IntVar(&cfg.Settle, "settle", cfg.Settle, "percentage of TITAN's offspring whose processors are chosen anew, 0 to 100, for dll and wrand in batches; the paper's is 0")
	addScenarioFlags(cmd, &cfg.Common, &l)
	_ = f.MarkHidden("jobs-csv") // there are no executions to list
	return cmd
}

// rangeFlag is a flag LO,HI of two numbers.
type rangeFlag [2]float64

func (f *rangeFlag) Type() string   { return "LO,HI" }
func (f *rangeFlag) String() string { return fmt.Sprintf("%v,%v", f[0], f[1]) }
func (f *rangeFlag) Set(s string) error {
	lo, hi, two := strings.Cut(s, ",")
	if !two {
		return fmt.Errorf("want two numbers, like 0,5")
	}
	for i, text := range []string{lo, hi} {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return fmt.Errorf("%q is no number: want two, like 0,5", text)
		}
		f[i] = v
	}
	return nil
}
