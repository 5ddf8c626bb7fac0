package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/market/bank"
)

// lasting keeps what it has when a tracer ends.
type lasting struct{ *tracetest.InMemoryExporter }

func (lasting) Shutdown(context.Context) error { return nil }

func flush(t *testing.T, all ...*Tracer) {
	t.Helper()
	for _, one := range all {
		if err := one.out.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLife: a job's trace is the job's by its ID, no span ends before it begins or lies outside
// of the first one, and nothing of it is kept once it is over.
func TestLife(t *testing.T) {
	collector := tracetest.NewInMemoryExporter()
	home, runner := tracers(func() sdk.SpanExporter { return lasting{collector} })
	job := life(home, runner, 3)
	if n := home.foreign + runner.foreign + len(home.jobs) + len(runner.jobs) + len(home.served) + len(runner.served) + len(home.over) + len(runner.over); n > 0 {
		t.Errorf("%d entries are left, want none", n)
	}
	flush(t, home, runner)
	spans := collector.GetSpans()
	root, first := 0, tracetest.SpanStub{}
	for _, s := range spans {
		if s.Name == spanJob {
			root++
			first = s
		}
	}
	if root != 1 || len(spans) != 10 {
		t.Fatalf("%d spans, %d of them first, want 10 and 1", len(spans), root)
	}
	for _, s := range spans {
		if s.SpanContext.TraceID() != job.ID.Bytes() {
			t.Errorf("%s is of trace %s", s.Name, s.SpanContext.TraceID())
		}
		if s.EndTime.Before(s.StartTime) || s.StartTime.Before(first.StartTime) {
			t.Errorf("%s from %v to %v, of a job from %v on", s.Name, s.StartTime, s.EndTime, first.StartTime)
		}
	}
}

// TestFirstSpanAfterRestart: whoever starts anew while a job runs makes its first span all the
// same, of which the earlier ones are children.
func TestFirstSpanAfterRestart(t *testing.T) {
	collector := tracetest.NewInMemoryExporter()
	before, after := tracers(func() sdk.SpanExporter { return lasting{collector} })
	after.self = before.self
	job := &grid.Job{ID: grid.JobID{Hi: 1, Lo: 2}, Home: before.self, Submit: 5}
	var out grid.Outbox
	out.Tell(grid.Event{Kind: grid.JobSubmitted, Job: job})
	before.Effects(10, &out)
	out.Reset()
	out.Tell(grid.Event{Kind: grid.JobFinished, Job: job, Epoch: 1})
	after.Effects(20, &out)
	flush(t, before, after)
	spans := collector.GetSpans()
	if len(spans) != 2 || spans[0].Name != spanSubmit || spans[1].Name != spanJob {
		t.Fatalf("%+v, want the submission and the job", spans)
	}
	if spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() || spans[1].Parent.IsValid() || spans[1].StartTime.UnixMicro() != 5 {
		t.Errorf("%v is a child of %v, want of %v", spans[0].Name, spans[0].Parent.SpanID(), spans[1].SpanContext.SpanID())
	}
}

// TestOthersLeaveNothing: whatever other sites send, nothing of it is kept unless this site has
// accepted a job, and no more is noted in a turn than is bounded.
func TestOthersLeaveNothing(t *testing.T) {
	collector := tracetest.NewInMemoryExporter()
	tracer, _ := tracers(func() sdk.SpanExporter { return lasting{collector} })
	var out grid.Outbox
	for n := range uint64(3 * servedMax) {
		id := grid.JobID{Hi: n, Lo: 1}
		task := grid.TaskID{Job: id, Epoch: 1}
		for _, m := range []grid.Message{
			&market.Negotiate{Task: task}, &market.JobSubmission{Job: &grid.Job{ID: id}, Epoch: 1}, &bank.Draw{Task: task},
			&market.Reply{Task: task}, &market.Acknowledge{Task: task}, &market.JobCompletion{Task: task}, &bank.Drawn{Task: task},
		} {
			tracer.Input(1, &grid.Delivery{From: "other", Message: m, Span: n * 977})
			tracer.Input(1, &grid.Undelivered{To: "other", Message: m})
		}
	}
	if len(tracer.served) > servedMax {
		t.Errorf("%d questions are noted, want at most %d", len(tracer.served), servedMax)
	}
	tracer.Effects(2, &out)
	if n := len(tracer.jobs) + len(tracer.served); n > 0 {
		t.Errorf("%d entries are left, want none", n)
	}
	for n := range uint64(foreignMax + 5) {
		job := &grid.Job{ID: grid.JobID{Hi: n, Lo: 3}, Home: "other"}
		tracer.Input(3, &grid.Delivery{From: "other", Message: &market.JobSubmission{Job: job, Epoch: 1}, Span: 7})
		out.Reset()
		out.Send("other", &market.Acknowledge{Task: grid.TaskID{Job: job.ID, Epoch: 1}, Of: wire.MarketJobSubmission})
		tracer.Effects(3, &out)
	}
	if len(tracer.jobs) != foreignMax || tracer.foreign != foreignMax {
		t.Errorf("%d jobs of a site are traced that never asks for their results, want %d", len(tracer.jobs), foreignMax)
	}
	runs := &grid.Job{ID: grid.JobID{Hi: 1, Lo: 3}, Home: "other"}
	tracer.starts(4, &grid.Task{ID: grid.TaskID{Job: runs.ID, Epoch: 1}, Job: runs})
	out.Reset()
	if tracer.Effects(2+idleMax, &out); tracer.foreign != foreignMax {
		t.Errorf("%d jobs of that site are traced before they are old", tracer.foreign)
	}
	tracer.Effects(4+idleMax+sweepSpan, &out)
	if len(tracer.jobs) != 1 || tracer.foreign != 1 || tracer.jobs[runs.ID] == nil {
		t.Errorf("%d jobs of that site are traced after long, want the one that runs", tracer.foreign)
	}
	delete(tracer.jobs, runs.ID)
	for n := range uint64(2 * lentMax) {
		tracer.Ordered(grid.TaskID{Job: grid.JobID{Hi: n, Lo: 1}, Epoch: 1}, 1)
	}
	if len(tracer.lent) > lentMax {
		t.Errorf("%d orders are noted, want at most %d", len(tracer.lent), lentMax)
	}
	for n := range uint64(jobsMax + 5) {
		tracer.Sought(&grid.Job{ID: grid.JobID{Hi: n, Lo: 1}, Home: tracer.self}, 1, 2, 3, errors.New("nobody answers"))
	}
	if len(tracer.jobs) != jobsMax {
		t.Errorf("%d jobs are traced, want %d", len(tracer.jobs), jobsMax)
	}
}

// TestShare: about so many jobs are traced as are to be, and at all restarts the same ones.
func TestShare(t *testing.T) {
	for _, share := range []int64{0, 250, 1000} {
		count := 0
		tracer := New(Config{Exporter: tracetest.NewNoopExporter(), Share: share}, "home", "home", "test")
		for n := range uint64(4000) {
			if tracer.own(&grid.Job{ID: grid.JobID{Hi: 1, Lo: n}, Home: "home"}) != nil {
				count++
			}
		}
		if want := int(4 * share); count < want-200 || count > want+200 || share%1000 == 0 && count != want {
			t.Errorf("%d of 4000 jobs are traced, want about %d", count, want)
		}
	}
}

// TestNobodyTraces: without an exporter there is no tracer, and none does nothing.
func TestNobodyTraces(t *testing.T) {
	none := New(Config{Share: 1000}, "home", "home", "test")
	if none != nil {
		t.Fatal("a tracer, want none")
	}
	id := grid.TaskID{Job: grid.JobID{Lo: 1}, Epoch: 1}
	none.Input(1, &grid.Delivery{})
	none.Staged(id, 1, 2, nil)
	none.Ordered(id, 3)
	none.Launched(1, id, "a", 1)
	none.Over(1, id, true, 0, "")
	if spans, span := none.Effects(1, new(grid.Outbox)), none.Span(id.Job); spans != nil || span != 0 || none.Close(t.Context()) != nil {
		t.Error("it says something")
	}
}

// TestCollectorGetsSpans: what reaches a collector is OTLP, and names the sites.
func TestCollectorGetsSpans(t *testing.T) {
	got := make(map[string]int)
	requests := make(chan *otlp.ExportTraceServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		request := new(otlp.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(b, request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		requests <- request
	}))
	defer server.Close()
	home, runner := tracers(func() sdk.SpanExporter {
		exporter, err := Open(t.Context(), "", server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return exporter
	})
	life(home, runner, 4)
	for _, one := range []*Tracer{home, runner} {
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(requests)
	for r := range requests {
		for _, of := range r.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					got[a.Value.GetStringValue()] += len(of.ScopeSpans[0].Spans)
				}
			}
		}
	}
	if got["home"] != 5 || got["runner"] != 5 {
		t.Errorf("%v, want five of each", got)
	}
}

// caught has what would be sent to a collector.
type caught struct {
	otlptrace.Client
	spans []*tracepb.ResourceSpans
}

func (c *caught) Start(context.Context) error { return nil }

func (c *caught) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	c.spans = append(c.spans, spans...)
	return nil
}

