package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/shim/link"
	"gridnode/node/site"
)

// Engine runs tasks as jobs of a Slurm cluster. It is a run.Engine.
type Engine struct {
	run.Recipe
	cfg        Config
	processors int64 // of the site
	commands   commands
	files      run.Files
	orders     orders
	ended      func(*run.Ended)
	room       func(*site.Room)
	guest      func(grid.SiteID) string // name of another site; nil: none has one
	tell       func(grid.Input)         // of pilots that are lent
	log        *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	turns  chan struct{} // of those who submit
	wake   chan struct{} // a poll is wanted soon
	ends   chan string   // names of jobs of which an end was written

	passing sync.Mutex // over numbers

	mu       sync.Mutex
	jobs     map[run.Process]*job // started and not acknowledged
	lingers  map[string]lingering // acknowledged ones that Slurm may begin again, by name
	squads   map[grid.TaskID]int  // how many processes tasks of several have
	newest   int64                // number in a name
	begun    []site.Begun         // to be told
	glideins []*glidein           // pilots, in order of their asking
	own      pilots
	ways     *ways          // of tasks of gangs; has a lock of its own
	idle     int64          // processors of the cluster at the last poll
	listener *link.Listener // of pilots; nil: none was needed yet
	trouble  string         // why Slurm does not answer
	doubt    bool           // it did not, once: the controller may have forgotten what it had not saved

	highest  int64 // number of a job that Slurm gave
	numbered bool  // since it answers again: it gives higher ones
}

// job is one process of a task as a job of Slurm.
type job struct {
	process run.Process
	task    grid.Task // of a fresh one
	name    string    // of this execution
	note    note
	fresh   bool // of this daemon: nothing of it is in the work directory before it is submitted

	// Guarded by Engine.mu.
	id      string // number in Slurm; empty: not submitted, as far as is known
	state   State
	ready   bool      // its order is in the work directory
	dropped bool      // it ended before that
	wanted  string    // why it is to end; empty: it is not
	killed  time.Time // when scancel was last asked for
	looked  time.Time // when it was last asked for by itself
	pause   time.Duration
	told    bool      // Begun was told
	settled bool      // its end is being settled, or was
	held    bool      // Slurm was told not to begin it once more; the keeper's
	over    time.Time // when it was first seen to be, with no word of its shim; the keeper's
	final   *outcome  // how it ended

	glide       *glidein  // that it is; nil: it is none
	fromEarlier bool      // a pilot of an earlier daemon
	inside      bool      // it runs in a pilot, or waits for one: it is no job of Slurm's
	offered     time.Time // to a pilot, or submitted
	via         *glidein  // that it runs in
	chair       []share   // there
	vacated     bool
	spec        *shim.Spec // of what is launched; nil: an earlier daemon did
	launched    bool
}

// Open returns what makes the engine of a site of so many processors.
func Open(cfg Config, processors int64) run.Opener {
	return func(ctx context.Context, setup run.Setup) (run.Engine, error) {
		e, err := start(cfg, processors, setup)
		if err != nil {
			return nil, err // and not a nil *Engine
		}
		return e, nil
	}
}

