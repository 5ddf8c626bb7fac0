package coallocation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

const koalaID = grid.SiteID("koala")

// koala is the network of KOALA: a site without processors, which divides jobs over the
// clusters of DAS-3 and knows them from the beginning, and the clusters, which lend.
// Messages take no time and none is lost, so holding, claiming and starting a job are of
// one instant. It is told how long each cluster would let a job wait, as KOALA asks the
// clusters' resource managers.
type koala struct {
	cfg      *Config
	app      application
	policy   coalloc.Policy
	n        *testnet.Network
	clusters []cluster
	network  *coalloc.Matrix
	view     *coalloc.View
	rng      *rand.PCG // where inputs are
	window   grid.Time // of utilization
	jobs     map[grid.JobID]*running

	total    measure.Tally
	sites    []measure.Tally
	waiting  int64 // node-seconds that wait at the end of the window
	tries    int64
	split    int64 // jobs on several clusters
	failures int64
	open     int64  // jobs that have not ended
	users    *users // nil: there is no background load
	polled   grid.Time
	failed   error
}

// cluster is a lender.
type cluster struct {
	das3Cluster
	index int // in the network
	*site.Site
}

// running is a job from its start to its end.
type running struct {
	Job
	parts   []coalloc.Part
	runTime grid.Time // within one cluster
}

func newKoala(cfg *Config, n *testnet.Network) (*koala, error) {
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
		cfg: cfg, app: app, policy: policy, n: n, network: network, rng: draw.PCG(cfg.Seed, koalaID, draw.ForSite),
		window: grid.Time(cfg.Hours) * grid.Hour, jobs: make(map[grid.JobID]*running), sites: make([]measure.Tally, len(clusters)),
	}
	k.clusters = make([]cluster, len(clusters))
	var sites []coalloc.Site
	for i, c := range clusters {
		k.clusters[i].das3Cluster = c
		sites = append(sites, coalloc.Site{ID: grid.SiteID(c.name), Name: c.name, Processors: c.nodes, Free: c.nodes, Wait: func(nodes int64) grid.Time {
			return k.clusters[i].Wait(k.n.Now(), nodes, app.runTime)
		}})
	}
	k.view = coalloc.NewView(sites, network)
	k.view.Penalty = das3Penalty
	if cfg.Group > 0 {
		coalloc.Groups(k.view, cfg.Group)
	}
	if cfg.RunTime > 0 {
		k.app.runTime = cfg.RunTime
	}
	if err := k.checkSizes(); err != nil {
		return nil, err
	}
	return k, k.join()
}

// checkSizes tries every size on idle clusters: nothing may fail later.
func (k *koala) checkSizes() error {
	flag := "sizes"
	if k.cfg.Components != "" {
		flag = "components"
		r, err := coalloc.ParseComponents(k.cfg.Components)
		if err != nil {
			return scenario.ConfigError(flag, "%v", err)
		}
		k.cfg.Sizes = []int64{r.Processors}
	}
	for _, size := range k.cfg.Sizes {
		j := grid.Job{Resources: grid.Resources{Processors: size}, Tasks: size}
		j.Coallocate = k.division()
		r, err := coalloc.OfJob(&j)
		if err == nil {
			err = r.Placeable(k.view)
		}
		if err == nil {
			if _, ok := k.policy.Place(nil, &r, k.view, k.app.runTime); !ok {
				err = fmt.Errorf("%s places no job of %d nodes even on idle clusters", k.policy, size)
			}
		}
		if err != nil {
			return scenario.ConfigError(flag, "%v", err)
		}
	}
	return nil
}

// division says how a job may be divided.
func (k *koala) division() *grid.Coallocation {
	c := &grid.Coallocation{SitesMax: int64(k.cfg.MaxClusters), CCR: k.app.ccr, Policy: k.policy.String()}
	if c.Components = k.cfg.Components; c.Components == "" {
		c.Count = "1.."
	}
	return c
}

