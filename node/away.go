package node

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// away is the executor of borrowed processors: it has pilots at other sites run tasks,
// and writes their output into the same files as if they ran here. A broken stream is
// made anew and the tasks go on; how long that makes sense is the book's to say, which
// ends the lease.
type away struct {
	h     *Host
	ended func(*grid.TaskEnded)
	log   *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	links map[grid.SiteID]*awayLink
	where map[grid.TaskID]*awayTask
}

// awayLink is what runs at one site.
type awayLink struct {
	site  grid.SiteID
	tasks map[grid.TaskID]*awayTask // under away.mu
	wake  chan struct{}             // holds a token when there are orders to send
}

// awayTask is a task on borrowed processors. Its fields are under away.mu.
type awayTask struct {
	task  grid.Task
	link  *awayLink
	start grid.Time // when the pilot said that it has it; 0 before

	held bool // of a gang: it is to be prepared only, until Go

	ordered bool // in the present stream
	retry   time.Time
	kill    bool
	killed  bool // in the present stream
	cause   string
	over    bool // its end was reported to the site
	safe    bool // and is acknowledged

	written [2]int64 // bytes of its outputs that are here
}

// Pauses between attempts to reach a site, and after a refusal.
const (
	awayPauseMin = 100 * time.Millisecond
	awayPauseMax = 5 * time.Second
)

func newAway(h *Host, ended func(*grid.TaskEnded)) *away {
	a := &away{h: h, ended: ended, log: h.log, links: make(map[grid.SiteID]*awayLink), where: make(map[grid.TaskID]*awayTask)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Recover implements Executor: the site's records say what runs away.
func (a *away) Recover() ([]site.Adopted, []grid.TaskEnded, error) { return nil, nil, nil }

// Start implements Executor. A task that was begun before a restart of the daemon has
// its output here and is not begun again.
func (a *away) Start(task grid.Task) { a.add(task, false) }

// Hold has a task of a gang prepared; gangs.rankReady is told when it is, and Go starts
// it. One that was begun before a restart of the daemon goes on.
func (a *away) Hold(task grid.Task) { a.add(task, true) }

// Go starts tasks that are held.
func (a *away) Go(ids []grid.TaskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if t := a.where[id]; t != nil && t.held {
			t.held, t.ordered, t.retry = false, false, time.Time{}
			t.link.ring()
		}
	}
}

func (a *away) add(task grid.Task, held bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.where[task.ID] != nil {
		return
	}
	t := &awayTask{task: task, held: held}
	for i := range t.written {
		if info, err := os.Stat(a.path(task.ID, i)); err == nil {
			t.written[i], t.start = info.Size(), a.h.Now()
		}
	}
	if t.held && t.start != 0 {
		t.held = false
		a.h.gangs.rankReady(task.ID)
	}
	l := a.links[task.Pilot.Site]
	if l == nil {
		l = &awayLink{site: task.Pilot.Site, tasks: make(map[grid.TaskID]*awayTask), wake: make(chan struct{}, 1)}
		a.links[l.site] = l
		a.wg.Go(func() { a.serve(l) })
	}
	t.link = l
	l.tasks[task.ID] = t
	a.where[task.ID] = t
	l.ring()
}

// path returns the file of one of a task's outputs: 0 stdout, 1 stderr.
func (a *away) path(id grid.TaskID, output int) string {
	return a.h.files.Task(a.h.id, id) + run.Stream(output+1).Suffix()
}

// Kill implements Executor.
func (a *away) Kill(task grid.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.where[task.ID]
	if t == nil || t.over {
		a.ended(&grid.TaskEnded{ID: task.ID, Lost: true})
		return
	}
	t.kill, t.cause = true, task.Cause
	t.link.ring()
}

// Acknowledge implements Executor.
func (a *away) Acknowledge(ended []grid.TaskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ended {
		if t := a.where[id]; t != nil && t.over {
			t.safe = true
			t.link.ring()
		}
	}
}

// Close implements Executor: the tasks go on, to be taken up by the next host.
func (a *away) Close() error {
	a.cancel()
	a.wg.Wait()
	return nil
}

func (l *awayLink) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// serve keeps a stream to a site while tasks run there.
func (a *away) serve(l *awayLink) {
	pause := awayPauseMin
	for {
		began := time.Now()
		err := a.session(l)
		if a.idle(l) || a.ctx.Err() != nil {
			return
		}
		if time.Since(began) > awayPauseMax {
			pause = awayPauseMin
		}
		a.log.Info("the pilots of a site cannot be reached", "site", l.site, "error", err)
		select {
		case <-time.After(pause):
		case <-a.ctx.Done():
			return
		}
		pause = min(2*pause, awayPauseMax)
		a.dropUnwanted(l)
		if a.idle(l) {
			return
		}
	}
}

// idle forgets a site at which nothing runs, and reports whether it did.
func (a *away) idle(l *awayLink) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(l.tasks) > 0 {
		return false
	}
	delete(a.links, l.site)
	return true
}

