package pilot

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// wireJob is a job that may travel.
func wireJob() *grid.Job {
	return &grid.Job{
		ID: grid.JobID{Hi: 1, Lo: 2}, Home: "a", Name: "n", User: "u", Resources: grid.Resources{Processors: 2}, Tasks: 1,
		Estimate: grid.Hour, RunTime: grid.Hour, Work: grid.Work{Instructions: 1}, Deadline: grid.Never, Budget: grid.NoBudget,
	}
}

func wireOrders() []*Order {
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}
	second := grid.SquadTask(id, 1)
	g := &grid.Gang{Task: id, Each: 2, Parts: []grid.GangPart{{Site: "a", Processors: 2}, {Site: "b", Processors: 4}}}
	squad := &grid.Task{ID: second, Job: wireJob(), Limit: grid.Hour, Squad: &grid.Squad{Gang: g, Part: 1}}
	squad.Job.Tasks, squad.Job.Processors = 2, 4
	return []*Order{
		{Kind: OrderRun, Key: 7, ID: id, Task: &grid.Task{ID: id, Job: wireJob(), Limit: grid.Hour}, Resume: true, Tasks: 1, Have: []int64{5, 6}},
		{Kind: OrderRun, Key: 7, ID: second, Task: squad, Tasks: 2},
		{Kind: OrderPrepare, Key: 7, ID: second, Task: squad, Tasks: 2},
		{Kind: OrderKill, Key: 7, ID: id, Resume: true, Tasks: 2, Have: []int64{5, 0, 7}, Reason: "why"},
		{Kind: OrderAcknowledge, Key: 7, ID: id, Tasks: 1},
	}
}

func TestOrdersTravel(t *testing.T) {
	for _, want := range wireOrders() {
		got, session, err := OrderFromProto("a", OrderProto(want, 9))
		if err != nil || session != 9 || !reflect.DeepEqual(got, want) {
			t.Errorf("order of kind %d: %+v, session %d, %v\nwant %+v", want.Kind, got, session, err, want)
		}
	}
}

func TestReportsTravel(t *testing.T) {
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}
	for _, want := range []*Report{
		{Kind: ReportBegun, ID: id}, {Kind: ReportLost, ID: id}, {Kind: ReportReady, ID: id}, {Kind: ReportForgotten, ID: id},
		{Kind: ReportRefused, ID: id, Reason: "why"}, {Kind: ReportSuperseded, ID: id, Session: 8},
		{Kind: ReportOutput, ID: id, Number: 3, Stream: 2, Offset: 4, Data: []byte("x")},
		{Kind: ReportEnded, ID: id, End: End{Ran: grid.Second, ExitCode: 4, Reason: "limit", Number: 3}},
	} {
		if got, err := ReportFromProto(ReportProto(want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("report of kind %d: %+v, %v, want %+v", want.Kind, got, err, want)
		}
	}
}

// TestWidestSquadTravels: what is said of as many tasks as there may be, each of which has
// written as much as is kept, fits a control frame beside the largest job.
func TestWidestSquadTravels(t *testing.T) {
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}
	g := &grid.Gang{Task: id, Each: 1, Parts: []grid.GangPart{{Site: "b", Processors: grid.RanksMax}}}
	job := wireJob()
	job.Command = &grid.Command{Args: []string{strings.Repeat("x", 47<<10)}}
	for len(g.Parts) < 64 {
		g.Parts = append(g.Parts, grid.GangPart{Site: grid.SiteID(strings.Repeat("s", 52)), Processors: 1})
	}
	g.Parts[0].Processors -= 63
	job.Tasks, job.Processors = g.Parts[0].Processors, g.Parts[0].Processors
	want := &Order{
		Kind: OrderRun, Key: 7, ID: grid.SquadTask(id, 0), Resume: true, Tasks: g.TasksOf(0), Have: slices.Repeat([]int64{16 << 20}, HaveMax),
		Task: &grid.Task{ID: grid.SquadTask(id, 0), Job: job, Limit: grid.Hour, Squad: &grid.Squad{Gang: g}},
	}
	p := OrderProto(want, 9)
	if size := proto.Size(p); size > wire.FrameMax {
		t.Errorf("an order of %d bytes, a frame has %d", size, wire.FrameMax)
	}
	if got, _, err := OrderFromProto("a", p); err != nil || !slices.Equal(got.Have, want.Have) || got.Task.Squad.Tasks() != want.Tasks {
		t.Errorf("it does not come back: %v", err)
	}
}

