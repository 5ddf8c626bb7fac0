package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/lease"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// pilotProtocol is how a borrower uses its leases: one stream for all that it has of a
// site, orders one way, reports the other, length-delimited messages of pilot.proto.
// The borrower is who the connection proves it to be.
const pilotProtocol = "/gridnode/pilot/1.0.0"

// Kinds of orders.
const (
	orderRun         = 1 // start a task unless it was begun, and report about it from now on
	orderKill        = 2
	orderAcknowledge = 3 // its end is safe
	orderPrepare     = 4 // a task of a co-allocated job: say when it can be started at once
)

// Kinds of reports.
const (
	reportBegun   = 1 // the pilot has the task
	reportOutput  = 2
	reportEnded   = 3
	reportLost    = 4 // the pilot does not have it
	reportRefused = 5 // there is no such lease here now, or no pilot
	reportReady   = 6 // what orderPrepare has asked for
)

// reasonMax bounds the reason of a kill, in bytes.
const reasonMax = 256

// pilotPoll is how often the output of running tasks is looked at.
const pilotPoll = outputPoll

// pilotWriteMax is how long a report may take to leave.
const pilotWriteMax = 30 * time.Second

// pilotSession is a borrower's stream.
type pilotSession struct {
	h    *Host
	from grid.SiteID
	s    network.Stream
	ctx  context.Context
	wg   sync.WaitGroup

	write sync.Mutex

	mu        sync.Mutex
	tasks     map[awayID]bool // reported about
	preparing map[awayID]bool
}

// awayID names a task of a pilot.
type awayID struct {
	key uint64
	id  grid.TaskID
}

// servePilots takes the orders of a borrower until its stream ends.
func (h *Host) servePilots(from grid.SiteID, s network.Stream) error {
	ctx, cancel := context.WithCancel(h.ctx)
	p := &pilotSession{h: h, from: from, s: s, ctx: ctx, tasks: make(map[awayID]bool), preparing: make(map[awayID]bool)}
	defer p.wg.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.Reset() })
	defer stop()
	r := bufio.NewReader(s)
	for {
		var o wirepb.PilotOrder
		if err := readProto(r, &o); err != nil {
			if errors.Is(err, wire.ErrMalformed) {
				return err
			}
			return nil // the borrower is done, or gone
		}
		if err := p.order(&o); err != nil {
			return err
		}
	}
}

// order carries one out. An error ends the stream.
func (p *pilotSession) order(o *wirepb.PilotOrder) error {
	job, err := grid.JobIDFromBytes(o.Job)
	if err != nil || job.IsZero() || o.Key == 0 {
		return wire.Malformed("order to a pilot: no job or no lease")
	}
	at := awayID{o.Key, grid.TaskID{Job: job, Epoch: o.Epoch}}
	switch o.Kind {
	case orderRun:
		task, err := taskOfOrder(o, at.id, p.from)
		if err != nil {
			return err
		}
		p.run(at, task, o)
	case orderPrepare:
		task, err := taskOfOrder(o, at.id, p.from)
		if err != nil {
			return err
		}
		return p.prepare(at, task)
	case orderKill:
		if len(o.Reason) > reasonMax {
			return wire.Malformed("order to a pilot: reason of %d bytes", len(o.Reason))
		}
		p.with(at, func(l *run.PilotLink, _ lease.Lease) {
			if ended := l.Kill(run.TaskName(at.id), string(o.Reason)); ended != nil {
				p.tell(at, endedReport(ended))
			}
		})
	case orderAcknowledge:
		p.with(at, func(l *run.PilotLink, _ lease.Lease) { l.Forget(run.TaskName(at.id)) })
	default:
		return wire.Malformed("order to a pilot of kind %d", o.Kind)
	}
	return nil
}

// taskOfOrder reads the task of an order to run. Its home is the borrower: a job that
// called this site its home would be given the rights of one.
func taskOfOrder(o *wirepb.PilotOrder, id grid.TaskID, from grid.SiteID) (*grid.Task, error) {
	job, err := wire.JobFromProto(o.Spec)
	if err != nil {
		return nil, err
	}
	switch {
	case job.ID != id.Job || job.Home != from:
		return nil, wire.Malformed("order to a pilot: another job's, or another site's")
	case o.Limit < 1 || o.Limit > int64(grid.SpanMax):
		return nil, wire.Malformed("order to a pilot: limit of %d µs", o.Limit)
	case o.Stdout < 0 || o.Stderr < 0:
		return nil, wire.Malformed("order to a pilot: negative offset")
	}
	task := &grid.Task{ID: id, Job: job, Limit: grid.Time(o.Limit)}
	return task, rankOfOrder(o, task)
}

// with calls do with the connection to the pilot of a lease that the borrower has, or
// refuses.
func (p *pilotSession) with(at awayID, do func(l *run.PilotLink, held lease.Lease)) {
	var held lease.Lease
	ok := false
	err := p.h.Do(p.ctx, func(s *site.Site) { held, ok = s.PilotOf(p.from, at.key) })
	switch {
	case err != nil:
		p.refuse(at, err.Error())
		return
	case !ok:
		p.refuse(at, "no such lease")
		return
	}
	l, err := p.h.own.Link(p.ctx, at.key)
	if err != nil {
		p.refuse(at, err.Error())
		return
	}
	do(l, held)
}

