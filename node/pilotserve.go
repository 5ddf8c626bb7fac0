package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/kept"
	"gridnode/node/mailbox"
	"gridnode/node/pilot"
	"gridnode/node/run"
)

// pilotProtocol is how a borrower uses its leases: one stream for all that it has of a
// site, orders one way, reports the other, length-delimited messages of pilot.proto.
// The borrower is who the connection proves it to be.
const pilotProtocol = "/gridnode/pilot/2.0.0"

const (
	pilotPoll     = outputPoll       // how often the outputs of running tasks are looked at
	pilotWriteMax = 30 * time.Second // for an order or a report to leave
	pilotWindow   = 64               // inputs of a session that wait for the loop at most
	pilotReplies  = 1 << 10          // replies that wait to be written until no order is read any more
	pilotTurn     = 16               // chunks of one output that are sent before others have their turn
)

// servedSession is a session of a borrower, at the lender.
type servedSession struct {
	x       *pilots
	id      sessionID // its number is 0 until the first order
	stream  network.Stream
	replies *mailbox.Box[reply]
	over    bool // the core has ended it; of the loop
}

// reply is what a lender has to say in a session: a report, or what is to become of
// outputs.
type reply struct {
	report   *pilot.Report
	follow   *pilot.Follow
	released uint64 // the pilot of nothing that is followed any more
}

// serve takes the orders of a borrower until its stream ends.
func (x *pilots) serve(from grid.SiteID, stream network.Stream) error {
	s := &servedSession{x: x, id: sessionID{site: from}, stream: stream, replies: mailbox.New[reply]()}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	written := make(chan struct{})
	go func() {
		s.write(ctx)
		close(written)
	}()
	err := s.read(ctx)
	s.replies.Close()
	if s.id.number != 0 {
		x.h.inbox.order(from, &pilotInput{in: &pilot.Closed{From: from, Session: s.id.number}, served: s})
	}
	cancel()
	<-written
	return err
}

// read takes orders. The error is nil unless they are none.
func (s *servedSession) read(ctx context.Context) error {
	r := bufio.NewReader(s.stream)
	window := make(chan struct{}, pilotWindow)
	for {
		var p wirepb.PilotOrder
		if err := wire.ReadProto(r, &p); err != nil {
			if errors.Is(err, wire.ErrMalformed) {
				return err
			}
			return nil // the borrower is done, or gone
		}
		order, number, err := pilot.OrderFromProto(s.id.site, &p)
		if err != nil {
			return err
		}
		if s.id.number == 0 {
			s.id.number = number
		}
		if s.id.number != number {
			return wire.Malformed("order to a pilot of session %d in session %d", number, s.id.number)
		}
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		s.x.h.inbox.order(s.id.site, &pilotInput{
			in: &pilot.Ordered{From: s.id.site, Session: number, Order: order}, window: window, served: s,
		})
		for s.replies.Len() > pilotReplies {
			if s.x.h.pause(ctx, pilotPoll) != nil {
				return nil
			}
		}
	}
}

// admit enters a session with its first order, and reports whether the core is to have
// an input of it. A second stream with the number of another is none.
func (x *pilots) admit(i *pilotInput) bool {
	s := i.served
	known := x.served[s.id]
	_, closed := i.in.(*pilot.Closed)
	switch {
	case s.over:
		return false
	case known == nil && !closed:
		x.served[s.id] = s
		return true
	case known != s:
		s.over = true
		s.replies.Close()
		return false
	case closed:
		s.over = true
		delete(x.served, s.id)
	}
	return true
}

// reply has something said in a session, if it is not over.
func (x *pilots) reply(id sessionID, r reply) {
	if s := x.served[id]; s != nil {
		s.replies.Put(r)
	}
}

// hangup ends a session once everything has been said.
func (x *pilots) hangup(id sessionID) {
	if s := x.served[id]; s != nil {
		s.over = true
		delete(x.served, id)
		s.replies.Close()
	}
}

