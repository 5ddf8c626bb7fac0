package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/console"
	"gridnode/node/run"
	"gridnode/node/site"
)

// consoleProtocol is how a home looks into a job that another site runs. The request is a
// length-delimited message of console.proto; frames of package console follow, in both
// directions.
const consoleProtocol = "/gridnode/console/1.0.0"

const (
	consolesMax  = 256                    // that other sites have open here
	consolePoll  = 200 * time.Millisecond // between looks whether a job has begun
	consoleTurn  = 30 * time.Second       // for another site to answer whether it has the job's process
	consoleLease = "it runs on leased processors, or at several sites"
)

// consoles is how a host lets owners look into their jobs.
type consoles struct {
	h    *Host
	open atomic.Int32 // that other sites have here
}

// Console looks into a job of this site, wherever it runs: through its own terminal, or with a
// command beside it. With request.Wait it waits until the job has begun. The errors are those
// of Output, and ones that wrap site.ErrState; a *console.Refusal is what the executing site
// says.
func (h *Host) Console(ctx context.Context, job grid.JobID, request *console.Request) (*console.Conn, error) {
	for {
		v, err := h.view(ctx, job)
		if err == nil {
			err = mayLook(&v, request)
		}
		if err != nil {
			return nil, err
		}
		c, err := h.consoles.at(ctx, &v, request)
		switch {
		case err == nil:
			return c, nil
		case !errors.Is(err, console.ErrAbsent):
			return nil, err
		case !request.Wait:
			return nil, fmt.Errorf("%s: %w: it is %s, and has not begun", job, site.ErrState, v.State)
		}
		if err := h.pause(ctx, consolePoll); err != nil {
			return nil, err
		}
	}
}

// mayLook returns why a job cannot be looked into, whatever it does now.
func mayLook(v *site.View, request *console.Request) error {
	j := v.Job
	switch {
	case v.Foreign:
		return fmt.Errorf("%s: %w", j.ID, ErrNotHome)
	case v.State.Terminal():
		return fmt.Errorf("%s: %w: it is over", j.ID, site.ErrState)
	case j.Coallocate != nil || j.Spread:
		return fmt.Errorf("%s: %w: %s", j.ID, site.ErrState, consoleLease)
	case j.IsModule():
		return fmt.Errorf("%s: %w: it is a module of WebAssembly", j.ID, site.ErrState)
	case len(request.Args) == 0 && (j.Command == nil || !j.Command.Terminal):
		return fmt.Errorf("%s: %w: it has no terminal, as it was submitted without --pty; 'gridnode exec' runs a command beside it", j.ID, site.ErrState)
	}
	return nil
}

// at opens a console where the job is now.
func (x *consoles) at(ctx context.Context, v *site.View, request *console.Request) (*console.Conn, error) {
	task := grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}
	var raw io.ReadWriteCloser
	var err error
	switch {
	case v.Site == "" || v.State == site.Waiting || v.State == site.Placing || v.State == site.Queued:
		return nil, console.ErrAbsent
	case v.Site == x.h.id:
		raw, err = x.here(ctx, task, request)
	default:
		raw, err = x.there(ctx, v.Site, task, request)
	}
	if err != nil {
		return nil, err
	}
	c := console.New(raw)
	late := time.AfterFunc(consoleTurn, func() { c.Close() })
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := c.Await(); err != nil {
		c.Close()
		if refusal := (*console.Refusal)(nil); !errors.As(err, &refusal) && !errors.Is(err, console.ErrAbsent) {
			err = fmt.Errorf("look into job %s: %w", v.Job.ID, err)
		}
		return nil, err
	}
	return c, nil
}

// here opens a console of a task on this site's own processors.
func (x *consoles) here(ctx context.Context, task grid.TaskID, request *console.Request) (io.ReadWriteCloser, error) {
	if x.h.pilots == nil {
		return nil, &console.Refusal{Reason: "jobs of this site cannot be looked into"}
	}
	has, yes := beneath(x.h.pilots.own).(run.Consoles)
	if !yes {
		return nil, &console.Refusal{Reason: "the job runs on a cluster whose scheduler lets nobody look in"}
	}
	return has.Console(ctx, task, request)
}

