package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newHold(root *options) *cobra.Command {
	return changing(root, "hold", &cobra.Command{
		Use:   "hold JOB...",
		Short: "Keep jobs from starting until they are released",
		Long: `Keep jobs from starting until they are released: those that wait for something, or in
this site's queue. A job that runs, or that another site has, cannot be held: cancel it,
or have it run again with requeue.`,
		Example: "  gridnode hold 7q3k\n  gridnode hold 120_[5-9]",
	})
}

func newRelease(root *options) *cobra.Command {
	return changing(root, "release", &cobra.Command{
		Use:     "release JOB...",
		Short:   "Let jobs start that were held",
		Long:    `Let jobs start that were held, by hold or by submit --hold, once nothing else keeps them.`,
		Example: "  gridnode release 7q3k\n  gridnode release 120",
	})
}

func newRequeue(root *options) *cobra.Command {
	return changing(root, "requeue", &cobra.Command{
		Use:   "requeue JOB...",
		Short: "Run jobs again",
		Long: `Run jobs again: an execution that there is ends first. A job that waits stays where
it is, and one that is over has to be submitted again.`,
		Example: "  gridnode requeue 7q3k",
	})
}

// changing completes a verb that changes jobs.
func changing(root *options, change string, cmd *cobra.Command) *cobra.Command {
	var l listing
	addActFlags(cmd, &l)
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, err := l.actOn(cmd, root.client(), change, api.IDsRequest{IDs: args}, func(j *api.Job) {
			if l.format == formatTable {
				fmt.Fprintf(cmd.ErrOrStderr(), "job %s is %s\n", shortID(j.ID), j.State)
			}
		})
		return err
	}
	return cmd
}
