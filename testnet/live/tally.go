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
	divided int64 // executions at several sites
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

// execution accounts for a task that ended at a site. The squads of a gang start and end
// as one: the first stands for the whole job.
func (t *liveTally) execution(site int, task *grid.Task, start, end time.Time) {
	if task.Squad != nil && task.Squad.Part > 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	job := task.Job
	home, ok := t.index[job.Home]
	if !ok {
		return // of a network before this one
	}
	wait := grid.Time(start.UnixMicro()) - job.Submit
	times := measure.Times{
		Processors: job.Processors, Wait: t.scale(max(wait, 0)),
		Start: t.scale(grid.FromDuration(start.Sub(t.begun))), End: t.scale(grid.FromDuration(end.Sub(t.begun))), Window: grid.Never,
	}
	at := &t.tallies[site]
	switch { // to processors that are lent the job has not gone: they have gone to it
	case task.Squad != nil:
		at, times.Processors = &t.tallies[home], 0
		t.divided++
		for _, part := range task.Squad.Gang.Parts {
			times.Processors += part.Processors
			if lender, known := t.index[part.Site]; known && lender != home {
				measure.Lent(&t.tallies[home], &t.tallies[lender], part.Processors, &times)
			}
		}
	case task.Pilot.Key != 0:
		measure.Lent(&t.tallies[home], at, job.Processors, &times)
		at = &t.tallies[home]
	}
	measure.Account(&t.tallies[home], at, nil, &times)
}

// scale turns a real span into one of the workload.
func (t *liveTally) scale(span grid.Time) grid.Time { return span * grid.Time(t.speedup) }

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
	r.Total.Coallocated = l.tally.divided
	return r, nil
}
