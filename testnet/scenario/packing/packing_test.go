package packing

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/simtest"
)

func packed(t *testing.T, change func(*Config)) *measure.Result {
	t.Helper()
	cfg := Default()
	cfg.Total = 600
	if change != nil {
		change(&cfg)
	}
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPacking: the same seed gives the same run; all policies get the same jobs, and
// all of them are run; MUSCLE is ahead, and further with the most pressed jobs first.
func TestPacking(t *testing.T) {
	results := map[string]*measure.Result{}
	for _, policy := range []string{"muscle", "urgent", "dll", "wrand"} {
		set := func(cfg *Config) { cfg.Policy, cfg.Queue = policy, 60 }
		r, again := packed(t, set), packed(t, set)
		if r.TraceHash != again.TraceHash || r.Total != again.Total {
			t.Errorf("%s: the same seed gives %+v and %+v", policy, r.Total, again.Total)
		}
		sum := int64(0)
		for _, site := range r.Sites {
			sum += site.Submitted
		}
		if sum != r.Total.Finished || sum < 600 || r.Total.Missed == 0 {
			t.Errorf("%s: clusters have %d jobs, %+v", policy, sum, r.Total)
		}
		results[policy] = r
	}
	for policy, r := range results {
		if r.Total.Submitted != results["dll"].Total.Submitted {
			t.Errorf("%s has %d jobs, DLL %d", policy, r.Total.Submitted, results["dll"].Total.Submitted)
		}
	}
	muscle := results["muscle"].Total.MCP
	if urgent := results["urgent"].Total.MCP; urgent >= muscle {
		t.Errorf("MCP %v with the most pressed jobs first, %v as published", urgent, muscle)
	}
	for _, policy := range []string{"dll", "wrand"} {
		if mcp := results[policy].Total.MCP; mcp <= muscle {
			t.Errorf("MCP of %s is %v, MUSCLE's %v", policy, mcp, muscle)
		}
	}
	if other := packed(t, func(cfg *Config) { cfg.Seed = 2 }); other.TraceHash == packed(t, nil).TraceHash {
		t.Error("another seed gives the same run")
	}
}

// TestPackingFlags: each says something.
func TestPackingFlags(t *testing.T) {
	simtest.Alone(t)
	base := packed(t, nil)
	for name, change := range map[string]func(*Config){
		"deadline-range": func(cfg *Config) { cfg.DeadlineRange = [2]float64{0, 1} },
		"weights":        func(cfg *Config) { cfg.Weights = "12,3,1;8,3,1;4,3,1;1,3,1" },
		"clusters":       func(cfg *Config) { cfg.Clusters = 3 },
		"normal":         func(cfg *Config) { cfg.Sizes = "normal" },
		"log":            func(cfg *Config) { cfg.Sizes = "log" },
		"deadlines":      func(cfg *Config) { cfg.Deadlines = "arrival" },
		"window":         func(cfg *Config) { cfg.Window = 10 },
	} {
		if r := packed(t, change); r.Total.MCP == base.Total.MCP {
			t.Errorf("%s changes nothing", name)
		}
	}
	random := packed(t, func(cfg *Config) { cfg.Policy = "dll" })
	if r := packed(t, func(cfg *Config) { cfg.Policy, cfg.Settle = "dll", 30 }); r.Total.MCP == random.Total.MCP {
		t.Error("settle changes nothing")
	}
	if r := packed(t, func(cfg *Config) { cfg.Policy, cfg.Start = "dll", "arrival" }); r.Total.MCP >= random.Total.MCP {
		t.Errorf("MCP of DLL is %v from the order of arrival, %v from random schedules", r.Total.MCP, random.Total.MCP)
	}
	if r := packed(t, func(cfg *Config) { cfg.Clusters = 10 }); len(r.Sites) != 10 || r.Sites[9].Processors != 56 {
		t.Errorf("ten clusters are %+v", r.Sites)
	}
}

// TestPackingJobs: the distributions are those of section 5.
func TestPackingJobs(t *testing.T) {
	for _, tt := range []struct {
		sizes string
		below func(n int) float64 // share of jobs of at most n processors
	}{
		{"uniform", func(n int) float64 { return float64(n) / 10 }},
		{"log", func(n int) float64 { return math.Log(float64(n)+1) / math.Log(11) }},
		{"normal", func(n int) float64 {
			at := func(x float64) float64 { return (1 + math.Erf((x-5.5)/1.5/math.Sqrt2)) / 2 }
			return (at(float64(n)+0.5) - at(0.5)) / (at(10.5) - at(0.5))
		}},
	} {
		cfg := Default()
		cfg.Sizes, cfg.DeadlineRange = tt.sizes, [2]float64{1, 3}
		g := newPackingJobs(&cfg)
		const n = 20_000
		counts, run, ratio := [12]int{}, 0.0, 0.0
		for range n {
			j := g.job(0)
			counts[j.Processors]++
			first := j.Spans[0].Seconds()
			if first < 5 || first > 100 || math.Abs(j.Spans[3].Seconds()*1.6-first) > 1e-5 {
				t.Fatalf("run times %v", j.Spans)
			}
			run += first / n
			r := j.Deadline.Seconds()/first - 1
			if r < 1-1e-6 || r > 3+1e-6 {
				t.Fatalf("a deadline of %v for a run time of %v s", j.Deadline, first)
			}
			ratio += r / n
		}
		if want := math.Log(20) * 500 / 95; math.Abs(run-want) > 0.4 {
			t.Errorf("mean run time %v s, want %v", run, want)
		}
		if math.Abs(ratio-2) > 0.02 {
			t.Errorf("mean deadline ratio %v, want 2", ratio)
		}
		sum := 0.0
		for size := 1; size <= 10; size++ {
			sum += float64(counts[size]) / n
			if want := tt.below(size); math.Abs(sum-want) > 0.015 {
				t.Errorf("%s: %.3f of the jobs have at most %d processors, want %.3f", tt.sizes, sum, size, want)
			}
		}
	}
}

func TestPackingErrors(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"policy":         func(cfg *Config) { cfg.Policy = "best" },
		"queue":          func(cfg *Config) { cfg.Queue = 0 },
		"deadline-range": func(cfg *Config) { cfg.DeadlineRange = [2]float64{3, 1} },
		"weights":        func(cfg *Config) { cfg.Weights = "0,0,0" },
		"clusters":       func(cfg *Config) { cfg.Clusters = 11 },
		"sizes":          func(cfg *Config) { cfg.Sizes = "even" },
		"total":          func(cfg *Config) { cfg.Total = 0 },
		"start":          func(cfg *Config) { cfg.Start = "best" },
		"deadlines":      func(cfg *Config) { cfg.Deadlines = "never" },
		"settle":         func(cfg *Config) { cfg.Settle = 101 },
		"window":         func(cfg *Config) { cfg.Window = -1 },
		"collect":        func(cfg *Config) { cfg.Collect = "never" },
		"load":           func(cfg *Config) { cfg.Load = 0 },
		"threshold":      func(cfg *Config) { cfg.Threshold = -1 },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := Run(context.Background(), cfg); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), "--"+flag) {
			t.Errorf("error %v, want one about --%s", err, flag)
		}
	}
	for _, weights := range []string{"4,3,1;4,3,1", "4,3", "x"} {
		cfg := Default()
		cfg.Weights = weights
		if _, err := Run(context.Background(), cfg); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), "--weights") {
			t.Errorf("%s: error %v", weights, err)
		}
	}
	nan := Default()
	nan.DeadlineRange[1] = math.NaN()
	if _, err := Run(context.Background(), nan); !errors.Is(err, scenario.ErrConfig) {
		t.Errorf("NaN: error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestPackingOutput(t *testing.T) {
	dir := t.TempDir()
	r := packed(t, func(cfg *Config) { cfg.Out = dir })
	for format, want := range map[string]string{"table": "MCP " + r.Total.MCP.String(), "json": `"mcp": ` + r.Total.MCP.String(), "csv": "C4,10,"} {
		var b strings.Builder
		if err := r.Write(&b, format); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s has no %q, error %v:\n%s", format, want, err, b.String())
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "result.json")); err != nil || info.Size() == 0 {
		t.Errorf("result.json: %v", err)
	}
}
