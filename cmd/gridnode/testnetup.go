//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gridnode/grid"
	"gridnode/testnet/live"
	"gridnode/testnet/measure"
)

// restUsual is how long nodes rest whose messages are compared.
const restUsual = 30 * time.Second

func newUp() *cobra.Command {
	cfg, l := live.Default(), listing{}
	slack, stay := cfg.Slack.Duration(), false
	var protocols func()
	var compare, web bool
	var rest time.Duration
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "Run real nodes in one process and replay a workload on them",
		Long: `Run real nodes in one process, joined over loopback, and replay a workload on them faster
than it was: libp2p, the directory over the DHT and the protocols are those of production,
only the jobs are timers. Then print what came of it, per site, and the messages per job.

The sites trade. They also lend processors (--delegation), run jobs at several sites at
once (--coalloc), head clusters (--heads) and pay by cheque (--bank), each by a share of
the jobs. With --compare virtual networks of the same sites replay the same jobs, and the
messages of each kind stand beside each other.

Run times, deadlines and gaps are divided by --speedup; messages take as long as they
take, so --slack is added to every deadline. In the output spans are the workload's again.
With --load jobs come faster than that, or slower, so that they keep sites busy.`,
		Example: `  gridnode testnet up -n 12
  gridnode testnet up -n 50 --transport memory --jobs 1000 -o json
  gridnode testnet up -n 8 --trace traces/ --placement paper --oft 100
  gridnode testnet up -n 8 --delegation --load 120 --shrink 16
  gridnode testnet up -n 16 --trace traces/ --delegation=x-strd --coalloc=fcm --bank
  gridnode testnet up -n 24 --transport memory --all-protocols --load 60 --shrink 16 --compare
  gridnode testnet up -n 5 --stay          # and prints an invitation to join it
  gridnode testnet up -n 20 --jobs 2000 --web --stay     # to be looked at in a browser`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Traces = append(cfg.Traces, args...)
			protocols()
			cfg.Progress, cfg.Slack = cmd.ErrOrStderr(), grid.FromDuration(slack)
			ctx, stop := interruptible(cmd)
			defer stop()
			live, err := live.Up(ctx, cfg)
			if err != nil {
				return printResult(cmd, l, nil, err)
			}
			if web {
				page, err := showPage(cmd.ErrOrStderr(), live)
				if err != nil {
					return errors.Join(err, live.Close())
				}
				defer page.Close()
			}
			if compare && !cmd.Flags().Changed("rest") {
				rest = restUsual
			}
			if compare || rest > 0 {
				err = live.Settle(ctx, rest)
			}
			var result *measure.Result
			if err == nil {
				result, err = live.Replay(ctx)
			}
			if err == nil && compare {
				err = live.Beside(ctx, result)
			}
			if err = printResult(cmd, l, result, err); err == nil && stay {
				err = stayUp(ctx, cmd.ErrOrStderr(), live)
			}
			return errors.Join(err, live.Close())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVarP(&cfg.Nodes, "nodes", "n", cfg.Nodes, fmt.Sprintf("number of nodes, 1 to %d: the sites of table 1, again and again", live.NodesMax))
	f.Int64Var(&cfg.Count, "jobs", cfg.Count, "replay the first so many jobs of the two days; 0: all of them")
	f.Int64Var(&cfg.Speedup, "speedup", cfg.Speedup, fmt.Sprintf("how much faster than the workload, 1 to %d; 0: so that about 100 jobs a second arrive", live.SpeedupMax))
	f.Var(percentFlag{&cfg.Load}, "load", fmt.Sprintf("how much of all processors the jobs would keep busy, at most %d (default: as in the workload)", live.LoadMax))
	f.Lookup("load").DefValue = ""
	f.Int64Var(&cfg.Shrink, "shrink", cfg.Shrink, "divide the processors of sites and jobs by this, so that fewer jobs fill the sites")
	f.DurationVar(&slack, "slack", slack, "real time added to every deadline")
	f.StringVar(&cfg.Placement, "placement", cfg.Placement, "how a home looks for a site: paper or coordinated")
	f.IntVar(&cfg.OFT, "oft", cfg.OFT, "percentage of users who want the fastest site, 0 to 100; the others want the cheapest")
	protocols = addProtocolFlags(f, &cfg.Protocols)
	f.StringSliceVar(&cfg.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip), matched to sites by name, or directories of them (default: a generated workload)")
	addStrictFlag(f, &cfg.Strict)
	f.StringVar(&cfg.Transport, "transport", cfg.Transport, "tcp over loopback, or memory: the same libp2p without sockets, for many nodes")
	f.StringVar(&cfg.Home, "homes", "", "directory for the homes of the nodes, with stores on disk (default: nothing is kept)")
	f.BoolVar(&compare, "compare", false, "set the messages beside those of virtual networks of the same sites and jobs")
	f.DurationVar(&rest, "rest", 0, fmt.Sprintf("how long the nodes rest before the first job comes: a young network says more (default %v with --compare)", restUsual))
	f.BoolVar(&web, "web", false, "print the address of a page that shows the federation to a browser while it runs")
	f.BoolVar(&stay, "stay", false, "leave the nodes up after the replay, until Ctrl-C")
	_ = cmd.MarkFlagDirname("homes")
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

// stayUp says how to join the nodes, and waits until it is enough.
func stayUp(ctx context.Context, out io.Writer, l *live.Live) error {
	token, err := l.Invite(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the nodes stay up until Ctrl-C; one site joins with 'gridnode init --join %s'\n", token)
	<-ctx.Done()
	return nil
}

// addProtocolFlags gives f what sites may do besides trading. The function it returns is
// called when the flags have been read.
func addProtocolFlags(f *pflag.FlagSet, p *live.Protocols) (read func()) {
	all := false
	f.StringVar(&p.Delegation, "delegation", p.Delegation, "sites lend, and borrow when they are full: `POLICY` dmm, s-strd or x-strd; without one: "+live.DelegationUsual)
	f.Lookup("delegation").NoOptDefVal = live.DelegationUsual
	f.StringVar(&p.Order, "order", p.Order, "with --delegation, whom a site asks first: neighbours, most-free, best-fit or gossip")
	f.StringVar(&p.Coalloc, "coalloc", p.Coalloc, "some jobs run at several sites at once, placed by `POLICY` wf, cf, fcm, ca or adaptive; without one: "+live.CoallocUsual)
	f.Lookup("coalloc").NoOptDefVal = live.CoallocUsual
	f.IntVar(&p.Heads, "heads", p.Heads, "the first site of every eight heads so many of the others, 0 to 7: it shares jobs out over them")
	f.StringVar(&p.Packing, "packing", p.Packing, "with --heads, how jobs are shared out: urgent, muscle, dll or wrand")
	f.BoolVar(&p.Bank, "bank", p.Bank, "sites are paid, for jobs and leases, by cheques of a bank that the first one keeps")
	f.BoolVar(&all, "all-protocols", false, fmt.Sprintf("--delegation, --coalloc, --heads %d and --bank, unless they say otherwise", live.HeadsUsual))
	f.IntVar(&p.Local, "local", p.Local, "with --delegation or --heads, percentage of the jobs that stay at home, on own and borrowed processors or with its head")
	f.IntVar(&p.Divided, "divided", p.Divided, "with --coalloc, percentage of the jobs of 2 to 24 processors that run at several sites")
	return func() {
		if all {
			*p = p.All()
		}
	}
}