// TestHostileOrders: no order is taken that makes no sense, or gives a job another home.
func TestHostileOrders(t *testing.T) {
	for name, change := range map[string]func(o *wirepb.PilotOrder){
		"kind":                    func(o *wirepb.PilotOrder) { o.Kind = 9 },
		"kind, beyond a byte":     func(o *wirepb.PilotOrder) { o.Kind = 257 },
		"job":                     func(o *wirepb.PilotOrder) { o.Job = nil },
		"lease":                   func(o *wirepb.PilotOrder) { o.Key = 0 },
		"session":                 func(o *wirepb.PilotOrder) { o.Session = 0 },
		"session without end":     func(o *wirepb.PilotOrder) { o.Session = 1 << 63 },
		"spec":                    func(o *wirepb.PilotOrder) { o.Spec = nil },
		"limit":                   func(o *wirepb.PilotOrder) { o.Limit = 0 },
		"offset":                  func(o *wirepb.PilotOrder) { o.Have = []int64{-1} },
		"too many offsets":        func(o *wirepb.PilotOrder) { o.Have = make([]int64, 5) },
		"far too many offsets":    func(o *wirepb.PilotOrder) { o.Have = make([]int64, HaveMax+1) },
		"no tasks":                func(o *wirepb.PilotOrder) { o.Tasks = 0 },
		"too many tasks":          func(o *wirepb.PilotOrder) { o.Tasks = grid.RanksMax + 1 },
		"other tasks":             func(o *wirepb.PilotOrder) { o.Tasks = 1 },
		"reason":                  func(o *wirepb.PilotOrder) { o.Reason = make([]byte, ReasonMax+1) },
		"home":                    func(o *wirepb.PilotOrder) { o.Spec.Home = "b" },
		"another job":             func(o *wirepb.PilotOrder) { o.Job = slices.Repeat([]byte{1}, 16) },
		"component of no gang":    func(o *wirepb.PilotOrder) { o.Gang = nil },
		"another component":       func(o *wirepb.PilotOrder) { o.Epoch = grid.SquadTask(grid.TaskID{Epoch: 3}, 0).Epoch },
		"component beyond it":     func(o *wirepb.PilotOrder) { o.Gang.Parts = o.Gang.Parts[:1] },
		"task of no gang":         func(o *wirepb.PilotOrder) { o.Epoch = 3 },
		"more processors":         func(o *wirepb.PilotOrder) { o.Spec.Processors = 6 },
		"no processors each":      func(o *wirepb.PilotOrder) { o.Gang.Each = 0 },
		"component of no site":    func(o *wirepb.PilotOrder) { o.Gang.Parts[0].Site = "" },
		"gang of too many":        func(o *wirepb.PilotOrder) { o.Gang.Parts[0].Processors = 2 * (grid.RanksMax + 1) },
		"preparing without gangs": func(o *wirepb.PilotOrder) { o.Epoch, o.Gang, o.Tasks = 3, nil, 1 },
	} {
		p := OrderProto(wireOrders()[2], 9)
		change(p)
		if o, _, err := OrderFromProto("a", p); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestHostileReports(t *testing.T) {
	job := make([]byte, 16)
	for name, p := range map[string]*wirepb.PilotReport{
		"kind":          {Kind: 9, Job: job},
		"job":           {Kind: uint32(ReportBegun)},
		"stream":        {Kind: uint32(ReportOutput), Job: job, Stream: 3},
		"no result":     {Kind: uint32(ReportEnded), Job: job},
		"ends too soon": {Kind: uint32(ReportEnded), Job: job, Result: &wirepb.Result{Start: 5, End: 1}},
	} {
		if r, err := ReportFromProto(p); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// FuzzDecodeOrder: whatever a borrower sends, decoding it does not panic, and what is
// decoded can be obeyed.
func FuzzDecodeOrder(f *testing.F) {
	for _, o := range wireOrders() {
		body, err := proto.Marshal(OrderProto(o, 9))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		var p wirepb.PilotOrder
		if proto.Unmarshal(body, &p) != nil {
			return
		}
		o, session, err := OrderFromProto("a", &p)
		if err != nil {
			return
		}
		k, out := NewKeeper("b"), &Outbox{}
		k.Step(0, &Keep{Key: o.Key, Borrower: "a", Processors: 4}, out)
		k.Step(0, &Up{Key: o.Key}, out)
		k.Step(0, &Ordered{From: "a", Session: session, Order: o}, out)
	})
}

// FuzzDecodeReport: whatever a lender sends, decoding it does not panic.
func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte{8, 1})
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		var p wirepb.PilotReport
		if proto.Unmarshal(body, &p) != nil {
			return
		}
		if r, err := ReportFromProto(&p); err == nil && r.Kind == ReportEnded && r.End.Ran < 0 {
			t.Errorf("it ran for %v", r.End.Ran)
		}
	})
}
