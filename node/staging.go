package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/sandbox"
	"gridnode/node/shim"
	"gridnode/node/site"
	"gridnode/node/wasm"
)

// staging is an engine that brings here what tasks need before another one starts them: the
// module that they are, the files and data sets that they read. What it keeps belongs to the
// host's loop.
type staging struct {
	run.Engine
	h       *Host
	modules *modules // nil: none are run
	ended   func(*run.Ended)
	tell    func(grid.Input)
	wg      sync.WaitGroup
	waiting map[stagedTask]*waiting
}

// beneath returns the engine that starts tasks in the end.
func beneath(engine run.Engine) run.Engine {
	if g, yes := engine.(*staging); yes {
		return g.Engine
	}
	return engine
}

// stagedTask is a task that waits for what it needs: of this site's own processors, or of a
// pilot.
type stagedTask struct {
	pilot bool
	key   uint64
	id    grid.TaskID
}

// waiting is a task on its way.
type waiting struct {
	cancel context.CancelFunc
	tasks  int         // processes of it, numbered; 0: it is no squad
	leased grid.Time   // end of its lease, 0 without one
	lapse  *time.Timer // ends it then
}

// exitStopped is the code of a task that was ended before it began: that of a SIGTERM.
const exitStopped = 128 + 15

// newStaging returns what has tasks wait, without the engine.
func newStaging(h *Host, x *pilots) *staging {
	return &staging{h: h, modules: h.modules, ended: x.ended, tell: x.tell, waiting: make(map[stagedTask]*waiting)}
}

// needs reports whether a task waits for something.
func (g *staging) needs(task *grid.Task) bool {
	if task.Job == nil {
		return false
	}
	tree, _ := task.Job.Tree()
	return tree != "" && g.h.filer != nil || task.Job.IsModule() && g.modules != nil
}

// Start implements Engine.
func (g *staging) Start(task grid.Task) {
	if !g.needs(&task) {
		g.Engine.Start(task)
		return
	}
	g.begin(stagedTask{id: task.ID}, &task, func(err error) {
		if err == nil {
			g.Engine.Start(task)
			return
		}
		now := g.h.Now()
		g.end(task.ID, tasksOf(&task), grid.Result{Start: now, End: now, ExitCode: pilot.ExitNoStart, Reason: run.ShortReason(err)})
	})
}

// tasksOf returns how many processes a squad is, 0 if it is none.
func tasksOf(task *grid.Task) int {
	if task.Squad == nil {
		return 0
	}
	return task.Squad.Tasks()
}

// end reports how a task, or each of a squad, ended that has not begun.
func (g *staging) end(id grid.TaskID, tasks int, result grid.Result) {
	for n := range max(tasks, 1) {
		g.ended(&run.Ended{TaskEnded: grid.TaskEnded{ID: id, Result: result}, Number: n})
	}
}

// Launch implements Engine.
func (g *staging) Launch(key uint64, task *grid.Task) {
	if !g.needs(task) {
		g.Engine.Launch(key, task)
		return
	}
	own := *task
	g.begin(stagedTask{true, key, task.ID}, &own, func(err error) {
		if err == nil {
			g.Engine.Launch(key, &own)
			return
		}
		for n := range max(tasksOf(&own), 1) {
			g.tell(&pilot.Unstarted{Key: key, ID: own.ID, Number: n, Why: run.ShortReason(err)})
		}
	})
}

// begin has what a task needs brought here and calls ready, unless stop comes first. The
// time that it takes is the task's.
func (g *staging) begin(x stagedTask, task *grid.Task, ready func(error)) {
	span := grid.SpanMax.Duration()
	if task.Limit > 0 {
		span = task.Limit.Duration()
	}
	ctx, cancel := context.WithTimeout(g.h.ctx, span)
	w := &waiting{cancel: cancel, tasks: tasksOf(task)}
	g.waiting[x] = w
	asked, began := time.Now(), g.h.Now()
	g.lease(x, task.Lease)
	settle := func(err error) {
		if g.waiting[x] != w {
			return // it was stopped
		}
		g.h.loop.tracer.Staged(task.ID, began, g.h.Now(), err)
		if w.leased > 0 {
			if g.lapsed(x, w) {
				return
			}
			task.Lease = max(w.leased-g.h.Now(), 1)
		}
		g.leave(x)
		if task.Limit > 0 {
			task.Limit -= grid.Time(time.Since(asked).Microseconds())
			if task.Limit <= 0 && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
				err = errors.New("its time was over when what it needs was here")
			}
		}
		ready(err)
	}
	g.wg.Go(func() {
		defer cancel()
		err := whileScarce(func() error { return g.bring(ctx, task) }, func() error { return g.h.pause(ctx, shim.ScarcePause) })
		g.h.inbox.put(&look{at: func(*site.Site) { settle(err) }, done: make(chan struct{})})
	})
}

