package node

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// pilotSession is a session with the pilots of a lender, at the borrower.
type pilotSession struct {
	x      *pilots
	id     sessionID
	orders *mailbox[*pilot.Order]
	window chan struct{} // of reports
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	outputs map[grid.TaskID]*[2]int64 // bytes that are here of those that may come
}

// connect begins a session.
func (x *pilots) connect(e pilot.Connect) {
	s := &pilotSession{
		x: x, id: sessionID{e.Site, e.Session}, orders: newMailbox[*pilot.Order](), window: make(chan struct{}, pilotWindow),
		outputs: make(map[grid.TaskID]*[2]int64),
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
		s.orders.close()
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
			here = new([2]int64)
			for i := range here {
				if info, err := os.Stat(x.path(o.ID, run.Stream(i+1))); err == nil {
					here[i] = info.Size()
				}
			}
			s.outputs[o.ID] = here
		}
		o.Stdout, o.Stderr = here[0], here[1]
		s.mu.Unlock()
	}
	s.orders.put(&o)
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
		orders, closed := s.orders.take()
		for _, o := range orders {
			stream.SetWriteDeadline(time.Now().Add(pilotWriteMax))
			if err := writeProto(stream, pilot.OrderProto(o, s.id.number)); err != nil {
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
		case <-s.orders.wake:
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
		if err := readProto(r, &p); err != nil {
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
		if report.Kind == pilot.ReportEnded || report.Kind == pilot.ReportLost {
			s.mu.Lock()
			delete(s.outputs, report.ID)
			s.mu.Unlock()
		}
		select {
		case s.window <- struct{}{}:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		s.x.h.inbox.put(&pilotInput{
			in: &pilot.Reported{Site: s.id.site, Session: s.id.number, Report: report}, window: s.window,
		})
	}
}

// output appends to an output of a task. What is here already, and what is beyond the
// bound of outputs, is left out.
func (s *pilotSession) output(r *pilot.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	here := s.outputs[r.ID]
	if here == nil || r.Offset != here[r.Stream-1] || r.Offset+int64(len(r.Data)) > shim.OutputMax {
		return nil
	}
	file, err := os.OpenFile(s.x.path(r.ID, run.Stream(r.Stream)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("output of job %s: %w", r.ID.Job, err)
	}
	n, err := file.WriteAt(r.Data, r.Offset)
	here[r.Stream-1] += int64(n)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("output of job %s: %w", r.ID.Job, err)
	}
	return nil
}
