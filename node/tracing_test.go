package node

import (
	"context"
	"slices"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/node/content"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/tracing"
)

// traceOf returns the spans of a job's trace.
func traceOf(spans tracetest.SpanStubs, id grid.JobID) (found tracetest.SpanStubs) {
	for _, s := range spans {
		if s.SpanContext.TraceID() == id.Bytes() {
			found = append(found, s)
		}
	}
	return found
}

// nameOf returns SITE/SPAN.
func nameOf(s *tracetest.SpanStub) string {
	name, _ := s.Resource.Set().Value("service.name")
	return name.AsString() + "/" + s.Name
}

// parents returns each span with its parent, as PARENT > CHILD, sorted.
func parents(spans tracetest.SpanStubs) (edges []string) {
	for i := range spans {
		parent := "nobody"
		for k := range spans {
			if spans[k].SpanContext.SpanID() == spans[i].Parent.SpanID() {
				parent = nameOf(&spans[k])
			}
		}
		if !spans[i].Parent.SpanID().IsValid() {
			parent = ""
		}
		edges = append(edges, parent+" > "+nameOf(&spans[i]))
	}
	slices.Sort(edges)
	return slices.Compact(edges) // the directory may be asked more than once
}

// bringsFolder has a job bring a folder along.
func bringsFolder(t *testing.T, h *Host, j *grid.Job) {
	t.Helper()
	tree := content.Tree{Entries: []content.Entry{{Name: "data", Kind: content.Folder, Mode: 0o755}}}
	encoded, digest, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Content().Put(encoded); err != nil {
		t.Fatal(err)
	}
	j.Command.Files = &grid.Files{Tree: digest.String(), Drop: true}
}

// lasting is an exporter of several sites: it goes on when one of them ends.
type lasting struct{ sdk.SpanExporter }

func (lasting) Shutdown(context.Context) error { return nil }

// traced has the jobs of a host traced.
func traced(t *testing.T, cfg *HostConfig, collector *tracetest.InMemoryExporter) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // milliseconds until spans are exported
	cfg.Trace = tracing.Config{Exporter: lasting{collector}, Share: 1000}
}

// awaitTrace waits until a trace has the wanted spans, as parents tells them, and no other.
func awaitTrace(t *testing.T, collector *tracetest.InMemoryExporter, id grid.JobID, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	defer func() {
		if !slices.Equal(got, want) {
			t.Errorf("spans\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}()
	until(t, "all spans are there", func() bool {
		got = parents(traceOf(collector.GetSpans(), id))
		return len(got) >= len(want)
	})
}

// TestTraceOfJob: a job that another site runs, that brings a file along and is paid for by a
// third site's bank, makes one trace at the three, and each span has the right parent.
func TestTraceOfJob(t *testing.T) {
	memory := &p2p.Memory{}
	collector := tracetest.NewInMemoryExporter()
	runner, home, keeper := realConfig(t, 1, memory), realConfig(t, 2, memory), realConfig(t, 3, memory)
	for _, cfg := range []*HostConfig{&runner, &home, &keeper} {
		traced(t, cfg, collector)
	}
	keeper.Site.Bank = bank.Config{Offer: true}
	keeper.Site.Foreign = false
	k := realHost(t, keeper)
	runner.Join, home.Join = k.Addrs(), k.Addrs()
	runner.Site.Bank = bank.Config{Bank: k.ID(), Accept: []grid.SiteID{k.ID()}}
	home.Site.Bank = bank.Config{Bank: k.ID()}
	r, h := realHost(t, runner), realHost(t, home)
	awaitQuotes(t, h, 3)
	if a, err := k.Ask(t.Context(), func(token uint64) grid.Input {
		return &bank.Grant{Token: token, ID: grid.JobID{Lo: 77}, To: h.ID(), Amount: 100 * grid.Credit}
	}); err != nil || a.(*bank.Statement).Refusal != 0 {
		t.Fatalf("grant: %+v, %v", a, err)
	}
	j := shellJob(h, 1, "test -d data")
	bringsFolder(t, h, j)
	submitJob(t, h, j)
	until(t, "the job is over", func() bool { return stateOf(t, h, j).State.Terminal() })
	if v := stateOf(t, h, j); v.State != site.Done || v.Site != r.ID() {
		t.Fatalf("%v at %s: %s", v.State, v.Site, v.Reason)
	}
	awaitTrace(t, collector, j.ID,
		" > site-2/job",
		"site-1/start > site-1/stage",
		"site-2/ask > site-1/answer",
		"site-2/award > site-1/end",
		"site-2/award > site-1/pay",
		"site-2/award > site-1/queue",
		"site-2/award > site-1/run",
		"site-2/award > site-1/start",
		"site-1/pay > site-3/bank",
		"site-2/job > site-2/ask",
		"site-2/job > site-2/award",
		"site-2/job > site-2/look-up",
		"site-2/job > site-2/pay",
		"site-2/job > site-2/submit",
		"site-2/pay > site-3/bank",
	)
}

// TestTraceOfSpreadJob: a job whose tasks run on own and leased processors together makes one
// trace at both sites.
func TestTraceOfSpreadJob(t *testing.T) {
	memory := &p2p.Memory{}
	collector := tracetest.NewInMemoryExporter()
	home, lender := realConfig(t, 1, memory), realConfig(t, 2, memory)
	traced(t, &home, collector)
	traced(t, &lender, collector)
	lender.Site.Lease = site.LeaseConfig{Lend: true}
	l := realHost(t, lender)
	home.Site.Processors = 3
	home.Site.Lease = site.LeaseConfig{Match: lease.MatchConfig{
		Policy: lease.SSTRD, Links: []lease.Link{{Site: l.ID(), Relation: lease.Sibling}},
	}}
	home.Join = l.Addrs()
	h := realHost(t, home)
	j := spreadJob(t, h, 1, "true")
	until(t, "the job is over", func() bool { return stateOf(t, h, j).State.Terminal() })
	awaitTrace(t, collector, j.ID,
		" > site-1/job",
		"site-1/job > site-1/end",
		"site-1/job > site-1/queue",
		"site-1/job > site-1/run",
		"site-1/job > site-1/start",
		"site-1/job > site-1/submit",
		"site-1/start > site-2/run",
	)
}

// TestNothingIsTraced: a site that traces no job of its own makes no span, and one that is not
// told of a trace makes none of others' jobs.
func TestNothingIsTraced(t *testing.T) {
	memory := &p2p.Memory{}
	collector := tracetest.NewInMemoryExporter()
	runner, home := realConfig(t, 1, memory), realConfig(t, 2, memory)
	traced(t, &runner, collector)
	traced(t, &home, collector)
	home.Trace.Share = 0
	r := realHost(t, runner)
	home.Join = r.Addrs()
	h := realHost(t, home)
	awaitQuotes(t, h, 2)
	j := shellJob(h, 1, "true")
	submitJob(t, h, j)
	until(t, "the job is over", func() bool { return stateOf(t, h, j).State.Terminal() })
	if v := stateOf(t, h, j); v.State != site.Done || v.Site != r.ID() {
		t.Fatalf("%v at %s: %s", v.State, v.Site, v.Reason)
	}
	closeHost(t, h)
	closeHost(t, r)
	if spans := collector.GetSpans(); len(spans) > 0 {
		t.Errorf("%d spans, the first %q; want none", len(spans), nameOf(&spans[0]))
	}
}
