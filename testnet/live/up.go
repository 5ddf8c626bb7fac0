package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/workload"
)

// Config is a live network: real nodes in this process, connected over loopback,
// that replay a workload faster than it was.
//
// The workload's spans (run times, deadlines, gaps between jobs) are divided by
// Speedup; prices are multiplied with it, so that jobs cost what they would have.
// Messages, timers of protocols and disks are as fast as they are. In results spans
// are the workload's again: a message that takes 5 ms looks like 5 s at a thousandfold.
// With Load, jobs come faster or slower than their run times are shortened.
type Config struct {
	scenario.Common

	Nodes   int     `json:"nodes"`   // sites of table 1 of Grid-Federation, again and again
	Count   int64   `json:"jobs"`    // the first so many of the two days; 0: all
	Speedup int64   `json:"speedup"` // 1 to SpeedupMax; 0: so that about arrivalRate jobs a second arrive
	Shrink  int64   `json:"shrink"`  // the processors of sites and jobs are divided by it, up to whole ones; at least 1
	Load    float64 `json:"load"`    // per cent of all processors that the jobs would keep busy; 0: as the workload has it

	Protocols Protocols `json:"protocols"` // what the sites do besides trading

	// Slack is added to every deadline, in real time: what messages take does not
	// shrink with the run times.
	Slack grid.Time `json:"slack"`

	Placement string   `json:"placement"` // "paper" or "coordinated"
	OFT       int      `json:"oft"`       // per cent of the users who want the fastest site; the others want the cheapest
	Traces    []string `json:"traces"`    // as in federation.Config
	Strict    bool     `json:"strict"`

	Transport string `json:"transport"` // "tcp", or "memory": the same libp2p without sockets, for many nodes
	Home      string `json:"home"`      // directory for the nodes' homes, with stores on disk; empty: nothing is kept

	lifetime grid.Time // of quotes; 0 for the directory's default
	longest  grid.Time // jobs that run longer are left out; 0: none
	rate     float64   // jobs a second that arrive if Speedup is 0; 0: arrivalRate

	step  func(s stage, done, total int64) // is told how far it is; may be nil
	free  bool                             // there are no authorities
	apart time.Duration                    // from one node's start to the next one's, at least
}

// Bounds of Config.
const (
	NodesMax   = 400
	SpeedupMax = 100_000
	LoadMax    = 1000
	ShrinkMax  = 1 << 20
)

// Default is what the command line starts from.
func Default() Config {
	return Config{
		Common: scenario.Common{Seed: 1}, Nodes: 12, Count: 240, Shrink: 1, Slack: grid.Second,
		Placement: "coordinated", OFT: 50, Transport: "tcp", Protocols: DefaultProtocols(),
	}
}

func (cfg *Config) validate() error {
	switch {
	case cfg.Nodes < 1 || cfg.Nodes > NodesMax:
		return scenario.ConfigError("nodes", "%d: want 1 to %d", cfg.Nodes, NodesMax)
	case cfg.Count < 0:
		return scenario.ConfigError("jobs", "%d: want 0 (all) or more", cfg.Count)
	case cfg.Speedup < 0 || cfg.Speedup > SpeedupMax:
		return scenario.ConfigError("speedup", "%d: want 1 to %d, or 0 for one that suits the machine", cfg.Speedup, SpeedupMax)
	case cfg.Shrink < 1 || cfg.Shrink > ShrinkMax:
		return scenario.ConfigError("shrink", "%d: want 1 to %d", cfg.Shrink, ShrinkMax)
	case !(cfg.Load >= 0 && cfg.Load <= LoadMax):
		return scenario.ConfigError("load", "%v: want more than 0, at most %d per cent; without it, as the workload has it", cfg.Load, LoadMax)
	case cfg.Slack < 0 || cfg.Slack > grid.Day:
		return scenario.ConfigError("slack", "%v: want 0 to %v", cfg.Slack, grid.Day)
	case cfg.OFT < 0 || cfg.OFT > 100:
		return scenario.ConfigError("oft", "%d: want 0 to 100, a percentage", cfg.OFT)
	case cfg.Transport != "tcp" && cfg.Transport != "memory":
		return scenario.ConfigError("transport", "%q: want tcp or memory", cfg.Transport)
	}
	return nil
}

// arrivalRate is how many jobs a second a fleet on two cores places without falling
// behind, whatever its size: that many arrive if no speed-up is given.
const arrivalRate = 100

