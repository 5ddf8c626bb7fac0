//go:build !client

package main

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"

	"gridnode/node"
	"gridnode/node/logging"
	"gridnode/node/tracing"
)

// traceSettings are the keys about traces of jobs.
var traceSettings = []setting{
	{key: "trace.endpoint", value: "", usage: "collector that gets a trace of each job by OTLP: http://HOST:PORT or https://HOST:PORT, or file:PATH for lines of JSON; empty: nothing is traced",
		set: func(s *settings, v string) error {
			if s.traceEndpoint = v; v == "" {
				return nil
			}
			return tracing.CheckEndpoint(v)
		}},
	{key: "trace.share", value: "1", usage: "share of this site's jobs that are traced, 0 to 1 with at most three decimals; of other sites' those that their homes trace",
		set: func(s *settings, v string) (err error) {
			if s.traceShare, err = thousandths(v); err == nil && s.traceShare > 1000 {
				err = fmt.Errorf("%q: want a number from 0 to 1 with at most three decimals", v)
			}
			return err
		}},
}

// trace has the node's jobs traced, if they are to be.
func trace(ctx context.Context, cfg *node.HostConfig, s *settings, log *slog.Logger) (err error) {
	if s.traceEndpoint == "" {
		return nil
	}
	if cfg.Trace.Exporter, err = tracing.Open(ctx, cfg.Home, s.traceEndpoint); err != nil {
		return fmt.Errorf("trace.endpoint: %w", err)
	}
	cfg.Trace.Share = s.traceShare
	log = log.With(logging.PartKey, "trace")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces of jobs are not exported", "error", err) }))
	return nil
}
