package testnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridnode/coalloc"
	"gridnode/internal/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/workload"
)

// CoallocationConfig is the scenario "coallocation": one scheduler (KOALA) that places
// jobs of one application on the clusters of DAS-3 (On the benefit of processor
// co-allocation, 2008, sections VI-C and VII-B).
type CoallocationConfig struct {
	Common

	// Policy is "wf", "fcm", "ca", "cf" or "adaptive". By wf jobs are not split.
	Policy string `json:"policy"`

	// Application is "prime", "poisson", "wave", or "ccr=X": a synthetic one whose
	// communication takes X times as long as its computation within one cluster.
	Application string `json:"application"`

	// Utilization is the net utilization, in percent: the load if every job ran within
	// one cluster.
	Utilization float64 `json:"utilization"`

	Without     string  `json:"without"`     // the cluster to leave out: "delft" or "leiden"
	MaxClusters int     `json:"maxClusters"` // that one job may combine; 0: no limit
	Sizes       []int64 `json:"sizes"`       // of jobs, in nodes, drawn evenly

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

	// Ended is told of every job. It may be nil.
	Ended func(j CoallocatedJob) `json:"-"`
}

// CoallocatedJob is what came of one job.
type CoallocatedJob struct {
	Processors                 int64
	Submit, Placed, Start, End grid.Time // Start is when it computes: a startup after Placed
	Clusters                   int       // that it ran on
	Tries                      int32     // placements tried
}

// DefaultCoallocation is what the command line starts from.
func DefaultCoallocation() CoallocationConfig {
	return CoallocationConfig{
		Common: Common{Seed: 1}, Policy: "adaptive", Application: "poisson", Utilization: 60, Without: "delft",
		Sizes: []int64{8, 16, 32}, Hours: 24, Startup: 10 * grid.Second, Interval: 10 * grid.Second,
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
		return application{}, configError("application", "%q: want prime, poisson, wave or ccr=X with X from 0 to %d", s, coalloc.CCRMax/1000)
	}
	return application{syntheticRunTime, int64(x*1000 + 0.5)}, nil
}

// coallocationReport is the configuration as a result shows it.
type coallocationReport struct {
	CoallocationConfig
	Seconds Decimal `json:"runTimeSeconds"` // of a job within one cluster
	CCR     Decimal `json:"ccr"`
	Tries   Decimal `json:"triesPerJob"` // placements tried
	Waiting Decimal `json:"waiting"`     // at the end of submissions, in seconds of work for all nodes
}

func (cfg *CoallocationConfig) validate() error {
	switch {
	case !(cfg.Utilization > 0 && cfg.Utilization <= 100):
		return configError("utilization", "%v: want more than 0, at most 100, in percent", cfg.Utilization)
	case cfg.Without != "delft" && cfg.Without != "leiden":
		return configError("without", "%q: want delft or leiden (between them nothing was measured)", cfg.Without)
	case cfg.MaxClusters < 0:
		return configError("max-clusters", "%d: want 1 or more, 0 for no limit", cfg.MaxClusters)
	case len(cfg.Sizes) == 0:
		return configError("sizes", "want at least one")
	case cfg.Hours < 1 || cfg.Hours > 10_000:
		return configError("hours", "%d: want 1 to 10000", cfg.Hours)
	case cfg.Startup < 0 || cfg.Startup > grid.Hour:
		return configError("startup", "%v: want 0 to 1h", cfg.Startup)
	case cfg.Interval < grid.Second || cfg.Interval > grid.Hour:
		return configError("interval", "%v: want 1s to 1h", cfg.Interval)
	case cfg.Patience < 0:
		return configError("patience", "%v: want 0 or more", cfg.Patience)
	case cfg.Group < 0 || cfg.Group > coalloc.LatencyMax:
		return configError("latency-group", "%v: want 0 to %v", cfg.Group, coalloc.LatencyMax)
	case cfg.InputBytes < 0 || cfg.InputBytes > 1<<50:
		return configError("input-size", "%d: want 0 to 1 PiB", cfg.InputBytes)
	}
	return nil
}

