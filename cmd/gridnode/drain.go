package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// drainLook is how often is looked whether a site is empty.
const drainLook = time.Second

func newDrain(root *options) *cobra.Command {
	var undo, wait, stop bool
	var timeout string
	var l listing
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Have the site take no new work, before it is switched off",
		Long: `Have the site take no new work: submissions of its users are refused, other sites see no
offer and get no promise and no processors. What it has goes on, jobs that wait included.
It stays so when the daemon starts anew, until --undo.

With --wait the command returns once nothing is left: no job of its users, none of other
sites whose result is not at home yet, no lease. With --stop the daemon ends then.`,
		Example: `  gridnode drain --stop
  gridnode drain --wait --timeout 2h
  gridnode drain --undo`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if undo && (wait || stop) {
				return usagef("--undo has the site take work: there is nothing to wait for")
			}
			ctx := cmd.Context()
			if timeout != "" {
				span, err := parseSpan(timeout)
				if err != nil {
					return usagef("--timeout: %w", err)
				}
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, span.Duration())
				defer cancel()
			}
			d, err := root.client().Drain(ctx, undo)
			if err != nil {
				return apiError(err)
			}
			w := cmd.ErrOrStderr()
			say := func(text string) error {
				return l.act(cmd.OutOrStdout(), d, drainFacts(d), func() {
					if text != "" {
						fmt.Fprintln(w, text)
					}
				})
			}
			switch {
			case undo:
				return say("the site takes work again")
			case !wait && !stop:
				return say("the site takes no new work; left: " + leftText(d))
			}
			if d, err = awaitEmpty(ctx, root.client(), w); err != nil {
				return err
			}
			if !stop {
				return say("")
			}
			if err := root.client().Stop(ctx); err != nil && !errors.Is(err, api.ErrBroken) {
				return apiError(err)
			}
			if err := awaitUnlock(ctx, root.home); err != nil {
				return failf(exitTimeout, "the daemon is still there: see its log")
			}
			return say("stopped")
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().BoolVar(&undo, "undo", false, "take work again")
	cmd.Flags().BoolVar(&wait, "wait", false, "return once nothing is left")
	cmd.Flags().BoolVar(&stop, "stop", false, "stop the daemon once nothing is left")
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait no longer than this `SPAN`: exit code 124")
	return cmd
}

// drainFacts is what a site has left.
func drainFacts(d *api.Drain) []fact {
	list := []fact{{"draining", strconv.FormatBool(d.Draining)}}
	for _, f := range []struct {
		key string
		n   int64
	}{{"running", int64(d.Running)}, {"waiting", int64(d.Waiting)}, {"guests", int64(d.Guests)}, {"leases", int64(d.Leases)}} {
		list = append(list, fact{f.key, strconv.FormatInt(f.n, 10)})
	}
	return list
}

// awaitEmpty returns once a site has nothing left, and says now and then what it has.
func awaitEmpty(ctx context.Context, client *api.Client, w io.Writer) (*api.Drain, error) {
	said := ""
	for {
		d, err := client.Drained(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, failf(exitTimeout, "left: %s", said)
		case err != nil:
			return nil, apiError(err)
		case d.Empty():
			return d, nil
		case !d.Draining:
			return nil, failf(exitFailed, "somebody has the site take work again")
		}
		if text := leftText(d); text != said {
			said = text
			fmt.Fprintf(w, "left: %s\n", text)
		}
		select {
		case <-time.After(drainLook):
		case <-ctx.Done():
		}
	}
}

func leftText(d *api.Drain) string {
	return fmt.Sprintf("%d jobs that run, %d that wait, %d of other sites, %d leases", d.Running, d.Waiting, d.Guests, d.Leases)
}
