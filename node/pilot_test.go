package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/kept"
	"gridnode/node/p2p"
	"gridnode/node/pilot"
	"gridnode/node/run"
)

// orderTo sends orders to a site's pilots over one stream and returns the reports that
// come before it ends or is silent.
func orderTo(t *testing.T, from, to *Host, orders ...*wirepb.PilotOrder) (reports []*wirepb.PilotReport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := from.net.Open(ctx, to.ID(), pilotProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	session := uint64(time.Now().UnixMicro())
	for _, o := range orders {
		o.Session = session
		if err := wire.WriteProto(s, o); err != nil {
			t.Fatal(err)
		}
	}
	s.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(s)
	for {
		report := new(wirepb.PilotReport)
		if err := wire.ReadProto(r, report); err != nil {
			return reports
		}
		reports = append(reports, report)
		switch pilot.ReportKind(report.Kind) {
		case pilot.ReportRefused, pilot.ReportEnded, pilot.ReportLost:
			return reports
		}
	}
}

func runOrder(key uint64, j *grid.Job) *wirepb.PilotOrder {
	id := j.ID.Bytes()
	return &wirepb.PilotOrder{Kind: uint32(pilot.OrderRun), Key: key, Job: id[:], Epoch: 1, Spec: wire.JobProto(j), Limit: int64(grid.Minute), Tasks: 1}
}

// TestPilotTakesTasksFromItsBorrowerOnly: neither a third site, nor the borrower beyond
// what it has on lease, nor anybody with a malformed order has something run.
func TestPilotTakesTasksFromItsBorrowerOnly(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, grid.Minute)
	third := realConfig(t, 3, b.cfg.Memory)
	third.Join = l.Addrs()
	stranger := realHost(t, third)
	a := borrowFrom(t, b, l, 1, grid.Hour)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	key := a.Lease.Key
	job := func(h *Host, n uint64, processors int64) *grid.Job {
		j := scriptJob(h, n, "exit 3")
		j.Processors, j.Tasks = processors, processors
		return j
	}
	for _, tt := range []struct {
		name  string
		from  *Host
		order *wirepb.PilotOrder
		want  string // the reason of a refusal; empty: the stream ends without a word
	}{
		{"a third site", stranger, runOrder(key, job(stranger, 1, 1)), "no such lease"},
		{"a lease that does not exist", b, runOrder(key+1, job(b, 2, 1)), "no such lease"},
		{"more processors than the lease has", b, runOrder(key, job(b, 3, 2)), "the lease has 1"},
		{"a job of another home", b, runOrder(key, job(l, 4, 1)), ""},
		{"no lease", b, runOrder(0, job(b, 5, 1)), ""},
		{"an unknown kind", b, &wirepb.PilotOrder{Kind: 9, Key: key, Job: make([]byte, 16), Tasks: 1}, ""},
		{"no job", b, &wirepb.PilotOrder{Kind: uint32(pilot.OrderKill), Key: key, Tasks: 1}, ""},
		{"no spec", b, &wirepb.PilotOrder{Kind: uint32(pilot.OrderRun), Key: key, Job: slices.Repeat([]byte{1}, 16), Limit: 1, Tasks: 1}, ""},
		{"a long reason", b, &wirepb.PilotOrder{Kind: uint32(pilot.OrderKill), Key: key, Job: slices.Repeat([]byte{1}, 16), Reason: make([]byte, 1000), Tasks: 1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reports := orderTo(t, tt.from, l, tt.order)
			switch {
			case tt.want == "" && len(reports) > 0:
				t.Errorf("%v, want the stream to end", reports)
			case tt.want != "" && (len(reports) != 1 || reports[0].Kind != uint32(pilot.ReportRefused) || !strings.Contains(string(reports[0].Reason), tt.want)):
				t.Errorf("%v, want a refusal: %s", reports, tt.want)
			}
		})
	}
	// What was not refused by mistake: the borrower's own job runs.
	reports := orderTo(t, b, l, runOrder(key, job(b, 6, 1)))
	if last := reports[len(reports)-1]; last.Kind != uint32(pilot.ReportEnded) || last.Result.ExitCode != 3 {
		t.Errorf("%v, want exit code 3", reports)
	}
	// One that the pilot does not have, and that was begun, is lost.
	begun := runOrder(key, job(b, 7, 1))
	begun.Resume = true
	if reports := orderTo(t, b, l, begun); len(reports) != 1 || reports[0].Kind != uint32(pilot.ReportLost) {
		t.Errorf("%v, want it to be lost", reports)
	}
	// One that is killed before it is run is not run any more.
	killed := runOrder(key, job(b, 8, 1))
	kill := &wirepb.PilotOrder{Kind: uint32(pilot.OrderKill), Key: key, Job: killed.Job, Epoch: 1, Reason: []byte("not wanted"), Tasks: 1}
	if reports := orderTo(t, b, l, kill, killed); len(reports) != 1 || reports[0].Result.GetExitCode() != pilot.ExitCancelled {
		t.Errorf("%v, want it to end without having begun", reports)
	}
}

