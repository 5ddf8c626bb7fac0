package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/pilot"
	"gridnode/node/shim"
)

// A pilot keeps processors that are lent: a shim of its own, run as a task by the
// home's shim. So it is a process of its own, in a directory and a session of its own;
// when the lease is over it is ended with everything it started, by the home's shim and
// at the limit that was last ordered, whether the daemon lives or not. It does not end before,
// as it has what the daemon has to know of tasks that have ended.

// pilotConnectMax is how long a pilot may take to listen.
const pilotConnectMax = 20 * time.Second

// keepPilot starts a pilot, or has it last longer. The caller holds p.mu.
func (p *Processes) keepPilot(task *grid.Task) {
	x := Process{Task: task.ID}
	if run, runs := p.running[x]; runs {
		if task.More > 0 { // the shim counts a span, and knows better than the clock
			return
		}
		_ = p.client.Extend(run.name, task.Limit) // closed: reconnect reports what has become of it
		return
	}
	dir := p.files.Pilot(task.Pilot.Key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.failed(x, err)
		return
	}
	args, env := p.options.For(dir)
	log := filepath.Join(dir, "pilot.log")
	name := p.newName(x)
	p.running[x] = execution{name: name}
	err := p.client.Start(shim.Spec{
		ID: name, Args: args, Env: append(append(env, p.env...), shim.KeptEnv+"=1"), Dir: dir, Stdout: log, Stderr: log, Limit: task.Limit,
	})
	if err != nil && !errors.Is(err, shim.ErrClosed) { // if closed, reconnect reports it as lost
		delete(p.running, x)
		p.failed(x, err)
	}
}

// clearPilot removes what a pilot that is gone has left.
func (p *Processes) clearPilot(key uint64) {
	p.pilots.drop(key)
	if err := p.files.clearLeased(key); err != nil {
		p.log.Warn("cannot remove what a pilot left", "error", err)
	}
}

// pilots are the daemon's connections to its pilots.
type pilots struct {
	mu    sync.Mutex
	links map[uint64]*pilotLink
}

// pilotLink is the connection to one pilot.
type pilotLink struct {
	client *shim.Client       // nil while it is dialled
	cancel context.CancelFunc // of dialling
	squads sizes              // that the pilot has
}

// use calls do with the connection to a pilot, if there is one.
func (ps *pilots) use(key uint64, do func(client *shim.Client, squads sizes)) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if l := ps.links[key]; l != nil && l.client != nil {
		do(l.client, l.squads)
	}
}

// drop forgets the connection to a pilot.
func (ps *pilots) drop(key uint64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if l := ps.links[key]; l != nil {
		l.cancel()
		delete(ps.links, key)
	}
}

// PilotDir is the directory of a pilot and its tasks.
func (p *Processes) PilotDir(key uint64) string { return p.files.Pilot(key) }

// DialPilot connects to a pilot, which may be starting. Setup.Pilots is told Up
// and then the ends of its tasks, or Down; and Down when the connection is gone.
func (p *Processes) DialPilot(key uint64) {
	if p.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, pilotConnectMax)
	l := &pilotLink{cancel: cancel, squads: make(sizes)}
	p.pilots.mu.Lock()
	if p.pilots.links == nil {
		p.pilots.links = make(map[uint64]*pilotLink)
	}
	p.pilots.links[key] = l
	p.pilots.mu.Unlock()
	p.wg.Go(func() {
		defer cancel()
		err := p.servePilot(ctx, key, l)
		p.pilots.mu.Lock()
		if p.pilots.links[key] == l {
			delete(p.pilots.links, key)
		}
		p.pilots.mu.Unlock()
		if p.ctx.Err() == nil {
			p.tell(&pilot.Down{Key: key, Why: ShortReason(err)})
		}
	})
}

