package delegation

import (
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// Config is the scenario "delegation": the dual grid of Delegated
// MatchMaking (2007) under one of the six compared architectures, for a day of
// generated jobs. The run ends with the arrival of the last job, as in the paper.
type Config struct {
	scenario.Common

	// Architecture is "dmm", "condor", "fcondor", "cern", "central" or "sep-c".
	Architecture string `json:"architecture"`

	// LoadDAS and LoadG5K are the loads of the two grids in percent: processor-time of
	// the jobs over the processors'. 1 to 1000.
	LoadDAS float64 `json:"loadDas"`
	LoadG5K float64 `json:"loadG5k"`

	Days float64 `json:"days"` // for how long jobs are submitted; more than 0, at most DaysMax
	Set  uint64  `json:"set"`  // which workload: sets are independent

	Sizes string `json:"sizes"` // how wide jobs are; see Sizes

	Cycle     int64   `json:"cycle"`     // seconds between two rounds of matchmaking
	Phase     string  `json:"phase"`     // of the site managers' cycles; see Phases
	Flocking  string  `json:"flocking"`  // fcondor: where a job manager goes next; see Flockings
	Threshold float64 `json:"threshold"` // dmm: load of a site in percent beyond which requests are delegated; 1 to 100000
	Bind      int64   `json:"bind"`      // dmm: seconds until processors that were brought can be used
	Ordering  string  `json:"ordering"`  // dmm: whom to ask first; see lease.Ordering
	Selection string  `json:"selection"` // dmm: which request to delegate first; see lease.Selection
	TTL       int     `json:"ttl"`       // dmm: how often a request may be delegated
	Users     int     `json:"users"`     // of each cluster; under fcondor each has a job manager. 1 to 60
	Rounds    int     `json:"rounds"`    // dmm: rounds of delegation after which a request keeps its place; 0: no end

	// Drain lets the run go on until every job has ended, or for drainMax.
	Drain bool `json:"drain,omitempty"`

	// Sample is the number of seconds between two samples of what has happened; 0: none.
	Sample int64 `json:"sample,omitempty"`

	// Traces and Clusters are logs in the place of the generated jobs; see logs.
	Traces   []string `json:"traces,omitempty"`
	Clusters []string `json:"clusters,omitempty"`
	From     string   `json:"from,omitempty"` // day of the logs at which the run begins, as 2005-11-01; empty: their first
	Strict   bool     `json:"strict,omitempty"`

	// Workload replaces the generated jobs; in order of submission, by cluster.
	Workload []workload.Job `json:"-"`
}

// DaysMax bounds Config.Days.
const DaysMax = 400

// drainMax bounds the time after the last submission for which a run with
// Config.Drain goes on: under cern and central a job may wait for long until
// the only cluster that is wide enough is empty.
const drainMax = 60 * grid.Day

// Architectures are the values of Config.Architecture.
var Architectures = []string{"dmm", "condor", "fcondor", "cern", "central", "sep-c"}

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Architecture: "dmm", LoadDAS: 70, LoadG5K: 70, Days: 1, Set: 1,
		Sizes: SizesUniform, Cycle: 300, Phase: PhaseStep, Flocking: FlockingOrder, Threshold: 100, Ordering: "neighbours", Selection: "fcfs", TTL: 6, Users: 1,
	}
}

func (cfg *Config) validate() (match lease.MatchConfig, err error) {
	percent := func(v, most float64) bool { return !(v >= 1 && v <= most) }
	switch {
	case !slices.Contains(Architectures, cfg.Architecture):
		return match, scenario.ConfigError("architecture", "%q: want %s", cfg.Architecture, strings.Join(Architectures, ", "))
	case percent(cfg.LoadDAS, 1000):
		return match, scenario.ConfigError("load-das", "%v: want 1 to 1000 percent", cfg.LoadDAS)
	case percent(cfg.LoadG5K, 1000):
		return match, scenario.ConfigError("load-g5k", "%v: want 1 to 1000 percent", cfg.LoadG5K)
	case !(cfg.Days > 0 && cfg.Days <= DaysMax):
		return match, scenario.ConfigError("days", "%v: want more than 0 and at most %d", cfg.Days, DaysMax)
	case !slices.Contains(Sizes, cfg.Sizes):
		return match, scenario.ConfigError("sizes", "%q: want %s", cfg.Sizes, strings.Join(Sizes, " or "))
	case !slices.Contains(Phases, cfg.Phase):
		return match, scenario.ConfigError("phase", "%q: want %s", cfg.Phase, strings.Join(Phases, " or "))
	case !slices.Contains(Flockings, cfg.Flocking):
		return match, scenario.ConfigError("flocking", "%q: want %s", cfg.Flocking, strings.Join(Flockings, " or "))
	case cfg.Cycle < 1 || cfg.Cycle > 86400:
		return match, scenario.ConfigError("cycle", "%d: want 1 to 86400 seconds", cfg.Cycle)
	case percent(cfg.Threshold, 100_000):
		return match, scenario.ConfigError("threshold", "%v: want 1 to 100000 percent", cfg.Threshold)
	case cfg.Bind < 0 || cfg.Bind > 86400:
		return match, scenario.ConfigError("bind", "%d: want 0 to 86400 seconds", cfg.Bind)
	case cfg.TTL < 1 || cfg.TTL > lease.TTLMax:
		return match, scenario.ConfigError("ttl", "%d: want 1 to %d", cfg.TTL, lease.TTLMax)
	case cfg.Users < 1 || cfg.Users > usersMax:
		return match, scenario.ConfigError("users", "%d: want 1 to %d", cfg.Users, usersMax)
	case cfg.Sample < 0:
		return match, scenario.ConfigError("sample", "%d: want at least 0 seconds", cfg.Sample)
	case cfg.Rounds < 0 || cfg.Rounds > 1_000_000:
		return match, scenario.ConfigError("rounds", "%d: want 0 to 1000000", cfg.Rounds)
	}
	match = lease.MatchConfig{
		Lend: true, Threshold: int64(cfg.Threshold*10 + 0.5), MatchCycle: grid.Time(cfg.Cycle) * grid.Second,
		TTL: int32(cfg.TTL), Rounds: int32(cfg.Rounds), Slack: grid.Minute + grid.Time(cfg.Bind)*grid.Second,
	}
	if match.Ordering, err = lease.ParseOrdering(cfg.Ordering); err != nil {
		return match, scenario.ConfigError("ordering", "%v", err)
	}
	if match.Selection, err = lease.ParseSelection(cfg.Selection); err != nil {
		return match, scenario.ConfigError("selection", "%v", err)
	}
	return match, nil
}
