package tracing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
)

// life gives two tracers what their sites see of a job that one submits and the other runs.
func life(home, runner *Tracer, n uint64) *grid.Job {
	job := &grid.Job{ID: grid.JobID{Hi: n, Lo: 7}, Home: home.self, Submit: 1000, Resources: grid.Resources{Processors: 1}}
	task := grid.TaskID{Job: job.ID, Epoch: 1}
	var out grid.Outbox
	turn := func(t *Tracer, now grid.Time, orders func()) (spans []uint64) {
		out.Reset()
		orders()
		return t.Effects(now, &out)
	}
	hears := func(t *Tracer, now grid.Time, from *Tracer, m grid.Message, span uint64) {
		t.Input(now, &grid.Delivery{From: from.self, Message: m, Span: span})
	}
	event := grid.Event{Job: job, Epoch: 1, Site: runner.self}
	tell := func(kind grid.EventKind) {
		event.Kind = kind
		out.Tell(event)
	}
	ask := &market.Negotiate{Task: task}
	home.Sought(job, 1001, 1002, 16, nil)
	spans := turn(home, 1002, func() { tell(grid.JobSubmitted); out.Send(runner.self, ask) })
	hears(runner, 1003, home, ask, spans[0])
	yes := &market.Reply{Task: task}
	turn(runner, 1004, func() { out.Send(home.self, yes) })
	hears(home, 1005, runner, yes, 0)
	hands := &market.JobSubmission{Job: job, Epoch: 1}
	spans = turn(home, 1006, func() { tell(grid.JobPlaced); out.Send(runner.self, hands) })
	hears(runner, 1007, home, hands, spans[0])
	has := &market.Acknowledge{Task: task, Of: wire.MarketJobSubmission}
	turn(runner, 1008, func() {
		out.Send(home.self, has)
		out.Start(grid.Task{ID: task, Job: job})
		tell(grid.JobStarted)
	})
	hears(home, 1009, runner, has, 0)
	event.Result = grid.Result{Start: 1010, End: 1020}
	turn(runner, 1021, func() { tell(grid.JobEnded); out.Send(home.self, &market.JobCompletion{Task: task}) })
	thanks := &market.Acknowledge{Task: task, Of: wire.MarketJobCompletion}
	turn(home, 1022, func() { tell(grid.JobFinished); out.Send(runner.self, thanks) })
	hears(runner, 1023, home, thanks, 0)
	turn(runner, 1023, func() {})
	return job
}

// tracers returns those of a home and of a site that runs its jobs.
func tracers(exporter func() sdk.SpanExporter) (home, runner *Tracer) {
	make := func(name string) *Tracer {
		return New(Config{Exporter: exporter(), Share: 1000}, grid.SiteID("id of "+name), name, "test")
	}
	return make("home"), make("runner")
}

// BenchmarkLife measures what tracing a job costs both sites together, its export by OTLP with
// it, but not what the collector does.
func BenchmarkLife(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	home, runner := tracers(func() sdk.SpanExporter {
		exporter, err := Open(b.Context(), "", collector.URL)
		if err != nil {
			b.Fatal(err)
		}
		return exporter
	})
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		n++
		life(home, runner, n)
		if n%400 == 0 { // nothing is dropped
			_, _ = home.out.ForceFlush(context.Background()), runner.out.ForceFlush(context.Background())
		}
	}
	_, _ = home.Close(context.Background()), runner.Close(context.Background())
}
