package coallocation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

const koalaID = grid.SiteID("koala")

// koala is the scheduler: a coalloc.Coordinator that claims what it places through a
// lease.Book from the clusters (lender). Messages take no time and none is lost, so
// holding, claiming and starting a job are of one instant. It is told how long each
// cluster would let a job wait, as KOALA asks the clusters' resource managers.
type koala struct {
	cfg      *Config
	app      application
	clusters []*lender
	network  *coalloc.Matrix
	book     *lease.Book
	coord    *coalloc.Coordinator
	rng      *rand.PCG // where inputs are
	now      grid.Time
	window   grid.Time // of utilization
	jobs     map[grid.JobID]*koalaJob

	total   measure.Tally
	sites   []measure.Tally
	waiting int64 // node-seconds that wait at the end of the window
	tries   int64
	split   int64 // jobs on several clusters
}

type koalaJob struct {
	Job
	job     *grid.Job
	request coalloc.Request
	parts   []coalloc.Claimed
}

type koalaSubmit struct{ job *grid.Job }

func newKoala(cfg *Config) (*koala, error) {
	app, err := parseApplication(cfg.Application)
	if err != nil {
		return nil, err
	}
	policy, err := coalloc.ParsePolicy(cfg.Policy)
	if err != nil {
		return nil, scenario.ConfigError("policy", "%v", err)
	}
	clusters, network, err := das3(cfg.Without)
	if err != nil {
		return nil, err
	}
	k := &koala{
		cfg: cfg, app: app, network: network, rng: draw.PCG(cfg.Seed, koalaID, draw.ForSite),
		window: grid.Time(cfg.Hours) * grid.Hour, jobs: make(map[grid.JobID]*koalaJob), sites: make([]measure.Tally, len(clusters)),
	}
	queue := coalloc.QueueConfig{Policy: policy, Interval: cfg.Interval, Max: scenario.JobsMax, Patience: cfg.Patience}
	if cfg.Patience == 0 {
		queue.Patience = grid.Never
	}
	var sites []coalloc.Site
	for _, c := range clusters {
		l, err := newLender(grid.SiteID(c.name), c.nodes)
		if err != nil {
			return nil, err
		}
		k.clusters = append(k.clusters, l)
		sites = append(sites, coalloc.Site{ID: grid.SiteID(c.name), Processors: c.nodes, Free: c.nodes, Wait: func(nodes int64) grid.Time {
			return l.cluster.EarliestStart(k.now, nodes, app.runTime) - k.now
		}})
	}
	view := coalloc.NewView(sites, network)
	if cfg.Group > 0 {
		coalloc.Groups(view, cfg.Group)
	}
	none, err := lrms.New(lrms.Config{}) // it has no nodes of its own
	if err != nil {
		return nil, err
	}
	if k.book, err = lease.New(leaseConfig(koalaID), none); err != nil {
		return nil, err
	}
	// A lease lasts as long as its job, with a second for what clocks may differ.
	coordinator := coalloc.CoordinatorConfig{Queue: queue, Slack: cfg.Startup + grid.Second}
	if k.coord, err = coalloc.NewCoordinator(coordinator, view, k.book, rand.New(draw.PCG(cfg.Seed, koalaID, draw.ForClaims))); err != nil {
		return nil, err
	}
	for _, size := range cfg.Sizes {
		r := k.request(size)
		err := r.Validate()
		if err == nil {
			err = r.Placeable(view)
		}
		if _, ok := policy.Place(nil, &r, view, app.runTime); err == nil && !ok {
			err = fmt.Errorf("%s places no job of %d nodes even on idle clusters", policy, size)
		}
		if err != nil {
			return nil, scenario.ConfigError("sizes", "%v", err)
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
	for _, s := range k.coord.View().Sites {
		nodes += s.Processors
	}
	mean := float64(k.app.runTime) * float64(sizes) / float64(len(k.cfg.Sizes)) / (float64(nodes) * k.cfg.Utilization / 100)
	return &workload.Poisson{
		Mean: grid.Time(mean), Sizes: k.cfg.Sizes, RunTime: k.app.runTime, Until: k.window,
		RNG: rand.New(draw.PCG(k.cfg.Seed, koalaID, draw.ForJobs)),
	}
}

// join adds the scheduler and its clusters to a network.
func (k *koala) join(n *testnet.Network) error {
	if _, err := n.Add(testnet.Member{ID: koalaID, New: func(int) (testnet.Site, error) { return k, nil }}); err != nil {
		return err
	}
	for _, l := range k.clusters {
		if _, err := n.Add(testnet.Member{ID: l.id, New: func(int) (testnet.Site, error) { return l, nil }}); err != nil {
			return err
		}
	}
	return nil
}

// NextTimer implements Site.
func (k *koala) NextTimer() grid.Time { return min(k.coord.NextTimer(), k.book.NextTimer()) }

// Step implements Site.
func (k *koala) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	k.now = now
	first := len(out.Locals)
	k.apply(now, in, out)
	for i := first; i < len(out.Locals); i++ {
		k.apply(now, out.Locals[i], out)
	}
	out.Locals = out.Locals[:first]
}

func (k *koala) apply(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case *koalaSubmit:
		k.submit(now, in.job, out)
	case *grid.TaskEnded:
		k.coord.Step(now, &coalloc.Finish{Job: in.ID.Job}, out)
		k.end(now, in, out)
	case *grid.Delivery, *grid.Undelivered:
		k.book.Step(now, in, out)
	case grid.Tick:
		k.book.Step(now, in, out)
		k.coord.Step(now, in, out)
	case *coalloc.Start:
		k.start(in, out)
	case *coalloc.Rejected, *coalloc.Aborted, *coalloc.Broken:
		panic(fmt.Sprintf("testnet: nothing fails here, and yet: %+v", in)) // every size was tried at first
	default:
		k.coord.Step(now, in, out) // what the book tells
	}
}

