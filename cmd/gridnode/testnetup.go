package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/testnet/live"
)

func newUp() *cobra.Command {
	cfg, l := live.Default(), listing{}
	slack, stay := cfg.Slack.Duration(), false
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "Run real nodes in one process and replay a workload on them",
		Long: `Run real nodes in one process, joined over loopback, and replay a workload on them faster
than it was: libp2p, the directory over the DHT and the market are those of production,
only the jobs are timers. Then print what came of it, per site, and the messages per job.

Run times, deadlines and gaps are divided by --speedup; messages take as long as they
take, so --slack is added to every deadline. In the output spans are the workload's again.`,
		Example: `  gridnode testnet up -n 12
  gridnode testnet up -n 50 --transport memory --jobs 1000 -o json
  gridnode testnet up -n 8 --trace traces/ --placement paper --oft 100
  gridnode testnet up -n 5 --stay          # and join it with: gridnode start --join ADDRESS`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Traces = append(cfg.Traces, args...)
			cfg.Progress, cfg.Slack = cmd.ErrOrStderr(), grid.FromDuration(slack)
			ctx, stop := interruptible(cmd)
			defer stop()
			live, err := live.Up(ctx, cfg)
			if err != nil {
				return printResult(cmd, l, nil, err)
			}
			result, err := live.Replay(ctx)
			if err = printResult(cmd, l, result, err); err == nil && stay {
				fmt.Fprintf(cmd.ErrOrStderr(), "the nodes stay up until Ctrl-C; join through %v\n", live.Hosts()[0].Addrs())
				<-ctx.Done()
			}
			return errors.Join(err, live.Close())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVarP(&cfg.Nodes, "nodes", "n", cfg.Nodes, fmt.Sprintf("number of nodes, 1 to %d: the sites of table 1, again and again", live.NodesMax))
	f.Int64Var(&cfg.Count, "jobs", cfg.Count, "replay the first so many jobs of the two days; 0: all of them")
	f.Int64Var(&cfg.Speedup, "speedup", cfg.Speedup, fmt.Sprintf("how much faster than the workload, 1 to %d; 0: so that about 100 jobs a second arrive", live.SpeedupMax))
	f.DurationVar(&slack, "slack", slack, "real time added to every deadline")
	f.StringVar(&cfg.Placement, "placement", cfg.Placement, "how a home looks for a site: paper or coordinated")
	f.IntVar(&cfg.OFT, "oft", cfg.OFT, "percentage of users who want the fastest site, 0 to 100; the others want the cheapest")
	f.StringSliceVar(&cfg.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip), matched to sites by name, or directories of them (default: a generated workload)")
	addStrictFlag(f, &cfg.Strict)
	f.StringVar(&cfg.Transport, "transport", cfg.Transport, "tcp over loopback, or memory: the same libp2p without sockets, for many nodes")
	f.StringVar(&cfg.Home, "homes", "", "directory for the homes of the nodes, with stores on disk (default: nothing is kept)")
	f.BoolVar(&stay, "stay", false, "leave the nodes up after the replay, until Ctrl-C")
	_ = cmd.MarkFlagDirname("homes")
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}
