package scale

import (
	"fmt"
	"slices"
	"time"

	"gridnode/grid"
	"gridnode/testnet/live"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/sweep"
)

// Options says what is measured.
type Options struct {
	Seed uint64

	// Sizes are the numbers of sites, rising. If they are nil, they are From, To, the
	// powers of ten between them, and fifty, which the targets speak of.
	Sizes    []int
	From, To int

	Placement string        // "paper" or "coordinated"
	OFT       []int         // per cent of the users who want the fastest site; one run for each
	InStep    bool          // as in the scenario
	Skew      bool          // as in the scenario
	Stay      time.Duration // as in the scenario
	Traces    []string

	// SiteHours is how many hours all sites of a federation together are measured for;
	// one is measured for at least SpanMin and at most two days.
	SiteHours int

	// Live measures real nodes in this process beside virtual networks of the same
	// workload, LiveJobs jobs for each node; to a hundred nodes if To is what it was.
	Live     bool
	LiveJobs int
	LiveRate int           // jobs that arrive a second at all nodes together
	LivePace float64       // jobs that arrive a minute at each node, so that every size has as much to do; 0: as LiveRate says
	LiveRest time.Duration // before the first job comes

	Shrink    int64          // as in live.Config
	Load      float64        // as in live.Config
	Protocols live.Protocols // what live nodes do besides trading

	Workers int // virtual networks at a time; 0: one on each processor

	// Processors is how many one virtual network may use, 0 to sweep.WorkersMax; 0: those that
	// no other has. It changes nothing but how long it takes.
	Processors int
	Away       sweep.Away // has them run elsewhere; nil: they are run here

	// Progress is told how much of the work is done, from one goroutine at a time.
	Progress func(done, total int64)
}

// SpanMin is the shortest span a federation is measured for.
const SpanMin = grid.Hour

// The largest sizes unless others are asked for, and the most live nodes: each takes
// 6 MB, and they share the processors.
const (
	defaultTo     = 10_000
	defaultToLive = 100
	LiveMax       = 200
)

// DefaultOptions is what the command line starts from.
func DefaultOptions() Options {
	return Options{Seed: 1, From: 10, To: defaultTo, Placement: "coordinated", OFT: []int{50}, SiteHours: 10_000, LiveJobs: 10, LiveRate: live.LiveRate, LiveRest: 2 * time.Minute, Shrink: 1, Protocols: live.DefaultProtocols()}
}

func configError(flag, format string, args ...any) error {
	return fmt.Errorf("%w: --%s: %s", scenario.ErrConfig, flag, fmt.Sprintf(format, args...))
}

// sizesMax bounds how many sizes there are.
const sizesMax = 50

// validate checks o and works out its sizes.
func (o *Options) validate() error {
	if o.Live && o.To == defaultTo {
		o.To = defaultToLive
	}
	if o.Sizes == nil {
		if o.From < 1 || o.To < o.From || o.To > federation.SitesMax {
			return configError("from", "%d to %d sites: want 1 ≤ from ≤ to ≤ %d", o.From, o.To, federation.SitesMax)
		}
		o.Sizes = sizes(o.From, o.To)
	}
	if len(o.Sizes) > sizesMax || !slices.IsSorted(o.Sizes) || len(slices.Compact(slices.Clone(o.Sizes))) != len(o.Sizes) {
		return configError("steps", "%v: want at most %d rising numbers of sites", o.Sizes, sizesMax)
	}
	for _, n := range o.Sizes {
		if o.Live && n > LiveMax {
			return configError("live", "%d nodes: at most %d fit into one process; larger federations are measured in virtual time, without --live", n, LiveMax)
		}
		if n < 1 || n > federation.SitesMax {
			return configError("steps", "%d: want 1 to %d sites", n, federation.SitesMax)
		}
	}
	if o.SiteHours < 1 || o.SiteHours > 1<<30 {
		return configError("site-hours", "%d: want 1 or more", o.SiteHours)
	}
	if err := sweep.CheckWorkers(o.Workers); err != nil {
		return configError("jobs", "%v", err)
	}
	if err := sweep.CheckWorkers(o.Processors); err != nil {
		return configError("processors", "%v", err)
	}
	if o.Live && o.Away != nil {
		return configError("on", "live nodes are measured on this machine only")
	}
	if o.LiveJobs < 1 || o.LiveJobs > 1000 {
		return configError("live-jobs", "%d: want 1 to 1000 for each node", o.LiveJobs)
	}
	if o.LiveRate < 1 || o.LiveRate > 10_000 {
		return configError("live-rate", "%d: want 1 to 10000 jobs a second", o.LiveRate)
	}
	if !(o.LivePace >= 0 && o.LivePace <= 6000) {
		return configError("live-pace", "%v: want 0 to 6000 jobs a minute", o.LivePace)
	}
	if o.LiveRest < 0 || o.LiveRest > time.Hour {
		return configError("live-rest", "%v: want 0 to 1h", o.LiveRest)
	}
	if !o.Live && (o.Load != 0 || o.Shrink != 1 || o.Protocols != live.DefaultProtocols()) {
		return configError("live", "without it only trading is measured, with the jobs as they are: leave out --load, --shrink and what sites do besides")
	}
	if o.Live && (o.Skew || o.Stay != 0) {
		return configError("live", "live nodes stay, and get the jobs of their own users: leave out --stay and --skew")
	}
	if o.Live && o.InStep {
		return configError("in-step", "live nodes replay the first jobs of the two days: leave it out with --live")
	}
	if len(o.OFT) == 0 || len(o.OFT) > 11 {
		return configError("oft", "%v: want 1 to 11 percentages", o.OFT)
	}
	return nil
}

// sizes returns from, to, the powers of ten between, and fifty if it lies between.
func sizes(from, to int) []int {
	list := []int{from, to}
	for n := 1; n < to; n *= 10 {
		if n > from {
			list = append(list, n)
		}
	}
	if from < 50 && 50 < to {
		list = append(list, 50)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// span returns for how long a federation is measured.
func (o *Options) span(sites int) grid.Time {
	return min(max(grid.Time(o.SiteHours)*grid.Hour/grid.Time(sites), SpanMin), scale.SpanMax)
}
