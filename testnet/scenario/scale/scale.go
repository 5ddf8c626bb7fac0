package scale

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gridnode/grid"
	"gridnode/market"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/kademlia"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// Config is one federation of the measurement of how message counts grow:
// Sites sites, table 1 of Grid-Federation again and again, that trade for a while.
//
// Which part of the two days of table 1 they live through is a rule: the sites of
// one round of table 1 begin at the same instant of their two days, which follow
// each other in a circle, and rounds begin at instants spread evenly over them. So a
// short run of many sites sees the same mixture of busy and quiet hours as a long
// run of few. InStep makes all rounds begin at noon of the first day, so that all
// replicas of a site submit the same job at the same instant.
//
// What would be running when the measurement begins is there: jobs of the time
// before are submitted at the start, to their own sites, with what would be left of
// them. They are not counted. Nor is what happens in the first minutes, while the
// sites find each other.
type Config struct {
	Seed      uint64    `json:"seed"`
	Sites     int       `json:"sites"`
	Span      grid.Time `json:"-"`         // that is measured, more than 0, at most 48 h
	Placement string    `json:"placement"` // "paper" or "coordinated"
	OFT       int       `json:"oft"`       // per cent of the users who want the fastest site
	InStep    bool      `json:"inStep"`
	Skew      bool      `json:"skew"`   // nine tenths of the jobs come to a tenth of the sites
	Stay      grid.Time `json:"-"`      // that a site stays up in the mean; 0: for ever
	Traces    []string  `json:"traces"` // as in federation.Config
	Strict    bool      `json:"-"`
	Workers   int       `json:"-"` // processors that the run may use (testnet.Config); 0: one

	// Pulse, if set, is told now and then which share of the run is over, in
	// thousandths.
	Pulse func(permille int64) `json:"-"`
}

// Bounds of Config.
const (
	SpanMax     = 2 * grid.Day
	scaleWarmup = 10 * grid.Minute // one lifetime of quotes: every site has published twice
	SiblingsMax = 8                // sites of one authority: a round of table 1
	StayMin     = 10 * grid.Minute // of Config.Stay
	downMean    = 10 * grid.Minute // that a site is down which does not stay
)

func (cfg *Config) validate() (market.Placement, error) {
	switch {
	case cfg.Sites < 1 || cfg.Sites > federation.SitesMax:
		return 0, scenario.ConfigError("sites", "%d: want 1 to %d", cfg.Sites, federation.SitesMax)
	case cfg.Span < 1 || cfg.Span > SpanMax:
		return 0, scenario.ConfigError("span", "%v: want more than 0, at most %v", cfg.Span, SpanMax)
	case cfg.Stay != 0 && cfg.Stay < StayMin:
		return 0, scenario.ConfigError("stay", "%v: want 0 or at least %v", cfg.Stay, StayMin)
	case cfg.OFT < 0 || cfg.OFT > 100:
		return 0, scenario.ConfigError("oft", "%d: want 0 to 100, a percentage", cfg.OFT)
	}
	placement, err := market.ParsePlacement(cfg.Placement)
	if err != nil {
		return 0, scenario.ConfigError("placement", "%v", err)
	}
	return placement, nil
}

// Run measures one federation in virtual time. Cancelling ctx ends it with
// ctx's error. An error wrapping ErrConfig is about cfg.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if cfg.Workers <= 1 {
		runtime.LockOSThread() // its processor time is ours
		defer runtime.UnlockOSThread()
	}
	started := time.Now()
	n, m, err := startScale(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	end := m.begin + cfg.Span
	if err := n.Run(ctx, end, nil); err != nil {
		return nil, fmt.Errorf("%d sites, seed %d: %w", cfg.Sites, cfg.Seed, err)
	}
	r := m.Result(end)
	r.Mode, r.Seed, r.Placement, r.OFT = "virtual", cfg.Seed, cfg.Placement, cfg.OFT
	r.TraceHash = fmt.Sprintf("%016x", n.TraceHash())
	r.SetupSeconds = measure.Seconds(grid.FromDuration(time.Since(started))) - r.WallSeconds
	r.SetupEvents = n.Events() - r.Events
	r.strides = n.Strides()
	return r, nil
}

// startScale builds the federation and lets it run until the measurement begins.
func startScale(ctx context.Context, cfg *Config) (*testnet.Network, *Measure, error) {
	placement, err := cfg.validate()
	if err != nil {
		return nil, nil, err
	}
	w, err := federation.NewTable1(cfg.Sites, cfg.Traces, workload.Options{Strict: cfg.Strict})
	if err != nil {
		return nil, nil, err
	}
	defaults := federation.Default()
	f := federation.Builder{
		Config: testnet.Config{
			Seed: cfg.Seed, Inputs: scenario.Inputs(), Durable: cfg.Stay > 0, Workers: cfg.Workers,
			Link: testnet.Link{LatencyMin: defaults.LatencyMin, LatencyMax: defaults.LatencyMax},
		},
		Placement: placement, Foreign: true, Sites: w.Sites, Authority: federation.Authorities(SiblingsMax),
	}
	n, err := f.Build()
	if err != nil {
		return nil, nil, err
	}
	if err := cfg.leave(n); err != nil {
		return nil, nil, err
	}
	goals := federation.Config{Common: scenario.Common{Seed: cfg.Seed}, Mode: "economy", OFT: cfg.OFT}
	n.Feed(&scenario.Feed{Source: cfg.jobs(w), QoS: workload.PaperQoS, Homes: f.Homes(), Goal: func(site int, job *workload.Job) grid.Goal {
		if job.Number >= earlierJob {
			return grid.GoalLocal
		}
		return goals.Goal(site, job)
	}})
	if cfg.Pulse != nil {
		n.Pulse(func() { cfg.Pulse(int64(n.Now()) * 1000 / int64(scaleWarmup+cfg.Span)) })
	}
	if err := n.Run(ctx, scaleWarmup-1, nil); err != nil {
		return nil, nil, fmt.Errorf("%d sites, seed %d: %w", cfg.Sites, cfg.Seed, err)
	}
	return n, Begin(n, f.Nodes, scaleWarmup), nil
}

// leave has sites that do not stay lose their power again and again. At the end of each
// minute one that is up goes down with the same chance.
func (cfg *Config) leave(n *testnet.Network) error {
	if cfg.Stay == 0 {
		return nil
	}
	chance := int32(1_000_000 * grid.Minute / cfg.Stay)
	for s := range n.Len() {
		pcg := draw.PCG(cfg.Seed, n.ID(s), draw.ForFaults)
		for minute := grid.Time(0); minute < scaleWarmup+cfg.Span; minute += grid.Minute {
			if !draw.Chance(pcg, chance) {
				continue
			}
			at := minute + grid.Time(draw.Uniform(pcg, uint64(grid.Minute)))
			down := 1 + grid.Time(draw.Uniform(pcg, uint64(2*downMean)))
			if err := n.Schedule(testnet.Fault{Kind: testnet.FaultMachine, At: at, For: down, Sites: []int{s}}); err != nil {
				return err
			}
			minute = at + down
		}
	}
	return nil
}

// requests adds up what the nodes of a DHT have looked up.
func requests(nodes []*kademlia.Node) (s kademlia.Stats) {
	for _, node := range nodes {
		t := node.Stats()
		s.Lookups += t.Lookups
		s.Requests += t.Requests
		s.Joining += t.Joining
		s.Failures += t.Failures
	}
	return s
}
