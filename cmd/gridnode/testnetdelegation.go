package main

import (
	"strings"

	"github.com/spf13/cobra"

	"gridnode/testnet/scenario/delegation"
)

func newRunDelegation() *cobra.Command {
	cfg, l, load := delegation.Default(), listing{}, 0.0
	cmd := &cobra.Command{
		Use:   "delegation [flags]",
		Short: "The dual grid of Delegated MatchMaking (2007) under six architectures",
		Long: `The twenty clusters of Delegated MatchMaking (2007) for a day, under one of the six
architectures it compares: dmm (sites lease processors from each other), condor and sep-c
(every cluster by itself), fcondor (Condor with flocking), cern and central (one queue).
The run ends with the arrival of the last job.`,
		Example: `  gridnode testnet run delegation --architecture dmm --load 0.8
  gridnode testnet run delegation --architecture fcondor --load-das 0.6 --load-g5k 1.5
  gridnode testnet run delegation --load 0.9 --ordering gossip -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("load") {
				if cmd.Flags().Changed("load-das") || cmd.Flags().Changed("load-g5k") {
					return usagef("--load is for both grids: give it alone, or --load-das and --load-g5k")
				}
				cfg.LoadDAS, cfg.LoadG5K = load, load
			}
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := delegation.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Architecture, "architecture", cfg.Architecture, strings.Join(delegation.Architectures, ", "))
	f.Float64Var(&load, "load", cfg.LoadDAS, "load of both grids: processor-time of the jobs over the processors', more than 0, at most 10")
	f.Float64Var(&cfg.LoadDAS, "load-das", cfg.LoadDAS, "load of the DAS")
	f.Float64Var(&cfg.LoadG5K, "load-g5k", cfg.LoadG5K, "load of Grid'5000")
	f.Float64Var(&cfg.Days, "days", cfg.Days, "for how long jobs are submitted, more than 0, at most 400")
	f.Uint64Var(&cfg.Set, "set", cfg.Set, "which workload: sets are independent")
	f.Int64Var(&cfg.Cycle, "cycle", cfg.Cycle, "seconds between two rounds of matchmaking, 1 to 86400")
	f.Float64Var(&cfg.Threshold, "threshold", cfg.Threshold, "dmm: load of a site beyond which requests are delegated")
	f.Int64Var(&cfg.Bind, "bind", cfg.Bind, "dmm: seconds until processors that were brought can be used")
	f.StringVar(&cfg.Ordering, "ordering", cfg.Ordering, "dmm: whom to ask first: neighbours (in random order), most-free, best-fit or gossip (any site that has gossiped enough free processors)")
	f.StringVar(&cfg.Selection, "selection", cfg.Selection, "dmm: which request to delegate first: fcfs or widest")
	f.IntVar(&cfg.TTL, "ttl", cfg.TTL, "dmm: how often a request may be delegated, 1 to 16")
	f.IntVar(&cfg.Rounds, "rounds", cfg.Rounds, "dmm: rounds of delegation after which a request keeps its place in the queue; 0: it gives way until it fits")
	f.IntVar(&cfg.Users, "users", cfg.Users, "fcondor: users of each cluster, each with a job manager of its own, 1 to 60")
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}