func (p *pilotSession) refuse(at awayID, why string) {
	p.tell(at, &wirepb.PilotReport{Kind: reportRefused, Reason: []byte(why)})
}

// enter notes a task in one of the session's sets, if there is room.
func (p *pilotSession) enter(set map[awayID]bool, at awayID, most int) (known, room bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, room = set[at], len(set) < most
	if room && !known {
		set[at] = true
	}
	return known, room
}

// run has a task run and reports about it from a goroutine of its own.
func (p *pilotSession) run(at awayID, task *grid.Task, o *wirepb.PilotOrder) {
	switch known, room := p.enter(p.tasks, at, run.PilotTasksMax); {
	case known:
		return
	case !room:
		p.refuse(at, fmt.Sprintf("%d tasks of this borrower run already", run.PilotTasksMax))
		return
	}
	p.wg.Go(func() {
		p.with(at, func(l *run.PilotLink, held lease.Lease) { p.follow(at, l, held, task, o) })
		p.mu.Lock()
		delete(p.tasks, at)
		p.mu.Unlock()
	})
}

// follow starts a task and reports its output and its end.
func (p *pilotSession) follow(at awayID, l *run.PilotLink, held lease.Lease, task *grid.Task, o *wirepb.PilotOrder) {
	if err := p.join(at, task); err != nil {
		p.refuse(at, run.ShortReason(err))
		return
	}
	if _, _, begun := l.Look(run.TaskName(at.id)); !begun && !o.Resume {
		if err := p.bring(l, held, task); err != nil {
			if p.ctx.Err() == nil {
				p.tell(at, notStarted(err))
			}
			return
		}
	}
	known, err := p.h.own.StartAway(l, task, held.Processors, o.Resume)
	if err != nil {
		p.refuse(at, run.ShortReason(err))
		return
	}
	if !known {
		p.tell(at, &wirepb.PilotReport{Kind: reportLost})
		return
	}
	p.tell(at, &wirepb.PilotReport{Kind: reportBegun})
	name := run.TaskName(at.id)
	outputs := []*pilotOutput{
		{p: p, at: at, stream: run.Stdout, path: filepath.Join(l.Dir, name) + run.Stdout.Suffix(), offset: o.Stdout},
		{p: p, at: at, stream: run.Stderr, path: filepath.Join(l.Dir, name) + run.Stderr.Suffix(), offset: o.Stderr},
	}
	poll := time.NewTicker(pilotPoll)
	defer poll.Stop()
	for {
		ended, changed, there := l.Look(name) // first: what was written before the end is read then
		if !there {
			return // the pilot is gone, or the borrower has the end
		}
		for _, output := range outputs {
			if err := output.send(); err != nil {
				return // the stream is gone
			}
		}
		if ended != nil {
			p.tell(at, endedReport(ended))
			return
		}
		select {
		case <-poll.C:
		case <-changed:
		case <-p.ctx.Done():
			return
		}
	}
}

// endedReport says how a task ended, in spans only: the borrower has a clock of its own.
func endedReport(e *shim.Ended) *wirepb.PilotReport {
	if e.Cause == shim.CauseLost {
		return &wirepb.PilotReport{Kind: reportLost}
	}
	return &wirepb.PilotReport{Kind: reportEnded, Result: wire.ResultProto(grid.Result{
		Start: 0, End: max(e.End-e.Start, 0), ExitCode: e.ExitCode, Reason: e.Reason,
	})}
}

// pilotOutput is a file that is sent as it grows.
type pilotOutput struct {
	p      *pilotSession
	at     awayID
	stream run.Stream
	path   string
	offset int64
}

// send sends what has been written since the last time. An error means that the
// stream is gone.
func (o *pilotOutput) send() error {
	file, err := os.Open(o.path)
	if err != nil {
		return nil // it has written nothing yet, or the pilot is gone
	}
	defer file.Close()
	if _, err := file.Seek(o.offset, io.SeekStart); err != nil {
		return nil
	}
	buffer := make([]byte, outputChunk)
	for {
		n, err := file.Read(buffer)
		if n > 0 {
			report := &wirepb.PilotReport{Kind: reportOutput, Stream: uint32(o.stream), Offset: o.offset, Data: buffer[:n]}
			if err := o.p.tell(o.at, report); err != nil {
				return err
			}
			o.offset += int64(n)
		}
		if err != nil || n == 0 {
			return nil
		}
	}
}

// tell sends a report about a task.
func (p *pilotSession) tell(at awayID, r *wirepb.PilotReport) error {
	id := at.id.Job.Bytes()
	r.Job, r.Epoch = id[:], at.id.Epoch
	p.write.Lock()
	defer p.write.Unlock()
	p.s.SetWriteDeadline(time.Now().Add(pilotWriteMax))
	return writeProto(p.s, r)
}
