package coallocation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// Config is the scenario "coallocation": one scheduler (KOALA) that places
// jobs of one application on the clusters of DAS-3 (On the benefit of processor
// co-allocation, 2008, sections VI-C and VII-B).
type Config struct {
	scenario.Common

	// Policy is "wf", "fcm", "ca", "cf" or "adaptive". By wf jobs are not split.
	Policy string `json:"policy"`

	// Application is "prime", "poisson", "wave", or "ccr=X": a synthetic one whose
	// communication takes X times as long as its computation within one cluster.
	Application string `json:"application"`

	// Utilization is the net utilization, in percent: the load if every job ran within
	// one cluster.
	Utilization float64 `json:"utilization"`

	// Background is how much of the clusters their own users keep busy, in percent. KOALA
	// then looks every Poll at what is idle; what it finds may be gone when it claims it.
	Background float64   `json:"background"`
	Poll       grid.Time `json:"poll"` // µs

	Without     string  `json:"without"`     // the cluster to leave out: "delft", "leiden" or "none"
	MaxClusters int     `json:"maxClusters"` // that one job may combine; 0: no limit
	Sizes       []int64 `json:"sizes"`       // of jobs, in nodes, drawn evenly

	// Components, if not empty, are those of every job, as coalloc.ParseComponents reads
	// them, and Sizes do not count.
	Components string `json:"components,omitempty"`

	RunTime grid.Time `json:"runTime"` // µs of a job within one cluster; 0: that of the application
	Speeds  bool      `json:"speeds"`  // the slowest cluster of a job decides how long it computes; else all are as fast

	// Group confines ca to latency groups, in which no cluster is further than this
	// from the widest, in µs; 0: the published policy, which knows no groups.
	Group grid.Time `json:"latencyGroup"`

	Hours    int       `json:"hours"`    // of submissions
	Startup  grid.Time `json:"startup"`  // µs from a job's placing to its start, during which it has its nodes
	Interval grid.Time `json:"interval"` // µs between scans of the placement queue
	Patience grid.Time `json:"patience"` // µs of waiting after which clusters are set aside for a job; 0: never, as in KOALA

	// InputBytes is the size of a file that every job reads and that one cluster, drawn
	// evenly, holds. Bringing it to the others adds to the startup.
	InputBytes int64 `json:"inputBytes"`

	ranks bool // every task by itself, on its pilot: see runner

	// Ended is told of every job. It may be nil.
	Ended func(j Job) `json:"-"`
}

// Job is what came of one job.
type Job struct {
	Processors                 int64
	Submit, Placed, Start, End grid.Time // Start is when it computes: a startup after Placed
	Clusters                   int       // that it ran on
	Where                      []string  // their names
	Tries                      int32     // placements tried
	Failures                   int32     // of them, whose claim failed
}

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Policy: "adaptive", Application: "poisson", Utilization: 60, Without: "delft",
		Sizes: []int64{8, 16, 32}, Poll: 30 * grid.Second, Hours: 24, Startup: 10 * grid.Second, Interval: 10 * grid.Second,
	}
}

// application is how long a job runs within one cluster, and its CCR in thousandths.
type application struct {
	runTime grid.Time
	ccr     int64
}

// applications are those of section VI-A. The paper prints run times of Wave only;
// Prime and Poisson are given that of the synthetic application. Poisson "matches
// CCR-0.25", Wave CCR-4, and Prime "is not affected … at all".
var applications = map[string]application{
	"prime":   {180 * grid.Second, 0},
	"poisson": {180 * grid.Second, 250},
	"wave":    {200 * grid.Second, 4000},
}

// syntheticRunTime: "We set the total execution time of the application to 180 s. in a
// single cluster irrespective of its CCR" (section VI-C).
const syntheticRunTime = 180 * grid.Second

func parseApplication(s string) (application, error) {
	if a, ok := applications[s]; ok {
		return a, nil
	}
	text, ok := strings.CutPrefix(s, "ccr=")
	x, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(x >= 0 && x <= coalloc.CCRMax/1000) {
		return application{}, scenario.ConfigError("application", "%q: want prime, poisson, wave or ccr=X with X from 0 to %d", s, coalloc.CCRMax/1000)
	}
	return application{syntheticRunTime, int64(x*1000 + 0.5)}, nil
}

// coallocationReport is the configuration as a result shows it.
type coallocationReport struct {
	Config
	Seconds measure.Decimal `json:"runTimeSeconds"` // of a job within one cluster
	CCR     measure.Decimal `json:"ccr"`
	Tries   measure.Decimal `json:"triesPerJob"`    // placements tried
	Failed  measure.Decimal `json:"failuresPerJob"` // of them, whose claim failed
	Busy    measure.Decimal `json:"backgroundBusy"` // percent of the nodes, on average
	Most    measure.Decimal `json:"backgroundMost"` // and at most
	Waiting measure.Decimal `json:"waiting"`        // at the end of submissions, in seconds of work for all nodes
}

