package federation

import (
	"context"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// Config is the scenario "federation": the sites of table 1 of
// Grid-Federation over two days, by themselves, helping each other, or trading
// (its experiments 1, 2 and 3 to 5).
type Config struct {
	scenario.Common

	// Mode is "independent" (every job runs at home within its deadline or is
	// rejected), "federated" (home first, then the others by falling speed) or
	// "economy" (the cheapest site within the deadline, or the fastest within the
	// budget).
	Mode string `json:"mode"`

	// Placement is how a home looks for a site: "paper" or "coordinated".
	Placement string `json:"placement"`

	// Pricing is how sites' prices come about: "fixed" as in table 1, or "demand", from
	// half to twice that, by utilisation and queue.
	Pricing string `json:"pricing"`

	// Cost is what a price is multiplied with: "paper" (time, eq. 3) or
	// "processor-time". Budgets follow from it, too.
	Cost string `json:"cost"`

	// OFT is the share of users, in percent, who want the fastest site (optimise for
	// time); the others want the cheapest (optimise for cost). Economy only.
	OFT int `json:"oft"`

	// Sites is how many: table 1's eight, fewer, or table 1 again and again.
	Sites int `json:"sites"`

	// Traces are logs, matched to sites by name, or directories of them. Sites
	// without a log get jobs from the Lublin-Feitelson model; without Traces all do.
	Traces []string `json:"traces"`

	// Strict ends at the first malformed line of a log; else lines are skipped or repaired,
	// and counted.
	Strict bool `json:"strict"`

	// Days are the jobs of the sites of table 1, in its order, instead of Traces; the
	// first two days count.
	Days [][]workload.Job `json:"-"`

	// Queue is the discipline of the sites' queues: "easy", "fcfs" or "titan".
	Queue string `json:"queue"`

	// SkipInfeasible makes the placement "paper" pass over sites that could not do a
	// job in time even if they were idle, without asking them.
	SkipInfeasible bool `json:"skipInfeasible,omitempty"`

	// Rejected is told of every job that no site would have, and when its home could
	// have finished it at the earliest, as its schedule is at that moment. It must not
	// keep the event. nil: nobody wants to know, which saves the verdicts.
	Rejected func(home int, e *grid.Event, finish grid.Time) `json:"-"`

	// DHT is how the directory finds the holders of a key: "model" (Kademlia, by
	// messages) or "oracle" (it knows).
	DHT string `json:"dht"`

	// LatencyMin and LatencyMax bound how long a message takes, in microseconds.
	LatencyMin grid.Time `json:"latencyMin"`
	LatencyMax grid.Time `json:"latencyMax"`
}

// SitesMax bounds Config.Sites.
const SitesMax = 100_000

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Mode: "economy", Placement: "coordinated", Pricing: "fixed", Cost: "paper", OFT: 50, Sites: 8, Queue: "easy", DHT: "model",
		LatencyMin: 5 * grid.Millisecond, LatencyMax: 50 * grid.Millisecond,
	}
}

// federationReport is the configuration as a result shows it.
type federationReport struct {
	Config
	Inputs []scenario.Input `json:"inputs"`
}

func (cfg Config) report(inputs []scenario.Input) *federationReport {
	cfg.Traces = slices.Concat([]string{}, cfg.Traces) // in JSON, none is [] and not null
	return &federationReport{cfg, inputs}
}

// Begin is when the two days of the scenario begin, and Span how
// long they are.
const (
	Begin = Warmup
	Span  = 2 * grid.Day
)

// Run runs the scenario. Cancelling ctx ends it with ctx's error. An
// error wrapping ErrConfig is about cfg, a workload.LineError about a log.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	placement, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	w, err := cfg.workload()
	if err != nil {
		return nil, err
	}
	w.Warn(cfg.Progress)
	return cfg.trade(ctx, placement, w)
}

