package tracing

import (
	"context"
	"encoding/binary"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of OTLP: ScopeSpans, Span, Status, KeyValue, AnyValue.
const (
	fieldScopeSpans = 2

	fieldTrace      = 1
	fieldNumber     = 2
	fieldParent     = 4
	fieldName       = 5
	fieldKind       = 6
	fieldFrom       = 7
	fieldTo         = 8
	fieldAttributes = 9
	fieldStatus     = 15
	fieldFlags      = 16

	fieldStatusWhy  = 2
	fieldStatusCode = 3

	fieldPairKey   = 1
	fieldPairValue = 2

	fieldValueText   = 1
	fieldValueNumber = 3
)

// scopeName is what says to a collector which library has made the spans.
const scopeName = "gridnode"

// spanFlagsSet: it is sampled, and whether its parent is of another site is said: it is not, as
// who makes a span knows the number only.
const spanFlagsSet = uint32(trace.FlagsSampled) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)

// otlpExporter sends spans by OTLP. The library's exporter makes messages of them and bytes of
// those, which is more than half of what tracing a job costs; this one appends the bytes, and
// leaves the rest to the library.
type otlpExporter struct {
	client otlptrace.Client
	spans  []byte // of the last batch
	body   []byte // of the last span
}

// ExportSpans implements sdk.SpanExporter. All spans are of one Tracer. It is not called twice
// at once.
func (c *otlpExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	c.spans = c.spans[:0]
	for _, s := range spans {
		c.body = s.(*span).appendBody(c.body[:0])
		c.spans = protowire.AppendTag(c.spans, fieldScopeSpans, protowire.BytesType)
		c.spans = protowire.AppendBytes(c.spans, c.body)
	}
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scopeName}}
	scope.ProtoReflect().SetUnknown(c.spans) // as fields that it does not know: they are copied as they are
	resource := new(resourcepb.Resource)
	for _, a := range spans[0].Resource().Attributes() {
		text := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.AsString()}}
		resource.Attributes = append(resource.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: text})
	}
	return c.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{Resource: resource, ScopeSpans: []*tracepb.ScopeSpans{scope}}})
}

// Shutdown implements sdk.SpanExporter.
func (c *otlpExporter) Shutdown(ctx context.Context) error { return c.client.Stop(ctx) }

// appendBody appends a span as OTLP has it, without tag and length.
func (s *span) appendBody(b []byte) []byte {
	id := s.job.Bytes()
	b = protowire.AppendTag(b, fieldTrace, protowire.BytesType)
	b = protowire.AppendBytes(b, id[:])
	b = protowire.AppendTag(b, fieldNumber, protowire.BytesType)
	b = appendNumber(b, s.id)
	if s.parent != 0 {
		b = protowire.AppendTag(b, fieldParent, protowire.BytesType)
		b = appendNumber(b, s.parent)
	}
	b = protowire.AppendTag(b, fieldName, protowire.BytesType)
	b = protowire.AppendString(b, s.name)
	b = protowire.AppendTag(b, fieldKind, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(s.kind)) // the same numbers
	b = protowire.AppendTag(b, fieldFrom, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, uint64(s.StartTime().UnixNano()))
	b = protowire.AppendTag(b, fieldTo, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, uint64(s.EndTime().UnixNano()))
	for _, a := range s.about {
		b = protowire.AppendTag(b, fieldAttributes, protowire.BytesType)
		b = appendPair(b, a)
	}
	b = protowire.AppendTag(b, fieldStatus, protowire.BytesType)
	if s.why == "" {
		b = protowire.AppendVarint(b, 0)
	} else {
		b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(s.why))+2))
		b = protowire.AppendTag(b, fieldStatusWhy, protowire.BytesType)
		b = protowire.AppendString(b, s.why)
		b = protowire.AppendTag(b, fieldStatusCode, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(tracepb.Status_STATUS_CODE_ERROR))
	}
	b = protowire.AppendTag(b, fieldFlags, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, spanFlagsSet)
}

// appendNumber appends the number of a span with its length.
func appendNumber(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(protowire.AppendVarint(b, 8), n)
}

// appendPair appends what is told of a span with its length. All tags in it have one byte.
func appendPair(b []byte, a attribute.KeyValue) []byte {
	number, text, size := uint64(0), "", 0
	if a.Value.Type() == attribute.INT64 {
		number = uint64(a.Value.AsInt64())
		size = 1 + protowire.SizeVarint(number)
	} else {
		text = a.Value.String()
		size = 1 + protowire.SizeBytes(len(text))
	}
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(a.Key))+1+protowire.SizeBytes(size)))
	b = protowire.AppendTag(b, fieldPairKey, protowire.BytesType)
	b = protowire.AppendString(b, string(a.Key))
	b = protowire.AppendTag(b, fieldPairValue, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	if a.Value.Type() == attribute.INT64 {
		b = protowire.AppendTag(b, fieldValueNumber, protowire.VarintType)
		return protowire.AppendVarint(b, number)
	}
	b = protowire.AppendTag(b, fieldValueText, protowire.BytesType)
	return protowire.AppendString(b, text)
}
