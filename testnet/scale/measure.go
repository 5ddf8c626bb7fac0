package scale

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/testnet/live"
	"gridnode/testnet/scenario/scale"
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
				Seed: o.Seed, Sites: sites, Span: o.span(sites), Placement: o.Placement, OFT: oft, InStep: o.InStep, Traces: o.Traces,
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

// measureAll makes the runs, the longest first, one on each processor. The first
// error ends it.
func (r *Report) measureAll(ctx context.Context) error {
	order := make([]int, len(r.configs))
	var total int64
	for i := range order {
		order[i] = i
		total += work(&r.configs[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(work(&r.configs[b]), work(&r.configs[a])) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	var lock sync.Mutex // of next, done and the progress
	next := 0
	done := make([]int64, len(order))
	progress := func(i int, permille int64) {
		lock.Lock()
		defer lock.Unlock()
		done[i] = work(&r.configs[i]) / 1000 * min(permille, 1000)
		var sum int64
		for _, d := range done {
			sum += d
		}
		if r.Options.Progress != nil {
			r.Options.Progress(sum, total)
		}
	}
	take := func() (int, bool) {
		lock.Lock()
		defer lock.Unlock()
		if next == len(order) || ctx.Err() != nil {
			return 0, false
		}
		next++
		return order[next-1], true
	}
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		group.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				cfg := r.configs[i]
				cfg.Pulse = func(permille int64) { progress(i, permille) }
				result, err := scale.Run(ctx, cfg)
				if err != nil {
					cancel(err)
					return
				}
				r.Results[i] = result
				progress(i, 1000)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
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