// trade runs the jobs of w.
func (cfg *Config) trade(ctx context.Context, placement market.Placement, w *Table1) (*measure.Result, error) {
	discipline, err := lrms.ParseDiscipline(cfg.Queue)
	if err != nil {
		return nil, scenario.ConfigError("queue", "%v", err)
	}
	pricing, err := market.ParsePricing(cfg.Pricing)
	if err != nil {
		return nil, scenario.ConfigError("pricing", "%v", err)
	}
	cost, err := grid.ParseCostModel(cfg.Cost)
	if err != nil {
		return nil, scenario.ConfigError("cost", "%v", err)
	}
	f := Builder{
		Config: testnet.Config{
			Seed: cfg.Seed, Inputs: scenario.Inputs(),
			Link: testnet.Link{LatencyMin: cfg.LatencyMin, LatencyMax: cfg.LatencyMax},
		},
		Placement: placement, Foreign: cfg.Mode != "independent", Sites: w.Sites,
		Oracle: cfg.DHT == "oracle", discipline: discipline, skipInfeasible: cfg.SkipInfeasible,
		lifetime: quoteLifetime,
		pricing:  pricing, processorTime: cost == grid.CostProcessorTime,
		verdicts: cfg.Rejected != nil,
	}
	n, err := f.Build()
	if err != nil {
		return nil, err
	}
	source := &scenario.Feed{Source: w.Source(Warmup), QoS: cfg.qos(), Homes: f.Homes(), Goal: cfg.Goal}
	n.Feed(source)
	if cfg.Rejected != nil {
		n.Observe(testnet.Observer{Event: func(_ grid.Time, home int, e *grid.Event) {
			if e.Kind == grid.JobRefused {
				cfg.Rejected(home, e, finishAtHome(n.Core(home), e.Job))
			}
		}})
	}
	r := scenario.Run{
		Common: cfg.Common, Scenario: "federation", Config: cfg.report(w.Inputs), Network: n, Sites: f.Described(),
		Begin: Begin, Window: Span, Total: w.Jobs, Read: func() int64 { return source.Read },
	}
	return r.Do(ctx)
}

// finishAtHome returns the estimate of the site that rejected its own user's job: the
// finish that it could have promised.
func finishAtHome(core testnet.Site, job *grid.Job) grid.Time {
	s := scenario.SiteOf(core)
	if s == nil {
		return grid.Never
	}
	view, _ := s.Job(job.ID)
	for i := range view.Verdicts {
		if v := &view.Verdicts[i]; v.Site == job.Home {
			return v.Finish
		}
	}
	return grid.Never
}

// workload returns the jobs of the run.
func (cfg *Config) workload() (*Table1, error) {
	if cfg.Days != nil {
		return givenWorkload(cfg.Sites, cfg.Days)
	}
	return NewTable1(cfg.Sites, cfg.Traces, workload.Options{Strict: cfg.Strict})
}

func (cfg *Config) validate() (market.Placement, error) {
	switch {
	case cfg.Mode != "independent" && cfg.Mode != "federated" && cfg.Mode != "economy":
		return 0, scenario.ConfigError("mode", "%q: want independent, federated or economy", cfg.Mode)
	case cfg.OFT < 0 || cfg.OFT > 100:
		return 0, scenario.ConfigError("oft", "%d: want 0 to 100, a percentage", cfg.OFT)
	case cfg.Sites < 1 || cfg.Sites > SitesMax:
		return 0, scenario.ConfigError("sites", "%d: want 1 to %d", cfg.Sites, SitesMax)
	case cfg.DHT != "model" && cfg.DHT != "oracle":
		return 0, scenario.ConfigError("dht", "%q: want model or oracle", cfg.DHT)
	}
	link := testnet.Link{LatencyMin: cfg.LatencyMin, LatencyMax: cfg.LatencyMax}
	if err := link.Validate(); err != nil {
		return 0, scenario.ConfigError("latency", "%v", err)
	}
	placement, err := market.ParsePlacement(cfg.Placement)
	if err != nil {
		return 0, scenario.ConfigError("placement", "%v", err)
	}
	return placement, nil
}

// qos is what jobs ask for: the paper's deadline, and where there is money its budget.
func (cfg *Config) qos() workload.QoS {
	q := workload.PaperQoS
	if cfg.Mode != "economy" {
		q.Budget = 0
	}
	return q
}

// Goal returns what the owner of a job wants. Who wants what is drawn per user, and
// per job where the workload does not name users.
func (cfg *Config) Goal(site int, job *workload.Job) grid.Goal {
	switch cfg.Mode {
	case "independent":
		return grid.GoalLocal
	case "federated":
		return grid.GoalSpill
	}
	h := draw.Mix(draw.Mix(cfg.Seed, uint64(draw.ForJobs)), uint64(site))
	if job.User != "" {
		h = draw.Mix(h, draw.Text(job.User))
	} else {
		h = draw.Mix(h, uint64(job.Number))
	}
	if h%100 < uint64(cfg.OFT) {
		return grid.GoalTime
	}
	return grid.GoalCost
}