// submit hands a job over.
func (k *koala) submit(now grid.Time, job *grid.Job, out *grid.Outbox) {
	j := &koalaJob{job: job, request: k.request(job.Processors)}
	j.Processors, j.Submit = job.Processors, now
	if k.cfg.InputBytes > 0 {
		sites := k.coord.View().Sites
		holder := sites[draw.Uniform(k.rng, uint64(len(sites)))].ID
		j.request.Inputs = []coalloc.Input{{Bytes: k.cfg.InputBytes, Holders: []grid.SiteID{holder}}}
	}
	k.jobs[job.ID] = j
	k.total.Submitted++
	out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: job})
	k.coord.Step(now, &coalloc.Submit{Task: grid.TaskID{Job: job.ID, Epoch: 1}, Request: &j.request, Estimate: job.Estimate}, out)
}

// start runs a job whose parts are all claimed.
func (k *koala) start(in *coalloc.Start, out *grid.Outbox) {
	j, view := k.jobs[in.Task.Job], k.coord.View()
	j.parts = in.Parts
	startup := k.cfg.Startup
	var parts []coalloc.Part
	for _, p := range in.Parts {
		at := view.Index(p.Site)
		parts = append(parts, coalloc.Part{Component: p.Component, Site: int32(at), Processors: p.Processors})
		startup = max(startup, k.cfg.Startup+coalloc.Transfer(j.request.Inputs, view, at))
	}
	span := j.job.RunTime + j.job.RunTime*grid.Time(coalloc.Slowdown(k.app.ccr, parts, k.network))/1000
	j.Placed, j.Start, j.Clusters, j.Tries = k.now, k.now+startup, coalloc.Clusters(parts), in.Tries
	run := *j.job
	run.RunTime = startup + span
	out.Start(grid.Task{ID: in.Task, Job: &run})
}

// end accounts for a job, and for its components at the clusters.
func (k *koala) end(now grid.Time, in *grid.TaskEnded, out *grid.Outbox) {
	j := k.jobs[in.ID.Job]
	delete(k.jobs, in.ID.Job)
	j.End = now
	for _, p := range j.parts {
		site := &k.sites[k.coord.View().Index(p.Site)]
		x := measure.Times{Processors: p.Processors, Wait: j.Start - j.Submit, Start: j.Start, End: now, Window: k.window}
		measure.Account(site, site, nil, &x)
		site.Finished++
	}
	x := measure.Times{Processors: j.Processors, Wait: j.Start - j.Submit, Start: j.Start, End: now, Window: k.window}
	measure.Account(&k.total, &k.total, nil, &x)
	k.total.Finished++
	k.tries += int64(j.Tries)
	if j.Clusters > 1 {
		k.split++
	}
	if j.Placed > k.window {
		k.waiting += j.Processors * int64(j.job.RunTime/grid.Second)
	}
	if k.cfg.Ended != nil {
		k.cfg.Ended(j.Job)
	}
	out.Tell(grid.Event{Kind: grid.JobFinished, Job: j.job, Epoch: 1, Site: koalaID, Result: in.Result})
}

// result works the figures out. Those of a cluster are of components: its jobs are
// those it was asked to hold processors for; utilization is without startups, as the paper's.
func (k *koala) result(n *testnet.Network, begun time.Time) *measure.Result {
	report := &coallocationReport{Config: *k.cfg, Seconds: measure.Seconds(k.app.runTime), CCR: measure.Decimal(k.app.ccr / 10)}
	r := &measure.Result{
		Scenario: "coallocation", Seed: k.cfg.Seed, Mode: "virtual", Config: report,
		TraceHash: fmt.Sprintf("%016x", n.TraceHash()), Events: n.Events(), VirtualSeconds: measure.Seconds(n.Now()),
		Messages: measure.Messages{ByType: measure.Sent(n).SentByName()},
	}
	var nodes int64
	for i := range k.sites {
		processors := k.clusters[i].cluster.Processors()
		nodes += processors
		asked := &k.clusters[i].matches.Delegations
		k.sites[i].Submitted, k.sites[i].Rejected = asked.Served+asked.Rejected, asked.Rejected
		r.Sites = append(r.Sites, measure.SiteResult{Name: string(k.clusters[i].id), Processors: processors, Stats: k.sites[i].Stats(processors, k.window)})
	}
	r.Total = k.total.Stats(nodes, k.window)
	r.Total.Coallocated = k.split
	if k.total.Submitted > 0 {
		report.Tries = measure.Decimal(100 * k.tries / k.total.Submitted)
	}
	report.Waiting = measure.Decimal(100 * k.waiting / nodes)
	r.WallSeconds = measure.Seconds(grid.FromDuration(time.Since(begun)))
	return r
}
