package chaos

import (
	"slices"

	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
)

// histories is a model of jobs: what became of each, kept the plain way from what users are
// told and from what really ran. What sites do has to be one of its runs:
//
//   - placements are numbered upwards, and one number is of one site (J-4, J-6);
//   - a job is done with an execution only that has ended by itself, of the epoch that is
//     told, at that site; and failed for a cause that one had (J-5);
//   - it costs what was agreed for that placement at most, and nothing if nothing of it ran (C-4);
//   - once its user has heard that it is to end, no later epoch of it starts, and it does not
//     end in another way (J-7); and one that is to run again does not end for that;
//   - one that is held, or waits for others, for an instant, or for those of its name, does not
//     start before, and of an array no more run at once than may.
type histories struct {
	n      *testnet.Network
	checks *testnet.Checker
	jobs   map[grid.JobID]*history
	asked  map[uint64]grid.JobID // cancels, by token
	alone  map[string]grid.JobID // singletons that are alive, by home, user and name
	arrays map[grid.JobID]int64  // executions alive of an array's jobs
	clocks *clockWatch           // nil: none jumps
}

// history is what has happened to a job.
type history struct {
	epoch   uint32 // of the latest placement
	site    grid.SiteID
	agreed  grid.Credits
	runs    map[uint32]*run
	outcome string // empty: it is not over
	well    bool   // it ended with exit code 0
	latest  uint32 // epoch that may run though its user has heard that it is to end
	ends    bool   // he has
	sure    bool   // … as it had not ended by then
	met     bool   // it began once
	begun   bool
}

// run is what is left of an execution, the squads of one together.
type run struct {
	site   int
	alive  int
	ended  bool   // by itself
	reason string // else why
	lost   bool
}

func watchHistories(n *testnet.Network, c *testnet.Checker) *histories {
	h := &histories{n: n, checks: c, jobs: make(map[grid.JobID]*history), asked: make(map[uint64]grid.JobID), alone: make(map[string]grid.JobID), arrays: make(map[grid.JobID]int64)}
	n.Observe(testnet.Observer{Event: h.event, Start: h.start, End: h.end, Answer: h.answer})
	return h
}

// of returns the history of a job.
func (h *histories) of(id grid.JobID) *history {
	j := h.jobs[id]
	if j == nil {
		j = &history{runs: make(map[uint32]*run)}
		h.jobs[id] = j
	}
	return j
}

// answer takes what a user is told who wants a job to end.
func (h *histories) answer(_ grid.Time, _ int, a grid.Answer) {
	c, yes := a.Value.(*site.Cancelled)
	id, asked := h.asked[a.Token]
	if !yes || !asked || c.Err != nil {
		return
	}
	j := h.of(id)
	if c.State.Terminal() && j.outcome == "" && c.State != site.CancelledByUser && c.State != site.Refused {
		h.checks.Violated("the user of job %s was told that it is %s, and nobody that it has ended", id, c.State)
	}
	j.ends, j.latest = true, j.epoch
	j.sure = j.sure || c.State == site.Cancelling
	for epoch := range j.runs {
		j.latest = max(j.latest, epoch)
	}
}

func (h *histories) event(now grid.Time, at int, e *grid.Event) {
	j := h.of(e.Job.ID)
	switch e.Kind {
	case grid.JobPlaced:
		if e.Epoch < j.epoch || e.Epoch == j.epoch && e.Site != j.site {
			h.checks.Violated("job %s is placed with epoch %d at %s, after epoch %d at %s", e.Job.ID, e.Epoch, e.Site, j.epoch, j.site)
		}
		j.epoch, j.site, j.agreed = e.Epoch, e.Site, e.Cost
	case grid.JobStarted:
		j.begun = true // so users are told; the tasks of a gang wait for each other still
	case grid.JobFinished:
		h.finished(at, j, e)
		if j.sure {
			h.checks.Violated("job %s has ended as if its user had not been told that it is being cancelled (exit code %d, %q)", e.Job.ID, e.Result.ExitCode, e.Result.Reason)
		}
		j.outcome, j.well = "finished", e.Result.ExitCode == 0 && e.Result.Reason == ""
	case grid.JobRefused, grid.JobCancelled:
		if e.Text == wantedAgain {
			h.checks.Violated("job %s is over (%v), as its user wants it to run again", e.Job.ID, e.Kind)
		}
		j.outcome = e.Kind.String()
	}
}