// TestHostileReports: what a lender reports changes nothing unless it is about a task
// that runs there, and makes sense.
func TestHostileReports(t *testing.T) {
	const bound = 4096
	cfg := realConfig(t, 1, &p2p.Memory{})
	cfg.Files.Log = bound
	h := realHost(t, cfg)
	id := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 1}, Epoch: 1}
	other := grid.TaskID{Job: id.Job, Epoch: 2}
	s := &pilotSession{x: h.pilots, outputs: map[grid.TaskID][]int64{id: make([]int64, 2)}, ctx: t.Context()}
	job := id.Job.Bytes()
	for name, r := range map[string]*wirepb.PilotReport{
		"kind":          {Kind: 99},
		"stream":        {Kind: uint32(pilot.ReportOutput), Stream: 3, Data: []byte("x")},
		"no result":     {Kind: uint32(pilot.ReportEnded)},
		"ends too soon": {Kind: uint32(pilot.ReportEnded), Result: &wirepb.Result{Start: 5, End: 1}},
		"no job":        {Kind: uint32(pilot.ReportLost), Job: []byte{1}},
	} {
		var b bytes.Buffer
		if r.Job == nil {
			r.Job = job[:]
		}
		if err := wire.WriteProto(&b, r); err != nil {
			t.Fatal(err)
		}
		if err := s.listen(&reportsOf{arrive: &b}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want it to be malformed", name, err)
		}
	}
	for _, tt := range []struct {
		name   string
		report pilot.Report
		want   int64 // bytes that are here then
	}{
		{"beyond what is here", pilot.Report{ID: id, Stream: 1, Offset: 10, Data: []byte("x")}, 0},
		{"before the start", pilot.Report{ID: id, Stream: 1, Offset: -1, Data: []byte("x")}, 0},
		{"another task than there is", pilot.Report{ID: id, Number: 1, Stream: 1, Data: []byte("x")}, 0},
		{"another epoch", pilot.Report{ID: other, Stream: 1, Data: []byte("x")}, 0},
		{"what follows", pilot.Report{ID: id, Stream: 1, Data: []byte("good")}, 4},
		{"what is here", pilot.Report{ID: id, Stream: 1, Data: []byte("good")}, 4},
		{"what begins with what is here", pilot.Report{ID: id, Stream: 1, Offset: 2, Data: []byte("odies")}, 7},
		{"more than there may be", pilot.Report{ID: id, Stream: 1, Offset: 7, Data: make([]byte, 5000)}, kept.Most(bound)},
		{"what follows that", pilot.Report{ID: id, Stream: 1, Offset: kept.Most(bound), Data: []byte("x")}, kept.Most(bound)},
	} {
		if err := s.output(&tt.report); err != nil || s.outputs[id][0] != tt.want {
			t.Errorf("%s: %v, %d bytes are here, want %d", tt.name, err, s.outputs[id][0], tt.want)
		}
	}
	path := h.pilots.path(id, run.Stdout)
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "goodies\x00") || kept.At(path) != bound {
		t.Errorf("the output is %q (%v), want goodies and more, cut", text, err)
	}
	if _, err := os.Stat(h.pilots.path(other, run.Stdout)); err == nil {
		t.Error("there is output of a task that does not run there")
	}
}

// reportsOf is a stream on which bytes arrive.
type reportsOf struct {
	network.Stream
	arrive *bytes.Buffer
}

func (r *reportsOf) Read(b []byte) (int, error) { return r.arrive.Read(b) }