// tempo returns by what the gaps between the first count jobs (0: all) and by what their
// run times are divided.
func (cfg *Config) tempo(w *federation.Table1) (pace, speedup int64) {
	var job workload.Job
	first, last, n, area := grid.Never, grid.Time(0), int64(0), 0.0
	for source := w.Source(0); cfg.Count == 0 || n < cfg.Count; n++ {
		if ok, err := source.Next(&job); !ok || err != nil { // in memory: it cannot fail
			break
		}
		first, last = min(first, job.Submit), job.Submit
		area += float64(job.Processors) * job.RunTime.Seconds()
	}
	if pace = cfg.Speedup; pace == 0 && n > 1 {
		rate := cmp.Or(cfg.rate, arrivalRate)
		pace = int64((last - first).Seconds() * rate / float64(n-1))
	}
	pace = min(max(pace, 1), SpeedupMax)
	var processors int64
	for i := range w.Sites {
		processors += w.Sites[i].Processors
	}
	if cfg.Load == 0 || last <= first || area == 0 {
		return pace, pace
	}
	faster := cfg.Load / 100 / (area / (last - first).Seconds() / float64(processors))
	if cfg.Speedup > 0 { // run times are as short as was asked for
		return min(max(int64(float64(pace)*faster), 1), SpeedupMax), pace
	}
	return pace, min(max(int64(float64(pace)/faster), 1), SpeedupMax)
}

// Live is a network of real nodes.
type Live struct {
	cfg       Config
	placement market.Placement
	protocols *protocols
	work      *federation.Table1
	pace      int64 // gaps between jobs are divided by it
	keys      []crypto.PrivKey
	ids       []grid.SiteID // of all sites, started or not
	places    []grid.Key    // in the DHT
	*enrolment
	hosts []*node.Host
	ups   []comingUp // of hosts
	tally *liveTally
	begun time.Time

	setup   time.Duration // from the start of the first node to the first job
	counted *scale.Counts // during Replay
	late    time.Duration // of a submission behind its instant, at most
}

// comingUp is how a node came up.
type comingUp struct {
	at      time.Duration // since the first one began to
	through []int         // earlier nodes that it joined through
}

// step says how far a stage is.
func (l *Live) step(s stage, done, total int64) {
	if l.cfg.step != nil {
		l.cfg.step(s, done, total)
	}
}

