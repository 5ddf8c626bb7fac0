package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/run"
	"gridnode/node/site"
)

// outputProtocol is how a home asks for the output of a job that another site runs
// or ran. Requests and answers are length-delimited messages of output.proto.
const outputProtocol = "/gridnode/output/1.0.0"

// outputEnd says how an answer ends.
type outputEnd uint32

const (
	outputMore outputEnd = iota
	outputWhole
	outputUnknown // no such execution here, or not the asker's
)

const (
	outputChunk   = 32 << 10         // bytes of output in one message
	outputIdleMax = 30 * time.Second // for the next request, and for a message to leave
)

// serveOutput answers the requests of a stream; one that follows is the last. A home sees the tasks that lie under
// its own ID and no others.
func (h *Host) serveOutput(from grid.SiteID, s network.Stream) error {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	r := bufio.NewReader(s)
	for {
		s.SetReadDeadline(time.Now().Add(outputIdleMax))
		if _, err := r.Peek(1); err != nil {
			return nil // the asker is done
		}
		request, err := readRequest(r)
		if err != nil {
			return err
		}
		id, _ := grid.JobIDFromBytes(request.Job)
		task := grid.TaskID{Job: id, Epoch: request.Epoch}
		answer := outputAnswer{h: h, s: s, base: h.files.Task(from, task), from: from, task: task}
		if err := answer.give(ctx, from, request); err != nil || request.Follow {
			return err // the stream has a reader of its own now: see copy
		}
	}
}

// readRequest reads one request and checks it.
func readRequest(r *bufio.Reader) (*wirepb.OutputRequest, error) {
	request := new(wirepb.OutputRequest)
	if err := wire.ReadProto(r, request); err != nil {
		return nil, err
	}
	if _, err := grid.JobIDFromBytes(request.Job); err != nil || request.Stream > uint32(run.Stderr) || request.Offset < 0 {
		return nil, wire.Malformed("request for output")
	}
	return request, nil
}

// outputAnswer is the answer to one request.
type outputAnswer struct {
	h    *Host
	s    network.Stream
	base string // path of the task's files
	from grid.SiteID
	task grid.TaskID
}

// there reports whether there is output of the task.
func (a *outputAnswer) there() bool { return run.HasOutput(a.base) }

func (a *outputAnswer) give(ctx context.Context, from grid.SiteID, request *wirepb.OutputRequest) error {
	if request.Received {
		return a.forget(ctx)
	}
	if !a.there() {
		v, err := a.h.view(ctx, a.task.Job)
		if err == nil && v.Foreign && v.Job.Home == from && v.Epoch == a.task.Epoch {
			switch {
			case !v.State.Terminal():
				return a.wait(ctx, from, request)
			case v.Result.Silent: // and so it may have no files
				return a.end(outputWhole)
			}
		}
		return a.end(outputUnknown)
	}
	for stream := run.Stdout; stream <= run.Stderr; stream++ {
		if request.Stream != 0 && request.Stream != uint32(stream) {
			continue
		}
		if err := a.copy(ctx, stream, request.Offset, request.Follow); err != nil {
			return err
		}
	}
	if !a.there() {
		return a.end(outputUnknown) // it was forgotten while it was read
	}
	return a.end(outputWhole)
}

// wait answers for a task that has not started: with nothing, or with what it
// writes once it runs.
func (a *outputAnswer) wait(ctx context.Context, from grid.SiteID, request *wirepb.OutputRequest) error {
	for request.Follow {
		if err := a.h.pause(ctx, outputPoll); err != nil {
			return err
		}
		if a.there() {
			return a.give(ctx, from, request)
		}
		if v, err := a.h.view(ctx, a.task.Job); err != nil || v.Epoch != a.task.Epoch || v.State.Terminal() {
			break
		}
	}
	if request.Follow && a.there() { // it ran meanwhile
		return a.give(ctx, from, request)
	}
	return a.end(outputWhole)
}

// copy sends a file from offset on. A file that is missing has nothing in it.
func (a *outputAnswer) copy(ctx context.Context, stream run.Stream, offset int64, follow bool) error {
	if follow {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		go func() { // the asker says nothing more: what can be read is that it left
			a.s.SetReadDeadline(time.Time{})
			var b [1]byte
			a.s.Read(b[:])
			stop()
		}()
	}
	source := a.h.tail(ctx, a.base, a.task, stream, offset, follow)
	defer source.Close()
	buffer := make([]byte, outputChunk)
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			if err := a.send(&wirepb.OutputChunk{Stream: uint32(stream), Data: buffer[:n]}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// forget removes the output and the files of a task that is over and whose home has them all, or wants
// none, and of executions of its job before it. It may be told twice.
func (a *outputAnswer) forget(ctx context.Context) error {
	v, err := a.h.view(ctx, a.task.Job)
	if errors.Is(err, site.ErrUnknownJob) || err == nil && (v.Epoch != a.task.Epoch || v.State.Terminal()) {
		if err := remove(a.h, func() error { return a.h.files.Forget(a.from, a.task) }); err != nil {
			a.h.log.Warn("cannot remove an output and files that are home", "error", err)
		}
	}
	return a.send(&wirepb.OutputChunk{End: uint32(outputWhole), Files: a.left() || a.h.files.Works(a.from, a.task)})
}

func (a *outputAnswer) end(how outputEnd) error {
	return a.send(&wirepb.OutputChunk{End: uint32(how), Files: a.left()})
}

// left reports whether there are files that the task has left.
func (a *outputAnswer) left() bool { return len(a.h.files.Left(a.from, a.task)) > 0 }

func (a *outputAnswer) send(chunk *wirepb.OutputChunk) error {
	a.s.SetWriteDeadline(time.Now().Add(outputIdleMax))
	return wire.WriteProto(a.s, chunk)
}
