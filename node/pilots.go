package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gridnode/grid"
	"gridnode/node/forward"
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
	own     *run.Processes
	forward *forward.Forwarder

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

// newPilots returns the executor of a host without its engine.
func newPilots(h *Host) *pilots {
	x := &pilots{
		h: h, forward: forward.New(h.id, h.net, h.log.With("part", "forward")),
		sessions: make(map[sessionID]*pilotSession), served: make(map[sessionID]*servedSession),
		keeps: make(map[uint64]context.CancelFunc), collects: make(map[grid.TaskID]chan struct{}),
	}
	x.core = pilot.New(pilot.Config{Self: h.id, Name: func(id grid.SiteID) string { return h.loop.site.SiteName(id) }})
	x.ctx, x.cancel = context.WithCancel(h.ctx)
	return x
}

// tell passes an input to the loop, from any goroutine.
func (x *pilots) tell(in grid.Input) { x.h.inbox.put(&pilotInput{in: in}) }

// ended takes the ends of tasks on this site's own processors, from any goroutine, to
// whose they are.
func (x *pilots) ended(e *grid.TaskEnded) {
	if _, _, ranked := grid.GangOf(e.ID); ranked {
		x.tell(&pilot.RankEnded{Ended: *e})
		return
	}
	x.h.inbox.put(e)
	if key, yes := site.IsPilot(e.ID); yes {
		x.tell(&pilot.Release{Key: key})
	}
}

// Recover implements Executor. Of tasks of gangs the site learns that something is here,
// and either starts the gang again or has it killed; what ran on borrowed processors is in
// its records.
func (x *pilots) Recover() (running []site.Adopted, ended []grid.TaskEnded, err error) {
	running, ended, err = x.own.Recover()
	for _, a := range running {
		x.step(&pilot.Found{ID: a.ID})
	}
	ended = slices.DeleteFunc(ended, func(e grid.TaskEnded) bool {
		_, _, ranked := grid.GangOf(e.ID)
		if ranked {
			x.step(&pilot.Found{ID: e.ID, Ended: &e})
			running = append(running, site.Adopted{ID: e.ID, Start: e.Result.Start})
		}
		return ranked
	})
	return running, ended, err
}

// Start implements Executor.
func (x *pilots) Start(task grid.Task) {
	if x.core.Takes(&task) {
		x.step(&pilot.Start{Task: task, Begun: x.begun(&task)})
		return
	}
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
	x.step(i.in)
	if over, ok := i.in.(*pilot.Disconnected); ok {
		delete(x.sessions, sessionID{over.Site, over.Session})
	}
}

// step feeds the core; carryOut carries out what it orders.
func (x *pilots) step(in grid.Input) {
	x.core.Step(x.h.Now(), in, &x.out)
	if release, ok := in.(*pilot.Release); ok {
		x.released(release.Key)
	}
}

// tick lets the core do what is due.
func (x *pilots) tick(now grid.Time) {
	if x.core.NextTimer() <= now {
		x.step(grid.Tick{})
	}
}

// begun returns those tasks of one that have begun: they have files for their outputs here.
func (x *pilots) begun(task *grid.Task) (ids []grid.TaskID) {
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
		if e, ok := e.(pilot.Begin); ok {
			x.begin(e.ID)
			began = true
		}
	}
	if began {
		if err := syncDir(filepath.Dir(x.path(grid.TaskID{}, run.Stdout))); err != nil {
			x.h.log.Error("cannot note that jobs have begun", "error", err)
		}
	}
	for _, e := range x.out.Effects {
		x.carry(e)
	}
	x.out.Reset()
}

// syncDir makes durable which files a directory has.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// carry carries out one effect.
func (x *pilots) carry(e pilot.Effect) {
	switch e := e.(type) {
	case pilot.Begin: // done
	case pilot.Ended:
		x.h.inbox.put(&e.Ended)
	case pilot.Connect:
		x.connect(e)
	case pilot.Disconnect:
		x.disconnect(e)
	case pilot.Send:
		x.send(e)
	case pilot.Dial:
		x.own.DialPilot(e.Key)
	case pilot.Launch:
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

// prepare enters a task of another site's gang, and brings what it reads here.
func (x *pilots) prepare(e pilot.Prepare) {
	answer := &pilot.Prepared{Key: e.Key, ID: e.Task.ID}
	gang := e.Task.Rank.Gang
	var err error
	answer.Addresses, err = x.forward.Add(forward.Group{ID: forward.ID{Home: e.Home, Task: gang.Task}, Sites: gang.Sites()})
	if err != nil {
		answer.Refused = run.ShortReason(err)
	}
	if err != nil || len(e.Task.Job.Inputs) == 0 {
		x.tell(answer)
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, max(e.Until-x.h.Now(), 0).Duration())
	before := x.keeps[e.Key]
	x.keeps[e.Key] = func() {
		cancel()
		if before != nil {
			before()
		}
	}
	x.wg.Go(func() {
		defer cancel()
		dir := filepath.Join(x.own.PilotDir(e.Key), pilotInputs)
		if answer.Inputs, err = x.h.bring.inputs(ctx, e.Task.Job.Inputs, dir); err != nil {
			answer.Failed = run.ShortReason(err)
		}
		if x.ctx.Err() == nil {
			x.tell(answer)
		}
	})
}

// pilotInputs is the directory of copies of what the tasks of a pilot read.
const pilotInputs = "inputs"

// released lets go of what a pilot had besides its processes.
func (x *pilots) released(key uint64) {
	if cancel := x.keeps[key]; cancel != nil {
		cancel()
		delete(x.keeps, key)
	}
	for _, s := range x.served {
		s.replies.put(reply{released: key})
	}
}