// bring makes sure that all that a task needs is here.
func (g *staging) bring(ctx context.Context, task *grid.Task) error {
	if task.Job.IsModule() && g.modules != nil {
		ctx, cancel := context.WithTimeout(ctx, moduleSpan)
		defer cancel()
		if err := g.modules.bring(ctx, task.Job); err != nil {
			return err
		}
	}
	if tree, _ := task.Job.Tree(); tree != "" && g.h.filer != nil {
		if err := g.h.filer.stage(ctx, task); err != nil {
			return fmt.Errorf("its files: %w", err)
		}
	}
	return nil
}

// whileScarce tries something until there are descriptors for it: others end meanwhile. pause returns
// an error once there is no more time.
func whileScarce(try, pause func() error) error {
	for {
		if err := try(); !atomicfile.NoDescriptors(err) || pause() != nil {
			return err
		}
	}
}

// stop reports whether a task was waiting, and how many processes it is. It waits no more.
func (g *staging) stop(x stagedTask) (tasks int, waited bool) {
	w := g.waiting[x]
	if w == nil {
		return 0, false
	}
	g.leave(x)
	return w.tasks, true
}

// leave has a task wait no more.
func (g *staging) leave(x stagedTask) {
	w := g.waiting[x]
	delete(g.waiting, x)
	w.cancel()
	if w.lapse != nil {
		w.lapse.Stop()
	}
}

// lease has a task that waits wait for a span from now at most, unless that is 0.
func (g *staging) lease(x stagedTask, span grid.Time) {
	w := g.waiting[x]
	if span == 0 {
		return
	}
	w.leased = g.h.Now().Add(span)
	if w.lapse != nil {
		w.lapse.Stop()
	}
	w.lapse = time.AfterFunc(span.Duration(), func() {
		g.h.inbox.put(&look{at: func(*site.Site) { g.lapsed(x, w) }, done: make(chan struct{})})
	})
}

// lapsed ends a task that waits if its lease has ended, and reports whether it did: home
// may have it run elsewhere from now on.
func (g *staging) lapsed(x stagedTask, w *waiting) bool {
	now := g.h.Now()
	if g.waiting[x] != w || now < w.leased {
		return false
	}
	g.leave(x)
	for n := range max(w.tasks, 1) {
		g.ended(&run.Ended{TaskEnded: grid.TaskEnded{ID: x.id, Result: grid.Result{Start: now, End: now, ExitCode: exitStopped}, Lapsed: true}, Number: n})
	}
	return true
}

// Renew implements Engine.
func (g *staging) Renew(id grid.TaskID, span grid.Time) {
	x := stagedTask{id: id}
	if w := g.waiting[x]; w == nil {
		g.Engine.Renew(id, span)
	} else if w.leased > 0 {
		g.lease(x, max(span, 1))
	}
}

// Kill implements Engine.
func (g *staging) Kill(task grid.Task) {
	tasks, waited := g.stop(stagedTask{id: task.ID})
	if !waited {
		g.Engine.Kill(task)
		return
	}
	now := g.h.Now()
	g.end(task.ID, tasks, grid.Result{Start: now, End: now, ExitCode: exitStopped, Reason: task.Cause})
}

// Stop implements Engine.
func (g *staging) Stop(key uint64, id grid.TaskID, reason string) {
	tasks, waited := g.stop(stagedTask{true, key, id})
	if !waited {
		g.Engine.Stop(key, id, reason)
		return
	}
	for n := range max(tasks, 1) {
		g.tell(&pilot.Over{Key: key, ID: id, Number: n, End: pilot.End{ExitCode: exitStopped, Reason: reason}})
	}
}

// Close implements Engine.
func (g *staging) Close() error {
	for x := range g.waiting {
		g.leave(x)
	}
	g.wg.Wait()
	return g.Engine.Close()
}

// ModulesConfig says how modules run.
type ModulesConfig struct {
	Program string      // this one; empty: modules are not run
	Shared  bool        // jobs of this site run as other accounts than the daemon's, too
	Guests  wasm.Guests // of other sites
	Coarse  bool        // those have clocks of a millisecond
	Cache   int64       // bytes of all modules that are kept, and of their code
}

// modules brings modules here for tasks that are one.
type modules struct {
	h        *Host
	store    *wasm.Store
	compiler *wasm.Compiler
}