// dress says how a job may be divided, and what it reads.
func (k *koala) dress(j *grid.Job) {
	j.Coallocate = k.division()
	if k.cfg.Speeds { // the slowest cluster may take it
		j.Estimate = k.computing(j.RunTime, nil)
		j.Work = grid.WorkOf(j.Estimate, 0, grid.Rating{Speed: 1, Bandwidth: 1})
	}
	if k.cfg.InputBytes > 0 {
		holder := int(draw.Uniform(k.rng, uint64(len(k.clusters))))
		j.Inputs = []grid.DataSet{k.fileOf(holder)}
	}
}

// fileOf is the file that one cluster holds.
func (k *koala) fileOf(cluster int) grid.DataSet {
	return grid.DataSet{Name: "input-" + strconv.Itoa(cluster+1), Size: k.cfg.InputBytes}
}

// source is the workload: "The job arrival process is Poisson"; how fast jobs come
// follows from the net utilization.
func (k *koala) source() workload.Source {
	var sizes, nodes int64
	for _, s := range k.cfg.Sizes {
		sizes += s
	}
	for _, c := range k.clusters {
		nodes += c.nodes
	}
	mean := float64(k.app.runTime) * float64(sizes) / float64(len(k.cfg.Sizes)) / (float64(nodes) * k.cfg.Utilization / 100)
	return &workload.Poisson{
		Mean: grid.Time(mean), Sizes: k.cfg.Sizes, RunTime: k.app.runTime, Until: k.window,
		RNG: rand.New(draw.PCG(k.cfg.Seed, koalaID, draw.ForJobs)),
	}
}

// join adds the scheduler and its clusters to the network.
func (k *koala) join() error {
	queue := coalloc.QueueConfig{Policy: k.policy, Interval: k.cfg.Interval, Max: scenario.JobsMax, Patience: k.cfg.Patience}
	if k.cfg.Patience == 0 {
		queue.Patience = grid.Never
	}
	common := site.Config{
		Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Parts: site.Leases,
		Limits: site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax},
	}
	if k.cfg.InputBytes > 0 {
		common.Parts |= site.Data
		common.Directory.Federation = "coallocation"
	}
	here := common
	here.ID, here.Name, here.Sites = koalaID, string(koalaID), k.view
	here.Parts |= site.Coallocation
	// A lease lasts as long as its job, with a second for what clocks may differ.
	here.Coallocation = coalloc.CoordinatorConfig{Queue: queue, Slack: k.cfg.Startup + grid.Second}
	if _, err := k.n.Add(testnet.Member{ID: koalaID, New: func(int) (testnet.Site, error) {
		s, err := site.New(here, draw.PCG(k.cfg.Seed, koalaID, draw.ForClaims).Uint64())
		return &runner{Site: s, koala: k}, err
	}}); err != nil {
		return err
	}
	for i := range k.clusters {
		c := &k.clusters[i]
		there := common
		there.ID, there.Name, there.Processors, there.Lease.Lend = grid.SiteID(c.name), c.name, c.nodes, true
		at, err := k.n.Add(testnet.Member{ID: there.ID, New: func(int) (_ testnet.Site, err error) {
			c.Site, err = site.New(there, draw.PCG(k.cfg.Seed, there.ID, draw.ForSite).Uint64())
			return c.Site, err
		}})
		if err != nil {
			return err
		}
		c.index = at
		if k.cfg.InputBytes > 0 {
			k.n.Inject(0, at, &dataset.Hold{Set: dataset.Set{DataSet: k.fileOf(i), Path: "/input", Shared: true}})
		}
	}
	if k.cfg.Background > 0 {
		k.users = newUsers(k)
		if _, err := k.n.Add(testnet.Member{ID: usersID, New: func(int) (testnet.Site, error) { return k.users, nil }}); err != nil {
			return err
		}
	}
	k.n.Observe(testnet.Observer{Event: k.event})
	return nil
}