// TestSpansAsTheLibraryHasThem: what is sent of any spans is what the library's exporter sends.
func TestSpansAsTheLibraryHasThem(t *testing.T) {
	tracer, _ := tracers(func() sdk.SpanExporter { return tracetest.NewNoopExporter() })
	rapid.Check(t, func(rt *rapid.T) {
		number, text := rapid.Int64(), rapid.String()
		spans := make([]sdk.ReadOnlySpan, rapid.IntRange(0, 5).Draw(rt, "spans"))
		for i := range spans {
			s := tracer.begin(grid.JobID{Hi: rapid.Uint64().Draw(rt, "high"), Lo: rapid.Uint64().Draw(rt, "low")}, rapid.Uint64().Draw(rt, "parent"),
				text.Draw(rt, "name"), rapid.SampledFrom([]trace.SpanKind{trace.SpanKindInternal, trace.SpanKindServer, trace.SpanKindClient}).Draw(rt, "kind"),
				grid.Time(rapid.Int64Range(0, 1<<52).Draw(rt, "from")))
			s.to, s.why = s.from+grid.Time(rapid.Int64Range(0, 1<<40).Draw(rt, "took")), text.Draw(rt, "why")
			for range rapid.IntRange(0, 4).Draw(rt, "pairs") {
				key := attribute.Key(text.Draw(rt, "key"))
				s.about = append(s.about, rapid.SampledFrom([]attribute.KeyValue{key.Int64(number.Draw(rt, "number")), key.String(text.Draw(rt, "text"))}).Draw(rt, "pair"))
			}
			spans[i] = s
		}
		var library, ours caught
		theirs, err := otlptrace.New(t.Context(), &library)
		if err != nil {
			rt.Fatal(err)
		}
		if err := errors.Join(theirs.ExportSpans(t.Context(), spans), (&otlpExporter{client: &ours}).ExportSpans(t.Context(), spans)); err != nil {
			rt.Fatal(err)
		}
		got, want := new(otlp.ExportTraceServiceRequest), &otlp.ExportTraceServiceRequest{ResourceSpans: library.spans}
		b, err := proto.Marshal(&otlp.ExportTraceServiceRequest{ResourceSpans: ours.spans})
		if err == nil {
			err = proto.Unmarshal(b, got)
		}
		if err != nil || !proto.Equal(got, want) {
			rt.Fatalf("%v: %v, want %v", err, got, want)
		}
	})
}

// TestFileGetsSpans: a file gets a line of JSON for each span, behind what is there.
func TestFileGetsSpans(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spans")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exporter, err := Open(t.Context(), dir, FilePrefix+"spans")
	if err != nil {
		t.Fatal(err)
	}
	home := New(Config{Exporter: exporter, Share: 1000}, "home", "home", "test")
	home.Sought(&grid.Job{ID: grid.JobID{Lo: 1}, Home: "home"}, 1, 2, 3, nil)
	if err := home.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	var span struct{ Name string }
	if len(lines) != 2 || json.Unmarshal(lines[1], &span) != nil || span.Name != spanLookUp {
		t.Errorf("%q, want a line and a look-up", b)
	}
}

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"", "file:", "collector:4318", "127.0.0.1:4318", "ftp://collector", "http://", "http://me:secret@collector"} {
		if _, err := Open(t.Context(), t.TempDir(), bad); !errors.Is(err, ErrEndpoint) {
			t.Errorf("%q: %v, want ErrEndpoint", bad, err)
		}
	}
	for _, good := range []string{"http://collector:4318", "https://[::1]:4318/v1/traces", "file:x"} {
		if err := CheckEndpoint(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}