// dropUnwanted forgets tasks whose lease is over: nobody waits for them.
func (a *away) dropUnwanted(l *awayLink) {
	a.mu.Lock()
	ids := make([]grid.TaskID, 0, len(l.tasks))
	for id, t := range l.tasks {
		if !t.over {
			ids = append(ids, id)
		}
	}
	a.mu.Unlock()
	var unwanted []grid.TaskID
	err := a.h.Do(a.ctx, func(s *site.Site) {
		for _, id := range ids {
			if !s.Uses(id) {
				unwanted = append(unwanted, id)
			}
		}
	})
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range unwanted {
		a.forget(l, id)
	}
}

// forget drops a task. The caller holds a.mu.
func (a *away) forget(l *awayLink, id grid.TaskID) {
	delete(l.tasks, id)
	delete(a.where, id)
}

// session makes one stream and uses it until it breaks or nothing runs there.
func (a *away) session(l *awayLink) error {
	s, err := a.h.net.Open(a.ctx, l.site, pilotProtocol)
	if err != nil {
		return err
	}
	defer s.Reset()
	stop := context.AfterFunc(a.ctx, func() { s.Reset() })
	defer stop()
	a.mu.Lock()
	for _, t := range l.tasks {
		t.ordered, t.killed, t.retry = false, false, time.Time{}
	}
	a.mu.Unlock()
	broken := make(chan error, 1)
	go func() { broken <- a.listen(l, s) }()
	again := time.NewTicker(awayPauseMin)
	defer again.Stop()
	for looked := time.Now(); ; {
		if err := a.send(l, s); err != nil {
			s.Reset()
			<-broken
			return err
		}
		a.mu.Lock()
		left := len(l.tasks)
		a.mu.Unlock()
		if left == 0 {
			s.Close()
			s.Reset()
			<-broken
			return nil
		}
		select {
		case <-l.wake:
			a.dropUnwanted(l)
		case <-again.C:
			if time.Since(looked) > time.Second {
				looked = time.Now()
				a.dropUnwanted(l)
			}
		case err := <-broken:
			return err
		}
	}
}

// send sends the orders that are due.
func (a *away) send(l *awayLink, s network.Stream) error {
	a.mu.Lock()
	var orders []*wirepb.PilotOrder
	now := time.Now()
	for id, t := range l.tasks {
		job := id.Job.Bytes()
		o := wirepb.PilotOrder{Key: t.task.Pilot.Key, Job: job[:], Epoch: id.Epoch}
		if t.safe {
			o.Kind = orderAcknowledge
			orders = append(orders, &o)
			a.forget(l, id)
			continue
		}
		if t.over {
			continue
		}
		if !t.ordered && now.After(t.retry) {
			t.ordered = true
			kind := uint32(orderRun)
			if t.held {
				kind = orderPrepare
			}
			orders = append(orders, &wirepb.PilotOrder{
				Gang: gangOf(&t.task), Rank: rankOf(&t.task),
				Kind: kind, Key: o.Key, Job: o.Job, Epoch: o.Epoch, Spec: wire.JobProto(t.task.Job), Limit: int64(t.task.Limit),
				Resume: t.start != 0, Stdout: t.written[0], Stderr: t.written[1],
			})
		}
		if t.kill && !t.killed && t.ordered {
			t.killed = true
			o.Kind, o.Reason = orderKill, []byte(t.cause)
			orders = append(orders, &o)
		}
	}
	a.mu.Unlock()
	for _, o := range orders {
		s.SetWriteDeadline(time.Now().Add(pilotWriteMax))
		if err := writeProto(s, o); err != nil {
			return err
		}
	}
	return nil
}

