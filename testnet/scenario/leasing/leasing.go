package leasing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// Config is the scenario "leasing": sites that replay a log each, and (by
// policy) lease processors from each other (The gain of resource delegation, 2009).
type Config struct {
	scenario.Common

	// Policy is "local" (every site runs its own jobs on its own processors), "s-strd"
	// (it leases what a submitted job lacks) or "x-strd" (what each queued job lacks).
	Policy string `json:"policy"`

	// Traces are logs in SWF or GWF, plain or gzip, one per site. Without any, each
	// site gets ten thousand jobs of the Lublin-Feitelson model.
	Traces []string `json:"traces"`

	// Processors of the sites, in the order of Traces. If it is empty, the logs'
	// headers say; if it has one number, it is for all.
	Processors []int64 `json:"processors"`

	// Until, in seconds, leaves out jobs submitted at or after it; 0: none.
	Until int64 `json:"until"`

	// NoEstimate is what becomes of jobs without an estimate: "drop" or "runtime".
	NoEstimate string `json:"noEstimate"`

	// Queue is the discipline of the sites' queues: "easy", "fcfs" or "titan".
	Queue string `json:"queue"`

	// Strict ends at the first malformed line of a log; else lines are skipped or repaired,
	// and counted.
	Strict bool `json:"strict"`

	// Leases, if set, is told how many processors of others a site has and how many of
	// its own others have, whenever a lease begins or ends.
	Leases func(site int, at grid.Time, borrowed, lent int64) `json:"-"`

	// Asked, if set, is told in the end what each site has asked its partners for.
	Asked func(site int, d lease.Delegations) `json:"-"`
}

// Default is what the command line starts from.
func Default() Config {
	return Config{Common: scenario.Common{Seed: 1}, Policy: "local", NoEstimate: "drop", Queue: "easy"}
}

// leasingReport is the configuration as a result shows it.
type leasingReport struct {
	Config
	Inputs []scenario.Input `json:"inputs"`
}

func (cfg Config) report(inputs []scenario.Input) *leasingReport {
	cfg.Traces = slices.Concat([]string{}, cfg.Traces) // in JSON, none is [] and not null
	cfg.Processors = slices.Concat([]int64{}, cfg.Processors)
	return &leasingReport{cfg, inputs}
}

// modelSeed is the seed of generated workloads: they are the same whatever the
// seed of the run.
const modelSeed = 20030101

// modelJobs is how many jobs a site without a log has.
const modelJobs = 10_000

// Run runs the scenario. Cancelling ctx ends it with ctx's error. An error
// wrapping ErrConfig is about cfg, a workload.LineError about a log.
func Run(ctx context.Context, cfg Config) (*measure.Result, error) {
	var policy lease.Policy
	switch cfg.Policy {
	case "local":
	case lease.SSTRD.String():
		policy = lease.SSTRD
	case lease.XSTRD.String():
		policy = lease.XSTRD
	default:
		return nil, scenario.ConfigError("policy", "%q: want local, s-strd or x-strd", cfg.Policy)
	}
	discipline, err := lrms.ParseDiscipline(cfg.Queue)
	if err != nil {
		return nil, scenario.ConfigError("queue", "%v", err)
	}
	w, err := openLogs(&cfg)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if cfg.Policy == "local" {
		return w.replayAlone(ctx, &cfg, discipline)
	}
	return w.replayLeasing(ctx, &cfg, policy, discipline)
}

// replayAlone runs the jobs of the logs, each at its own site.
func (w *logs) replayAlone(ctx context.Context, cfg *Config, discipline lrms.Discipline) (*measure.Result, error) {
	n, err := testnet.New(testnet.Config{Seed: cfg.Seed, Inputs: scenario.Inputs()})
	if err != nil {
		return nil, err
	}
	for i, site := range w.sites {
		if err := addAlone(n, site, discipline, &w.homes[i]); err != nil {
			return nil, err
		}
	}
	r := w.run(cfg, n)
	r.Inspect = w.account
	return r.Do(ctx)
}

// replayLeasing runs the jobs of the logs at sites that lease from each other.
func (w *logs) replayLeasing(ctx context.Context, cfg *Config, policy lease.Policy, discipline lrms.Discipline) (*measure.Result, error) {
	if len(w.sites) < 2 {
		return nil, scenario.ConfigError("policy", "%s with one site: name a --trace for each partner", policy)
	}
	net, err := newPartners(cfg, policy, discipline, w)
	if err != nil {
		return nil, err
	}
	r := w.run(cfg, net.n)
	r.Leased = net.leased
	r.AtRest = func() error { return net.returned() }
	r.Inspect = func(result *measure.Result) {
		w.account(result)
		net.inspect(result)
	}
	return r.Do(ctx)
}

// run feeds the jobs of the logs to n.
func (w *logs) run(cfg *Config, n *testnet.Network) *scenario.Run {
	f := &scenario.Feed{Source: workload.NewMerge(w.sources...), QoS: workload.QoS{Length: workload.LengthEstimate}, Homes: w.homes}
	if cfg.Policy != "local" {
		f.Adjust = func(j *grid.Job) { j.Spread = true } // "each job can be executed on any subset of processors"
	}
	n.Feed(f)
	return &scenario.Run{
		Common: cfg.Common, Scenario: "leasing", Config: cfg.report(w.inputs), Network: n, Sites: w.sites, Window: grid.Never,
		Total: w.total, Read: func() int64 { return f.Read },
	}
}

// addAlone adds a site that runs every job itself.
func addAlone(n *testnet.Network, d measure.Site, discipline lrms.Discipline, home *workload.Home) error {
	_, err := n.Add(testnet.Member{
		ID: home.ID, Rating: home.Rating,
		New: func(int) (testnet.Site, error) {
			return site.New(site.Config{
				ID: home.ID, Name: d.Name, Resources: grid.Resources{Processors: d.Processors},
				Rating: home.Rating, Discipline: discipline, Parts: site.Jobs,
				Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax},
			}, n.Seed())
		},
	})
	return err
}

