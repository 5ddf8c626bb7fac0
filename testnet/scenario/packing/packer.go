package packing

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// packer runs the scenario: batch by batch, cluster by cluster.
type packer struct {
	cfg    *Config
	policy muscle.Policy
	plans  *muscle.Planner
	draws  *rand.PCG // of the policy and of the planner; begun anew for each batch and cluster

	batches     int
	generations int64
	hash        uint64
	mcp, pb     float64 // sums over the batches
	jobs        int64
	clusters    []packedCluster
	left        [][]grid.Time // by cluster: when its processors are free as the next batch comes; empty: they are
	span        grid.Time     // makespans of all clusters, the longest of each batch, added up
}

// packedCluster is what came of one cluster, added up over the batches.
type packedCluster struct {
	jobs, missed   int64
	cp             float64
	makespan, idle grid.Time
	area           grid.Time // processor time of its jobs
}

func newPacker(cfg *Config, clusters int) (*packer, error) {
	p := &packer{cfg: cfg, draws: rand.NewPCG(0, 0), clusters: make([]packedCluster, clusters)}
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
	r := p.result(begun)
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
		sum := &p.clusters[c]
		sum.jobs += int64(len(problem.Jobs))
		sum.missed += int64(f.Missed)
		sum.cp += cp[c]
		sum.makespan += f.Makespan
		sum.idle += f.Idle
		for i := range problem.Jobs {
			sum.area += problem.Jobs[i].Span * grid.Time(problem.Jobs[i].Processors)
		}
		longest = max(longest, f.Makespan)
	}
	p.mcp += muscle.MCP(cp, counts)
	p.pb += muscle.PB(cp, counts)
	p.span += longest
	p.jobs += int64(len(b.Jobs))
	p.batches++
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

// result works the figures out. Makespans are means over the batches.
func (p *packer) result(begun time.Time) *measure.Result {
	n := float64(p.batches)
	r := &measure.Result{
		Scenario: "packing", Seed: p.cfg.Seed, Mode: "virtual", Config: *p.cfg, TraceHash: fmt.Sprintf("%016x", p.hash),
		Events: p.generations, VirtualSeconds: measure.Seconds(p.span), WallSeconds: measure.Seconds(grid.FromDuration(time.Since(begun))),
		Messages: measure.Messages{ByType: map[string]int64{}}, Table: writePacking,
	}
	utilization := func(area, idle grid.Time) measure.Ratio {
		if area+idle == 0 {
			return 0
		}
		return measure.Ratio(10_000*float64(area)/float64(area+idle) + 0.5)
	}
	var area, idle grid.Time
	for i, site := range p.cfg.described() {
		c := &p.clusters[i]
		s := measure.Stats{
			Submitted: c.jobs, Accepted: c.jobs, Finished: c.jobs, Local: c.jobs, Missed: c.missed,
			Utilization: utilization(c.area, c.idle), Makespan: hundredths(c.makespan.Seconds() / n),
			Goodput: measure.Seconds(c.area), GoodputLocal: measure.Seconds(c.area), SquashedArea: measure.Seconds(c.area),
			QueueLength: hundredths(float64(c.jobs) / n), MCP: hundredths(c.cp / n),
		}
		area, idle = area+c.area, idle+c.idle
		r.Sites = append(r.Sites, measure.SiteResult{Name: site.Name, Processors: site.Processors, Stats: s})
		r.Total.Missed += c.missed
	}
	t := &r.Total
	t.Submitted, t.Accepted, t.Finished, t.Local = p.jobs, p.jobs, p.jobs, p.jobs
	t.Utilization, t.Makespan = utilization(area, idle), hundredths(p.span.Seconds()/n)
	t.Goodput, t.GoodputLocal, t.SquashedArea = measure.Seconds(area), measure.Seconds(area), measure.Seconds(area)
	t.QueueLength = hundredths(float64(p.jobs) / n)
	t.MCP, t.PB = hundredths(p.mcp/n), hundredths(p.pb/n)
	return r
}

// writePacking prints a line per cluster and one for all.
func writePacking(w io.Writer, r *measure.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cluster\tprocessors\tjobs\tjobs a batch\tmissed\tutilization\tmakespan s\tCP s\t")
	line := func(name string, processors int64, s *measure.Stats) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%s %%\t%s\t%s\t\n", name, processors, s.Submitted, measure.Fixed(int64(s.QueueLength), 2),
			s.Missed, measure.Fixed(int64(s.Utilization), 2), measure.Fixed(int64(s.Makespan), 2), measure.Fixed(int64(s.MCP), 2))
	}
	var processors int64
	for i := range r.Sites {
		line(r.Sites[i].Name, r.Sites[i].Processors, &r.Sites[i].Stats)
		processors += r.Sites[i].Processors
	}
	line("all", processors, &r.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nMCP %s s, PB %s s, means over the batches\n%s run, seed %d, trace hash %s: %d generations of TITAN in %v s\n",
		measure.Fixed(int64(r.Total.MCP), 2), measure.Fixed(int64(r.Total.PB), 2), r.Mode, r.Seed, r.TraceHash, r.Events, r.WallSeconds)
	return err
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
