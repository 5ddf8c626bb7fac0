package packing

import (
	"context"
	"fmt"
	"io"
	"time"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
)

// headRun runs the scenario with the sites of production: a head without processors of
// its own, to which all jobs are submitted, and a member for each cluster.
type headRun struct {
	cfg   *Config
	jobs  *packingJobs
	n     *testnet.Network
	made  *executed
	fed   int   // jobs handed to the network
	err   error // a job that was not done
	begin grid.Time
}

// warmUp is how long members are heard before jobs come, and rest how long they are heard
// after a batch that the next one is not to meet.
const (
	warmUp = grid.Minute
	rest   = 10 * grid.Second
)

// head is the site to which jobs are submitted, and network index 0.
const head grid.SiteID = "head"

// speedUnit is the speed of a service rate of 1.
const speedUnit = 1000

func newHeadRun(cfg *Config, weights []titan.Weights) (*headRun, error) {
	h := &headRun{cfg: cfg, jobs: newPackingJobs(cfg), begin: warmUp}
	policy, err := muscle.ParsePolicy(cfg.Policy)
	if err != nil {
		return nil, scenario.ConfigError("policy", "%v", err)
	}
	heads := muscle.HeadConfig{Policy: policy, Batch: muscle.BatchMax}
	switch {
	case cfg.Collect == CollectMakespan:
		heads.Collect, heads.Threshold = muscle.CollectMakespan, micros(cfg.Threshold)
	case cfg.Deadlines == "arrival":
		heads.Window = micros(h.window())
	}
	if h.n, err = testnet.New(testnet.Config{Seed: cfg.Seed, Inputs: scenario.Inputs()}); err != nil {
		return nil, err
	}
	h.made = newExecuted(weights, h.jobs.clusters)
	var names []string
	for _, d := range cfg.described() {
		names = append(names, d.Name)
	}
	if err := h.add(site.Config{ID: head, Heads: site.HeadsConfig{Members: names, HeadConfig: heads}}); err != nil {
		return nil, err
	}
	for i, c := range h.jobs.clusters {
		member := site.Config{ID: grid.SiteID(names[i]), Head: head, Weights: weights[i]}
		member.Processors, member.Speed = int64(c.processors), speedUnit*c.rate/rateUnit
		if err := h.add(member); err != nil {
			return nil, err
		}
	}
	h.n.Observe(testnet.Observer{Event: h.observe})
	return h, nil
}

// window is how long the head collects jobs of a batch, in seconds.
func (h *headRun) window() float64 {
	if h.cfg.Window > 0 {
		return h.cfg.Window
	}
	return h.jobs.window()
}

// add adds a site.
func (h *headRun) add(cfg site.Config) error {
	cfg.Name, cfg.Price = string(cfg.ID), grid.Credit
	if cfg.Speed == 0 {
		cfg.Speed = speedUnit
	}
	cfg.Bandwidth = speedUnit
	cfg.Limits = site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax}
	cfg.Parts = site.Market | site.Quotes | site.Packing | site.Gossip
	cfg.Directory = directory.Config{Federation: "virtual", Topic: "load"}
	at, err := h.n.Add(testnet.Member{ID: cfg.ID, Rating: cfg.Rating, New: func(int) (testnet.Site, error) {
		return site.New(cfg, draw.PCG(h.cfg.Seed, cfg.ID, draw.ForSite).Uint64())
	}})
	if err == nil {
		h.n.Subscribe("load", at)
	}
	return err
}

// observe notes when jobs are given to members, and what became of them.
func (h *headRun) observe(now grid.Time, at int, e *grid.Event) {
	if at != 0 {
		return
	}
	switch e.Kind {
	case grid.JobPlaced:
		h.made.placed(now, e.Job.ID)
	case grid.JobFinished:
		cluster, _ := h.n.Index(e.Site)
		h.made.finished(cluster-1, e)
	case grid.JobRefused, grid.JobCancelled:
		if h.err == nil {
			h.err = fmt.Errorf("job %v is %v: %s", e.Job.ID, e.Kind, e.Text)
		}
	}
}

