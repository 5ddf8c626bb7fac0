package packing

import (
	"fmt"
	"math"
	"strings"

	"gridnode/coalloc/muscle"
	"gridnode/internal/lrms/titan"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// Config is the scenario "packing": batches of parallel jobs with soft
// deadlines are shared out over clusters, each of which plans its share with TITAN
// (He et al. 2004, section 5).
type Config struct {
	scenario.Common

	// Policy shares a batch out: "muscle", "urgent" (muscle with the jobs that are most
	// pressed first), "dll" or "wrand".
	Policy string `json:"policy"`

	// Queue is the mean number of jobs in a batch, 1 to QueueMax.
	Queue int `json:"queue"`

	// DeadlineRange is MIN_DR and MAX_DR of equation 5, at least 0.
	DeadlineRange [2]float64 `json:"deadlineRange"`

	// Weights are O,M,I of over-deadline, makespan and idle time: of all clusters, or of
	// each of them, separated by semicolons.
	Weights string `json:"weights"`

	// Clusters is how many of the pool of figure 7 there are, the smallest first, 1 to
	// 10; 0 means the four of table 3, which differ in speed.
	Clusters int `json:"clusters"`

	// Sizes is how job sizes are distributed: "uniform", "normal" or "log", from 1 to
	// 10 on the clusters of table 3, else to the size of the widest cluster.
	Sizes string `json:"sizes"`

	// Total is how many jobs there are in all batches, about.
	Total int `json:"total"`

	// Start is what TITAN begins with where the policy gives no seed schedule:
	// "random" schedules, or one in the order of "arrival" besides.
	Start string `json:"start"`

	// Deadlines count from when a "batch" is shared out, or from each job's "arrival"
	// before that, which uses up slack.
	Deadlines string `json:"deadlines"`

	// Window is how many seconds lie between two batches. What is left of a batch when
	// the next one is shared out occupies its processors. 0: each meets empty clusters.
	Window float64 `json:"window"`

	// Collect says when jobs are shared out: CollectBatch or CollectMakespan.
	Collect string `json:"collect"`

	// Load is what the jobs take of the clusters' processor time if they come one by one
	// (CollectMakespan), in percent.
	Load float64 `json:"load"`

	// Threshold, in seconds, is muscle.HeadConfig.Threshold.
	Threshold float64 `json:"threshold"`

	// Settle is titan.Config.Settle of dll and wrand in batches, in percent: 0 is the
	// paper's. A head plans as it does live.
	Settle int `json:"settle"`
}

// Values of Config.Collect.
const (
	CollectBatch    = "batch"    // in batches of Queue jobs, which come at once
	CollectMakespan = "makespan" // as they come, until a cluster runs short of work (algorithm 4)
)

// headed reports whether the run is one of a head and its members. The policies that
// MUSCLE is compared with are when they choose a cluster for each job as it comes.
func (cfg *Config) headed() bool {
	return cfg.Collect == CollectMakespan || cfg.Policy != muscle.PolicyDLL.String() && cfg.Policy != muscle.PolicyWRAND.String()
}

// Bounds of Config.
const (
	QueueMax        = 1000
	packingTotalMax = 10_000_000
	deadlineMax     = 1000
	windowMax       = 1_000_000
	loadMax         = 200
)

// Default is what the command line starts from: figure 4 with 40 jobs.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Policy: "muscle", Queue: 40, DeadlineRange: [2]float64{0, 5}, Weights: "4,3,1",
		Sizes: "uniform", Total: 20_000, Start: "random", Deadlines: "batch",
		Collect: CollectBatch, Load: 80, Threshold: muscle.ThresholdDefault.Seconds(),
	}
}

// packingCluster is a cluster as the paper describes it.
type packingCluster struct {
	processors int
	rate       int64 // service rate, in units of 1/rateUnit
}

const rateUnit = 10

// table3 is the multicluster of figures 4 to 6.
var table3 = []packingCluster{{20, 10}, {16, 12}, {12, 14}, {10, 16}}

// table3Widest is MAX_S there.
const table3Widest = 10

// poolMax is how many clusters figure 7 has, of 20, 24, … 56 processors.
const poolMax = 10

// clusters returns those of cfg and the widest job.
func (cfg *Config) clusters() (clusters []packingCluster, widest int) {
	if cfg.Clusters == 0 {
		return table3, table3Widest
	}
	for i := range cfg.Clusters {
		widest = 20 + 4*i
		clusters = append(clusters, packingCluster{widest, 10})
	}
	return clusters, widest
}

