package chaos

import (
	"fmt"
	"slices"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// dividedMax bounds the processors of a job that is divided, and so the tasks that start
// together.
const dividedMax = 24

// divideSome has one job of eight run at several sites at once: half of it at home and
// half at a site that is named, two halves anywhere, or in up to three components. At a home that
// pays little for leases such a job may wait for ever: it has none.
func divideSome(j *grid.Job, f *federation.Builder) {
	if j.ID.Lo%8 != 0 || j.Processors < 2 || j.Processors > dividedMax {
		return
	}
	half := j.Processors / 2
	c := &grid.Coallocation{CCR: -1}
	switch which := j.ID.Lo / 8; which % 3 {
	case 0:
		at := int(which / 3 % uint64(len(f.Sites)))
		other := f.ID(at)
		if other == j.Home || !lends(at) || f.Sites[at].Processors < half {
			return // it would wait for ever
		}
		c.Components = fmt.Sprintf("%d@%s,%d@%s", j.Processors-half, j.Home, half, other)
	case 1:
		c.Components = fmt.Sprintf("%d,%d", j.Processors-half, half)
	default:
		c.Count = "2..3"
	}
	j.Coallocate = c
}

// spreadSome has one job of four run its tasks wherever there are processors for them.
func spreadSome(j *grid.Job) {
	if j.ID.Lo%8 != 4 && j.ID.Lo%8 != 2 {
		return
	}
	j.Spread, j.Tasks, j.Goal, j.Deadline, j.Budget = true, j.Processors, grid.GoalLocal, grid.Never, grid.NoBudget
}

// gangCounts is what a run has seen of jobs at several sites.
type gangCounts struct {
	Begun    int64 `json:"begun"`    // whose squads began to start
	Whole    int64 `json:"whole"`    // all of whose squads ended by themselves
	Broken   int64 `json:"broken"`   // begun, and not whole
	Finished int64 `json:"finished"` // jobs that are done
	Spread   int64 `json:"spread"`   // begun, of jobs that may be spread, on own and leased processors

	Cancelled int64 `json:"cancelled"` // jobs, by their users
}

// gangWatch watches the co-allocated executions of a network:
//
//   - no squad of one, which is its tasks at one site, begins before all have been ready;
//   - it has the components that its user wants, where he wants them;
//   - once a task of one has failed the others end, as soon as its home can have heard it;
//   - a job is done only if all its squads have ended by themselves, and it has failed only for a
//     cause that one of them had: one that has lost a squad is placed again (J-5);
//   - of two executions of a job no squads run at the same time (the checker's J-3), and
//     none outlives the job (atRest).
type gangWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	ready  map[grid.TaskID]bool // squads
	gangs  map[grid.TaskID]*gangRun
	counts gangCounts
	alive  *aliveWatch
	broken map[grid.TaskID]*gangRun // of which a squad has failed, and others are alive
	turns  int
}

// gangRun is one co-allocated execution.
type gangRun struct {
	squads int
	begun  int
	ended  int  // by themselves
	caused bool // one has failed, or was ended for a reason of its own
	home   int
	alive  map[int]int // squads, by site
	failed grid.Time   // when the first squad did, or was lost; 0: none yet
}

// The bounds of what a gangWatch waits for.
const (
	survivorTurns = 64               // of all sites, after which it looks
	survivorMost  = 10 * grid.Minute // until all have heard that a squad has failed: two leases, and a few attempts
)

// endsWithAnother is why a squad ends that has not failed itself.
const endsWithAnother = "the job ends, as another of its tasks did"

func watchGangs(n *testnet.Network, c *testnet.Checker, alive *aliveWatch) *gangWatch {
	w := &gangWatch{n: n, checks: c, alive: alive, ready: make(map[grid.TaskID]bool), gangs: make(map[grid.TaskID]*gangRun), broken: make(map[grid.TaskID]*gangRun)}
	n.Observe(testnet.Observer{
		Ready: func(_ grid.Time, _ int, id grid.TaskID) { w.ready[id] = true },
		Start: func(_ grid.Time, x *testnet.Execution) { w.start(x) },
		End:   w.end,
		Event: func(_ grid.Time, _ int, e *grid.Event) { w.event(e) },
		Turn:  w.turn,
	})
	return w
}

