//go:build !client

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/testnet/scenario/chaos"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/leasing"
	"gridnode/testnet/sweep/away"
)

func newRunFederation() *cobra.Command {
	cfg, l := federation.Default(), listing{}
	cmd := &cobra.Command{
		Use:   "federation [flags]",
		Short: "The eight sites of Grid-Federation (2004) over two days",
		Long: `The eight sites of table 1 of Grid-Federation (2004) over two days: each by itself
(independent), helping each other (federated), or trading (economy).`,
		Example: `  gridnode testnet run federation --mode economy --oft 50
  gridnode testnet run federation --mode independent --trace traces/*.swf.gz -o json
  gridnode testnet run federation --placement paper --sites 50`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Traces = append(cfg.Traces, args...)
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := federation.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Mode, "mode", cfg.Mode, "independent, federated or economy")
	f.StringVar(&cfg.Placement, "placement", cfg.Placement, "how a home looks for a site: paper or coordinated")
	f.StringVar(&cfg.Pricing, "pricing", cfg.Pricing, "how prices come about: fixed, or demand (by utilisation and queue, from half to twice those of table 1)")
	f.StringVar(&cfg.Cost, "cost", cfg.Cost, "what prices are multiplied with: paper (time, whatever the width) or processor-time")
	f.IntVar(&cfg.OFT, "oft", cfg.OFT, "percentage of users who want the fastest site, 0 to 100; the others want the cheapest")
	f.IntVar(&cfg.Sites, "sites", cfg.Sites, "number of sites: table 1, part of it, or again and again")
	f.StringSliceVar(&cfg.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip), matched to sites by name, or directories of them (default: a generated workload)")
	f.StringVar(&cfg.Queue, "queue", cfg.Queue, "discipline of the queues: easy, fcfs or titan")
	f.StringVar(&cfg.DHT, "dht", cfg.DHT, "how holders of a directory cell are found: model (Kademlia, by messages) or oracle")
	f.Var(latencyFlag{&cfg.LatencyMin, &cfg.LatencyMax}, "latency", "how long a message takes")
	addStrictFlag(f, &cfg.Strict)
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

func newRunLeasing() *cobra.Command {
	cfg, l := leasing.Default(), listing{}
	cmd := &cobra.Command{
		Use:   "leasing [flags]",
		Short: "Sites that replay a log each (The gain of resource delegation, 2009)",
		Long: `Sites that replay a log each, on their own processors, as in "The gain of resource
delegation" (2009). A run time is cut at the estimate; a job wider than its site is
left out, and counted. With --policy local every site runs its own jobs on its own
processors. With s-strd a site leases what a job lacks when it is submitted, with
x-strd what every job in the queue lacks, from its head to the first refusal; a partner
grants if it has that many idle, and has them back when the job ends.`,
		Example: `  gridnode testnet run leasing --policy local --trace CTC-SP2-1996-3.1-cln.swf.gz --processors 430
  gridnode testnet run leasing --policy x-strd --trace KTH-SP2-1996-2.1-cln.swf.gz --trace CTC-SP2-1996-3.1-cln.swf.gz --processors 100,430
  gridnode testnet run leasing --trace SDSC-DS-2004-2.1-cln.swf.gz --processors 1664 --until 29376000 -o json
  gridnode testnet run leasing --trace NASA-iPSC-1993-3.1-cln.swf.gz --no-estimate runtime`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Traces = append(cfg.Traces, args...)
			cfg.Progress = cmd.ErrOrStderr()
			ctx, stop := interruptible(cmd)
			defer stop()
			result, err := leasing.Run(ctx, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Policy, "policy", cfg.Policy, "local, s-strd or x-strd: who leases processors, and when")
	f.StringSliceVar(&cfg.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip), one per site (default: a generated workload)")
	f.Int64SliceVar(&cfg.Processors, "processors", nil, "`N,...` processors, of the sites in the order of the logs; one number is for all (default: as the logs say)")
	f.Lookup("processors").DefValue = "" // else the help says []
	f.Int64Var(&cfg.Until, "until", 0, "leave out jobs submitted at or after this second of the log; 0: none")
	f.StringVar(&cfg.NoEstimate, "no-estimate", cfg.NoEstimate, "jobs without an estimate: drop them, or take the runtime for it")
	f.StringVar(&cfg.Queue, "queue", cfg.Queue, "discipline of the queues: easy, fcfs or titan")
	addStrictFlag(f, &cfg.Strict)
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

func newRunChaos(root *options) *cobra.Command {
	cfg, l, replay, swarm, seeds, beyond := chaos.Default(), listing{}, "", false, 0, beyond{}
	cfg.Failures, cfg.Shrink = ".", time.Minute
	cmd := &cobra.Command{
		Use:   "chaos [flags]",
		Short: "A federation under faults, checked at every event",
		Long: `A federation whose messages get lost, doubled and reordered, whose clocks drift, whose
daemons and machines crash and whose network falls apart. While that lasts and after it
has healed, the invariants are checked at every event: no job is lost or runs twice at
once, processors and credits are conserved, everything that was let in ends. The first
violation ends the run with exit code 1 and one command that shows it again.

That command names a replay file, chaos-SEED.json in the directory --failures: all
settings, and every fault, wish of a user and job listed, so that single ones can be taken
out by hand. Within the time of --shrink, sites, hours, faults, wishes and jobs that the
violation does not need are left out, which gives chaos-SEED.small.json. The last messages
before the violation are drawn beside it (chaos-SEED.small.mmd, a sequence diagram of
Mermaid).

With --seeds N that many seeds are run, on all processors, and a violation ends its own
run only. What they have seen together is printed: faults by kind, where faults could have
struck and how often they did, and the violations.`,
		Example: `  gridnode testnet run chaos --sites 30 --hours 12
  gridnode testnet run chaos --faults loss=0.1,daemon=2 --seed 7
  gridnode testnet run chaos --faults none --features cancel,after,drain=1
  gridnode testnet run chaos --swarm --seed 12
  gridnode testnet run chaos --swarm --seeds 4 --sites 4 --hours 1`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Progress = cmd.ErrOrStderr()
			cfg.Say = func(text string) { cmd.PrintErrln(text) }
			ctx, stop := interruptible(cmd)
			defer stop()
			var err error
			if cfg.Away, err = beyond.away(cmd, root, nil, nil); err != nil {
				return err
			}
			if cfg.Away != nil && (seeds == 0 || replay != "") {
				return usagef("--on: it is the runs of --seeds that are done elsewhere")
			}
			if seeds != 0 && replay == "" {
				return printCampaign(cmd, l, func() (*chaos.Campaign, error) { return chaos.RunSeeds(ctx, cfg, seeds, swarm) })
			}
			if replay == "" {
				if swarm {
					cfg = cfg.Swarmed()
					cmd.PrintErrf("the mixture of seed %d: --faults %s --features %s --lend=%v\n", cfg.Seed, cfg.Faults, cfg.Features, cfg.Lend)
				}
				result, err := chaos.Run(ctx, cfg)
				return printResult(cmd, l, result, err)
			}
			for _, name := range []string{"seed", "seeds", "sites", "hours", "faults", "features", "swarm", "lend"} {
				if cmd.Flags().Changed(name) {
					return usagef("--replay FILE says what --%s is", name)
				}
			}
			if !cmd.Flags().Changed("shrink") {
				cfg.Shrink = 0
			}
			result, err := chaos.Replay(ctx, replay, cfg)
			return printResult(cmd, l, result, err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&cfg.Sites, "sites", cfg.Sites, "number of sites, 1 to 1000")
	f.Float64Var(&cfg.Hours, "hours", cfg.Hours, "virtual hours of submissions and faults, more than 0, at most 10000")
	f.StringVar(&cfg.Faults, "faults", cfg.Faults, "none, or a list of NAME or NAME=INTENSITY: loss, duplicate, reorder (shares of messages), drift (millionths), daemon, torn, machine (crashes per site and hour), partition (per hour), aim (share of jobs at several sites that are cancelled or lose a site while they claim, get ready or run), within (chance to die between two orders of a step that saves), between (of one that saves nothing), store (chance that it cannot save, and dies of it), coincide (share of messages that arrive with a timer), oneway (partitions that stop what one side says, per hour), slow (times that messages of a site take longer, per site and hour), old (times that a site comes up with an older copy of its store, per site and hour)")
	f.StringVar(&cfg.Features, "features", cfg.Features, "none, or a list of NAME or NAME=INTENSITY: cancel, hold, requeue, after, begin, fail, poison, ban, detain, read, once, singleton, renew (shares of jobs), break, unready (shares of the parts of jobs at several sites), linger (share of executions), drain, price, link, return, ask, data, find, account, forge, invite (per site and hour), paper, demand, queue, guests, quota, most, thrift, gpus (shares of sites), head (share of groups of sites), array (share of jobs), gossip, fresh, oracle (0 or 1), expire, revoke (shares of sites, which are members then)")
	f.BoolVar(&swarm, "swarm", false, "draw the mixture of faults and features from the seed: each is left out, usual or exaggerated")
	f.BoolVar(&cfg.Lend, "lend", cfg.Lend, "sites lend processors to each other, by load in a hierarchy and by hand")
	f.IntVar(&seeds, "seeds", 0, "run so many seeds, from --seed on, and sum up what they have seen")
	f.StringVar(&replay, "replay", "", "run what a replay `FILE` says, which a violation has left")
	f.StringVar(&cfg.Failures, "failures", cfg.Failures, "directory for the files that a violation leaves; empty: none")
	f.DurationVar(&cfg.Shrink, "shrink", cfg.Shrink, "real time for leaving out what a violation does not need; with --replay not at all, unless it is given")
	_ = cmd.MarkFlagFilename("replay", "json")
	_ = cmd.MarkFlagDirname("failures")
	beyond.flags(cmd)
	addScenarioFlags(cmd, &cfg.Common, &l)
	return cmd
}

// printCampaign prints what many seeds of chaos have seen. A violation is an error.
func printCampaign(cmd *cobra.Command, l listing, run func() (*chaos.Campaign, error)) error {
	c, err := run()
	if errors.Is(err, away.ErrPart) {
		return nil
	}
	if err != nil {
		return printResult(cmd, l, nil, err)
	}
	if err := c.Write(cmd.OutOrStdout(), string(l.format)); err != nil || len(c.Violations) == 0 {
		return err
	}
	return fmt.Errorf("%d of %d seeds violate an invariant, the first is seed %d", len(c.Violations), c.Seeds, c.Violations[0].Seed)
}