// RunCoallocation runs the scenario. Cancelling ctx ends it with ctx's error. An error
// wrapping ErrConfig is about cfg.
func RunCoallocation(ctx context.Context, cfg CoallocationConfig) (*Result, error) {
	begun := time.Now()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n, err := New(Config{Seed: cfg.Seed, Inputs: Inputs{
		Submit: func(_ uint64, job *grid.Job) grid.Input { return &koalaSubmit{job} },
	}})
	if err != nil {
		return nil, err
	}
	k, err := newKoala(&cfg)
	if err != nil {
		return nil, err
	}
	if _, err := n.Add(Member{ID: koalaID, New: func(int) (Site, error) { return k, nil }}); err != nil {
		return nil, err
	}
	source := &feed{source: k.source(), homes: []workload.Home{{ID: koalaID, Rating: grid.Rating{Speed: 1, Bandwidth: 1}}}}
	n.Feed(source)
	p := newProgress(cfg.Progress, "coallocation", 0, func() int64 { return source.read })
	n.cfg.Pulse = p.pulse
	var rows *jobRows
	if cfg.Out != "" && cfg.Jobs {
		if rows, err = createRows(cfg.Out); err != nil {
			return nil, err
		}
		n.Observe(Observer{Event: func(_ grid.Time, _ int, e *grid.Event) {
			if e.Kind == grid.JobFinished {
				err = errors.Join(err, rows.write(e, "done"))
			}
		}})
	}
	runErr := n.Run(ctx, grid.Never, nil)
	p.stop()
	if rows != nil {
		err = errors.Join(err, rows.close())
	}
	if err = errors.Join(err, runErr); err == nil && len(k.jobs) > 0 {
		err = fmt.Errorf("at %v %d jobs have not ended, and nothing more happens", n.Now(), len(k.jobs))
	}
	if err != nil {
		return nil, fmt.Errorf("coallocation, seed %d: %w", cfg.Seed, err)
	}
	result := k.result(n, begun)
	if cfg.Out != "" {
		err = result.Save(cfg.Out)
	}
	return result, err
}

const koalaID = grid.SiteID("koala")

// koala is the scheduler with the clusters it schedules. Its placement queue and
// policies are those of package coalloc, its clusters those of package lrms: it takes
// nodes of several clusters in one step, as nothing else does at that instant.
type koala struct {
	cfg      *CoallocationConfig
	app      application
	names    []string
	clusters []*lrms.Cluster
	network  *coalloc.Matrix
	view     *coalloc.View
	queue    *coalloc.Queue
	rng      *rand.PCG // where inputs are
	now      grid.Time
	window   grid.Time // of utilization
	jobs     map[grid.JobID]*koalaJob
	started  []lrms.Request

	total   tally
	sites   []tally
	waiting int64 // node-seconds that wait at the end of the window
	tries   int64
	split   int64 // jobs on several clusters
}

type koalaJob struct {
	CoallocatedJob
	job     *grid.Job
	request coalloc.Request
	parts   []coalloc.Part
}

type koalaSubmit struct{ job *grid.Job }

