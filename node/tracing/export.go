package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// FilePrefix is what an endpoint begins with that is a file.
const FilePrefix = "file:"

// ErrEndpoint is wrapped by CheckEndpoint's error.
var ErrEndpoint = errors.New("want http://HOST:PORT or https://HOST:PORT of a collector that takes OTLP, or file:PATH")

// CheckEndpoint returns an error wrapping ErrEndpoint if Open takes no such endpoint.
func CheckEndpoint(endpoint string) error {
	if path, file := strings.CutPrefix(endpoint, FilePrefix); file {
		if path == "" {
			return fmt.Errorf("%q: %w", endpoint, ErrEndpoint)
		}
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q: %w", endpoint, ErrEndpoint)
	}
	return nil
}

// Open returns what takes spans to an endpoint: the address of a collector, by OTLP over HTTP
// (/v1/traces unless the address has a path), or a file, relative to home, to which each span
// is appended as a line of JSON. It does not connect. Headers and certificates that a collector
// wants come from the environment (OTEL_EXPORTER_OTLP_HEADERS and the like).
func Open(ctx context.Context, home, endpoint string) (sdk.SpanExporter, error) {
	if err := CheckEndpoint(endpoint); err != nil {
		return nil, err
	}
	path, file := strings.CutPrefix(endpoint, FilePrefix)
	if !file {
		u, err := url.Parse(endpoint)
		if err != nil {
			return nil, err
		}
		if strings.Trim(u.Path, "/") == "" {
			u.Path = "/v1/traces"
		}
		client := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(u.String()))
		if err := client.Start(ctx); err != nil {
			return nil, err
		}
		return &otlpExporter{client: client}, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(home, path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	lines, err := stdouttrace.New(stdouttrace.WithWriter(f))
	if err != nil {
		f.Close()
		return nil, err
	}
	return &fileExporter{lines, f}, nil
}

// fileExporter closes the file, too.
type fileExporter struct {
	sdk.SpanExporter
	file *os.File
}

// Shutdown implements sdk.SpanExporter.
func (e *fileExporter) Shutdown(ctx context.Context) error {
	return errors.Join(e.SpanExporter.Shutdown(ctx), e.file.Close())
}
