package packing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// packer runs the scenario for the policies that MUSCLE is compared with, without sites:
// batch by batch, cluster by cluster, each of which runs its share as TITAN plans it.
type packer struct {
	cfg    *Config
	policy muscle.Policy
	plans  *muscle.Planner
	draws  *rand.PCG // of the policy and of the planner; begun anew for each batch and cluster

	*sums
	generations int64
	hash        uint64
	left        [][]grid.Time // by cluster: when its processors are free as the next batch comes; empty: they are
}

func newPacker(cfg *Config, clusters int) (*packer, error) {
	p := &packer{cfg: cfg, draws: rand.NewPCG(0, 0), sums: newSums(clusters)}
	var err error
	if p.policy, err = muscle.ParsePolicy(cfg.Policy); err != nil {
		return nil, scenario.ConfigError("policy", "%v", err)
	}
	plan := muscle.PlanConfig{Config: titan.Config{Settle: cfg.Settle}} // the paper's: until it is stable
	if cfg.Start == "arrival" {
		plan.Start = muscle.StartArrival
	}
	p.plans, err = muscle.NewPlanner(plan, rand.New(p.draws))
	return p, err
}

// Run runs the scenario. Cancelling ctx ends it with ctx's error. An error
// wrapping ErrConfig is about cfg.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	weights, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.headed() {
		r, err := runHeads(ctx, &cfg, weights)
		if err == nil && cfg.Out != "" {
			err = r.Save(cfg.Out)
		}
		return r, err
	}
	begun := time.Now()
	p, err := newPacker(&cfg, len(weights))
	if err != nil {
		return nil, err
	}
	jobs, batch := newPackingJobs(&cfg), cfg.empty(weights)
	bar := scenario.NewProgress(cfg.Progress, "packing", int64(cfg.Total), func() int64 { return p.jobs })
	defer bar.Stop()
	for p.jobs < int64(cfg.Total) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		jobs.fill(&batch)
		if err := p.pack(&batch); err != nil {
			return nil, fmt.Errorf("packing, seed %d, batch %d: %w", cfg.Seed, p.batches, err)
		}
		bar.Pulse()
	}
	r := p.result(&cfg, begun)
	r.TraceHash, r.Events, r.VirtualSeconds = fmt.Sprintf("%016x", p.hash), p.generations, measure.Seconds(p.span)
	if cfg.Out != "" {
		err = r.Save(cfg.Out)
	}
	return r, err
}

// begin makes the draws that follow those of one cluster in one batch; cluster -1 is
// the policy.
func (p *packer) begin(cluster int) {
	p.draws.Seed(draw.Mix(p.cfg.Seed, uint64(p.batches)), draw.Mix(draw.Text("packing"), uint64(cluster+1)))
}

// pack shares a batch out and lets the clusters plan.
func (p *packer) pack(b *muscle.Batch) error {
	for c := range p.left {
		b.Clusters[c].Free = p.left[c]
	}
	p.left = nil
	p.begin(-1)
	packing, err := p.policy.Share(b, rand.New(p.draws))
	if err != nil {
		return err
	}
	if len(packing.Unplaced) > 0 {
		return fmt.Errorf("%d jobs are wider than every cluster", len(packing.Unplaced)) // the workload has none
	}
	cp, counts := make([]float64, len(b.Clusters)), make([]int, len(b.Clusters))
	longest := grid.Time(0)
	for c := range b.Clusters {
		problem := b.Problem(c, &packing.Shares[c])
		p.begin(c)
		bred, cut := p.plans.Plan(b, problem, &packing.Shares[c])
		if cut > 0 {
			return fmt.Errorf("the batch is too long to be measured")
		}
		p.planned(problem, &packing.Shares[c], bred)
		f := problem.Measure(p.plans.Best())
		cp[c], counts[c] = f.CP(b.Clusters[c].Weights), len(problem.Jobs)
		p.share(c, len(problem.Jobs), f, cp[c])
		for i := range problem.Jobs {
			p.clusters[c].area += problem.Jobs[i].Span * grid.Time(problem.Jobs[i].Processors)
		}
		longest = max(longest, f.Makespan)
	}
	p.batch(muscle.MCP(cp, counts), muscle.PB(cp, counts), longest, len(b.Jobs))
	return nil
}

// planned notes the schedule of a share.
func (p *packer) planned(problem *titan.Problem, share *muscle.Share, bred int) {
	p.generations += int64(bred)
	p.carry(problem)
	p.hash = draw.Mix(p.hash, uint64(p.plans.Cost()))
	for _, job := range p.plans.Best().Order {
		p.hash = draw.Mix(p.hash, uint64(share.Jobs[job]))
	}
}

// carry notes how long the cluster whose share was planned is busy when the next batch
// comes.
func (p *packer) carry(problem *titan.Problem) {
	window := micros(p.cfg.Window)
	if window == 0 {
		return
	}
	ends := make([]grid.Time, problem.Processors)
	copy(ends, problem.Free)
	best := p.plans.Best()
	starts := best.Starts(problem, nil)
	for job, start := range starts {
		for processor := range best.Processors(problem, int32(job)) {
			ends[processor] = max(ends[processor], start+problem.Jobs[job].Span)
		}
	}
	for i := range ends {
		ends[i] = max(ends[i]-window, 0)
	}
	p.left = append(p.left, ends)
}

// One shares one batch out as cfg says and returns its MCP in seconds.
func One(cfg Config, b *muscle.Batch) (mcp float64, err error) {
	p, err := newPacker(&cfg, len(b.Clusters))
	if err != nil {
		return 0, err
	}
	err = p.pack(b)
	return p.mcp, err
}

// Batch draws the first batch of cfg whose number of jobs is at most a bound.
func Batch(cfg Config, most int) (*muscle.Batch, error) {
	weights, err := cfg.check()
	if err != nil {
		return nil, err
	}
	b := cfg.empty(weights)
	for jobs := newPackingJobs(&cfg); len(b.Jobs) == 0 || len(b.Jobs) > most; {
		jobs.fill(&b)
	}
	return &b, nil
}
