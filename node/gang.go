package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/forward"
	"gridnode/node/run"
	"gridnode/node/site"
)

// gangs is the executor of co-allocated jobs, whose tasks run at several sites and
// start together. Every task is one of the executor whose processors it has, this
// site's own or those on lease; here they are made to start, and to end, as one. At the
// sites that lend, it knows which jobs have tasks here, so that they can be reached.
type gangs struct {
	h       *Host
	own     Executor
	away    *away
	forward *forward.Forwarder
	ended   func(*grid.TaskEnded)
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex // nothing of own or away is called with it held
	all  map[grid.TaskID]*gang
	keys map[uint64]forward.ID // of the leases, lent by this site, that tasks of other sites' jobs use
}

// gang is one execution. Its fields are under gangs.mu, but for those that run alone
// uses.
type gang struct {
	x     *gangs
	id    grid.TaskID
	ranks map[int]*gangRank
	wake  chan struct{} // holds a token when something has changed

	task         *grid.Task // nil: only something of it was found after a restart
	kill         bool
	cause        string
	abandon      bool
	acknowledged bool

	inputs   []string  // where the job's inputs are at this site; under gangs.mu
	missing  error     // why they are not there; under gangs.mu
	began    grid.Time // run: when the tasks were told to start; 0 before
	due      time.Time // run: by when all have to be ready
	failure  *grid.TaskEnded
	output   *gangOutput
	reported bool
}

// gangRank is one task of a gang.
type gangRank struct {
	id      grid.TaskID
	part    int // index in grid.Gang.Parts
	away    bool
	ready   bool   // its pilot can start it at once
	begun   bool   // it was told to start
	refused string // why its pilot could not, when it was last asked
	killed  bool
	ended   *grid.TaskEnded
}

// gangReadyMax is how long the pilots of a gang have until all are ready.
const gangReadyMax = time.Minute

