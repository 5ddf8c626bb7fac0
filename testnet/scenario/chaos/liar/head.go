package liar

import (
	"fmt"
	"slices"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/site"
)

// head is a play in which a site that heads clusters hears of two that are wider than itself, so
// that jobs too wide for it are theirs. What it makes of such jobs is compared with what it knows:
//
//   - each is given, within a window and a little, to a cluster that is wide enough, that has been
//     heard of, and that has not just refused it, as soon as there is one (J-8);
//   - one that its user has taken back is given to nobody (J-7), one that comes again once;
//   - what users are told counts with what the clusters have promised.
type head struct {
	t        *Twin
	window   grid.Time
	clusters [2]cluster // a narrow one, and a wide one
	own      int64      // processors
	mine     map[grid.JobID]*given
	full     bool // the clusters refuse all jobs
	wrong    error
}

// cluster is a member of a head.
type cluster struct {
	id         grid.SiteID
	processors int64
	mute       bool // it has not been heard of for long
}

// given is what has become of a job of the play.
type given struct {
	job   *grid.Job
	to    []grid.SiteID // who was asked to take it
	taken uint32        // the epoch with which a cluster has taken it; nobody renews its lease, so another may come
	back  bool          // its user has taken it back
}

// The bounds of a play with a head.
const (
	headBeat  = 5 * grid.Second  // after which a cluster is heard of again
	headQuiet = 30 * grid.Second // after which one is not there that nobody has heard of
	headWaits = 10 * grid.Second // more than jobs wait after a window, or after a refusal
	headTicks = 2000             // timers of a beat at most
)

// Head has a site that heads clusters share jobs out over two of them.
func (t *Twin) Head(cfg *site.HeadsConfig) error {
	h := &head{t: t, window: cfg.Window, own: t.Site.Offer().Processors, mine: make(map[grid.JobID]*given)}
	// Of jobs that a cluster has already it says nothing, so that it soon counts as unreachable.
	has := make(map[grid.SiteID]bool)
	t.Site.Jobs(func(v site.View) bool {
		has[v.Award.Site] = has[v.Award.Site] || !v.State.Terminal()
		return true
	})
	var there []grid.SiteID
	for _, name := range cfg.Members {
		if id := grid.SiteID(name); slices.Contains(t.Then, id) && !has[id] {
			there = append(there, id)
		}
	}
	runsShort := cfg.Collect == muscle.CollectMakespan && cfg.Threshold < muscle.ThresholdMax // jobs wait while no cluster does
	if len(there) < len(h.clusters) || runsShort || t.Site.Draining() {
		return nil
	}
	for i := range h.clusters {
		h.clusters[i] = cluster{id: there[i], processors: h.own + 8<<i}
	}
	for _, act := range []func(){h.taken, h.promised, h.refused, h.silent} {
		if act(); h.wrong != nil {
			return fmt.Errorf("it heads %s with %d processors and %s with %d: %w", there[0], h.clusters[0].processors, there[1], h.clusters[1].processors, h.wrong)
		}
	}
	return nil
}

// taken has more jobs come at once than a batch of chaos holds. Before that one comes and is taken
// back while another waits: as if it had never been there.
func (h *head) taken() {
	h.pass(headBeat) // so that the clusters have been heard of
	wide := h.clusters[1].processors
	jobs := []*given{h.submit(h.own + 1)}
	collected, _ := h.packing().Waiting()
	told := h.preview(wide)
	if back := h.submit(wide); len(back.to) == 0 {
		back.back = true
		h.do(&site.Cancel{Job: back.job.ID, Cause: "its user has taken it back"})
		left, _ := h.packing().Waiting()
		if now := h.preview(wide); len(jobs[0].to) == 0 && (left != collected || fmt.Sprint(now) != fmt.Sprint(told)) {
			h.wrong = fmt.Errorf("%d jobs wait, and %d did before one came that was taken back; of one more a user is told %+v, and was told %+v", left, collected, first(now), first(told))
			return
		}
		jobs = append(jobs, back)
	}
	h.pass(h.window + headWaits)
	for i := range int64(6) {
		jobs = append(jobs, h.submit(h.own+1+i%4*5))
	}
	h.pass(h.window + headWaits)
	h.all(jobs)
}

// first returns the first of what a user is told.
func first(verdicts []market.Verdict) market.Verdict {
	if len(verdicts) == 0 {
		return market.Verdict{}
	}
	return verdicts[0]
}

// packing is the core that shares jobs out.
func (h *head) packing() *muscle.Head { return site.CoresOf(h.t.Site).Head }

// preview returns what a user is told of a job that he might submit.
func (h *head) preview(processors int64) (verdicts []market.Verdict) {
	out := new(grid.Outbox)
	h.t.Site.Step(h.t.Now, &site.Preview{Job: h.job(processors)}, out) // windows go on meanwhile
	for _, a := range out.Answers {
		if r, yes := a.Value.(*market.PreviewResult); yes {
			verdicts = r.Verdicts
		}
	}
	return verdicts
}

// promised asks when a job would be done that is as wide as the wide cluster, which has promised to
// run another.
func (h *head) promised() {
	wide := &h.clusters[1]
	before := h.submit(wide.processors)
	h.pass(h.window + headWaits)
	h.all([]*given{before})
	if h.wrong != nil || before.taken == 0 {
		return
	}
	least := h.t.Now + grid.Hour - h.window - headWaits + grid.Hour // one after the other
	for _, v := range h.preview(wide.processors) {
		if v.Site == wide.id && v.Finish < least {
			h.wrong = fmt.Errorf("a user is told that a job of an hour would be done at %v at %s, which is full for an hour", v.Finish, wide.id)
		}
	}
}

