package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/workload"
)

// liveTally turns what live nodes tell and what their executors do into Stats, as
// collector does for virtual ones.
type liveTally struct {
	sites   []workload.Site
	speedup int64
	changed chan struct{} // holds a token when a job is over

	mu      sync.Mutex
	begun   time.Time
	index   map[grid.SiteID]int
	tallies []measure.Tally
	perJob  measure.Histogram
	jobs    scale.Jobs
	ended   int64 // jobs that are over
}

func newLiveTally(sites []workload.Site, speedup int64) *liveTally {
	return &liveTally{
		sites: sites, speedup: speedup, changed: make(chan struct{}, 1),
		index: make(map[grid.SiteID]int), tallies: make([]measure.Tally, len(sites)),
		jobs: scale.Jobs{Jobs: make(map[grid.JobID]*scale.Job)},
	}
}

// add says which node a site has.
func (t *liveTally) add(site int, h *node.Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index[h.ID()] = site
}

// begin sets the instant from which times are counted.
func (t *liveTally) begin(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = at
}

// done reports whether so many jobs are over.
func (t *liveTally) done(total int64) bool { return t.over() >= total }

// over returns how many jobs are over.
func (t *liveTally) over() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// follow accounts for a site's events until ctx ends. It returns why it cannot go on.
func (t *liveTally) follow(ctx context.Context, site int, events *node.Subscription) error {
	for {
		list, err := events.Next(ctx)
		t.events(site, list)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, node.ErrStopped) {
				return nil
			}
			return err
		}
	}
}

func (t *liveTally) events(site int, list []grid.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	home := &t.tallies[site]
	for i := range list {
		e := &list[i]
		t.jobs.Event(int32(site), e)
		switch e.Kind {
		case grid.JobSubmitted:
			home.Submitted++
			continue
		case grid.JobRefused:
			home.Rejected++
		case grid.JobFinished:
			home.Finished++
			home.Spent += e.Cost
			if at, ok := t.index[e.Site]; ok {
				t.tallies[at].Incentive += e.Cost
			}
		case grid.JobCancelled:
		default:
			continue
		}
		t.ended++
		t.perJob.Add(e.Messages)
		home.Sent += int64(e.Messages)
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
}

// execution accounts for a task that ended at a site.
func (t *liveTally) execution(site int, job *grid.Job, start, end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	home, ok := t.index[job.Home]
	if !ok {
		return // of a network before this one
	}
	wait := grid.Time(start.UnixMicro()) - job.Submit
	measure.Account(&t.tallies[home], &t.tallies[site], nil, &measure.Times{
		Processors: job.Processors, Wait: t.scale(max(wait, 0)),
		Start: t.scale(grid.FromDuration(start.Sub(t.begun))), End: t.scale(grid.FromDuration(end.Sub(t.begun))), Window: grid.Never,
	})
}

// scale turns a real span into one of the workload.
func (t *liveTally) scale(span grid.Time) grid.Time { return span * grid.Time(t.speedup) }

// executor returns what makes the executor of a site: timers, at the speed of the
// compressed workload.
func (t *liveTally) executor(site int, rating grid.Rating) func(func(*grid.TaskEnded)) (node.Executor, error) {
	return func(ended func(*grid.TaskEnded)) (node.Executor, error) {
		return &timers{tally: t, site: site, rating: rating, ended: ended, running: make(map[grid.TaskID]*timedTask)}, nil
	}
}

// timers runs tasks as timers: a task takes its job's run time and does nothing.
type timers struct {
	tally  *liveTally
	site   int
	rating grid.Rating
	ended  func(*grid.TaskEnded)

	mu      sync.Mutex
	running map[grid.TaskID]*timedTask
}

type timedTask struct {
	job   *grid.Job
	start time.Time
	timer *time.Timer
}

// Recover implements node.Executor: nothing outlives the process.
func (x *timers) Recover() ([]site.Adopted, []grid.TaskEnded, error) { return nil, nil, nil }

// Start implements node.Executor.
func (x *timers) Start(task grid.Task) {
	span, reason := testnet.RunTime(task.Job, x.rating), ""
	if task.Limit > 0 && span > task.Limit {
		span, reason = task.Limit, testnet.TimeLimit
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &timedTask{job: task.Job, start: time.Now()}
	r.timer = time.AfterFunc(span.Duration(), func() { x.end(task.ID, reason) })
	x.running[task.ID] = r
}

// Kill implements node.Executor.
func (x *timers) Kill(task grid.Task) {
	cause := task.Cause
	if cause == "" {
		cause = "killed"
	}
	x.end(task.ID, cause)
}

// end ends a task, once.
func (x *timers) end(id grid.TaskID, reason string) {
	x.mu.Lock()
	r := x.running[id]
	delete(x.running, id)
	x.mu.Unlock()
	if r == nil {
		return
	}
	r.timer.Stop()
	now := time.Now()
	x.tally.execution(x.site, r.job, r.start, now)
	x.ended(&grid.TaskEnded{ID: id, Result: grid.Result{
		Start: grid.Time(r.start.UnixMicro()), End: grid.Time(now.UnixMicro()), Reason: reason, ExitCode: testnet.ExitCode(reason),
	}})
}

// Acknowledge implements node.Executor.
func (x *timers) Acknowledge([]grid.TaskID) {}

// Close implements node.Executor.
func (x *timers) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.running {
		r.timer.Stop()
	}
	clear(x.running)
	return nil
}

// upReport is the configuration of a live network as a result shows it.
type upReport struct {
	Config
	Inputs []scenario.Input `json:"inputs"`
}

// paperCount returns how many messages of the kinds the paper counts were sent and received.
func paperCount(c *wire.Counter) (count int64) {
	for k := range grid.Kind(wire.KindMax) {
		if wire.Paper(k) {
			count += c.SentOf(k).Messages + c.ReceivedOf(k).Messages
		}
	}
	return count
}

// result works out the Result of a replay.
func (l *Live) result(begun time.Time) (*measure.Result, error) {
	wall := time.Since(begun)
	r := &measure.Result{
		Scenario: "up", Seed: l.cfg.Seed, Mode: "live", Config: &upReport{l.cfg, l.work.Inputs},
		VirtualSeconds: measure.Seconds(l.tally.scale(grid.FromDuration(wall))), WallSeconds: measure.Seconds(grid.FromDuration(wall)),
	}
	var queries measure.Histogram
	counts := make([]int64, len(l.hosts)) // of the paper's kinds
	r.Messages.ByType = make(map[string]int64)
	for i, h := range l.hosts {
		counter := h.Counter()
		counts[i] = paperCount(&counter)
		for name, n := range counter.SentByName() {
			r.Messages.ByType[name] += n
		}
		r.Events += h.Inputs()
		if err := h.Do(context.Background(), func(s *site.Site) { queries.AddAll(s.QueryMessages()) }); err != nil {
			return nil, err
		}
	}
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	r.Messages.PerJob, r.Messages.DirectoryPerQuery = l.tally.perJob.Spread(), queries.Spread()
	var total measure.Tally
	var processors int64
	for i := range l.tally.tallies {
		t := &l.tally.tallies[i]
		t.MessagesRemote = max(counts[i]-t.Sent, 0)
		total.Plus(t)
		s := &l.work.Sites[i]
		processors += s.Processors
		r.Sites = append(r.Sites, measure.SiteResult{Name: s.Name, Processors: s.Processors, Stats: t.Stats(s.Processors, grid.Never)})
	}
	r.Total = total.Stats(processors, grid.Never)
	return r, nil
}