func newKoala(cfg *CoallocationConfig) (*koala, error) {
	app, err := parseApplication(cfg.Application)
	if err != nil {
		return nil, err
	}
	policy, err := coalloc.ParsePolicy(cfg.Policy)
	if err != nil {
		return nil, configError("policy", "%v", err)
	}
	clusters, network, err := das3(cfg.Without)
	if err != nil {
		return nil, err
	}
	k := &koala{
		cfg: cfg, app: app, network: network, rng: newPCG(cfg.Seed, koalaID, purposeSite),
		window: grid.Time(cfg.Hours) * grid.Hour, jobs: make(map[grid.JobID]*koalaJob), sites: make([]tally, len(clusters)),
	}
	queue := coalloc.QueueConfig{Policy: policy, Interval: cfg.Interval, Max: jobsMax, Patience: cfg.Patience}
	if cfg.Patience == 0 {
		queue.Patience = grid.Never
	}
	if k.queue, err = coalloc.NewQueue(queue); err != nil {
		return nil, err
	}
	var sites []coalloc.Site
	for _, c := range clusters {
		l, err := lrms.New(lrms.Config{Processors: c.nodes})
		if err != nil {
			return nil, err
		}
		k.clusters, k.names = append(k.clusters, l), append(k.names, c.name)
		sites = append(sites, coalloc.Site{ID: grid.SiteID(c.name), Processors: c.nodes, Free: c.nodes, Wait: func(nodes int64) grid.Time {
			return l.EarliestStart(k.now, nodes, app.runTime) - k.now
		}})
	}
	k.view = coalloc.NewView(sites, network)
	if cfg.Group > 0 {
		coalloc.Groups(k.view, cfg.Group)
	}
	for _, size := range cfg.Sizes {
		r := k.request(size)
		err := r.Validate()
		if err == nil {
			err = r.Placeable(k.view)
		}
		if _, ok := policy.Place(nil, &r, k.view, app.runTime); err == nil && !ok {
			err = fmt.Errorf("%s places no job of %d nodes even on idle clusters", policy, size)
		}
		if err != nil {
			return nil, configError("sizes", "%v", err)
		}
	}
	return k, nil
}

// request is what a job of that size asks for.
func (k *koala) request(nodes int64) coalloc.Request {
	return coalloc.Request{Processors: nodes, ClustersMax: k.cfg.MaxClusters, CCR: k.app.ccr}
}

// source is the workload: "The job arrival process is Poisson"; how fast jobs come
// follows from the net utilization.
func (k *koala) source() workload.Source {
	var sizes, nodes int64
	for _, s := range k.cfg.Sizes {
		sizes += s
	}
	for _, s := range k.view.Sites {
		nodes += s.Processors
	}
	mean := float64(k.app.runTime) * float64(sizes) / float64(len(k.cfg.Sizes)) / (float64(nodes) * k.cfg.Utilization / 100)
	return &workload.Poisson{
		Mean: grid.Time(mean), Sizes: k.cfg.Sizes, RunTime: k.app.runTime, Until: k.window,
		RNG: rand.New(newPCG(k.cfg.Seed, koalaID, purposeJob)),
	}
}

// NextTimer implements Site.
func (k *koala) NextTimer() grid.Time { return k.queue.NextTimer() }

// Step implements Site.
func (k *koala) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	k.now = now
	place := func(w *coalloc.Waiting, parts []coalloc.Part) { k.start(w, parts, out) }
	switch in := in.(type) {
	case *koalaSubmit:
		j := &koalaJob{job: in.job, request: k.request(in.job.Processors)}
		j.Processors, j.Submit = in.job.Processors, now
		if k.cfg.InputBytes > 0 {
			holder := k.view.Sites[uniform(k.rng, uint64(len(k.view.Sites)))].ID
			j.request.Inputs = []coalloc.Input{{Bytes: k.cfg.InputBytes, Holders: []grid.SiteID{holder}}}
		}
		k.jobs[in.job.ID] = j
		k.total.submitted++
		out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: in.job})
		if err := k.queue.Add(now, in.job.ID, &j.request, in.job.Estimate); err != nil {
			panic(fmt.Sprintf("testnet: %v", err)) // it has no bound, and every job is new
		}
		k.queue.Try(now, in.job.ID, k.view, place)
	case *grid.TaskEnded:
		k.end(now, in, out)
	case grid.Tick:
		if k.queue.NextTimer() <= now {
			k.queue.Scan(now, k.view, place)
		}
	default:
		panic(fmt.Sprintf("testnet: unknown input %T", in))
	}
}

