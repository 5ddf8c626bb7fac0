package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// Processes is the engine of production: each task is a process under the home's
// shim. The shim outlives the daemon, and a shim that dies is started again.
type Processes struct {
	files   Files // of an absolute home
	options shim.Options
	name    string // of the site, for people
	ended   func(*grid.TaskEnded)
	tell    func(grid.Input) // of pilots
	env     []string         // of every task
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	client  *shim.Client
	running map[grid.TaskID]execution // started and not reported
	told    map[grid.TaskID]string    // reported and not acknowledged: their names
	names   int64                     // newest number in a name

	pilots pilots
}

// reshim is the pause between attempts to get a shim again.
const reshim = time.Second

// recoverMax is how long Recover waits for ends that the shim says it has.
const recoverMax = 30 * time.Second

// ProcessConfig describes an engine of processes.
type ProcessConfig struct {
	Files  Files
	Name   string // of the site, for people
	Shim   shim.Options
	Logger *slog.Logger

	// Pilots is told what the pilots say: inputs of a pilot.Keeper, from any goroutine,
	// those of one pilot in order.
	Pilots func(grid.Input)
}

// StartProcesses connects to the home's shim, starting one if there is none. ended is
// told each end once, from any goroutine.
func StartProcesses(ctx context.Context, cfg ProcessConfig, ended func(*grid.TaskEnded)) (*Processes, error) {
	if cfg.Files.Home == "" {
		return nil, errors.New("running processes needs a home directory")
	}
	home, err := filepath.Abs(cfg.Files.Home)
	if err != nil {
		return nil, err
	}
	p := &Processes{
		files: Files{Home: home, Site: cfg.Files.Site}, options: cfg.Shim, name: cfg.Name,
		ended: ended, tell: cfg.Pilots, env: baseEnv(), log: cfg.Logger, running: make(map[grid.TaskID]execution), told: make(map[grid.TaskID]string),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.client, err = shim.Connect(ctx, home, p.options); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// baseEnv is what every task gets of the daemon's environment.
func baseEnv() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	for i, name := range []string{"PATH", "LANG"} {
		if value := os.Getenv(name); value != "" {
			env[i] = name + "=" + value
		}
	}
	if u, err := user.Current(); err == nil {
		env = append(env, "USER="+u.Username, "LOGNAME="+u.Username)
	}
	return env
}

// Recover implements Executor.
func (p *Processes) Recover() (running []site.Adopted, ended []grid.TaskEnded, err error) {
	waiting := make(map[string]bool)
	begun := make(map[grid.TaskID]grid.Time)
	for _, t := range p.client.Adopt() {
		id, err := executionOf(t.ID)
		if err != nil {
			p.log.Error("the shim knows a task that is not ours", "task", t.ID)
			continue
		}
		if !t.Running {
			waiting[t.ID] = true
		}
		if t.Start >= begun[id] { // of two runs the later one counts; the end of the other was reported
			begun[id] = t.Start
			p.running[id] = execution{name: t.ID} // its home is in the site's record; only its scratch is lost track of
		}
	}
	for _, t := range p.client.Adopt() {
		if id, err := executionOf(t.ID); err == nil && t.Running && p.running[id].name == t.ID {
			running = append(running, site.Adopted{ID: id, Start: t.Start})
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
			if task, ok := p.report(&e); ok {
				ended = append(ended, task)
			}
		case <-timeout.C:
			return nil, nil, fmt.Errorf("the shim has not reported %d tasks that ended", len(waiting))
		}
	}
	p.wg.Go(p.pump)
	return running, ended, nil
}

// report turns the shim's report into the site's input, unless it had that before: a shim
// that dies before it knows that an end is safe has the next one tell it again.
func (p *Processes) report(e *shim.Ended) (grid.TaskEnded, bool) {
	id, err := executionOf(e.ID)
	if err != nil {
		p.client.Ack(e.ID) // nobody will ever ask for it
		return grid.TaskEnded{}, false
	}
	p.mu.Lock()
	run := p.running[id]
	fresh := run.name == e.ID
	if fresh {
		delete(p.running, id)
		p.told[id] = e.ID
	} else if p.told[id] != e.ID { // else Acknowledge follows
		_ = p.client.Ack(e.ID) // closed: it is told again
	}
	p.mu.Unlock()
	if !fresh {
		return grid.TaskEnded{}, false
	}
	if run.home != "" {
		scratch := p.files.Task(run.home, id) + ScratchSuffix
		if os.Remove(scratch) != nil { // it is not empty
			if err := os.RemoveAll(scratch); err != nil {
				p.log.Warn("cannot remove what a job left", "error", err)
			}
		}
	}
	if key, yes := site.IsPilot(id); yes {
		p.clearPilot(key)
	}
	ended := grid.TaskEnded{ID: id, Lost: e.Cause == shim.CauseLost}
	if !ended.Lost {
		ended.Result = grid.Result{Start: e.Start, End: max(e.End, e.Start), ExitCode: e.ExitCode, Reason: e.Reason}
	}
	return ended, true
}

// pump passes ends on until the executor is closed. When the shim is gone it gets
// another one.
func (p *Processes) pump() {
	client := p.client
	for {
		for e := range client.Events() {
			if ended, ok := p.report(&e); ok {
				p.ended(&ended)
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
				if id, err := executionOf(t.ID); err == nil && t.Running && p.running[id].name != t.ID {
					_ = client.Kill(t.ID, "nobody waits for it any more")
				}
			}
			for id, run := range p.running {
				if !known[run.name] {
					delete(p.running, id)
					p.ended(&grid.TaskEnded{ID: id, Lost: true})
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

// Start implements Executor.
func (p *Processes) Start(task grid.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if task.Job == nil {
		p.keepPilot(&task)
		return
	}
	spec, err := p.spec(&task)
	if err == nil {
		spec.ID = p.newName(task.ID)
		p.running[task.ID] = execution{spec.ID, task.Job.Home}
		if err = p.client.Start(spec); err == nil || errors.Is(err, shim.ErrClosed) {
			return // if closed, reconnect reports it as lost
		}
		delete(p.running, task.ID)
	}
	p.failed(&task, err)
}

// failed reports a task that cannot be started.
func (p *Processes) failed(task *grid.Task, err error) {
	p.log.Warn("a job cannot be started", "job", task.ID.Job, "error", err)
	now := grid.Time(time.Now().UnixMicro())
	p.ended(&grid.TaskEnded{ID: task.ID, Result: grid.Result{Start: now, End: now, ExitCode: pilot.ExitNoStart, Reason: ShortReason(err)}})
}

// spec makes the task's scratch directory and says what to run.
func (p *Processes) spec(task *grid.Task) (shim.Spec, error) {
	return p.specAt(task, p.files.Task(task.Job.Home, task.ID))
}

// specAt does so for a task whose files begin with base.
func (p *Processes) specAt(task *grid.Task, base string) (shim.Spec, error) {
	command := task.Job.Command
	if command == nil {
		return shim.Spec{}, errors.New("the job has no command")
	}
	scratch := base + ScratchSuffix
	err := os.Mkdir(scratch, 0o700)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = os.MkdirAll(scratch, 0o700)
	}
	if err != nil {
		return shim.Spec{}, err
	}
	work := scratch
	if task.Job.Home == p.files.Site && command.Dir != "" {
		work = command.Dir
		if info, err := os.Stat(work); err != nil || !info.IsDir() {
			return shim.Spec{}, fmt.Errorf("working directory %s: there is no such directory", work)
		}
	}
	return shim.Spec{
		ID: TaskName(task.ID), Args: command.Args, Env: p.taskEnv(task, scratch), Dir: work,
		Stdout: base + Stdout.Suffix(), Stderr: base + Stderr.Suffix(), Limit: task.Limit,
	}, nil
}

// taskEnv returns the environment of a task: what the site gives, overridden by what the
// job brings, and last what the job cannot change.
func (p *Processes) taskEnv(task *grid.Task, scratch string) []string {
	job := task.Job
	home := scratch // another site's job has no business in our home
	if job.Home == p.files.Site {
		if dir, err := os.UserHomeDir(); err == nil {
			home = dir
		}
	}
	fixed := []string{
		"GRIDNODE_SITE=" + p.name,
		"GRIDNODE_SITE_ID=" + string(p.files.Site),
		"GRIDNODE_JOB_ID=" + job.ID.String(),
		"GRIDNODE_HOME_SITE=" + string(job.Home),
		"GRIDNODE_NTASKS=" + strconv.FormatInt(job.Tasks, 10),
		"GRIDNODE_CPUS_PER_TASK=" + strconv.FormatInt(job.Processors/max(job.Tasks, 1), 10),
		"GRIDNODE_NPROCS=" + strconv.FormatInt(job.Processors, 10),
	}
	if task.Rank != nil {
		fixed = append(fixed, rankEnv(task.Rank)...)
	}
	env := make([]string, 0, len(p.env)+2+len(job.Command.Env)+len(fixed))
	env = append(append(env, p.env...), "HOME="+home, "TMPDIR="+scratch)
	for _, setting := range job.Command.Env {
		env = setEnv(env, setting)
	}
	for _, setting := range fixed {
		env = setEnv(env, setting)
	}
	return env
}

// setEnv adds a setting NAME=VALUE, in the place of one of the same name.
func setEnv(env []string, setting string) []string {
	name, _, _ := strings.Cut(setting, "=")
	for i, old := range env {
		if strings.HasPrefix(old, name) && len(old) > len(name) && old[len(name)] == '=' {
			env[i] = setting
			return env
		}
	}
	return append(env, setting)
}

// Kill implements Executor.
func (p *Processes) Kill(task grid.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	run, known := p.running[task.ID]
	if !known {
		p.ended(&grid.TaskEnded{ID: task.ID, Lost: true})
		return
	}
	_ = p.client.Kill(run.name, task.Cause) // closed: reconnect reports what has become of it
}

// Acknowledge implements Executor.
func (p *Processes) Acknowledge(ended []grid.TaskID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ended {
		if name, told := p.told[id]; told {
			delete(p.told, id)
			_ = p.client.Ack(name) // closed: it is told again, and acknowledged then
		}
	}
}

// Close implements Executor: the shim and its tasks go on.
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