func (w *gangWatch) start(x *testnet.Execution) {
	if x.Squad == nil {
		return
	}
	id := x.Squad.Gang.Task
	g := w.gangs[id]
	if g == nil {
		g = &gangRun{squads: len(x.Squad.Gang.Parts), alive: make(map[int]int)}
		g.home, _ = w.n.Index(x.Job.Home)
		w.gangs[id] = g
		w.counts.Begun++
		if x.Job.Spread && g.squads > 1 {
			w.counts.Spread++
		}
		if at, up := scenario.SiteAt(w.n, g.home); up {
			if v, there := at.Glance(id.Job); there && !divides(v.Job, x.Squad.Gang) {
				w.checks.Violated("job %s, epoch %d, wants components %+v, and begins in %+v", id.Job, id.Epoch, v.Job.Coallocate, x.Squad.Gang.Parts)
			}
		}
		for part := range g.squads {
			if !w.ready[grid.SquadTask(id, part)] {
				w.checks.Violated("job %s, epoch %d, begins with component %d, and component %d was never ready", id.Job, id.Epoch, x.Squad.Part, part)
			}
		}
	}
	g.begun++
	g.alive[x.Site]++
	w.follow(id, g)
}

// divides reports whether a gang is what the owner of a job wants: in order, as many processors as
// each component has, and where it names a site, there.
func divides(j *grid.Job, g *grid.Gang) bool {
	left := j.Processors
	for i := range g.Parts {
		left -= g.Parts[i].Processors
	}
	if left != 0 || j.Coallocate == nil {
		return left == 0
	}
	r, err := coalloc.OfJob(j)
	if err != nil || len(r.Splits) == 0 {
		return err == nil
	}
	return slices.ContainsFunc(r.Splits, func(s coalloc.Split) bool {
		return slices.EqualFunc(s, g.Parts, func(c coalloc.Component, p grid.GangPart) bool {
			return c.Processors == p.Processors && (c.Site == "" || c.Site == p.Site)
		})
	})
}

func (w *gangWatch) end(now grid.Time, x *testnet.Execution) {
	if x.Squad == nil {
		return
	}
	g := w.gangs[x.Squad.Gang.Task]
	switch {
	case !x.Lost && x.Reason == "" && !x.Failed:
		g.ended++
	case g.failed == 0:
		g.failed = now
	}
	g.caused = g.caused || !x.Lost && (x.Failed || x.Reason != "" && x.Reason != endsWithAnother)
	if g.alive[x.Site]--; g.alive[x.Site] == 0 {
		delete(g.alive, x.Site)
	}
	w.follow(x.Squad.Gang.Task, g)
}

// follow notes whether a gang has squads that have to end.
func (w *gangWatch) follow(id grid.TaskID, g *gangRun) {
	if g.failed > 0 && len(g.alive) > 0 {
		w.broken[id] = g
	} else {
		delete(w.broken, id)
	}
}

// turn looks for squads that go on though another has failed.
func (w *gangWatch) turn(now grid.Time, _ int) {
	if w.turns++; w.turns%survivorTurns != 0 {
		return
	}
	for id, g := range w.broken {
		since := now - survivorMost
		if g.failed >= since || !w.alive.calm(since, g.home) {
			continue
		}
		for at := range g.alive {
			if w.alive.calm(since, at) && w.alive.roster.member(g.home, survivorMost) && w.alive.roster.member(at, survivorMost) {
				w.checks.Violated("job %s, epoch %d, goes on at %s, and another part of it has failed at %v", id.Job, id.Epoch, w.n.ID(at), g.failed)
			}
		}
	}
}

// event checks what a home says that has become of a job.
func (w *gangWatch) event(e *grid.Event) {
	if e.Kind == grid.JobCancelled {
		w.counts.Cancelled++
	}
	if e.Kind != grid.JobFinished || e.Job.Coallocate == nil && !e.Job.Spread {
		return
	}
	g := w.gangs[grid.TaskID{Job: e.Job.ID, Epoch: e.Epoch}]
	if why := e.Result.Reason; e.Result.ExitCode != 0 || why != "" {
		if g != nil && g.begun == g.squads && !g.caused && why != vanished && why != vanishedOnce {
			w.checks.Violated("job %s is told to have failed with epoch %d (exit code %d, %q), of which no component has failed", e.Job.ID, e.Epoch, e.Result.ExitCode, why)
		}
		return
	}
	switch {
	case g == nil:
		w.checks.Violated("job %s is done with epoch %d, of which nothing has begun", e.Job.ID, e.Epoch)
	case g.ended != g.squads:
		w.checks.Violated("job %s is done with epoch %d: of %d components %d began and %d ended by themselves", e.Job.ID, e.Epoch, g.squads, g.begun, g.ended)
	}
	w.counts.Finished++
}

// sum counts what the run has seen.
func (w *gangWatch) sum() gangCounts {
	counts := w.counts
	for _, g := range w.gangs {
		if g.ended == g.squads {
			counts.Whole++
		} else {
			counts.Broken++
		}
	}
	return counts
}
