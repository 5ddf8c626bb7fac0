//go:build !client

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/testnet/scenario/delegation"
)

func newRunDelegation() *cobra.Command {
	cfg, l, load := delegation.Default(), listing{}, 70.0
	cmd := &cobra.Command{
		Use:   "delegation [flags]",
		Short: "The dual grid of Delegated MatchMaking (2007) under six architectures",
		Long: `The twenty clusters of Delegated MatchMaking (2007) for a day, under one of the six
architectures it compares: dmm (sites lease processors from each other), condor and sep-c
(every cluster by itself), fcondor (Condor with flocking), cern and central (one queue).
The run ends with the arrival of the last job.

With logs (GWF or SWF) their jobs are run instead, until every one has ended: figure 7 and
table 3 of the paper. The sites that a GWF log names as its jobs' origins are the clusters
00, 01 and so on, in the order of their names; a log without origins is that of the next
cluster. --cluster says so by name.`,
		Example: `  gridnode testnet run delegation --architecture dmm --load 80
  gridnode testnet run delegation --architecture fcondor --load-das 60 --load-g5k 150
  gridnode testnet run delegation --architecture fcondor --load 80% --phase random --flocking random
  gridnode testnet run delegation --load 90 --ordering gossip -o json
  gridnode testnet run delegation --architecture condor --trace das2.swf.gz --trace grid5000.swf.gz --days 120
  gridnode testnet run delegation --cluster 00=vrije.swf.gz --cluster 19=rennes.swf.gz --sample 900 -o json`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("load") {
				if cmd.Flags().Changed("load-das") || cmd.Flags().Changed("load-g5k") {
					return usagef("--load is for both grids: give it alone, or --load-das and --load-g5k")
				}
				cfg.LoadDAS, cfg.LoadG5K = load, load
			}
			cfg.Traces = append(cfg.Traces, args...)
			if err := logsOfDelegation(cmd, &cfg); err != nil {
				return err
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
	f.Var(percentFlag{&load}, "load", "load of both grids in percent: processor-time of the jobs over the processors', 1 to 1000")
	f.Var(percentFlag{&cfg.LoadDAS}, "load-das", "load of the DAS")
	f.Var(percentFlag{&cfg.LoadG5K}, "load-g5k", "load of Grid'5000")
	f.Float64Var(&cfg.Days, "days", cfg.Days, fmt.Sprintf("for how long jobs are submitted, more than 0, at most %d (with logs: all of them)", delegation.DaysMax))
	f.Uint64Var(&cfg.Set, "set", cfg.Set, "which workload: sets are independent")
	f.StringVar(&cfg.Sizes, "sizes", cfg.Sizes, "how wide generated jobs are: uniform (as on one system, whatever the cluster), cluster (as on each), or wide (as on each, with more wide ones)")
	f.StringSliceVar(&cfg.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip) in the place of generated jobs")
	f.StringArrayVar(&cfg.Clusters, "cluster", nil, "`NAME=FILE`, or NAME=FILE:ORIGIN: the log of a cluster, 00 to 19, or what a site of origin submitted there")
	f.StringVar(&cfg.From, "from", "", "`DAY` of the logs at which to begin, like 2005-11-01 (default: each log's first job)")
	f.BoolVar(&cfg.Drain, "drain", false, "go on until every job has ended (with logs: the default)")
	f.Int64Var(&cfg.Sample, "sample", 0, "seconds between two samples of jobs and messages in the JSON; 0: none")
	f.Int64Var(&cfg.Cycle, "cycle", cfg.Cycle, "seconds between two rounds of matchmaking, 1 to 86400")
	f.StringVar(&cfg.Phase, "phase", cfg.Phase, "when the rounds of the site managers are: all in step, or each at a random instant of the cycle (step, random)")
	f.StringVar(&cfg.Flocking, "flocking", cfg.Flocking, "fcondor: where a job manager goes next: to the sites in order, or to a random one (order, random)")
	f.Var(percentFlag{&cfg.Threshold}, "threshold", "dmm: load of a site in percent beyond which requests are delegated")
	f.Int64Var(&cfg.Bind, "bind", cfg.Bind, "dmm: seconds until processors that were brought can be used")
	f.StringVar(&cfg.Ordering, "ordering", cfg.Ordering, "dmm: whom to ask first: neighbours (in random order), most-free, best-fit or gossip (any site that has gossiped enough free processors)")
	f.StringVar(&cfg.Selection, "selection", cfg.Selection, "dmm: which request to delegate first: fcfs or widest")
	f.IntVar(&cfg.TTL, "ttl", cfg.TTL, "dmm: how often a request may be delegated, 1 to 16")
	f.IntVar(&cfg.Rounds, "rounds", cfg.Rounds, "dmm: rounds of delegation after which a request keeps its place in the queue; 0: it gives way until it fits")
	f.IntVar(&cfg.Users, "users", cfg.Users, "fcondor: users of each cluster, each with a job manager of its own, 1 to 60")
	addStrictFlag(f, &cfg.Strict)
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

// logsOfDelegation completes the settings of a run with logs.
func logsOfDelegation(cmd *cobra.Command, cfg *delegation.Config) error {
	changed := cmd.Flags().Changed
	if len(cfg.Traces)+len(cfg.Clusters) == 0 {
		if changed("from") || changed("strict") {
			return usagef("--from and --strict are about logs: name some by --trace or --cluster")
		}
		return nil
	}
	for _, flag := range []string{"load", "load-das", "load-g5k", "set", "sizes"} {
		if changed(flag) {
			return usagef("--%s is about generated jobs: leave it out, or the logs", flag)
		}
	}
	if !changed("days") {
		cfg.Days = delegation.DaysMax
	}
	if !changed("drain") {
		cfg.Drain = true
	}
	return nil
}
