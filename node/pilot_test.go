package node

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/p2p"
	"gridnode/node/site"
)

// orderTo sends orders to a site's pilots over one stream and returns the reports that
// come before it ends or is silent.
func orderTo(t *testing.T, from, to *Host, orders ...*wirepb.PilotOrder) (reports []*wirepb.PilotReport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := from.net.Open(ctx, to.ID(), pilotProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	for _, o := range orders {
		if err := writeProto(s, o); err != nil {
			t.Fatal(err)
		}
	}
	s.SetReadDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(s)
	for {
		report := new(wirepb.PilotReport)
		if err := readProto(r, report); err != nil {
			return reports
		}
		reports = append(reports, report)
		if report.Kind == reportRefused || report.Kind == reportEnded || report.Kind == reportLost {
			return reports
		}
	}
}

func runOrder(key uint64, j *grid.Job) *wirepb.PilotOrder {
	id := j.ID.Bytes()
	return &wirepb.PilotOrder{Kind: orderRun, Key: key, Job: id[:], Epoch: 1, Spec: wire.JobProto(j), Limit: int64(grid.Minute)}
}

// TestPilotTakesTasksFromItsBorrowerOnly: neither a third site, nor the borrower beyond
// what it has on lease, nor anybody with a malformed order has something run.
func TestPilotTakesTasksFromItsBorrowerOnly(t *testing.T) {
	b, l := leasePair(t)
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
		{"an unknown kind", b, &wirepb.PilotOrder{Kind: 9, Key: key, Job: make([]byte, 16)}, ""},
		{"no job", b, &wirepb.PilotOrder{Kind: orderKill, Key: key}, ""},
		{"no spec", b, &wirepb.PilotOrder{Kind: orderRun, Key: key, Job: slices.Repeat([]byte{1}, 16), Limit: 1}, ""},
		{"a long reason", b, &wirepb.PilotOrder{Kind: orderKill, Key: key, Job: slices.Repeat([]byte{1}, 16), Reason: make([]byte, 1000)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reports := orderTo(t, tt.from, l, tt.order)
			switch {
			case tt.want == "" && len(reports) > 0:
				t.Errorf("%v, want the stream to end", reports)
			case tt.want != "" && (len(reports) != 1 || reports[0].Kind != reportRefused || !strings.Contains(string(reports[0].Reason), tt.want)):
				t.Errorf("%v, want a refusal: %s", reports, tt.want)
			}
		})
	}
	// What was not refused by mistake: the borrower's own job runs.
	reports := orderTo(t, b, l, runOrder(key, job(b, 6, 1)))
	if last := reports[len(reports)-1]; last.Kind != reportEnded || last.Result.ExitCode != 3 {
		t.Errorf("%v, want exit code 3", reports)
	}
	// One that the pilot does not have, and that was begun, is lost.
	begun := runOrder(key, job(b, 7, 1))
	begun.Resume = true
	if reports := orderTo(t, b, l, begun); len(reports) != 1 || reports[0].Kind != reportLost {
		t.Errorf("%v, want it to be lost", reports)
	}
	// One that is killed before it is run is not run any more.
	killed := runOrder(key, job(b, 8, 1))
	kill := &wirepb.PilotOrder{Kind: orderKill, Key: key, Job: killed.Job, Epoch: 1, Reason: []byte("not wanted")}
	if reports := orderTo(t, b, l, kill, killed); len(reports) != 1 || reports[0].Result.GetExitCode() != site.ExitCancelled {
		t.Errorf("%v, want it to end without having begun", reports)
	}
}

// TestHostileReports: what a lender reports changes nothing unless it is about a task
// that runs there, and makes sense.
func TestHostileReports(t *testing.T) {
	h := realHost(t, realConfig(t, 1, &p2p.Memory{}))
	var ended []*grid.TaskEnded
	a := newAway(h, func(e *grid.TaskEnded) { ended = append(ended, e) })
	job := scriptJob(h, 1, "true")
	id := grid.TaskID{Job: job.ID, Epoch: 1}
	link := &awayLink{site: "lender", tasks: map[grid.TaskID]*awayTask{}, wake: make(chan struct{}, 1)}
	task := &awayTask{task: grid.Task{ID: id, Job: job, Pilot: grid.Pilot{Site: "lender", Key: 1}}, link: link}
	link.tasks[id], a.where[id] = task, task
	for name, r := range map[string]*wirepb.PilotReport{
		"kind":          {Kind: 9},
		"stream":        {Kind: reportOutput, Stream: 3, Data: []byte("x")},
		"no result":     {Kind: reportEnded},
		"ends too soon": {Kind: reportEnded, Result: &wirepb.Result{Start: 5, End: 1}},
	} {
		if err := a.report(link, id, r); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	for name, r := range map[string]*wirepb.PilotReport{
		"beyond what is here": {Kind: reportOutput, Stream: 1, Offset: 10, Data: []byte("x")},
		"before the start":    {Kind: reportOutput, Stream: 1, Offset: -1, Data: []byte("x")},
	} {
		if err := a.report(link, id, r); err != nil || task.written[0] != 0 {
			t.Errorf("%s: %v, %d bytes written", name, err, task.written[0])
		}
	}
	if err := a.report(link, grid.TaskID{Job: job.ID, Epoch: 2}, &wirepb.PilotReport{Kind: reportLost}); err != nil || len(ended) != 0 {
		t.Errorf("another epoch: %v, %v", err, ended)
	}
	if err := a.report(link, id, &wirepb.PilotReport{Kind: reportEnded, Result: &wirepb.Result{End: int64(grid.Second), ExitCode: 4}}); err != nil || len(ended) != 1 || ended[0].Result.ExitCode != 4 {
		t.Errorf("%v, %v", err, ended)
	}
	if err := a.report(link, id, &wirepb.PilotReport{Kind: reportLost}); err != nil || len(ended) != 1 {
		t.Errorf("its end is told twice: %v, %v", err, ended)
	}
}