// finished compares what a home says of the end of a job with what ran.
func (h *histories) finished(at int, j *history, e *grid.Event) {
	r := j.runs[e.Epoch]
	well := e.Result.ExitCode == 0 && e.Result.Reason == ""
	divided := e.Job.Coallocate != nil || e.Job.Spread
	switch {
	case divided: // gangWatch
	case well && (r == nil || !r.ended):
		h.checks.Violated("job %s is done with epoch %d, of which no execution has ended by itself", e.Job.ID, e.Epoch)
	case r != nil && r.ended && !well && e.Result.Reason != "" && e.Result.Reason != vanished && e.Result.Reason != vanishedOnce: // its word may have got lost
		h.checks.Violated("job %s is told to have failed with epoch %d (%q), which has ended by itself", e.Job.ID, e.Epoch, e.Result.Reason)
	case e.Result.Reason == testnet.TimeLimit && (r == nil || r.reason != testnet.TimeLimit):
		h.checks.Violated("job %s is told to have run into its limit with epoch %d, and has not", e.Job.ID, e.Epoch)
	case r != nil && well && h.n.ID(r.site) != e.Site && e.Site != h.n.ID(at):
		h.checks.Violated("job %s is told to have ended at %s with epoch %d, it was at %s", e.Job.ID, e.Site, e.Epoch, h.n.ID(r.site))
	}
	if e.Site != h.n.ID(at) && e.Epoch == j.epoch && (e.Cost > j.agreed || e.Cost > 0 && r == nil && !divided) {
		h.checks.Violated("job %s has cost %v at %s, agreed was %v (begun: %t)", e.Job.ID, e.Cost, e.Site, j.agreed, r != nil)
	}
}

func (h *histories) start(now grid.Time, x *testnet.Execution) {
	j := h.of(x.Job.ID)
	epoch := x.ID.Epoch
	if x.Squad != nil {
		epoch = x.Squad.Gang.Task.Epoch
	}
	r := j.runs[epoch]
	if r == nil || r.alive == 0 && x.Squad == nil {
		r = &run{site: x.Site}
		j.runs[epoch] = r
	}
	r.alive++
	if j.ends && epoch > j.latest {
		h.checks.Violated("job %s starts with epoch %d at %s, after its user was told at epoch %d that it is to end", x.Job.ID, epoch, h.n.ID(x.Site), j.latest)
	}
	if !j.met {
		j.met = true
		h.waited(now, x.Job)
	}
	j.begun = true
	if a := x.Job.Array; a != nil {
		if h.arrays[a.ID]++; h.arrays[a.ID] > a.Most {
			h.checks.Violated("job %s starts as number %d of its array that run at once, %d may", x.Job.ID, h.arrays[a.ID], a.Most)
		}
	}
	if t := x.Job.Terms; t != nil && t.Singleton {
		key := string(x.Job.Home) + "\x00" + x.Job.User + "\x00" + x.Job.Name
		if other, taken := h.alone[key]; taken && other != x.Job.ID {
			h.checks.Violated("job %s starts while job %s runs, and one of them is to run at a time", x.Job.ID, other)
		}
		h.alone[key] = x.Job.ID
	}
}

// waited checks, as a job begins for the first time, that it had not to wait any more.
func (h *histories) waited(now grid.Time, job *grid.Job) {
	t := job.Terms
	if t == nil {
		return
	}
	if home, known := h.n.Index(job.Home); known && t.Begin > 0 && !h.clocks.set(home) && h.n.Clock(home).Local(now) < t.Begin {
		h.checks.Violated("job %s starts at %v of its home's clock, and was to wait until %v", job.ID, h.n.Clock(home).Local(now), t.Begin)
	}
	if len(t.After) == 0 {
		return
	}
	met := func(d grid.Dependency) bool {
		o := h.of(d.Job)
		switch d.Condition {
		case grid.AfterOK:
			return o.well
		case grid.AfterNotOK:
			return o.outcome != "" && !o.well
		case grid.AfterAny:
			return o.outcome != ""
		}
		return o.outcome != "" || o.begun
	}
	unmet := func(d grid.Dependency) bool { return !met(d) }
	if t.Any && !slices.ContainsFunc(t.After, met) || !t.Any && slices.ContainsFunc(t.After, unmet) {
		h.checks.Violated("job %s starts, and what it was to wait for has not happened: %+v", job.ID, t.After)
	}
}

func (h *histories) end(_ grid.Time, x *testnet.Execution) {
	epoch := x.ID.Epoch
	if x.Squad != nil {
		epoch = x.Squad.Gang.Task.Epoch
	}
	r := h.of(x.Job.ID).runs[epoch]
	r.alive--
	r.lost = r.lost || x.Lost
	r.ended, r.reason = !x.Lost && x.Reason == "", x.Reason
	if a := x.Job.Array; a != nil {
		h.arrays[a.ID]--
	}
	if t := x.Job.Terms; t != nil && t.Singleton {
		delete(h.alone, string(x.Job.Home)+"\x00"+x.Job.User+"\x00"+x.Job.Name)
	}
}