// servePilot tells what a pilot says until it is gone.
func (p *Processes) servePilot(ctx context.Context, key uint64, l *pilotLink) error {
	client, err := dialShim(ctx, p.files.Pilot(key))
	if err != nil {
		return fmt.Errorf("the pilot does not answer: %w", err)
	}
	defer client.Close()
	stop := context.AfterFunc(p.ctx, client.Close)
	defer stop()
	p.pilots.mu.Lock()
	l.client = client
	up := adopt(client, key, l.squads)
	p.pilots.mu.Unlock()
	p.tell(up)
	for e := range client.Events() {
		x, err := processOf(e.ID)
		if err != nil {
			_ = client.Ack(e.ID) // nobody will ever ask for it
			continue
		}
		if err := p.files.SettleLeased(key, x); err != nil {
			p.log.Warn("cannot keep what a task on lent processors left", "job", x.Task.Job, "error", err)
		}
		p.tell(&pilot.Over{Key: key, ID: x.Task, Number: x.Number, End: pilot.End{
			Ran: EndOf(&e) - e.Start, ExitCode: e.ExitCode, Reason: e.Reason, Lost: e.Cause == shim.CauseLost,
		}})
	}
	return errors.New("the pilot is gone")
}

// adopt says what a pilot has of before a restart of the daemon.
func adopt(client *shim.Client, key uint64, squads sizes) *pilot.Up {
	up := &pilot.Up{Key: key}
	at := make(map[grid.TaskID]int)
	for _, t := range client.Adopt() {
		x, err := processOf(t.ID)
		if err != nil {
			continue
		}
		squads.add(x)
		i, known := at[x.Task]
		if !known {
			i = len(up.Tasks)
			at[x.Task] = i
			up.Tasks = append(up.Tasks, pilot.Adopted{ID: x.Task})
		}
		up.Tasks[i].Tasks++
		up.Tasks[i].Running = up.Tasks[i].Running || t.Running
	}
	return up
}

// dialShim connects to the shim of a home once it listens.
func dialShim(ctx context.Context, home string) (*shim.Client, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		client, err := shim.Dial(ctx, home)
		if err == nil {
			return client, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Launch starts a task under a pilot, or all of a squad. Setup.Pilots is told Over
// when each has ended, or Unstarted; nothing more than Down if the connection is gone.
func (p *Processes) Launch(key uint64, task *grid.Task) {
	p.pilots.use(key, func(client *shim.Client, squads sizes) {
		for number := range tasksOf(task) {
			x := Process{task.ID, number}
			squads.add(x)
			spec, err := p.Spec(task, number, filepath.Join(p.files.Pilot(key), x.Name()))
			if err == nil {
				err = p.files.NoteLeased(key, x, task.Job)
			}
			if err == nil {
				err = client.Start(spec)
			}
			switch {
			case err == nil, errors.Is(err, shim.ErrClosed):
			case atomicfile.NoDescriptors(err): // which is not its fault
				time.AfterFunc(shim.ScarcePause, func() {
					p.tell(&pilot.Over{Key: key, ID: task.ID, Number: number, End: pilot.End{Lost: true}})
				})
			default:
				p.tell(&pilot.Unstarted{Key: key, ID: task.ID, Number: number, Why: ShortReason(err)})
			}
		}
	})
}

// Stop ends a task of a pilot, or all of a squad.
func (p *Processes) Stop(key uint64, id grid.TaskID, reason string) {
	p.pilots.use(key, func(client *shim.Client, squads sizes) {
		for x := range squads.of(id) {
			_ = client.Kill(x.Name(), reason) // closed: Down is told
		}
	})
}

// Forget removes what a task of a pilot has left, or all of a squad have.
func (p *Processes) Forget(key uint64, id grid.TaskID) {
	p.pilots.use(key, func(client *shim.Client, squads sizes) {
		for x := range squads.of(id) {
			_ = client.Ack(x.Name()) // closed: it is reported again, and forgotten with the pilot
			p.files.ForgetLeased(key, x)
		}
		delete(squads, id)
	})
}
