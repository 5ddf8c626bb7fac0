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
	"gridnode/node/shim"
	"gridnode/node/site"
)

// A pilot keeps processors that are lent: a shim of its own, run as a task by the
// home's shim. So it is a process of its own, in a directory and a session of its own;
// when the lease is over it is ended with everything it started, by the home's shim and
// at the limit that was last ordered, whether the daemon lives or not.

// pilotConnectMax is how long a pilot may take to listen.
const pilotConnectMax = 20 * time.Second

// keepPilot starts a pilot, or has it last longer. The caller holds p.mu.
func (p *Processes) keepPilot(task *grid.Task) {
	// A shim that has neither tasks nor a daemon ends after a while; and the lease with it.
	defer p.wg.Go(func() { _, _ = p.Link(p.ctx, task.Pilot.Key) }) // whoever needs the link sees the error
	if run, runs := p.running[task.ID]; runs {
		_ = p.client.Extend(run.name, task.Limit) // closed: reconnect reports what has become of it
		return
	}
	dir := p.files.Pilot(task.Pilot.Key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.failed(task, err)
		return
	}
	args, env := p.options.For(dir)
	log := filepath.Join(dir, "pilot.log")
	name := p.newName(task.ID)
	p.running[task.ID] = execution{name: name}
	err := p.client.Start(shim.Spec{
		ID: name, Args: args, Env: append(env, p.env...), Dir: dir, Stdout: log, Stderr: log, Limit: task.Limit,
	})
	if err != nil && !errors.Is(err, shim.ErrClosed) { // if closed, reconnect reports it as lost
		delete(p.running, task.ID)
		p.failed(task, err)
	}
}

// clearPilot removes what a pilot that is gone has left.
func (p *Processes) clearPilot(key uint64) {
	p.pilots.drop(key)
	if err := os.RemoveAll(p.files.Pilot(key)); err != nil {
		p.log.Warn("cannot remove what a pilot left", "error", err)
	}
}

// pilots are the daemon's connections to its pilots.
type pilots struct {
	mu    sync.Mutex
	links map[uint64]*PilotLink
}

// PilotLink is the connection to one pilot.
type PilotLink struct {
	key    uint64
	Dir    string
	ready  chan struct{} // closed when client or err is set
	client *shim.Client
	err    error

	mu      sync.Mutex
	tasks   map[string]*pilotTask
	changed chan struct{} // closed, and replaced, when a task has ended
	gone    bool          // the pilot is
}

// pilotTask is a task of a pilot whose end is not acknowledged.
type pilotTask struct {
	processors int64
	ended      *shim.Ended // nil while it runs
}

