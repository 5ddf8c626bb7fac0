package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newCancel(root *options) *cobra.Command {
	var request api.IDsRequest
	var l listing
	cmd := &cobra.Command{
		Use:   "cancel [JOB...]",
		Short: "End jobs, wherever they are",
		Long: `End jobs, wherever they are: one that waits leaves its queue, one that runs is killed.
Cancelling a job that is over changes nothing. The command returns once the wish is
stored; use wait to see it fulfilled.`,
		Example: `  gridnode cancel 7q3k x2m9
  gridnode cancel --name simulation --reason "wrong input"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(request.Names) == 0 {
				return usagef("wants the IDs of jobs, or --name")
			}
			request.IDs = args
			_, err := l.actOn(cmd, root.client(), "cancel", request, func(j *api.Job) {
				switch {
				case l.format != formatTable:
				case j.State == "cancelled" || j.State == "cancelling":
					fmt.Fprintf(cmd.ErrOrStderr(), "job %s is %s\n", shortID(j.ID), j.State)
				default:
					fmt.Fprintf(cmd.ErrOrStderr(), "job %s was over already: %s\n", shortID(j.ID), j.State)
				}
			})
			return err
		},
	}
	addActFlags(cmd, &l)
	cmd.Flags().StringArrayVarP(&request.Names, "name", "n", nil, "all jobs of this `NAME`, or of the array of this name, that are not over; may be repeated")
	cmd.Flags().StringVar(&request.Cause, "reason", "", "`TEXT` that says why, shown with the jobs; at most 200 bytes")
	return cmd
}
