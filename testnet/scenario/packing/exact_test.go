package packing

import (
	"math"
	"testing"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// TestOptimum: known optima, and no policy is ever better.
func TestOptimum(t *testing.T) {
	w := titan.Weights{OverDeadline: 4, Makespan: 3, Idle: 1}
	s := func(n int) grid.Time { return grid.Time(n) * grid.Second }
	two := func(sizes, spans, deadlines []int, clusters ...int) *muscle.Batch {
		b := &muscle.Batch{}
		for _, m := range clusters {
			b.Clusters = append(b.Clusters, muscle.Cluster{Processors: m, Weights: w})
		}
		for i := range sizes {
			j := muscle.Job{Processors: sizes[i], Deadline: s(deadlines[i])}
			for range clusters {
				j.Spans = append(j.Spans, s(spans[i]))
			}
			b.Jobs = append(b.Jobs, j)
		}
		return b
	}
	for _, tt := range []struct {
		name string
		b    *muscle.Batch
		want float64
	}{
		// In a row: makespan 5; the urgent one first, as else it is 3 late.
		{"order", two([]int{2, 2}, []int{3, 2}, []int{9, 2}, 2), 3 * 5 / 8.0},
		// Side by side: makespan 3 and one processor idle for 1.
		{"side by side", two([]int{1, 1}, []int{3, 2}, []int{9, 9}, 2), (3*3 + 1) / 8.0},
		// One each: CP 3·3/8 and 3·2/8, one job each.
		{"two clusters", two([]int{2, 2}, []int{3, 2}, []int{9, 9}, 2, 2), (9.0/8 + 6.0/8) / 2},
	} {
		if got, err := Optimum(tt.b); err != nil || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	cfg := Default()
	cfg.Queue, cfg.Total = 6, 1
	gap := 0.0
	for seed := range uint64(12) {
		cfg.Seed = seed
		cfg.Clusters = 1 + int(seed%2)
		weights, err := cfg.check()
		if err != nil {
			t.Fatal(err)
		}
		b := cfg.empty(weights)
		if newPackingJobs(&cfg).fill(&b); len(b.Jobs) > 7 {
			continue
		}
		best, err := Optimum(&b)
		if err != nil {
			t.Fatal(err)
		}
		for _, cfg.Policy = range []string{"muscle", "urgent", "dll", "wrand"} {
			mcp, err := One(cfg, &b)
			if err != nil {
				t.Fatal(err)
			}
			if mcp < best-1e-6 {
				t.Errorf("seed %d: MCP of %s is %v, less than the optimum %v", seed, cfg.Policy, mcp, best)
			}
			gap = max(gap, mcp-best)
		}
	}
	if gap == 0 {
		t.Error("all policies are optimal: the optimum is not one")
	}
	for _, b := range []*muscle.Batch{{}, two([]int{3}, []int{1}, []int{1}, 2), {Clusters: []muscle.Cluster{{Processors: 1, Weights: w}}, Jobs: make([]muscle.Job, ExactJobsMax+1)}} {
		if got, err := Optimum(b); err == nil {
			t.Errorf("%+v has the optimum %v", b, got)
		}
	}
}
