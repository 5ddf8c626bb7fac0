package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

func newWhy(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "why JOB",
		Short: "Explain where a job is or why nobody took it",
		Long: `Explain where a job is, or why nobody took it: every site that was considered, with
its price (credits per hour), what the job would cost there, when it would be done, and
what came of it. A job that only ever was for this site has no such table. Of a job that
waits for processors it says its place in the queue, and when it begins at the latest.`,
		Example: "  gridnode why 7q3k\n  gridnode why 7q3k -o json",
		Args:    exactArgs(1, "the ID of a job, or a unique prefix of it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := root.client().Why(cmd.Context(), args[0])
			if err != nil {
				return apiError(err)
			}
			if l.format == formatTable || l.format == formatWide {
				fmt.Fprintln(cmd.OutOrStdout(), explanation(&reply.Job))
				if len(reply.Verdicts) == 0 {
					return nil
				}
			}
			return printVerdicts(cmd.OutOrStdout(), l, reply)
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// explanation says in a sentence where a job stands.
func explanation(j *api.Job) string {
	text := fmt.Sprintf("%s %s: %s", shortID(j.ID), cellText(j.Name), j.State)
	if site := siteOf(*j); site != "" {
		text += " at " + cellText(site)
	}
	text += waitText(j, time.Now())
	if j.PromisedFinish != 0 && j.End == 0 {
		text += ", promised to be done by " + formatInstant(j.PromisedFinish)
	}
	if late := lateText(*j, time.Now()); late != "" {
		text += ", " + late + " after its deadline"
	}
	if j.ExitCode != nil && *j.ExitCode != 0 {
		text += fmt.Sprintf(", exit code %d", *j.ExitCode)
	}
	if j.Reason != "" {
		text += ": " + cellText(j.Reason)
	}
	if j.TTL != nil && !j.Over() {
		text += fmt.Sprintf("; delegation time-to-live %d", *j.TTL)
	}
	return text
}
