//go:build !client

package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gridnode/testnet/scale"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/sweep"
)

// spareCollector lets the garbage collector run less often than by default, as long
// as memory allows: thousands of sites are gigabytes of live memory to go through, and a
// few make so little garbage that with the default much of the time goes into collecting it.
func spareCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(4<<30, sweep.Available()/4*3)) // beyond it, as often as necessary
	}
}

func newScale(root *options) *cobra.Command {
	o, l, out, beyond := scale.DefaultOptions(), listing{}, "", beyond{}
	var protocols func()
	cmd := &cobra.Command{
		Use:   "scale [flags]",
		Short: "Measure how the messages of a federation grow with its sites",
		Long: `Measure how the messages of a federation grow with its sites, in virtual time: per job
by type, per directory query, per site and minute, and how evenly they are spread over
the sites. A list of targets says which are met; missing one is no error.

The sites are those of table 1 of Grid-Federation (2004), again and again. Larger
federations are measured for a shorter span (--site-hours); docs/performance.md says how
to read the report. With --live, real nodes in this process are measured, and beside
them virtual networks of the same workload, type by type: trading, and whatever else
they are to do.`,
		Example: `  gridnode testnet scale
  gridnode testnet scale --from 10 --to 1000 --oft 0,100 --out report
  gridnode testnet scale --steps 50,1000 --placement paper -o csv
  gridnode testnet scale --steps 10000 --oft 0,50,100 -j 1
  gridnode testnet scale --steps 100,1000 --stay 8h --skew
  gridnode testnet scale --live --steps 10,50,100
  gridnode testnet scale --live --all-protocols --live-pace 12 --load 60 --shrink 16`,
		Args: traceArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Traces = append(o.Traces, args...)
			protocols()
			spareCollector()
			var err error
			if o.Away, err = beyond.away(cmd, root, nil, args); err != nil {
				return err
			}
			return experiment(cmd, "scale", l, out, func(ctx context.Context, progress func(done, total int64)) (savedReport, error) {
				o.Progress = progress
				r, err := scale.Measure(ctx, o)
				if r == nil {
					return nil, err
				}
				return r, err
			})
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.From, "from", o.From, "smallest number of sites")
	f.IntVar(&o.To, "to", o.To, fmt.Sprintf("largest number of sites, at most %d", federation.SitesMax))
	f.IntSliceVar(&o.Sizes, "steps", nil, "numbers of sites, rising (default: --from, --to, the powers of ten between, and 50)")
	f.StringVar(&o.Placement, "placement", o.Placement, "how a home looks for a site: paper or coordinated")
	f.IntSliceVar(&o.OFT, "oft", o.OFT, "percentages of users who want the fastest site; one run of every size for each")
	f.IntVar(&o.SiteHours, "site-hours", o.SiteHours, "hours that all sites of a federation together are measured for; one is measured for 1 h to 48 h")
	f.BoolVar(&o.Live, "live", false, fmt.Sprintf("measure real nodes in this process beside virtual ones: 10, 50 and 100, or as --to and --steps say, at most %d", scale.LiveMax))
	f.IntVar(&o.LiveJobs, "live-jobs", o.LiveJobs, "with --live, jobs that are replayed for each node")
	f.IntVar(&o.LiveRate, "live-rate", o.LiveRate, "with --live, jobs that arrive a second: fewer on a slow or busy machine")
	f.Float64Var(&o.LivePace, "live-pace", o.LivePace, "with --live, jobs that arrive a minute at each node, instead of --live-rate: every size has as much to do")
	f.DurationVar(&o.LiveRest, "live-rest", o.LiveRest, "with --live, how long the nodes rest before the first job comes")
	f.Var(percentFlag{&o.Load}, "load", "with --live, how much of all processors the jobs would keep busy (default: as in the workload)")
	f.Lookup("load").DefValue = ""
	f.Int64Var(&o.Shrink, "shrink", o.Shrink, "with --live, divide the processors of sites and jobs by this, so that fewer jobs fill the sites")
	protocols = addProtocolFlags(f, &o.Protocols)
	f.BoolVar(&o.InStep, "in-step", false, "let all replicas of a site submit the same jobs at the same instants")
	f.BoolVar(&o.Skew, "skew", false, "a tenth of the sites get nine tenths of the jobs (80 sites or more)")
	f.DurationVar(&o.Stay, "stay", 0, "let sites lose their power after this span in the mean, and come back after ten minutes (0: they stay)")
	f.StringSliceVar(&o.Traces, "trace", nil, "logs (SWF or GWF, plain or gzip), matched to sites by name, or directories of them (default: a generated workload)")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "determines everything random in the runs")
	f.IntVarP(&o.Workers, "jobs", "j", 0, "how many virtual networks at a time, each on a processor of its own (default: all processors, as far as there is memory)")
	f.IntVar(&o.Processors, "processors", 0, "how many processors one virtual network may use; the same happens whatever it is (default: those that no other network has)")
	f.StringVar(&out, "out", "", "directory to write scale.html, scale.csv and scale.json to")
	_ = cmd.MarkFlagDirname("out")
	beyond.flags(cmd)
	addListingFlags(cmd, &l, formatTable, formatJSON, formatCSV)
	_ = f.MarkHidden("no-headers")
	return cmd
}
