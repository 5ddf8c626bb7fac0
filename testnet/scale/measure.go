package scale

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/testnet/live"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/sweep"
)

// warmup is about what is not measured of each run, for the progress.
const warmup = 10 * grid.Minute

// Measure measures all sizes. Cancelling ctx ends it with ctx's error. An error
// wrapping scenario.ErrConfig is about o. With Options.Live there is a report of what has
// been measured beside the error, if that is anything.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	begun := time.Now()
	r := &Report{Options: o}
	if o.Live {
		err := r.measureLive(ctx)
		if len(r.Results) == 0 {
			return nil, err
		}
		r.WallSeconds = time.Since(begun).Seconds()
		return r, err
	}
	for _, oft := range o.OFT {
		for _, sites := range o.Sizes {
			r.configs = append(r.configs, scale.Config{
				Seed: o.Seed, Sites: sites, Span: o.span(sites), Placement: o.Placement, OFT: oft, InStep: o.InStep, Skew: o.Skew, Stay: grid.FromDuration(o.Stay), Traces: o.Traces,
			})
		}
	}
	r.Results = make([]*scale.Result, len(r.configs))
	if err := r.measureAll(ctx); err != nil {
		return nil, err
	}
	r.WallSeconds = time.Since(begun).Seconds()
	return r, nil
}

// work is about how long a run takes, in any unit.
func work(cfg *scale.Config) int64 {
	return int64(cfg.Sites) * int64((cfg.Span+warmup)/grid.Second)
}

// What a site takes of memory, in bytes, after an hour: siteLive, and with what the collector
// of garbage leaves lying in a large federation siteMemory at most, of which most sites make
// use of siteHeap.
const (
	siteLive   = 110 << 10
	siteHeap   = 160 << 10
	siteMemory = 200 << 10
)

// How much garbage may lie about: garbageMin bytes, so that little of the time goes into
// collecting it, but no more than garbageMost per cent of what lives, as more saves none. In a
// large federation, of which gigabytes live, garbageLeast per cent.
const (
	garbageMin   = 512 << 20
	garbageMost  = 400
	garbageLeast = 20
)

// garbage returns GOGC for federations of so many sites together.
func garbage(sites int) int {
	return min(max(garbageMin/(max(sites, 1)*siteLive/100), garbageLeast), garbageMost)
}

// collector has the garbage of the runs under way collected as garbage says.
type collector struct {
	lock  sync.Mutex
	sites int
	fixed bool // by the environment
}

// add says that so many more sites are under way, or, negative, fewer.
func (c *collector) add(sites int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.sites += sites; !c.fixed {
		debug.SetGCPercent(garbage(c.sites))
	}
}

// measureAll makes the runs, the longest first, one on each processor unless Options say
// otherwise, as far as there is memory. The first error ends it.
func (r *Report) measureAll(ctx context.Context) error {
	c := collector{fixed: os.Getenv("GOGC") != ""}
	how := sweep.Options{Workers: r.Options.Workers, Memory: sweep.Available(), Progress: r.Options.Progress, Away: r.Options.Away}
	each := cmp.Or(r.Options.Processors, max(runtime.GOMAXPROCS(0)/max(how.AtATime(len(r.configs)), 1), 1))
	runs := make([]sweep.Run, len(r.configs))
	for i := range runs {
		cfg := r.configs[i]
		runs[i] = sweep.Run{Result: &r.Results[i], Weight: work(&cfg), Memory: int64(cfg.Sites) * siteMemory, Do: func(ctx context.Context, pulse func(permille int64)) (err error) {
			cfg.Pulse, cfg.Workers = pulse, each
			c.add(cfg.Sites)
			defer c.add(-cfg.Sites)
			prepareHeap(min(int64(cfg.Sites)*siteHeap, sweep.Available()))
			r.Results[i], err = scale.Run(ctx, cfg)
			return err
		}}
		if r.Options.Away != nil { // here the error says it all
			runs[i].Name = fmt.Sprintf("%d sites, %d %% OFT", cfg.Sites, cfg.OFT)
		}
	}
	return sweep.Do(ctx, runs, how)
}

// measureLive measures real nodes, one size after the other, each beside its virtual
// network.
func (r *Report) measureLive(ctx context.Context) error {
	var configs []live.ComparisonConfig
	var done, total time.Duration
	for _, oft := range r.Options.OFT {
		for _, nodes := range r.Options.Sizes {
			cfg := live.ComparisonConfig{
				Seed: r.Options.Seed, Nodes: nodes, Jobs: int64(nodes * r.Options.LiveJobs),
				Placement: r.Options.Placement, OFT: oft, Traces: r.Options.Traces,
				Rate: float64(r.Options.LiveRate), Rest: r.Options.LiveRest,
				Shrink: r.Options.Shrink, Load: r.Options.Load, Protocols: r.Options.Protocols,
			}
			if r.Options.LivePace > 0 {
				cfg.Rate = r.Options.LivePace / 60 * float64(nodes)
			}
			configs = append(configs, cfg)
			total += cfg.Expected()
		}
	}
	for _, cfg := range configs {
		expected := cfg.Expected()
		cfg.Progress = func(permille int64) {
			if r.Options.Progress != nil {
				r.Options.Progress(int64(done+expected*time.Duration(permille)/1000), int64(total))
			}
		}
		nodes, virtual, err := live.Compare(ctx, cfg)
		if err != nil {
			return err
		}
		done += expected
		r.Results = append(r.Results, nodes)
		r.Live = append(r.Live, Comparison{Sites: cfg.Nodes, OFT: cfg.OFT, Types: live.Differences(nodes, virtual), Rates: live.Rates(nodes, virtual), virtual: virtual, live: nodes})
	}
	return nil
}

// command returns the command that measures the same.
func (o *Options) command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gridnode testnet scale --steps %s --placement %s --oft %s", join(o.Sizes), o.Placement, join(o.OFT))
	if o.Live {
		fmt.Fprintf(&b, " --live --live-jobs %d --live-rest %v", o.LiveJobs, o.LiveRest)
		if o.LivePace > 0 {
			fmt.Fprintf(&b, " --live-pace %v", o.LivePace)
		} else {
			fmt.Fprintf(&b, " --live-rate %d", o.LiveRate)
		}
		if o.Shrink != 1 {
			fmt.Fprintf(&b, " --shrink %d", o.Shrink)
		}
		if o.Load != 0 {
			fmt.Fprintf(&b, " --load %v", o.Load)
		}
		b.WriteString(o.Protocols.Flags())
	} else {
		fmt.Fprintf(&b, " --site-hours %d", o.SiteHours)
	}
	fmt.Fprintf(&b, " --seed %d", o.Seed)
	if o.InStep {
		b.WriteString(" --in-step")
	}
	if o.Skew {
		b.WriteString(" --skew")
	}
	if o.Stay != 0 {
		fmt.Fprintf(&b, " --stay %v", o.Stay)
	}
	if len(o.Traces) > 0 {
		b.WriteString(" --trace " + strings.Join(o.Traces, ","))
	}
	return b.String()
}

func join(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ",")
}
