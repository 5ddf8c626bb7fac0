package pilot

import (
	"math"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// OrderProto returns the wire form of an order in a session.
func OrderProto(o *Order, session uint64) *wirepb.PilotOrder {
	job := o.ID.Job.Bytes()
	p := &wirepb.PilotOrder{
		Kind: uint32(o.Kind), Key: o.Key, Job: job[:], Epoch: o.ID.Epoch, Resume: o.Resume,
		Tasks: uint32(o.Tasks), Have: o.Have, Reason: []byte(o.Reason), Session: session, Span: o.Span,
	}
	if t := o.Task; t != nil {
		p.Spec, p.Limit = wire.JobAbroad(t.Job), int64(t.Limit)
		if t.Squad != nil {
			p.Gang = wire.GangProto(t.Squad.Gang, true)
		}
	}
	return p
}

// OrderFromProto checks p, which came from a site, and returns the order and its session,
// or an error wrapping wire.ErrMalformed, after which the stream is to be reset. The home
// of a task is who sent it: a job that called another site its home would be given the
// rights of one.
func OrderFromProto(from grid.SiteID, p *wirepb.PilotOrder) (*Order, uint64, error) {
	job, err := grid.JobIDFromBytes(p.Job)
	if err != nil || job.IsZero() || p.Key == 0 || p.Session == 0 {
		return nil, 0, wire.Malformed("order to a pilot: no job, no lease or no session")
	}
	o := &Order{
		Kind: OrderKind(min(p.Kind, 255)), Key: p.Key, ID: grid.TaskID{Job: job, Epoch: p.Epoch}, Resume: p.Resume,
		Tasks: int(min(p.Tasks, math.MaxInt32)), Have: p.Have, Reason: string(p.Reason), Span: p.Span,
	}
	switch {
	case o.Kind < OrderRun || o.Kind > OrderPrepare:
		return nil, 0, wire.Malformed("order to a pilot of kind %d", p.Kind)
	case o.Tasks < 1 || o.Tasks > grid.RanksMax:
		return nil, 0, wire.Malformed("order to a pilot: %d tasks, want 1 to %d", o.Tasks, grid.RanksMax)
	case len(o.Have) > min(2*o.Tasks, HaveMax) || slices.ContainsFunc(o.Have, func(offset int64) bool { return offset < 0 }):
		return nil, 0, wire.Malformed("order to a pilot: %d offsets of %d tasks, or negative ones", len(o.Have), o.Tasks)
	case len(o.Reason) > ReasonMax:
		return nil, 0, wire.Malformed("order to a pilot: reason of %d bytes", len(o.Reason))
	case p.Session > sessionMax:
		return nil, 0, wire.Malformed("order to a pilot: session %d", p.Session)
	}
	if o.Kind == OrderRun || o.Kind == OrderPrepare {
		o.Task, err = taskFromProto(from, o, p)
	}
	return o, p.Session, err
}

func taskFromProto(from grid.SiteID, o *Order, p *wirepb.PilotOrder) (*grid.Task, error) {
	job, err := wire.JobFromProto(p.Spec)
	if err != nil {
		return nil, err
	}
	gang, part, squad := grid.SquadOf(o.ID)
	g, err := wire.GangFromProto(gang, p.Gang)
	switch {
	case err != nil:
		return nil, err
	case job.ID != o.ID.Job || job.Home != from:
		return nil, wire.Malformed("order to a pilot: another job's, or another site's")
	case p.Limit < 1 || p.Limit > int64(grid.SpanMax):
		return nil, wire.Malformed("order to a pilot: limit of %d µs", p.Limit)
	case squad != (g != nil) || !squad && (o.Kind == OrderPrepare || o.Tasks != 1):
		return nil, wire.Malformed("order to a pilot: %d tasks of a gang, of none", o.Tasks)
	}
	task := &grid.Task{ID: o.ID, Job: job, Limit: grid.Time(p.Limit)}
	if !squad {
		return task, nil
	}
	if part >= len(g.Parts) || job.Processors != g.Parts[part].Processors || g.TasksOf(part) != o.Tasks {
		return nil, wire.Malformed("order to a pilot: %d tasks on %d processors are no component %d of their gang", o.Tasks, job.Processors, part)
	}
	task.Squad = &grid.Squad{Gang: g, Part: part}
	return task, nil
}

// ReportProto returns the wire form of a report.
func ReportProto(r *Report) *wirepb.PilotReport {
	job := r.ID.Job.Bytes()
	p := &wirepb.PilotReport{
		Kind: uint32(r.Kind), Job: job[:], Epoch: r.ID.Epoch, Stream: r.Stream, Offset: r.Offset, Data: r.Data,
		Reason: []byte(r.Reason), Session: r.Session, Number: uint32(r.Number),
	}
	if r.Kind == ReportEnded {
		p.Number = uint32(r.End.Number)
		p.Result = wire.ResultProto(grid.Result{End: r.End.Ran, ExitCode: r.End.ExitCode, Reason: r.End.Reason})
	}
	return p
}

// ReportFromProto checks p and returns the report, or an error wrapping wire.ErrMalformed,
// after which the stream is to be reset.
func ReportFromProto(p *wirepb.PilotReport) (*Report, error) {
	job, err := grid.JobIDFromBytes(p.Job)
	if err != nil {
		return nil, wire.Malformed("report of a pilot: no job")
	}
	r := &Report{
		Kind: ReportKind(min(p.Kind, 255)), ID: grid.TaskID{Job: job, Epoch: p.Epoch}, Stream: p.Stream, Offset: p.Offset, Data: p.Data,
		Reason: short(string(p.Reason)), Session: p.Session,
	}
	if p.Number >= grid.RanksMax {
		return nil, wire.Malformed("report of a pilot: task %d", p.Number)
	}
	switch r.Kind {
	case ReportBegun, ReportLost, ReportRefused, ReportReady, ReportForgotten, ReportSuperseded:
	case ReportOutput:
		if r.Stream != 1 && r.Stream != 2 {
			return nil, wire.Malformed("report of a pilot: stream %d", r.Stream)
		}
		r.Number = int(p.Number)
	case ReportEnded:
		result, err := wire.ResultFromProto(p.Result)
		if err != nil {
			return nil, err
		}
		r.End = End{Ran: result.End - result.Start, ExitCode: result.ExitCode, Reason: result.Reason, Number: int(p.Number)}
	default:
		return nil, wire.Malformed("report of a pilot of kind %d", p.Kind)
	}
	return r, nil
}
