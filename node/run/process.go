package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/pilot"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// Processes is the engine of production: each task is a process under the home's
// shim. The shim outlives the daemon, and a shim that dies is started again.
type Processes struct {
	Recipe
	options shim.Options
	ended   func(*Ended)
	tell    func(grid.Input) // of pilots
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	client  *shim.Client
	running map[Process]execution // started and not reported
	told    map[Process]string    // reported and not acknowledged: their names
	squads  sizes                 // that are started or were found, and not acknowledged
	job     func(grid.JobID) *grid.Job
	names   int64 // newest number in a name

	pilots pilots
}

// reshim is the pause between attempts to get a shim again.
const reshim = time.Second

// recoverMax is how long Recover waits for ends that the shim says it has.
const recoverMax = 30 * time.Second

// ProcessConfig describes an engine of processes.
type ProcessConfig struct {
	Setup
	Shim shim.Options
}

// OpenProcesses returns what makes an engine of processes.
func OpenProcesses(options shim.Options) Opener {
	return func(ctx context.Context, setup Setup) (Engine, error) {
		p, err := StartProcesses(ctx, ProcessConfig{Setup: setup, Shim: options})
		if err != nil {
			return nil, err // and not a nil *Processes
		}
		return p, nil
	}
}

// StartProcesses connects to the home's shim, starting one if there is none.
func StartProcesses(ctx context.Context, cfg ProcessConfig) (*Processes, error) {
	if cfg.Files.Home == "" {
		return nil, errors.New("running processes needs a home directory")
	}
	home, err := filepath.Abs(cfg.Files.Home)
	if err != nil {
		return nil, err
	}
	p := &Processes{
		options: cfg.Shim, ended: cfg.Ended, tell: cfg.Pilots, log: cfg.Logger, job: cfg.Job,
		running: make(map[Process]execution), told: make(map[Process]string), squads: make(sizes),
	}
	cfg.Files.Home = home
	p.Recipe = NewRecipe(&cfg.Setup)
	p.empties = &empties{dir: filepath.Join(p.files.work(), tasksDir)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.client, err = shim.Connect(ctx, home, p.options); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// Traits implements Engine: the processors are this machine's, and nobody else gives them
// away.
func (*Processes) Traits() Traits { return Traits{Scheduler: Ours, Files: true} }

// Recover returns the tasks of an earlier run of the daemon: those that still run, and
// those that ended and were not acknowledged. It is called once, first.
func (p *Processes) Recover() (running []Found, ended []Ended, err error) {
	waiting := make(map[string]bool)
	begun := make(map[Process]grid.Time)
	for _, t := range p.client.Adopt() {
		x, err := ExecutionOf(t.ID)
		if err != nil {
			p.log.Error("the shim knows a task that is not ours", "task", t.ID)
			continue
		}
		if !t.Running {
			waiting[t.ID] = true
		}
		p.squads.add(x)
		if t.Start >= begun[x] { // of two runs the later one counts; the end of the other was reported
			begun[x] = t.Start
			p.running[x] = execution{name: t.ID, scratch: p.files.named(x, ScratchSuffix), output: p.files.outputNamed(x), keeps: p.keeps(x)}
		}
	}
	for _, t := range p.client.Adopt() {
		if x, err := ExecutionOf(t.ID); err == nil && t.Running && p.running[x].name == t.ID {
			running = append(running, Found{x, t.Start})
		}
	}
	timeout := time.NewTimer(recoverMax)
	defer timeout.Stop()
	for len(waiting) > 0 {
		select {
		case e, ok := <-p.client.Events():
			if !ok {
				return nil, nil, p.client.Err()
			}
			delete(waiting, e.ID)
			if x, run, ok := p.report(&e); ok {
				ended = append(ended, p.conclude(x, run, &e))
			}
		case <-timeout.C:
			return nil, nil, fmt.Errorf("the shim has not reported %d tasks that ended", len(waiting))
		}
	}
	pilots := make(map[uint64]bool)
	for x := range p.running {
		if key, yes := site.IsPilot(x.Task); yes {
			pilots[key] = true
		}
	}
	alive := func(x Process) bool { _, runs := p.running[x]; return runs }
	if err := p.files.sweep(alive, pilots); err != nil {
		p.log.Warn("cannot remove what jobs left that are not alive", "error", err)
	}
	p.wg.Go(p.pump)
	return running, ended, nil
}

// keeps reports whether what a process of before a restart leaves is kept: if nobody knows whose it is,
// somebody may ask for it.
func (p *Processes) keeps(x Process) bool {
	if p.job == nil {
		return true
	}
	job := p.job(x.Task.Job)
	return job == nil || job.Keeps(p.files.Site)
}

// report takes in the shim's report and returns whose end it is, unless that was reported before: a
// shim that dies before it knows that an end is safe has the next one tell it again.
func (p *Processes) report(e *shim.Ended) (x Process, run execution, fresh bool) {
	x, err := ExecutionOf(e.ID)
	if err != nil {
		p.client.Ack(e.ID) // nobody will ever ask for it
		return x, run, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	run = p.running[x]
	switch {
	case run.name == e.ID && !run.over:
		run.over = true
		p.running[x] = run
		return x, run, true
	case run.name != e.ID && p.told[x] != e.ID: // else Acknowledge follows
		_ = p.client.Ack(e.ID) // closed: it is told again
	}
	return x, run, false
}

// conclude settles what an execution has left, and returns its end as the site's input.
func (p *Processes) conclude(x Process, run execution, e *shim.Ended) Ended {
	run.keeps = run.keeps && e.Cause != shim.CauseLost // else its home will not hear of this one
	left := p.settle(x, run)
	if left && e.Silent && filepath.Dir(run.scratch) == p.empties.dir {
		p.haveOutput(strings.TrimSuffix(run.scratch, ScratchSuffix))
	}
	ended := Ended{TaskEnded: grid.TaskEnded{ID: x.Task, Lost: e.Cause == shim.CauseLost, Lapsed: e.Cause == shim.CauseLease}, Number: x.Number}
	if !ended.Lost {
		ended.Result = grid.Result{Start: e.Start, End: EndOf(e), ExitCode: e.ExitCode, Reason: e.Reason, Silent: e.Silent && !left}
		if !e.Silent {
			ended.Output = run.output
		}
	}
	p.mu.Lock()
	delete(p.running, x)
	p.told[x] = e.ID
	p.mu.Unlock()
	return ended
}

// EndOf is when a task ended that began at e.Start. Whatever its clock was set to meanwhile, that is later
// unless it could not be started: of what ends as it begins there is no output.
func EndOf(e *shim.Ended) grid.Time {
	if e.Cause == shim.CauseStart {
		return max(e.End, e.Start)
	}
	return max(e.End, e.Start+1)
}

// settle does away with what an execution has that is over, and reports whether it has left results.
func (p *Processes) settle(x Process, run execution) (left bool) {
	if key, yes := site.IsPilot(x.Task); yes {
		p.clearPilot(key)
	}
	if run.scratch == "" || run.reuse && p.empties.give(run.scratch) {
		return false
	}
	left, err := Settle(run.scratch, run.keeps)
	if err != nil {
		p.log.Warn("cannot keep or remove what a job left", "error", err)
	}
	return left
}

// haveOutput has there be an output of a task that wrote nothing: it may have no file, and is
// not called silent, as it has left something else.
func (p *Processes) haveOutput(base string) {
	file, err := os.OpenFile(base+Stdout.Suffix(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		p.log.Warn("cannot note that a job wrote nothing", "error", err)
	}
}

// pump passes ends on until the executor is closed. When the shim is gone it gets
// another one.
func (p *Processes) pump() {
	client := p.client
	for {
		for e := range client.Events() {
			x, run, ok := p.report(&e)
			if !ok {
				continue
			}
			conclude := func() {
				ended := p.conclude(x, run, &e)
				p.ended(&ended)
			}
			if run.keeps { // then others do not wait for the disk
				p.wg.Go(conclude)
			} else {
				conclude()
			}
		}
		if p.ctx.Err() != nil {
			return
		}
		p.log.Warn("the shim is gone: starting another one", "error", client.Err())
		if client = p.reconnect(); client == nil {
			return
		}
	}
}

// reconnect returns a connection to a shim, or nil if the executor is closed. What
// was ordered and the new shim does not know never ran, or nothing of it is left.
func (p *Processes) reconnect() *shim.Client {
	for {
		client, err := shim.Connect(p.ctx, p.files.Home, p.options)
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.ctx.Err() != nil {
				client.Close()
				return nil
			}
			p.client = client
			known := make(map[string]bool)
			for _, t := range client.Adopt() {
				known[t.ID] = true
				if x, err := ExecutionOf(t.ID); err == nil && t.Running && p.running[x].name != t.ID {
					_ = client.Kill(t.ID, "nobody waits for it any more")
				}
			}
			for x, run := range p.running {
				if !known[run.name] && !run.over {
					delete(p.running, x)
					run.keeps = false
					p.settle(x, run)
					p.ended(lostEnd(x))
				}
			}
			return client
		}
		if p.ctx.Err() != nil {
			return nil
		}
		p.log.Error("no shim can be started, so no job can", "error", err)
		select {
		case <-time.After(reshim):
		case <-p.ctx.Done():
			return nil
		}
	}
}

// Start begins a task, or all of a squad. The end of each is reported once, also if it
// could not begin.
func (p *Processes) Start(task grid.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task.Job == nil {
		p.keepPilot(&task)
		return
	}
	for number := range tasksOf(&task) {
		p.start(&task, Process{task.ID, number})
	}
}

// start begins one task. The caller holds p.mu.
func (p *Processes) start(task *grid.Task, x Process) {
	p.squads.add(x)
	spec, err := p.Spec(task, x.Number, p.files.Process(task.Job.Home, x))
	if err == nil {
		spec.ID = p.newName(x)
		run := execution{name: spec.ID, scratch: p.scratchOf(task, x), output: p.files.Process(task.Job.Home, x), keeps: task.Job.Keeps(p.files.Site)}
		if task.Squad == nil { // the outputs of a squad are gathered from their files
			spec.Outputs = shim.OutputsTold
		}
		if spec.Outputs == shim.OutputsTold && spec.Plan == nil && task.Job.Home == p.files.Site {
			spec.Outputs, run.reuse = shim.OutputsLate, true
		}
		p.running[x] = run
		if err = p.client.Start(spec); err == nil || errors.Is(err, shim.ErrClosed) {
			return // if closed, reconnect reports it as lost
		}
		delete(p.running, x)
	}
	p.failed(x, err)
}

// failed reports a task that cannot be started. The caller holds p.mu.
func (p *Processes) failed(x Process, err error) {
	p.log.Warn("a job cannot be started", "job", x.Task.Job, "error", err)
	if atomicfile.NoDescriptors(err) { // which is not its fault: it is tried again, here or elsewhere
		p.running[x] = execution{name: p.newName(x), over: true}
		time.AfterFunc(shim.ScarcePause, func() {
			p.mu.Lock()
			delete(p.running, x)
			p.mu.Unlock()
			if p.ctx.Err() == nil {
				p.ended(lostEnd(x))
			}
		})
		return
	}
	now := grid.Time(time.Now().UnixMicro())
	result := grid.Result{Start: now, End: now, ExitCode: pilot.ExitNoStart, Reason: ShortReason(err)}
	p.ended(&Ended{TaskEnded: grid.TaskEnded{ID: x.Task, Result: result}, Number: x.Number})
}

// Kill ends a task and everything it started, or those of a squad that run. The ends are
// reported as usual. What is not there is reported as lost; of a squad, with pilot.Whole.
func (p *Processes) Kill(task grid.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there := false
	for x := range p.squads.of(task.ID) {
		if run, runs := p.running[x]; runs {
			there = true
			_ = p.client.Kill(run.name, task.Cause) // closed: reconnect reports what has become of it
		}
	}
	if !there {
		p.ended(lostEnd(Process{task.ID, pilot.Whole}))
	}
}

// Renew implements Engine.
func (p *Processes) Renew(id grid.TaskID, span grid.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run, runs := p.running[Process{Task: id}]; runs {
		_ = p.client.Renew(run.name, span) // closed: its shim is gone, and so is the task
	}
}

// Acknowledge says that the ends of these tasks, and of all of these squads, are durable:
// they may be forgotten.
func (p *Processes) Acknowledge(ended []grid.TaskID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ended {
		for x := range p.squads.of(id) {
			if name, told := p.told[x]; told {
				delete(p.told, x)
				_ = p.client.Ack(name) // closed: it is told again, and acknowledged then
			}
		}
		delete(p.squads, id)
	}
}

// Close lets go of the tasks: the shim and its tasks go on.
func (p *Processes) Close() error {
	p.mu.Lock()
	p.cancel()
	client := p.client
	p.mu.Unlock()
	client.Close()
	p.wg.Wait()
	return nil
}

// ShimPID returns the process number of the home's shim.
func (p *Processes) ShimPID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client.PID()
}

// ShortReason returns an error's text as a result may carry it.
func ShortReason(err error) string {
	text := err.Error()
	if len(text) > 256 {
		text = strings.ToValidUTF8(text[:253], "") + "..."
	}
	return text
}