// Bounds of bringing a module here for a task.
const (
	moduleSpan   = 3 * time.Minute
	moduleRounds = 3
)

// newModules returns what has modules ready, and tells the engine of it; nil if modules are
// not run.
func newModules(h *Host, setup *run.Setup) (*modules, error) {
	c := h.cfg.Modules
	if c.Program == "" || h.cfg.Home == "" {
		return nil, nil
	}
	dir, err := h.files.MakeModules(c.Shared)
	if err != nil {
		return nil, err
	}
	store, err := wasm.OpenStore(dir, c.Cache)
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	means := sync.OnceValue(sandbox.Find)
	if h.cfg.Means != nil {
		means = func() *sandbox.Means { return h.cfg.Means }
	}
	name := filepath.Join(h.files.Home, run.ModulesDir)
	if err := sandbox.Sweep(name); err != nil {
		h.log.Warn("what compiled a module when the daemon died may be left", "error", err)
	}
	setup.Modules = run.Modules{Store: store, Program: func() (string, error) { return c.Program, nil }, Guests: c.Guests, Coarse: c.Coarse}
	return &modules{
		h: h, store: store,
		compiler: &wasm.Compiler{Program: c.Program, Name: name, Means: means, Walls: cmp.Or(h.cfg.Sandbox.Walls, sandbox.Auto)},
	}, nil
}

// bring makes sure that the module of a job is here, compiled.
func (m *modules) bring(ctx context.Context, job *grid.Job) error {
	module := job.Command.Module
	needed, err := m.needed(ctx)
	if err != nil {
		return err
	}
	err = m.store.Bring(ctx, module.Digest, module.Size, func(digest string) bool { return needed[digest] }, func(path string) error {
		return m.fetch(ctx, job.Home, module, path)
	}, m.compiler)
	if err != nil {
		return fmt.Errorf("its module: %w", err)
	}
	return nil
}

// needed returns the modules of jobs that have not ended.
func (m *modules) needed(ctx context.Context) (map[string]bool, error) {
	needed := make(map[string]bool)
	err := m.h.Do(ctx, func(s *site.Site) {
		for v := range s.Jobs {
			if !v.State.Terminal() && v.Job.IsModule() {
				needed[v.Job.Command.Module.Digest] = true
			}
		}
	})
	return needed, err
}

// fetch copies a module from the home of its job.
func (m *modules) fetch(ctx context.Context, home grid.SiteID, module *grid.Module, path string) (err error) {
	if home == m.h.id {
		return errors.New("it is not kept here any more: submit the job again")
	}
	defer os.Remove(path + run.PartSuffix) // what pour has left
	for round := range moduleRounds {
		if round > 0 {
			if err := m.h.pause(ctx, bringPause); err != nil {
				return err
			}
		}
		if err = m.h.bring.fetch(ctx, home, grid.DigestPrefix+module.Digest, module.Size, path); err == nil || ctx.Err() != nil {
			break
		}
		if hopeless(err) {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("it cannot be had from the job's home: %w", err)
	}
	return nil
}

// ErrNoModules is returned for modules by a host that runs none.
var ErrNoModules = errors.New("this site runs no modules")

// PutModule keeps a module for jobs that will be submitted here. An error that wraps
// wasm.ErrModule says that it is none.
func (h *Host) PutModule(ctx context.Context, r io.Reader) (*grid.Module, error) {
	if h.modules == nil {
		return nil, ErrNoModules
	}
	needed, err := h.modules.needed(ctx)
	if err != nil {
		return nil, err
	}
	digest, size, err := h.modules.store.Put(r, func(digest string) bool { return needed[digest] })
	if err != nil {
		return nil, err
	}
	return &grid.Module{Digest: digest, Size: size}, nil
}

// HasModule returns a module that is kept here.
func (h *Host) HasModule(digest string) (*grid.Module, error) {
	if h.modules == nil {
		return nil, ErrNoModules
	}
	size, here := h.modules.store.Has(digest)
	if !here {
		return nil, fmt.Errorf("module %s is not here: hand it over first (POST /v1/modules)", digest)
	}
	return &grid.Module{Digest: digest, Size: size}, nil
}

// shared returns what opens a module that other sites may copy, as Host.shared does: whoever
// knows its digest has a job of it.
func (m *modules) shared(digest string) (open func() (*os.File, error), held dataset.Set, why string) {
	held.Name = grid.DigestPrefix + digest
	size, here := m.store.Has(digest)
	if !here {
		return nil, held, "not held"
	}
	held.Size = size
	return func() (*os.File, error) { return m.store.Open(digest) }, held, ""
}
