package tracing

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"gridnode/grid"
)

// span is a span as exporters read it. The library makes spans for many goroutines that look at
// the clock themselves; these have one writer, which says when, and numbers that follow from the
// job. That costs a third. The interface is in it for its private method.
type span struct {
	sdk.ReadOnlySpan
	t        *Tracer
	job      grid.JobID
	id       uint64
	parent   uint64 // 0: it is the first
	name     string
	kind     trace.SpanKind
	from, to grid.Time
	about    []attribute.KeyValue
	why      string // it failed; empty: it did not
}

// begin begins a span of a job's trace.
func (t *Tracer) begin(of grid.JobID, parent uint64, name string, kind trace.SpanKind, from grid.Time, about ...attribute.KeyValue) *span {
	return &span{t: t, job: of, id: max(rand.Uint64(), 1), parent: parent, name: name, kind: kind, from: from, about: about}
}

// end ends a span, and has it exported. It failed if why is not empty. Nothing may be told of it
// afterwards.
func (s *span) end(to grid.Time, why string, about ...attribute.KeyValue) {
	s.to, s.why = max(s.from, to), why
	s.about = append(s.about, about...)
	s.t.out.OnEnd(s)
}

func (s *span) context(id uint64) trace.SpanContext {
	c := trace.SpanContextConfig{TraceID: s.job.Bytes(), TraceFlags: trace.FlagsSampled}
	binary.BigEndian.PutUint64(c.SpanID[:], id)
	return trace.NewSpanContext(c)
}

// Parent implements sdk.ReadOnlySpan.
func (s *span) Parent() trace.SpanContext {
	if s.parent == 0 {
		return trace.SpanContext{}
	}
	return s.context(s.parent)
}

// Status implements sdk.ReadOnlySpan.
func (s *span) Status() sdk.Status {
	if s.why == "" {
		return sdk.Status{}
	}
	return sdk.Status{Code: codes.Error, Description: s.why}
}

// InstrumentationScope implements sdk.ReadOnlySpan.
func (s *span) InstrumentationScope() instrumentation.Scope {
	return instrumentation.Scope{Name: scopeName}
}

// InstrumentationLibrary implements sdk.ReadOnlySpan.
//
//lint:ignore SA1019 the interface has it
func (s *span) InstrumentationLibrary() instrumentation.Library {
	return instrumentation.Scope{Name: scopeName}
}

// What an exporter asks of a span besides.

// Name implements sdk.ReadOnlySpan.
func (s *span) Name() string { return s.name }

// SpanContext implements sdk.ReadOnlySpan.
func (s *span) SpanContext() trace.SpanContext { return s.context(s.id) }

// SpanKind implements sdk.ReadOnlySpan.
func (s *span) SpanKind() trace.SpanKind { return s.kind }

// StartTime implements sdk.ReadOnlySpan.
func (s *span) StartTime() time.Time { return time.UnixMicro(int64(s.from)) }

// EndTime implements sdk.ReadOnlySpan.
func (s *span) EndTime() time.Time { return time.UnixMicro(int64(s.to)) }

// Attributes implements sdk.ReadOnlySpan.
func (s *span) Attributes() []attribute.KeyValue { return s.about }

// Links implements sdk.ReadOnlySpan.
func (s *span) Links() []sdk.Link { return nil }

// Events implements sdk.ReadOnlySpan.
func (s *span) Events() []sdk.Event { return nil }

// Resource implements sdk.ReadOnlySpan.
func (s *span) Resource() *resource.Resource { return s.t.about }

// DroppedAttributes implements sdk.ReadOnlySpan.
func (s *span) DroppedAttributes() int { return 0 }

// DroppedLinks implements sdk.ReadOnlySpan.
func (s *span) DroppedLinks() int { return 0 }

// DroppedEvents implements sdk.ReadOnlySpan.
func (s *span) DroppedEvents() int { return 0 }

// ChildSpanCount implements sdk.ReadOnlySpan.
func (s *span) ChildSpanCount() int { return 0 }