// there asks another site for a console.
func (x *consoles) there(ctx context.Context, at grid.SiteID, task grid.TaskID, request *console.Request) (io.ReadWriteCloser, error) {
	s, err := x.h.net.Open(ctx, at, consoleProtocol)
	if err != nil {
		name := string(at)
		_ = x.h.Do(ctx, func(s *site.Site) { name = s.SiteName(at) }) // else it goes by its ID
		return nil, &console.Refusal{Reason: fmt.Sprintf("site %s, where the job is, cannot be reached now, or its version lets nobody look in: %v", name, err)}
	}
	id := task.Job.Bytes()
	m := &wirepb.ConsoleRequest{
		Job: id[:], Epoch: task.Epoch, Tty: request.TTY, Rows: uint32(request.Rows), Cols: uint32(request.Cols), Term: request.Term,
	}
	for _, word := range request.Args {
		m.Args = append(m.Args, []byte(word))
	}
	s.SetWriteDeadline(time.Now().Add(outputIdleMax))
	if err := wire.WriteProto(s, m); err != nil {
		s.Reset()
		return nil, fmt.Errorf("ask site %s to look into a job: %w", at, err)
	}
	s.SetWriteDeadline(time.Time{})
	return s, nil
}

// behind is a stream of which a reader may have read some already.
type behind struct {
	network.Stream
	r *bufio.Reader
}

func (b behind) Read(p []byte) (int, error) { return b.r.Read(p) }

// serve lets the home of a job that runs here look into it.
func (x *consoles) serve(from grid.SiteID, s network.Stream) error {
	s.SetReadDeadline(time.Now().Add(outputIdleMax))
	r := bufio.NewReader(s)
	m := new(wirepb.ConsoleRequest)
	if err := wire.ReadProto(r, m); err != nil {
		return err
	}
	task, request, err := consoleRequest(m)
	if err != nil {
		return err
	}
	s.SetReadDeadline(time.Time{})
	theirs := console.New(behind{s, r})
	defer theirs.Close()
	if x.open.Add(1) > consolesMax {
		x.open.Add(-1)
		theirs.Refuse(fmt.Sprintf("%d consoles are open here, at most so many", consolesMax))
		return nil
	}
	defer x.open.Add(-1)
	raw, err := x.grant(from, task, request)
	if err != nil {
		theirs.Turn(err)
		return nil
	}
	defer context.AfterFunc(x.h.ctx, func() { raw.Close(); s.Reset() })()
	console.Relay(raw, behind{s, r})
	return nil
}

// grant opens a console for another site, if the job is that site's.
func (x *consoles) grant(from grid.SiteID, task grid.TaskID, request *console.Request) (io.ReadWriteCloser, error) {
	v, err := x.h.view(x.h.ctx, task.Job)
	switch {
	case errors.Is(err, site.ErrUnknownJob), err == nil && (v.Job.Home != from || v.Epoch != task.Epoch || v.State.Terminal()):
		return nil, console.ErrAbsent
	case err != nil:
		return nil, err
	case v.Job.IsModule():
		return nil, &console.Refusal{Reason: "the job is a module of WebAssembly"}
	}
	return x.here(x.h.ctx, task, request)
}

// consoleRequest checks what another site asks for.
func consoleRequest(m *wirepb.ConsoleRequest) (task grid.TaskID, request *console.Request, err error) {
	id, err := grid.JobIDFromBytes(m.Job)
	if err != nil || m.Rows > math.MaxUint16 || m.Cols > math.MaxUint16 {
		return task, nil, wire.Malformed("request for a console")
	}
	request = &console.Request{TTY: m.Tty, Rows: uint16(m.Rows), Cols: uint16(m.Cols), Term: m.Term}
	for _, word := range m.Args {
		request.Args = append(request.Args, string(word))
	}
	if err := request.Check(); err != nil {
		return task, nil, wire.Malformed("request for a console: %v", err)
	}
	return grid.TaskID{Job: id, Epoch: m.Epoch}, request, nil
}