// listen takes reports until the stream breaks.
func (a *away) listen(l *awayLink, s network.Stream) error {
	r := bufio.NewReader(s)
	for {
		var report wirepb.PilotReport
		if err := readProto(r, &report); err != nil {
			return err
		}
		id, err := grid.JobIDFromBytes(report.Job)
		if err != nil {
			return wire.Malformed("report of a pilot: no job")
		}
		if err := a.report(l, grid.TaskID{Job: id, Epoch: report.Epoch}, &report); err != nil {
			return err
		}
	}
}

// report takes in one report about a task; about one that is not there it does nothing.
func (a *away) report(l *awayLink, id grid.TaskID, r *wirepb.PilotReport) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := l.tasks[id]
	if t == nil || t.over {
		return nil
	}
	switch r.Kind {
	case reportBegun:
		return a.begun(t)
	case reportReady:
		if t.held {
			a.h.gangs.rankReady(id)
		}
	case reportOutput:
		return a.output(t, r)
	case reportEnded:
		result, err := wire.ResultFromProto(r.Result)
		if err != nil || result.Start < 0 || result.End < result.Start {
			return wire.Malformed("report of a pilot: result")
		}
		end := a.h.Now()
		result.Start, result.End = max(end-(result.End-result.Start), 0), end
		t.over = true
		a.ended(&grid.TaskEnded{ID: id, Result: result})
	case reportLost:
		t.over = true
		a.ended(&grid.TaskEnded{ID: id, Lost: true})
	case reportRefused:
		// The pilot may still be starting, or the lease is over and the book will know.
		a.log.Debug("a pilot refuses a task", "site", l.site, "job", id.Job, "reason", string(r.Reason))
		t.ordered, t.killed, t.retry = false, false, time.Now().Add(5*awayPauseMin)
		if t.held {
			a.h.gangs.rankRefused(id, string(r.Reason))
		}
	default:
		return wire.Malformed("report of a pilot of kind %d", r.Kind)
	}
	return nil
}

// begun makes the task's output files: they say, after a restart of the daemon, that
// it was begun.
func (a *away) begun(t *awayTask) error {
	if t.start != 0 {
		return nil
	}
	t.start = a.h.Now()
	for output := range t.written {
		file, err := os.OpenFile(a.path(t.task.ID, output), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("output of job %s: %w", t.task.ID.Job, err)
		}
		file.Close()
	}
	return nil
}

// output appends to an output of a task. What is here already, and what is beyond
// the bound of outputs, is left out.
func (a *away) output(t *awayTask, r *wirepb.PilotReport) error {
	if r.Stream != uint32(run.Stdout) && r.Stream != uint32(run.Stderr) {
		return wire.Malformed("report of a pilot: stream %d", r.Stream)
	}
	i := int(r.Stream) - 1
	if r.Offset != t.written[i] || r.Offset+int64(len(r.Data)) > shim.OutputMax {
		return nil
	}
	file, err := os.OpenFile(a.path(t.task.ID, i), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("output of job %s: %w", t.task.ID.Job, err)
	}
	n, err := file.WriteAt(r.Data, r.Offset)
	t.written[i] += int64(n)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("output of job %s: %w", t.task.ID.Job, err)
	}
	return nil
}