// check returns the weights by cluster, or what is wrong with cfg.
func (cfg *Config) check() ([]titan.Weights, error) {
	oneOf := func(flag, value string, all ...string) error {
		for _, v := range all {
			if v == value {
				return nil
			}
		}
		return scenario.ConfigError(flag, "%q: want %s", value, strings.Join(all, ", "))
	}
	for _, err := range []error{
		oneOf("sizes", cfg.Sizes, "uniform", "normal", "log"),
		oneOf("start", cfg.Start, "random", "arrival"),
		oneOf("deadlines", cfg.Deadlines, "batch", "arrival"),
		oneOf("collect", cfg.Collect, CollectBatch, CollectMakespan),
	} {
		if err != nil {
			return nil, err
		}
	}
	if _, err := muscle.ParsePolicy(cfg.Policy); err != nil {
		return nil, scenario.ConfigError("policy", "%v", err)
	}
	lo, hi := cfg.DeadlineRange[0], cfg.DeadlineRange[1]
	switch {
	case cfg.Queue < 1 || cfg.Queue > QueueMax:
		return nil, scenario.ConfigError("queue", "%d: want 1 to %d jobs", cfg.Queue, QueueMax)
	case cfg.Total < 1 || cfg.Total > packingTotalMax:
		return nil, scenario.ConfigError("total", "%d: want 1 to %d jobs", cfg.Total, packingTotalMax)
	case cfg.Clusters < 0 || cfg.Clusters > poolMax:
		return nil, scenario.ConfigError("clusters", "%d: want 1 to %d, or 0 for the four of table 3", cfg.Clusters, poolMax)
	case !(lo >= 0 && lo <= hi && hi <= deadlineMax): // and not NaN
		return nil, scenario.ConfigError("deadline-range", "%v to %v: want two numbers from 0 to %d, the lower first", lo, hi, deadlineMax)
	case !(cfg.Window >= 0 && cfg.Window <= windowMax):
		return nil, scenario.ConfigError("window", "%v: want 0 to %d seconds", cfg.Window, windowMax)
	case cfg.Collect == CollectMakespan && cfg.Window > 0:
		return nil, scenario.ConfigError("window", "jobs are collected until a cluster runs short of work, not for a time: leave out --window or --collect makespan")
	case !(cfg.Load > 0 && cfg.Load <= loadMax):
		return nil, scenario.ConfigError("load", "%v: want more than 0 and at most %d percent", cfg.Load, loadMax)
	case !(cfg.Threshold >= 0 && cfg.Threshold <= muscle.ThresholdMax.Seconds()):
		return nil, scenario.ConfigError("threshold", "%v: want 0 to %v seconds", cfg.Threshold, muscle.ThresholdMax.Seconds())
	case cfg.Settle < 0 || cfg.Settle > 100:
		return nil, scenario.ConfigError("settle", "%d: want 0 to 100 %%", cfg.Settle)
	}
	clusters, _ := cfg.clusters()
	parts := strings.Split(cfg.Weights, ";")
	if len(parts) != 1 && len(parts) != len(clusters) {
		return nil, scenario.ConfigError("weights", "%d sets for %d clusters: want one each, or one for all", len(parts), len(clusters))
	}
	weights := make([]titan.Weights, len(clusters))
	for i := range weights {
		w, err := titan.ParseWeights(parts[min(i, len(parts)-1)])
		if err != nil {
			return nil, scenario.ConfigError("weights", "%v", err)
		}
		weights[i] = w
	}
	return weights, nil
}

// described names the clusters for the result.
func (cfg *Config) described() (sites []measure.Site) {
	clusters, _ := cfg.clusters()
	for i, c := range clusters {
		sites = append(sites, measure.Site{Name: fmt.Sprintf("C%d", i+1), Processors: int64(c.processors)})
	}
	return sites
}

// hundredths rounds a figure for a result.
func hundredths(v float64) measure.Decimal { return measure.Decimal(math.Round(100 * v)) }

// empty returns a batch of the clusters without jobs.
func (cfg *Config) empty(weights []titan.Weights) muscle.Batch {
	var b muscle.Batch
	clusters, _ := cfg.clusters()
	for i, c := range clusters {
		b.Clusters = append(b.Clusters, muscle.Cluster{Processors: c.processors, Weights: weights[i]})
	}
	return b
}