// job makes what is submitted of what was drawn.
func (h *headRun) job(at grid.Time, j *muscle.Job) *grid.Job {
	h.fed++
	span := j.Spans[0] // the first cluster's rate is 1
	out := &grid.Job{
		ID: grid.JobID{Hi: h.cfg.Seed, Lo: uint64(h.fed)}, Home: head, Submit: at, Tasks: int64(j.Processors),
		Estimate: span, RunTime: span, Work: grid.WorkOf(span, 0, grid.Rating{Speed: speedUnit, Bandwidth: speedUnit}),
		Budget: grid.NoBudget, Deadline: at + j.Deadline - j.Arrival,
	}
	out.Processors = out.Tasks
	return out
}

// Next implements testnet.Source: a Poisson process at the load of the configuration.
func (h *headRun) Next() (*grid.Job, int, error) {
	if h.fed >= h.cfg.Total {
		return nil, 0, io.EOF
	}
	rate := float64(h.cfg.Queue) / h.jobs.window() * h.cfg.Load / 100
	h.begin += micros(h.jobs.rng.ExpFloat64() / rate)
	j := h.jobs.job(0)
	return h.job(h.begin, &j), 0, nil
}

// batch is a testnet.Source of jobs that are in order of submission.
type batch []*grid.Job

func (b *batch) Next() (*grid.Job, int, error) {
	if len(*b) == 0 {
		return nil, 0, io.EOF
	}
	job := (*b)[0]
	*b = (*b)[1:]
	return job, 0, nil
}

// next draws the batch that is submitted from an instant on.
func (h *headRun) next(from grid.Time) *batch {
	var drawn muscle.Batch
	h.jobs.fill(&drawn)
	span := grid.Time(0)
	if h.cfg.Deadlines == "arrival" {
		span = micros(h.window())
	}
	var b batch
	for i := range drawn.Jobs {
		b = append(b, h.job(max(from+span+drawn.Jobs[i].Arrival, from), &drawn.Jobs[i]))
	}
	return &b
}

// run runs until so many jobs have ended.
func (h *headRun) run(ctx context.Context, until grid.Time, jobs int) error {
	err := h.n.Run(ctx, until, func() bool { return h.err != nil || h.made.done() >= jobs })
	if err == nil {
		err = h.err
	}
	if err == nil && until == grid.Never && h.made.done() < jobs {
		err = fmt.Errorf("%d of %d jobs have ended, and nothing more happens", h.made.done(), jobs)
	}
	return err
}

// all runs the scenario to its end.
func (h *headRun) all(ctx context.Context, pulse func()) error {
	h.n.Pulse(pulse)
	if h.cfg.Collect == CollectMakespan {
		h.n.Feed(h)
		return h.run(ctx, grid.Never, h.cfg.Total)
	}
	for at := h.begin; h.fed < h.cfg.Total; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.n.Run(ctx, at, nil); err != nil {
			return err
		}
		h.n.Feed(h.next(at))
		if h.cfg.Window > 0 {
			at += micros(h.cfg.Window)
			continue
		}
		if err := h.run(ctx, grid.Never, h.fed); err != nil {
			return err
		}
		at = h.n.Now() + rest
	}
	return h.run(ctx, grid.Never, h.fed)
}

// runHeads runs the scenario with a head and its members.
func runHeads(ctx context.Context, cfg *Config, weights []titan.Weights) (*measure.Result, error) {
	begun := time.Now()
	h, err := newHeadRun(cfg, weights)
	if err != nil {
		return nil, err
	}
	bar := scenario.NewProgress(cfg.Progress, "packing", int64(cfg.Total), func() int64 { return int64(h.made.done()) })
	err = h.all(ctx, bar.Pulse)
	bar.Stop()
	if err != nil {
		return nil, fmt.Errorf("packing, seed %d: %w", cfg.Seed, err)
	}
	s := h.made.sums()
	r := s.result(cfg, begun)
	r.TraceHash, r.Events = fmt.Sprintf("%016x", h.n.TraceHash()), h.n.Events()
	r.VirtualSeconds, r.Messages.ByType = measure.Seconds(h.n.Now()), measure.Sent(h.n).SentByName()
	r.Total.AWT = hundredths(h.made.wait())
	if cfg.Collect == CollectMakespan {
		r.Total.QueueLength = hundredths(h.made.waiting())
		// Packings overlap, so idle time does not add up over them.
		h.made.used(r)
	}
	return r, nil
}
