package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newStop(root *options) *cobra.Command {
	var timeout string
	var l listing
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon; running jobs go on and are taken up again at the next start",
		Long: `Stop the daemon of this home and wait until it is gone. Its quote leaves the directory.
Jobs that run go on under their watcher and are taken up again, with their exit code,
at the next start.`,
		Example: "  gridnode stop",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := parseSpan(timeout)
			if err != nil {
				return usagef("--timeout: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), span.Duration())
			defer cancel()
			started := time.Now()
			if err := root.client().Stop(ctx); err != nil && !errors.Is(err, api.ErrBroken) {
				return apiError(err)
			}
			if err := awaitUnlock(ctx, root.home); err != nil {
				return failf(exitTimeout, "the daemon is still there after %s: see its log", time.Since(started).Round(time.Millisecond))
			}
			return l.act(cmd.OutOrStdout(), map[string]any{"stopped": true, "home": root.home}, []fact{{"home", root.home}, {"stopped", "true"}}, func() {
				fmt.Fprintln(cmd.ErrOrStderr(), "stopped")
			})
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringVar(&timeout, "timeout", "60s", "wait no longer than this `SPAN` for its end")
	return cmd
}
