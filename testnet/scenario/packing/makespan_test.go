package packing

import (
	"context"
	"math"
	"testing"

	"gridnode/testnet/measure"
)

// TestMakespanRunsSites: jobs that come as a Poisson process are collected by a head and
// done by its members, as many as the load says, with the same trace for the same seed.
func TestMakespanRunsSites(t *testing.T) {
	run := func(policy string, load, threshold float64) *measure.Result {
		return packed(t, func(cfg *Config) {
			cfg.Policy, cfg.Collect, cfg.Load, cfg.Threshold, cfg.Total = policy, CollectMakespan, load, threshold, 1500
		})
	}
	r := run("muscle", 90, 60)
	if r.Total.Finished != 1500 || r.Messages.ByType["market.job-submission"] < 1500 {
		t.Errorf("%d jobs are done, messages %v", r.Total.Finished, r.Messages.ByType)
	}
	if again := run("muscle", 90, 60); again.TraceHash != r.TraceHash || again.Total != r.Total {
		t.Error("the same seed gave another run")
	}
	// The processors are in use for 58 rates' worth of the load while jobs come.
	area := 0.0
	for i, rate := range []float64{1, 1.2, 1.4, 1.6} {
		area += r.Sites[i].SquashedArea.Float() * rate
	}
	if load := area / (20 + 16*1.2 + 12*1.4 + 10*1.6) / r.VirtualSeconds.Float(); math.Abs(load-0.9) > 0.12 {
		t.Errorf("the load is %.2f, want about 0.9", load)
	}
	if u := r.Total.Utilization.Float(); u < 0.7 || u > 0.9 { // the clusters are fast, so less than the load is enough of most
		t.Errorf("utilization %v", u)
	}
	light := run("muscle", 50, 60)
	if light.Total.QueueLength >= r.Total.QueueLength/4 || light.Total.MCP >= r.Total.MCP {
		t.Errorf("at half the load %v jobs wait and MCP is %v s, at 90 %% %v and %v s", light.Total.QueueLength, light.Total.MCP, r.Total.QueueLength, r.Total.MCP)
	}
	// "This can be explained as follows: DLL ignores the QoS demands": on the same sites
	// with the same jobs MUSCLE is ahead, and so is it of WRAND.
	for _, policy := range []string{"dll", "wrand"} {
		if other := run(policy, 90, 60); other.Total.MCP <= r.Total.MCP || other.Total.Finished != 1500 {
			t.Errorf("MCP of %s is %v s, of MUSCLE %v s", policy, other.Total.MCP, r.Total.MCP)
		}
	}
	// The less work a cluster has when more is shared out, the more jobs are shared out at
	// once.
	if late := run("muscle", 90, 0); late.Sites[0].Makespan == r.Sites[0].Makespan || late.TraceHash == r.TraceHash {
		t.Error("the threshold changes nothing")
	}
}

// TestBatchesRunSites: with batches, MUSCLE's figures are of executed jobs, and every
// cluster does within a batch what TITAN planned, or better.
func TestBatchesRunSites(t *testing.T) {
	r := packed(t, func(cfg *Config) { cfg.Total = 300 })
	if r.Messages.ByType["market.job-submission"] < 300 || r.Total.Finished < 300 {
		t.Errorf("%d jobs, messages %v", r.Total.Finished, r.Messages.ByType)
	}
	met := packed(t, func(cfg *Config) { cfg.Total, cfg.Window, cfg.Queue = 300, 60, 100 })
	empty := packed(t, func(cfg *Config) { cfg.Total, cfg.Queue = 300, 100 })
	if met.Total.MCP <= empty.Total.MCP {
		t.Errorf("batches that meet others have an MCP of %v s, alone %v s", met.Total.MCP, empty.Total.MCP)
	}
	cfg := Default()
	cfg.Collect, cfg.Total = CollectMakespan, 200
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, cfg); err == nil {
		t.Error("a run that is cancelled has no error")
	}
}
