package main

import (
	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newWait(root *options) *cobra.Command {
	var request api.IDsRequest
	var timeout string
	var quiet bool
	var l listing
	cmd := &cobra.Command{
		Use:   "wait [JOB...]",
		Short: "Wait until jobs are over and exit with their code",
		Long: `Wait until all of the jobs are over and exit with the highest of their codes (5 if one
was refused). If --timeout passes first, the exit code is 124 and the jobs go on.`,
		Example: `  gridnode wait 7q3k
  gridnode wait --timeout 10m $(gridnode submit -q -a 0-9 -- ./work)
  gridnode wait --name simulation`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(request.Names) == 0 {
				return usagef("wants the IDs of jobs, or --name")
			}
			request.IDs = args
			if timeout != "" {
				span, err := parseSpan(timeout)
				if err != nil {
					return usagef("--timeout: %w", err)
				}
				request.Timeout = api.Seconds(span)
			}
			client := root.client()
			t := tally{waited: true}
			timedOut, err := l.actOn(cmd, client, "wait", request, t.add)
			if err != nil {
				return err
			}
			if timedOut {
				return failf(exitTimeout, "not over after %s: %s", timeout, t.summary())
			}
			return t.outcome(cmd, client, quiet)
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait no longer than this `SPAN` (default: for ever)")
	cmd.Flags().StringArrayVarP(&request.Names, "name", "n", nil, "all jobs of this `NAME`, or of the array of this name, that are not over; may be repeated")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "say nothing")
	return cmd
}
