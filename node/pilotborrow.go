package node

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/kept"
	"gridnode/node/mailbox"
	"gridnode/node/pilot"
	"gridnode/node/run"
)

// pilotSession is a session with the pilots of a lender, at the borrower.
type pilotSession struct {
	x      *pilots
	id     sessionID
	orders *mailbox.Box[*pilot.Order]
	window chan struct{} // of reports
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	outputs map[grid.TaskID][]int64 // bytes that are here of those that may come, as Order.Have tells them
}

// connect begins a session.
func (x *pilots) connect(e pilot.Connect) {
	s := &pilotSession{
		x: x, id: sessionID{e.Site, e.Session}, orders: mailbox.New[*pilot.Order](), window: make(chan struct{}, pilotWindow),
		outputs: make(map[grid.TaskID][]int64),
	}
	s.ctx, s.cancel = context.WithCancel(x.ctx)
	x.sessions[s.id] = s
	x.wg.Go(func() {
		defer s.cancel()
		err := s.run()
		if err != nil && x.ctx.Err() == nil {
			x.h.log.Info("the pilots of a site cannot be reached", "site", s.id.site, "error", err)
		}
		x.tell(&pilot.Disconnected{Site: s.id.site, Session: s.id.number, Why: fmt.Sprint(err)})
	})
}

// disconnect ends a session once its orders have left.
func (x *pilots) disconnect(e pilot.Disconnect) {
	if s := x.sessions[sessionID{e.Site, e.Session}]; s != nil {
		delete(x.sessions, s.id)
		s.orders.Close()
	}
}

// send sends an order, and says how much of the task's outputs is here.
func (x *pilots) send(e pilot.Send) {
	s := x.sessions[sessionID{e.Site, e.Session}]
	if s == nil {
		return
	}
	o := e.Order
	if o.Kind == pilot.OrderRun || o.Kind == pilot.OrderKill {
		s.mu.Lock()
		here := s.outputs[o.ID]
		if here == nil {
			here = x.have(&o)
			s.outputs[o.ID] = here
		}
		o.Have = slices.Clone(here[:min(len(here), pilot.HaveMax)])
		s.mu.Unlock()
	}
	if o.Task != nil {
		o.Span = x.h.loop.tracer.Span(o.ID.Job)
	}
	s.orders.Put(&o)
}

// have returns how much of the outputs of an order's tasks is here.
func (x *pilots) have(o *pilot.Order) []int64 {
	here := make([]int64, 2*o.Tasks)
	if !o.Resume || !x.files() { // nothing of it can have begun that we know of
		return here
	}
	for i := range here {
		if info, err := os.Stat(x.processPath(run.Process{Task: o.ID, Number: i / 2}, run.Stream(1+i%2))); err == nil {
			here[i] = info.Size()
		}
	}
	return here
}

// run opens the stream and sends orders until it breaks, or nothing follows.
func (s *pilotSession) run() error {
	stream, err := s.x.h.net.Open(s.ctx, s.id.site, pilotProtocol)
	if err != nil {
		return err
	}
	defer stream.Reset() // after a Close it does nothing
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	defer stop()
	s.x.tell(&pilot.Connected{Site: s.id.site, Session: s.id.number})
	broken := make(chan error, 1)
	go func() { broken <- s.listen(stream) }()
	for {
		orders, closed := s.orders.Take()
		for _, o := range orders {
			stream.SetWriteDeadline(time.Now().Add(pilotWriteMax))
			if err := wire.WriteProto(stream, pilot.OrderProto(o, s.id.number)); err != nil {
				stream.Reset()
				<-broken
				return err
			}
		}
		if closed {
			leave(stream)
			<-broken
			return stream.Close()
		}
		select {
		case <-s.orders.Wake():
		case err := <-broken:
			return err
		}
	}
}

// leave says that nothing follows, and has whoever reads the stream stop.
func leave(stream network.Stream) {
	_ = stream.CloseWrite() // or it is broken
	_ = stream.SetReadDeadline(time.Now())
}

// listen takes reports until the stream breaks.
func (s *pilotSession) listen(stream network.Stream) error {
	r := bufio.NewReader(stream)
	for {
		var p wirepb.PilotReport
		if err := wire.ReadProto(r, &p); err != nil {
			return err
		}
		report, err := pilot.ReportFromProto(&p)
		if err != nil {
			return err
		}
		if report.Kind == pilot.ReportOutput {
			if err := s.output(report); err != nil {
				return err
			}
			continue
		}
		var here []int64
		if report.Kind == pilot.ReportEnded || report.Kind == pilot.ReportLost {
			s.mu.Lock()
			here = s.outputs[report.ID]
			delete(s.outputs, report.ID)
			s.mu.Unlock()
		}
		select {
		case s.window <- struct{}{}:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		in := &pilotInput{in: &pilot.Reported{Site: s.id.site, Session: s.id.number, Report: report}, window: s.window}
		if report.Kind == pilot.ReportLost || !slices.ContainsFunc(here, func(n int64) bool { return n > 0 }) {
			s.x.h.inbox.put(in)
			continue
		}
		s.x.wg.Go(func() { // others do not wait for the disk
			s.sync(report.ID, here)
			s.x.h.inbox.put(in)
		})
	}
}

// sync makes durable what is here of a task's outputs: once its end is known its lender forgets them.
func (s *pilotSession) sync(id grid.TaskID, here []int64) {
	var paths []string
	for i, n := range here {
		if n > 0 {
			paths = append(paths, s.x.processPath(run.Process{Task: id, Number: i / 2}, run.Stream(1+i%2)))
		}
	}
	if err := s.x.flush(paths...); err != nil {
		s.x.h.log.Error("the output of a job may not be on disk", "job", id.Job, "error", err)
	}
}

// output appends to an output of a task. What is here already is left out. One that gets longer
// than logs are here is cut.
func (s *pilotSession) output(r *pilot.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	here, at := s.outputs[r.ID], 2*r.Number+int(r.Stream)-1
	if at >= len(here) || r.Offset < 0 || r.Offset > here[at] {
		return nil
	}
	data := r.Data[min(here[at]-r.Offset, int64(len(r.Data))):]
	path, bound := s.x.processPath(run.Process{Task: r.ID, Number: r.Number}, run.Stream(r.Stream)), kept.Bound(s.x.h.files.Log)
	if len(data) == 0 || here[at] >= kept.Most(bound) {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("output of job %s: %w", r.ID.Job, err)
	}
	n, err := file.WriteAt(data, here[at])
	here[at] += int64(n)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil && here[at] > bound {
		here[at] = kept.Most(bound) // nothing that comes is kept
		err = kept.Cut(path, bound)
	}
	if err != nil {
		return fmt.Errorf("output of job %s: %w", r.ID.Job, err)
	}
	return nil
}