// Up starts the nodes and returns when each sees the quotes of all. Cancelling ctx
// while it runs ends it. An error wrapping ErrConfig is about cfg. Close the network.
func Up(ctx context.Context, cfg Config) (*Live, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	placement, err := cfg.placementOf()
	if err != nil {
		return nil, err
	}
	work, err := federation.NewTable1(cfg.Nodes, cfg.Traces, workload.Options{Strict: cfg.Strict})
	if err != nil {
		return nil, err
	}
	work.Warn(cfg.Progress)
	if cfg.longest > 0 {
		work.Without(cfg.longest)
	}
	work.Shrink(cfg.Shrink)
	l := &Live{work: work, placement: placement, begun: time.Now()}
	l.pace, cfg.Speedup = cfg.tempo(work)
	l.cfg, l.tally = cfg, newLiveTally(work.Sites, cfg.Speedup)
	if err := l.identify(); err != nil {
		return nil, err
	}
	if l.enrolment, err = l.enrol(lastYear()); err != nil {
		return nil, err
	}
	if l.protocols, err = cfg.Protocols.parse(cfg.Nodes, l.id); err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Hosts returns the nodes, in the order of the sites.
func (l *Live) Hosts() []*node.Host { return l.hosts }

// Close stops all nodes.
func (l *Live) Close() error {
	errs := make([]error, len(l.hosts))
	var wg sync.WaitGroup
	for i, h := range l.hosts {
		wg.Go(func() {
			if err := h.Close(); err != nil {
				errs[i] = fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// joinPeers is how many earlier nodes a new one is told to join through.
const joinPeers = 3

// settleMax is how long it may take until one more node has found all others. On idle
// processors a hundred need seconds altogether, and minutes where others use the processors.
func settleMax(nodes int) time.Duration { return 2*time.Minute + time.Duration(nodes)*2*time.Second }

// start starts the nodes one after the other, each joining through earlier ones
// drawn at random, and waits until every one sees every quote.
func (l *Live) start(ctx context.Context) error {
	rng := rand.New(draw.PCG(l.cfg.Seed, "", draw.ForRouter))
	f := l.describe(l.cfg.Seed)
	var memory *p2p.Memory
	if l.cfg.Transport == "memory" { // over links as they are described
		memory = &p2p.Memory{Latency: func() time.Duration {
			return (f.Link.LatencyMin + rand.N(f.Link.LatencyMax-f.Link.LatencyMin)).Duration()
		}}
	}
	ready := int64(0) // started, and once more when settled
	p := scenario.NewProgress(l.cfg.Progress, "nodes", int64(2*l.cfg.Nodes), func() int64 { return ready })
	defer p.Stop()
	for i := range l.work.Sites {
		if err := ctx.Err(); err != nil {
			return err
		}
		cfg, err := l.host(f, i, memory)
		if err != nil {
			return err
		}
		var up comingUp
		for range min(i, joinPeers) {
			earlier := rng.IntN(i)
			up.through = append(up.through, earlier)
			cfg.Join = append(cfg.Join, l.hosts[earlier].Addrs()...)
		}
		h, err := node.Start(ctx, cfg)
		if err != nil {
			return fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err)
		}
		up.at = time.Since(l.begun)
		l.hosts, l.ups = append(l.hosts, h), append(l.ups, up)
		l.tally.add(i, h)
		ready++
		p.Pulse()
		l.step(stageStart, ready, int64(2*l.cfg.Nodes))
		time.Sleep(l.cfg.apart)
	}
	err := l.settle(ctx, func() {
		ready++
		p.Pulse()
		l.step(stageStart, ready, int64(2*l.cfg.Nodes))
	})
	if err != nil {
		return err
	}
	return l.grant(ctx)
}

// grant has the bank open an account for every site.
func (l *Live) grant(ctx context.Context) error {
	for i, grant := range l.protocols.grants() {
		answer, err := l.hosts[0].Ask(ctx, func(token uint64) grid.Input { grant.Token = token; return grant })
		if err != nil {
			return fmt.Errorf("site %s: account: %w", l.work.Sites[i].Name, err)
		}
		if s := answer.(*bank.Statement); s.Refusal != 0 {
			return fmt.Errorf("site %s: account: %v", l.work.Sites[i].Name, s.Refusal)
		}
	}
	return nil
}

// walksAtOnce is how many nodes look at a time whether they see all quotes. A walk waits for
// messages, one after the other, so that one alone leaves processors idle; of all nodes at once
// each would wait for the others.
const walksAtOnce = 8

// settle returns once every node sees the quotes of all, and calls another for each that does.
func (l *Live) settle(ctx context.Context, another func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	walking := make(chan struct{}, walksAtOnce)
	over := make(chan error, len(l.hosts))
	for i, h := range l.hosts {
		wg.Go(func() {
			walking <- struct{}{}
			defer func() { <-walking }()
			err := l.settled(ctx, h)
			if err != nil {
				err = fmt.Errorf("site %s: %w", l.work.Sites[i].Name, err)
			}
			over <- err
		})
	}
	for range l.hosts {
		if err := <-over; err != nil {
			return err
		}
		another()
	}
	return nil
}

// settled returns once one walk through the directory shows a node the quotes of all.
func (l *Live) settled(ctx context.Context, h *node.Host) error {
	most := settleMax(l.cfg.Nodes)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("the nodes did not find each other within %v (is the machine busy?)", most))
	defer cancel()
	seen := make(map[grid.SiteID]bool)
	query := directory.Query{Attribute: directory.Price, Limit: min(len(l.hosts), directory.LimitMax)}
	again := settledAgain.Duration()
	for {
		answer, err := h.Ask(ctx, func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		found := answer.(*directory.Found)
		for i := range found.Quotes {
			seen[found.Quotes[i].Site] = true
		}
		switch {
		case len(seen) == len(l.hosts):
			return nil
		case found.End || found.Err != nil || len(found.Quotes) == 0: // from the beginning, a moment later
			query.After = nil
			clear(seen)
			select {
			case <-time.After(again):
				again = min(2*again, time.Second) // a walk costs others more than who walks
			case <-ctx.Done():
				return fmt.Errorf("sees %d of %d sites: %w", len(seen), len(l.hosts), context.Cause(ctx))
			}
		default:
			query.After = directory.Behind(&found.Quotes[len(found.Quotes)-1], query.Attribute)
		}
	}
}

// host returns the configuration of a node of the federation f.
func (l *Live) host(f *federation.Builder, i int, memory *p2p.Memory) (node.HostConfig, error) {
	s := &l.work.Sites[i]
	cfg := node.HostConfig{
		Member: l.card(i), Key: l.keys[i], Federation: f.Name, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Version: "testnet",
		Memory: memory, Profile: p2p.ProfileFleet, Seed: draw.PCG(l.cfg.Seed, grid.SiteID(s.Name), draw.ForSite).Uint64(),
		Store: store.Options{SpaceMin: -1}, Site: f.SiteConfig(i), Engine: l.tally.engine(i, s.Rating),
	}
	if l.cfg.Home == "" {
		return cfg, nil
	}
	cfg.Home = filepath.Join(l.cfg.Home, strings.ReplaceAll(s.Name, " ", "-"))
	return cfg, os.MkdirAll(cfg.Home, 0o700)
}