// event follows the jobs. Nothing fails here: every size was tried at first.
func (k *koala) event(now grid.Time, _ int, e *grid.Event) {
	if e.Job.Home != koalaID {
		k.users.event(now, e)
		return
	}
	switch e.Kind {
	case grid.JobSubmitted:
		k.total.Submitted++
		k.open++
	case grid.JobFinished:
		k.open--
		k.end(now, e.Job.ID)
	case grid.JobRefused, grid.JobReplaced, grid.JobCancelled:
		if k.failed == nil {
			k.failed = fmt.Errorf("job %s is %s at %v: %s", e.Job.ID, e.Kind, k.n.Now(), e.Text)
		}
	}
}

// end accounts for a job, and for its components at the clusters.
func (k *koala) end(now grid.Time, id grid.JobID) {
	j := k.jobs[id]
	delete(k.jobs, id)
	j.End = now
	for _, p := range j.parts {
		site := &k.sites[p.Site]
		t := measure.Times{Processors: p.Processors, Wait: j.Start - j.Submit, Start: j.Start, End: now, Window: k.window}
		measure.Account(site, site, nil, &t)
		site.Finished++
	}
	t := measure.Times{Processors: j.Processors, Wait: j.Start - j.Submit, Start: j.Start, End: now, Window: k.window}
	measure.Account(&k.total, &k.total, nil, &t)
	k.total.Finished++
	k.tries += int64(j.Tries)
	k.failures += int64(j.Failures)
	if j.Clusters > 1 {
		k.split++
	}
	if j.Placed > k.window {
		k.waiting += j.Processors * int64(j.runTime/grid.Second)
	}
	if k.cfg.Ended != nil {
		k.cfg.Ended(j.Job)
	}
}

// result works the figures out. Those of a cluster are of components: its jobs are
// those it was asked to hold processors for; utilization is without startups, as the paper's.
func (k *koala) result(begun time.Time) *measure.Result {
	report := &coallocationReport{Config: *k.cfg, Seconds: measure.Seconds(k.app.runTime), CCR: measure.Decimal(k.app.ccr / 10)}
	r := &measure.Result{
		Scenario: "coallocation", Seed: k.cfg.Seed, Mode: "virtual", Config: report,
		TraceHash: fmt.Sprintf("%016x", k.n.TraceHash()), Events: k.n.Events(), VirtualSeconds: measure.Seconds(k.n.Now()),
		Messages: measure.Messages{ByType: measure.Sent(k.n).SentByName()},
	}
	var nodes int64
	for i := range k.sites {
		c := &k.clusters[i]
		nodes += c.nodes
		asked := c.Delegations()
		k.sites[i].Submitted, k.sites[i].Rejected = asked.Served+asked.Rejected, asked.Rejected
		r.Sites = append(r.Sites, measure.SiteResult{Name: c.name, Processors: c.nodes, Stats: k.sites[i].Stats(c.nodes, k.window)})
	}
	r.Total = k.total.Stats(nodes, k.window)
	r.Total.Coallocated = k.split
	if k.total.Submitted > 0 {
		report.Tries = measure.Decimal(100 * k.tries / k.total.Submitted)
		report.Failed = measure.Decimal(100 * k.failures / k.total.Submitted)
	}
	if k.users != nil {
		report.Most = measure.Decimal(100 * 100 * k.users.most / nodes)
		report.Busy = measure.Decimal(100 * 100 * k.users.area / (nodes * int64(k.window)))
	}
	report.Waiting = measure.Decimal(100 * k.waiting / nodes)
	r.WallSeconds = measure.Seconds(grid.FromDuration(time.Since(begun)))
	return r
}

// partsOf returns where a gang runs, by the clusters' numbers, and how many clusters those are.
func (k *koala) partsOf(g *grid.Gang) (parts []coalloc.Part, clusters int) {
	for i, p := range g.Parts {
		at := slices.IndexFunc(k.clusters, func(c cluster) bool { return grid.SiteID(c.name) == p.Site })
		parts = append(parts, coalloc.Part{Component: int32(i), Site: int32(at), Processors: p.Processors})
	}
	return parts, coalloc.Clusters(parts)
}