// logs are the workloads of a leasing run.
type logs struct {
	sites   []measure.Site
	homes   []workload.Home
	sources []workload.Source
	inputs  []scenario.Input
	traces  []*workload.Trace // nil where the jobs are generated
	ahead   []*workload.Ahead // of traces: a log is read while its jobs run
	total   int64             // jobs the headers speak of; 0 if one does not
}

// openLogs opens the logs of cfg, or makes generators.
func openLogs(cfg *Config) (*logs, error) {
	noEstimate, err := workload.ParseNoEstimate(cfg.NoEstimate)
	if err != nil {
		return nil, scenario.ConfigError("no-estimate", "%v", err)
	}
	if cfg.Until < 0 || cfg.Until > int64(grid.SpanMax/grid.Second) {
		return nil, scenario.ConfigError("until", "%d: want seconds, 0 for no end", cfg.Until)
	}
	for _, p := range cfg.Processors {
		if p < 1 || p > lrms.ProcessorsMax {
			return nil, scenario.ConfigError("processors", "%d: want 1 to %d", p, lrms.ProcessorsMax)
		}
	}
	if n, sites := len(cfg.Processors), len(cfg.Traces); sites > 0 && n > 1 && n != sites {
		return nil, scenario.ConfigError("processors", "%d numbers for %d traces: want one each, or one for all", n, sites)
	}
	w := &logs{}
	filter := workload.Filter{NoEstimate: noEstimate, Until: grid.Time(cfg.Until) * grid.Second}
	if len(cfg.Traces) == 0 {
		return w, w.generate(cfg, filter.Until)
	}
	for i, path := range cfg.Traces {
		if len(cfg.Processors) > 0 {
			filter.Processors = cfg.Processors[min(i, len(cfg.Processors)-1)]
		}
		if err := w.open(path, filter, workload.Options{Strict: cfg.Strict}); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// open adds a site with a log.
func (w *logs) open(path string, filter workload.Filter, o workload.Options) error {
	reader, err := workload.Open(path, o)
	if err != nil {
		return err
	}
	header := reader.Header()
	if filter.Processors == 0 {
		if filter.Processors = header.MaxProcs(); filter.Processors < 1 || filter.Processors > lrms.ProcessorsMax {
			reader.Close()
			return scenario.ConfigError("processors", "the header of %s does not say how many there are: name a number", path)
		}
	}
	jobs, known := header.Int("MaxRecords")
	if !known {
		jobs, known = header.Int("MaxJobs")
	}
	if known && (w.total > 0 || len(w.traces) == 0) {
		w.total += jobs
	} else {
		w.total = 0
	}
	t := workload.NewTrace(reader, filter)
	w.traces = append(w.traces, t)
	ahead := workload.NewAhead(t)
	w.ahead = append(w.ahead, ahead)
	w.add(ahead, siteName(path), filter.Processors)
	w.inputs = append(w.inputs, scenario.Input{Trace: filepath.Base(path)})
	return nil
}

// siteName makes a site's name of a file's.
func siteName(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".swf", ".gwf"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// generate adds a site with a generated workload for each number of processors.
func (w *logs) generate(cfg *Config, until grid.Time) error {
	processors := cfg.Processors
	if len(processors) == 0 {
		processors = []int64{128}
	}
	for i, p := range processors {
		m := workload.Lublin(p)
		m.Shape.Load = 0.7
		name := fmt.Sprintf("site-%d", i+1)
		g, err := workload.NewGenerator(m, rand.New(draw.PCG(modelSeed, grid.SiteID(name), draw.ForJobs)))
		if err != nil {
			return scenario.ConfigError("processors", "%v", err)
		}
		var source workload.Source = &workload.First{Source: g, Left: modelJobs}
		if until > 0 {
			source = &workload.Window{Source: source, Span: until}
		}
		w.total += modelJobs
		w.traces = append(w.traces, nil)
		w.add(source, name, p)
		w.inputs = append(w.inputs, scenario.Input{Trace: fmt.Sprintf("Lublin-Feitelson model, load 0.7, seed %d", modelSeed)})
	}
	return nil
}

func (w *logs) add(source workload.Source, name string, processors int64) {
	for same := 1; w.taken(name); same++ {
		name = fmt.Sprintf("%s %d", strings.TrimSuffix(name, fmt.Sprintf(" %d", same)), same+1)
	}
	w.sources = append(w.sources, source)
	w.sites = append(w.sites, measure.Site{Name: name, Processors: processors})
	w.homes = append(w.homes, workload.Home{ID: grid.SiteID(name), Rating: grid.Rating{Speed: 1, Bandwidth: 1}})
}

func (w *logs) taken(name string) bool {
	for _, s := range w.sites {
		if s.Name == name {
			return true
		}
	}
	return false
}

// account completes inputs once the run is over.
func (w *logs) account(r *measure.Result) {
	for i := range w.inputs {
		w.inputs[i].Site = r.Sites[i].Name
		w.inputs[i].Jobs = r.Sites[i].Submitted
		if t := w.traces[i]; t != nil {
			counts := t.Counts()
			w.inputs[i].Lines = counts.String()
			if skipped := t.Skipped(); skipped.Lines > 0 {
				w.inputs[i].Lines += fmt.Sprintf(", %d malformed", skipped.Lines)
			}
		}
	}
}

func (w *logs) close() {
	for _, a := range w.ahead {
		a.Close()
	}
	for _, t := range w.traces {
		if t != nil {
			t.Close() // it was only read
		}
	}
}