// write says what is to be said, and sends the outputs of the tasks that are followed as
// they grow.
func (s *servedSession) write(ctx context.Context) {
	followed := make(map[grid.TaskID]*followedTask)
	poll := time.NewTicker(pilotPoll)
	defer poll.Stop()
	for {
		replies, closed := s.replies.Take()
		for i := range replies {
			if err := s.say(followed, &replies[i]); err != nil {
				s.stream.Reset()
				return
			}
		}
		if closed {
			leave(s.stream)
			return
		}
		var due <-chan time.Time
		if len(followed) > 0 {
			due = poll.C
		}
		select {
		case <-s.replies.Wake():
		case <-due:
			for _, f := range followed {
				if f.polls++; f.polls%int(pollsOf(len(f.offsets)/2)) != 0 {
					continue
				}
				if err := f.send(s, pilotTurn); err != nil {
					s.stream.Reset()
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// say carries out one reply. What is left of the outputs of a task goes before its end.
func (s *servedSession) say(followed map[grid.TaskID]*followedTask, r *reply) error {
	switch {
	case r.follow != nil && !s.x.files():
		return nil
	case r.follow != nil:
		f := &followedTask{
			id: r.follow.ID, key: r.follow.Key, offsets: make([]int64, 2*r.follow.Tasks), dir: s.x.own.PilotDir(r.follow.Key),
		}
		copy(f.offsets, r.follow.Have)
		followed[f.id] = f
		return nil
	case r.report == nil:
		for id, f := range followed {
			if f.key == r.released {
				delete(followed, id)
			}
		}
		return nil
	}
	switch f := followed[r.report.ID]; r.report.Kind {
	case pilot.ReportEnded:
		if f != nil {
			if err := f.send(s, 0); err != nil {
				return err
			}
		}
		delete(followed, r.report.ID)
	case pilot.ReportLost, pilot.ReportRefused:
		delete(followed, r.report.ID)
	}
	return s.tell(r.report)
}

func (s *servedSession) tell(r *pilot.Report) error {
	s.stream.SetWriteDeadline(time.Now().Add(pilotWriteMax))
	return wire.WriteProto(s.stream, pilot.ReportProto(r))
}

// followedTask is a task whose outputs are sent as they grow, or all of a squad.
type followedTask struct {
	id      grid.TaskID
	key     uint64
	dir     string  // of their files
	offsets []int64 // as Order.Have tells them
	polls   int     // how often it was their turn
}

// send sends up to so many chunks of each output, 0: all that is there. An error means
// that the stream is gone.
func (f *followedTask) send(s *servedSession, most int) error {
	for i := range f.offsets {
		if err := f.sendStream(s, i, most); err != nil {
			return err
		}
	}
	return nil
}

func (f *followedTask) sendStream(s *servedSession, i, most int) error {
	stream := run.Stream(1 + i%2)
	path := filepath.Join(f.dir, run.Process{Task: f.id, Number: i / 2}.Name()) + stream.Suffix()
	info, err := os.Stat(path)
	if err != nil || info.Size() <= f.offsets[i] {
		return nil // it has written nothing new, or the pilot is gone
	}
	file, err := os.Open(path)
	if atomicfile.NoDescriptors(err) {
		return err // the borrower connects again, and has the rest then
	}
	if err != nil {
		return nil
	}
	defer file.Close()
	if _, err := file.Seek(f.offsets[i], io.SeekStart); err != nil {
		return nil
	}
	buffer := make([]byte, outputChunk)
	bound := kept.Bound(s.x.h.files.Log)
	for chunks := 0; most == 0 || chunks < most && f.offsets[i] < bound; chunks++ {
		if most > 0 {
			buffer = buffer[:min(int64(len(buffer)), bound-f.offsets[i])] // what lies behind may go until the task is over
		}
		n, err := file.Read(buffer)
		if n > 0 {
			report := &pilot.Report{Kind: pilot.ReportOutput, ID: f.id, Number: i / 2, Stream: uint32(stream), Offset: f.offsets[i], Data: buffer[:n]}
			if err := s.tell(report); err != nil {
				return err
			}
			f.offsets[i] += int64(n)
		}
		if err != nil || n == 0 {
			return nil
		}
	}
	return nil
}
