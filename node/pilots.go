package node

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/forward"
	"gridnode/node/logging"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/site"
)

// pilots is the driver of a pilot.Core: the executor of a host that runs tasks on this
// site's own processors, on those it has on lease, and on both at once, and that keeps
// what it lends. Its fields without a lock belong to the loop.
type pilots struct {
	h       *Host
	core    *pilot.Core
	out     pilot.Outbox
	own     run.Engine
	forward *forward.Forwarder
	flush   func(paths ...string) error // atomicfile.Sync; tests have another

	sessions map[sessionID]*pilotSession   // with lenders
	served   map[sessionID]*servedSession  // with borrowers
	keeps    map[uint64]context.CancelFunc // what is brought here for the tasks of a lease
	collects map[grid.TaskID]chan struct{} // outputs of gangs; closed when they are to be complete

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// sessionID names a session: the other site, and the borrower's number.
type sessionID struct {
	site   grid.SiteID
	number uint64
}

// pilotInput is an input of the core on its way to the loop.
type pilotInput struct {
	in     grid.Input
	window chan struct{}  // holds a token for each input of its session that waits; nil: it is not of one
	served *servedSession // that it came in; nil: none
}

// forwardDir is where the home keeps the addresses of tasks that run beside others elsewhere.
const forwardDir = "forward"

// newPilots returns the executor of a host without its engine.
func newPilots(h *Host) *pilots {
	kept := ""
	if h.cfg.Home != "" {
		kept = filepath.Join(h.cfg.Home, forwardDir)
	}
	x := &pilots{
		h: h, forward: forward.New(h.id, h.net, kept, h.log.With(logging.PartKey, "forward")), flush: atomicfile.Sync,
		sessions: make(map[sessionID]*pilotSession), served: make(map[sessionID]*servedSession),
		keeps: make(map[uint64]context.CancelFunc), collects: make(map[grid.TaskID]chan struct{}),
	}
	x.core = pilot.New(pilot.Config{
		Self: h.id, Name: func(id grid.SiteID) string { return h.loop.site.SiteName(id) },
		Permits: func(now grid.Time, from grid.SiteID, job *grid.Job) string {
			return h.loop.site.Permits(now, from, job)
		},
	})
	x.ctx, x.cancel = context.WithCancel(h.ctx)
	return x
}

// tell passes an input to the loop, from any goroutine.
func (x *pilots) tell(in grid.Input) { x.h.inbox.put(&pilotInput{in: in}) }

// ended takes the ends of tasks on this site's own processors, from any goroutine, to
// whose they are.
func (x *pilots) ended(e *run.Ended) {
	if _, _, squad := grid.SquadOf(e.ID); squad {
		x.tell(&pilot.SquadEnded{ID: e.ID, Number: e.Number, End: pilot.EndOf(&e.TaskEnded)})
		return
	}
	x.over(&e.TaskEnded, e.Output)
	if key, yes := site.IsPilot(e.ID); yes {
		x.tell(&pilot.Release{Key: key})
	}
}

// sealAtOnce is how much a task may have written for its outputs to be read while others wait.
const sealAtOnce = 256 << 10

// over tells the site, from any goroutine, that a task is gone, and what is in its outputs, whoever ran
// it: base is how their paths begin; empty if it has none.
func (x *pilots) over(e *grid.TaskEnded, base string) {
	if base == "" || e.Lost || !x.files() {
		x.h.inbox.put(e)
		return
	}
	seal := func() {
		e.Result.Output = run.Outputs(base)
		x.h.inbox.put(e)
	}
	if run.Size(base) <= sealAtOnce {
		seal()
		return
	}
	x.wg.Go(seal)
}

// Recover implements Executor. Of tasks of gangs the site learns, once for each squad, that
// something is here, and either starts the gang again or has it killed; what ran on
// borrowed processors is in its records.
func (x *pilots) Recover() (running []site.Adopted, ended []grid.TaskEnded, err error) {
	alive, over, err := x.own.Recover()
	squads := make(map[grid.TaskID]bool)
	found := func(p run.Process, start grid.Time, end *pilot.End) bool {
		_, _, squad := grid.SquadOf(p.Task)
		if squad {
			x.step(&pilot.Found{ID: p.Task, Number: p.Number, Tasks: 1, Ended: end})
		}
		if !squads[p.Task] && (squad || end == nil) {
			squads[p.Task] = squad
			running = append(running, site.Adopted{ID: p.Task, Start: start})
		}
		return squad
	}
	for _, a := range alive {
		found(a.Process, a.Start, nil)
	}
	for i := range over {
		e := &over[i]
		end := pilot.EndOf(&e.TaskEnded)
		if !found(run.Process{Task: e.ID, Number: e.Number}, e.Result.Start, &end) {
			if e.Output != "" && !e.Lost {
				e.Result.Output = run.Outputs(e.Output)
			}
			ended = append(ended, e.TaskEnded)
		}
	}
	return running, ended, err
}

// Start implements Executor.
func (x *pilots) Start(task grid.Task) {
	if x.core.Takes(&task) {
		if x.files() && x.h.filer != nil && task.Pilot.Key != 0 {
			x.h.filer.home.noteRan(&task)
		}
		x.step(&pilot.Start{Task: task, Begun: x.begun(&task)})
		return
	}
	x.h.guests.note(&task)
	x.own.Start(task)
	if key, yes := site.IsPilot(task.ID); yes {
		x.keep(key, task.Pilot.Site)
	}
}

// keep has the core know a pilot, unless its lease has ended in this turn.
func (x *pilots) keep(key uint64, borrower grid.SiteID) {
	held, active := x.h.loop.site.PilotOf(borrower, key)
	if !active {
		return
	}
	x.step(&pilot.Keep{Key: key, Borrower: borrower, Processors: held.Processors, Until: held.Limit})
}

// Renew implements Executor.
func (x *pilots) Renew(id grid.TaskID, span grid.Time) { x.own.Renew(id, span) }

// Kill implements Executor.
func (x *pilots) Kill(task grid.Task) {
	if x.core.Takes(&task) {
		x.step(&pilot.Kill{Task: task})
		return
	}
	if key, yes := site.IsPilot(task.ID); yes {
		x.step(&pilot.Release{Key: key})
	}
	x.own.Kill(task)
}

// Acknowledge implements Executor.
func (x *pilots) Acknowledge(ended []grid.TaskID) {
	x.own.Acknowledge(ended)
	x.step(&pilot.Acknowledge{IDs: ended})
}

// Close implements Executor: the tasks go on, to be taken up by the next host.
func (x *pilots) Close() error {
	x.cancel()
	x.forward.Close()
	var err error
	if x.own != nil {
		err = x.own.Close()
	}
	x.wg.Wait()
	return err
}

// take feeds the core what has come through the inbox. What has come in a session that is
// over is dropped.
func (x *pilots) take(i *pilotInput) {
	if i.window != nil {
		<-i.window
	}
	if i.served != nil && !x.admit(i) {
		return
	}
	if up, yes := i.in.(*pilot.Up); yes {
		x.claim(up)
	}
	x.step(i.in)
	if over, ok := i.in.(*pilot.Disconnected); ok {
		delete(x.sessions, sessionID{over.Site, over.Session})
	}
}

// step feeds the core; carryOut carries out what it orders.
func (x *pilots) step(in grid.Input) {
	x.trace(in)
	x.core.Step(x.h.Now(), in, &x.out)
	if release, ok := in.(*pilot.Release); ok {
		x.released(release.Key)
	}
}

// trace has the tracer look at an input of the core.
func (x *pilots) trace(in grid.Input) {
	tracer := x.h.loop.tracer
	if tracer == nil {
		return
	}
	switch in := in.(type) {
	case *pilot.Ordered:
		if in.Order.Task != nil {
			tracer.Ordered(in.Order.ID, in.Order.Span)
		}
	case *pilot.Over:
		tracer.Over(x.h.Now(), in.ID, in.Number == pilot.Whole, in.End.ExitCode, in.End.Reason)
	case *pilot.Unstarted:
		tracer.Over(x.h.Now(), in.ID, in.Number == pilot.Whole, pilot.ExitNoStart, in.Why)
	}
}

// tick lets the core do what is due.
func (x *pilots) tick(now grid.Time) {
	if x.core.NextTimer() <= now {
		x.step(grid.Tick{})
	}
}

// files reports whether tasks have files: they are processes.
func (x *pilots) files() bool { return x.own.Traits().Files }

// begun returns those tasks of one that have begun: they have files for their outputs here.
func (x *pilots) begun(task *grid.Task) (ids []grid.TaskID) {
	if !x.files() {
		return nil // nothing has outlived the host
	}
	for _, id := range pilot.Tasks(task) {
		if _, err := os.Stat(x.path(id, run.Stdout)); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// path returns the file of an output of a task of this site.
func (x *pilots) path(id grid.TaskID, stream run.Stream) string {
	return x.h.files.Task(x.h.id, id) + stream.Suffix()
}

// processPath returns the file of an output of a process of a job of this site.
func (x *pilots) processPath(p run.Process, stream run.Stream) string {
	return x.h.files.Process(x.h.id, p) + stream.Suffix()
}

// begin makes the files that say that a task has begun, stderr first.
func (x *pilots) begin(id grid.TaskID) {
	for _, stream := range []run.Stream{run.Stderr, run.Stdout} {
		file, err := os.OpenFile(x.path(id, stream), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			x.h.log.Error("cannot keep the output of a job", "job", id.Job, "error", err)
			return
		}
		file.Close()
	}
}

// carryOut carries out what the core has ordered since the last time: what has begun
// first, which is made durable once for all.
func (x *pilots) carryOut() {
	began := false
	for _, e := range x.out.Effects {
		if e, ok := e.(pilot.Begin); ok && x.files() {
			x.begin(e.ID)
			began = true
		}
	}
	if began {
		if err := atomicfile.SyncDir(filepath.Dir(x.path(grid.TaskID{}, run.Stdout))); err != nil {
			x.h.log.Error("cannot note that jobs have begun", "error", err)
		}
	}
	for _, e := range x.out.Effects {
		x.carry(e)
	}
	x.out.Reset()
}

// carry carries out one effect.
func (x *pilots) carry(e pilot.Effect) {
	switch e := e.(type) {
	case pilot.Begin: // done
	case pilot.Ended:
		x.over(&e.Ended, x.h.files.Task(x.h.id, e.Ended.ID))
	case pilot.Connect:
		x.connect(e)
	case pilot.Disconnect:
		x.disconnect(e)
	case pilot.Send:
		x.send(e)
	case pilot.Dial:
		x.own.DialPilot(e.Key)
	case pilot.Launch:
		x.h.guests.note(&e.Task)
		x.h.loop.tracer.Launched(x.h.Now(), e.Task.ID, e.Task.Job.Home, tasksOf(&e.Task))
		x.own.Launch(e.Key, &e.Task)
	case pilot.Stop:
		x.own.Stop(e.Key, e.ID, e.Reason)
	case pilot.Forget:
		x.own.Forget(e.Key, e.ID)
	case pilot.Prepare:
		x.prepare(e)
	case pilot.Follow:
		x.reply(sessionID{e.To, e.Session}, reply{follow: &e})
	case pilot.Tell:
		x.reply(sessionID{e.To, e.Session}, reply{report: &e.Report})
	case pilot.Hangup:
		x.hangup(sessionID{e.To, e.Session})
	default:
		x.carryGang(e)
	}
}

// prepare enters a squad of another site's gang, and brings what it reads here.
func (x *pilots) prepare(e pilot.Prepare) {
	answer := &pilot.Prepared{Key: e.Key, ID: e.Task.ID}
	var err error
	answer.Addresses, err = x.connectTasks(e.Home, e.Task.Squad.Gang)
	if err != nil {
		answer.Refused = run.ShortReason(err)
	}
	if err != nil || len(e.Task.Job.Inputs) == 0 {
		x.tell(answer)
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, max(e.Until-x.h.Now(), 0).Duration())
	guest := x.h.cfg.Accounts.Guests != nil // then they are copied to where that account gets at them
	before := x.keeps[e.Key]
	x.keeps[e.Key] = func() {
		cancel()
		if guest {
			_ = os.RemoveAll(x.h.files.SharedInputs(e.Task.ID))
		}
		if before != nil {
			before()
		}
	}
	x.wg.Go(func() {
		defer cancel()
		if guest {
			answer.Inputs, err = x.bringTo(ctx, &e.Task)
		} else {
			answer.Inputs, err = x.h.bring.inputs(ctx, e.Task.Job.Inputs, filepath.Join(x.own.PilotDir(e.Key), pilotInputs))
		}
		switch {
		case atomicfile.NoDescriptors(err): // it may be asked for again
			answer.Refused = run.ShortReason(err)
		case err != nil:
			answer.Failed = run.ShortReason(err)
		}
		if x.ctx.Err() == nil {
			x.tell(answer)
		}
	})
}

// pilotInputs is the directory of copies of what the tasks of a pilot read.
const pilotInputs = "inputs"

// claim has what an earlier host forwarded for the tasks of a pilot be forwarded on.
func (x *pilots) claim(up *pilot.Up) {
	for _, t := range up.Tasks {
		if gang, _, squad := grid.SquadOf(t.ID); squad {
			x.forward.Claim(gang)
		}
	}
}

// released lets go of what a pilot had besides its processes.
func (x *pilots) released(key uint64) {
	if cancel := x.keeps[key]; cancel != nil {
		cancel()
		delete(x.keeps, key)
	}
	for _, s := range x.served {
		s.replies.Put(reply{released: key})
	}
}