// refused has a job refused by whoever is asked first.
func (h *head) refused() {
	h.full = true
	job := h.submit(h.own + 1)
	for range (h.window + headWaits) / headBeat {
		if h.pass(headBeat); len(job.to) > 0 {
			break
		}
	}
	h.full = false
	if h.pass(headWaits); len(job.to) == 0 {
		h.all([]*given{job})
		return
	}
	for i := 1; i < len(job.to); i++ {
		if job.to[i] == job.to[i-1] {
			h.wrong = fmt.Errorf("%s has refused a job, and is asked again, though the other cluster could take it", job.to[i])
		}
	}
}

// silent has the wide cluster not be heard of while there is a job that only it can take.
func (h *head) silent() {
	wide := &h.clusters[1]
	wide.mute = true
	h.pass(headQuiet)
	job := h.submit(wide.processors)
	if h.pass(h.window + headWaits); len(job.to) > 0 {
		h.wrong = fmt.Errorf("a job is given to %s, of which nothing was heard for long", job.to[0])
		return
	}
	wide.mute = false
	h.pass(headBeat + h.window + headWaits)
	h.all([]*given{job})
}

// all says which of the jobs were given to nobody, and which to somebody though they were taken back.
func (h *head) all(jobs []*given) {
	for _, g := range jobs {
		v, there := h.t.Site.Glance(g.job.ID)
		switch {
		case h.wrong != nil || !there:
		case g.back && len(g.to) > 0:
			h.wrong = fmt.Errorf("a job is given to %s after its user has taken it back", g.to[0])
		case !g.back && len(g.to) == 0 && v.State == site.Placing:
			h.wrong = fmt.Errorf("a job of %d processors is given to nobody", g.job.Processors)
		}
	}
}

// job makes one up that is shared out.
func (h *head) job(processors int64) *grid.Job {
	task := h.t.task()
	return &grid.Job{
		ID: task.Job, Home: h.t.ID, User: task.Job.String(), Resources: grid.Resources{Processors: processors}, Tasks: 1, Submit: h.t.Now,
		Estimate: grid.Hour, Work: grid.WorkOf(grid.Hour, 0, grid.Rating{Speed: 1000, Bandwidth: 1000}),
		Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalLocal,
	}
}

// submit has a job come.
func (h *head) submit(processors int64) *given {
	g := &given{job: h.job(processors)}
	h.mine[g.job.ID] = g
	h.do(&site.Submit{Job: g.job})
	return g
}

// do gives the site an input, at which time does not pass.
func (h *head) do(in grid.Input) {
	out := new(grid.Outbox)
	h.t.Site.Step(h.t.Now, in, out)
	h.take(out)
}

// pass lets time pass, in which the clusters that are not mute are heard of.
func (h *head) pass(span grid.Time) {
	for end := h.t.Now + span; h.t.Now < end && h.wrong == nil; {
		for i := range h.clusters {
			if c := &h.clusters[i]; !c.mute {
				h.hear(c)
			}
		}
		next := min(h.t.Now+headBeat, end)
		for range headTicks {
			due := h.t.Site.NextTimer()
			if due > next || h.wrong != nil {
				break
			}
			h.t.Now = max(h.t.Now, due)
			h.do(grid.Tick{})
		}
		h.t.Now = next
	}
}

// hear has the site hear how busy a cluster is.
func (h *head) hear(c *cluster) {
	h.t.made++
	h.do(&grid.Delivery{From: c.id, Message: &directory.LoadReport{Load: directory.Load{
		Site: c.id, Free: c.processors, Widest: c.processors, Sequence: 1<<62 + h.t.made, Issued: h.t.Now,
		Headed: directory.Headed{Head: h.t.ID, Name: string(c.id), Processors: c.processors, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}},
	}}})
}

// take answers what the clusters are asked.
func (h *head) take(out *grid.Outbox) {
	for _, s := range out.Sends {
		switch m := s.Message.(type) {
		case *market.Negotiate:
			h.asked(s.To, m)
		case *market.JobSubmission:
			if h.mine[m.Job.ID] != nil {
				h.do(&grid.Delivery{From: s.To, Message: &market.Acknowledge{
					Task: grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}, Of: wire.MarketJobSubmission, Hold: m.Hold,
				}})
			}
		}
	}
}

// asked answers the question whether a cluster takes a job.
func (h *head) asked(to grid.SiteID, m *market.Negotiate) {
	g := h.mine[m.Task.Job]
	r := &market.Reply{Task: m.Task, Request: m.Request, Refusal: market.ByRule, Start: grid.Never, Finish: grid.Never}
	if g == nil { // a job of the site itself
		h.do(&grid.Delivery{From: to, Message: r})
		return
	}
	c := &h.clusters[0]
	if to == h.clusters[1].id {
		c = &h.clusters[1]
	}
	switch {
	case g.taken == m.Task.Epoch:
		h.wrong = fmt.Errorf("%s is asked to take a job that another has taken", to)
	case c.id == to && c.processors < g.job.Processors:
		h.wrong = fmt.Errorf("%s is asked to take a job of %d processors", to, g.job.Processors)
	case c.id == to && !h.full:
		g.taken = m.Task.Epoch
		r.Refusal, r.Hold, r.HoldSpan, r.Start, r.Finish, r.Lease = market.Granted, m.Task.Job.Lo, grid.Minute, 0, grid.Hour, m.Lease
	}
	g.to = append(g.to, to)
	h.do(&grid.Delivery{From: to, Message: r})
}