// start takes the nodes of a job that has been placed.
func (k *koala) start(w *coalloc.Waiting, parts []coalloc.Part, out *grid.Outbox) {
	j := k.jobs[w.Job]
	j.parts = slices.Clone(parts)
	startup := k.cfg.Startup
	for _, p := range parts {
		startup = max(startup, k.cfg.Startup+coalloc.Transfer(j.request.Inputs, k.view, int(p.Site)))
	}
	span := j.job.RunTime + j.job.RunTime*grid.Time(coalloc.Slowdown(k.app.ccr, parts, k.network))/1000
	for i, p := range parts {
		r := lrms.Request{ID: grid.TaskID{Job: w.Job, Epoch: uint32(i)}, Processors: p.Processors, Estimate: startup + span}
		if err := k.clusters[p.Site].Submit(k.now, r); err != nil {
			panic(fmt.Sprintf("testnet: %s: %v", k.names[p.Site], err))
		}
		if k.started = k.clusters[p.Site].Schedule(k.now, k.started[:0]); len(k.started) != 1 {
			panic(fmt.Sprintf("testnet: %s starts %d jobs for one component that fits", k.names[p.Site], len(k.started)))
		}
	}
	j.Placed, j.Start, j.Clusters, j.Tries = k.now, k.now+startup, coalloc.Clusters(parts), w.Tries
	run := *j.job
	run.RunTime = startup + span
	out.Start(grid.Task{ID: grid.TaskID{Job: w.Job, Epoch: 1}, Job: &run})
}

// end gives the nodes of a job back and accounts for it.
func (k *koala) end(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) {
	j := k.jobs[in.ID.Job]
	delete(k.jobs, in.ID.Job)
	j.End = now
	for i, p := range j.parts {
		k.clusters[p.Site].Ended(now, grid.TaskID{Job: in.ID.Job, Epoch: uint32(i)})
		x := executionTimes{processors: p.Processors, wait: j.Start - j.Submit, start: j.Start, end: now, window: k.window}
		executed(&k.sites[p.Site], &k.sites[p.Site], nil, &x)
	}
	k.view.Give(j.parts)
	x := executionTimes{processors: j.Processors, wait: j.Start - j.Submit, start: j.Start, end: now, window: k.window}
	executed(&k.total, &k.total, nil, &x)
	k.total.finished++
	k.tries += int64(j.Tries)
	if j.Clusters > 1 {
		k.split++
	}
	if j.Placed > k.window {
		k.waiting += j.Processors * int64(j.job.RunTime/grid.Second)
	}
	if k.cfg.Ended != nil {
		k.cfg.Ended(j.CoallocatedJob)
	}
	out.Tell(grid.Event{Kind: grid.JobFinished, Job: j.job, Epoch: 1, Site: koalaID, Result: in.Result})
}

// result works the figures out. Those of a cluster are of the components that ran
// there; utilization is without startups, as the paper's.
func (k *koala) result(n *Network, begun time.Time) *Result {
	report := &coallocationReport{CoallocationConfig: *k.cfg, Seconds: seconds(k.app.runTime), CCR: Decimal(k.app.ccr / 10)}
	r := &Result{
		Scenario: "coallocation", Seed: k.cfg.Seed, Mode: "virtual", Config: report,
		TraceHash: fmt.Sprintf("%016x", n.TraceHash()), Events: n.Events(), VirtualSeconds: seconds(n.Now()),
		Messages: Messages{ByType: n.messages().SentByName()},
	}
	var nodes int64
	for i := range k.sites {
		processors := k.view.Sites[i].Processors
		nodes += processors
		r.Sites = append(r.Sites, SiteResult{k.names[i], processors, k.sites[i].stats(processors, k.window)})
	}
	r.Total = k.total.stats(nodes, k.window)
	r.Total.Coallocated = k.split
	if k.total.submitted > 0 {
		report.Tries = Decimal(100 * k.tries / k.total.submitted)
	}
	report.Waiting = Decimal(100 * k.waiting / nodes)
	r.WallSeconds = seconds(grid.FromDuration(time.Since(begun)))
	return r
}