// Link returns the connection to a pilot, which may be starting.
func (p *Processes) Link(ctx context.Context, key uint64) (*PilotLink, error) {
	p.pilots.mu.Lock()
	l := p.pilots.links[key]
	if l == nil && p.ctx.Err() != nil {
		p.pilots.mu.Unlock()
		return nil, errClosed
	}
	if l == nil {
		l = &PilotLink{key: key, Dir: p.files.Pilot(key), ready: make(chan struct{}), tasks: make(map[string]*pilotTask), changed: make(chan struct{})}
		if p.pilots.links == nil {
			p.pilots.links = make(map[uint64]*PilotLink)
		}
		p.pilots.links[key] = l
		p.wg.Go(func() { p.serveLink(l) })
	}
	p.pilots.mu.Unlock()
	select {
	case <-l.ready:
		return l, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drop forgets the connection to a pilot.
func (ps *pilots) drop(key uint64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.links, key)
}

// serveLink connects to a pilot and takes in what it reports until it is gone.
func (p *Processes) serveLink(l *PilotLink) {
	l.client, l.err = p.dialPilot(l.Dir)
	if l.err != nil {
		p.pilots.drop(l.key)
		close(l.ready)
		return
	}
	for _, t := range l.client.Adopt() { // of before a restart of the daemon
		l.tasks[t.ID] = &pilotTask{}
	}
	close(l.ready)
	stop := context.AfterFunc(p.ctx, l.client.Close)
	defer stop()
	for e := range l.client.Events() {
		l.mu.Lock()
		t := l.tasks[e.ID]
		if t == nil {
			t = &pilotTask{}
			l.tasks[e.ID] = t
		}
		t.ended, t.processors = &e, 0
		l.wake()
		l.mu.Unlock()
	}
	l.mu.Lock()
	l.gone = true
	l.wake()
	l.mu.Unlock()
	p.pilots.mu.Lock()
	if p.pilots.links[l.key] == l {
		delete(p.pilots.links, l.key)
	}
	p.pilots.mu.Unlock()
	l.client.Close()
}

// wake tells whoever waits for a change. The caller holds l.mu.
func (l *PilotLink) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// PilotTasksMax bounds the tasks of one lease whose ends are not acknowledged.
const PilotTasksMax = 1 << 14

// dialPilot connects to a pilot once it listens.
func (p *Processes) dialPilot(dir string) (*shim.Client, error) {
	ctx, cancel := context.WithTimeout(p.ctx, pilotConnectMax)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		client, err := shim.Dial(ctx, dir)
		if err == nil {
			return client, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("the pilot does not answer: %w", err)
		}
	}
}

// StartAway starts a task unless the pilot has or had it. processors is how many the lease
// has. It reports whether the task was there; an error says why it was not started.
func (p *Processes) StartAway(l *PilotLink, task *grid.Task, processors int64, resume bool) (known bool, err error) {
	name := TaskName(task.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return false, errors.New("the pilot is gone")
	}
	if l.tasks[name] != nil {
		return true, nil
	}
	if resume {
		return false, nil
	}
	if len(l.tasks) >= PilotTasksMax {
		return false, fmt.Errorf("the lease has %d tasks whose ends were not acknowledged", PilotTasksMax)
	}
	used := task.Job.Processors
	for _, t := range l.tasks {
		used += t.processors
	}
	if used > processors {
		return false, fmt.Errorf("%d processors are wanted, the lease has %d", used, processors)
	}
	spec, err := p.specAt(task, filepath.Join(l.Dir, name))
	if err != nil {
		return false, err
	}
	if err := l.client.Start(spec); err != nil {
		return false, err
	}
	l.tasks[name] = &pilotTask{processors: task.Job.Processors}
	return true, nil
}

// Kill ends a task. One that is not there will not be started any more: it has ended.
func (l *PilotLink) Kill(name, reason string) (ended *shim.Ended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tasks[name]
	if t == nil && len(l.tasks) >= PilotTasksMax {
		return nil
	}
	if t == nil {
		t = &pilotTask{ended: &shim.Ended{ID: name, ExitCode: site.ExitCancelled, Cause: shim.CauseKill, Reason: reason}}
		l.tasks[name] = t
	} else if t.ended == nil {
		_ = l.client.Kill(name, reason) // closed: the pilot is gone, and so is the task
	}
	return t.ended
}

// Forget says that the borrower has the end of a task.
func (l *PilotLink) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.tasks[name]; t == nil || t.ended == nil {
		return
	}
	delete(l.tasks, name)
	_ = l.client.Ack(name)
	base := filepath.Join(l.Dir, name)
	for _, end := range []string{Stdout.Suffix(), Stderr.Suffix()} {
		_ = os.Remove(base + end) // it goes with the pilot at the latest
	}
	_ = os.RemoveAll(base + ScratchSuffix)
}

// Look returns a task's end, nil if it runs, and a channel that is closed when that
// may have changed. there is false if the pilot does not have it.
func (l *PilotLink) Look(name string) (ended *shim.Ended, changed <-chan struct{}, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tasks[name]
	if t == nil || l.gone {
		return nil, l.changed, false
	}
	return t.ended, l.changed, true
}