// Busy returns how much of the nodes local users kept busy in a run, in percent.
func Busy(r *measure.Result) float64 {
	if report, ok := r.Config.(*coallocationReport); ok {
		return report.Busy.Float()
	}
	return 0
}

func (cfg *Config) validate() error {
	switch {
	case !(cfg.Background == 0 || cfg.Background >= 1 && cfg.Background <= 60):
		return scenario.ConfigError("background", "%v: want 0, or 1 to 60, in percent", cfg.Background)
	case cfg.Poll < grid.Second || cfg.Poll > grid.Hour:
		return scenario.ConfigError("poll", "%v: want 1s to 1h", cfg.Poll)
	case cfg.RunTime < 0 || cfg.RunTime > grid.Day:
		return scenario.ConfigError("run-time", "%v: want 0 to 24h", cfg.RunTime)
	case !(cfg.Utilization > 0 && cfg.Utilization <= 100):
		return scenario.ConfigError("utilization", "%v: want more than 0, at most 100, in percent", cfg.Utilization)
	case cfg.Without != "delft" && cfg.Without != "leiden" && cfg.Without != "none":
		return scenario.ConfigError("without", "%q: want delft, leiden or none (between Delft and Leiden nothing was measured, and a message counts as 10 s)", cfg.Without)
	case cfg.MaxClusters < 0:
		return scenario.ConfigError("max-clusters", "%d: want 1 or more, 0 for no limit", cfg.MaxClusters)
	case len(cfg.Sizes) == 0:
		return scenario.ConfigError("sizes", "want at least one")
	case cfg.Hours < 1 || cfg.Hours > 10_000:
		return scenario.ConfigError("hours", "%d: want 1 to 10000", cfg.Hours)
	case cfg.Startup < 0 || cfg.Startup > grid.Hour:
		return scenario.ConfigError("startup", "%v: want 0 to 1h", cfg.Startup)
	case cfg.Interval < grid.Second || cfg.Interval > grid.Hour:
		return scenario.ConfigError("interval", "%v: want 1s to 1h", cfg.Interval)
	case cfg.Patience < 0:
		return scenario.ConfigError("patience", "%v: want 0 or more", cfg.Patience)
	case cfg.Group < 0 || cfg.Group > coalloc.LatencyMax:
		return scenario.ConfigError("latency-group", "%v: want 0 to %v", cfg.Group, coalloc.LatencyMax)
	case cfg.InputBytes < 0 || cfg.InputBytes > 1<<50:
		return scenario.ConfigError("input-size", "%d: want 0 to 1 PiB", cfg.InputBytes)
	}
	return nil
}

// Run runs the scenario. Cancelling ctx ends it with ctx's error. An error
// wrapping ErrConfig is about cfg.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	begun := time.Now()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n, err := testnet.New(testnet.Config{Seed: cfg.Seed, Inputs: scenario.Inputs()})
	if err != nil {
		return nil, err
	}
	k, err := newKoala(&cfg, n)
	if err != nil {
		return nil, err
	}
	source := &scenario.Feed{
		Source: k.source(), Homes: []workload.Home{{ID: koalaID, Rating: grid.Rating{Speed: 1, Bandwidth: 1}}}, Adjust: k.dress,
	}
	n.Feed(source)
	p := scenario.NewProgress(cfg.Progress, "coallocation", 0, func() int64 { return source.Read })
	n.Pulse(p.Pulse)
	var rows *measure.JobRows
	if cfg.Out != "" && cfg.Jobs {
		if rows, err = measure.CreateRows(cfg.Out); err != nil {
			return nil, err
		}
		n.Observe(testnet.Observer{Event: func(_ grid.Time, _ int, e *grid.Event) {
			if e.Kind == grid.JobFinished {
				err = errors.Join(err, rows.Write(e, "done"))
			}
		}})
	}
	runErr := n.Run(ctx, grid.Never, func() bool { return k.failed != nil || k.open == 0 && n.Drained() })
	p.Stop()
	if rows != nil {
		err = errors.Join(err, rows.Close())
	}
	if err = errors.Join(err, runErr, k.failed); err == nil && k.open > 0 {
		err = fmt.Errorf("at %v %d jobs have not ended, and nothing more happens", n.Now(), k.open)
	}
	if err != nil {
		return nil, fmt.Errorf("coallocation, seed %d: %w", cfg.Seed, err)
	}
	result := k.result(begun)
	if cfg.Out != "" {
		err = result.Save(cfg.Out)
	}
	return result, err
}