func newGangs(h *Host, ended func(*grid.TaskEnded)) *gangs {
	x := &gangs{
		h: h, ended: ended, log: h.log, forward: forward.New(h.id, h.net, h.log.With("part", "forward")),
		all: make(map[grid.TaskID]*gang), keys: make(map[uint64]forward.ID),
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// has reports whether a task is a gang.
func (x *gangs) has(id grid.TaskID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all[id] != nil
}

// get returns a gang, and makes it if need be. The caller holds x.mu.
func (x *gangs) get(id grid.TaskID) *gang {
	g := x.all[id]
	if g == nil {
		g = &gang{x: x, id: id, ranks: make(map[int]*gangRank), wake: make(chan struct{}, 1)}
		x.all[id] = g
	}
	return g
}

func (g *gang) ring() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Recover takes tasks of gangs out of what an earlier run of the host has left. The
// site learns that something of the gang is here, and either starts it again or has it
// killed.
func (x *gangs) Recover(running []site.Adopted, ended []grid.TaskEnded) ([]site.Adopted, []grid.TaskEnded) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ended = slices.DeleteFunc(ended, func(e grid.TaskEnded) bool {
		id, number, yes := grid.GangOf(e.ID)
		if yes {
			x.get(id).ranks[number] = &gangRank{id: e.ID, ready: true, begun: true, ended: &e}
			running = append(running, site.Adopted{ID: e.ID, Start: e.Result.Start})
		}
		return yes
	})
	for _, a := range running {
		if id, number, yes := grid.GangOf(a.ID); yes && x.get(id).ranks[number] == nil {
			x.get(id).ranks[number] = &gangRank{id: a.ID, ready: true, begun: true}
		}
	}
	return running, ended
}

// Start has all tasks of a gang start at the same moment, as soon as all can.
func (x *gangs) Start(task grid.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.get(task.ID)
	if g.task != nil {
		return
	}
	g.task = &task
	number := 0
	for i := range task.Gang.Parts {
		p := &task.Gang.Parts[i]
		for range p.Processors / task.Gang.Each {
			r := g.ranks[number]
			if r == nil {
				r = &gangRank{id: grid.RankTask(task.ID, number)}
				g.ranks[number] = r
			}
			r.part, r.away = i, p.Site != x.h.id
			r.ready = r.ready || !r.away && len(task.Job.Inputs) == 0
			number++
		}
	}
	x.wg.Go(g.run)
}

// Kill ends a gang.
func (x *gangs) Kill(task grid.Task) {
	x.mu.Lock()
	g := x.all[task.ID]
	if g == nil {
		x.mu.Unlock()
		x.ended(&grid.TaskEnded{ID: task.ID, Lost: true})
		return
	}
	alone := g.task == nil && !g.kill // found after a restart, and nobody wants it
	if !g.kill {
		g.kill, g.cause = true, task.Cause
	}
	g.abandon = g.abandon || task.Abandon
	g.ring()
	x.mu.Unlock()
	if alone {
		x.wg.Go(g.run)
	}
}

// Acknowledge says that the end of a gang is durable.
func (x *gangs) Acknowledge(ended []grid.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ended {
		if g := x.all[id]; g != nil {
			g.acknowledged = true
			g.ring()
		}
	}
}

// Close lets go of everything. The tasks run on.
func (x *gangs) Close() {
	x.cancel()
	x.forward.Close()
	x.wg.Wait()
}

// rankEnded takes the end of a task, and reports whether it is one of a gang.
func (x *gangs) rankEnded(e *grid.TaskEnded) bool {
	id, number, yes := grid.GangOf(e.ID)
	if !yes {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.all[id]; g != nil && g.ranks[number] != nil && g.ranks[number].ended == nil {
		copied := *e
		g.ranks[number].ended = &copied
		g.ring()
	}
	return true
}

// rankRefused notes why a pilot cannot start a task yet.
func (x *gangs) rankRefused(task grid.TaskID, why string) {
	id, number, _ := grid.GangOf(task)
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.all[id]; g != nil && g.ranks[number] != nil {
		g.ranks[number].refused = run.ShortReason(errors.New(why))
	}
}

// rankReady notes that a pilot can start a task at once.
func (x *gangs) rankReady(task grid.TaskID) {
	id, number, _ := grid.GangOf(task)
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.all[id]; g != nil && g.ranks[number] != nil {
		g.ranks[number].ready = true
		g.ring()
	}
}

// connections names what the tasks say to each other.
func (g *gang) connections() forward.ID { return forward.ID{Home: g.x.h.id, Task: g.id} }

// run is the life of a gang.
func (g *gang) run() {
	if err := g.prepare(); err != nil {
		g.fail(run.ExitNoStart, run.ShortReason(err))
	}
	tick := time.NewTicker(outputPoll * time.Duration(1+len(g.ranks)/32))
	defer tick.Stop()
	for !g.step() {
		select {
		case <-g.wake:
		case <-tick.C:
		case <-g.x.ctx.Done():
			return
		}
	}
}

// prepare makes the tasks' addresses and tells the pilots what is to come.
func (g *gang) prepare() error {
	x := g.x
	x.mu.Lock()
	task := g.task
	x.mu.Unlock()
	if task == nil {
		return nil
	}
	g.due = time.Now().Add(gangReadyMax + task.Bring.Duration())
	g.output = newGangOutput(x.h, g.id, len(g.ranks))
	var addresses []string
	if sites := task.Gang.Sites(); slices.Contains(sites, x.h.id) {
		var err error
		if addresses, err = x.forward.Add(forward.Group{ID: g.connections(), Sites: sites}); err != nil {
			return err
		}
	}
	task.Rank = &grid.Rank{Gang: task.Gang, Addresses: addresses}
	reads := false // a task here
	for _, number := range g.numbers() {
		r := g.ranks[number]
		if !r.away {
			reads = reads || !r.ready
			continue
		}
		if task.Gang.Parts[r.part].Pilot.Key == 0 {
			return fmt.Errorf("the lease of component %d is not there any more", r.part)
		}
		x.away.Hold(g.taskOf(number))
	}
	if reads {
		x.wg.Go(g.bring)
	}
	return nil
}

// bring has what the tasks at this site read brought here, before they are ready.
func (g *gang) bring() {
	x := g.x
	ctx, cancel := context.WithDeadline(x.ctx, g.due)
	defer cancel()
	paths, err := x.h.bring.inputs(ctx, g.task.Job.Inputs, g.inputsDir())
	x.mu.Lock()
	defer x.mu.Unlock()
	g.inputs, g.missing = paths, err
	for _, r := range g.ranks {
		r.ready = r.ready || err == nil && !r.away
	}
	g.ring()
}

// inputsDir is where copies of what the job reads are at this site.
func (g *gang) inputsDir() string { return g.x.h.files.Task(g.x.h.id, g.id) + run.InputsSuffix }

// numbers returns the ranks in order.
func (g *gang) numbers() []int {
	numbers := make([]int, 0, len(g.ranks))
	for n := range g.ranks {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// taskOf returns a task as its executor gets it.
func (g *gang) taskOf(number int) grid.Task {
	r := g.ranks[number]
	job := *g.task.Job
	job.Coallocate, job.Tasks, job.Processors = nil, 1, g.task.Gang.Each
	return grid.Task{
		ID: r.id, Job: &job, Limit: g.task.Limit, Pilot: g.task.Gang.Parts[r.part].Pilot,
		Rank: &grid.Rank{Gang: g.task.Gang, Number: number, Addresses: g.task.Rank.Addresses, Inputs: g.inputs},
	}
}

// step does what is due, and reports whether the gang is over and forgotten.
func (g *gang) step() (over bool) {
	if g.reported {
		return g.forget()
	}
	g.x.mu.Lock()
	left, waiting := 0, 0
	for _, number := range g.numbers() {
		r := g.ranks[number]
		if r.ended == nil && r.away && g.abandon {
			r.ended = &grid.TaskEnded{ID: r.id, Lost: true}
		}
		switch {
		case r.ended == nil:
			left++
			if !r.ready {
				waiting = number + 1
			}
		case g.failure == nil && (r.ended.Lost || r.ended.Result.ExitCode != 0 || r.ended.Result.Reason != ""):
			g.failure = r.ended
		}
	}
	ending := g.kill || g.failure != nil
	begin := !ending && waiting == 0 && g.began == 0 && g.task != nil
	refused := ""
	if waiting > 0 {
		refused = g.ranks[waiting-1].refused
	}
	late := !ending && waiting > 0 && time.Now().After(g.due)
	missing := g.missing
	g.x.mu.Unlock()
	switch {
	case !ending && missing != nil && g.x.ctx.Err() == nil:
		g.fail(run.ExitNoStart, run.ShortReason(missing))
		g.killAll()
	case late:
		why := fmt.Sprintf("%s was not ready to start within %v", g.describe(waiting-1), gangReadyMax+g.task.Bring.Duration())
		if refused != "" {
			why += ": " + refused
		}
		g.fail(run.ExitNoStart, run.ShortReason(errors.New(why)))
		g.killAll()
	case ending:
		g.killAll()
	case begin:
		g.begin()
	}
	if g.output != nil {
		g.output.merge(left == 0)
	}
	if left > 0 {
		return false
	}
	g.report()
	return false
}

// fail gives a gang up for a reason of ours.
func (g *gang) fail(code int32, why string) {
	now := g.x.h.Now()
	g.failure = &grid.TaskEnded{ID: g.id, Result: grid.Result{Start: now, End: now, ExitCode: code, Reason: why}}
}

// begin starts all tasks.
func (g *gang) begin() {
	g.x.mu.Lock()
	g.began = g.x.h.Now()
	var here []int
	var there []grid.TaskID
	for _, number := range g.numbers() {
		switch r := g.ranks[number]; {
		case r.begun:
		case r.away:
			there = append(there, r.id)
		default:
			here = append(here, number)
		}
		g.ranks[number].begun = true
	}
	g.x.mu.Unlock()
	g.x.away.Go(there) // these have the longer way
	for _, number := range here {
		g.x.own.Start(g.taskOf(number))
	}
}

// killAll ends the tasks that have not ended.
func (g *gang) killAll() {
	g.x.mu.Lock()
	cause := g.cause
	if !g.kill {
		cause = "the job ends, as another of its tasks did"
	}
	type order struct {
		task  grid.Task
		away  bool
		begun bool
	}
	var orders []order
	for _, number := range g.numbers() {
		r := g.ranks[number]
		if r.ended != nil || r.killed {
			continue
		}
		r.killed = true
		orders = append(orders, order{grid.Task{ID: r.id, Cause: cause}, r.away, r.begun})
	}
	g.x.mu.Unlock()
	for _, o := range orders {
		switch {
		case o.away:
			g.x.away.Kill(o.task)
		case o.begun:
			g.x.own.Kill(o.task)
		default: // it never was started here
			g.x.rankEnded(&grid.TaskEnded{ID: o.task.ID, Result: grid.Result{ExitCode: site.ExitCancelled, Reason: cause}})
		}
	}
}

// report tells the site how it ended: by the first task that failed, or well.
func (g *gang) report() {
	g.reported = true
	g.x.forward.Remove(g.connections())
	end := grid.TaskEnded{ID: g.id, Result: grid.Result{Start: g.began, End: g.x.h.Now()}}
	if end.Result.Start == 0 {
		end.Result.Start = end.Result.End
	}
	g.x.mu.Lock()
	killed, cause, first := g.kill, g.cause, g.failure
	g.x.mu.Unlock()
	switch {
	case first == nil && g.task != nil:
	case first == nil || first.Lost:
		end.Lost = true
	default:
		end.Result.ExitCode, end.Result.Reason = first.Result.ExitCode, first.Result.Reason
		if _, number, yes := grid.GangOf(first.ID); killed {
			end.Result.Reason = cause
		} else if yes {
			end.Result.Reason = g.whatFailed(number, &first.Result)
		}
	}
	g.x.ended(&end)
}

// whatFailed describes the task with which the end of the gang began.
func (g *gang) whatFailed(number int, r *grid.Result) string {
	text := fmt.Sprintf("%s ended with exit code %d", g.describe(number), r.ExitCode)
	if r.Reason != "" {
		text = fmt.Sprintf("%s was ended: %s", g.describe(number), r.Reason)
	}
	return text[:min(len(text), reasonMax)]
}

// describe names a task for people.
func (g *gang) describe(number int) string {
	part := g.ranks[number].part
	if g.task == nil {
		return fmt.Sprintf("task %d", number)
	}
	name := string(g.task.Gang.Parts[part].Site)
	_ = g.x.h.Do(g.x.ctx, func(s *site.Site) { name = s.SiteName(grid.SiteID(name)) }) // stopping: the ID will do
	return fmt.Sprintf("task %d, of component %d at %s,", number, part, name)
}

// forget drops a gang whose end is durable, and what its tasks have left.
func (g *gang) forget() bool {
	g.x.mu.Lock()
	defer func() { g.x.mu.Unlock() }()
	if !g.acknowledged {
		return false
	}
	ids := make([]grid.TaskID, 0, len(g.ranks))
	for _, number := range g.numbers() {
		ids = append(ids, g.ranks[number].id)
	}
	delete(g.x.all, g.id)
	g.x.mu.Unlock()
	g.x.own.Acknowledge(ids)
	g.x.away.Acknowledge(ids)
	removeRankOutputs(g.x.h, ids)
	_ = os.RemoveAll(g.inputsDir()) // pruned later if not now
	g.x.mu.Lock()
	return true
}

// enter says that a task of another site's job is to run here on the processors of a
// lease that it has, and returns the addresses at which it reaches the others. A gang
// is its home's: what another site enters under the same job is a gang of its own.
func (x *gangs) enter(key uint64, home grid.SiteID, g *grid.Gang) ([]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := forward.ID{Home: home, Task: g.Task}
	if old, used := x.keys[key]; used && old != id {
		return nil, fmt.Errorf("the lease has tasks of job %s, epoch %d", old.Task.Job, old.Task.Epoch)
	}
	addresses, err := x.forward.Add(forward.Group{ID: id, Sites: g.Sites()})
	if err == nil {
		x.keys[key] = id
	}
	return addresses, err
}

// vacate ends the connections of a job whose lease has ended, with the last of its
// leases here.
func (x *gangs) vacate(key uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone, used := x.keys[key]
	if !used {
		return
	}
	delete(x.keys, key)
	for _, other := range x.keys {
		if other == gone {
			return
		}
	}
	x.forward.Remove(gone)
}
