//go:build !client

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/testnet/scenario/coallocation"
)

func newRunCoallocation() *cobra.Command {
	cfg, l := coallocation.Default(), listing{}
	cmd := &cobra.Command{
		Use:   "coallocation [flags]",
		Short: "Jobs over several clusters of DAS-3 (Processor co-allocation, 2008)",
		Long: `One scheduler that places jobs of one application on the clusters of DAS-3, as in "On
the benefit of processor co-allocation in multicluster grid systems" (KOALA, 2008). By
wf jobs are not split; fcm combines as few clusters as it can, ca those with low
latencies, cf those near the input, and adaptive splits a job only if it then loses less
by running longer than it would by waiting.`,
		Example: `  gridnode testnet run coallocation --policy fcm --application wave --utilization 70
  gridnode testnet run coallocation --policy adaptive --application ccr=0.5 --utilization 80 -o json
  gridnode testnet run coallocation --policy fcm --application wave --utilization 40 --background 20 --hours 4
  gridnode testnet run coallocation --components 16@leiden,16@vrije --application prime --speeds --utilization 2 --hours 1
  gridnode testnet run coallocation --policy ca --latency-group 500us --without leiden --sizes 32,48,64 --application wave`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := coallocation.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Policy, "policy", cfg.Policy, "wf, fcm, ca, cf or adaptive")
	f.StringVar(&cfg.Application, "application", cfg.Application, "prime, poisson, wave, or ccr=X: communication takes X times as long as computation")
	f.Var(percentFlag{&cfg.Utilization}, "utilization", "net utilization in percent: the load if no job were split")
	f.Float64Var(&cfg.Background, "background", 0, "percent of the nodes that the clusters' own users keep busy, 1 to 60; 0: none")
	f.Var(shortSpanFlag{&cfg.Poll}, "poll", "with --background: time between two looks at what is idle")
	f.StringVar(&cfg.Without, "without", cfg.Without, "cluster to leave out: delft, leiden or none")
	f.IntVar(&cfg.MaxClusters, "max-clusters", 0, "clusters that one job may combine; 0: no limit")
	f.Int64SliceVar(&cfg.Sizes, "sizes", cfg.Sizes, "sizes of jobs, `N,...` nodes, drawn evenly")
	f.StringVar(&cfg.Components, "components", "", "components of every job, `N[@CLUSTER],...`, instead of --sizes")
	f.Var(shortSpanFlag{&cfg.RunTime}, "run-time", "of a job within one cluster; 0: that of the application")
	f.BoolVar(&cfg.Speeds, "speeds", false, "the slowest cluster of a job decides how long it computes")
	f.Var(shortSpanFlag{&cfg.Group}, "latency-group", "confine ca to clusters no further than this from the widest of them; 0: no groups")
	f.IntVar(&cfg.Hours, "hours", cfg.Hours, "virtual hours of submissions")
	f.Var(shortSpanFlag{&cfg.Startup}, "startup", "time from a job's placing to its start, with its nodes taken")
	f.Var(shortSpanFlag{&cfg.Interval}, "interval", "time between scans of the placement queue")
	f.Var(shortSpanFlag{&cfg.Patience}, "patience", "wait after which clusters are set aside for a job; 0: never, as in KOALA")
	f.Var(sizeFlag{&cfg.InputBytes}, "input-size", "size of a file each job reads, which one cluster holds; 0: none")
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

// shortSpanFlag is a flag for a span that may be 0 or below a second.
type shortSpanFlag struct{ span *grid.Time }

func (f shortSpanFlag) Type() string   { return "SPAN" }
func (f shortSpanFlag) String() string { return f.span.String() }
func (f shortSpanFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("want a duration like 500us, 10s or 1h")
	}
	*f.span = grid.FromDuration(d)
	return nil
}

// sizeFlag is a flag for bytes.
type sizeFlag struct{ bytes *int64 }

func (f sizeFlag) Type() string   { return "SIZE" }
func (f sizeFlag) String() string { return formatSize(*f.bytes) }
func (f sizeFlag) Set(s string) (err error) {
	*f.bytes, err = parseSize(s, 1)
	return err
}