// start makes an engine; Recover sets it going.
func start(cfg Config, processors int64, setup run.Setup) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	setup.Files.Work = cfg.Work
	setup.Modules.Program = installed(cfg.Work)
	e := &Engine{
		Recipe: run.NewRecipe(&setup), cfg: cfg, processors: processors, commands: newCommands(), files: setup.Files,
		orders: orders{filepath.Join(cfg.Work, ordersDir)}, ended: setup.Ended, room: setup.Room, guest: setup.Guest, log: setup.Logger,
		turns: make(chan struct{}, submitters), wake: make(chan struct{}, 1), ends: make(chan string, endsMax),
		jobs: make(map[run.Process]*job), lingers: make(map[string]lingering), squads: make(map[grid.TaskID]int), numbered: true, own: pilots{wake: make(chan struct{}, 1)}, tell: setup.Pilots,
	}
	e.own.Engine = e
	e.ways = newWays(e.orders, func(g *glidein, node int) *shim.Client {
		e.mu.Lock()
		defer e.mu.Unlock()
		return g.connected(node)
	})
	if err := os.MkdirAll(e.orders.dir, 0o700); err != nil {
		return nil, fmt.Errorf("slurm.workdir: %w", err)
	}
	if e.cfg.Shim == nil {
		program, err := installProgram(cfg.Program, cfg.Work)
		if err != nil {
			return nil, fmt.Errorf("slurm.workdir: %w", err)
		}
		e.cfg.Shim = []string{program, "shim", "--order", OrderWord}
		e.cfg.Pilot = []string{program, "shim", "--pilot", OrderWord}
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Traits implements run.Engine: the processors belong to Slurm.
func (*Engine) Traits() run.Traits { return run.Traits{Scheduler: run.Theirs, Files: true} }

// Recover implements run.Engine. It asks Slurm nothing: what is in the work directory was
// started, and what has become of it shows later.
func (e *Engine) Recover() (running []run.Found, ended []run.Ended, err error) {
	names, err := e.orders.all()
	if err != nil {
		return nil, nil, fmt.Errorf("slurm.workdir: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var gone []*job // pilots that have ended
	for _, name := range names {
		j, err := e.orders.load(name, e.now())
		if err != nil {
			e.log.Error("what the work directory has of a job cannot be read, so the job is left alone", "job", name, "error", err)
			continue
		}
		j.ready = true
		if j.note.Pilot != nil {
			inside, err := e.own.recoverGlidein(j)
			if err != nil {
				return nil, nil, fmt.Errorf("slurm.workdir: %w", err)
			}
			running = append(running, inside...)
		} else {
			e.add(j)
		}
		if j.final != nil {
			j.settled = true
			if j.glide != nil {
				gone = append(gone, j)
			}
			if !j.own() {
				ended = append(ended, *endedOf(j, e.files))
			}
			continue
		}
		if !j.own() {
			running = append(running, run.Found{Process: j.process, Start: j.note.Ordered})
		}
		if j.id == "" {
			e.wg.Add(1)
			go e.submit(j)
		}
	}
	if len(running) > 0 || len(e.glideins) > len(gone) { // the controller may have died, too, and forgotten some of them
		e.doubt, e.numbered = true, false
	}
	e.wg.Add(1)
	go e.keep()
	e.wg.Go(func() {
		if err := watch(e.ctx, e.orders.dir, e.ends); err != nil {
			e.log.Debug("ends of jobs are not seen at once", "error", err)
		}
	})
	e.wg.Go(e.own.launcher)
	e.wg.Go(func() {
		for _, j := range gone { // what it has left is told like what ends now
			e.own.endedGlidein(j.glide, j.final)
		}
	})
	return running, ended, nil
}

// add enters a job. The caller holds e.mu.
func (e *Engine) add(j *job) {
	e.jobs[j.process] = j
	e.gave(j.id)
	if _, _, squad := grid.SquadOf(j.process.Task); squad {
		e.squads[j.process.Task] = max(e.squads[j.process.Task], j.process.Number+1)
	}
}

// of returns the jobs of a task. The caller holds e.mu.
func (e *Engine) of(id grid.TaskID) (jobs []*job) {
	n := 1
	if _, _, squad := grid.SquadOf(id); squad {
		n = e.squads[id]
	}
	for number := range n {
		if j := e.jobs[run.Process{Task: id, Number: number}]; j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// Start implements run.Engine.
func (e *Engine) Start(task grid.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if task.Job == nil {
		e.keepLent(&task)
		return
	}
	tasks, each := max(task.Job.Tasks, 1), task.Job.Processors/max(task.Job.Tasks, 1)
	count, partner, gang := 1, "", (*glidein)(nil)
	if task.Job.Home != e.files.Site {
		partner = e.partner(task.Job.Home)
	}
	if task.Squad != nil {
		count, tasks = task.Squad.Tasks(), 1
		gang = e.ofGang(task.Squad.Gang.Task)
	}
	for number := range count {
		e.newest = max(e.newest+1, int64(now))
		x := run.Process{Task: task.ID, Number: number}
		j := &job{process: x, task: task, name: x.Name() + "." + strconv.FormatInt(e.newest, 36), fresh: true, note: note{
			Home: task.Job.Home, Partner: partner, Ordered: now, Limit: task.Limit, Until: task.Until, Tasks: tasks, Each: max(each, 1),
			Memory: task.Job.Memory >> 20, Processor: tasks * max(each, 1), Together: task.Squad == nil && task.Job.Beside() > 1,
		}}
		if t := task.Job.Terms; t != nil {
			j.note.Nice = min(max(t.Nice, 0), grid.NiceMax)
		}
		if j.note.Until == grid.Never {
			j.note.Until = 0
		}
		e.add(j)
		j.offered = time.Now()
		if task.Squad != nil {
			e.own.seatSquad(gang, j)
			continue
		}
		if e.own.offer(j) {
			continue
		}
		e.wg.Add(1)
		go e.submit(j)
	}
}

// Renew implements run.Engine. No task has a lease: what Slurm runs it runs whether this
// daemon is there or not (market.Config.Unleased).
func (*Engine) Renew(grid.TaskID, grid.Time) {}

// Kill implements run.Engine.
func (e *Engine) Kill(task grid.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	there := false
	for _, j := range e.of(task.ID) {
		if j.settled {
			continue
		}
		there = true
		if j.wanted == "" {
			j.wanted = task.Cause
			if j.wanted == "" {
				j.wanted = "cancelled"
			}
		}
	}
	if !there {
		e.ended(&run.Ended{TaskEnded: grid.TaskEnded{ID: task.ID, Lost: true}, Number: pilot.Whole})
		return
	}
	e.soon()
}

// Acknowledge implements run.Engine.
func (e *Engine) Acknowledge(ids []grid.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		for _, j := range e.of(id) {
			if j.final == nil {
				continue
			}
			if j.inside {
				e.own.acknowledged(j)
				continue
			}
			delete(e.jobs, j.process)
			if j.final.Follow && j.glide == nil { // a pilot is begun once
				e.lingers[j.name] = lingering{j.id, time.Now()}
				continue
			}
			e.forget(j.name)
		}
		delete(e.squads, id)
	}
}

// forget removes all that is kept of a job.
func (e *Engine) forget(name string) {
	if err := e.orders.forget(name); err != nil {
		e.log.Warn("cannot remove what a job left in slurm.workdir", "error", err)
	}
}

// Close implements run.Engine: the jobs go on.
func (e *Engine) Close() error {
	e.cancel()
	e.wg.Wait()
	return nil
}

// gave notes a number that Slurm gave. The caller holds e.mu.
func (e *Engine) gave(id string) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		e.highest = max(e.highest, n)
	}
}

// soon has the keeper look at once.
func (e *Engine) soon() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *Engine) now() grid.Time { return grid.Time(time.Now().UnixMicro()) }

// unwanted reports whether a job that has not been submitted is not wanted any more.
func (e *Engine) unwanted(j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return j.settled
}

// ready notes that the order of a job is written, and reports whether it is still wanted.
func (e *Engine) ready(j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	j.ready = !j.dropped
	return j.ready
}

// submitted notes the number of a job.
func (e *Engine) submitted(j *job, id string) {
	if err := e.orders.note(j.name, ".id", []byte(id)); err != nil {
		e.log.Warn("cannot note the number of a job; it is found by its name", "error", err)
	}
	e.mu.Lock()
	j.id, j.state = id, Waiting
	e.gave(id)
	over := j.settled
	if over && e.jobs[j.process] != j {
		_ = e.orders.forget(j.name) // all but the number is forgotten already
	}
	e.mu.Unlock()
	if over { // its order was taken back in the last moment: it would end at once, but wait for that
		e.scancel(id, j.name)
		e.mu.Lock()
		forgotten := e.jobs[j.process] != j
		e.mu.Unlock()
		if forgotten { // before its number was noted
			e.forget(j.name)
		}
	}
	e.soon()
}

// refused ends a job that Slurm does not take, or that cannot be prepared.
func (e *Engine) refused(j *job, err error) {
	e.orders.takeBack(j.name)
	e.log.Warn("a job cannot be started", "job", j.process.Task.Job, "error", err)
	e.finish(j, outcome{Result: failed(j.process, e.now(), err).Result})
}

// failed is the end of what cannot be started.
func failed(x run.Process, now grid.Time, err error) *run.Ended {
	result := grid.Result{Start: now, End: now, ExitCode: pilot.ExitNoStart, Reason: run.ShortReason(err)}
	return &run.Ended{TaskEnded: grid.TaskEnded{ID: x.Task, Result: result}, Number: x.Number}
}

// finish reports how a job ended, once: first durably, as Slurm forgets it.
func (e *Engine) finish(j *job, o outcome) {
	e.mu.Lock()
	if j.settled {
		e.mu.Unlock()
		return
	}
	j.settled = true
	e.mu.Unlock()
	e.ways.over(j.name)
	if !j.inside && !o.said && j.prepared(e) {
		text, err := json.Marshal(o)
		if err == nil {
			err = e.orders.put(j.name, ".final", text)
		}
		if err != nil {
			e.log.Warn("cannot note how a job ended", "error", err)
		}
	}
	if j.note.Home != "" {
		scratch := e.files.Process(j.note.Home, j.process) + run.ScratchSuffix
		keep := j.task.Job == nil || j.task.Job.Keeps(e.files.Site) // after a restart whose it is nobody knows here
		if _, err := run.Settle(scratch, keep); err != nil {
			e.log.Warn("cannot keep or remove what a job left", "error", err)
		}
	}
	e.mu.Lock()
	j.final = &o
	e.mu.Unlock()
	if j.glide != nil {
		e.own.endedGlidein(j.glide, &o)
	}
	if !j.own() {
		e.ended(endedOf(j, e.files))
	}
}

// prepared reports whether the work directory knows the job.
func (j *job) prepared(e *Engine) bool {
	_, err := os.Stat(e.orders.path(j.name, ".order"))
	return err == nil
}

// endedOf returns what is reported of a job that has ended.
func endedOf(j *job, files run.Files) *run.Ended {
	end := &run.Ended{TaskEnded: grid.TaskEnded{ID: j.process.Task, Result: j.final.Result, Lost: j.final.Lost}, Number: j.process.Number}
	if j.note.Home != "" {
		end.Output = files.Process(j.note.Home, j.process)
	}
	return end
}
